//! What the conformance programs print on a GPU: the file that the emulator is held to.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::machine::Machine;
use super::sources;

/// The version of the format; it grows when a reader would have to change.
pub const SCHEMA: u32 = 1;

/// Where the programs are, relative to the repository.
pub const PROGRAMS: &str = "tests/emulator/conformance";

/// The name of a record. It is kept in `tests/gpu/results/`, beside the measurements.
pub const FILE: &str = "conformance.json";

/// The outputs of all programs on one GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conformance {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The commit whose programs ran.
    pub commit: String,
    /// When, in UTC.
    pub date: String,
    /// On what.
    pub machine: Machine,
    /// How a program is compiled, in the repository's root.
    pub command: String,
    /// The programs, by name.
    pub programs: Vec<Program>,
}

/// What became of one program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Its file's name without `.cu`.
    pub name: String,
    /// [`source_hash`] of the program that ran.
    pub source_hash: String,
    /// How it ended.
    pub status: Status,
    /// What it printed.
    pub stdout: String,
    /// Its exit code; none if it did not run to an end by itself.
    pub exit_code: Option<i32>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How long its compilation took.
    pub build_s: f64,
    /// How long each run took.
    pub wall_s: Vec<f64>,
    /// The commit whose program ran, if it isn't the record's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Every run printed the same, and its exit code was 0.
    Ok,
    /// It did not compile, or not without warnings.
    NotBuilt,
    /// It was given up after the time limit.
    DidNotFinish,
    /// Its exit code was not 0, or a signal ended it.
    Failed,
    /// Its runs printed different texts, so it shows something that CUDA leaves open.
    Varies,
    /// It was not run.
    Skipped,
}

impl Status {
    /// The word in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::NotBuilt => "not built",
            Status::DidNotFinish => "did not finish",
            Status::Failed => "failed",
            Status::Varies => "varies",
            Status::Skipped => "skipped",
        }
    }
}

impl Conformance {
    /// Reads a record.
    pub fn load(path: &Path) -> Result<Conformance> {
        let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let record: Conformance =
            serde_json::from_str(&text).with_context(|| format!("{} is no record of outputs", path.display()))?;
        ensure!(
            record.schema == SCHEMA,
            "{} has the format {}, this program reads {SCHEMA}",
            path.display(),
            record.schema
        );
        Ok(record)
    }

    /// Writes [`FILE`] into a directory; a reader never sees half of it.
    pub fn save(&self, directory: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        let path = directory.join(FILE);
        let unfinished = directory.join(format!(".{FILE}.unfinished"));
        std::fs::write(&unfinished, text)
            .and_then(|()| std::fs::rename(&unfinished, &path))
            .with_context(|| format!("{} cannot be written", path.display()))
    }

    /// Takes over the programs of a record that was made later on the same machine, in the same way.
    pub fn adopt(&mut self, later: Conformance) -> Result<()> {
        ensure!(
            later.machine == self.machine && later.command == self.command,
            "the records are of different machines, or of programs that were compiled otherwise"
        );
        for mut program in later.programs {
            if later.commit != self.commit {
                program.commit.get_or_insert_with(|| later.commit.clone());
            }
            self.programs.retain(|known| known.name != program.name);
            self.programs.push(program);
        }
        self.programs.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }

    /// What a program printed on the GPU.
    ///
    /// An error says why there is nothing to compare with: the program never ran there, has changed since,
    /// or did not end well.
    pub fn expected(&self, root: &Path, name: &str) -> Result<&str> {
        let again = "record again with gpu-conformance";
        let program = self.programs.iter().find(|program| program.name == name);
        let program = program.with_context(|| format!("{name} never ran on a GPU: {again}"))?;
        ensure!(
            program.source_hash == source_hash(root, &source_of(name))?,
            "{name} is not the program that ran on the GPU: {again}"
        );
        ensure!(
            program.status == Status::Ok,
            "{name} has no output to compare with ({}): {again}",
            program.status.as_str()
        );
        Ok(&program.stdout)
    }
}

/// The names of all programs in the repository, sorted.
pub fn names(root: &Path) -> Result<Vec<String>> {
    let directory = root.join(PROGRAMS);
    let entries = std::fs::read_dir(&directory).with_context(|| format!("{} cannot be read", directory.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "cu")
            && let Some(name) = path.file_stem()
        {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The source of a program, relative to the repository.
pub fn source_of(name: &str) -> PathBuf {
    Path::new(PROGRAMS).join(format!("{name}.cu"))
}

/// A fingerprint (FNV-1a) of a source and the files beside it that it includes. The runtime header `gridfuse.cuh`
/// is not among them: a program's output must not depend on its version.
pub fn source_hash(root: &Path, source: &Path) -> Result<String> {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for (path, text) in sources::read(root, source, &[])? {
        let path = path.to_string_lossy();
        // No path and no text holds the byte that parts them.
        for byte in [path.as_bytes(), &text]
            .into_iter()
            .flat_map(|part| part.iter().chain(&[0xff]))
        {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(format!("{hash:016x}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_output_counts_for_the_program_that_printed_it() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(root.path().join(PROGRAMS).join(name), text).unwrap();
        std::fs::create_dir_all(root.path().join(PROGRAMS)).unwrap();
        for name in ["a.cu", "b.cu", "c.cu"] {
            write(name, "#include \"common.cuh\"\n#include \"gridfuse.cuh\"\n");
        }
        write("common.cuh", "// one\n");
        assert_eq!(names(root.path()).unwrap(), ["a", "b", "c"]);
        let program = |name: &str, status: Status| Program {
            name: name.to_owned(),
            source_hash: source_hash(root.path(), &source_of(name)).unwrap(),
            status,
            stdout: format!("{name}\n"),
            exit_code: Some(0),
            message: None,
            build_s: 0.0,
            wall_s: Vec::new(),
            commit: None,
        };
        let record = Conformance {
            schema: SCHEMA,
            commit: String::new(),
            date: String::new(),
            machine: Machine::default(),
            command: String::new(),
            programs: vec![program("a", Status::Ok), program("b", Status::Varies)],
        };
        record.save(root.path()).unwrap();
        let record = Conformance::load(&root.path().join(FILE)).unwrap();
        let expected = |name: &str| record.expected(root.path(), name).map_err(|error| error.to_string());
        assert_eq!(expected("a").unwrap(), "a\n");
        assert!(expected("b").unwrap_err().contains("varies"));
        assert!(expected("c").unwrap_err().contains("never ran"));
        let later = |machine| Conformance {
            commit: "later".to_owned(),
            machine,
            programs: vec![program("c", Status::Ok), program("b", Status::Ok)],
            ..record.clone()
        };
        let mut grown = record.clone();
        grown.adopt(later(Machine::default())).unwrap();
        let names: Vec<(&str, Option<&str>)> = grown
            .programs
            .iter()
            .map(|p| (p.name.as_str(), p.commit.as_deref()))
            .collect();
        assert_eq!(names, [("a", None), ("b", Some("later")), ("c", Some("later"))]);
        assert_eq!(grown.expected(root.path(), "b").unwrap(), "b\n");
        let other = Machine {
            cores: Some(3),
            ..Machine::default()
        };
        assert!(grown.adopt(later(other)).is_err());
        assert_ne!(record.programs[0].source_hash, record.programs[1].source_hash);
        write("common.cuh", "// two\n");
        assert!(expected("a").unwrap_err().contains("not the program"));
    }
}
