//! What is known of a search that is under way, so that it can go on after an interruption: a file in the user's state directory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cost::Cost;
use super::race::Tries;
use super::space::Point;
use crate::measure::report::{Agreement, Kernel};
use crate::measure::state_directory;
use crate::measure::{fingerprint, lock};

/// Version of the file; another one's files are begun anew.
const VERSION: u32 = 2;

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
    /// What its kernels need, when it was compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<Kernel>,
    /// The least time that a run of the program took from its beginning to its end, in seconds.
    pub seconds: Option<f64>,
    /// It's out of the race.
    pub given_up: Option<GivenUp>,
    /// How it compares with the original; `None`: not compared.
    pub agreement: Option<Agreement>,
    /// How long it ran to be compared, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_seconds: Option<f64>,
}

/// What is known of a search.
#[derive(Debug, Default)]
pub struct Saved {
    /// Of the points that it has tried.
    pub tried: Tries,
    /// Of those that were measured because all are.
    pub swept: Tries,
    /// What the search took.
    pub search: Cost,
    /// What measuring all points took.
    pub sweep: Cost,
}

/// The file's content.
#[derive(Debug, Serialize, Deserialize)]
struct Content {
    version: u32,
    key: Key,
    points: BTreeMap<String, Tried>,
    swept: BTreeMap<String, Tried>,
    search: Cost,
    sweep: Cost,
}

/// By names.
fn named(tries: &Tries) -> BTreeMap<String, Tried> {
    let points = tries.iter();
    points
        .map(|(point, tried)| (point.to_string(), tried.clone()))
        .collect()
}

/// By points.
fn tries(named: BTreeMap<String, Tried>) -> Tries {
    let points = named.into_iter();
    points
        .filter_map(|(name, tried)| Some((Point::parse(&name)?, tried)))
        .collect()
}

/// How long to wait for another search of the same file to end: one that was cancelled takes a while.
const PATIENCE: Duration = Duration::from_secs(10);

/// The file. While it's held, no other process tunes the same.
pub struct State {
    path: PathBuf,
    key: Key,
    _lock: File,
}

impl State {
    /// Opens the file of a search. `Ok(None)`: there is no place for such files, so nothing is remembered. `Err`: a sentence.
    pub fn open(key: Key) -> Result<Option<(State, Saved)>, String> {
        match state_directory::directory("tuning") {
            Some(directory) => State::open_in(&directory, key, PATIENCE).map(Some),
            None => Ok(None),
        }
    }

    fn open_in(directory: &Path, key: Key, patience: Duration) -> Result<(State, Saved), String> {
        let name = key.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = serde_json::to_string(&key).map_err(|error| format!("cannot remember the search: {error}"))?;
        let path = directory.join(format!("{name}-{:016x}.json", fingerprint::of_text(&text)));
        let lock = match lock::try_beside(&path, patience) {
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
            .and_then(|text| serde_json::from_slice::<Content>(&text).ok())
            // What can't be read is measured again.
            .filter(|saved| saved.version == VERSION && saved.key == key);
        let saved = saved.map_or_else(Saved::default, |saved| Saved {
            tried: tries(saved.points),
            swept: tries(saved.swept),
            search: saved.search,
            sweep: saved.sweep,
        });
        let state = State { path, key, _lock: lock };
        Ok((state, saved))
    }

    /// Writes down what is known, in one step.
    pub fn save(&self, tried: &Tries, swept: &Tries, search: Cost, sweep: Cost) -> io::Result<()> {
        let saved = Content {
            version: VERSION,
            key: self.key.clone(),
            points: named(tried),
            swept: named(swept),
            search,
            sweep,
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
        let (state, saved) = State::open_in(directory.path(), key(), Duration::ZERO)?;
        assert!(saved.tried.is_empty() && saved.swept.is_empty());
        let point = Point {
            threshold: Some(64),
            ..Point::default()
        };
        let tried = Tried {
            times_ms: vec![1.5],
            ..Tried::default()
        };
        let known = BTreeMap::from([(point, tried)]);
        let cost = Cost {
            seconds: 7.0,
            ..Cost::default()
        };
        let swept = BTreeMap::from([(Point::default(), Tried::default())]);
        let saved = state.save(&known, &swept, cost, Cost::default());
        saved.map_err(|error| error.to_string())?;
        // Two at once would disturb each other.
        let second = State::open_in(directory.path(), key(), Duration::ZERO);
        assert!(second.is_err_and(|message| message.contains("another process")));
        drop(state);
        let other = Key {
            fingerprint: 8,
            ..key()
        };
        assert!(
            State::open_in(directory.path(), other, Duration::ZERO)?
                .1
                .tried
                .is_empty()
        );
        let (state, saved) = State::open_in(directory.path(), key(), Duration::ZERO)?;
        let times = |point: &Point| saved.tried.get(point).map(|tried: &Tried| tried.times_ms.clone());
        assert_eq!(times(&point), Some(vec![1.5]));
        assert!(saved.swept.contains_key(&Point::default()));
        assert_eq!((saved.search.seconds, saved.sweep.seconds), (7.0, 0.0));
        let path = state.path.clone();
        std::fs::write(&path, "{").map_err(|error| error.to_string())?;
        drop(state);
        let (state, saved) = State::open_in(directory.path(), key(), Duration::ZERO)?;
        assert!(saved.tried.is_empty());
        state.forget();
        assert!(!path.exists());
        Ok(())
    }
}
