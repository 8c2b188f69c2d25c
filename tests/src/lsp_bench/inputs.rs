//! What the servers are given: a file of the corpus, one in the style of NVIDIA's samples, and programs and workspaces that are made.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::generate::{Flavour, file_name, program, workspace};
use crate::workspace::root;

/// One input, before it is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Its name on the command line: `bfs`, `lines-1000`, `programs-20`.
    pub name: String,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// A file of the repository; `true` when its directory is the workspace.
    File(&'static str, bool),
    /// A program of so many lines.
    Lines(usize),
    /// A workspace of so many files.
    Files(Flavour, usize),
}

/// An input on disk.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The folder that the server is told of.
    pub root: PathBuf,
    /// The file that is opened.
    pub file: PathBuf,
    /// Its text.
    pub text: String,
    /// All CUDA sources in the folder.
    pub sources: Vec<PathBuf>,
    /// Those that clangd is told a compile command of, and so compiles: the file alone where the folder isn't what is measured.
    pub compiled: Vec<PathBuf>,
    /// The bytes of all CUDA files in the folder.
    pub bytes: u64,
}

/// The names of all inputs, the small ones first.
pub fn names() -> Vec<String> {
    let mut names = vec!["bfs".to_owned(), "bfs-alone".to_owned(), "quicksort".to_owned()];
    names.extend([100, 1_000, 10_000, 100_000].map(|lines| format!("lines-{lines}")));
    for files in [1, 20, 100, 500, 2_000] {
        names.push(format!("programs-{files}"));
        names.push(format!("shared-{files}"));
    }
    names
}

impl Input {
    /// The input with a name; those with a number exist for every number.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> Result<Input> {
        let number = |prefix: &str| {
            name.strip_prefix(prefix)
                .and_then(|number| number.parse::<usize>().ok())
        };
        let kind = match name {
            "bfs" => Kind::File("tests/corpus/bfs.cu", true),
            "bfs-alone" => Kind::File("tests/corpus/bfs.cu", false),
            "quicksort" => Kind::File("tests/responsiveness/quicksort.cu", false),
            _ => match (number("lines-"), number("programs-"), number("shared-")) {
                (Some(lines), ..) => Kind::Lines(lines),
                (_, Some(files @ 1..), _) => Kind::Files(Flavour::Programs, files),
                (.., Some(files @ 1..)) => Kind::Files(Flavour::Shared, files),
                _ => bail!("there is no input `{name}`; there are {}", names().join(", ")),
            },
        };
        let name = name.to_owned();
        Ok(Input { name, kind })
    }

    /// Whether its folder is what is measured, not one file.
    pub fn is_workspace(&self) -> bool {
        matches!(self.kind, Kind::Files(..))
    }

    /// How many lines its file has, for a generated one.
    pub fn generated_lines(&self) -> Option<usize> {
        match self.kind {
            Kind::Lines(lines) => Some(lines),
            _ => None,
        }
    }

    /// Writes it into an empty directory. The corpus isn't written: nothing is changed on disk.
    ///
    /// # Errors
    /// When a file can't be read or written.
    pub fn prepare(&self, directory: &Path) -> Result<Prepared> {
        let write = |name: &str, text: &str| {
            let path = directory.join(name);
            fs::write(&path, text).with_context(|| path.display().to_string())
        };
        let (folder, file) = match &self.kind {
            Kind::File(path, in_directory) => {
                let source = root().join(path);
                if *in_directory {
                    let folder = source.parent().context("a file at the root")?.to_path_buf();
                    (folder, source)
                } else {
                    let name = source.file_name().and_then(|name| name.to_str()).context("no name")?;
                    let text = fs::read_to_string(&source).with_context(|| source.display().to_string())?;
                    write(name, &text)?;
                    (directory.to_path_buf(), directory.join(name))
                }
            }
            Kind::Lines(lines) => {
                write("program.cu", &program(*lines))?;
                (directory.to_path_buf(), directory.join("program.cu"))
            }
            Kind::Files(flavour, files) => {
                for (name, text) in workspace(*flavour, *files) {
                    write(&name, &text)?;
                }
                (directory.to_path_buf(), directory.join(file_name(files / 2)))
            }
        };
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let (mut sources, mut bytes) = (Vec::new(), 0);
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            if matches!(ending, Some("cu" | "cuh")) {
                bytes += fs::metadata(&path)?.len();
            }
            if ending == Some("cu") {
                sources.push(path);
            }
        }
        sources.sort();
        let compiled = match self.is_workspace() {
            true => sources.clone(),
            false => vec![file.clone()],
        };
        Ok(Prepared {
            compiled,
            root: folder,
            file,
            text,
            sources,
            bytes,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::lsp_bench::launch::subject;

    #[test]
    fn every_input_can_be_prepared() {
        for name in names() {
            if name.ends_with("000") || name.ends_with("500") {
                continue;
            }
            let directory = tempfile::tempdir().unwrap();
            let prepared = Input::named(&name).unwrap().prepare(directory.path()).unwrap();
            assert!(subject(&prepared.text).is_some(), "{name}");
            assert!(prepared.sources.contains(&prepared.file), "{name}");
        }
        assert!(Input::named("lines-x").is_err() && Input::named("shared-0").is_err());
    }
}
