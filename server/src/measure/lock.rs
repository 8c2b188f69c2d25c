//! Locks beside files that several processes may change: `NAME.lock`, which goes with the process that holds it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn place(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

fn open(path: &Path) -> io::Result<File> {
    let lock = place(path);
    if let Some(directory) = lock.parent() {
        std::fs::create_dir_all(directory)?;
    }
    File::options().create(true).truncate(false).write(true).open(lock)
}

/// Waits until no other process holds the lock beside a file. It is held until the result is dropped.
pub fn beside(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    file.lock()?;
    Ok(file)
}

/// The same without waiting for longer than `patience`; `None`: another process still holds it.
pub fn try_beside(path: &Path, patience: Duration) -> io::Result<Option<File>> {
    let begin = Instant::now();
    loop {
        let file = open(path)?;
        match file.try_lock() {
            // The process that held it before may have removed it meanwhile.
            Ok(()) if is_still(&file, &place(path)) => return Ok(Some(file)),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if begin.elapsed() >= patience => return Ok(None),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Removes the lock beside a file. Only who holds it may do so, and only where all others use [`try_beside`].
pub fn remove_beside(path: &Path) {
    // One that is left behind does no harm.
    let _ = std::fs::remove_file(place(path));
}

#[cfg(unix)]
fn is_still(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let number = |data: std::fs::Metadata| (data.dev(), data.ino());
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(own), Ok(there)) => number(own) == number(there),
        _ => false,
    }
}

/// An open file can't be removed there.
#[cfg(not(unix))]
fn is_still(_: &File, _: &Path) -> bool {
    true
}
