//! Runs programs that were built for the emulator.

use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::report::{self, Event};
use crate::patience::PATIENCE;

/// The exit code of a program that was stopped because of a fault.
pub const FAULT_CODE: i32 = 70;

/// A program that can be run. Its files are gone with the last copy.
#[derive(Clone, Debug)]
pub struct Executable {
    _directory: Arc<TempDir>,
    path: PathBuf,
    /// Which program of those in the file.
    number: Option<usize>,
}

/// How to run a program.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// What the schedule is made from.
    pub seed: u64,
    /// The program's arguments.
    pub arguments: Vec<String>,
    /// How long it may take.
    pub timeout: Duration,
    /// How many steps of the scheduler it may take, if not the default number.
    pub steps: Option<u64>,
    /// When children run, if not as the seed says: `eager`, `late`, `lifo`, `random`.
    pub schedule: Option<String>,
    /// How many blocks are resident at most, if not as the seed says.
    pub resident: Option<u32>,
    /// Kernels may wait for their children by `cudaDeviceSynchronize()`, as they could before CUDA 12.
    pub device_sync: bool,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            seed: 1,
            arguments: Vec::new(),
            timeout: PATIENCE,
            steps: None,
            schedule: None,
            resident: None,
            device_sync: false,
        }
    }
}

impl RunOptions {
    /// The default with a seed.
    pub fn seed(seed: u64) -> RunOptions {
        RunOptions {
            seed,
            ..RunOptions::default()
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With an exit code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// It took too long and was stopped.
    TimedOut,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// What the emulator reported.
    pub events: Vec<Event>,
    /// How long it took.
    pub time: Duration,
}

impl Outcome {
    /// Whether the emulator stopped the program.
    pub fn is_fault(&self) -> bool {
        self.end == End::Code(FAULT_CODE)
    }

    /// Whether the program ended by itself and reported success.
    pub fn is_success(&self) -> bool {
        self.end == End::Code(0)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.end {
            End::Code(code) => writeln!(f, "exit code {code}")?,
            End::Signal(signal) => writeln!(f, "signal {signal}")?,
            End::TimedOut => writeln!(f, "stopped after {:.1} s", self.time.as_secs_f64())?,
        }
        for event in &self.events {
            writeln!(f, "{event}")?;
        }
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.trim().is_empty() {
                writeln!(f, "--- {name}\n{}", text.trim_end())?;
            }
        }
        Ok(())
    }
}

impl Executable {
    pub(super) fn new(directory: TempDir, path: PathBuf, several: bool) -> Executable {
        Executable {
            _directory: Arc::new(directory),
            path,
            number: several.then_some(0),
        }
    }

    /// The program of a number, of several that were built together.
    #[must_use]
    pub fn program(&self, number: usize) -> Executable {
        Executable {
            number: Some(number),
            ..self.clone()
        }
    }

    /// Runs the program.
    pub fn run(&self, options: &RunOptions) -> io::Result<Outcome> {
        let report = tempfile::NamedTempFile::new()?;
        let mut command = Command::new(&self.path);
        command
            .args(self.number.map(|number| number.to_string()))
            .args(&options.arguments)
            .env("GRIDFUSE_EMU_SEED", options.seed.to_string())
            .env("GRIDFUSE_EMU_REPORT", report.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let settings = [
            ("GRIDFUSE_EMU_STEPS", options.steps.map(|steps| steps.to_string())),
            ("GRIDFUSE_EMU_SCHEDULE", options.schedule.clone()),
            ("GRIDFUSE_EMU_DEVICE_SYNC", options.device_sync.then(|| "1".to_owned())),
            (
                "GRIDFUSE_EMU_RESIDENT",
                options.resident.map(|blocks| blocks.to_string()),
            ),
        ];
        for (name, value) in settings {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let begin = Instant::now();
        let mut child = command.spawn()?;
        let output = [
            child.stdout.take().map(|pipe| thread::spawn(|| read_all(pipe))),
            child.stderr.take().map(|pipe| thread::spawn(|| read_all(pipe))),
        ];
        let mut pause = Duration::from_micros(200);
        let end = loop {
            if let Some(status) = child.try_wait()? {
                break end_of(status);
            }
            if begin.elapsed() > options.timeout {
                child.kill()?;
                child.wait()?;
                break End::TimedOut;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        };
        let time = begin.elapsed();
        let [stdout, stderr] = output.map(|reader| {
            let text = reader.and_then(|reader| reader.join().ok());
            String::from_utf8_lossy(&text.unwrap_or_default()).into_owned()
        });
        let report = fs::read(report.path())?;
        // A program that is killed may leave half a line.
        let text = String::from_utf8_lossy(&report);
        let complete = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
        let events = report::parse(complete).map_err(io::Error::other)?;
        Ok(Outcome {
            end,
            stdout,
            stderr,
            events,
            time,
        })
    }
}

fn read_all(mut pipe: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What came before an error is all there is.
    let _ = pipe.read_to_end(&mut bytes);
    bytes
}

fn end_of(status: ExitStatus) -> End {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Code(code),
        (None, signal) => End::Signal(signal.unwrap_or(0)),
    }
}
