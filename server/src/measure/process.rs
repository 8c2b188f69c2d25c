//! Running compilers and measured programs: in a process group of their own, with a time limit.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How much of what a program prints is read back, in bytes.
pub const MOST_PRINTED: u64 = 16 << 20;

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
    /// Process groups that are about to connect to another machine.
    connecting: Vec<u32>,
    /// The user has given up: nothing more is started.
    given_up: bool,
}

static RUNNING: Mutex<Running> = Mutex::new(Running {
    groups: Vec::new(),
    connecting: Vec::new(),
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
    // They may be in a queue for long.
    for group in &running.connecting {
        end_group(*group);
    }
}

/// Starts a process that connects to another machine, unless the user has given up. Until it is [`connected`], [`give_up`] asks it to
/// end.
pub fn start_session(command: &mut Command) -> io::Result<Child> {
    let mut running = running();
    if running.given_up {
        return Err(io::Error::new(io::ErrorKind::Interrupted, "given up"));
    }
    let child = command.spawn()?;
    running.connecting.push(child.id());
    Ok(child)
}

/// It's connected: from now on it ends with its input, after it has told the other machine.
pub fn connected(child: &Child) {
    running().connecting.retain(|group| *group != child.id());
}

/// Waits for the end of a process that has been told to end, asks it once more, and kills it at last.
pub fn end_session(child: &mut Child, patience: Duration) {
    drop(child.stdin.take());
    connected(child);
    for end in [end_group, kill_group] {
        let begin = Instant::now();
        while begin.elapsed() < patience {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        end(child.id());
    }
    // It's dead soon, or can't be killed by anyone.
    let _ = child.try_wait();
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
    #[cfg(unix)]
    let mark = super::guard::announce(command);
    let child = command.spawn()?;
    running.groups.push(child.id());
    #[cfg(unix)]
    super::guard::begins(child.id(), &mark);
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

/// Makes a command the first process of a group.
#[cfg(unix)]
pub fn own_group(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
}

/// Kills what is left of a process group.
#[cfg(unix)]
pub fn kill_group(group: u32) {
    signal_group(group, nix::sys::signal::Signal::SIGKILL);
}

#[cfg(unix)]
fn end_group(group: u32) {
    signal_group(group, nix::sys::signal::Signal::SIGTERM);
}

#[cfg(unix)]
fn signal_group(group: u32, signal: nix::sys::signal::Signal) {
    if let Ok(group) = i32::try_from(group) {
        // It fails when nothing of the group is left, as it should be.
        let _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(group), signal);
    }
}

/// Makes a command the first process of a group.
#[cfg(not(unix))]
pub fn own_group(_: &mut Command) {}

#[cfg(not(unix))]
fn kill_group(_: u32) {}

#[cfg(not(unix))]
fn end_group(_: u32) {}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> io::Result<Finished> {
        let scratch = tempfile::tempdir()?;
        run(Command::new("sh").args(["-c", script]), scratch.path(), limit)
    }

    #[test]
    fn output_and_status() -> io::Result<()> {
        let done = shell("echo out; echo err >&2; exit 3", Duration::from_secs(300))?;
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(done.status.and_then(|status| status.code()), Some(3));
        assert_eq!(done.last_words(), "err\nout");
        Ok(())
    }

    #[test]
    fn a_hung_program_and_its_children_are_killed() -> io::Result<()> {
        let start = Instant::now();
        let done = shell("echo started; sleep 600 & sleep 600", Duration::from_secs(3))?;
        assert!(done.status.is_none() && start.elapsed() < Duration::from_secs(300));
        assert_eq!(done.stdout, "started\n");
        Ok(())
    }
}
