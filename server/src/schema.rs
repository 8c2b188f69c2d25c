//! The JSON that `--format json` prints. Fields are only ever added; a change of meaning raises [`VERSION`].
//!
//! Lines and columns count from 1, columns in bytes of UTF-8; offsets are bytes from the start of the file. Fields that are
//! `null` or lists that are empty are always present, so that a consumer need not test for them.

use std::borrow::Cow;

use gridfuse_analysis::base::severity::Severity;
use gridfuse_analysis::facts::launch::Launchers;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

/// Version of the schema: the field `schema` of every report.
pub const VERSION: u32 = 1;

/// The analyses know nothing of schemas.
fn severities(_: &mut SchemaGenerator) -> Schema {
    one_of(&[Severity::Error, Severity::Warning, Severity::Info])
}

fn all_launchers(_: &mut SchemaGenerator) -> Schema {
    use Launchers::{Host, ManyThreads, OnePerBlock, OnePerGrid, OnePerWarp};
    one_of(&[ManyThreads, OnePerWarp, OnePerBlock, OnePerGrid, Host])
}

fn one_of<T: Serialize>(values: &[T]) -> Schema {
    schemars::json_schema!({ "enum": values })
}

/// A position in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// Bytes from the start of the file.
    pub offset: u32,
}

/// A range in a file; the end is exclusive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Place {
    /// Path, relative to the current directory where it lies under it.
    pub path: String,
    /// First position.
    pub start: Position,
    /// Position after the last byte.
    pub end: Position,
}

/// A statement with its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Note {
    /// A sentence or a fragment of one.
    pub text: String,
    /// Where.
    pub place: Option<Place>,
    /// Of what kind it is, where a rewrite takes it for granted: an id of `list`'s assumptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumption: Option<&'static str>,
}

/// What `check` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckReport {
    /// Version of this form; it grows when a field changes its meaning.
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
#[derive(Debug, Serialize, JsonSchema)]
pub struct Fixed {
    /// Id of the diagnostic.
    pub id: &'static str,
    /// What was done.
    pub title: &'static str,
    /// Where the diagnostic was; the fixes before this one may have moved it.
    pub place: Place,
}

/// Counts over the checked files.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct Summary {
    /// Checked files.
    pub files: usize,
    /// Kernels (definitions).
    pub kernels: usize,
    /// Launch sites in kernels and device functions, without those of the runtime header.
    pub launches: usize,
    /// Launches that a rewrite has collected, beside those.
    pub collected: usize,
    /// Kernels and device functions that contain such launch sites, or collected launches.
    pub launching_functions: usize,
    /// Findings of severity `error`.
    pub errors: usize,
    /// Findings of severity `warning`.
    pub warnings: usize,
    /// Findings of severity `info`.
    pub infos: usize,
    /// Findings that are left out, as the baseline has them.
    pub baseline: usize,
}

/// A file that was not checked.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Skipped {
    /// Its path.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// One finding.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Finding {
    /// Id of the diagnostic: `launch-in-loop`.
    pub id: &'static str,
    /// `error`, `warning` or `info`.
    #[schemars(schema_with = "severities")]
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
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fix {
    /// Id of the rewrite.
    pub rewrite: &'static str,
    /// What it does, as the title of an action.
    pub title: Cow<'static, str>,
    /// What it takes for granted; empty when the analysis proved it right.
    pub assumptions: Vec<Note>,
    /// The command that shows the edit as a diff.
    pub command: Vec<String>,
}

/// What `explain` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExplainReport {
    /// Version of this form; it grows when a field changes its meaning.
    pub schema: u32,
    /// Version of gridfuse.
    pub version: &'static str,
    /// The launch sites in source order.
    pub launches: Vec<Launch>,
    /// The launches that a rewrite has collected, in source order.
    pub collected: Vec<CollectedLaunch>,
}

/// A launch that a rewrite has made a call of a collector: `children.launch(…)`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CollectedLaunch {
    /// Where.
    pub place: Place,
    /// The whole call.
    pub text: String,
    /// How it runs, in short: `collected per block`.
    pub runs: String,
    /// How it runs, as a sentence.
    pub answer: String,
    /// Other calls that are collected together with it.
    pub others: usize,
    /// The kernel whose grids are collected.
    pub child: Function,
    /// The kernel or device function that launches.
    pub parent: Function,
    /// The launch that it was, as `revert` writes it; `null` where that can't be taken back.
    pub was: Option<String>,
    /// Who launches, as people read it.
    #[serde(skip)]
    pub who: Option<Launchers>,
    /// Who launches, as for a launch; `null` in a device function of which no caller is in sight.
    pub launched_by: Option<&'static str>,
    /// How uniform the decision is that control reaches it.
    pub divergence: Uniformity,
    /// Loops around it, innermost first.
    pub loops: Vec<Place>,
    /// Grid size, block size and shared memory, as far as they are there.
    pub config: Vec<Value>,
    /// The arguments that differ between the launches that are collected.
    pub args: Vec<Value>,
    /// The rewrite that makes it faster, as a rule; `null` where none does.
    pub faster: Option<&'static str>,
    /// The rewrites that can be applied here, in the order of a menu.
    pub rewrites: Vec<RewriteVerdict>,
}

/// A value that a collected launch is called with.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Value {
    /// `grid`, `block`, `shared memory`, or the argument's name, where it's known.
    pub name: Option<String>,
    /// Source text.
    pub text: String,
    /// Where.
    pub place: Place,
    /// How uniform it is over all threads that might get to the launch.
    pub uniformity: Uniformity,
}

/// A function.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Function {
    /// Qualified name.
    pub name: String,
    /// `kernel`, `device` or `host`.
    pub kind: &'static str,
    /// Place of its name.
    pub place: Place,
}

/// The kernel that is launched.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Child {
    /// Name as written; `null` for a computed callee.
    pub name: Option<String>,
    /// `known`, `ambiguous` (several definitions fit) or `unknown` (no definition was found).
    pub status: &'static str,
    /// The definitions.
    pub definitions: Vec<Function>,
}

/// How uniform a value or a decision is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Uniformity {
    /// `constant`, `grid-uniform`, `block-uniform`, `warp-uniform` or `varying`, if what `assumes` says holds.
    pub level: &'static str,
    /// The level that is proved without regard to the programmer's intentions: what rewrites go by. Never more uniform than `level`.
    pub proved: &'static str,
    /// Why it isn't more uniform.
    pub why: Option<Note>,
    /// What that takes for granted.
    pub assumes: Vec<Note>,
}

/// A wait of the launching thread for its child grids.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Sync {
    /// The call that waits.
    pub place: Place,
    /// Every launching thread comes to such a call after the launch.
    pub always: bool,
    /// Whether `replace-device-sync` can do without it; `null` where the wait is in another function.
    pub replace: Option<RewriteVerdict>,
}

/// An argument or a part of the config.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Operand {
    /// Source text.
    pub text: String,
    /// Where.
    pub place: Place,
    /// The child's parameter (arguments only).
    pub parameter: Option<String>,
    /// How uniform it is over all threads that might get to the launch, were there no condition that picks one of them.
    pub uniformity: Uniformity,
    /// All launches by threads of one block hand on the same value: where one thread of a block launches once, trivially so.
    pub same_in_block: bool,
    /// All launches by threads of the grid hand on the same value.
    pub same_in_grid: bool,
    /// A loop around the launch changes it.
    pub changes_in_loop: bool,
}

/// Grid or block size.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Extent {
    /// The expression.
    #[serde(flatten)]
    pub operand: Operand,
    /// x, y and z, when they are constant.
    pub constant: Option<[u64; 3]>,
}

/// The number of child threads that the grid size was computed from.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Threads {
    /// The expression.
    pub text: String,
    /// The recognised form.
    pub form: &'static str,
    /// Where.
    pub place: Place,
}

/// Whether a rewrite can be applied.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RewriteVerdict {
    /// Id of the rewrite.
    pub rewrite: &'static str,
    /// What it does, as the title of an action.
    pub title: Cow<'static, str>,
    /// `eligible`, `assumes` or `ineligible`.
    pub verdict: &'static str,
    /// What is assumed, or why not.
    pub reasons: Vec<Note>,
    /// The code in sight contradicts what is assumed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub refuted: bool,
    /// What a rewrite that is made of others consists of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// It may make the program faster by itself.
    #[serde(skip)]
    pub may_gain: bool,
}

impl RewriteVerdict {
    /// The verdict as tables tell it: what the code contradicts doesn't fit, whatever one would be ready to assume.
    pub fn word(&self) -> &'static str {
        match self.refuted {
            true => "contradicted",
            false => self.verdict,
        }
    }
}

/// What `optimize` does to a launch.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Plan {
    /// What it applies, in order.
    pub steps: Vec<Step>,
    /// What it leaves out.
    pub without: Vec<Step>,
    /// All that it does another rewrite does, too: a menu has one entry for both.
    #[serde(skip)]
    pub twin: bool,
}

/// A rewrite that `optimize` applies or leaves out.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Step {
    /// Its id, with the value of its option: `threshold=32`.
    pub rewrite: String,
    /// Why.
    pub why: String,
}

/// How often a launch site launches. Counts in words: `1`, `0 or 1`, `up to (end - begin) * blockDim.x`, `0 or more`.
#[derive(Debug, Serialize, JsonSchema)]
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

/// Whether two executions depend on each other through memory.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Dependence {
    /// `none` (proven), `conflict` (two accesses may meet, and their order matters) or `unknown`.
    pub verdict: &'static str,
    /// Why: in words.
    pub because: String,
    /// The accesses or the place that it's about.
    pub places: Vec<Note>,
}

/// How a child grid depends on those of another launch of the same function.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OtherLaunch {
    /// The other launch.
    pub place: Place,
    /// How.
    pub dependence: Dependence,
}

/// The iterations of a loop around a launch.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LoopIterations {
    /// The loop's head.
    pub place: Place,
    /// What it goes over, `n`, where it's a grid-stride loop: each thread takes every iteration that is as many further as the grid has
    /// threads.
    pub grid_stride: Option<String>,
    /// `parallel`, `reduction`, `scan`, `carried` or `unknown`.
    pub kind: &'static str,
    /// Why: in words.
    pub because: String,
    /// The accesses that it's about.
    pub places: Vec<Note>,
}

/// The first statements of the child that don't depend on what the parent does before the launch.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HeadStart {
    /// The statements; `null`: none.
    pub place: Option<Place>,
    /// What ends them; `null`: the whole child doesn't depend on it.
    pub stop: Option<Note>,
}

/// What child grids have to do with each other and with their parent, through memory.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Dependences {
    /// What the parent does after the launch, and the child.
    pub behind: Dependence,
    /// Child grids that different threads of a block launch.
    pub threads: Dependence,
    /// Child grids of different launches by one thread; `null`: it launches one at most.
    pub iterations: Option<Dependence>,
    /// Child grids of other launches of the function.
    pub others: Vec<OtherLaunch>,
    /// Loops around the launch, innermost first.
    pub loops: Vec<LoopIterations>,
    /// What of the child could start early; `null` where the child isn't known.
    pub head_start: Option<HeadStart>,
}

/// Everything known about a launch site.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Launch {
    /// Where.
    pub place: Place,
    /// The whole launch expression.
    pub text: String,
    /// The kernel that is launched.
    pub child: Child,
    /// The function that launches.
    pub parent: Function,
    /// Who launches, as far as the conditions in this function tell.
    #[schemars(schema_with = "all_launchers")]
    pub launchers: Launchers,
    /// Who launches, also by what is known of the grids that launch: what people read, beside numbers that take it into account.
    #[serde(skip)]
    pub who: Launchers,
    /// Who launches, also by what is known of the function's callers and of the grids that it is launched with:
    /// `many-threads` (possibly every thread), `one-per-warp`, `one-per-block`, `one-per-grid` or `host`.
    pub launched_by: &'static str,
    /// There is a loop around it in this function.
    pub in_loop: bool,
    /// Loops around it, innermost first.
    pub loops: Vec<Place>,
    /// Threads of one block may decide differently whether to launch: `divergence` is `warp-uniform` or `varying`.
    pub divergent: bool,
    /// How uniform the decision to launch is.
    pub divergence: Uniformity,
    /// It is part of a recursion: the child may come to run this launch again, over however many kernels and functions.
    pub recursive: bool,
    /// The parent allocates memory of the device's heap itself.
    pub allocates: bool,
    /// The launching thread waits for its child grids later in this function; `null`: it doesn't.
    pub sync: Option<Sync>,
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
    /// `null`, `fire-and-forget`, `tail-launch`, `per-thread`, `created` (by device code, also by all callers of a function
    /// that is handed its stream) or `other`.
    pub stream: &'static str,
    /// The stream as written.
    pub stream_operand: Option<Operand>,
    /// Recovered number of child threads.
    pub threads: Option<Threads>,
    /// The arguments.
    pub args: Vec<Operand>,
    /// Dependences through memory; `null` for launches from host code.
    pub dependences: Option<Dependences>,
    /// Every rewrite's verdict; empty for launches from host code.
    pub rewrites: Vec<RewriteVerdict>,
}

/// What `list` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListReport {
    /// Version of this form; it grows when a field changes its meaning.
    pub schema: u32,
    /// Version of gridfuse.
    pub version: &'static str,
    /// Every kind of diagnostic.
    pub diagnostics: Vec<ListedDiagnostic>,
    /// Every rewrite.
    pub rewrites: Vec<ListedRewrite>,
    /// Everything that rewrites may take for granted.
    pub assumptions: Vec<ListedAssumption>,
}

/// A kind of diagnostic.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListedDiagnostic {
    /// Its id.
    pub id: &'static str,
    /// Default severity.
    #[schemars(schema_with = "severities")]
    pub severity: Severity,
    /// Markdown.
    pub doc: &'static str,
}

/// A rewrite.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListedRewrite {
    /// Its id.
    pub id: &'static str,
    /// What `--at` has to name: a `launch` by device code, or any `place`.
    pub at: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Markdown.
    pub doc: &'static str,
    /// Its options.
    pub options: Vec<ListedOption>,
}

/// A kind of assumption.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListedAssumption {
    /// Its id.
    pub id: &'static str,
    /// What is taken for granted, in few words.
    pub title: &'static str,
    /// Markdown.
    pub doc: &'static str,
}

/// An option of a rewrite.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListedOption {
    /// Its name: `--set NAME=value`.
    pub name: &'static str,
    /// Default value.
    pub default: &'static str,
    /// One sentence.
    pub doc: &'static str,
}

/// What `doctor` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoctorReport {
    /// Version of this form; it grows when a field changes its meaning.
    pub schema: u32,
    /// Version of gridfuse.
    pub version: &'static str,
    /// Nothing is missing for `measure` and `tune` on this machine.
    pub measures: bool,
    /// Names of the checks that found something missing.
    pub missing: Vec<&'static str>,
    /// The command that leads to the machine on which the project is measured; `null`: this one.
    pub runner: Option<String>,
    /// Everything that was looked at.
    pub checks: Vec<Check>,
    /// The GPUs that a program sees, as the driver tells of them; empty where only nvidia-smi could be asked.
    pub gpus: Vec<Gpu>,
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Gpu {
    /// Its name: `NVIDIA H200`.
    pub name: String,
    /// `9.0`, which compilers call `sm_90`.
    pub compute_capability: String,
    /// How many multiprocessors it has.
    pub multiprocessors: u32,
    /// How much memory it has.
    pub memory_bytes: u64,
}

/// Something that `doctor` looked at.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Check {
    /// What: `compiler`, `host compiler`, `device runtime`, `driver`, `GPU`, `gridfuse.toml` or `compile commands`.
    pub name: &'static str,
    /// Whether it's there.
    pub status: CheckStatus,
    /// What was found.
    pub found: String,
    /// What to do.
    pub help: Option<String>,
}

/// Whether something is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// It's there.
    Ok,
    /// It isn't needed, or isn't known.
    Note,
    /// It's needed to measure.
    Missing,
}
