//! What is left of processes.

use std::fs;

/// Whether a process runs. One that has ended doesn't, though its number may stand in `/proc` until its parent, or what has
/// taken the place of its parent, asks for its end.
pub fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state stands behind the name, which may have blanks and parentheses.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Whether this process, and so each one that it starts, ignores a signal: what runs in the background of a script isn't interrupted.
pub fn ignores(signal: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn what_has_ended_does_not_run() {
        assert!(runs(&std::process::id().to_string()));
        assert!(!runs("no number"));
        let mut child = Command::new("true").spawn().unwrap();
        let pid = child.id().to_string();
        let begin = Instant::now();
        while runs(&pid) {
            assert!(begin.elapsed() < crate::patience::PATIENCE);
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(std::path::Path::new("/proc").join(&pid).exists());
        child.wait().unwrap();
        assert!(!runs(&pid));
    }
}
