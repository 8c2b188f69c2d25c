//! `gridfuse measure`: the program as it is and rewritten, on a GPU.

mod table;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use gridfuse_analysis::span::TextRange;

use super::output;
use super::project::{Project, canonical};
use super::site::{At, launches_at};
use super::{CLEAN, CliError, CliResult, FINDINGS, Includes, USAGE_OR_IO};
use crate::launches::{function_at, launching_function_headed_on};
use crate::measure::history::{self, Entry};
use crate::measure::report::Report;
use crate::measure::served::{self, Message, Unsaved};
use crate::measure::{Progress, Recipe, Request, Tolerance, fingerprint, html, markdown, measure, process, targets};

/// What a shell says of a program that Ctrl-C has ended.
const GIVEN_UP: u8 = 130;

/// Arguments of `measure`.
#[derive(Debug, Args)]
pub struct MeasureArgs {
    /// File with the program's `main`; where gridfuse.toml says how the project is built, the one whose launches are rewritten
    file: PathBuf,
    /// Rewrite the launch at this place only, or the launches of the function whose head is there
    #[arg(long, value_name = "LINE[:COL]")]
    at: Option<At>,
    /// What to compare with the original: rewrites, joined by + where one follows the other, or all
    #[arg(long, value_name = "ID[+ID],…", value_delimiter = ',', default_value = "all")]
    rewrites: Vec<String>,
    /// Option of a rewrite
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = super::rewrite::setting)]
    set: Vec<(String, String)>,
    /// Arguments of the program, quoted as in a shell
    #[arg(long, value_name = "ARGS", default_value = "", allow_hyphen_values = true)]
    args: String,
    /// How often each program runs, after one run that warms up
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Seconds after which a run is given up
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    timeout: u32,
    /// Greatest relative difference of floating point results [default: 1e-5 for float, 1e-12 for double]
    #[arg(long, value_name = "REL")]
    tolerance: Option<f64>,
    /// Results may stand in any order in their buffers
    #[arg(long)]
    unordered: bool,
    /// The CUDA compiler [default: from PATH, CUDA_HOME, CUDA_PATH]
    #[arg(long, value_name = "FILE")]
    nvcc: Option<PathBuf>,
    /// More arguments for nvcc, quoted as in a shell
    #[arg(long, value_name = "FLAGS", default_value = "", allow_hyphen_values = true)]
    nvcc_flags: String,
    /// Architecture to build for [default: arch in gridfuse.toml, else the GPU's]
    #[arg(long, value_name = "sm_NN")]
    arch: Option<String>,
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
    #[command(flatten)]
    includes: Includes,
}

/// Runs `measure`.
pub fn run(args: &MeasureArgs, out: &mut dyn Write) -> CliResult {
    // Ctrl-C must not leave a program behind that keeps the GPU busy. Without a handler it's only less tidy.
    let _ = ctrlc::set_handler(|| {
        if process::given_up() {
            std::process::exit(i32::from(GIVEN_UP));
        }
        process::give_up();
    });
    let result = if args.served {
        serve(args)
    } else {
        let spinner = std::io::stderr().is_terminal().then(|| {
            let spinner = indicatif::ProgressBar::new_spinner();
            spinner.enable_steady_tick(Duration::from_millis(120));
            spinner
        });
        let result = report(args, &Unsaved::new(), &|percent, what| {
            if let Some(spinner) = &spinner {
                spinner.set_message(format!("{percent:3} % {what}"));
            }
        });
        if let Some(spinner) = &spinner {
            spinner.finish_and_clear();
        }
        result
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
        && let Some(problem) = history::add(&canonical(&args.file)?, entry)
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
    let words = |name: &str, text: &str| {
        shlex::split(text).ok_or_else(|| CliError::Message(format!("{name}: a quote is not closed in `{text}`")))
    };
    let load = || Project::load_with(std::slice::from_ref(&args.file), &args.includes, unsaved);
    let project = load()?;
    let request = Request {
        file: canonical(&args.file)?,
        within: within(args, &project)?,
        recipes,
        set: args.set.clone(),
        args: words("--args", &args.args)?,
        repeat: usize::from(args.repeat),
        timeout: Duration::from_secs(u64::from(args.timeout)),
        tolerance: tolerance(args)?,
        nvcc: args.nvcc.clone(),
        nvcc_flags: words("--nvcc-flags", &args.nvcc_flags)?,
        arch: args
            .arch
            .clone()
            .or_else(|| project.arch.map(|arch| format!("sm_{arch}"))),
        include_dirs: project.search_dirs.clone(),
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
    let load = || {
        load().map_err(|error| match error {
            CliError::Message(message) => message,
            CliError::Output(error) => error.to_string(),
        })
    };
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

fn tolerance(args: &MeasureArgs) -> Result<Tolerance, CliError> {
    let mut tolerance = Tolerance {
        unordered: args.unordered,
        ..Tolerance::default()
    };
    if let Some(relative) = args.tolerance {
        if !(0.0..1.0).contains(&relative) {
            return Err(format!("--tolerance must be from 0 to 1, not {relative}").into());
        }
        (tolerance.f32, tolerance.f64) = (relative, relative);
    }
    Ok(tolerance)
}

/// What `--at` names: a launch, or a function in whose head the line is.
fn within(args: &MeasureArgs, project: &Project) -> Result<Option<TextRange>, CliError> {
    let Some(at) = args.at else { return Ok(None) };
    let path = canonical(&args.file)?;
    let file = project
        .host
        .file(&path)
        .ok_or_else(|| format!("cannot read {}", args.file.display()))?;
    let db = project.host.db();
    if let Some(site) = launches_at(db, file, at).iter().find(|site| site.device_side()) {
        return Ok(Some(site.place.range));
    }
    match launching_function_headed_on(db, file, at.line - 1) {
        Some(function) => Ok(Some(function)),
        None => Err(format!("no kernel launches another at {}:{at}", project.show(&path)).into()),
    }
}
