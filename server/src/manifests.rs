//! The `gridfuse.toml`s of a workspace: for each file, the nearest one at or above its directory counts, and that one alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridfuse_analysis::base::settings::Settings;
use gridfuse_codeactions::runtime::HEADER_NAME;

use crate::compile_commands::{self, CompileCommands};
use crate::manifest::{Manifest, ManifestError, NAME};

/// The manifests by the directory that each of them is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifests {
    by_directory: BTreeMap<PathBuf, Arc<Manifest>>,
}

impl Manifests {
    /// Reads those that count for files in these directories. A wrong one leaves what was known of it before.
    pub fn read<'a>(
        directories: impl IntoIterator<Item = &'a Path>,
        before: &Manifests,
    ) -> (Manifests, Vec<ManifestError>) {
        let mut found = Manifests::default();
        let mut problems = Vec::new();
        let mut seen = BTreeSet::new();
        for directory in directories {
            // Above a directory that was seen, or that has one, none counts.
            for directory in directory.ancestors().take_while(|d| seen.insert(d.to_path_buf())) {
                let path = directory.join(NAME);
                if path.is_file() {
                    let manifest = Manifest::read(&path).map(Arc::new).unwrap_or_else(|error| {
                        problems.push(error);
                        before.by_directory.get(directory).cloned().unwrap_or_default()
                    });
                    found.by_directory.insert(directory.to_path_buf(), manifest);
                    break;
                }
            }
        }
        (found, problems)
    }

    /// The one that counts for a file or a directory.
    pub fn of(&self, path: &Path) -> Option<&Manifest> {
        path.ancestors()
            .find_map(|directory| self.by_directory.get(directory))
            .map(Arc::as_ref)
    }

    /// What they say to the analyses, by directory.
    pub fn settings(&self) -> BTreeMap<PathBuf, Arc<Settings>> {
        let settings = |manifest: &Manifest| Arc::new(manifest.settings.clone());
        let by_directory = self.by_directory.iter();
        by_directory
            .map(|(path, manifest)| (path.clone(), settings(manifest)))
            .collect()
    }

    /// The runtime headers that they give a place.
    pub fn headers(&self) -> impl Iterator<Item = PathBuf> {
        let settings = self.by_directory.values().map(|manifest| &manifest.settings);
        settings.filter_map(|settings| Some(settings.header_dir.as_ref()?.join(HEADER_NAME)))
    }

    /// In which directories `#include` looks, by the directory of the manifest that says so.
    pub fn include_dirs(&self) -> Vec<(PathBuf, Vec<PathBuf>)> {
        let by_directory = self
            .by_directory
            .iter()
            .filter(|(_, m)| !m.settings.include_dirs.is_empty());
        by_directory
            .map(|(path, manifest)| (path.clone(), manifest.settings.include_dirs.clone()))
            .collect()
    }

    /// What holds for files that are in no directory, such as those that were never saved: the same as for files in `directory`.
    pub fn with_unsaved_files_like(mut self, directory: &Path) -> Manifests {
        if let Some(manifest) = self.of(directory).cloned() {
            self.by_directory.insert(PathBuf::new(), Arc::new(manifest));
        }
        self
    }

    /// The compile commands of the projects that have these roots, and of the manifests that name some: for a file below such a
    /// manifest, what it names comes first.
    pub fn commands<'a>(&self, roots: impl IntoIterator<Item = &'a Path>) -> CompileCommands {
        let named = |path: &Path| self.of(path).and_then(|manifest| manifest.compile_commands.as_deref());
        let of_roots = roots
            .into_iter()
            .filter(|root| named(root).is_none())
            .filter_map(|root| Some((root, compile_commands::find(root)?)));
        let of_manifests = self.by_directory.iter().filter_map(|(home, manifest)| {
            let named = manifest.compile_commands.as_deref()?;
            Some((home.as_path(), compile_commands::file_at(named)))
        });
        // A directory comes before those in it.
        let by_home: BTreeMap<&Path, PathBuf> = of_roots.chain(of_manifests).collect();
        let mut read: BTreeMap<&Path, CompileCommands> = BTreeMap::new();
        let mut all = CompileCommands::default();
        for (home, file) in &by_home {
            let found = read.entry(file).or_insert_with(|| {
                let mut found = compile_commands::read(file);
                all.problems.append(&mut found.problems);
                found
            });
            for (path, commands) in &found.commands {
                if path.starts_with(home) || !all.commands.contains_key(path) {
                    all.commands.insert(path.clone(), commands.clone());
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> std::io::Result<tempfile::TempDir> {
        let root = tempfile::tempdir()?;
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap_or(root.path()))?;
            std::fs::write(path, text)?;
        }
        Ok(root)
    }

    #[test]
    fn the_nearest_counts_alone() -> std::io::Result<()> {
        let root = tree(&[
            (NAME, "arch = 'sm_80'\ncuda = '12.4'"),
            ("a/gridfuse.toml", "arch = 'sm_90'"),
            ("a/b/gridfuse.toml", "arch = 90"),
            ("c/x.cu", ""),
        ])?;
        let place = |path: &str| root.path().join(path);
        let read = |before: &Manifests| Manifests::read([place("a/b").as_path(), &place("a"), &place("c")], before);
        let (manifests, problems) = read(&Manifests::default());
        let says = |manifests: &Manifests, path: &str| {
            let settings = manifests.of(&place(path)).map(|m| m.settings.clone());
            settings.map(|settings| (settings.arch, settings.cuda))
        };
        assert_eq!(says(&manifests, "x.cu"), Some((Some(80), Some((12, 4)))));
        assert_eq!(says(&manifests, "c/x.cu"), says(&manifests, "x.cu"));
        assert_eq!(says(&manifests, "a/x.cu"), Some((Some(90), None)));
        assert_eq!(says(&manifests, "a/b/x.cu"), Some((None, None)));
        assert_eq!(manifests.of(Path::new("unsaved")), None);
        let places: Vec<_> = problems.iter().map(|p| (p.path.clone(), p.position)).collect();
        assert_eq!(places, [(place("a/b/gridfuse.toml"), Some((1, 8)))]);
        let manifests = manifests.with_unsaved_files_like(&place("a"));
        assert_eq!(manifests.of(Path::new("unsaved")), manifests.of(&place("a")));

        // What was understood before stays while the file is wrong.
        std::fs::write(place("a/b/gridfuse.toml"), "arch = 'sm_75'")?;
        let (before, _) = read(&manifests);
        std::fs::write(place("a/b/gridfuse.toml"), "arch = ")?;
        let (after, problems) = read(&before);
        assert_eq!((says(&after, "a/b/x.cu"), problems.len()), (Some((Some(75), None)), 1));
        Ok(())
    }

    #[test]
    fn commands_of_several_projects() -> std::io::Result<()> {
        let root = tree(&[
            ("sub/gridfuse.toml", "compile-commands = 'out'"),
            ("sub/a.cu", ""),
            ("b.cu", ""),
        ])?;
        let place = |path: &str| root.path().join(path);
        let commands = |define: &str| {
            let entry = |file: &str| {
                let (directory, file) = (root.path(), place(file));
                serde_json::json!({ "directory": directory, "file": file, "command": format!("nvcc -D{define}") })
            };
            serde_json::json!([entry("sub/a.cu"), entry("b.cu")]).to_string()
        };
        std::fs::write(place(compile_commands::NAME), commands("OUTER"))?;
        std::fs::create_dir(place("sub/out"))?;
        std::fs::write(place("sub/out/compile_commands.json"), commands("INNER"))?;
        let (manifests, problems) = Manifests::read([place("sub").as_path()], &Manifests::default());
        assert!(problems.is_empty(), "{problems:?}");
        let all = manifests.commands([root.path(), &place("sub")]);
        assert!(all.problems.is_empty(), "{:?}", all.problems);
        let macros = |file: &str| {
            format!(
                "{:?}",
                all.commands[&place(file).canonicalize().unwrap_or_default()][0].macros
            )
        };
        assert!(macros("sub/a.cu").contains("INNER"), "{}", macros("sub/a.cu"));
        assert!(macros("b.cu").contains("OUTER"), "{}", macros("b.cu"));
        Ok(())
    }
}
