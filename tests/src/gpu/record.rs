//! What is written down about a measurement.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::machine::Machine;

/// The version of the format; it grows when a reader would have to change.
pub const SCHEMA: u32 = 1;

/// Everything that was measured about one program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The program.
    pub program: String,
    /// The commit that was measured.
    pub commit: String,
    /// When, in UTC.
    pub date: String,
    /// On what.
    pub machine: Machine,
    /// The variants, in the plan's order.
    pub variants: Vec<String>,
    /// The inputs, in the plan's order.
    pub inputs: Vec<String>,
    /// How the binaries came about.
    pub builds: Vec<Build>,
    /// The measurements.
    pub runs: Vec<Run>,
    /// Runs under compute-sanitizer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sanitize: Vec<Sanitized>,
}

/// A binary, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Build {
    /// The variants that use it.
    pub variants: Vec<String>,
    /// The source in the repository.
    pub source: String,
    /// The commands, in order, run where a copy of the source lies.
    pub commands: Vec<String>,
    /// How it ended.
    pub status: BuildStatus,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How long it took.
    pub seconds: f64,
}

/// How a build ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BuildStatus {
    /// There is a binary.
    Ok,
    /// gridfuse did not rewrite the source.
    RewriteFailed,
    /// The source did not compile.
    CompileFailed,
    /// The plan does not fit the sources.
    PlanFailed,
}

/// One run of one variant on one input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The variant.
    pub variant: String,
    /// Whether it comes from another source than the program's.
    #[serde(default, skip_serializing_if = "is_false")]
    pub baseline: bool,
    /// The input.
    pub input: String,
    /// The command.
    pub command: String,
    /// How it ended.
    pub status: RunStatus,
    /// The time the program measured, only if its result was right; with several processes that of the fastest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<f64>,
    /// The times that several processes measured, in the order in which they ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes_ms: Vec<f64>,
    /// Everything that the program reported.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub report: Map<String, Value>,
    /// Why there is no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How long the whole run took.
    pub wall_s: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// The result was right.
    Pass,
    /// The result was wrong.
    Wrong,
    /// It was given up after the time limit.
    DidNotFinish,
    /// It ended without a usable report.
    Failed,
    /// There was no binary.
    NotBuilt,
    /// There was no time left.
    Skipped,
}

impl RunStatus {
    /// The word in tables; a run that passed has its time there.
    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Pass => "pass",
            RunStatus::Wrong => "wrong",
            RunStatus::DidNotFinish => "did not finish",
            RunStatus::Failed => "failed",
            RunStatus::NotBuilt => "not built",
            RunStatus::Skipped => "skipped",
        }
    }

    /// Whether something is broken, rather than slow or left out.
    pub fn is_broken(self) -> bool {
        matches!(self, RunStatus::Wrong | RunStatus::Failed | RunStatus::NotBuilt)
    }
}

/// One run under compute-sanitizer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sanitized {
    /// The tool.
    pub tool: String,
    /// The variant.
    pub variant: String,
    /// The command.
    pub command: String,
    /// How it ended.
    pub status: SanitizeStatus,
    /// The tool's summary lines, or why there are none.
    pub message: String,
    /// How long it took.
    pub wall_s: f64,
}

/// How a run under compute-sanitizer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SanitizeStatus {
    /// The tool found nothing.
    Clean,
    /// The tool found something.
    Findings,
    /// The tool says that it does not support such programs; it found nothing else.
    Unsupported,
    /// It was given up after the time limit.
    DidNotFinish,
    /// The tool or the program failed.
    Failed,
    /// There was no binary, no tool, or no time left.
    Skipped,
}

impl SanitizeStatus {
    /// The word in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            SanitizeStatus::Clean => "clean",
            SanitizeStatus::Findings => "findings",
            SanitizeStatus::Unsupported => "unsupported by the tool",
            SanitizeStatus::DidNotFinish => "did not finish",
            SanitizeStatus::Failed => "failed",
            SanitizeStatus::Skipped => "skipped",
        }
    }
}

impl Results {
    /// Reads a result file.
    pub fn load(path: &Path) -> Result<Results> {
        let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let mut results: Results =
            serde_json::from_str(&text).with_context(|| format!("{} is no result file", path.display()))?;
        for run in results.runs.iter_mut().filter(|run| run.time_ms.is_some()) {
            // Files may have the median of the processes there.
            let fastest = run.processes_ms.iter().copied().min_by(f64::total_cmp);
            run.time_ms = fastest.or(run.time_ms);
        }
        anyhow::ensure!(
            results.schema == SCHEMA,
            "{} has the format {}, this program reads {SCHEMA}",
            path.display(),
            results.schema
        );
        Ok(results)
    }

    /// Writes the file `<program>.json` into a directory; a reader never sees half of it.
    pub fn save(&self, directory: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        let path = directory.join(format!("{}.json", self.program));
        let unfinished = directory.join(format!(".{}.json.unfinished", self.program));
        std::fs::write(&unfinished, text)
            .and_then(|()| std::fs::rename(&unfinished, &path))
            .with_context(|| format!("{} cannot be written", path.display()))
    }

    /// The run of a variant on an input.
    pub fn run(&self, variant: &str, input: &str) -> Option<&Run> {
        self.runs
            .iter()
            .find(|run| run.variant == variant && run.input == input)
    }
}

/// What the report of a finished program means.
#[derive(Debug, PartialEq)]
pub struct Judged {
    /// The status.
    pub status: RunStatus,
    /// The time, only with [`RunStatus::Pass`].
    pub time_ms: Option<f64>,
    /// The report; without times unless the status is [`RunStatus::Pass`].
    pub report: Map<String, Value>,
    /// Why there is no time.
    pub message: Option<String>,
}

impl Judged {
    fn broken(status: RunStatus, mut report: Map<String, Value>, message: String) -> Judged {
        drop_times(&mut report);
        Judged {
            status,
            time_ms: None,
            report,
            message: Some(message),
        }
    }
}

/// A time without a right result means nothing, so it is not kept.
pub fn drop_times(report: &mut Map<String, Value>) {
    report.retain(|name, _| !name.ends_with("_ms") && !name.ends_with("_us"));
}

/// Judges what a program printed that ended by itself.
pub fn judge(stdout: &str, success: bool, described: &str, printed: &str) -> Judged {
    let report = stdout
        .lines()
        .rev()
        .filter_map(|line| serde_json::from_str::<Map<String, Value>>(line.trim()).ok())
        .find(|report| report.contains_key("verdict"));
    let Some(report) = report else {
        let message = format!("{described} without a report: {printed}");
        return Judged::broken(RunStatus::Failed, Map::new(), message.trim().to_owned());
    };
    match report.get("verdict").and_then(Value::as_str) {
        Some("pass") => {}
        verdict => {
            let message = format!("the verdict is `{}`", verdict.unwrap_or("?"));
            return Judged::broken(RunStatus::Wrong, report, message);
        }
    }
    if !success {
        let message = format!("{described}, though the verdict is `pass`: {printed}");
        return Judged::broken(RunStatus::Failed, report, message);
    }
    match report.get("time_ms").and_then(Value::as_f64) {
        Some(time) if time.is_finite() && time > 0.0 => Judged {
            status: RunStatus::Pass,
            time_ms: Some(time),
            report,
            message: None,
        },
        _ => Judged::broken(
            RunStatus::Failed,
            report,
            "the report holds no time_ms above 0".to_owned(),
        ),
    }
}

/// Turns runs into wrong ones whose checksum is not that of the first right run on the same input.
pub fn compare_checksums(runs: &mut [Run]) {
    let mut expected: BTreeMap<String, (String, Value)> = BTreeMap::new();
    for run in runs {
        if run.status != RunStatus::Pass {
            continue;
        }
        let Some(checksum) = run.report.get("checksum").cloned() else {
            continue;
        };
        let (variant, first) = expected
            .entry(run.input.clone())
            .or_insert_with(|| (run.variant.clone(), checksum.clone()));
        if *first != checksum {
            run.status = RunStatus::Wrong;
            run.time_ms = None;
            drop_times(&mut run.report);
            run.message = Some(format!("the checksum is {checksum}; that of `{variant}` is {first}"));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_right_result_has_a_time() {
        let line = |verdict: &str, time: &str| {
            format!("hello\n{{\"verdict\":\"{verdict}\",\"time_ms\":{time},\"copy_ms\":1}}\nbye {{}}\n")
        };
        let judged = judge(&line("pass", "1.5"), true, "", "");
        assert_eq!((judged.status, judged.time_ms), (RunStatus::Pass, Some(1.5)));
        for (stdout, success, status) in [
            (line("fail", "1.5"), false, RunStatus::Wrong),
            (line("fail", "1.5"), true, RunStatus::Wrong),
            (line("pass", "1.5"), false, RunStatus::Failed),
            (line("pass", "0"), true, RunStatus::Failed),
            (line("pass", "null"), true, RunStatus::Failed),
            (String::new(), true, RunStatus::Failed),
        ] {
            let judged = judge(&stdout, success, "exit status: 1", "oops");
            assert_eq!((judged.status, judged.time_ms), (status, None), "{stdout}");
            assert!(!judged.report.keys().any(|name| name.ends_with("_ms")));
            assert!(judged.message.is_some());
        }
    }

    #[test]
    fn a_checksum_that_differs_is_wrong() {
        let run = |variant: &str, input: &str, checksum: &str| Run {
            variant: variant.to_owned(),
            baseline: false,
            input: input.to_owned(),
            command: String::new(),
            status: RunStatus::Pass,
            time_ms: Some(1.0),
            processes_ms: Vec::new(),
            report: json!({ "checksum": checksum, "time_ms": 1.0 })
                .as_object()
                .unwrap()
                .clone(),
            message: None,
            wall_s: 0.0,
        };
        let mut runs = [
            run("serial", "tree", "a"),
            run("serial", "road", "b"),
            run("naive", "tree", "a"),
            run("naive", "road", "c"),
        ];
        compare_checksums(&mut runs);
        let statuses: Vec<_> = runs.iter().map(|run| run.status).collect();
        use RunStatus::{Pass, Wrong};
        assert_eq!(statuses, [Pass, Pass, Pass, Wrong]);
        assert_eq!(runs[3].time_ms, None);
        assert!(runs[3].message.as_deref().unwrap().contains("`serial`"));
    }
}
