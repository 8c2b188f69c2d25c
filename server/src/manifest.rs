//! `gridfuse.toml`: what a project says about itself.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use gridfuse_analysis::base::closest::closest;
use gridfuse_analysis::base::settings::Settings;
use gridfuse_analysis::base::severity::Severity;
use gridfuse_analysis::diagnostics::KINDS;
use serde::Deserialize;
use toml::Spanned;

use crate::files::{self, MAX_FOUND_BYTES, normalize};
use crate::hints::WantedHints;
use crate::line_index::LineIndex;

/// Its name.
pub const NAME: &str = "gridfuse.toml";

/// What it says, understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// For the analyses.
    pub settings: Settings,
    /// Which inlay hints an editor shows.
    pub hints: WantedHints,
    /// The `compile_commands.json`, or the directory that it is in, absolute.
    pub compile_commands: Option<PathBuf>,
    /// How the project is built to be measured.
    pub build: Option<ProjectBuild>,
    /// The command that leads to the machine on which programs are measured; `None`: it's this one.
    pub runner: Option<String>,
    /// The files that programs read, to be sent there.
    pub inputs: Option<Inputs>,
    /// How kernels are run by themselves.
    pub runs: Option<KernelRuns>,
}

/// The files that programs read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inputs {
    /// The directory of the `gridfuse.toml`.
    pub root: PathBuf,
    /// Patterns of paths in it, like those of `.gitignore`.
    pub patterns: Vec<String>,
}

/// The entries `[[measure.kernel]]`, with what is needed to speak of their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRuns {
    /// The `gridfuse.toml`.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// The entries.
    pub runs: Vec<KernelRun>,
}

/// An entry `[[measure.kernel]]`: its values are expressions of run specifications, not yet understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRun {
    /// The kernel.
    pub name: Written,
    /// The file that it's in, absolute, where several have one of this name.
    pub file: Option<PathBuf>,
    /// `int, 4`
    pub template_arguments: Option<String>,
    /// Grid size.
    pub grid: Written,
    /// Block size.
    pub block: Written,
    /// Bytes of dynamic shared memory.
    pub shared: Option<Written>,
    /// Names, or elements `name[index]`, and their values.
    pub arguments: Vec<(Written, Written)>,
}

/// A text with the byte of the file at which it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Byte offset.
    pub at: usize,
    /// What is written.
    pub text: String,
}

/// A command that builds a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectBuild {
    /// A line for the shell, which is run in the root.
    pub command: String,
    /// The program that it makes, relative to the root.
    pub program: PathBuf,
    /// The project's directory: that of its `gridfuse.toml`.
    pub root: PathBuf,
}

/// What is wrong in it, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// The file.
    pub path: PathBuf,
    /// Line and column, from 1, the column in bytes; `None`: the file as a whole.
    pub position: Option<(u32, u32)>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some((line, column)) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct WrittenManifest {
    arch: Option<Spanned<String>>,
    cuda: Option<Spanned<String>>,
    include_dirs: Vec<PathBuf>,
    defines: Vec<Spanned<String>>,
    header_dir: Option<PathBuf>,
    inlay_hints: WrittenHints,
    compile_commands: Option<PathBuf>,
    severity: BTreeMap<Spanned<String>, Spanned<String>>,
    thresholds: Thresholds,
    measure: WrittenMeasure,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenMeasure {
    build: Option<Spanned<String>>,
    program: Option<Spanned<PathBuf>>,
    runner: Option<Spanned<String>>,
    inputs: Vec<Spanned<String>>,
    kernel: Vec<WrittenRun>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct WrittenRun {
    name: Spanned<String>,
    file: Option<PathBuf>,
    template_arguments: Option<String>,
    grid: Spanned<toml::Value>,
    block: Spanned<toml::Value>,
    shared: Option<Spanned<toml::Value>>,
    #[serde(default)]
    arguments: BTreeMap<Spanned<String>, Spanned<toml::Value>>,
}

impl WrittenRun {
    fn understood(self, home: &Path) -> Result<KernelRun, (Range<usize>, String)> {
        let mut arguments = Vec::new();
        for (name, value) in self.arguments {
            let at = name.span().start;
            let text = name.into_inner();
            arguments.push((Written { at, text }, expression(value)?));
        }
        Ok(KernelRun {
            file: self.file.map(|file| normalize(&home.join(file))),
            template_arguments: self.template_arguments,
            grid: expression(self.grid)?,
            block: expression(self.block)?,
            shared: self.shared.map(expression).transpose()?,
            arguments,
            name: Written {
                at: self.name.span().start,
                text: self.name.into_inner(),
            },
        })
    }
}

/// A value as it would stand in a comment: `16384`, `"csr(rmat, n)"`, `[64, 64]`.
fn expression(value: Spanned<toml::Value>) -> Result<Written, (Range<usize>, String)> {
    let span = value.span();
    let text = match value.into_inner() {
        toml::Value::String(text) => text,
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => format!("{number:?}"),
        toml::Value::Array(sides) if sides.iter().all(toml::Value::is_integer) => {
            let sides: Vec<String> = sides.iter().map(ToString::to_string).collect();
            format!("dim3({})", sides.join(", "))
        }
        other => {
            let message = format!(
                "expected a number, or a text such as \"zeros(n)\", not {}",
                other.type_str()
            );
            return Err((span, message));
        }
    };
    Ok(Written { at: span.start, text })
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenHints {
    arguments: Option<bool>,
    config: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Thresholds {
    tiny_grid: Option<u64>,
    pending_launches: Option<u64>,
    nesting_depth: Option<u64>,
}

/// Understands an architecture: `sm_90`.
pub fn arch(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix("sm_").map(|n| n.trim_end_matches(['a', 'f']));
    let known = number.and_then(|n| n.parse().ok()).filter(|n| (35..1000).contains(n));
    known.ok_or_else(|| format!("`{text}` is no architecture: write it like `sm_90`"))
}

/// Understands a version of the toolkit: `12.4`.
pub fn cuda(text: &str) -> Result<(u32, u32), String> {
    let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
    let parsed = major.parse().ok().zip(minor.parse().ok());
    parsed.ok_or_else(|| format!("`{text}` is no version of CUDA: write it like `12.4`"))
}

/// Understands a macro as a compiler takes it behind `-D`: `X=32` is `X 32`, `X` is `X 1`.
pub fn definition(text: &str) -> Result<String, String> {
    let (head, value) = text
        .split_once('=')
        .map_or((text.trim(), "1"), |(head, value)| (head.trim(), value));
    let name = head.split('(').next().unwrap_or("").trim_end();
    let starts = name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic());
    let is_name = starts && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
    let list = &head[name.len()..];
    if !is_name || !(list.is_empty() || list.starts_with('(') && list.ends_with(')')) || value.contains(['\n', '\r']) {
        return Err(format!("`{text}` is no macro: write it like `X=32`"));
    }
    Ok(format!("{head} {value}"))
}

/// There is a diagnostic with that id.
pub fn known_diagnostic(id: &str) -> Result<(), String> {
    if KINDS.iter().any(|kind| kind.id == id) {
        return Ok(());
    }
    Err(match closest(id, KINDS.iter().map(|kind| kind.id)) {
        Some(meant) => format!("there is no diagnostic `{id}`: did you mean `{meant}`?"),
        None => format!("there is no diagnostic `{id}`: `gridfuse list` names them all"),
    })
}

/// Understands a severity; `None`: not reported.
pub fn severity(text: &str) -> Result<Option<Severity>, String> {
    match text {
        "off" => Ok(None),
        "info" => Ok(Some(Severity::Info)),
        "warning" => Ok(Some(Severity::Warning)),
        "error" => Ok(Some(Severity::Error)),
        other => Err(format!("`{other}` is no severity: write off, info, warning or error")),
    }
}

/// The text is a command that may lead to another machine.
pub fn runner(text: &str) -> Result<(), String> {
    match shlex::split(text) {
        Some(words) if !words.is_empty() => Ok(()),
        _ => Err("the runner is no command: write it like `ssh host` or `srun --gpus=1`".to_owned()),
    }
}

impl Manifest {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Manifest, ManifestError> {
        let text = files::read(path, MAX_FOUND_BYTES).map_err(|error| ManifestError {
            path: path.to_path_buf(),
            position: None,
            message: format!("cannot read it: {error}"),
        })?;
        Manifest::parse(path, &text)
    }

    /// Understands the text of the file at `path`.
    pub fn parse(path: &Path, text: &str) -> Result<Manifest, ManifestError> {
        let error = |span: Option<Range<usize>>, message: String| ManifestError {
            path: path.to_path_buf(),
            position: span.map(|span| {
                let (line, column) = LineIndex::new(text).line_column(span.start as u32);
                (line + 1, column + 1)
            }),
            message,
        };
        let at = |written: &Spanned<String>, message: String| error(Some(written.span()), message);
        let written: WrittenManifest =
            toml::from_str(text).map_err(|wrong| error(wrong.span(), wrong.message().replace('\n', "; ")))?;
        let mut settings = Settings::default();
        if let Some(written) = &written.arch {
            settings.arch = Some(arch(written.get_ref()).map_err(|message| at(written, message))?);
        }
        if let Some(written) = &written.cuda {
            settings.cuda = Some(cuda(written.get_ref()).map_err(|message| at(written, message))?);
        }
        for (id, written) in &written.severity {
            known_diagnostic(id.get_ref()).map_err(|message| at(id, message))?;
            let severity = severity(written.get_ref()).map_err(|message| at(written, message))?;
            settings.severities.insert(id.get_ref().clone(), severity);
        }
        let Thresholds {
            tiny_grid,
            pending_launches,
            nesting_depth,
        } = written.thresholds;
        settings.tiny_grid = tiny_grid.unwrap_or(settings.tiny_grid);
        settings.nesting_depth = nesting_depth.or(settings.nesting_depth);
        settings.pending_launches = pending_launches;
        let home = path.parent().unwrap_or(Path::new(""));
        let include_dirs = written.include_dirs.iter();
        settings.include_dirs = include_dirs.map(|dir| normalize(&home.join(dir))).collect();
        for written in &written.defines {
            let line = definition(written.get_ref()).map_err(|message| at(written, message))?;
            settings.defines.push(line);
        }
        settings.header_dir = written.header_dir.map(|dir| normalize(&home.join(dir)));
        let build = match (written.measure.build, written.measure.program) {
            (Some(build), Some(program)) => {
                let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
                if !program.get_ref().components().all(inside) {
                    let message = "the program has to be in the directory of this file, or below it".to_owned();
                    return Err(error(Some(program.span()), message));
                }
                Some(ProjectBuild {
                    command: build.into_inner(),
                    program: program.into_inner(),
                    root: home.to_path_buf(),
                })
            }
            (Some(build), None) => {
                let message = "`build` needs `program` beside it: the file that the command makes".to_owned();
                return Err(error(Some(build.span()), message));
            }
            (None, Some(program)) => {
                let message = "`program` needs `build` beside it: the command that makes it".to_owned();
                return Err(error(Some(program.span()), message));
            }
            (None, None) => None,
        };
        if let Some(written) = &written.measure.runner {
            runner(written.get_ref()).map_err(|message| at(written, message))?;
        }
        for pattern in &written.measure.inputs {
            let text = pattern.get_ref().trim();
            let up = Path::new(text).components().any(|part| part == Component::ParentDir);
            if text.is_empty() || text.starts_with('!') || up {
                let message =
                    "inputs are patterns of files in the directory of this file, or below it: `data/*.bin`".to_owned();
                return Err(at(pattern, message));
            }
        }
        let inputs = written.measure.inputs.into_iter().map(Spanned::into_inner);
        let inputs: Vec<String> = inputs.collect();
        let runs = written.measure.kernel.into_iter().map(|run| run.understood(home));
        let runs: Vec<KernelRun> = runs
            .collect::<Result<_, _>>()
            .map_err(|(span, message)| error(Some(span), message))?;
        Ok(Manifest {
            runner: written.measure.runner.map(Spanned::into_inner),
            inputs: (!inputs.is_empty()).then(|| Inputs {
                root: home.to_path_buf(),
                patterns: inputs,
            }),
            runs: (!runs.is_empty()).then(|| KernelRuns {
                path: path.to_path_buf(),
                text: text.to_owned(),
                runs,
            }),
            settings,
            hints: WantedHints {
                arguments: written.inlay_hints.arguments,
                config: written.inlay_hints.config,
            },
            compile_commands: written.compile_commands.map(|path| normalize(&home.join(path))),
            build,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Manifest, ManifestError> {
        Manifest::parse(Path::new("/w/gridfuse.toml"), text)
    }

    #[test]
    fn everything_is_read() -> Result<(), ManifestError> {
        assert_eq!(parse("")?, Manifest::default());
        let manifest = parse(
            r#"arch = 'sm_90a'
cuda = "12.4"
include-dirs = ['inc', '/usr/inc', '../x']
header-dir = 'inc'
defines = ['X=32', 'Y', 'TWICE(a)=(2 * (a))']
compile-commands = 'out/debug'
[severity]
launch-in-loop = 'off'
partial-warp = 'error'
[inlay-hints]
config = false
[thresholds]
tiny-grid = 64
pending-launches = 4096
nesting-depth = 8
[measure]
build = 'make -j4'
program = 'out/app'
runner = 'ssh gpu'
inputs = ['data/*.bin']
"#,
        )?;
        let settings = manifest.settings;
        assert_eq!((settings.arch, settings.cuda), (Some(90), Some((12, 4))));
        assert_eq!(settings.severity("launch-in-loop", Severity::Warning), None);
        assert_eq!(settings.severity("partial-warp", Severity::Info), Some(Severity::Error));
        assert_eq!(settings.severity("device-sync", Severity::Error), Some(Severity::Error));
        assert_eq!(
            (settings.tiny_grid, settings.pending_launches, settings.nesting_depth),
            (64, Some(4096), Some(8))
        );
        assert_eq!((manifest.hints.arguments, manifest.hints.config), (None, Some(false)));
        let dirs: Vec<PathBuf> = ["/w/inc", "/usr/inc", "/x"].map(PathBuf::from).to_vec();
        assert_eq!(settings.include_dirs, dirs);
        assert_eq!(settings.defines, ["X 32", "Y 1", "TWICE(a) (2 * (a))"]);
        assert_eq!(settings.header_dir, Some("/w/inc".into()));
        assert_eq!(manifest.compile_commands, Some("/w/out/debug".into()));
        let build = ProjectBuild {
            command: "make -j4".to_owned(),
            program: "out/app".into(),
            root: "/w".into(),
        };
        assert_eq!(manifest.build, Some(build));
        assert_eq!(manifest.runner.as_deref(), Some("ssh gpu"));
        let inputs = Inputs {
            root: "/w".into(),
            patterns: vec!["data/*.bin".to_owned()],
        };
        assert_eq!(manifest.inputs, Some(inputs));
        assert_eq!(manifest.runs, None);
        let text = r#"[[measure.kernel]]
name = 'k'
file = 'a/k.cu'
grid = '(n + 255) / 256'
block = [16, 16]
[measure.kernel.arguments]
n = 1000
'data[0]' = 0.5
"#;
        let runs = parse(text)?.runs.map(|runs| runs.runs).unwrap_or_default();
        let [run] = runs.as_slice() else {
            unreachable!("{runs:?}");
        };
        assert_eq!((run.name.text.as_str(), &run.file), ("k", &Some("/w/a/k.cu".into())));
        assert_eq!(
            (run.grid.text.as_str(), run.block.text.as_str()),
            ("(n + 255) / 256", "dim3(16, 16)")
        );
        let arguments: Vec<(&str, &str)> = run
            .arguments
            .iter()
            .map(|(name, value)| (name.text.as_str(), value.text.as_str()))
            .collect();
        assert_eq!(arguments, [("data[0]", "0.5"), ("n", "1000")]);
        Ok(())
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, position, part) in [
            ("arch = 90", (1, 8), "string"),
            ("\narch = 'compute_90'", (2, 8), "sm_90"),
            ("cuda = 'twelve'", (1, 8), "12.4"),
            ("defines = ['X=1', '3=4']", (1, 19), "X=32"),
            ("defines = ['X Y']", (1, 12), "X=32"),
            ("[severity]\n\n  nonsense = 'off'", (3, 3), "no diagnostic `nonsense`"),
            ("[severity]\ndevice-sync = 'fatal'", (2, 15), "`fatal` is no severity"),
            ("[thresholds]\ntiny = 3", (2, 1), "tiny"),
            ("[inlay-hints]\nall = true", (2, 1), "all"),
            ("[measure]\nbuild = 'make'", (2, 9), "`program`"),
            ("[measure]\nprogram = 'app'", (2, 11), "`build`"),
            ("[measure]\nbuild = 'make'\nprogram = '../app'", (3, 11), "below it"),
            ("[measure]\nrunner = ' '", (2, 10), "no command"),
            ("[measure]\ninputs = ['a', '../b']", (2, 16), "below it"),
            ("[measure]\ninputs = ['!a']", (2, 11), "below it"),
            (
                "[[measure.kernel]]\nname = 'k'\ngrid = 1\nblock = true",
                (4, 9),
                "zeros(n)",
            ),
            (
                "[[measure.kernel]]\nname = 'k'\ngrid = 1\nblock = 1\nargs = 3",
                (5, 1),
                "args",
            ),
            ("[thresholds]\ntiny-grid = -3", (2, 13), ""),
            ("x = ", (1, 5), ""),
        ] {
            match parse(text) {
                Ok(_) => unreachable!("{text} is wrong"),
                Err(error) => {
                    assert_eq!(error.position, Some(position), "{text}: {error}");
                    assert!(error.message.contains(part), "{text}: {error}");
                }
            }
        }
    }
}
