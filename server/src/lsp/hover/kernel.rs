//! A kernel, or another function that launches, in Markdown: its head, who launches it, what it launches.

use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::facts::launch::{launch_counts, who_launches};
use gridfuse_analysis::hir::items::{FunctionItem, items};

use super::super::markdown::{code, describe, fenced, link, table};
use super::super::measured;
use super::super::state::Snapshot;
use super::generated;
use crate::collected::{collectors, kernel_of};
use crate::describe::{Describe, launchers, recursion};
use crate::glance::{glance, glance_at_collected};
use crate::launches::{LaunchSite, by_function, of_kernel};
use crate::through_calls::{self, through_calls};

/// At most this many launches of a kernel are listed.
const MAX_LISTED: usize = 20;

/// The text about a kernel or another function that launches. Its head isn't in it: that is what a C++ server's hover shows, beside
/// this one.
pub fn markdown(snapshot: &Snapshot, kernel: FunctionItem<'_>) -> String {
    text(snapshot, kernel, "")
}

/// The same with the function's head, for a page of its own.
pub fn page(snapshot: &Snapshot, kernel: FunctionItem<'_>) -> String {
    text(snapshot, kernel, &fenced(&head(snapshot, kernel)))
}

fn text(snapshot: &Snapshot, kernel: FunctionItem<'_>, head: &str) -> String {
    describe(snapshot, |describe| {
        let db = &snapshot.db;
        let own = describe.function(kernel);
        let home = own.place.path.as_str();
        let kind = match own.kind {
            "kernel" => "kernel",
            "device" => "device function",
            _ => "host function",
        };
        let mut out = format!("**{kind} `{}`** ({})\n", own.name, link(&own.place, home));
        out.push_str(head);
        if let Some(role) = generated::role(snapshot, kernel) {
            out.push_str(&format!("\n{role}\n"));
        }
        let outgoing = by_function(db, kernel);
        let incoming = of_kernel(db, kernel);
        out.push_str(&launches_of(describe, &outgoing, home));
        let called = through_calls(db, kernel);
        out.push_str(&launches_of_callees(describe, &called, home));
        out.push_str(&launched_from(describe, &incoming, home));
        out.push_str(&measured::markdown(snapshot, kernel));
        let collected = collected_in(describe, kernel, home);
        out.push_str(&collected);
        let none = outgoing.is_empty() && called.is_empty() && incoming.is_empty() && collected.is_empty();
        if none && !uses_runtime(snapshot, kernel) {
            out.push_str("\nNo launch of it, and none by it, is known.\n");
        }
        out
    })
}

/// Everything before the body, as it is written.
fn head(snapshot: &Snapshot, kernel: FunctionItem<'_>) -> String {
    let db = &snapshot.db;
    let text = kernel.file(db).text(db);
    let start = kernel.start(db);
    let end = kernel.signature(db).params_span.shift(start).end;
    let head = TextRange::new(start, end).text(&text);
    let lines: Vec<&str> = head.lines().map(str::trim).collect();
    lines.join("\n    ")
}

fn launches_of(describe: &Describe<'_>, sites: &[LaunchSite<'_>], home: &str) -> String {
    let mut recursive = None;
    let mut answers = String::new();
    let rows: Vec<Vec<String>> = sites
        .iter()
        .take(MAX_LISTED)
        .map(|site| {
            let launch = describe.launch(site);
            if launch.recursive {
                recursive = Some(recursion(&launch.count));
            }
            let child = code(launch.child.name.as_deref().unwrap_or("(computed)"));
            // Host code has none.
            if !launch.rewrites.is_empty() {
                let place = link(&launch.place, home);
                let answer = glance(&launch).sentence();
                answers.push_str(&format!("\nLaunch of {child} ({place}): **{answer}**\n"));
            }
            vec![
                child,
                link(&launch.place, home),
                launchers(launch.who).to_string(),
                code(&launch.count.per_grid),
            ]
        })
        .collect();
    let header = ["Launches", "", "by", "per grid"];
    let mut out = answers;
    out.push_str(&section(&table(&header, &rows), sites.len()));
    if let Some(recursive) = recursive {
        out.push_str(&format!("\nRecursion: {recursive}.\n"));
    }
    out
}

/// The launches in functions that it calls: where they stand, and which call leads there.
fn launches_of_callees(describe: &Describe<'_>, called: &[through_calls::Launch<'_>], home: &str) -> String {
    let db = describe.db;
    let mut answers = String::new();
    let rows: Vec<Vec<String>> = called
        .iter()
        .take(MAX_LISTED)
        .map(|launch| {
            let child = code(launch.child.as_deref().unwrap_or("(computed)"));
            let (place, call) = (describe.place(launch.place), describe.place(launch.call));
            let callee = code(launch.callee.name(db));
            let place = link(&place, home);
            if let Some(site) = &launch.site {
                let answer = glance(&describe.launch(site)).sentence();
                answers.push_str(&format!("\nLaunch of {child} in {callee} ({place}): **{answer}**\n"));
            }
            vec![
                child,
                place,
                callee,
                match launch.certain {
                    true => link(&call, home),
                    false => format!("perhaps {}", link(&call, home)),
                },
            ]
        })
        .collect();
    let header = ["Launches", "", "in", "called in"];
    answers + &section(&table(&header, &rows), called.len())
}

/// The launches of a kernel that a rewrite has collected, also those in a function that its body has moved to.
fn collected_in(describe: &Describe<'_>, kernel: FunctionItem<'_>, home: &str) -> String {
    let db = describe.db;
    let functions = items(db, kernel.file(db)).functions.iter().copied();
    let own = functions.filter(|function| kernel_of(db, *function) == kernel);
    let mut all = 0;
    let mut answers = String::new();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for function in own {
        for collector in collectors(db, function) {
            all += collector.launches.len();
            for call in collector.launches.iter().take(MAX_LISTED - rows.len()) {
                let launch = describe.collected(function, &collector, call);
                let (child, place) = (code(&launch.child.name), link(&launch.place, home));
                let answer = glance_at_collected(&launch).sentence();
                answers.push_str(&format!("\nLaunch of {child} ({place}): **{answer}**\n"));
                rows.push(vec![child, place, launch.runs]);
            }
        }
    }
    answers + &section(&table(&["Launches", "", "how"], &rows), all)
}

/// In a file that rewrites have changed, launches of a kernel may be collected anywhere.
fn uses_runtime(snapshot: &Snapshot, kernel: FunctionItem<'_>) -> bool {
    let db = &snapshot.db;
    kernel.file(db).text(db).contains("gridfuse::")
}

fn launched_from(describe: &Describe<'_>, sites: &[LaunchSite<'_>], home: &str) -> String {
    let db = describe.db;
    let rows: Vec<Vec<String>> = sites
        .iter()
        .take(MAX_LISTED)
        .map(|site| {
            let count = launch_counts(db, site.id.function).get(site.id.index as usize);
            let count = count.filter(|_| site.device_side());
            vec![
                code(site.id.function.name(db)),
                link(&describe.place(site.place), home),
                launchers(who_launches(db, site.id)).to_string(),
                count.map_or_else(String::new, |count| code(&count.per_grid.to_string())),
            ]
        })
        .collect();
    section(&table(&["Launched from", "", "by", "per grid"], &rows), sites.len())
}

/// A table, with a line about what was left out.
fn section(table: &str, all: usize) -> String {
    match (table, all.saturating_sub(MAX_LISTED)) {
        ("", _) => String::new(),
        (table, 0) => format!("\n{table}"),
        (table, 1) => format!("\n{table}\nand 1 more launch\n"),
        (table, more) => format!("\n{table}\nand {more} more launches\n"),
    }
}
