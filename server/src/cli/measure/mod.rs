//! `gridfuse measure`: the program as it is and rewritten, on a GPU.

pub mod program_args;
mod table;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use gridfuse_analysis::span::TextRange;

use self::program_args::{GIVEN_UP, ProgramArgs, end_on_interrupt, sentence, with_spinner};
use super::output;
use super::project::{Project, canonical};
use super::site::launches_at;
use super::{CLEAN, CliError, CliResult, FINDINGS, USAGE_OR_IO};
use crate::launches::{function_at, launching_function_headed_on};
use crate::measure::history::{self, Entry};
use crate::measure::report::Report;
use crate::measure::served::{self, Message, Unsaved};
use crate::measure::{Progress, Recipe, Request, fingerprint, html, markdown, measure, process, targets};

/// Arguments of `measure`.
#[derive(Debug, Args)]
pub struct MeasureArgs {
    #[command(flatten)]
    program: ProgramArgs,
    /// What to compare with the original: rewrites, joined by + where one follows the other, or all
    #[arg(long, value_name = "ID[+ID],…", value_delimiter = ',', default_value = "all")]
    rewrites: Vec<String>,
    /// Option of a rewrite
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = super::rewrite::setting)]
    set: Vec<(String, String)>,
    /// Write report.md and report.html into this directory
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Don't remember the result for editors
    #[arg(long)]
    no_history: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Measure for the language server
    #[arg(long, hide = true, requires = "json")]
    served: bool,
}

/// Runs `measure`.
pub fn run(args: &MeasureArgs, out: &mut dyn Write) -> CliResult {
    end_on_interrupt();
    let result = if args.served {
        serve(args)
    } else {
        with_spinner(|progress| report(args, &Unsaved::new(), progress))
    };
    if process::given_up() {
        return Ok(GIVEN_UP);
    }
    let Measurement {
        report,
        fingerprint,
        functions,
    } = match result {
        Err(CliError::Message(message)) if args.served => {
            Message::Error(message).send();
            return Ok(USAGE_OR_IO);
        }
        result => result?,
    };
    if let Some(directory) = &args.report {
        write_report(directory, &report)?;
    }
    if !args.no_history
        && let Some(entry) = Entry::new(&report, fingerprint, functions, args.set.clone())
        && let Some(problem) = history::add(&canonical(&args.program.file)?, entry)
    {
        output::note(&problem);
    }
    if args.json {
        output::json(out, &report)?;
    } else {
        table::print(&report, out)?;
    }
    let bad = report.variants.iter().any(|variant| variant.outcome.is_bad()) || report.original.is_bad();
    Ok(if bad { FINDINGS } else { CLEAN })
}

/// Writes a report in both forms.
fn write_report(directory: &Path, report: &Report) -> Result<(), CliError> {
    let failed = |path: &Path, error: std::io::Error| format!("cannot write {}: {error}", path.display());
    std::fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    for (name, text) in [
        ("report.md", markdown::page(report)),
        ("report.html", html::page(report)),
    ] {
        let path = directory.join(name);
        std::fs::write(&path, text).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

/// A report, and what the history has to know besides.
struct Measurement {
    report: Report,
    /// Of the code that was measured.
    fingerprint: u64,
    /// The functions whose launches were rewritten.
    functions: Vec<String>,
}

/// Measures what the editor shows.
fn serve(args: &MeasureArgs) -> Result<Measurement, CliError> {
    let unsaved = served::unsaved()?;
    report(args, &unsaved, &|percent, what| {
        let what = what.to_owned();
        Message::Progress { percent, what }.send();
    })
}

fn report(args: &MeasureArgs, unsaved: &Unsaved, progress: Progress<'_>) -> Result<Measurement, CliError> {
    let recipes = recipes(args)?;
    let load = || args.program.load(unsaved);
    let project = load()?;
    let request = Request {
        recipes,
        set: args.set.clone(),
        within: within(args, &project)?,
        ..args.program.request(&project)?
    };
    let (fingerprint, functions) = match project.host.file(&request.file) {
        Some(file) => {
            let db = project.host.db();
            let launches = targets(&project, &request.file, request.within);
            let names = launches.iter().filter_map(|launch| function_at(db, file, launch.start));
            let mut names: Vec<String> = names.map(|function| function.name(db).to_owned()).collect();
            names.dedup();
            (fingerprint::of_program(db, file), names)
        }
        None => (0, Vec::new()),
    };
    let load = || load().map_err(sentence);
    Ok(Measurement {
        report: measure(&request, &load, progress)?,
        fingerprint,
        functions,
    })
}

fn recipes(args: &MeasureArgs) -> Result<Vec<Recipe>, CliError> {
    let mut recipes: Vec<Recipe> = Vec::new();
    for name in &args.rewrites {
        let more = if name.trim() == "all" {
            Recipe::all()
        } else {
            vec![Recipe::parse(name)?]
        };
        for recipe in more {
            if recipes.iter().all(|known| known.name != recipe.name) {
                recipes.push(recipe);
            }
        }
    }
    for (name, _) in &args.set {
        if !recipes.iter().any(|recipe| recipe.knows(name)) {
            return Err(format!("none of the rewrites has an option `{name}`; `gridfuse list` names them").into());
        }
    }
    Ok(recipes)
}

/// What `--at` names: a launch, or a function in whose head the line is.
fn within(args: &MeasureArgs, project: &Project) -> Result<Option<TextRange>, CliError> {
    let Some(at) = args.program.at else { return Ok(None) };
    let path = canonical(&args.program.file)?;
    let file = project
        .host
        .file(&path)
        .ok_or_else(|| format!("cannot read {}", path.display()))?;
    let db = project.host.db();
    if let Some(site) = launches_at(db, file, at).iter().find(|site| site.device_side()) {
        return Ok(Some(site.place.range));
    }
    match launching_function_headed_on(db, file, at.line - 1) {
        Some(function) => Ok(Some(function)),
        None => Err(format!("no kernel launches another at {}:{at}", project.show(&path)).into()),
    }
}
