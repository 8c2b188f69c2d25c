//! Running compilers and measured programs: in a process group of their own, with a time limit.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How much of what a program prints is read back, in bytes.
const MOST_PRINTED: u64 = 16 << 20;

/// How a program ended.
#[derive(Debug)]
pub struct Finished {
    /// `None`: it ran past its limit and was killed.
    pub status: Option<ExitStatus>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Finished {
    /// It ended by itself and reported success.
    pub fn success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// The last lines of what it printed, standard error before standard output.
    pub fn last_words(&self) -> String {
        let said = [self.stderr.trim(), self.stdout.trim()];
        let lines: Vec<&str> = said.iter().flat_map(|text| text.lines()).collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }
}

/// What runs now.
struct Running {
    /// Process groups.
    groups: Vec<u32>,
    /// The user has given up: nothing more is started.
    given_up: bool,
}

static RUNNING: Mutex<Running> = Mutex::new(Running {
    groups: Vec::new(),
    given_up: false,
});

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The user has given up: kills whatever runs. From now on [`run`] fails, so that what is under way comes to its end and cleans up.
pub fn give_up() {
    let mut running = running();
    running.given_up = true;
    for group in &running.groups {
        kill_group(*group);
    }
}

/// [`give_up`] was called.
pub fn given_up() -> bool {
    running().given_up
}

/// Starts a process, unless the user has given up: none may slip through between.
fn start(command: &mut Command) -> io::Result<Child> {
    let mut running = running();
    if running.given_up {
        return Err(io::Error::new(io::ErrorKind::Interrupted, "given up"));
    }
    let child = command.spawn()?;
    running.groups.push(child.id());
    #[cfg(unix)]
    super::guard::begins(child.id());
    Ok(child)
}

/// Runs a command to its end, or kills it and all that it started after `limit`. What it prints goes through files
/// in `scratch`, so that no pipe can fill up or be held open by a process that survives.
pub fn run(command: &mut Command, scratch: &Path, limit: Duration) -> io::Result<Finished> {
    own_group(command);
    let (out, err) = (scratch.join("stdout.txt"), scratch.join("stderr.txt"));
    command
        .stdin(Stdio::null())
        .stdout(File::create(&out)?)
        .stderr(File::create(&err)?);
    let begin = Instant::now();
    let mut child = start(command)?;
    let ended = wait(&mut child, begin, limit);
    // Whatever it left behind would disturb the next run.
    kill_group(child.id());
    if !matches!(ended, Ok(Some(_))) {
        let _ = child.kill();
        // A process with work on the GPU may take a while to die; the next run must not meet it.
        let patience = Instant::now() + Duration::from_secs(30);
        while matches!(child.try_wait(), Ok(None)) && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    running().groups.retain(|group| *group != child.id());
    #[cfg(unix)]
    super::guard::ends(child.id());
    Ok(Finished {
        status: ended?,
        stdout: printed(&out),
        stderr: printed(&err),
    })
}

fn wait(child: &mut Child, start: Instant, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let left = limit.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok(None);
        }
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

fn printed(path: &Path) -> String {
    use std::io::Read;
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        // What can't be read counts as not printed.
        let _ = file.take(MOST_PRINTED).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(unix)]
fn own_group(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
}

/// Kills what is left of a process group.
#[cfg(unix)]
pub fn kill_group(group: u32) {
    use nix::sys::signal::{Signal, killpg};
    use nix::unistd::Pid;
    if let Ok(group) = i32::try_from(group) {
        // It fails when nothing of the group is left, as it should be.
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
}

#[cfg(not(unix))]
fn own_group(_: &mut Command) {}

#[cfg(not(unix))]
fn kill_group(_: u32) {}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> io::Result<Finished> {
        let scratch = tempfile::tempdir()?;
        run(Command::new("sh").args(["-c", script]), scratch.path(), limit)
    }

    #[test]
    fn output_and_status() -> io::Result<()> {
        let done = shell("echo out; echo err >&2; exit 3", Duration::from_secs(60))?;
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(done.status.and_then(|status| status.code()), Some(3));
        assert_eq!(done.last_words(), "err\nout");
        Ok(())
    }

    #[test]
    fn a_hung_program_and_its_children_are_killed() -> io::Result<()> {
        let start = Instant::now();
        let done = shell("echo started; sleep 600 & sleep 600", Duration::from_millis(300))?;
        assert!(done.status.is_none() && start.elapsed() < Duration::from_secs(20));
        assert_eq!(done.stdout, "started\n");
        Ok(())
    }
}
