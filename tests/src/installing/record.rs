//! What is written down of a try: `tests/install/record.json`.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::workspace;

/// What makes it.
pub const COMMAND: &str = ".ci/package try";

/// All that was tried on one machine.
#[derive(Debug, Deserialize, Serialize)]
pub struct Record {
    /// The version of gridfuse.
    pub version: String,
    /// The platform, in Rust's words.
    pub platform: String,
    /// The system, as it calls itself.
    pub system: String,
    /// How many processors there are.
    pub processors: usize,
    /// The packages that were made, with the sum of the archives.
    pub packages: Vec<Package>,
    /// The routes.
    pub routes: Vec<Route>,
}

/// A file that a release has.
#[derive(Debug, Deserialize, Serialize)]
pub struct Package {
    /// Its name.
    pub file: String,
    /// Its size.
    pub bytes: u64,
}

/// A way to install, and how that went.
#[derive(Debug, Deserialize, Serialize)]
pub struct Route {
    /// What does it: `pip`.
    pub tool: String,
    /// What the tool says of its version.
    pub tool_version: String,
    /// The commands, as they were run. The packages are in `packages/`.
    pub commands: Vec<String>,
    /// The packages that were there.
    pub packages: Vec<String>,
    /// The load of the machine when that began: what else it did.
    #[serde(default)]
    pub load: f64,
    /// How long the commands took.
    pub seconds: f64,
    /// How long the first `gridfuse check` took.
    pub check_seconds: f64,
    /// What was installed, in bytes.
    pub installed_bytes: u64,
    /// The ids of what `gridfuse check` found.
    pub findings: Vec<String>,
    /// Licences that were installed, or are in the package.
    pub licences: Vec<String>,
    /// The first line of the runtime header that a rewrite with the installed program put beside the code.
    pub header: String,
    /// How it was taken away again, and what was left.
    pub removed: Option<String>,
}

/// Where it is.
pub fn path() -> PathBuf {
    workspace::root().join("tests/install/record.json")
}

impl Record {
    /// What was written down last.
    pub fn read() -> Result<Record, String> {
        let path = path();
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}: run {COMMAND}", path.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Writes it down.
    pub fn write(&self) -> Result<(), String> {
        let path = path();
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        let directory = path.parent().ok_or("the record has no directory")?;
        fs::create_dir_all(directory)
            .and_then(|()| fs::write(&path, text + "\n"))
            .map_err(|error| format!("{}: {error}", path.display()))
    }
}
