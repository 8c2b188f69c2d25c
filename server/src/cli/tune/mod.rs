//! `gridfuse tune`: the fastest threshold, coarsening factor and granularity on the GPU that is there.

mod table;

use std::io::Write;
use std::time::Duration;

use clap::Args;
use gridfuse_analysis::base::span::TextRange;

use super::measure::program_args::{GIVEN_UP, ProgramArgs, end_on_interrupt, sentence, with_spinner};
use super::output::{self, note};
use super::project::{Project, canonical};
use super::{CLEAN, CliError, CliResult, FINDINGS, USAGE_OR_IO, changes};
use crate::line_index::line_index;
use crate::measure::history::{self, Entry};
use crate::measure::served::{self, Message, Unsaved};
use crate::measure::tune::report::ChangedText;
use crate::measure::tune::space::{granularities, granularity};
use crate::measure::tune::{Tuned, Tuning, tune};
use crate::measure::{Progress, Reports, process};

/// Arguments of `tune`.
#[derive(Debug, Args)]
pub struct TuneArgs {
    #[command(flatten)]
    program: ProgramArgs,
    /// Thresholds to try; `none`: without [default: none, and powers of two from 8 to 1024]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = number)]
    thresholds: Option<Vec<Choice<u64>>>,
    /// Coarsening factors to try; `none`: without [default: none,2,4,8,16]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = number)]
    factors: Option<Vec<Choice<u64>>>,
    /// Rewrites to try that decide how launches are collected; `none`: none of them [default: all]
    #[arg(long, value_name = "ID,…", value_delimiter = ',', value_parser = granularity_of)]
    granularities: Option<Vec<Choice<&'static str>>>,
    /// Begin nothing new after so many seconds
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..))]
    budget: Option<u32>,
    /// Measure all combinations as well, and compare
    #[arg(long)]
    exhaustive: bool,
    /// Forget what is known of a search that was interrupted
    #[arg(long)]
    fresh: bool,
    /// Don't remember the result for editors
    #[arg(long)]
    no_history: bool,
    #[command(flatten)]
    result: ResultArgs,
    /// Tune for the language server
    #[arg(long, hide = true, requires = "json")]
    served: bool,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct ResultArgs {
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Print the best combination's change as a unified diff
    #[arg(long)]
    diff: bool,
    /// Change the files
    #[arg(long)]
    write: bool,
}

/// A value to try; `None`: without.
#[derive(Clone, Copy, Debug)]
struct Choice<T>(Option<T>);

fn number(text: &str) -> Result<Choice<u64>, String> {
    match text {
        "none" => Ok(Choice(None)),
        _ => match text.parse() {
            Ok(number) if (1..=i32::MAX as u64).contains(&number) => Ok(Choice(Some(number))),
            _ => Err(format!("expected `none` or a number from 1 to {}", i32::MAX)),
        },
    }
}

fn granularity_of(text: &str) -> Result<Choice<&'static str>, String> {
    if text == "none" {
        return Ok(Choice(None));
    }
    let known = granularity(text).or_else(|| granularity(&format!("aggregate-{text}")));
    known
        .map(|id| Choice(Some(id)))
        .ok_or_else(|| format!("expected none, {}", granularities().join(", ")))
}

/// Runs `tune`.
pub fn run(args: &TuneArgs, out: &mut dyn Write) -> CliResult {
    end_on_interrupt();
    let result = if args.served {
        serve(args)
    } else {
        with_spinner(|progress| search(args, &Unsaved::new(), progress))
    };
    if process::given_up() {
        if !args.served {
            note("the same command goes on where this one was interrupted");
        }
        return Ok(GIVEN_UP);
    }
    let (project, tuned) = match result {
        Err(CliError::Message(message)) if args.served => {
            Message::Error(message).send();
            return Ok(USAGE_OR_IO);
        }
        result => result?,
    };
    let Tuned {
        mut report,
        changes,
        fingerprints,
        functions,
    } = tuned;
    if !args.no_history
        && let Some(entry) = Entry::tuned(&report, &fingerprints, functions)
        && let Some(problem) = history::add(&canonical(&args.program.file)?, entry)
    {
        note(&problem);
    }
    let wrong = report.points.iter().any(|point| point.outcome.is_bad());
    if args.result.json {
        if args.served {
            let texts = changes.into_iter().filter_map(|(path, change)| {
                // JSON can't hold other paths.
                let before = change.before.map(|text| text.to_string());
                let after = change.after;
                Some((path.to_str()?.to_owned(), ChangedText { before, after }))
            });
            report.texts = texts.collect();
        }
        output::json(out, &report)?;
    } else if args.result.diff {
        changes::show(&project, &changes, out)?;
    } else {
        table::print(&report, out)?;
        if args.result.write {
            for file in changes::write(&project, changes)? {
                let verb = if file.replaces.is_some() { "changed" } else { "created" };
                writeln!(out, "{verb} {}", project.show(&file.path))?;
            }
        } else if !changes.is_empty() {
            note("--write changes the files, --diff shows how");
        }
    }
    Ok(if wrong || report.search.best.is_none() {
        FINDINGS
    } else {
        CLEAN
    })
}

/// Tunes what the editor shows.
fn serve(args: &TuneArgs) -> Result<(Project, Tuned), CliError> {
    let unsaved = served::unsaved()?;
    search(
        args,
        &unsaved,
        &Reports::new(|percent, what: &str| {
            let what = what.to_owned();
            Message::Progress { percent, what }.send();
        }),
    )
}

fn search(args: &TuneArgs, unsaved: &Unsaved, progress: Progress<'_>) -> Result<(Project, Tuned), CliError> {
    let load = || args.program.load(unsaved);
    let project = load()?;
    let tuning = Tuning {
        request: args.program.request(&project)?,
        place: place(args, &project)?,
        thresholds: values(args.thresholds.as_ref()),
        factors: values(args.factors.as_ref()),
        granularities: values(args.granularities.as_ref()),
        budget: args.budget.map(|seconds| Duration::from_secs(u64::from(seconds))),
        exhaustive: args.exhaustive,
        fresh: args.fresh,
    };
    let tuned = tune(&tuning, &|| load().map_err(sentence), progress)?;
    Ok((project, tuned))
}

fn values<T: Copy>(choices: Option<&Vec<Choice<T>>>) -> Option<Vec<Option<T>>> {
    choices.map(|choices| choices.iter().map(|choice| choice.0).collect())
}

/// What `--at` names: a line without the blanks at its ends, or a place in it.
fn place(args: &TuneArgs, project: &Project) -> Result<Option<TextRange>, CliError> {
    let Some(at) = args.program.at.clone() else {
        return Ok(None);
    };
    let at = at.within(&args.program.file)?;
    let path = canonical(&args.program.file)?;
    let db = project.host.db();
    let unreadable = || CliError::Message(format!("cannot read {}", project.show(&path)));
    let file = project.host.file(&path).ok_or_else(unreadable)?;
    let text = file.text(db);
    let content = line_index(db, file).content(&text, at.line - 1);
    let (start, end) = content.ok_or_else(|| format!("{} has no line {}", project.show(&path), at.line))?;
    if let Some(column) = at.column {
        return Ok(Some(TextRange::empty((start + column - 1).min(end))));
    }
    let line = text.get(start as usize..end as usize).unwrap_or_default();
    let blanks = (line.len() - line.trim_start().len()) as u32;
    Ok(Some(TextRange::new(
        start + blanks,
        start + (line.trim_end().len() as u32).max(blanks),
    )))
}
