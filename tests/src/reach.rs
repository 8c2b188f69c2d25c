//! How much of real code is rewritten: launch sites in the style of public repositories, and what is offered for them.
//!
//! The programs are in `tests/reach`, in five parts: `seen` are those that are looked at while gridfuse is worked on, `unseen` those that were
//! counted only when they were new; `strangers`, `blind` and `fresh` were written by others, one after the other, who knew nothing of
//! gridfuse. `fresh` is counted before anybody has worked on it; the others have been by now. The numbers are recorded in
//! `tests/reach/offers.json`. They may grow; when one falls, the test fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cli::{files_of, gridfuse, in_parallel};
use crate::docs;
use crate::workspace;

/// The directories with the programs.
pub const HALVES: [&str; 6] = ["seen", "unseen", "strangers", "blind", "fresh", "distant"];

/// The page's path under `docs/`.
pub const NAME: &str = "reach.md";

/// What writes the numbers down anew.
pub const COMMAND: &str =
    "cargo run -p gridfuse-tests --bin reach -- --record && cargo run -p gridfuse-tests --bin docs";

/// Rewrites that say little about reach: a composition of others, and what costs nothing.
const LITTLE: [&str; 3] = ["optimize", "fire-and-forget", "skip-silent-stores"];

/// What is offered for the launches of one half.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Offers {
    /// Launches by kernels and device functions.
    pub sites: u32,
    /// Of these, those for which something better than `fire-and-forget` is offered.
    pub better: u32,
    /// For how many each rewrite is offered, with or without assumptions.
    pub rewrites: BTreeMap<String, u32>,
    /// What a reader of the programs would want: how often it is offered, and how often it is wanted.
    pub wanted: BTreeMap<String, [u32; 2]>,
}

/// The file that says what kind of launch the sites are.
const KINDS: &str = "kinds.toml";

/// What is wanted for a kind of launch: any of these rewrites.
const WANTED: [(&str, &str, &[&str]); 3] = [
    (
        "many",
        "many threads launch: `aggregate-block` or better",
        &["aggregate-block", "aggregate-grid-stream", "reuse-threads"],
    ),
    (
        "many",
        "many threads launch: `threshold` or `serialize`",
        &["threshold", "serialize"],
    ),
    (
        "cycle",
        "tail launches that come back: `persistent-loop`",
        &["persistent-loop"],
    ),
];

/// What is wanted for waits.
const WAITS: &str = "waits for child grids: `replace-device-sync`";

/// The numbers of both halves.
pub type Record = BTreeMap<String, Offers>;

/// A launch with what `gridfuse explain` says of it.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The half's directory.
    pub root: PathBuf,
    /// The file, relative to that.
    pub file: String,
    /// Line and column.
    pub at: String,
    /// The launch as JSON.
    pub said: Value,
}

impl Launch {
    /// The rewrites that are offered.
    pub fn offered(&self) -> Vec<String> {
        let verdicts = self.said["rewrites"].as_array().map(Vec::as_slice).unwrap_or_default();
        let offered = verdicts.iter().filter(|verdict| verdict["verdict"] != "ineligible");
        offered
            .filter_map(|verdict| Some(verdict["rewrite"].as_str()?.to_owned()))
            .collect()
    }

    /// Why a rewrite isn't.
    pub fn reasons(&self, rewrite: &str) -> Vec<String> {
        let verdicts = self.said["rewrites"].as_array().map(Vec::as_slice).unwrap_or_default();
        let verdict = verdicts.iter().find(|verdict| verdict["rewrite"] == rewrite);
        let reasons = verdict.and_then(|verdict| verdict["reasons"].as_array());
        let texts = reasons
            .into_iter()
            .flatten()
            .filter_map(|reason| reason["text"].as_str());
        texts.map(str::to_owned).collect()
    }
}

fn home() -> PathBuf {
    workspace::root().join("tests/reach")
}

/// Where the numbers are written down.
pub fn record_file() -> PathBuf {
    home().join("offers.json")
}

/// The launches of a half, worked out once.
pub fn launches(half: &str) -> Vec<Launch> {
    static KNOWN: Mutex<BTreeMap<String, Vec<Launch>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry(half.to_owned()).or_insert_with(|| explained(half)).clone()
}

fn explained(half: &str) -> Vec<Launch> {
    let root = home().join(half);
    let files: Vec<String> = files_of(&root).into_iter().map(|(name, _)| name).collect();
    let sources: Vec<String> = files
        .into_iter()
        .filter(|name| name.ends_with(".cu") || name.ends_with(".cuh"))
        .collect();
    let found = in_parallel(&sources, |file| launches_of(&root, file));
    found.into_iter().flatten().collect()
}

fn launches_of(root: &Path, file: &str) -> Vec<Launch> {
    let report = gridfuse(root, &["explain", file, "--format", "json"])
        .expect_code(0)
        .json();
    let all = report["launches"].as_array().cloned().unwrap_or_default();
    let by_devices = all.into_iter().filter(|launch| launch["parent"]["kind"] != "host");
    by_devices
        .map(|said| Launch {
            root: root.to_path_buf(),
            file: file.to_owned(),
            at: format!(
                "{}:{}",
                said["place"]["start"]["line"], said["place"]["start"]["column"]
            ),
            said,
        })
        .collect()
}

/// What is offered now.
pub fn count() -> Record {
    HALVES
        .iter()
        .map(|half| {
            let launches = launches(half);
            let mut offers = offers(&launches);
            offers.wanted = wanted(half, &launches);
            ((*half).to_owned(), offers)
        })
        .collect()
}

/// What a reader would want, of the programs of which that is written down.
fn wanted(half: &str, launches: &[Launch]) -> BTreeMap<String, [u32; 2]> {
    // Without it the numbers fall, and the test fails.
    let text = fs::read_to_string(home().join(KINDS)).unwrap_or_default();
    let kinds: BTreeMap<String, BTreeMap<String, Vec<String>>> = toml::from_str(&text).unwrap_or_default();
    let mut found: BTreeMap<String, [u32; 2]> = BTreeMap::new();
    for (file, kinds) in kinds.get(half).into_iter().flatten() {
        let own: Vec<&Launch> = launches.iter().filter(|launch| launch.file == *file).collect();
        assert_eq!(own.len(), kinds.len(), "{file} has other launches than {KINDS} says");
        for (launch, kind) in own.into_iter().zip(kinds) {
            let offered = launch.offered();
            for (_, what, any) in WANTED.iter().filter(|(of, ..)| of == kind) {
                let [count, all] = found.entry((*what).to_owned()).or_default();
                *all += 1;
                *count += u32::from(any.iter().any(|id| offered.iter().any(|o| o == id)));
            }
        }
    }
    found.insert(WAITS.to_owned(), replaced_waits(half));
    found
}

/// How many waits of kernels are replaced, each by itself, of how many there are in `waits`: those that stand above `main`.
fn replaced_waits(half: &str) -> [u32; 2] {
    let root = home().join("waits").join(half);
    let mut waits = Vec::new();
    for (name, text) in files_of(&root) {
        let text = String::from_utf8_lossy(&text).into_owned();
        let kernels = text.lines().take_while(|line| !line.starts_with("int main"));
        let waiting = kernels
            .enumerate()
            .filter(|(_, line)| line.contains("cudaDeviceSynchronize"));
        waits.extend(waiting.map(|(number, _)| (name.clone(), (number + 1).to_string())));
    }
    let replaced = in_parallel(&waits, |(name, line)| {
        let run = gridfuse(
            &root,
            &["rewrite", name, "--at", line, "--apply", "replace-device-sync"],
        );
        run.code == Some(0)
    });
    [replaced.iter().filter(|is| **is).count() as u32, waits.len() as u32]
}

fn offers(launches: &[Launch]) -> Offers {
    let mut offers = Offers {
        sites: launches.len() as u32,
        ..Offers::default()
    };
    for launch in launches {
        let offered = launch.offered();
        offers.better += u32::from(offered.iter().any(|id| !LITTLE.contains(&id.as_str())));
        for id in offered {
            *offers.rewrites.entry(id).or_default() += 1;
        }
    }
    offers
}

/// The numbers that are written down.
///
/// # Errors
/// When the file can't be read.
pub fn recorded() -> Result<Record, String> {
    let path = record_file();
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// What has become less: a line for each number.
pub fn fallen(before: &Record, now: &Record) -> Vec<String> {
    let mut found = Vec::new();
    for (half, before) in before {
        let nothing = Offers::default();
        let now = now.get(half).unwrap_or(&nothing);
        let mut compare = |what: &str, before: u32, now: u32| {
            if now < before {
                found.push(format!("{half}: {what}: {before} before, {now} now"));
            }
        };
        compare("launches", before.sites, now.sites);
        compare("something better than fire-and-forget", before.better, now.better);
        for (id, count) in &before.rewrites {
            compare(id, *count, now.rewrites.get(id).copied().unwrap_or(0));
        }
        for (what, [count, _]) in &before.wanted {
            compare(what, *count, now.wanted.get(what).map_or(0, |[count, _]| *count));
        }
    }
    found
}

/// Rewrites that are offered and have no number yet: they count for `better`, and what they lose later nobody would notice.
pub fn uncounted(before: &Record, now: &Record) -> BTreeSet<String> {
    let ids = |record: &Record| -> BTreeSet<String> {
        let all = record.values().flat_map(|offers| offers.rewrites.keys().cloned());
        all.collect()
    };
    &ids(now) - &ids(before)
}

/// The page with the numbers.
///
/// # Errors
/// When the record can't be read.
pub fn page() -> Result<String, String> {
    let record = recorded()?;
    let mut page = format!(
        r#"{}

# How much of real code is rewritten

Launch sites in the style of public repositories: their names, layout, idioms, headers and macros, with programs of our own.
The first part, `seen`, is read while gridfuse is developed. The second, `unseen`, was only counted while it was new. People who knew nothing
of gridfuse wrote the other four, in this order; the last is counted as gridfuse met it. A site counts for a rewrite that is offered for it, with or without assumptions. The programs are in `tests/reach`; `cargo test -p gridfuse-tests --test reach` fails when a number falls.

| offered | {} |
|---|{}
"#,
        docs::NOTE,
        HALVES.join(" | "),
        "---|".repeat(HALVES.len()),
    );
    let mut row = |what: &str, value: &dyn Fn(&Offers) -> String| {
        let cells = HALVES.iter().map(|half| record.get(*half).map_or(String::new(), value));
        let _ = writeln!(page, "| {what} | {} |", cells.collect::<Vec<_>>().join(" | "));
    };
    row("launch sites", &|offers| offers.sites.to_string());
    let of =
        |count: u32, offers: &Offers| format!("{count} ({} %)", (100 * count).checked_div(offers.sites).unwrap_or(0));
    row("something better than `fire-and-forget`", &|offers| {
        of(offers.better, offers)
    });
    let ids: BTreeSet<&String> = record.values().flat_map(|offers| offers.rewrites.keys()).collect();
    for id in ids {
        let link = format!("[{id}](rewrites/{id}.md)");
        row(&link, &|offers| {
            of(offers.rewrites.get(id).copied().unwrap_or(0), offers)
        });
    }
    let _ = writeln!(
        page,
        r#"
What a person would do about a launch or a wait was written down before gridfuse was asked, for the programs that `tests/reach/{KINDS}`
names and for the waits in `tests/reach/waits`:

| wanted | {} |
|---|{}"#,
        HALVES.join(" | "),
        "---|".repeat(HALVES.len()),
    );
    let whats: BTreeSet<&String> = record.values().flat_map(|offers| offers.wanted.keys()).collect();
    for what in whats {
        let cells = HALVES.iter().map(|half| {
            let wanted = record.get(*half).and_then(|offers| offers.wanted.get(what));
            wanted.map_or(String::new(), |[count, all]| format!("{count} of {all}"))
        });
        let _ = writeln!(page, "| {what} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    Ok(page)
}
