//! Running programs with a time limit.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How much of each output stream is kept.
const OUTPUT_LIMIT: usize = 1 << 20;

/// How a program ended.
#[derive(Debug)]
pub struct Finished {
    /// `None` when it was given up.
    pub status: Option<ExitStatus>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// How long it took.
    pub wall: Duration,
}

impl Finished {
    /// Whether it ended by itself and reported success.
    pub fn success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// The exit code, if it ended by itself and not by a signal.
    pub fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }

    /// How it ended, in words.
    pub fn describe(&self) -> String {
        match self.status {
            None => format!("did not finish in {:.0} s", self.wall.as_secs_f64()),
            Some(status) => status.to_string(),
        }
    }

    /// The end of what it printed, standard error first.
    pub fn printed(&self) -> String {
        let printed = format!("{}\n{}", self.stderr.trim(), self.stdout.trim());
        tail(printed.trim(), 2000).to_owned()
    }
}

/// At most the last `limit` bytes of `text`, without cutting a line if possible.
pub fn tail(text: &str, limit: usize) -> &str {
    let mut start = text.len().saturating_sub(limit);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    if start > 0
        && let Some(newline) = text[start..].find('\n')
    {
        start += newline + 1;
    }
    &text[start..]
}

/// Runs a command to its end, or kills it and everything it started after `limit`.
pub fn run(command: &mut Command, limit: Duration) -> Result<Finished> {
    own_group(command);
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| {
            let program = command.get_program().to_string_lossy().into_owned();
            format!("`{program}` cannot be run")
        })?;
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let mut pause = Duration::from_millis(1);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if start.elapsed() >= limit {
            break None;
        }
        std::thread::sleep(pause.min(limit.saturating_sub(start.elapsed())));
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    let wall = start.elapsed();
    kill_group(&mut child);
    if status.is_none() {
        // A process with work on the GPU may take a while to die; the next run must not meet it.
        let patience = Instant::now() + Duration::from_secs(30);
        while child.try_wait()?.is_none() && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(Finished {
        status,
        stdout: text(stdout),
        stderr: text(stderr),
        wall,
    })
}

/// Reads a stream to its end in the background, and keeps the beginning.
fn collect(stream: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.by_ref().take(OUTPUT_LIMIT as u64).read_to_end(&mut kept);
            // Further output has to go somewhere, or the program blocks.
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
        kept
    })
}

fn text(reader: JoinHandle<Vec<u8>>) -> String {
    // A process that survived being killed keeps its pipe open: wait, but not for ever.
    let patience = Instant::now() + Duration::from_secs(5);
    while !reader.is_finished() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(1));
    }
    if !reader.is_finished() {
        return String::new();
    }
    String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned()
}

#[cfg(unix)]
fn own_group(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
}

#[cfg(unix)]
fn kill_group(child: &mut Child) {
    use nix::sys::signal::{Signal, killpg};
    use nix::unistd::Pid;
    if let Ok(group) = i32::try_from(child.id()) {
        // Whoever is gone already need not be killed.
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
}

#[cfg(not(unix))]
fn own_group(_command: &mut Command) {}

#[cfg(not(unix))]
fn kill_group(child: &mut Child) {
    let _ = child.kill();
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::patience::{PATIENCE, wait_until};
    use crate::processes;

    fn sh(script: &str, limit: Duration) -> Finished {
        run(Command::new("/bin/sh").args(["-c", script]), limit).unwrap()
    }

    #[test]
    fn output_and_exit_code() {
        let finished = sh("echo out; echo err >&2; exit 3", PATIENCE);
        assert_eq!(finished.code(), Some(3));
        assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(finished.printed(), "err\nout");
    }

    #[test]
    fn the_whole_group_is_killed() {
        let directory = tempfile::tempdir().unwrap();
        let pid = directory.path().join("pid");
        let script = format!("sleep 600 & echo $! > {}; echo begun; wait", pid.display());
        let finished = sh(&script, Duration::from_secs(3));
        assert!(finished.status.is_none());
        assert_eq!(finished.stdout, "begun\n");
        assert!(finished.wall < PATIENCE);
        let pid = std::fs::read_to_string(&pid).unwrap();
        // On a busy machine what was killed takes a while to notice it.
        wait_until("the orphan no longer runs", || !processes::runs(pid.trim()));
    }

    #[test]
    fn much_output_neither_blocks_nor_is_kept() {
        let finished = sh("head -c 3000000 /dev/zero", PATIENCE);
        assert!(finished.success());
        assert_eq!(finished.stdout.len(), OUTPUT_LIMIT);
    }

    #[test]
    fn tails_begin_with_a_line() {
        assert_eq!(tail("one\ntwo\nthree", 7), "three");
        assert_eq!(tail("äöü", 3), "ü");
        assert_eq!(tail("short", 99), "short");
    }
}
