//! What is known of a search that is under way, so that it can go on after an interruption: a file in the user's state directory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::space::Point;
use crate::measure::report::Agreement;
use crate::measure::state_directory;
use crate::measure::{fingerprint, lock};

/// Version of the file; another one's files are begun anew.
const VERSION: u32 = 1;

/// What a search depends on: it goes on only where all of this is the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The program's file.
    pub file: PathBuf,
    /// Of its code.
    pub fingerprint: u64,
    /// The GPU.
    pub gpu: String,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// What else tells programs apart: flags of the compiler, the launches that are tuned, where it runs.
    pub settings: Vec<String>,
}

/// Why a point is out of the race.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum GivenUp {
    /// No launch could be rewritten.
    Refused {
        /// Why.
        reasons: Vec<String>,
    },
    /// nvcc refused it.
    NotBuilt {
        /// What nvcc said.
        message: String,
    },
    /// It crashed, or ended otherwise than the original.
    Failed {
        /// What happened.
        message: String,
    },
    /// It can't be the best any more, or it ran past the limit.
    Slow,
}

/// What is known of a point.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tried {
    /// GPU time of each run in ms.
    pub times_ms: Vec<f64>,
    /// Launches by the host that were timed in one run.
    pub host_launches: usize,
    /// Launches by device code in one run, when it was compared.
    pub device_launches: Option<u64>,
    /// The least time that a run of the program took from its beginning to its end, in seconds.
    pub seconds: Option<f64>,
    /// It's out of the race.
    pub given_up: Option<GivenUp>,
    /// How it compares with the original; `None`: not compared.
    pub agreement: Option<Agreement>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    version: u32,
    key: Key,
    points: BTreeMap<String, Tried>,
}

/// What is known of points.
pub type Known = BTreeMap<Point, Tried>;

/// The file. While it's held, no other process tunes the same.
pub struct State {
    path: PathBuf,
    key: Key,
    _lock: File,
}

impl State {
    /// Opens the file of a search. `Ok(None)`: there is no place for such files, so nothing is remembered. `Err`: a sentence.
    pub fn open(key: Key) -> Result<Option<(State, Known)>, String> {
        match state_directory::directory("tuning") {
            Some(directory) => State::open_in(&directory, key).map(Some),
            None => Ok(None),
        }
    }

    fn open_in(directory: &Path, key: Key) -> Result<(State, Known), String> {
        let name = key.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = serde_json::to_string(&key).map_err(|error| format!("cannot remember the search: {error}"))?;
        let path = directory.join(format!("{name}-{:016x}.json", fingerprint::of_text(&text)));
        let lock = match lock::try_beside(&path) {
            Ok(Some(lock)) => lock,
            Ok(None) => {
                return Err(format!(
                    "{} is being tuned by another process: wait for it, or end it",
                    key.file.display()
                ));
            }
            Err(error) => return Err(format!("cannot remember the search in {}: {error}", path.display())),
        };
        let saved = std::fs::read(&path)
            .ok()
            .and_then(|text| serde_json::from_slice::<Saved>(&text).ok())
            // What can't be read is measured again.
            .filter(|saved| saved.version == VERSION && saved.key == key);
        let points = saved.map_or_else(BTreeMap::new, |saved| {
            let points = saved.points.into_iter();
            points
                .filter_map(|(name, tried)| Some((Point::parse(&name)?, tried)))
                .collect()
        });
        let state = State { path, key, _lock: lock };
        Ok((state, points))
    }

    /// Writes down what is known, in one step.
    pub fn save(&self, points: &Known) -> io::Result<()> {
        let saved = Saved {
            version: VERSION,
            key: self.key.clone(),
            points: points
                .iter()
                .map(|(point, tried)| (point.to_string(), tried.clone()))
                .collect(),
        };
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let mut temporary = tempfile::NamedTempFile::new_in(directory)?;
        serde_json::to_writer(&mut temporary, &saved)?;
        temporary.flush()?;
        temporary.persist(&self.path)?;
        Ok(())
    }

    /// The search is at its end: the next one begins anew.
    pub fn forget(self) {
        // Where it can't be removed the next search is a short one.
        let _ = std::fs::remove_file(&self.path);
        lock::remove_beside(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key {
            file: "/x/a.cu".into(),
            fingerprint: 7,
            gpu: "NVIDIA H200".to_owned(),
            args: vec!["--n".to_owned()],
            settings: Vec::new(),
        }
    }

    #[test]
    fn a_search_goes_on() -> Result<(), String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let (state, points) = State::open_in(directory.path(), key())?;
        assert!(points.is_empty());
        let point = Point {
            threshold: Some(64),
            ..Point::default()
        };
        let tried = Tried {
            times_ms: vec![1.5],
            ..Tried::default()
        };
        let known = BTreeMap::from([(point, tried)]);
        state.save(&known).map_err(|error| error.to_string())?;
        // Two at once would disturb each other.
        let second = State::open_in(directory.path(), key());
        assert!(second.is_err_and(|message| message.contains("another process")));
        drop(state);
        let other = Key {
            fingerprint: 8,
            ..key()
        };
        assert!(State::open_in(directory.path(), other)?.1.is_empty());
        let (state, points) = State::open_in(directory.path(), key())?;
        assert_eq!(points.get(&point).map(|tried| tried.times_ms.clone()), Some(vec![1.5]));
        let path = state.path.clone();
        std::fs::write(&path, "{").map_err(|error| error.to_string())?;
        drop(state);
        let (state, points) = State::open_in(directory.path(), key())?;
        assert!(points.is_empty());
        state.forget();
        assert!(!path.exists());
        Ok(())
    }
}
