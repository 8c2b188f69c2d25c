//! A launch that a rewrite has collected, `children.launch(…)`, in Markdown: told in the order of a launch, with the same tables.

use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::place::FileRange;

use super::super::markdown::{code, describe, link, table, words};
use super::super::measured;
use super::super::pages::Pages;
use super::super::state::Snapshot;
use super::launch::{answer, reached, rewrites, value, whys};
use super::operand;
use crate::collected::at;
use crate::describe::launching;
use crate::glance::glance_at_collected;
use crate::schema::CollectedLaunch;

/// The text about the collected launch, or the value of it, that stands at `offset`.
pub fn hover(snapshot: &Snapshot, file: SourceFile, offset: u32) -> Option<(String, FileRange)> {
    let found = at(&snapshot.db, file, offset)?;
    if let Some(value) = operand::at_collected(snapshot, &found, offset) {
        return Some(value);
    }
    let best = measured::best(snapshot, found.function);
    let mut text = describe(snapshot, |describe| {
        let launch = describe.collected(found.function, &found.collector, &found.call);
        markdown(&launch, &best, &snapshot.pages)
    });
    text.push_str(&measured::markdown(snapshot, found.function));
    Some((text, found.place(&snapshot.db)))
}

/// The answer first, then what the launch is made of. `measured` says how much a rewrite has brought, where that is known.
fn markdown(launch: &CollectedLaunch, measured: &str, pages: &Pages) -> String {
    let home = launch.place.path.as_str();
    let mut out = format!(
        "**launch of `{}`** ({}) in `{}`, {}",
        launch.child.name,
        link(&launch.child.place, home),
        launch.parent.name,
        launch.runs
    );
    if let Some(who) = launch.who {
        out.push_str(&format!(": {}", launching(who)));
    }
    out.push_str("\n\n");
    out.push_str(&answer(&glance_at_collected(launch), None, measured));
    out.push_str("---\n\n");
    out.push_str(&table(&["", ""], &facts(launch, home)));
    out.push('\n');
    let values = launch.config.iter().map(|value| (value, false));
    let arguments = launch.args.iter().map(|value| (value, true));
    let rows: Vec<Vec<String>> = values
        .chain(arguments)
        .enumerate()
        .map(|(index, (of, is_argument))| {
            let name = match (&of.name, is_argument) {
                (Some(name), true) => code(name),
                (Some(name), false) => format!("*{name}*"),
                (None, _) => format!("{}", index + 1 - launch.config.len()),
            };
            value(&name, &of.text, &of.uniformity, &whys(&of.uniformity, home))
        })
        .collect();
    out.push_str(&table(&["", "value", "uniformity", "why"], &rows));
    if !launch.rewrites.is_empty() {
        out.push('\n');
        out.push_str(&rewrites(launch.rewrites.iter(), home, pages));
    }
    out
}

fn facts(launch: &CollectedLaunch, home: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row = |what: &str, text: String| rows.push(vec![format!("*{what}*"), text]);
    row("runs", words(&launch.answer));
    match launch.others {
        0 => {}
        1 => row("together with", "the launches of 1 other line".to_owned()),
        others => row("together with", format!("the launches of {others} other lines")),
    }
    if let Some(was) = &launch.was {
        row("was", code(was));
    }
    row("reached", reached(&launch.divergence, home));
    if let Some(first) = launch.loops.first() {
        row("in a loop", link(first, home));
    }
    rows
}
