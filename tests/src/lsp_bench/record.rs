//! What was measured, as JSON: everything that the page shows is in there.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::session::Spent;

/// Samples of more runs than this aren't kept one by one.
const MOST_SAMPLES: usize = 100;

/// One run of `gridfuse-bench`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// When it began, RFC 3339.
    pub date: String,
    /// The commit of the checkout, with `-dirty` when something in it was changed.
    pub commit: Option<String>,
    /// The command line.
    pub command: String,
    /// Where.
    pub machine: Machine,
    /// How often and how long.
    pub settings: Settings,
    /// What the client itself takes: a hover at a server that does nothing.
    pub client_ms: Option<Stats>,
    /// The servers, in the order of the command line.
    pub servers: Vec<Server>,
    /// What they were given.
    pub inputs: Vec<Source>,
    /// The times.
    pub measured: Vec<Measured>,
    /// How many diagnostics there were.
    pub diagnostics: Vec<Diagnostics>,
    /// The memory.
    pub memory: Vec<MemoryUse>,
    /// What went wrong.
    pub problems: Vec<String>,
}

impl Report {
    /// The JSON, with one line for each entry of a list.
    ///
    /// # Errors
    /// When a number isn't one.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let Value::Object(fields) = serde_json::to_value(self)? else {
            return serde_json::to_string(self);
        };
        let mut parts = Vec::new();
        for (name, value) in fields {
            let text = match &value {
                Value::Array(entries) if entries.iter().any(Value::is_object) => {
                    let lines: Vec<String> = entries.iter().map(|entry| format!("    {entry}")).collect();
                    format!("[\n{}\n  ]", lines.join(",\n"))
                }
                other => other.to_string(),
            };
            parts.push(format!("  \"{name}\": {text}"));
        }
        Ok(format!("{{\n{}\n}}\n", parts.join(",\n")))
    }

    /// The times of one server with one input.
    pub fn find(&self, input: &str, server: &str, operation: Operation, situation: Situation) -> Option<&Measured> {
        self.measured.iter().find(|measured| {
            measured.input == input
                && measured.server == server
                && measured.operation == operation
                && measured.situation == situation
        })
    }
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// The processor.
    pub cpu: Option<String>,
    /// Its cores that could be used.
    pub cores: Option<usize>,
    /// Memory in MiB.
    pub memory_mib: Option<u64>,
    /// The kernel.
    pub kernel: Option<String>,
    /// How many processes ran or wanted to, in the mean of five minutes, at the beginning and at the end.
    pub load: Vec<f64>,
}

/// How often and how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Sessions of each server with each input.
    pub rounds: usize,
    /// How often the server is started and the file opened, for each session.
    pub opens: usize,
    /// Edits of each function and session.
    pub edits: usize,
    /// Requests of each kind, situation and session.
    pub requests: usize,
    /// Keystrokes of a session.
    pub keystrokes: usize,
    /// Between two keystrokes.
    pub pace_ms: u64,
    /// Edits over which the memory is looked at.
    pub memory_edits: usize,
    /// A request that takes longer, of the server's processor time, is given up; so is one that a server isn't at any more by then.
    pub limit_s: u64,
    /// So long is a server waited for to become idle after its start.
    pub index_s: u64,
    /// Of one kind of request nothing more is asked in a session after this.
    pub budget_s: u64,
    /// No new round begins with an input after this.
    pub input_budget_s: u64,
    /// So long has a server to be idle before something new is asked.
    pub quiet_ms: u64,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Its name in the tables.
    pub name: String,
    /// What it says to `--version`.
    pub version: Option<String>,
    /// How it was started, without directories.
    pub command: String,
}

/// An input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Its name on the command line.
    pub name: String,
    /// The lines of the file that was opened.
    pub lines: usize,
    /// The CUDA sources in its folder.
    pub files: usize,
    /// The bytes of these and of their headers.
    pub bytes: u64,
    /// The launch that was asked about, with its line: `child<<< (12)`.
    pub launch: String,
    /// The function that was edited elsewhere.
    pub elsewhere: String,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// From the start of the process to the first diagnostics of a file.
    ColdFirst,
    /// From the start of the process until it is idle.
    ColdIndexed,
    /// From opening to the first diagnostics.
    Open,
    /// From an edit to the diagnostics that the server publishes.
    EditPush,
    /// From an edit to the diagnostics that are asked for.
    EditPull,
    /// From a keystroke to the diagnostics of that text, or of a newer one.
    Typing,
    /// A hover.
    Hover,
    /// The menu of code actions.
    Menu,
    /// The slowest action of a menu, resolved.
    Resolve,
    /// The code lenses of the file.
    Lens,
    /// The slowest lens of the launch's function, resolved.
    LensResolve,
    /// The inlay hints of the file.
    Hints,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 12] = [
        Operation::ColdFirst,
        Operation::ColdIndexed,
        Operation::Open,
        Operation::EditPush,
        Operation::EditPull,
        Operation::Typing,
        Operation::Hover,
        Operation::Menu,
        Operation::Resolve,
        Operation::Lens,
        Operation::LensResolve,
        Operation::Hints,
    ];

    /// Its name in a table.
    pub fn title(self) -> &'static str {
        match self {
            Operation::ColdFirst => "start → first diagnostics",
            Operation::ColdIndexed => "start → idle",
            Operation::Open => "open → diagnostics",
            Operation::EditPush => "edit → diagnostics",
            Operation::EditPull => "edit → diagnostics, asked for",
            Operation::Typing => "keystroke → diagnostics",
            Operation::Hover => "hover",
            Operation::Menu => "menu",
            Operation::Resolve => "resolve",
            Operation::Lens => "lenses",
            Operation::LensResolve => "lens resolve",
            Operation::Hints => "hints",
        }
    }
}

/// After what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Situation {
    /// Nothing in particular.
    Any,
    /// An edit in a function that has nothing to do with the launch.
    Elsewhere,
    /// An edit in the function of the launch.
    Same,
    /// The same request, without an edit in between.
    Again,
}

impl Situation {
    /// Its name in a table.
    pub fn title(self) -> &'static str {
        match self {
            Situation::Any => "",
            Situation::Elsewhere => "elsewhere",
            Situation::Same => "same function",
            Situation::Again => "again",
        }
    }
}

/// Percentiles, in the unit that the field's name tells.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// The least.
    pub min: f64,
    /// The median.
    pub p50: f64,
    /// 99 of 100 are no greater.
    pub p99: f64,
    /// The greatest.
    pub max: f64,
}

impl Stats {
    /// The percentiles of some numbers; `None` of none. A percentile is the least number that enough of all are no greater than.
    pub fn of(numbers: &[f64]) -> Option<Stats> {
        let mut sorted = numbers.to_vec();
        sorted.sort_by(f64::total_cmp);
        let rank = |percent: usize| {
            let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
            sorted.get(index).copied()
        };
        Some(Stats {
            min: *sorted.first()?,
            p50: rank(50)?,
            p99: rank(99)?,
            max: *sorted.last()?,
        })
    }
}

/// The times of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The input.
    pub input: String,
    /// The server.
    pub server: String,
    /// What.
    pub operation: Operation,
    /// After what.
    pub situation: Situation,
    /// False when the server has said that it can't.
    pub supported: bool,
    /// How often it was measured.
    pub count: usize,
    /// How often it was given up.
    pub late: usize,
    /// Until the answer.
    pub wall_ms: Option<Stats>,
    /// Processor time of the server until the answer.
    pub cpu_ms: Option<Stats>,
    /// The same until the server was idle again, for edits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub settled_cpu_ms: Option<Stats>,
    /// Which one was the slowest, where there are several.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub slowest: Option<String>,
    /// The single times until the answer, when they aren't too many.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub wall_samples_ms: Vec<f64>,
    /// The processor times that belong to them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub cpu_samples_ms: Vec<f64>,
}

/// What a server published for the file that was opened: fast diagnostics count for nothing when others follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostics {
    /// The input.
    pub input: String,
    /// The server.
    pub server: String,
    /// How many it published first.
    pub first: usize,
    /// How many there were when it was idle.
    pub settled: usize,
}

/// The memory of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryUse {
    /// The input.
    pub input: String,
    /// The server.
    pub server: String,
    /// After opening, when it was idle, in MiB: the most of all sessions.
    pub opened_mib: f64,
    /// At the end of a session, in MiB: the most of all sessions.
    pub end_mib: f64,
    /// The most at any time, in MiB.
    pub peak_mib: f64,
    /// After how many edits how many MiB, in the last session.
    pub edits: Vec<(usize, f64)>,
}

/// The times of one server with one input, while they are being measured.
#[derive(Debug, Default)]
pub struct Samples(BTreeMap<(Operation, Situation), Series>);

#[derive(Debug, Default)]
struct Series {
    wall: Vec<f64>,
    cpu: Vec<f64>,
    settled: Vec<f64>,
    late: usize,
    unsupported: bool,
    slowest: Option<(Duration, String)>,
}

/// Milliseconds, to the microsecond.
fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

impl Samples {
    /// One measurement.
    pub fn add(&mut self, operation: Operation, situation: Situation, spent: Spent) {
        let series = self.0.entry((operation, situation)).or_default();
        series.wall.push(milliseconds(spent.wall));
        series.cpu.push(milliseconds(spent.cpu));
    }

    /// What the last measurement took until the server was idle.
    pub fn add_settled(&mut self, operation: Operation, situation: Situation, cpu: Duration) {
        let series = self.0.entry((operation, situation)).or_default();
        series.settled.push(milliseconds(cpu));
    }

    /// Which of several was measured.
    pub fn name(&mut self, operation: Operation, situation: Situation, spent: Spent, name: &str) {
        let series = self.0.entry((operation, situation)).or_default();
        if series.slowest.as_ref().is_none_or(|(time, _)| *time < spent.cpu) {
            series.slowest = Some((spent.cpu, name.to_owned()));
        }
    }

    /// It was given up.
    pub fn late(&mut self, operation: Operation, situation: Situation) {
        self.0.entry((operation, situation)).or_default().late += 1;
    }

    /// The server can't.
    pub fn unsupported(&mut self, operation: Operation, situation: Situation) {
        self.0.entry((operation, situation)).or_default().unsupported = true;
    }

    /// The record.
    pub fn finish(self, input: &str, server: &str) -> Vec<Measured> {
        let kept = |samples: Vec<f64>| match samples.len() {
            0..=MOST_SAMPLES => samples,
            _ => Vec::new(),
        };
        let finish = |((operation, situation), series): ((Operation, Situation), Series)| Measured {
            input: input.to_owned(),
            server: server.to_owned(),
            operation,
            situation,
            supported: !series.unsupported,
            count: series.wall.len(),
            late: series.late,
            wall_ms: Stats::of(&series.wall),
            cpu_ms: Stats::of(&series.cpu),
            settled_cpu_ms: Stats::of(&series.settled),
            slowest: series.slowest.map(|(_, name)| name),
            wall_samples_ms: kept(series.wall),
            cpu_samples_ms: kept(series.cpu),
        };
        self.0.into_iter().map(finish).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_numbers_that_were_measured() {
        let numbers: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let stats = Stats::of(&numbers).unwrap();
        assert_eq!([stats.min, stats.p50, stats.p99, stats.max], [1.0, 100.0, 198.0, 200.0]);
        let one = Stats::of(&[3.0]).unwrap();
        assert_eq!([one.min, one.p50, one.p99, one.max], [3.0; 4]);
        assert_eq!(Stats::of(&[]), None);
    }
}
