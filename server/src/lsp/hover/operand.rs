//! An argument or a part of the config of a launch, in Markdown: how uniform it is, and why.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::launch::Operand;
use gridfuse_analysis::facts::uniformity::{Cause, Level, Uniformity};

use super::super::markdown::{code, describe, link, source_line, words};
use super::super::state::Snapshot;
use crate::launches::LaunchSite;

/// What an operand is for.
pub enum Role {
    /// Argument of the kernel.
    Argument,
    /// Grid size.
    Grid,
    /// Block size.
    Block,
    /// Dynamic shared memory.
    Shared,
    /// Stream.
    Stream,
}

/// The operands of a launch, as far as they are written.
pub fn of<'s>(site: &LaunchSite<'s>) -> Vec<(Role, &'s Operand)> {
    let facts = site.facts;
    // All of a launch that comes out of a macro has the place of the macro's use.
    if facts.from_macro {
        return Vec::new();
    }
    let config = [
        (Role::Grid, Some(&facts.grid.operand)),
        (Role::Block, Some(&facts.block.operand)),
        (Role::Shared, facts.shared.as_ref()),
        (Role::Stream, facts.stream_operand.as_ref()),
    ];
    let config = config
        .into_iter()
        .filter_map(|(role, operand)| Some((role, operand?)))
        // Stands for a part of the config that is missing.
        .filter(|(_, operand)| operand.span != facts.span);
    let arguments = facts.args.iter().map(|operand| (Role::Argument, operand));
    config.chain(arguments).collect()
}

/// The text about the operand at `offset`; `None` where there is none.
pub fn at(snapshot: &Snapshot, site: &LaunchSite<'_>, offset: u32) -> Option<(String, FileRange)> {
    let (role, operand) = of(site)
        .into_iter()
        .find(|(_, operand)| site.at(&snapshot.db, operand.span).range.touches(offset))?;
    Some((
        markdown(snapshot, site, &role, operand),
        site.at(&snapshot.db, operand.span),
    ))
}

/// The text about an operand.
pub fn markdown(snapshot: &Snapshot, site: &LaunchSite<'_>, role: &Role, operand: &Operand) -> String {
    let child = site.facts.kernel_name.as_deref().unwrap_or("a kernel");
    let mut out = match role {
        Role::Grid => format!("**grid size** of the launch of `{child}`"),
        Role::Block => format!("**block size** of the launch of `{child}`"),
        Role::Shared => format!("**dynamic shared memory** of the launch of `{child}`"),
        Role::Stream => format!("**stream** of the launch of `{child}`"),
        Role::Argument => match &operand.parameter {
            Some(parameter) => format!("**argument for `{parameter}`** of `{child}`"),
            None => format!("**argument** of the launch of `{child}`"),
        },
    };
    let text = describe(snapshot, |describe| describe.text(site.at(&snapshot.db, operand.span)));
    out.push_str(&format!(": {}\n\n", code(&text)));
    out.push_str(&groups(operand.uniformity.level));
    out.push('\n');
    out.push_str(&reasons(snapshot, site, &operand.uniformity));
    if operand.changes_in_loop
        && let Some(around) = site.facts.loops.first()
    {
        out.push_str(&format!(
            "\nA loop around the launch changes it ({}).\n",
            place_link(snapshot, site, around.span)
        ));
    }
    if matches!(role, Role::Argument) {
        out.push_str(&format!("\n{}\n", handed_on(operand)));
    }
    out
}

/// Who holds the same value.
fn groups(level: Level) -> String {
    let who = match level {
        Level::Constant => "the same whenever the launch is reached",
        Level::Grid => "all threads of a grid have the same value",
        Level::Block => "all threads of a block have the same value; blocks may have different ones",
        Level::Warp => "all threads of a warp have the same value; warps may have different ones",
        Level::Varying => "each thread may have a value of its own",
    };
    format!("**{}**: {who}.\n", level.name())
}

fn reasons(snapshot: &Snapshot, site: &LaunchSite<'_>, uniformity: &Uniformity) -> String {
    let mut out = String::new();
    if let Some(why) = &uniformity.why {
        out.push_str(&format!("{}{}\n", words(&why.text), at_line(snapshot, site, why)));
        if why.span != Span::default() {
            out.push_str(&source_line(snapshot, site.at(&snapshot.db, why.span)));
        }
    }
    // Several places may need the same.
    let mut assumed: Vec<(&str, Vec<String>)> = Vec::new();
    for cause in &uniformity.assumes {
        let place = (cause.span != Span::default()).then(|| place_link(snapshot, site, cause.span));
        match assumed.iter_mut().find(|(text, _)| *text == cause.text) {
            Some((_, places)) => places.extend(place.filter(|place| !places.contains(place))),
            None => assumed.push((&cause.text, place.into_iter().collect())),
        }
    }
    for (text, places) in assumed {
        let places = match places.is_empty() {
            true => String::new(),
            false => format!(" ({})", places.join(", ")),
        };
        out.push_str(&format!("\nassumes {}{places}\n", words(text)));
    }
    out
}

fn at_line(snapshot: &Snapshot, site: &LaunchSite<'_>, cause: &Cause) -> String {
    if cause.span == Span::default() {
        return String::new();
    }
    format!(" ({})", place_link(snapshot, site, cause.span))
}

fn place_link(snapshot: &Snapshot, site: &LaunchSite<'_>, span: Span) -> String {
    describe(snapshot, |describe| {
        let home = describe.place(site.place).path;
        link(&describe.place(site.at(&snapshot.db, span)), &home)
    })
}

/// What aggregation does with an argument.
fn handed_on(operand: &Operand) -> &'static str {
    match operand.uniformity.level {
        _ if operand.changes_in_loop => "Collected launches store it for each launch.",
        Level::Constant | Level::Grid => "Collected launches store it once, at every granularity.",
        Level::Block => {
            "Stored once where launches are collected per warp or block; for each launch where they are collected per grid or group of blocks."
        }
        Level::Warp => "Stored once where launches are collected per warp; for each launch at other granularities.",
        Level::Varying => "Collected launches store it for each launch.",
    }
}
