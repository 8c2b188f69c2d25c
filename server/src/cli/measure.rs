//! `gridfuse measure`: the program as it is and rewritten, on a GPU.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use gridfuse_analysis::span::TextRange;

use super::output::{self, note};
use super::project::{Project, canonical};
use super::site::{At, launches_at};
use super::{CLEAN, CliError, CliResult, FINDINGS, Includes};
use crate::measure::report::{Agreement, Outcome, Report};
use crate::measure::{Recipe, Request, Tolerance, measure, process};

/// Arguments of `measure`.
#[derive(Debug, Args)]
pub struct MeasureArgs {
    /// File with the program's `main`
    file: PathBuf,
    /// Rewrite the launch at this place only
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
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    includes: Includes,
}

/// Runs `measure`.
pub fn run(args: &MeasureArgs, out: &mut dyn Write) -> CliResult {
    let recipes = recipes(args)?;
    let words = |name: &str, text: &str| {
        shlex::split(text).ok_or_else(|| CliError::Message(format!("{name}: a quote is not closed in `{text}`")))
    };
    let project = Project::load(std::slice::from_ref(&args.file), &args.includes)?;
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
    // Ctrl-C must not leave a program behind that keeps the GPU busy. Without a handler it's only less tidy.
    let _ = ctrlc::set_handler(|| {
        process::kill_all();
        std::process::exit(130);
    });
    let spinner = std::io::stderr().is_terminal().then(|| {
        let spinner = indicatif::ProgressBar::new_spinner();
        spinner.enable_steady_tick(Duration::from_millis(120));
        spinner
    });
    let progress = |what: &str| {
        if let Some(spinner) = &spinner {
            spinner.set_message(what.to_owned());
        }
    };
    let load = || {
        Project::load(std::slice::from_ref(&args.file), &args.includes).map_err(|error| match error {
            CliError::Message(message) => message,
            CliError::Output(error) => error.to_string(),
        })
    };
    let report = measure(&request, &load, &progress);
    if let Some(spinner) = &spinner {
        spinner.finish_and_clear();
    }
    let report = report?;
    if args.json {
        output::json(out, &report)?;
    } else {
        print(&report, out)?;
    }
    let bad = report.variants.iter().any(|variant| variant.outcome.is_bad()) || report.original.is_bad();
    Ok(if bad { FINDINGS } else { CLEAN })
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

/// The launch that `--at` names.
fn within(args: &MeasureArgs, project: &Project) -> Result<Option<TextRange>, CliError> {
    let Some(at) = args.at else { return Ok(None) };
    let path = canonical(&args.file)?;
    let file = project
        .host
        .file(&path)
        .ok_or_else(|| format!("cannot read {}", args.file.display()))?;
    let here = launches_at(project.host.db(), file, at);
    match here.iter().find(|site| site.device_side()) {
        Some(site) => Ok(Some(site.place.range)),
        None => Err(format!("no kernel launches another at {}:{at}", project.show(&path)).into()),
    }
}

/// `0.0123`, `1.23`, `123`: three digits that say something.
fn milliseconds(ms: f64) -> String {
    let digits = if ms > 0.0 {
        (2.0 - ms.log10().floor()).clamp(0.0, 6.0) as usize
    } else {
        3
    };
    format!("{ms:.digits$}")
}

fn print(report: &Report, out: &mut dyn Write) -> Result<(), CliError> {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "program",
        "GPU time, ms",
        "least … most",
        "speedup",
        "launches",
        "result",
    ]);
    for column in 1..=4 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.add_row(row("original", &report.original, None, report));
    let original = report.original.median();
    for variant in &report.variants {
        table.add_row(row(&variant.rewrites, &variant.outcome, original, report));
    }
    writeln!(out, "{table}")?;
    let machine = &report.machine;
    writeln!(
        out,
        "{}, driver for CUDA {}, built with CUDA {}; time of the launches of {} until all children are done, without each one's first, median of {} runs",
        machine.gpu,
        machine.driver,
        machine.runtime,
        report
            .sites
            .iter()
            .map(|site| format!("{} ({}:{})", site.kernel, site.path, site.line))
            .collect::<Vec<_>>()
            .join(", "),
        match &report.original {
            Outcome::Ran(run) => run.times_ms.len(),
            _ => 0,
        }
        .max(1),
    )?;
    if report.deterministic == Some(false) {
        note("two runs of the original disagree: what differs between them was not compared");
    }
    for left in &report.left_out {
        note(&format!(
            "not measured: the launch at {}:{}: {}",
            left.path, left.line, left.reason
        ));
    }
    if let Outcome::Ran(run) = &report.original {
        for error in &run.errors {
            note(&format!(
                "the original loses launches or fails: {} ({})",
                error.name, error.during
            ));
        }
    }
    for variant in &report.variants {
        if !variant.assumptions.is_empty() {
            note(&format!(
                "{} assumes: {}",
                variant.rewrites,
                variant.assumptions.join("; ")
            ));
        }
    }
    Ok(())
}

fn row(name: &str, outcome: &Outcome, original: Option<f64>, report: &Report) -> Vec<String> {
    let plain = |result: String| vec![name.to_owned(), "-".into(), "-".into(), "-".into(), "-".into(), result];
    match outcome {
        Outcome::Refused { reasons } => plain(format!(
            "not applicable: {}",
            reasons.first().map_or("", String::as_str)
        )),
        Outcome::NotBuilt { message } => plain(format!("does not compile:\n{message}")),
        Outcome::Failed { message } => plain(message.clone()),
        Outcome::TimedOut { seconds } => plain(format!("did not finish in {seconds} s")),
        Outcome::Ran(run) => {
            let least = run.times_ms.iter().copied().fold(f64::INFINITY, f64::min);
            let most = run.times_ms.iter().copied().fold(0.0, f64::max);
            let speedup = original
                .filter(|_| run.median_ms > 0.0)
                .map(|original| original / run.median_ms);
            vec![
                name.to_owned(),
                milliseconds(run.median_ms),
                format!("{} … {}", milliseconds(least), milliseconds(most)),
                speedup.map_or_else(|| "-".to_owned(), |speedup| format!("{speedup:.1}×")),
                run.device_launches
                    .map_or_else(|| "-".to_owned(), |launches| launches.to_string()),
                agreement(&run.agreement, report),
            ]
        }
    }
}

fn agreement(agreement: &Agreement, report: &Report) -> String {
    match agreement {
        Agreement::Original => String::new(),
        Agreement::Agrees { compared: 0, .. } => "prints the same".to_owned(),
        Agreement::Agrees { compared, unstable: 0 } => format!("agrees ({compared} buffers)"),
        Agreement::Agrees { compared, unstable } => format!("agrees ({compared} buffers, {unstable} not comparable)"),
        Agreement::Differs(difference) => {
            let site = report.sites.get(difference.site as usize);
            let site = site.map_or_else(String::new, |site| {
                format!(" of {} ({}:{})", site.kernel, site.path, site.line)
            });
            let element = difference
                .element
                .map_or_else(String::new, |element| format!("[{element}]"));
            format!(
                "DIFFERS: after launch {}{site}, argument {}{element} is {} instead of {}",
                difference.launch + 1,
                difference.argument + 1,
                difference.found,
                difference.expected
            )
        }
        Agreement::PrintsOtherwise { expected, found } => format!("DIFFERS: prints `{found}` instead of `{expected}`"),
        Agreement::Unknown { reason } => format!("not compared: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn three_digits() {
        assert_eq!(milliseconds(0.012345), "0.0123");
        assert_eq!(milliseconds(1.2345), "1.23");
        assert_eq!(milliseconds(123.45), "123");
        assert_eq!(milliseconds(0.0), "0.000");
    }
}
