//! A process that outlives the measuring one, even when that is killed without a chance to clean up: it ends the programs that are
//! left then, and removes the scratch files. It learns what there is through its standard input, and that the measuring process is
//! gone by the end of that.
//!
//! | line | |
//! |---|---|
//! | `scratch PATH` | a directory to remove |
//! | `starting MARK` | a process that is about to be started has this mark in its environment |
//! | `begin ID MARK` | the process group that it is the first of |
//! | `end ID` | it is gone |

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::SCRATCH_PREFIX;
use super::process::kill_group;

/// The command of this program that guards.
pub const COMMAND: &str = "guard";

/// Killed programs with work on the GPU take a while to die, and may write files until then.
const PATIENCE: Duration = Duration::from_secs(10);

/// The guard; its standard input stays open as long as this process lives.
static GUARD: Mutex<Option<Child>> = Mutex::new(None);

/// Has a scratch directory removed when this process is killed. Without a guard it's only less tidy.
pub fn protect(scratch: &Path) {
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    if guard.is_none() {
        *guard = start();
    }
    drop(guard);
    let mut line = b"scratch ".to_vec();
    line.extend(scratch.as_os_str().as_bytes());
    tell(&line);
}

/// The environment variable with the mark of a process.
const MARK: &str = "GRIDFUSE_GUARDED";

/// Says that a command is about to be started. Its process may run before [`begins`] is called, and this one may be killed in between:
/// then the mark that the command gets tells which it is. Returns the mark.
pub fn announce(command: &mut Command) -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let mark = format!("{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    tell(format!("starting {mark}").as_bytes());
    command.env(MARK, &mark);
    mark
}

/// A process group runs; its first process has this mark.
pub fn begins(group: u32, mark: &str) {
    tell(format!("begin {group} {mark}").as_bytes());
}

/// It's gone.
pub fn ends(group: u32) {
    tell(format!("end {group}").as_bytes());
}

fn tell(line: &[u8]) {
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    let input = guard.as_mut().and_then(|guard| guard.stdin.as_mut());
    let failed = input.is_some_and(|input| input.write_all(&[line, b"\n"].concat()).is_err());
    if failed {
        *guard = None;
    }
}

fn start() -> Option<Child> {
    // The program that runs, even when a newer one has taken its place on disk.
    let running = Path::new("/proc/self/exe");
    let program = match running.exists() {
        true => running.to_path_buf(),
        false => std::env::current_exe().ok()?,
    };
    Command::new(program)
        .arg(COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // What is sent to the group of this process, from a terminal or by an editor, doesn't concern it.
        .process_group(0)
        .current_dir("/")
        .spawn()
        .ok()
}

/// Guards the process at the other end of standard input.
pub fn watch() {
    let (mut scratch, mut groups): (Vec<PathBuf>, BTreeSet<u32>) = Default::default();
    let mut starting: BTreeSet<Vec<u8>> = BTreeSet::new();
    for line in BufReader::new(io::stdin().lock()).split(b'\n') {
        let Ok(line) = line else { break };
        let number = |word: &[u8]| std::str::from_utf8(word).ok()?.parse::<u32>().ok().filter(|id| *id > 1);
        if let Some(path) = line.strip_prefix(b"scratch ") {
            scratch.push(PathBuf::from(OsStr::from_bytes(path)));
        } else if let Some(mark) = line.strip_prefix(b"starting ") {
            starting.insert(mark.to_vec());
        } else if let Some(begun) = line.strip_prefix(b"begin ") {
            let mut words = begun.splitn(2, |byte| *byte == b' ');
            groups.extend(words.next().and_then(number));
            if let Some(mark) = words.next() {
                starting.remove(mark);
            }
        } else if let Some(group) = line.strip_prefix(b"end ").and_then(number) {
            groups.remove(&group);
        }
    }
    // Standard input ends when nobody holds its other end any more: what was being started has its environment by then.
    groups.extend(starting.iter().flat_map(|mark| groups_marked(mark)));
    for group in groups {
        kill_group(group);
    }
    // Nothing else is removed, whatever is said.
    let own = |path: &PathBuf| {
        let name = path.file_name().map(OsStr::as_bytes);
        path.is_absolute() && name.is_some_and(|name| name.starts_with(SCRATCH_PREFIX.as_bytes()))
    };
    let deadline = Instant::now() + PATIENCE;
    for path in scratch.iter().filter(|path| own(path)) {
        while path.exists() && std::fs::remove_dir_all(path).is_err() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The process groups of the processes with this mark. (Where there is no `/proc`, none is found.)
fn groups_marked(mark: &[u8]) -> Vec<u32> {
    let wanted = [MARK.as_bytes(), b"=", mark].concat();
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let marked = processes.flatten().filter_map(|process| {
        let id: i32 = process.file_name().to_str()?.parse().ok()?;
        let environment = std::fs::read(process.path().join("environ")).ok()?;
        let own = environment.split(|byte| *byte == 0).any(|variable| variable == wanted);
        let group = own.then(|| nix::unistd::getpgid(Some(nix::unistd::Pid::from_raw(id))).ok())??;
        u32::try_from(group.as_raw()).ok().filter(|group| *group > 1)
    });
    marked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::process::own_group;

    #[test]
    fn a_process_that_nobody_named_is_found_by_its_mark() -> io::Result<()> {
        let mut command = Command::new("sleep");
        own_group(command.arg("600"));
        let mark = announce(&mut command);
        let mut child = command.spawn()?;
        // Until the new program has begun, its environment is that of this one.
        let begin = Instant::now();
        let mut found = Vec::new();
        while found.is_empty() && begin.elapsed() < Duration::from_secs(300) {
            found = groups_marked(mark.as_bytes());
        }
        child.kill()?;
        child.wait()?;
        assert_eq!(found, [child.id()]);
        assert!(groups_marked(b"no such mark").is_empty());
        Ok(())
    }
}
