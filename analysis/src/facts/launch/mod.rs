//! Launch sites: everything known about each `child<<<…>>>(…)`.

mod amount;
mod block_parameters;
mod config;
mod count;
mod extents;
mod few;
mod iterations;
mod launchers;
mod pending;
mod pins;
mod places;
mod recursion;
mod repeats;
mod shapes;
mod shared_loops;
mod site;
mod size_code;
mod stream_arrays;
mod threads;
mod thresholded;
mod trips;
mod waits;

use crate::base::db::Db;
use crate::base::file_settings::file_settings;
use crate::facts::hidden::runs_unseen;
use crate::facts::uniformity::{Cause, FunctionUniformity, Level, Uniformity, calls_of, only_known_calls, uniformity};
use crate::hir::items::FunctionItem;
use crate::hir::resolve::resolve_kernel;
use crate::hir::resolve::runs_on_device;
pub use crate::hir::resolve::{Child, LaunchId};
use crate::hir::{Body, ExprId, ExprKind, Launch, Name, StmtKind, body};

pub use amount::{Amount, Bound};
pub(crate) use config::{constant_extent, single_definition};
pub use config::{constant_of_variable, constant_value, depends_on_thread_index, is_scalar};
pub use count::{GridSize, LaunchCount, Recursion, launch_counts};
pub use iterations::iteration_divergence;
pub use launchers::{gets_there_by_flat_blocks, takes_flat_blocks, who_gets_to, who_launches};
pub(crate) use launchers::{launchers as who_executes, single_threaded};
pub(crate) use pending::limits_set_in_text;
pub use pending::pending_launch_limit;
pub(crate) use pins::Pins;
pub use places::{Places, statement_places};
pub use repeats::Repeats;
pub use shapes::several_in_sight;
pub use shared_loops::grid_stride_limit;
pub use site::{Extent, LaunchFacts, Launchers, LoopAround, Operand, Stream, ThreadCount};
pub use thresholded::is_thresholded;
pub use waits::{Wait, waits_after};

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
    config::stream(db, function, &body(db, function), operand, default)
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
    if config::element_of_created(db, function, &body, operand) {
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
    let child = match &launch.kernel {
        Some(name) => resolve_kernel(db, function, name, launch.args.len()),
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
                .any(|l| crate::facts::uniformity::changes_around(db, function, body, id, l.stmt)),
        parameter,
    };
    // The types of parameters that arguments are made into by code that may look at the number of the thread.
    let made: Vec<Option<String>> = match child {
        Child::Kernel(kernel) => crate::hir::parameters(db, kernel)
            .iter()
            .map(|p| Some(p.ty.base.clone()).filter(|ty| p.ty.pointers == 0 && runs_unseen(db, function, ty)))
            .collect(),
        _ => Vec::new(),
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
        .map(|(index, &arg)| {
            let mut found = operand(arg, parameters.get(index).cloned().flatten());
            if let Some(ty) = made.get(index).cloned().flatten() {
                found.uniformity = Uniformity {
                    level: Level::Varying,
                    why: Some(Cause {
                        text: format!("becomes an object of {ty}, which may run code that is called by no name"),
                        span: found.span,
                    }),
                    assumes: Vec::new(),
                };
            }
            found
        })
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
    let who = if !runs_on_device(db, function) {
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
            db,
            function,
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
