//! What was measured before: a file for each measured program in the user's state directory, far from the sources.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::fingerprint;
use super::kernels::{of, of_outcome};
use super::lock;
use super::phrases::{milliseconds, times};
use super::report::{Agreement, Kernel, Outcome, Report};
use super::state_directory;
use super::tune::report::TuneReport;
use super::tune::space::Point;

/// Version of the file; another one's files are left alone.
const VERSION: u32 = 1;

/// Older measurements than so many are forgotten.
const MOST_ENTRIES: usize = 100;

/// The measurements of a program, the latest last.
#[derive(Debug, Serialize, Deserialize)]
pub struct History {
    version: u32,
    /// The program's file.
    file: PathBuf,
    entries: Vec<Entry>,
}

/// A measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// When, in seconds since 1970.
    at: u64,
    /// Of the code.
    fingerprint: u64,
    /// Of code for which it holds as well: what a search has made of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    also: Vec<u64>,
    /// Where.
    gpu: String,
    /// Arguments of the program.
    args: Vec<String>,
    /// Options of the rewrites.
    set: Vec<(String, String)>,
    /// The functions whose launches were rewritten.
    functions: Vec<String>,
    original_ms: Option<f64>,
    /// The original did not finish in so many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    original_timed_out: Option<f64>,
    /// What the original's kernels need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    original_kernels: Vec<Kernel>,
    variants: Vec<Past>,
}

/// A rewritten program of a measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Past {
    rewrites: String,
    median_ms: f64,
    /// It computed the same as the original; `None`: it could not be compared.
    agrees: Option<bool>,
    /// What its kernels need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    kernels: Vec<Kernel>,
    /// It's the fastest that a search has found.
    #[serde(default, skip_serializing_if = "is_false")]
    tuned: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// What was measured of a rewrite last.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The rewrites, with their options: `threshold (threshold=64)`.
    pub rewrites: String,
    /// GPU time in ms.
    pub median_ms: f64,
    /// How many times as fast as the original.
    pub speedup: Option<f64>,
    /// The original did not finish in so many seconds.
    pub original_timed_out: Option<f64>,
    /// A search has found it.
    pub tuned: bool,
    /// It computed the same as the original; `None`: it could not be compared.
    pub agrees: Option<bool>,
    /// The GPU.
    pub gpu: String,
    /// The program's arguments.
    pub args: Vec<String>,
    /// The code is still the same.
    pub current: bool,
    /// `2 days ago`
    pub ago: String,
    /// What the function needs as a kernel: with the rewrites, and in the original; `None`: not known.
    pub needs: [Option<Kernel>; 2],
}

impl Measured {
    /// `32 registers, 1,536 resident threads with aggregate-block; 24 registers, 2,048 resident threads as it was`
    pub fn occupancy(&self) -> Option<String> {
        let [Some(with), as_it_was] = &self.needs else {
            return None;
        };
        let mut text = format!("{} with {}", with.needs(), self.rewrites);
        match as_it_was {
            Some(before) if before.needs() == with.needs() => text += ", the same as before",
            Some(before) => text += &format!("; {} before", before.needs()),
            None => {}
        }
        Some(text)
    }

    /// `aggregate-block: 41.0× on NVIDIA H200, 2 days ago, code unchanged since`
    pub fn phrase(&self) -> String {
        let speedup = match (self.speedup, self.original_timed_out) {
            _ if self.agrees == Some(false) => "wrong results".to_owned(),
            (Some(speedup), _) => times(speedup),
            (None, Some(seconds)) => format!(
                "{} ms, the original did not finish in {seconds} s,",
                milliseconds(self.median_ms)
            ),
            (None, None) => "no time to compare with".to_owned(),
        };
        let code = if self.current {
            "code unchanged since"
        } else {
            "stale: code changed since"
        };
        let rewrites = &self.rewrites;
        let what = match self.tuned {
            true => format!("tuned: {rewrites}, {speedup}"),
            false => format!("{rewrites}: {speedup}"),
        };
        format!("{what} on {}, {}, {code}", self.gpu, self.ago)
    }
}

/// Why a history can't be used.
#[derive(Debug)]
pub struct Broken {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub why: String,
}

impl Entry {
    /// What a report says; `functions` had their launches rewritten. `None`: nothing ran.
    pub fn new(report: &Report, fingerprint: u64, functions: Vec<String>, set: Vec<(String, String)>) -> Option<Entry> {
        let variants: Vec<Past> = report
            .variants
            .iter()
            .filter_map(|variant| match &variant.outcome {
                Outcome::Ran(run) => Some(Past {
                    rewrites: variant.rewrites.clone(),
                    median_ms: run.median_ms,
                    agrees: match run.agreement {
                        Agreement::Original | Agreement::Agrees { .. } => Some(true),
                        Agreement::Differs(_) | Agreement::PrintsOtherwise { .. } => Some(false),
                        // That it's right by itself is no comparison.
                        Agreement::Unknown { .. } | Agreement::NotShown(_) => None,
                    },
                    tuned: false,
                    kernels: run.kernels.clone(),
                }),
                _ => None,
            })
            .collect();
        (!variants.is_empty()).then(|| Entry {
            at: now(),
            fingerprint,
            also: Vec::new(),
            gpu: report.machine.gpu.clone(),
            args: report.args.clone(),
            set,
            functions,
            original_ms: report.original.median(),
            original_timed_out: match report.original {
                Outcome::TimedOut { seconds } => Some(seconds),
                _ => None,
            },
            original_kernels: of_outcome(&report.original).to_vec(),
            variants,
        })
    }

    /// What a search has found for the launches of `functions`; `fingerprints`: of the code for which that holds, as it was first. `None`:
    /// nothing that computes the same.
    pub fn tuned(report: &TuneReport, fingerprints: &[u64], functions: Vec<String>) -> Option<Entry> {
        let (first, also) = fingerprints.split_first()?;
        let search = &report.search;
        let original_ms = report.original.median();
        let faster = search.speedup.is_some_and(|speedup| speedup > 1.0);
        let (point, median_ms) = match faster {
            true => (Point::parse(search.best.as_deref()?)?, search.best_ms?),
            // It stays as it is.
            false => (Point::default(), original_ms?),
        };
        let original_kernels = of_outcome(&report.original).to_vec();
        let best = report
            .points
            .iter()
            .find(|tried| Some(&tried.point) == search.best.as_ref());
        let kernels = match best.filter(|_| faster) {
            Some(tried) => of_outcome(&tried.outcome).to_vec(),
            None => original_kernels.clone(),
        };
        Some(Entry {
            at: now(),
            fingerprint: *first,
            also: also.to_vec(),
            gpu: report.machine.gpu.clone(),
            args: report.args.clone(),
            set: Vec::new(),
            functions,
            original_ms,
            original_timed_out: None,
            original_kernels,
            variants: vec![Past {
                rewrites: if faster {
                    point.in_words()
                } else {
                    "as it is".to_owned()
                },
                median_ms,
                agrees: Some(true),
                tuned: true,
                kernels,
            }],
        })
    }
}

impl History {
    fn empty(file: &Path) -> History {
        History {
            version: VERSION,
            file: file.to_path_buf(),
            entries: Vec::new(),
        }
    }

    /// The history of the program of `file`; an empty one where nothing was measured.
    pub fn read(file: &Path) -> Result<History, Broken> {
        match place(file) {
            Some(path) => History::read_at(&path, file),
            None => Ok(History::empty(file)),
        }
    }

    fn read_at(path: &Path, file: &Path) -> Result<History, Broken> {
        let broken = |why: String| Broken {
            path: path.to_path_buf(),
            why,
        };
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(History::empty(file)),
            Err(error) => return Err(broken(error.to_string())),
        };
        let history: History = serde_json::from_slice(&text).map_err(|error| broken(error.to_string()))?;
        if history.version != VERSION {
            return Err(broken(format!("it's of version {}", history.version)));
        }
        // Two names may have one number.
        if history.file != file {
            return Ok(History::empty(file));
        }
        Ok(history)
    }

    /// What was measured last of each rewrite of the launches of a function, what holds for the present code first, then the
    /// fastest.
    pub fn of_function(&self, function: &str, fingerprint: impl FnOnce() -> u64) -> Vec<Measured> {
        let mut found: Vec<Measured> = Vec::new();
        if self.entries.is_empty() {
            return found;
        }
        let fingerprint = fingerprint();
        let entries = self.entries.iter().rev();
        for entry in entries.filter(|entry| entry.functions.iter().any(|known| known == function)) {
            for past in &entry.variants {
                let set: Vec<String> = entry
                    .set
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                let rewrites = match set.as_slice() {
                    [] => past.rewrites.clone(),
                    set => format!("{} ({})", past.rewrites, set.join(", ")),
                };
                // Of searches, the last one.
                let same = |known: &Measured| match past.tuned {
                    true => known.tuned,
                    false => !known.tuned && known.rewrites == rewrites,
                };
                if found.iter().any(same) {
                    continue;
                }
                found.push(Measured {
                    rewrites,
                    median_ms: past.median_ms,
                    speedup: entry
                        .original_ms
                        .filter(|_| past.median_ms > 0.0)
                        .map(|original| original / past.median_ms),
                    original_timed_out: entry.original_timed_out,
                    tuned: past.tuned,
                    agrees: past.agrees,
                    gpu: entry.gpu.clone(),
                    args: entry.args.clone(),
                    current: entry.fingerprint == fingerprint || entry.also.contains(&fingerprint),
                    ago: ago(now().saturating_sub(entry.at)),
                    needs: [&past.kernels, &entry.original_kernels].map(|kernels| of(kernels, function).cloned()),
                });
            }
        }
        found.sort_by(|a, b| {
            // What a search has found counts from another beginning, and more: it's what the code should be.
            let rank = |measured: &Measured| (measured.agrees == Some(false), !measured.current, !measured.tuned);
            let speed = |measured: &Measured| measured.speedup.unwrap_or(0.0);
            let time = |measured: &Measured| measured.median_ms;
            rank(a)
                .cmp(&rank(b))
                .then(speed(b).total_cmp(&speed(a)))
                .then(time(a).total_cmp(&time(b)))
        });
        found
    }
}

/// Adds a measurement of the program of `file`. What is wrong is told: a history that can't be read is put aside, and a new one
/// begun.
pub fn add(file: &Path, entry: Entry) -> Option<String> {
    add_at(&place(file)?, file, entry)
}

fn add_at(path: &Path, file: &Path, entry: Entry) -> Option<String> {
    let mut told = None;
    // Another process may be adding one, which must not be lost.
    let lock = lock::beside(path);
    let mut history = History::read_at(path, file).unwrap_or_else(|broken| {
        let aside = path.with_extension("json.broken");
        // Where it can't be moved it's overwritten: it can't be read anyway.
        let _ = std::fs::rename(path, &aside);
        told = Some(format!(
            "the history of measurements in {} can't be read ({}): a new one is begun, the old one is kept as {}",
            broken.path.display(),
            broken.why,
            aside.display()
        ));
        History::empty(file)
    });
    history.entries.push(entry);
    let surplus = history.entries.len().saturating_sub(MOST_ENTRIES);
    history.entries.drain(..surplus);
    if let Err(error) = lock.and_then(|lock| write(path, &history).map(|()| drop(lock))) {
        return Some(format!("the measurement can't be kept in {}: {error}", path.display()));
    }
    told
}

/// In one step: an editor may be reading.
fn write(path: &Path, history: &History) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let mut temporary = tempfile::NamedTempFile::new_in(directory)?;
    serde_json::to_writer(&mut temporary, history)?;
    temporary.flush()?;
    temporary.persist(path)?;
    Ok(())
}

/// Where the history of the program of `file` is: `gridfuse/measurements/NAME-NUMBER.json` in the directory in which the system
/// wants what programs remember. `None`: there is no such directory.
fn place(file: &Path) -> Option<PathBuf> {
    let number = fingerprint::of_text(&file.to_string_lossy());
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    Some(state_directory::directory("measurements")?.join(format!("{name}-{number:016x}.json")))
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// `2 days ago`
fn ago(seconds: u64) -> String {
    let (number, unit) = match seconds {
        0..60 => return "just now".to_owned(),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{number} {unit}{} ago", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::kernels::tests::kernel;

    fn entry(fingerprint: u64, original_ms: f64, variants: &[(&str, f64, Option<bool>)]) -> Entry {
        Entry {
            at: now().saturating_sub(2 * 86_400 + 5),
            fingerprint,
            gpu: "NVIDIA H200".to_owned(),
            args: Vec::new(),
            also: Vec::new(),
            set: Vec::new(),
            functions: vec!["parent".to_owned()],
            original_ms: Some(original_ms),
            original_timed_out: None,
            original_kernels: vec![kernel("parent", 24, 2048)],
            variants: variants
                .iter()
                .map(|(rewrites, median_ms, agrees)| Past {
                    rewrites: (*rewrites).to_owned(),
                    median_ms: *median_ms,
                    agrees: *agrees,
                    tuned: false,
                    kernels: vec![kernel("parent", 32, 1024), kernel("child_aggregated", 14, 2048)],
                })
                .collect(),
        }
    }

    #[test]
    fn the_latest_of_each_rewrite() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let (path, file) = (directory.path().join("s/h.json"), Path::new("/x/a.cu"));
        let both = [("threshold", 1.0, Some(true)), ("aggregate-block", 10.0, Some(true))];
        assert_eq!(add_at(&path, file, entry(1, 41.0, &both)), None);
        assert_eq!(
            add_at(&path, file, entry(2, 41.0, &[("aggregate-block", 1.0, Some(true))])),
            None
        );
        assert_eq!(
            add_at(&path, file, entry(2, 41.0, &[("coarsen", 0.1, Some(false))])),
            None
        );
        let history = History::read_at(&path, file).map_err(|broken| io::Error::other(broken.why))?;
        let phrases: Vec<String> = history
            .of_function("parent", || 2)
            .iter()
            .map(Measured::phrase)
            .collect();
        assert_eq!(
            phrases,
            [
                "aggregate-block: 41.0× on NVIDIA H200, 2 days ago, code unchanged since",
                "threshold: 41.0× on NVIDIA H200, 2 days ago, stale: code changed since",
                "coarsen: wrong results on NVIDIA H200, 2 days ago, code unchanged since",
            ]
        );
        let occupancy = history
            .of_function("parent", || 2)
            .first()
            .and_then(Measured::occupancy);
        assert_eq!(
            occupancy.as_deref(),
            Some(
                "32 registers, 1,024 resident threads with aggregate-block; 24 registers, 2,048 resident threads before"
            )
        );
        assert!(history.of_function("other", || 2).is_empty());
        // Another file of the same number.
        let other = History::read_at(&path, Path::new("/y/a.cu")).map_err(|broken| io::Error::other(broken.why))?;
        assert!(other.entries.is_empty());
        Ok(())
    }

    #[test]
    fn what_was_tuned_and_what_did_not_finish() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let (path, file) = (directory.path().join("h.json"), Path::new("/x/a.cu"));
        let mut slow = entry(1, 0.0, &[("coarsen", 0.5, None)]);
        (slow.original_ms, slow.original_timed_out) = (None, Some(20.0));
        assert_eq!(add_at(&path, file, slow), None);
        assert_eq!(
            add_at(&path, file, entry(1, 41.0, &[("threshold", 0.5, Some(true))])),
            None
        );
        for (fingerprint, rewrites) in [(1, "threshold 16, block"), (2, "threshold 64, multiblock")] {
            let mut tuned = entry(fingerprint, 41.0, &[(rewrites, 1.0, Some(true))]);
            tuned.also = vec![fingerprint + 10];
            tuned.variants.iter_mut().for_each(|past| past.tuned = true);
            assert_eq!(add_at(&path, file, tuned), None);
        }
        let history = History::read_at(&path, file).map_err(|broken| io::Error::other(broken.why))?;
        let phrases = |fingerprint: u64| -> Vec<String> {
            let measured = history.of_function("parent", || fingerprint);
            measured.iter().map(Measured::phrase).collect()
        };
        let tuned = "tuned: threshold 64, multiblock, 41.0× on NVIDIA H200, 2 days ago";
        // As it was, and as it is with what was found.
        for fingerprint in [2, 12] {
            assert_eq!(
                phrases(fingerprint).first(),
                Some(&format!("{tuned}, code unchanged since"))
            );
        }
        assert_eq!(
            phrases(1),
            [
                "threshold: 82.0× on NVIDIA H200, 2 days ago, code unchanged since",
                "coarsen: 0.500 ms, the original did not finish in 20 s, on NVIDIA H200, 2 days ago, code unchanged since",
                &format!("{tuned}, stale: code changed since"),
            ]
        );
        Ok(())
    }

    #[test]
    fn no_entry_is_lost() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let (path, file) = (directory.path().join("h.json"), Path::new("/x/a.cu"));
        std::thread::scope(|scope| {
            for number in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..5 {
                        assert_eq!(
                            add_at(path, file, entry(number, 1.0, &[("threshold", 1.0, None)])),
                            None
                        );
                    }
                });
            }
        });
        let history = History::read_at(&path, file).map_err(|broken| io::Error::other(broken.why))?;
        assert_eq!(history.entries.len(), 40);
        Ok(())
    }

    #[test]
    fn a_broken_history_is_put_aside() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let (path, file) = (directory.path().join("h.json"), Path::new("/x/a.cu"));
        for text in [
            "{\"version\": 1, \"fi",
            "",
            "[]",
            "{\"version\":99,\"file\":\"/x/a.cu\",\"entries\":[]}",
        ] {
            std::fs::write(&path, text)?;
            assert!(History::read_at(&path, file).is_err());
            let told = add_at(&path, file, entry(1, 1.0, &[("threshold", 1.0, None)]));
            assert!(told.is_some_and(|told| told.contains("h.json.broken")), "{text}");
            assert!(History::read_at(&path, file).is_ok_and(|history| history.entries.len() == 1));
            assert_eq!(std::fs::read_to_string(directory.path().join("h.json.broken"))?, text);
        }
        Ok(())
    }

    #[test]
    fn times_ago() {
        let phrases = [3, 60, 7_199, 7_200, 90_000, 180_000].map(ago);
        let expected = [
            "just now",
            "1 minute ago",
            "1 hour ago",
            "2 hours ago",
            "1 day ago",
            "2 days ago",
        ];
        assert_eq!(phrases, expected);
    }
}
