//! Reports of `gridfuse measure --json`, which `tests/gpu/measure.sh` writes, as a section of `docs/measurements.md`.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::tables::milliseconds;

/// Where they are, below the results of `gpu-bench`.
pub const DIRECTORY: &str = "measured";

/// A report, as far as the table needs it.
#[derive(Debug, Deserialize)]
struct Report {
    file: String,
    machine: Machine,
    sites: Vec<Site>,
    original: Outcome,
    variants: Vec<Variant>,
}

#[derive(Debug, Deserialize)]
struct Machine {
    gpu: String,
    driver: String,
    runtime: String,
}

#[derive(Debug, Deserialize)]
struct Site {
    kernel: String,
    path: String,
    line: u32,
}

#[derive(Debug, Deserialize)]
struct Variant {
    rewrites: String,
    outcome: Outcome,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
enum Outcome {
    Refused { reasons: Vec<String> },
    NotBuilt { message: String },
    Failed { message: String },
    TimedOut { seconds: f64 },
    Ran(Run),
}

#[derive(Debug, Deserialize)]
struct Run {
    median_ms: f64,
    device_launches: Option<u64>,
    agreement: Agreement,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "agreement", rename_all = "kebab-case")]
enum Agreement {
    Original,
    Agrees {
        compared: usize,
        unstable: usize,
    },
    Differs {
        site: usize,
        launch: u32,
        argument: u32,
        element: Option<u64>,
        expected: String,
        found: String,
    },
    PrintsOtherwise {
        expected: String,
        found: String,
    },
    Unknown {
        reason: String,
    },
    NotShown {
        reason: String,
        peer: Option<String>,
        compared: usize,
        difference: Option<serde_json::Value>,
        code: Option<i32>,
        says: Option<String>,
    },
}

/// The section of all reports in the results' directory; `None`: there are none.
pub fn markdown(results: &Path) -> Result<Option<String>> {
    let directory = results.join(DIRECTORY);
    if !directory.is_dir() {
        return Ok(None);
    }
    let mut paths: Vec<_> = std::fs::read_dir(&directory)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let mut text = String::new();
    for path in &paths {
        let json = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let report: Report =
            serde_json::from_str(&json).with_context(|| format!("{} is no report of a measurement", path.display()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        ensure!(
            !report.variants.is_empty(),
            "{} has no rewritten program",
            path.display()
        );
        let _ = writeln!(text, "{}\n", table(&name, &report).trim_end());
    }
    Ok((!paths.is_empty()).then_some(text))
}

fn table(name: &str, report: &Report) -> String {
    let mut text = format!(
        "| {name}: `{}` | ms | launches | result |\n| --- | ---: | ---: | --- |\n",
        report.file
    );
    let variants = report.variants.iter();
    let rows = variants.map(|variant| (variant.rewrites.as_str(), &variant.outcome));
    for (name, outcome) in std::iter::once(("original", &report.original)).chain(rows) {
        let (time, launches, result) = match outcome {
            Outcome::Ran(run) => (
                milliseconds(run.median_ms),
                run.device_launches
                    .map_or_else(|| "–".to_owned(), |launches| launches.to_string()),
                agreement(&run.agreement, &report.sites),
            ),
            Outcome::Refused { reasons } => other(&format!("not applicable: {}", reasons.join("; "))),
            Outcome::NotBuilt { message } => other(&format!("does not compile: {message}")),
            Outcome::Failed { message } => other(message),
            Outcome::TimedOut { seconds } => other(&format!("**did not finish in {seconds} s**")),
        };
        let result = result.replace('|', "\\|").replace(['\n', '\r'], " ");
        let _ = writeln!(text, "| {name} | {time} | {launches} | {result} |");
    }
    let machine = &report.machine;
    let _ = write!(
        text,
        "\n{}, driver for CUDA {}, CUDA {}.",
        machine.gpu, machine.driver, machine.runtime
    );
    text
}

fn other(result: &str) -> (String, String, String) {
    ("–".to_owned(), "–".to_owned(), result.to_owned())
}

fn agreement(agreement: &Agreement, sites: &[Site]) -> String {
    match agreement {
        Agreement::Original => String::new(),
        Agreement::Agrees { compared, unstable: 0 } => format!("agrees ({compared} buffers)"),
        Agreement::Agrees { compared, unstable } => format!("agrees ({compared} buffers, {unstable} not comparable)"),
        Agreement::Differs {
            site,
            launch,
            argument,
            element,
            expected,
            found,
        } => {
            let site = sites.get(*site).map_or_else(String::new, |site| {
                format!(" of `{}` ({}:{})", site.kernel, site.path, site.line)
            });
            let element = element.map_or_else(String::new, |element| format!("[{element}]"));
            format!(
                "**differs**: after launch {}{site}, argument {}{element} is {found} instead of {expected}",
                launch + 1,
                argument + 1
            )
        }
        Agreement::PrintsOtherwise { expected, found } => format!("**prints** `{found}` instead of `{expected}`"),
        Agreement::Unknown { reason } => format!("not compared: {reason}"),
        Agreement::NotShown {
            reason,
            peer,
            compared,
            difference,
            code,
            says,
        } => {
            let peer = match (peer, difference) {
                (None, _) => String::new(),
                (Some(peer), None) => format!("; agrees with {peer} ({compared} buffers)"),
                (Some(peer), Some(_)) => format!("; **differs** from {peer}"),
            };
            let code = code.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
            let says = says
                .as_ref()
                .map_or_else(String::new, |says| format!(", prints `{says}`"));
            format!("not comparable with the original ({reason}){peer}; ends with {code}{says}")
        }
    }
}
