//! `gridfuse explain`: everything known about each launch site.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use gridfuse_analysis::base::db::{Database, SourceFile};
use gridfuse_analysis::hir::items::{FunctionItem, items};

use super::fitted_table::FittedTable;
use super::output::{count, json, note as note_to_user, shell};
use super::project::{Project, located};
use super::site::{At, NamedAt, launches_at, list_places, named_place};
use super::wrapped::wrapped;
use super::{CLEAN, CliResult, Format, Includes};
use crate::collected::collectors;
use crate::describe::{Describe, dependence_rows, launchers, placed, plural, recursion, told_rewrites};
use crate::glance::{Glance, glance, glance_at_collected};
use crate::launches::{LaunchSite, REVERT, by_function, function_at, in_file, place_in};
use crate::line_index::line_index;
use crate::schema::{self, CollectedLaunch, ExplainReport, Launch, Note, Operand, Place, Step, Uniformity};
use crate::through_calls::{self, through_calls};

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// File, or one line of it, or - for standard input; without a line, text output leaves launches by host code out
    #[arg(value_name = "FILE[:LINE]")]
    location: PathBuf,
    /// The line, apart from the file: the one way to name it for standard input
    #[arg(long, value_name = "[FILE:]LINE[:COL]", allow_hyphen_values = true)]
    at: Option<NamedAt>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    includes: Includes,
}

/// Runs `explain`.
pub fn run(args: &ExplainArgs, out: &mut dyn Write) -> CliResult {
    let (path, at) = named_place(&args.location, args.at.clone())?;
    if path.is_dir() {
        return Err(format!("{} is a directory; name one file", path.display()).into());
    }
    let project = Project::load(std::slice::from_ref(&path), &args.includes)?;
    let path = located(&path, &args.includes)?;
    let file = project
        .host
        .file(&path)
        .ok_or_else(|| format!("cannot read {}", path.display()))?;
    project.describe(|db, describe| {
        let name = project.show(&path);
        let mut sites = match at {
            Some(at) => launches_at(db, file, at),
            None => in_file(db, file),
        };
        let mut collected = collected_at(db, describe, file, at);
        if let Some(at) = at
            && sites.is_empty()
            && collected.is_empty()
        {
            let around = around(db, describe, file, at);
            let Some(around) = around.filter(|around| !around.sites.is_empty() || !around.collected.is_empty()) else {
                return Err(match list_places(db, &name, &in_file(db, file)) {
                    none if none.is_empty() => format!("no kernel launch at {name}:{at}: the file has none"),
                    places => format!("no kernel launch at {name}:{at}; there are launches at {places}"),
                }
                .into());
            };
            note_to_user(&format!("no kernel launch at {name}:{at} itself; {}", around.told));
            (sites, collected) = (around.sites, around.collected);
        }
        let total = sites.len();
        if args.format == Format::Text && at.is_none() {
            sites.retain(LaunchSite::device_side);
        }
        let launches: Vec<Launch> = sites.iter().map(|site| describe.launch(site)).collect();
        if args.format == Format::Json {
            json(
                out,
                &ExplainReport {
                    schema: schema::VERSION,
                    version: env!("CARGO_PKG_VERSION"),
                    launches,
                    collected,
                },
            )?;
            return Ok(CLEAN);
        }
        for launch in &launches {
            let mut told = Vec::new();
            text(launch, &mut told)?;
            writeln!(out, "{}", wrapped(&String::from_utf8_lossy(&told)))?;
        }
        for launch in &collected {
            let mut told = Vec::new();
            collected_text(launch, &mut told)?;
            writeln!(out, "{}", wrapped(&String::from_utf8_lossy(&told)))?;
        }
        if launches.is_empty() && collected.is_empty() {
            writeln!(out, "{name}: no kernel launches another")?;
        }
        if total > launches.len() {
            let hidden = total - launches.len();
            writeln!(
                out,
                "{} by host code not shown: name the line to see one",
                count(hidden, "launch", "launches")
            )?;
        }
        Ok(CLEAN)
    })
}

/// What a line has to do with that launches nothing itself.
struct Around<'db> {
    sites: Vec<LaunchSite<'db>>,
    collected: Vec<CollectedLaunch>,
    /// What the launches are, for a message.
    told: String,
}

/// The launches that a line leads to by calls, else those of the function around it, its own and those in functions that it calls.
/// `None`: no kernel and no device function is there.
fn around<'db>(db: &'db Database, describe: &Describe<'_>, file: SourceFile, at: At) -> Option<Around<'db>> {
    let index = line_index(db, file);
    let start = index.start(at.line - 1)?;
    let text = file.text(db);
    let line = text.get(start as usize..)?.lines().next().unwrap_or_default();
    let indent = line.len() - line.trim_start().len();
    let function = function_at(db, file, start.saturating_add(u32::try_from(indent).unwrap_or(0)))?;
    let called = through_calls(db, function);
    let here = |launch: &&through_calls::Launch<'db>| index.line(launch.call.range.start).0 == at.line - 1;
    let led_to: Vec<&through_calls::Launch<'db>> = called.iter().filter(here).collect();
    let (own, led_to, told) = match led_to.is_empty() {
        true => (
            true,
            called.iter().collect(),
            format!("these are those of `{}`", function.name(db)),
        ),
        false => (false, led_to, "what is called there launches".to_owned()),
    };
    let mut sites: Vec<LaunchSite<'db>> = Vec::new();
    if own {
        sites.extend(by_function(db, function).into_iter().filter(LaunchSite::device_side));
    }
    sites.extend(led_to.iter().filter_map(|launch| launch.site));
    let callees = led_to
        .iter()
        .filter(|launch| launch.site.is_none())
        .map(|launch| launch.callee);
    let mut collecting: Vec<FunctionItem<'db>> = own.then_some(function).into_iter().collect();
    for callee in callees {
        if !collecting.contains(&callee) {
            collecting.push(callee);
        }
    }
    let collected = collecting
        .into_iter()
        .flat_map(|function| collected_in(db, describe, function));
    Some(Around {
        sites,
        collected: collected.collect(),
        told,
    })
}

/// The collected launches of a function.
fn collected_in(db: &Database, describe: &Describe<'_>, function: FunctionItem<'_>) -> Vec<CollectedLaunch> {
    let mut found = Vec::new();
    for collector in collectors(db, function) {
        found.extend(
            collector
                .launches
                .iter()
                .map(|launch| describe.collected(function, &collector, launch)),
        );
    }
    found
}

/// The collected launches of a file, or of a line.
fn collected_at(db: &Database, describe: &Describe<'_>, file: SourceFile, at: Option<At>) -> Vec<CollectedLaunch> {
    let mut found = Vec::new();
    for function in &items(db, file).functions {
        for collector in collectors(db, *function) {
            for launch in &collector.launches {
                let place = describe.place(place_in(db, *function, launch.span));
                let lines = place.start.line..=place.end.line;
                if at.is_none_or(|at| lines.contains(&at.line)) {
                    found.push(describe.collected(*function, &collector, launch));
                }
            }
        }
    }
    found.sort_by_key(|launch| launch.place.start.offset);
    found
}

/// The same order as of a launch: what it is, the answer, who launches what, with which values, what can be done.
fn collected_text(launch: &CollectedLaunch, out: &mut dyn Write) -> std::io::Result<()> {
    let (child, parent, home) = (&launch.child, &launch.parent, &launch.place);
    writeln!(out, "{}: {}", at(home), launch.text)?;
    writeln!(
        out,
        "  is          a launch of `{}` in `{}`, {}",
        child.name, parent.name, launch.runs
    )?;
    let together = match launch.others {
        0 => String::new(),
        others => format!(
            ", together with those of {}",
            count(others, "other line", "other lines")
        ),
    };
    let glance = glance_at_collected(launch);
    answer(&glance, None, home, out)?;
    writeln!(out, "  runs        {}{together}", launch.answer)?;
    if let Some(was) = &launch.was {
        writeln!(out, "  was         {was}")?;
        if glance.best.is_none_or(|best| best.rewrite != REVERT) {
            writeln!(out, "  take back   {}", command("revert", home, &[]))?;
        }
    }
    writeln!(out, "  child       {} ({})", child.name, at(&child.place))?;
    writeln!(
        out,
        "  parent      {} {} ({})",
        parent.kind,
        parent.name,
        at(&parent.place)
    )?;
    if let Some(who) = launch.who {
        writeln!(out, "  launched by {}", launchers(who))?;
    }
    reached(&launch.divergence, &launch.loops, home, out)?;
    let mut values = FittedTable::new(&["", "value", "uniformity", "why"], 3);
    let arguments = launch.args.iter().enumerate();
    let named = arguments.map(|(index, value)| (format!("argument {}", index + 1), value));
    for (name, value) in launch.config.iter().map(|value| (String::new(), value)).chain(named) {
        let cells = vec![
            value.name.clone().unwrap_or(name),
            value.text.clone(),
            value.uniformity.level.to_owned(),
        ];
        values.row(cells, whys(&value.uniformity, home));
    }
    if !launch.config.is_empty() || !launch.args.is_empty() {
        values.print(out)?;
    }
    if launch.rewrites.is_empty() {
        return writeln!(out, "  no rewrite fits");
    }
    let mut rewrites = FittedTable::new(&["rewrite", "verdict", "because"], 2).with_reasons_below();
    for rewrite in &launch.rewrites {
        // One sees the launch.
        let told = |reason: &Note| match &reason.place {
            Some(place) if place.path == home.path && place.start.line == home.start.line => reason.text.clone(),
            _ => note(reason, home),
        };
        let reasons = rewrite.reasons.iter().map(told).collect();
        rewrites.row(vec![rewrite.rewrite.to_string(), rewrite.word().to_string()], reasons);
    }
    rewrites.print(out)
}

fn at(place: &Place) -> String {
    format!("{}:{}:{}", place.path, place.start.line, place.start.column)
}

fn note(note: &Note, home: &Place) -> String {
    match &note.place {
        Some(place) if place.path == home.path => placed(&note.text, &format!("line {}", place.start.line)),
        Some(place) => placed(&note.text, &at(place)),
        None => note.text.clone(),
    }
}

fn whys(uniformity: &Uniformity, home: &Place) -> Vec<String> {
    let why = uniformity.why.iter().map(|cause| note(cause, home));
    let assumed = uniformity.assumes.iter().map(|cause| note(cause, home));
    let mut told: Vec<String> = Vec::new();
    for text in why.chain(assumed.map(|cause| format!("assumes {cause}"))) {
        // Two reads of a line differ in their columns alone.
        if !told.contains(&text) {
            told.push(text);
        }
    }
    told
}

fn operand_row(table: &mut FittedTable, what: &str, text: String, operand: &Operand, home: &Place, looped: bool) {
    let mut cells = vec![what.to_string(), text, operand.uniformity.level.to_string()];
    if looped {
        cells.push(if operand.changes_in_loop { "yes" } else { "no" }.to_string());
    }
    table.row(cells, whys(&operand.uniformity, home));
}

fn text(launch: &Launch, out: &mut dyn Write) -> std::io::Result<()> {
    let home = &launch.place;
    writeln!(out, "{}: {}", at(home), launch.text)?;
    if !launch.rewrites.is_empty() {
        answer(&glance(launch), Glance::obstacle(launch), home, out)?;
    }
    let name = launch.child.name.as_deref().unwrap_or("a computed callee");
    let definitions: Vec<String> = launch.child.definitions.iter().map(|f| at(&f.place)).collect();
    match launch.child.status {
        "known" => writeln!(out, "  child       {name} ({})", definitions.join(", "))?,
        "ambiguous" => writeln!(out, "  child       {name}: one of {}", definitions.join(", "))?,
        _ => writeln!(
            out,
            "  child       {name}: no definition found; give its directory with -I"
        )?,
    }
    let parent = &launch.parent;
    writeln!(
        out,
        "  parent      {} {} ({})",
        parent.kind,
        parent.name,
        at(&parent.place)
    )?;
    writeln!(out, "  launched by {}", launchers(launch.who))?;
    reached(&launch.divergence, &launch.loops, home, out)?;
    if launch.parent.kind != "host" {
        let count = &launch.count;
        writeln!(
            out,
            "  launches    {} per thread, {} per block, {} per grid",
            count.per_thread, count.per_block, count.per_grid
        )?;
        if let Some(guard) = &count.guard {
            writeln!(out, "  guarded     line {}", guard.start.line)?;
        }
        // Anybody sees that it's a number, or none.
        let size = match count.child_size {
            "tiny" => " (tiny)",
            _ => "",
        };
        // Grids of different sizes have no number for all.
        let all = match count.total_threads.as_str() {
            "unbounded" => String::new(),
            // It is for the most grids that there can be.
            threads if count.per_grid.parse::<u64>().is_err() => format!("; up to {threads} in all"),
            threads => format!("; {threads} in all"),
        };
        writeln!(
            out,
            "  child grid  {}{size}{all}",
            plural(&count.child_threads, "thread")
        )?;
    }
    writeln!(out, "  recursive   {}", recursion(&launch.count))?;
    if launch.conditional {
        writeln!(out, "  conditional in an alternative of #if")?;
    }
    writeln!(out, "  stream      {}", launch.stream)?;
    if let Some(threads) = &launch.threads {
        writeln!(
            out,
            "  work for    `{}` threads: the grid has so many, rounded up to whole blocks",
            threads.text
        )?;
    }
    let looped = !launch.loops.is_empty();
    let header: &[&str] = if looped {
        &["", "value", "uniformity", "why", "changes in loop"]
    } else {
        &["", "value", "uniformity", "why"]
    };
    let mut operands = FittedTable::new(header, 3);
    for (what, extent) in [("grid", &launch.grid), ("block", &launch.block)] {
        let mut text = extent.operand.text.clone();
        if let Some([x, y, z]) = extent.constant {
            let value = if (y, z) == (1, 1) {
                format!("{x}")
            } else {
                format!("{x} x {y} x {z}")
            };
            if text != value {
                text.push_str(&format!(" = {value}"));
            }
        }
        operand_row(&mut operands, what, text, &extent.operand, home, looped);
    }
    for (what, operand) in [("shared memory", &launch.shared), ("stream", &launch.stream_operand)] {
        if let Some(operand) = operand {
            operand_row(&mut operands, what, operand.text.clone(), operand, home, looped);
        }
    }
    for (index, arg) in launch.args.iter().enumerate() {
        let name = arg
            .parameter
            .as_deref()
            .map_or_else(|| format!("argument {}", index + 1), str::to_string);
        operand_row(&mut operands, &name, arg.text.clone(), arg, home, looped);
    }
    operands.print(out)?;
    let rows = dependence_rows(launch);
    if !rows.is_empty() {
        let mut dependences = FittedTable::new(&["dependence", "verdict", "because"], 2);
        for row in rows {
            let places: Vec<String> = row.places.iter().map(|place| note(place, home)).collect();
            let because = match places.as_slice() {
                [] => row.because.to_string(),
                places => format!("{}: {}", row.because, places.join(", ")),
            };
            dependences.row(vec![row.of.clone(), row.verdict.to_string()], vec![because]);
        }
        dependences.print(out)?;
    }
    if !launch.rewrites.is_empty() {
        rewrites(launch, out)?;
    }
    Ok(())
}

/// Which threads get there, and in which loops.
fn reached(divergence: &Uniformity, loops: &[Place], home: &Place, out: &mut dyn Write) -> std::io::Result<()> {
    let cause = whys(divergence, home).join("; ");
    let because = if cause.is_empty() {
        String::new()
    } else {
        format!(": {cause}")
    };
    writeln!(out, "  reached     {}{because}", divergence.level)?;
    if loops.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = loops.iter().map(|place| place.start.line.to_string()).collect();
    writeln!(out, "  in loops    of line {}", lines.join(", "))
}

/// A command for what stands at a place, as one types it in a shell.
fn command(subcommand: &str, place: &Place, more: &[&str]) -> String {
    // Standard input has no lines that a name could have.
    let (location, line) = match place.path.as_str() {
        "-" => (
            "-".to_owned(),
            Some(format!("{}:{}", place.start.line, place.start.column)),
        ),
        _ => (at(place), None),
    };
    let mut words = vec!["gridfuse", subcommand, &location];
    if let Some(line) = &line {
        words.extend(["--at", line]);
    }
    words.extend(more);
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    shell(&words)
}

/// The answer first: whether something can be done, what is best, what it takes for granted.
fn answer(glance: &Glance<'_>, obstacle: Option<String>, place: &Place, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "  answer      {}", glance.sentence())?;
    match glance.best {
        Some(best) => {
            if let Some(assumptions) = glance.assumptions() {
                writeln!(out, "  if          {assumptions}")?;
            }
            let command = command("rewrite", place, &["--apply", best.rewrite]);
            writeln!(out, "  command     {command}")
        }
        None => match obstacle {
            Some(obstacle) => writeln!(out, "  because     {obstacle}"),
            None => Ok(()),
        },
    }
}

/// Verdicts with numbers for the reasons, which come below, each once: several rewrites mostly share them.
fn rewrites(launch: &Launch, out: &mut dyn Write) -> std::io::Result<()> {
    let home = &launch.place;
    let mut rewrites = FittedTable::new(&["rewrite", "verdict", "because"], 2).with_reasons_below();
    let mut plans: Vec<String> = Vec::new();
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for reason in told_rewrites(launch).flat_map(|rewrite| &rewrite.reasons) {
        let places = places.entry(&reason.text).or_default();
        let place = match &reason.place {
            // One sees the launch.
            Some(place) if place.path == home.path && place.start.line == home.start.line => continue,
            Some(place) if place.path == home.path => format!("line {}", place.start.line),
            Some(place) => at(place),
            None => continue,
        };
        if !places.contains(&place) {
            places.push(place);
        }
    }
    for rewrite in told_rewrites(launch) {
        // What is said of several places is one cause.
        let mut reasons: Vec<String> = Vec::new();
        for reason in &rewrite.reasons {
            let cause = cause(
                &reason.text,
                places.get(reason.text.as_str()).map_or(&[], Vec::as_slice),
            );
            if !reasons.contains(&cause) {
                reasons.push(cause);
            }
        }
        rewrites.row(vec![rewrite.rewrite.to_string(), rewrite.word().to_string()], reasons);
        if let Some(plan) = rewrite.plan.as_ref().filter(|_| !rewrite.refuted) {
            let id = rewrite.rewrite;
            let steps = plan.steps.iter();
            plans.extend(steps.map(|step| format!("{id} applies {}: {}", step.rewrite, step.why)));
            plans.extend(left_out(&plan.without).map(|(steps, why)| format!("{id} leaves out {steps}: {why}")));
        }
    }
    rewrites.print(out)?;
    for plan in plans {
        writeln!(out, "  {plan}")?;
    }
    Ok(())
}

/// Why steps are left out, each reason once: `threshold, coarsen` and why.
fn left_out(without: &[Step]) -> impl Iterator<Item = (String, &str)> {
    let mut reasons: Vec<(Vec<&str>, &str)> = Vec::new();
    for Step { rewrite, why } in without {
        match reasons.iter_mut().find(|(_, known)| known == why) {
            Some((steps, _)) => steps.push(rewrite),
            None => reasons.push((vec![rewrite], why)),
        }
    }
    reasons.into_iter().map(|(steps, why)| (steps.join(", "), why))
}

/// A reason with all places of which it's said, as far as a line has room.
fn cause(text: &str, places: &[String]) -> String {
    const SHOWN: usize = 4;
    match places.split_at_checked(SHOWN) {
        None | Some((_, [])) if places.is_empty() => text.to_owned(),
        None | Some((_, [])) => format!("{text} ({})", places.join(", ")),
        Some((shown, [_])) => format!("{text} ({} and 1 more place)", shown.join(", ")),
        Some((shown, rest)) => format!("{text} ({} and {} more places)", shown.join(", "), rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::left_out;
    use crate::schema::Step;

    #[test]
    fn one_reason_for_several_steps_is_told_once() {
        let without = [("a", "x"), ("b", "y"), ("c", "x")].map(|(rewrite, why)| Step {
            rewrite: rewrite.to_owned(),
            why: why.to_owned(),
        });
        let told: Vec<(String, &str)> = left_out(&without).collect();
        assert_eq!(told, [("a, c".to_owned(), "x"), ("b".to_owned(), "y")]);
        assert_eq!(left_out(&[]).count(), 0);
    }

    #[test]
    fn a_cause_with_its_places() {
        let cause = |places: &[&str]| {
            let places: Vec<String> = places.iter().map(|place| (*place).to_owned()).collect();
            super::cause("it writes", &places)
        };
        assert_eq!(cause(&[]), "it writes");
        assert_eq!(cause(&["line 3", "line 4"]), "it writes (line 3, line 4)");
        assert_eq!(cause(&["a", "b", "c", "d"]), "it writes (a, b, c, d)");
        assert_eq!(
            cause(&["a", "b", "c", "d", "e"]),
            "it writes (a, b, c, d and 1 more place)"
        );
    }
}
