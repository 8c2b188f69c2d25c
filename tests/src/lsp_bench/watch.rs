//! Processor time, memory and idleness of another process.
//!
//! The time is that of the process' own clock (`clock_getcpuclockid`): it is exact to the nanosecond, grows only, and counts threads
//! that have ended as well. `/proc/PID/task/*/schedstat` forgets those, and `/proc/PID/stat` counts in steps of 10 ms.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;

/// A process that is watched.
#[derive(Debug, Clone, Copy)]
pub struct Watched {
    pid: u32,
    clock: ClockId,
}

/// What a process has in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Now, in KiB.
    pub resident: u64,
    /// The most so far, in KiB.
    pub peak: u64,
}

impl Watched {
    /// Watches a process.
    ///
    /// # Errors
    /// When there is none with this number.
    pub fn new(pid: u32) -> Result<Watched> {
        let number = i32::try_from(pid).context("no number of a process")?;
        let clock = clock_getcpuclockid(Pid::from_raw(number)).context("the process has no clock")?;
        Ok(Watched { pid, clock })
    }

    /// The processor time of all its threads so far; `None` when it has ended.
    pub fn cpu(&self) -> Option<Duration> {
        self.clock.now().ok().map(Duration::from)
    }

    /// Its memory; `None` when it has ended.
    pub fn memory(&self) -> Option<Memory> {
        memory(&fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?)
    }

    /// Whether all of its threads wait for something that isn't the processor or a disk.
    pub fn sleeps(&self) -> bool {
        let Ok(tasks) = fs::read_dir(format!("/proc/{}/task", self.pid)) else {
            return true;
        };
        let busy = |stat: &str| {
            // The state stands behind the name, which may have blanks and parentheses.
            let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
            matches!(state, Some('R' | 'D'))
        };
        !tasks
            .flatten()
            .filter_map(|task| fs::read_to_string(task.path().join("stat")).ok())
            .any(|stat| busy(&stat))
    }
}

fn memory(status: &str) -> Option<Memory> {
    let number = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some(Memory {
        resident: number("VmRSS:")?,
        peak: number("VmHWM:")?,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use super::*;

    #[test]
    fn threads_that_have_ended_count() {
        let watched = Watched::new(std::process::id()).unwrap();
        let before = watched.cpu().unwrap();
        let worker = std::thread::spawn(|| {
            let own = ClockId::CLOCK_THREAD_CPUTIME_ID;
            while Duration::from(own.now().unwrap()) < Duration::from_millis(30) {}
        });
        worker.join().unwrap();
        assert!(watched.cpu().unwrap() - before >= Duration::from_millis(30));
    }

    #[test]
    fn a_process_that_waits_sleeps_and_one_that_has_ended_has_no_time() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let watched = Watched::new(child.id()).unwrap();
        let begin = Instant::now();
        while !watched.sleeps() {
            assert!(begin.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(watched.memory().unwrap().peak > 0);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(watched.cpu(), None);
        assert_eq!(watched.memory(), None);
    }

    #[test]
    fn the_memory_of_a_status() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(
            memory(status),
            Some(Memory {
                resident: 1024,
                peak: 2048
            })
        );
        assert_eq!(memory("Name:\tx\n"), None);
    }
}
