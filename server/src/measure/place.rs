//! Where programs are built and run: on this machine, or on another one.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::nvcc;
use super::process::{self, Finished};
use super::remote::Remote;

/// A machine.
pub enum Place {
    /// This one.
    Here,
    /// Another one.
    There(Box<Remote>),
}

impl Place {
    /// This machine, or where a runner leads; `scratch`: what is in this directory can be sent there.
    pub fn new(runner: Option<&str>, scratch: &Path) -> Result<Place, String> {
        match runner {
            None => Ok(Place::Here),
            Some(line) => Remote::connect(line, scratch).map(|remote| Place::There(Box::new(remote))),
        }
    }

    /// Runs a command to its end, or kills it and all that it started after `limit`. What it prints goes through files in `scratch`.
    /// `send`: what it needs, of what lies in the scratch directory; `fetch`: what it may leave.
    pub fn run(
        &self,
        command: &mut Command,
        scratch: &Path,
        limit: Duration,
        send: Option<&Path>,
        fetch: &[&Path],
    ) -> io::Result<Finished> {
        match self {
            Place::Here => process::run(command, scratch, limit),
            Place::There(remote) => {
                if process::given_up() {
                    return Err(io::Error::new(io::ErrorKind::Interrupted, "given up"));
                }
                if let Some(send) = send {
                    remote.send(send)?;
                }
                remote.run(command, limit, fetch)
            }
        }
    }

    /// Sends a file there.
    pub fn send(&self, file: &Path) -> Result<(), String> {
        match self {
            Place::Here => Ok(()),
            Place::There(remote) => remote.send(file).map_err(|error| error.to_string()),
        }
    }

    /// Something that was built is there.
    pub fn is_file(&self, path: &Path) -> bool {
        match self {
            Place::Here => path.is_file(),
            Place::There(remote) => remote.is_file(path),
        }
    }

    /// The compiler, and directories with its libraries where it may not look by itself.
    pub fn find_nvcc(&self, given: Option<&Path>) -> Result<(PathBuf, Vec<PathBuf>), String> {
        match self {
            Place::Here => {
                let nvcc = nvcc::find(given)?;
                let libraries = nvcc::library_dirs(&nvcc);
                Ok((nvcc, libraries))
            }
            Place::There(remote) => remote.find_nvcc(given),
        }
    }

    /// So many builds run side by side.
    pub fn cores(&self) -> usize {
        match self {
            Place::Here => std::thread::available_parallelism().map_or(1, usize::from),
            Place::There(remote) => remote.cores.clamp(1, 64),
        }
    }

    /// The CUDA_VISIBLE_DEVICES of programs.
    pub fn visible_devices(&self) -> String {
        match self {
            Place::Here => std::env::var("CUDA_VISIBLE_DEVICES").unwrap_or_default(),
            Place::There(remote) => remote.visible_devices.clone(),
        }
    }
}
