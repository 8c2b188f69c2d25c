//! The JSON that `--format json` prints. Fields are only ever added; a change of meaning raises [`VERSION`].
//!
//! Lines and columns count from 1, columns in bytes of UTF-8; offsets are bytes from the start of the file. Fields that are
//! `null` or lists that are empty are always present, so that a consumer need not test for them.

use gridfuse_analysis::diagnostic::Severity;
use gridfuse_analysis::launch::Launchers;
use serde::Serialize;

/// Version of the schema: the field `schema` of every report.
pub const VERSION: u32 = 1;

/// A position in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// Bytes from the start of the file.
    pub offset: u32,
}

/// A range in a file; the end is exclusive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Path, relative to the current directory where it lies under it.
    pub path: String,
    /// First position.
    pub start: Position,
    /// Position behind the last byte.
    pub end: Position,
}

/// A statement with its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// A sentence or a fragment of one.
    pub text: String,
    /// Where.
    pub place: Option<Place>,
}

/// What `check` prints.
#[derive(Debug, Serialize)]
pub struct CheckReport {
    /// [`VERSION`].
    pub schema: u32,
    /// Version of gridfuse.
    pub version: &'static str,
    /// Counts.
    pub summary: Summary,
    /// What `--fix` has fixed, in order.
    pub fixed: Vec<Fixed>,
    /// The findings (with `--fix` those that are left), by file and place.
    pub findings: Vec<Finding>,
    /// Files that were found in a directory and left out.
    pub skipped: Vec<Skipped>,
}

/// A fix that was applied.
#[derive(Debug, Serialize)]
pub struct Fixed {
    /// Id of the diagnostic.
    pub id: &'static str,
    /// What was done.
    pub title: &'static str,
    /// Where the diagnostic was; the fixes before this one may have moved it.
    pub place: Place,
}

/// Counts over the checked files.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Summary {
    /// Checked files.
    pub files: usize,
    /// Kernels (definitions).
    pub kernels: usize,
    /// Launch sites in kernels and device functions.
    pub launches: usize,
    /// Kernels and device functions that contain such launch sites.
    pub launching_functions: usize,
    /// Findings of severity `error`.
    pub errors: usize,
    /// Findings of severity `warning`.
    pub warnings: usize,
    /// Findings of severity `info`.
    pub infos: usize,
}

/// A file that was not checked.
#[derive(Debug, Serialize)]
pub struct Skipped {
    /// Its path.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// One finding.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// Id of the diagnostic: `launch-in-loop`.
    pub id: &'static str,
    /// `error`, `warning` or `info`.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// Short form of the message.
    pub label: String,
    /// Where.
    pub place: Place,
    /// Causes.
    pub related: Vec<Note>,
    /// What to do.
    pub help: Option<String>,
    /// Rewrites that mend it and can be applied.
    pub fixes: Vec<Fix>,
}

/// A rewrite that mends a finding.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// Id of the rewrite.
    pub rewrite: &'static str,
    /// Its title.
    pub title: &'static str,
    /// What it takes for granted; empty when the analysis proved it right.
    pub assumptions: Vec<Note>,
    /// The command that shows the edit as a diff.
    pub command: Vec<String>,
}

/// What `explain` prints.
#[derive(Debug, Serialize)]
pub struct ExplainReport {
    /// [`VERSION`].
    pub schema: u32,
    /// Version of gridfuse.
    pub version: &'static str,
    /// The launch sites in source order.
    pub launches: Vec<Launch>,
}

/// A function.
#[derive(Clone, Debug, Serialize)]
pub struct Function {
    /// Qualified name.
    pub name: String,
    /// `kernel`, `device` or `host`.
    pub kind: &'static str,
    /// Place of its name.
    pub place: Place,
}

/// The kernel that is launched.
#[derive(Debug, Serialize)]
pub struct Child {
    /// Name as written; `null` for a computed callee.
    pub name: Option<String>,
    /// `known`, `ambiguous` (several definitions fit) or `unknown` (no definition was found).
    pub status: &'static str,
    /// The definitions.
    pub definitions: Vec<Function>,
}

/// How uniform a value or a decision is.
#[derive(Debug, Serialize)]
pub struct Uniformity {
    /// `constant`, `grid-uniform`, `block-uniform`, `warp-uniform` or `varying`.
    pub level: &'static str,
    /// Why it isn't more uniform.
    pub why: Option<Note>,
    /// What that takes for granted.
    pub assumes: Vec<Note>,
}

/// An argument or a part of the config.
#[derive(Debug, Serialize)]
pub struct Operand {
    /// Source text.
    pub text: String,
    /// Where.
    pub place: Place,
    /// The child's parameter (arguments only).
    pub parameter: Option<String>,
    /// How uniform it is.
    pub uniformity: Uniformity,
    /// A loop around the launch changes it.
    pub changes_in_loop: bool,
}

/// Grid or block size.
#[derive(Debug, Serialize)]
pub struct Extent {
    /// The expression.
    #[serde(flatten)]
    pub operand: Operand,
    /// x, y and z, when they are constant.
    pub constant: Option<[u64; 3]>,
}

/// The number of child threads that the grid size was computed from.
#[derive(Debug, Serialize)]
pub struct Threads {
    /// The expression.
    pub text: String,
    /// The recognised form.
    pub form: &'static str,
    /// Where.
    pub place: Place,
}

/// Whether a rewrite can be applied.
#[derive(Debug, Serialize)]
pub struct RewriteVerdict {
    /// Id of the rewrite.
    pub rewrite: &'static str,
    /// Its title.
    pub title: &'static str,
    /// `eligible`, `assumes` or `ineligible`.
    pub verdict: &'static str,
    /// What is assumed, or why not.
    pub reasons: Vec<Note>,
}

/// How often a launch site launches. Counts in words: `1`, `0 or 1`, `up to (end - begin) * blockDim`, `0 or more`.
#[derive(Debug, Serialize)]
pub struct Count {
    /// By one thread of the launching function.
    pub per_thread: String,
    /// By one block.
    pub per_block: String,
    /// By one grid.
    pub per_grid: String,
    /// The condition that keeps threads from launching, but for one that only picks a thread.
    pub guard: Option<Place>,
    /// Threads of one child grid.
    pub child_threads: String,
    /// `tiny` (fewer threads than a warp), `constant` or `symbolic`.
    pub child_size: &'static str,
    /// Threads of all child grids of one parent grid, at most.
    pub total_threads: String,
    /// `none`, `endless`, `bounded` or `open` (data decide how deep it goes).
    pub recursion: &'static str,
    /// Levels of a bounded recursion, where they are known.
    pub levels: Option<u64>,
}

/// Everything known about a launch site.
#[derive(Debug, Serialize)]
pub struct Launch {
    /// Where.
    pub place: Place,
    /// The whole launch expression.
    pub text: String,
    /// The kernel that is launched.
    pub child: Child,
    /// The function that launches.
    pub parent: Function,
    /// Who launches.
    pub launchers: Launchers,
    /// Loops around it, innermost first.
    pub loops: Vec<Place>,
    /// How uniform the decision to launch is.
    pub divergence: Uniformity,
    /// The child may launch the parent again.
    pub recursive: bool,
    /// It stands in an alternative of `#if`.
    pub conditional: bool,
    /// How often it launches.
    pub count: Count,
    /// Grid size.
    pub grid: Extent,
    /// Block size.
    pub block: Extent,
    /// Bytes of dynamic shared memory; `null`: none.
    pub shared: Option<Operand>,
    /// `null`, `fire-and-forget`, `tail-launch`, `per-thread`, `created` or `other`.
    pub stream: &'static str,
    /// The stream as written.
    pub stream_operand: Option<Operand>,
    /// Recovered number of child threads.
    pub threads: Option<Threads>,
    /// The arguments.
    pub args: Vec<Operand>,
    /// Every rewrite's verdict; empty for launches from host code.
    pub rewrites: Vec<RewriteVerdict>,
}

/// What `list` prints.
#[derive(Debug, Serialize)]
pub struct ListReport {
    /// [`VERSION`].
    pub schema: u32,
    /// Version of gridfuse.
    pub version: &'static str,
    /// Every kind of diagnostic.
    pub diagnostics: Vec<ListedDiagnostic>,
    /// Every rewrite.
    pub rewrites: Vec<ListedRewrite>,
}

/// A kind of diagnostic.
#[derive(Debug, Serialize)]
pub struct ListedDiagnostic {
    /// Its id.
    pub id: &'static str,
    /// Default severity.
    pub severity: Severity,
    /// Markdown.
    pub doc: &'static str,
}

/// A rewrite.
#[derive(Debug, Serialize)]
pub struct ListedRewrite {
    /// Its id.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Markdown.
    pub doc: &'static str,
    /// Its options.
    pub options: Vec<ListedOption>,
}

/// An option of a rewrite.
#[derive(Debug, Serialize)]
pub struct ListedOption {
    /// Its name: `--set NAME=value`.
    pub name: &'static str,
    /// Default value.
    pub default: &'static str,
    /// One sentence.
    pub doc: &'static str,
}
