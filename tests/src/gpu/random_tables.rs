//! The tables of random programs: those that ran under the emulator, and those that ran on a GPU.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::random_programs;

/// How the names of records begin that `fuzz --json` has written; they are kept in `tests/gpu/results/`, beside the measurements.
pub const EMULATED: &str = "emulated_programs";

/// The name of the section with the tables.
pub const SECTION: &str = "random-programs";

/// What a table needs of a record of `fuzz`.
#[derive(Debug, Deserialize)]
struct Emulated {
    commit: Option<String>,
    schedules: u64,
    first_seed: u64,
    programs: u64,
    rewritten: u64,
    runs: u64,
    /// By class, in the words of the record.
    failures: BTreeMap<String, u64>,
}

impl Emulated {
    /// Programs that a rewrite made wrong: what the generator or the emulator did wrong isn't among them.
    fn wrong(&self) -> u64 {
        let of_rewrites = self
            .failures
            .iter()
            .filter(|(class, _)| !class.starts_with("original-"));
        of_rewrites.map(|(_, count)| count).sum()
    }

    /// Programs that can't be used: the generator made a mistake, or the emulator.
    fn unusable(&self) -> u64 {
        self.failures.values().sum::<u64>() - self.wrong()
    }
}

/// The section's text; `None`: there is no record.
///
/// # Errors
/// When a record can't be read.
pub fn markdown(results: &Path) -> Result<Option<String>> {
    let mut emulated: Vec<Emulated> = load(results, EMULATED)?;
    let mut on_gpu: Vec<random_programs::Record> = load(results, random_programs::PREFIX)?;
    if emulated.is_empty() && on_gpu.is_empty() {
        return Ok(None);
    }
    emulated.sort_by_key(|record| record.first_seed);
    on_gpu.sort_by_key(|record| record.first_seed);
    let mut text = String::new();
    if !emulated.is_empty() {
        text.push_str("Under the emulator, each original and each rewritten program under as many schedules as the table says:\n\n");
        text.push_str("| first seed | programs | rewritten | schedules | runs | wrong | not usable | commit |\n");
        text.push_str("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n");
        for record in &emulated {
            let commit = record.commit.as_deref().unwrap_or("–");
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {commit} |",
                record.first_seed,
                record.programs,
                record.rewritten,
                record.schedules,
                record.runs,
                record.wrong(),
                record.unusable()
            );
        }
        let sum = |of: fn(&Emulated) -> u64| emulated.iter().map(of).sum::<u64>();
        let _ = writeln!(
            text,
            "| all | {} | {} | | {} | {} | {} | |",
            sum(|r| r.programs),
            sum(|r| r.rewritten),
            sum(|r| r.runs),
            sum(Emulated::wrong),
            sum(Emulated::unusable)
        );
    }
    if !on_gpu.is_empty() {
        text.push_str("\nOn a GPU, compared with what the emulator printed, and under `compute-sanitizer`'s memcheck where the original is clean:\n\n");
        text.push_str("| first seed | programs | the same | rewritten | the same | sanitized | clean | commit |\n");
        text.push_str("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n");
        let cells = |first: &str, of: &dyn Fn(fn(&random_programs::Record) -> u64) -> u64, commit: &str| {
            format!(
                "| {first} | {} | {} | {} | {} | {} | {} | {commit} |\n",
                of(|r| r.programs),
                of(|r| r.originals_agree),
                of(|r| r.rewritten),
                of(|r| r.rewritten_agree),
                of(|r| r.sanitized),
                of(|r| r.sanitized_clean)
            )
        };
        for record in &on_gpu {
            let commit = record.commit.get(..8).unwrap_or(&record.commit);
            text.push_str(&cells(&record.first_seed.to_string(), &|of| of(record), commit));
        }
        text.push_str(&cells("all", &|of| on_gpu.iter().map(of).sum(), ""));
        text.push_str("\nWhat differs, or isn't clean, was looked into; the records name each.\n");
    }
    Ok(Some(text.trim_end().to_owned() + "\n"))
}

fn load<T: DeserializeOwned>(results: &Path, prefix: &str) -> Result<Vec<T>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    if results.is_dir() {
        for entry in std::fs::read_dir(results)? {
            let path = entry?.path();
            let named = path.file_name().and_then(|name| name.to_str());
            if named.is_some_and(|name| name.starts_with(prefix) && name.ends_with(".json")) {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).with_context(|| format!("{} can't be read", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is no such record", path.display()))
    };
    paths.iter().map(read).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_and_what_is_not_usable() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(markdown(folder.path()).unwrap(), None);
        let record = r#"{"command": "--seed 7", "commit": "12345678", "schedules": 6, "programs": 10, "first_seed": 7, "with_rewrites": 9,
            "rewritten": 100, "runs": 660, "failures": {"mismatch": 2, "original-build": 1}, "kinds": {}}"#;
        std::fs::write(folder.path().join(format!("{EMULATED}_7.json")), record).unwrap();
        let text = markdown(folder.path()).unwrap().unwrap();
        assert!(
            text.contains("| 7 | 10 | 100 | 6 | 660 | 2 | 1 | 12345678 |\n"),
            "{text}"
        );
        assert!(text.ends_with("| all | 10 | 100 | | 660 | 2 | 1 | |\n"), "{text}");
        std::fs::write(folder.path().join(format!("{EMULATED}_8.json")), "{}").unwrap();
        assert!(markdown(folder.path()).is_err());
    }
}
