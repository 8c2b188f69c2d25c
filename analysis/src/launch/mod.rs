//! Launch sites: everything known about each `child<<<…>>>(…)`.

mod config;
mod count;
mod iterations;
mod launchers;
mod pending;
mod places;
mod recursion;
mod threads;
mod waits;

use crate::db::Db;
use crate::hir::{BindingId, Body, ExprId, ExprKind, Launch, Name, StmtId, StmtKind, body};
use crate::items::FunctionItem;
use crate::resolve::resolve_kernel;
use crate::settings::file_settings;
use crate::span::Span;
use crate::uniformity::{FunctionUniformity, Level, Uniformity, calls_of, only_known_calls, uniformity};

pub(crate) use config::{constant_extent, single_definition};
pub use config::{constant_value, depends_on_thread_index, is_scalar};
pub use count::{Amount, Bound, GridSize, LaunchCount, PENDING_LAUNCHES, Recursion, WARP, launch_counts};
pub use iterations::iteration_divergence;
pub(crate) use launchers::{Pins, launchers as who_executes, single_threaded};
pub use launchers::{gets_there_by_flat_blocks, takes_flat_blocks, who_gets_to, who_launches};
pub(crate) use pending::limits_set_in_text;
pub use pending::pending_launch_limit;
pub(crate) use places::children;
pub use places::{Places, statement_places};
pub use waits::{Wait, waits_after};

/// Identity of a launch site: the function that contains it, and its index in source order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct LaunchId<'db> {
    /// The function (a kernel, a device function or a host function).
    pub function: FunctionItem<'db>,
    /// Index into [`crate::hir::Body::launches`].
    pub index: u32,
}

/// Which kernel is launched.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub enum Child<'db> {
    /// Exactly one definition with a body is visible.
    Kernel(FunctionItem<'db>),
    /// Several definitions fit (overloads, `#if` alternatives).
    Ambiguous(Vec<FunctionItem<'db>>),
    /// No definition was found in the workspace (a name, a declaration only, a template parameter, a function pointer).
    Unknown,
}

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
    /// A local variable created with `cudaStreamCreateWithFlags` in this function.
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

/// What kind of stream a launch goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub enum StreamKind {
    /// The NULL stream.
    Null,
    /// `cudaStreamFireAndForget`
    FireAndForget,
    /// `cudaStreamTailLaunch`
    TailLaunch,
    /// `cudaStreamPerThread`
    PerThread,
    /// A stream that device code creates.
    Created,
    /// Anything else.
    Other,
}

/// The stream that an operand names in a function, for launches and all that takes its turn as they do; `None`: it is left out.
pub fn stream_of<'db>(db: &'db dyn Db, function: FunctionItem<'db>, operand: Option<ExprId>) -> Stream {
    let default = file_settings(db, function.file(db)).default_stream;
    config::stream(&body(db, function), operand, default)
}

/// The kind of a launch's stream, also where it is an element of an array, or handed in by all callers alike.
pub fn stream_kind<'db>(db: &'db dyn Db, id: LaunchId<'db>) -> StreamKind {
    let Some(facts) = launches(db, id.function).get(id.index as usize) else {
        return StreamKind::Other;
    };
    match facts.stream {
        Stream::Null => StreamKind::Null,
        Stream::FireAndForget => StreamKind::FireAndForget,
        Stream::TailLaunch => StreamKind::TailLaunch,
        Stream::PerThread => StreamKind::PerThread,
        Stream::Created(_) => StreamKind::Created,
        Stream::Other => facts.stream_operand.as_ref().map_or(StreamKind::Other, |operand| {
            handed_stream(db, id.function, operand.expr, 8)
        }),
    }
}

fn handed_stream<'db>(db: &'db dyn Db, function: FunctionItem<'db>, operand: ExprId, depth: u32) -> StreamKind {
    let body = body(db, function);
    match stream_of(db, function, Some(operand)) {
        Stream::Null => return StreamKind::Null,
        Stream::FireAndForget => return StreamKind::FireAndForget,
        Stream::TailLaunch => return StreamKind::TailLaunch,
        Stream::PerThread => return StreamKind::PerThread,
        Stream::Created(_) => return StreamKind::Created,
        Stream::Other => {}
    }
    if config::element_of_created(&body, operand) {
        return StreamKind::Created;
    }
    let ExprKind::Name(Name::Local(binding)) = &body.expr(body.strip_parens(operand)).kind else {
        return StreamKind::Other;
    };
    let Some(index) = body.params.iter().position(|p| p == binding) else {
        return StreamKind::Other;
    };
    let (Some(depth), false) = (depth.checked_sub(1), function.signature(db).kernel) else {
        return StreamKind::Other;
    };
    if !only_known_calls(db, function) {
        return StreamKind::Other;
    }
    let mut kinds = calls_of(db, function).iter().map(|call| {
        let caller = crate::hir::body(db, call.caller);
        match &caller.expr(call.expr).kind {
            ExprKind::Call { args, .. } => match args.get(index) {
                Some(arg) => handed_stream(db, call.caller, *arg, depth),
                None => StreamKind::Other,
            },
            _ => StreamKind::Other,
        }
    });
    let Some(first) = kinds.next() else {
        return StreamKind::Other;
    };
    if kinds.all(|kind| kind == first) {
        first
    } else {
        StreamKind::Other
    }
}

/// Whether a launch is part of a recursion: its kernel may come to run the function that it stands in again.
pub fn in_recursion<'db>(db: &'db dyn Db, id: LaunchId<'db>) -> bool {
    match launches(db, id.function)
        .get(id.index as usize)
        .map(|facts| &facts.child)
    {
        Some(Child::Kernel(kernel)) => *kernel == id.function || recursion::reaches(db, *kernel, &[id.function]),
        Some(Child::Ambiguous(all)) => all
            .iter()
            .any(|kernel| *kernel == id.function || recursion::reaches(db, *kernel, &[id.function])),
        Some(Child::Unknown) | None => false,
    }
}

/// The facts of every launch of a function, in source order.
#[salsa::tracked]
pub fn launches<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<LaunchFacts<'db>> {
    let body = body(db, function);
    if body.launches.is_empty() {
        return Vec::new();
    }
    let places = statement_places(db, function);
    let levels = uniformity(db, function);
    body.launches
        .iter()
        .filter_map(|&expr| {
            let ExprKind::Launch(launch) = &body.expr(expr).kind else {
                return None;
            };
            Some(facts(db, function, &body, &places, &levels, expr, launch))
        })
        .collect()
}

fn facts<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    places: &Places,
    levels: &FunctionUniformity,
    expr: ExprId,
    launch: &Launch,
) -> LaunchFacts<'db> {
    let signature = function.signature(db);
    let child = match &launch.kernel {
        Some(name) => resolve_kernel(db, function.file(db), name, launch.args.len()),
        None => Child::Unknown,
    };
    let loops = places.loops_around(body, expr);
    let operand = |id: ExprId, parameter: Option<String>| Operand {
        expr: id,
        span: body.expr(id).span,
        uniformity: levels.exprs.get(&id).cloned().unwrap_or_else(unknown_level),
        changes_in_loop: launch.in_lambda
            || loops
                .iter()
                .any(|l| crate::uniformity::changes_around(body, id, l.stmt)),
        parameter,
    };
    let parameters: Vec<Option<String>> = match child {
        Child::Kernel(kernel) => crate::hir::parameters(db, kernel)
            .iter()
            .map(|p| Some(p.name.clone()).filter(|n| !n.is_empty()))
            .collect(),
        _ => Vec::new(),
    };
    let args = launch
        .args
        .iter()
        .enumerate()
        .map(|(index, &arg)| operand(arg, parameters.get(index).cloned().flatten()))
        .collect();
    let extent = |index: usize| match launch.config.get(index) {
        Some(&id) => Extent {
            operand: operand(id, None),
            components: config::components(db, function, body, id),
            constant: config::constant_extent(db, function, body, id),
        },
        // `k<<<g>>>()` does not compile; treat what is missing as the whole configuration.
        None => Extent {
            operand: operand(expr, None),
            components: None,
            constant: None,
        },
    };
    let (grid, block) = (extent(0), extent(1));
    let threads = threads::recover(db, function, body, &grid, &block);
    let divergence = levels
        .launch_divergence
        .get(&expr)
        .cloned()
        .unwrap_or_else(unknown_level);
    let who = if !signature.kernel && !signature.device {
        launchers::Who {
            launchers: Launchers::Host,
            turns: false,
        }
    } else {
        launchers::launchers(db, function, body, places, levels, expr)
    };
    let recursive = match child {
        Child::Kernel(kernel) => recursion::reaches(db, kernel, &[function, kernel]),
        _ => launch.kernel.as_deref().is_some_and(|n| n == function.name(db)),
    };
    let stmt = places.statement_of(expr);
    let alone = stmt.filter(|s| matches!(body.stmt(*s).kind, StmtKind::Expr(e) if body.strip_parens(e) == expr));
    LaunchFacts {
        expr,
        span: body.expr(expr).span,
        statement: alone,
        kernel_name: launch.kernel.clone(),
        child,
        grid,
        block,
        shared: launch.config.get(2).map(|&id| operand(id, None)),
        stream: config::stream(
            body,
            launch.config.get(3).copied(),
            file_settings(db, function.file(db)).default_stream,
        ),
        stream_operand: launch.config.get(3).map(|&id| operand(id, None)),
        args,
        threads,
        loops,
        divergence,
        recursive,
        launchers: who.launchers,
        turns: who.turns,
        conditional: places.in_preprocessor(body, expr),
        in_lambda: launch.in_lambda,
        from_macro: body.expr(expr).from_macro,
    }
}

fn unknown_level() -> Uniformity {
    Uniformity {
        level: Level::Varying,
        ..Uniformity::default()
    }
}
