//! What the program takes for a hostile project: processor time and memory.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::lsp_client::{ANSWER_WITHIN, Capabilities, Client};

/// Limits of a run; what is beyond is ended.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Processor time of all threads, in seconds.
    pub cpu: f64,
    /// Resident memory, in MB.
    pub memory: u64,
}

/// What a process took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Processor time of all threads, in seconds.
    pub cpu: f64,
    /// Most resident memory, in MB.
    pub memory: u64,
}

/// A run that ended, or was ended.
#[derive(Clone, Debug)]
pub struct Run {
    /// What it took.
    pub cost: Cost,
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// It exceeded a limit.
    pub ended: bool,
    /// Standard output.
    pub stdout: String,
}

/// Clock ticks per second in `/proc`: the same on every Linux.
const TICKS: f64 = 100.0;

/// What a running process, or one that ended and wasn't waited for, took so far. `None`: there is no such process. Memory is 0 when
/// it has ended.
pub fn cost(process: u32) -> Option<Cost> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in parentheses, may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
    let cpu = (ticks(11)? + ticks(12)?) / TICKS;
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|peak| peak.split_whitespace().next()?.parse::<u64>().ok());
    Some(Cost {
        cpu,
        memory: kilobytes.unwrap_or(0) / 1024,
    })
}

/// Whether the process has ended and waits to be waited for.
fn has_ended(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
}

/// Runs a program in a directory within limits.
///
/// # Errors
/// When it can't be started or waited for.
pub fn run(program: &Path, directory: &Path, arguments: &[&str], limits: Limits) -> std::io::Result<Run> {
    let mut child = Command::new(program)
        .current_dir(directory)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let output = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut output) = output {
            // What came until the pipe broke is what there is.
            let _ = output.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut taken = Cost::default();
    let mut ended = false;
    loop {
        let done = has_ended(child.id());
        if let Some(now) = cost(child.id()) {
            taken.cpu = now.cpu;
            taken.memory = taken.memory.max(now.memory);
        }
        if done {
            break;
        }
        if !ended && (taken.cpu > limits.cpu || taken.memory > limits.memory) {
            ended = true;
            child.kill()?;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let status = child.wait()?;
    Ok(Run {
        cost: taken,
        code: status.code(),
        ended,
        stdout: reader.join().unwrap_or_default(),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn limits_end_a_process() {
        let limits = Limits { cpu: 0.2, memory: 100 };
        let endless = run(Path::new("sh"), Path::new("/"), &["-c", "while :; do :; done"], limits).unwrap();
        assert!(
            endless.ended && endless.cost.cpu > 0.2 && endless.code.is_none(),
            "{endless:?}"
        );
        let short = run(Path::new("sh"), Path::new("/"), &["-c", "echo done; exit 3"], limits).unwrap();
        assert_eq!(
            (short.ended, short.code, short.stdout.as_str()),
            (false, Some(3), "done\n")
        );
        assert!(cost(std::process::id()).unwrap().memory > 0);
    }
}

/// The first answer of a server that has just been started on a project.
#[derive(Clone, Debug)]
pub struct FirstAnswer {
    /// From the request to the answer, in seconds on the clock.
    pub wall: f64,
    /// It says that the code is still being read, or what of it.
    pub unfinished: bool,
    /// What the server took until then.
    pub cost: Cost,
}

/// Opens the first file of a project, whose text is `text`, in a server of users who wait for a second, and points at its last launch.
pub fn first_answer(program: &Path, directory: &Path, path: &Path, text: &str) -> FirstAnswer {
    let mut command = Command::new(program);
    command.arg("lsp").env(ANSWER_WITHIN, "1000");
    let mut client = Client::spawn_command(command);
    client.initialize(Some(directory), &Capabilities::minimal());
    client.open(path, text);
    let asked = Instant::now();
    let hover = client.hover(path, text.rfind("child<<<").unwrap_or(0));
    let wall = asked.elapsed().as_secs_f64();
    let said = hover["contents"]["value"].as_str().unwrap_or_default();
    let cost = client.process_id().and_then(cost).unwrap_or_default();
    // It ends with the client: nobody waits for the rest.
    FirstAnswer {
        wall,
        unfinished: said.contains("in a moment"),
        cost,
    }
}
