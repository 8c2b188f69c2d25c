//! `gridfuse explain`: everything known about each launch site.

use std::io::Write;

use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};

use super::output::{count, json};
use super::project::{Project, located};
use super::site::{At, launches_at, list_places, split_location};
use super::{CLEAN, CliResult, Format, Includes};
use crate::describe::{dependence_rows, launchers, recursion, told_rewrites};
use crate::glance::{Glance, glance};
use crate::launches::{LaunchSite, in_file};
use crate::schema::{self, ExplainReport, Launch, Note, Operand, Place, Uniformity};

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// File, or one line of it, or - for standard input; without a line, text output leaves launches by host code out
    #[arg(value_name = "FILE[:LINE]")]
    location: String,
    /// The line, apart from the file: the one way to name it for standard input
    #[arg(long, value_name = "LINE[:COL]")]
    at: Option<At>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    includes: Includes,
}

/// Runs `explain`.
pub fn run(args: &ExplainArgs, out: &mut dyn Write) -> CliResult {
    let (path, at) = split_location(&args.location);
    if at.is_some() && args.at.is_some() {
        return Err(
            "the line is named twice: leave --at out, or what stands behind the file"
                .to_owned()
                .into(),
        );
    }
    let at = at.or(args.at);
    if path.is_dir() {
        return Err(format!("{} is a directory; name one file", path.display()).into());
    }
    let project = Project::load(std::slice::from_ref(&path), &args.includes)?;
    let path = located(&path)?;
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
        if let Some(at) = at
            && sites.is_empty()
        {
            return Err(match list_places(db, &in_file(db, file)) {
                none if none.is_empty() => format!("no kernel launch at {name}:{at}: the file has none"),
                places => format!("no kernel launch at {name}:{at}; there are launches at {places}"),
            }
            .into());
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
                },
            )?;
            return Ok(CLEAN);
        }
        for launch in &launches {
            text(launch, out)?;
            writeln!(out)?;
        }
        if launches.is_empty() {
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

fn at(place: &Place) -> String {
    format!("{}:{}:{}", place.path, place.start.line, place.start.column)
}

fn note(note: &Note, home: &Place) -> String {
    match &note.place {
        Some(place) if place.path == home.path => format!("{} (line {})", note.text, place.start.line),
        Some(place) => format!("{} ({})", note.text, at(place)),
        None => note.text.clone(),
    }
}

fn why(uniformity: &Uniformity, home: &Place) -> String {
    let mut parts: Vec<String> = uniformity.why.iter().map(|cause| note(cause, home)).collect();
    parts.extend(
        uniformity
            .assumes
            .iter()
            .map(|cause| format!("assumes {}", note(cause, home))),
    );
    parts.join("; ")
}

fn table(header: &[&str]) -> Table {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width = asked.or_else(|| terminal_size::terminal_size().map(|(width, _)| width.0));
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width.unwrap_or(120))
        .set_header(header);
    table
}

fn operand_row(what: &str, operand: &Operand, home: &Place, looped: bool) -> Vec<String> {
    let mut row = vec![
        what.to_string(),
        operand.text.clone(),
        operand.uniformity.level.to_string(),
        why(&operand.uniformity, home),
    ];
    if looped {
        row.push(if operand.changes_in_loop { "yes" } else { "no" }.to_string());
    }
    row
}

fn text(launch: &Launch, out: &mut dyn Write) -> std::io::Result<()> {
    let home = &launch.place;
    writeln!(out, "{}: {}", at(home), launch.text)?;
    if !launch.rewrites.is_empty() {
        answer(launch, out)?;
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
    writeln!(out, "  launched by {}", launchers(launch.launchers))?;
    let cause = why(&launch.divergence, home);
    let because = if cause.is_empty() {
        String::new()
    } else {
        format!(": {cause}")
    };
    writeln!(out, "  reached     {}{because}", launch.divergence.level)?;
    if !launch.loops.is_empty() {
        let lines: Vec<String> = launch.loops.iter().map(|place| place.start.line.to_string()).collect();
        writeln!(out, "  in loops    of line {}", lines.join(", "))?;
    }
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
        writeln!(
            out,
            "  child grid  {} threads ({}); {} in all",
            count.child_threads, count.child_size, count.total_threads
        )?;
    }
    writeln!(out, "  recursive   {}", recursion(&launch.count))?;
    if launch.conditional {
        writeln!(out, "  conditional in an alternative of #if")?;
    }
    writeln!(out, "  stream      {}", launch.stream)?;
    if let Some(threads) = &launch.threads {
        writeln!(out, "  threads     {} (from {})", threads.text, threads.form)?;
    }
    let looped = !launch.loops.is_empty();
    let header: &[&str] = if looped {
        &["", "value", "uniformity", "why", "changes in loop"]
    } else {
        &["", "value", "uniformity", "why"]
    };
    let mut operands = table(header);
    for (what, extent) in [("grid", &launch.grid), ("block", &launch.block)] {
        let mut row = operand_row(what, &extent.operand, home, looped);
        if let (Some([x, y, z]), Some(text)) = (extent.constant, row.get_mut(1)) {
            let value = if (y, z) == (1, 1) {
                format!("{x}")
            } else {
                format!("{x} x {y} x {z}")
            };
            if *text != value {
                text.push_str(&format!(" = {value}"));
            }
        }
        operands.add_row(row);
    }
    for (what, operand) in [("shared memory", &launch.shared), ("stream", &launch.stream_operand)] {
        if let Some(operand) = operand {
            operands.add_row(operand_row(what, operand, home, looped));
        }
    }
    for (index, arg) in launch.args.iter().enumerate() {
        let name = arg
            .parameter
            .as_deref()
            .map_or_else(|| format!("argument {}", index + 1), str::to_string);
        operands.add_row(operand_row(&name, arg, home, looped));
    }
    writeln!(out, "{operands}")?;
    let rows = dependence_rows(launch);
    if !rows.is_empty() {
        let mut dependences = table(&["dependence", "verdict", "because"]);
        for row in rows {
            let places: Vec<String> = row.places.iter().map(|place| note(place, home)).collect();
            let because = match places.as_slice() {
                [] => row.because.to_string(),
                places => format!("{}: {}", row.because, places.join(", ")),
            };
            dependences.add_row([row.of.as_str(), row.verdict, &because]);
        }
        writeln!(out, "{dependences}")?;
    }
    if !launch.rewrites.is_empty() {
        rewrites(launch, out)?;
    }
    Ok(())
}

/// The answer first: whether something can be done, what is best, what it takes for granted.
fn answer(launch: &Launch, out: &mut dyn Write) -> std::io::Result<()> {
    let glance = glance(launch);
    writeln!(out, "  answer      {}", glance.sentence())?;
    match glance.best {
        Some(best) => {
            if let Some(assumptions) = glance.assumptions() {
                writeln!(out, "  if          {assumptions}")?;
            }
            let start = &launch.place.start;
            writeln!(
                out,
                "  command     gridfuse rewrite {} --at {}:{} --apply {}",
                launch.place.path, start.line, start.column, best.rewrite
            )
        }
        None => match Glance::obstacle(launch) {
            Some(obstacle) => writeln!(out, "  because     {obstacle}"),
            None => Ok(()),
        },
    }
}

/// Verdicts with numbers for the reasons, which come below, each once: several rewrites mostly share them.
fn rewrites(launch: &Launch, out: &mut dyn Write) -> std::io::Result<()> {
    let home = &launch.place;
    let mut reasons: Vec<String> = Vec::new();
    let mut rewrites = table(&["rewrite", "verdict", "because"]);
    for rewrite in told_rewrites(launch) {
        let mut numbers: Vec<String> = Vec::new();
        for reason in &rewrite.reasons {
            let text = match &reason.place {
                // One sees the launch.
                Some(place) if place.path == home.path && place.start.line == home.start.line => reason.text.clone(),
                _ => note(reason, home),
            };
            let known = reasons.iter().position(|known| *known == text);
            let index = known.unwrap_or_else(|| {
                reasons.push(text);
                reasons.len() - 1
            });
            let number = format!("({})", index + 1);
            // Two places in one line read the same.
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        let mut because: Vec<String> = Vec::new();
        if let Some(plan) = &rewrite.plan {
            because.extend(plan.steps.iter().map(|s| format!("applies {}: {}", s.rewrite, s.why)));
            because.extend(plan.without.iter().map(|s| format!("not {}: {}", s.rewrite, s.why)));
        }
        because.extend((!numbers.is_empty()).then(|| numbers.join(" ")));
        rewrites.add_row([rewrite.rewrite, rewrite.verdict, &because.join("\n")]);
    }
    writeln!(out, "{rewrites}")?;
    for (index, reason) in reasons.iter().enumerate() {
        writeln!(out, "  ({}) {reason}", index + 1)?;
    }
    Ok(())
}
