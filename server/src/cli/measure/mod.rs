//! `gridfuse measure`: the program as it is and rewritten, on a GPU.

pub mod program_args;
pub mod table;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use gridfuse_analysis::base::span::TextRange;

use self::program_args::{GIVEN_UP, ProgramArgs, end_on_interrupt, sentence, with_spinner};
use super::output;
use super::project::{Project, canonical};
use super::site::{collected_at, launches_at};
use super::{CLEAN, CliError, CliResult, FINDINGS, USAGE_OR_IO};
use crate::collected::launches_others;
use crate::launches::{function_at, function_headed_on};
use crate::measure::history::{self, Entry};
use crate::measure::kernel::Sources;
use crate::measure::report::Report;
use crate::measure::served::{self, Message, Unsaved};
use crate::measure::{
    HandWritten, Progress, Recipe, Reports, Request, Share, fingerprint, html, join, markdown, measure, process,
    targets,
};

/// Arguments of `measure`.
#[derive(Debug, Args)]
pub struct MeasureArgs {
    #[command(flatten)]
    program: ProgramArgs,
    /// Run this kernel by itself, as its run specification says
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Print a proposal for the run specification of a kernel, and measure nothing
    #[arg(long)]
    scaffold: bool,
    /// Write the program that runs a kernel by itself into this file, and measure nothing
    #[arg(long, value_name = "FILE", conflicts_with = "scaffold")]
    write_main: Option<PathBuf>,
    /// What to compare with the original: rewrites, joined by + where one follows the other, or all, or none
    #[arg(long, value_name = "ID[+ID],…", value_delimiter = ',', default_value = "all")]
    rewrites: Vec<String>,
    /// Compare a program of your own, too: FILE takes the place of the measured file
    #[arg(long, value_name = "NAME=FILE", value_parser = HandWritten::parse)]
    also: Vec<HandWritten>,
    /// Compare a share of the rewrites only: 2/4 is the second of four, which other machines or jobs measure
    #[arg(long, value_name = "K/N", value_parser = Share::parse)]
    share: Option<Share>,
    /// Put the reports (--json) of all shares together, and measure nothing
    #[arg(long, value_name = "REPORT", num_args = 1.., conflicts_with_all = ["share", "scaffold", "write_main", "served"])]
    join: Vec<PathBuf>,
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
    if args.scaffold || args.write_main.is_some() {
        return prepare(args, out);
    }
    end_on_interrupt();
    let result = if args.served {
        serve(args)
    } else if !args.join.is_empty() {
        joined(args)
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

/// Prints the proposal for a run specification, or writes the program that one describes.
fn prepare(args: &MeasureArgs, out: &mut dyn Write) -> CliResult {
    let project = args.program.load(&Unsaved::new())?;
    let path = canonical(&args.program.file)?;
    let at = within(args, &project)?;
    let show = |path: &Path| project.show(path);
    let sources = Sources::new(&project, &path, &show)?;
    let name = args.kernel.as_deref();
    let Some(target) = &args.write_main else {
        write!(out, "{}", sources.scaffold(name, at)?)?;
        if let Some(kernel) = sources.launches_nothing(name, at) {
            output::note(&format!(
                "`{kernel}` launches no kernel: there is nothing in it to rewrite and to compare"
            ));
        }
        return Ok(CLEAN);
    };
    let Some(host) = sources.host_program(name, at)? else {
        let file = project.show(&path);
        return Err(match sources.has_main() {
            true => format!("{file} has a `main`: say with --kernel which of its kernels is to be run by itself"),
            false => format!("no kernel in {file} launches another: there is nothing to run"),
        }
        .into());
    };
    if target.exists() {
        return Err(format!("{} exists: move it away, or name another file", target.display()).into());
    }
    // It includes the file by its name, where it stands beside it.
    let directory = target.parent().filter(|directory| !directory.as_os_str().is_empty());
    let text = match canonical(directory.unwrap_or(Path::new(".")))? == path.parent().unwrap_or(Path::new("")) {
        true => host.text.to_string(),
        false => host.text_elsewhere(&path),
    };
    std::fs::write(target, text).map_err(|error| format!("cannot write {}: {error}", target.display()))?;
    Ok(CLEAN)
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
    report(
        args,
        &unsaved,
        &Reports::new(|percent, what: &str| {
            let what = what.to_owned();
            Message::Progress { percent, what }.send();
        }),
    )
}

/// What the shares of a measurement have found out.
fn joined(args: &MeasureArgs) -> Result<Measurement, CliError> {
    let read = |path: &PathBuf| {
        let name = path.display().to_string();
        let text = std::fs::read(path).map_err(|error| format!("cannot read {name}: {error}"))?;
        let report = serde_json::from_slice(&text)
            .map_err(|error| format!("{name} is no report of `gridfuse measure --json`: {error}"))?;
        Ok((name, report))
    };
    let reports = args.join.iter().map(read).collect::<Result<_, String>>()?;
    let report = join(reports)?;
    let project = args.program.load(&Unsaved::new())?;
    let file = canonical(&args.program.file)?;
    let shown = project.show(&file);
    if report.file != shown {
        return Err(format!("these are reports of {}, and not of {shown}", report.file).into());
    }
    let (fingerprint, functions) = measured_code(&project, &file, within(args, &project)?);
    Ok(Measurement {
        report,
        fingerprint,
        functions,
    })
}

/// The fingerprint of a program, and the functions whose launches are rewritten.
fn measured_code(project: &Project, path: &Path, within: Option<TextRange>) -> (u64, Vec<String>) {
    let Some(file) = project.host.file(path) else {
        return (0, Vec::new());
    };
    let db = project.host.db();
    let launches = targets(project, path, within);
    let names = launches
        .places
        .iter()
        .filter_map(|launch| function_at(db, file, launch.start));
    let mut names: Vec<String> = names.map(|function| function.name(db).to_owned()).collect();
    names.dedup();
    (fingerprint::of_program(db, file), names)
}

fn report(args: &MeasureArgs, unsaved: &Unsaved, progress: Progress<'_>) -> Result<Measurement, CliError> {
    let project = args.program.load(unsaved)?;
    let file = canonical(&args.program.file)?;
    let at = within(args, &project)?;
    let host = match args.kernel.is_none() && project.build.is_some() {
        true => None,
        false => {
            let show = |path: &Path| project.show(path);
            Sources::new(&project, &file, &show)?.host_program(args.kernel.as_deref(), at)?
        }
    };
    let within = at.or(host.as_ref().and_then(|host| host.within));
    let recipes = recipes(args, targets(&project, &file, within).are_collected)?;
    let also = also(args, &recipes)?;
    let in_share = |number: usize| args.share.is_none_or(|share| share.has(number));
    let count = recipes.len();
    let recipes = recipes.into_iter().enumerate().filter(|(number, _)| in_share(*number));
    let also = also
        .into_iter()
        .enumerate()
        .filter(|(number, _)| in_share(count + number));
    let request = Request {
        within,
        also: also.map(|(_, own)| own).collect(),
        recipes: recipes.map(|(_, recipe)| recipe).collect(),
        set: args.set.clone(),
        host,
        ..args.program.request(&project)?
    };
    let (fingerprint, functions) = measured_code(&project, &request.file, request.within);
    let mut texts = unsaved.clone();
    texts.extend(request.host.iter().map(|host| (host.path.clone(), host.text.clone())));
    let load = || {
        let mut project = args.program.load(&texts).map_err(sentence)?;
        if request.host.is_some() {
            // It's a program of its own, which the project's command doesn't build.
            project.build = None;
        }
        Ok(project)
    };
    Ok(Measurement {
        report: measure(&request, &load, progress)?,
        fingerprint,
        functions,
    })
}

fn recipes(args: &MeasureArgs, of_collected: bool) -> Result<Vec<Recipe>, CliError> {
    let mut recipes: Vec<Recipe> = Vec::new();
    for name in &args.rewrites {
        let more = match name.trim() {
            "all" if of_collected => Recipe::all_of_collected(),
            "all" => Recipe::all(),
            "none" => Vec::new(),
            _ => vec![Recipe::parse(name)?],
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

/// The programs of the user's own, by names that nothing else has.
fn also(args: &MeasureArgs, recipes: &[Recipe]) -> Result<Vec<HandWritten>, CliError> {
    let mut also: Vec<HandWritten> = Vec::new();
    for own in &args.also {
        let taken = own.name == "original" || recipes.iter().any(|recipe| recipe.name == own.name);
        if taken || also.iter().any(|other| other.name == own.name) {
            return Err(format!("--also {}: the name is taken", own.name).into());
        }
        also.push(HandWritten {
            name: own.name.clone(),
            file: canonical(&own.file)?,
        });
    }
    Ok(also)
}

/// What `--at` names: a launch, or a function in whose head the line is.
fn within(args: &MeasureArgs, project: &Project) -> Result<Option<TextRange>, CliError> {
    let Some(at) = args.program.at.clone() else {
        return Ok(None);
    };
    let at = at.within(&args.program.file)?;
    let path = canonical(&args.program.file)?;
    let file = project
        .host
        .file(&path)
        .ok_or_else(|| format!("cannot read {}", path.display()))?;
    let db = project.host.db();
    if let Some(site) = launches_at(db, file, at).iter().find(|site| site.device_side()) {
        return Ok(Some(site.place.range));
    }
    if let Some(place) = collected_at(db, file, at) {
        return Ok(Some(place));
    }
    match function_headed_on(db, file, at.line - 1, |function| launches_others(db, function)) {
        Some(function) => Ok(Some(function)),
        None => Err(format!("no kernel launches another at {}:{at}", project.show(&path)).into()),
    }
}
