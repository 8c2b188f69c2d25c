//! A process that outlives the measuring one, even when that is killed without a chance to clean up: it ends the programs that are
//! left then, and removes the scratch files. It learns what there is through its standard input, and that the measuring process is
//! gone by the end of that.
//!
//! | line | |
//! |---|---|
//! | `scratch PATH` | a directory to remove |
//! | `begin ID` | a process group that runs |
//! | `end ID` | it is gone |

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
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

/// A process group runs.
pub fn begins(group: u32) {
    tell(format!("begin {group}").as_bytes());
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
    for line in BufReader::new(io::stdin().lock()).split(b'\n') {
        let Ok(line) = line else { break };
        let number = |word: &[u8]| std::str::from_utf8(word).ok()?.parse::<u32>().ok().filter(|id| *id > 1);
        if let Some(path) = line.strip_prefix(b"scratch ") {
            scratch.push(PathBuf::from(OsStr::from_bytes(path)));
        } else if let Some(group) = line.strip_prefix(b"begin ").and_then(number) {
            groups.insert(group);
        } else if let Some(group) = line.strip_prefix(b"end ").and_then(number) {
            groups.remove(&group);
        }
    }
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
