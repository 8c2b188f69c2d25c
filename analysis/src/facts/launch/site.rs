//! What is known about a launch site.

use crate::base::span::Span;
use crate::facts::uniformity::Uniformity;
use crate::hir::resolve::Child;
use crate::hir::{BindingId, ExprId, StmtId};

/// An argument or a config expression.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct Operand {
    /// The expression.
    pub expr: ExprId,
    /// Its source.
    pub span: Span,
    /// Its uniformity at the launch (for one execution of the launch).
    pub uniformity: Uniformity,
    /// It can have a different value in another execution of this launch by the same thread: a loop around the launch changes it.
    pub changes_in_loop: bool,
    /// Name of the child's parameter (arguments only, when the child is known).
    pub parameter: Option<String>,
}

/// Grid or block size, seen through local `dim3` variables.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct Extent {
    /// The operand as written.
    pub operand: Operand,
    /// x, y, z when the components are known as expressions (`None` component: it is 1).
    pub components: Option<[Option<ExprId>; 3]>,
    /// Its value, when constant.
    pub constant: Option<[u64; 3]>,
}

/// Which stream a launch goes to.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub enum Stream {
    /// The NULL stream: left out, `0`, `NULL`, `nullptr` (unless the file is compiled with `--default-stream per-thread`),
    /// `cudaStreamLegacy`
    Null,
    /// `cudaStreamFireAndForget`
    FireAndForget,
    /// `cudaStreamTailLaunch`
    TailLaunch,
    /// `cudaStreamPerThread`; with `--default-stream per-thread` also where no stream is given.
    PerThread,
    /// A local variable created with `cudaStreamCreateWithFlags` in this function, or an element of an array of such streams.
    Created(BindingId),
    /// Anything else.
    Other,
}

/// Number of child threads wanted, recovered from a ceiling division in the grid size (Olabi et al., CGO 2022, §3.1).
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct ThreadCount {
    /// The expression `n` of `(n + b - 1) / b`, in the launching function.
    pub expr: ExprId,
    /// Its source.
    pub span: Span,
    /// The recognised form, for explanation: `(n + b - 1) / b`.
    pub form: &'static str,
}

/// Who executes the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, salsa::SalsaValue, serde::Serialize)]
pub enum Launchers {
    /// Possibly every thread.
    ManyThreads,
    /// One thread of each warp.
    OnePerWarp,
    /// One thread of each block.
    OnePerBlock,
    /// One thread of the grid.
    OnePerGrid,
    /// Host code.
    Host,
}

/// A loop around a launch.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct LoopAround {
    /// The loop statement.
    pub stmt: StmtId,
    /// Span of its head keyword to the end of its head (or of the whole statement for `do`).
    pub span: Span,
}

/// Everything known about one launch site.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct LaunchFacts<'db> {
    /// The launch expression.
    pub expr: ExprId,
    /// Source of the whole launch expression.
    pub span: Span,
    /// The statement `child<<<…>>>(…);` when the launch is a statement of its own.
    pub statement: Option<StmtId>,
    /// Kernel name as written.
    pub kernel_name: Option<String>,
    /// The kernel.
    pub child: Child<'db>,
    /// Grid size.
    pub grid: Extent,
    /// Block size.
    pub block: Extent,
    /// Dynamic shared memory in bytes; `None`: 0.
    pub shared: Option<Operand>,
    /// The stream operand, where it is written.
    pub stream_operand: Option<Operand>,
    /// The stream.
    pub stream: Stream,
    /// Arguments.
    pub args: Vec<Operand>,
    /// Wanted number of child threads.
    pub threads: Option<ThreadCount>,
    /// Loops around it, innermost first.
    pub loops: Vec<LoopAround>,
    /// Uniformity of the decision to launch, with the condition that causes it.
    pub divergence: Uniformity,
    /// The child's body (transitively) launches the parent again or itself.
    pub recursive: bool,
    /// Who launches.
    pub launchers: Launchers,
    /// Where that is one thread of a block, it may be another one each time that the block comes here: `threadIdx.x == k` in a loop
    /// over `k`, or a number that threads draw.
    pub turns: bool,
    /// It stands in an alternative of `#if`.
    pub conditional: bool,
    /// It stands in a lambda: when and by whom it is executed isn't known.
    pub in_lambda: bool,
    /// It comes out of a macro: the text at `span` is the macro's use, not the launch.
    pub from_macro: bool,
}
