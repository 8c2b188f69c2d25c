//! The files that a program reads, sent along to another machine.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use ignore::overrides::OverrideBuilder;

use super::Progress;
use super::place::Place;
use crate::manifest::Inputs;

/// Where they are, below the scratch directory and its counterpart.
const DIRECTORY: &str = "inputs";

/// Sends a project's inputs to where its programs run, if that is another machine. Returns the counterpart of `home`, in which they have
/// their places relative to it; `None`: programs run in their own directory.
pub fn send(
    inputs: Option<&Inputs>,
    place: &Place,
    home: Option<&Path>,
    scratch: &Path,
    progress: Progress<'_>,
) -> Result<Option<PathBuf>, String> {
    let (Some(inputs), Place::There(remote)) = (inputs, place) else {
        return Ok(None);
    };
    let files = find(inputs)?;
    let copy = scratch.join(DIRECTORY);
    for (number, below) in files.iter().enumerate() {
        let from = inputs.root.join(below);
        let what = format!("sending {}, file {} of {}", below.display(), number + 1, files.len());
        progress.tell(0, &what);
        remote
            .send_file(&from, &copy.join(below))
            .map_err(|error| format!("cannot send {}: {error}", from.display()))?;
    }
    let inside = home.and_then(|home| home.strip_prefix(&inputs.root).ok());
    Ok(Some(copy.join(inside.unwrap_or(Path::new("")))))
}

/// The files that the patterns name, relative to the root. Each has to name one.
fn find(inputs: &Inputs) -> Result<Vec<PathBuf>, String> {
    let mut found: Vec<PathBuf> = Vec::new();
    for pattern in &inputs.patterns {
        let wrong = |error: ignore::Error| format!("[measure] inputs: `{pattern}` isn't understood: {error}");
        let mut overrides = OverrideBuilder::new(&inputs.root);
        overrides.add(pattern).map_err(wrong)?;
        let walk = WalkBuilder::new(&inputs.root)
            // What version control ignores is sent all the same.
            .standard_filters(false)
            .follow_links(true)
            .overrides(overrides.build().map_err(wrong)?)
            .build();
        let before = found.len();
        for entry in walk.filter_map(Result::ok).filter(|entry| entry.path().is_file()) {
            if let Ok(below) = entry.path().strip_prefix(&inputs.root) {
                found.push(below.to_path_buf());
            }
        }
        if found.len() == before {
            let root = inputs.root.display();
            return Err(format!("[measure] inputs: `{pattern}` names no file in {root}"));
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_files() -> Result<(), String> {
        let root = tempfile::tempdir().map_err(|error| error.to_string())?;
        for name in ["data/a.bin", "data/b.txt", "data/deep/c.bin", "d.bin", ".hidden"] {
            let path = root.path().join(name);
            let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            made.and_then(|()| std::fs::write(&path, ""))
                .map_err(|error| error.to_string())?;
        }
        let find = |patterns: &[&str]| {
            let found = find(&Inputs {
                root: root.path().to_path_buf(),
                patterns: patterns.iter().map(|pattern| (*pattern).to_owned()).collect(),
            })?;
            Ok::<_, String>(found.iter().map(|path| path.display().to_string()).collect::<Vec<_>>())
        };
        assert_eq!(find(&["data/*.bin"])?, ["data/a.bin"]);
        assert_eq!(
            find(&["data/**/*.bin", "/d.bin"])?,
            ["d.bin", "data/a.bin", "data/deep/c.bin"]
        );
        assert_eq!(find(&["*.txt", "data/b.txt", ".hidden"])?, [".hidden", "data/b.txt"]);
        assert!(find(&["data/*.bin", "none/*"]).is_err_and(|error| error.contains("`none/*` names no file")));
        Ok(())
    }
}
