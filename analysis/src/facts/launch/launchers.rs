//! Who executes a launch: every thread, or one thread of a warp, a block, the grid.

use super::config::{components, constant_value, through_variables};
use super::pins::Pins;
use super::pins::numbers::{Dims, Number, either};
use super::places::{Places, statement_places};
use super::shapes::{several_in_sight, several_where_passed};
use super::{LaunchId, Launchers, launches};
use crate::base::db::Db;
use crate::facts::uniformity::{FunctionUniformity, called_recursively, calls_of, only_known_calls, uniformity};
use crate::hir::items::FunctionItem;
use crate::hir::resolve::{launch_sites_of, only_known_launches};
use crate::hir::{Body, Builtin, ExprId, ExprKind, Name, body};
use std::collections::HashSet;

/// Who executes something, and whether that is the same thread of a block each time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Who {
    /// In one execution.
    pub launchers: Launchers,
    /// In another one, it may be another thread of the block.
    pub turns: bool,
}

/// Who executes an expression, by the conditions around it and by the early returns before it.
pub(crate) fn launchers(
    db: &dyn Db,
    function: FunctionItem<'_>,
    body: &Body,
    places: &Places,
    levels: &FunctionUniformity,
    launch: ExprId,
) -> Who {
    let (threads, blocks) = dimensions_in_sight(db, function);
    launchers_within(db, function, body, places, levels, launch, threads, blocks)
}

/// The same, where blocks and grids have these dimensions beside those that the body mentions.
#[allow(clippy::too_many_arguments, reason = "what the launch stands in, and the dimensions")]
fn launchers_within(
    db: &dyn Db,
    function: FunctionItem<'_>,
    body: &Body,
    places: &Places,
    levels: &FunctionUniformity,
    launch: ExprId,
    threads: Dims,
    blocks: Dims,
) -> Who {
    // The conditions in the text may not be those that are compiled.
    if body.cut {
        return Who {
            launchers: Launchers::ManyThreads,
            turns: false,
        };
    }
    let mut context = Pins::new(db, function, body, levels);
    context.threads = either(context.threads, threads);
    context.blocks = either(context.blocks, blocks);
    let found = context.pinned_at(places, launch);
    let lasting: Vec<Number> = found.iter().filter(|number| !number.turns).copied().collect();
    let launchers = context.who(&found);
    Who {
        launchers,
        turns: context.one_per_block(&found) && !context.one_per_block(&lasting),
    }
}

/// Who executes a launch, also by what is known of the grids that its kernel is launched with: a kernel that the whole
/// workspace launches with blocks of one thread has one launcher per block.
pub fn who_launches<'db>(db: &'db dyn Db, id: LaunchId<'db>) -> Launchers {
    let Some(facts) = launches(db, id.function).get(id.index as usize) else {
        return Launchers::ManyThreads;
    };
    if facts.launchers == Launchers::Host || facts.in_lambda {
        return facts.launchers;
    }
    fewer(facts.launchers, who_runs(db, id.function))
}

/// Whether [`LaunchFacts::launchers`](super::LaunchFacts::launchers) and [`who_launches`] take something for granted: that blocks
/// (or the grid, where one thread of the grid launches) have no dimension but those that the launching function mentions, so that
/// `if (threadIdx.x == 0)` leaves one thread of a block. The launches in sight don't contradict it; it is taken for granted where
/// they aren't all launches, where there is none, or where nothing is known of a size (a parameter of type `dim3`). For a diagnostic
/// that is good enough. A rewrite that relies on there being one launcher has to say so as an assumption, or to treat the launch as
/// one by many threads.
pub fn takes_flat_blocks<'db>(db: &'db dyn Db, id: LaunchId<'db>) -> bool {
    let facts = launches(db, id.function).get(id.index as usize);
    facts.is_some_and(|facts| rests_on_flat_blocks(db, id.function, facts.expr, facts.launchers))
}

/// The same for [`who_gets_to`] an expression.
pub fn gets_there_by_flat_blocks<'db>(db: &'db dyn Db, function: FunctionItem<'db>, expr: ExprId) -> bool {
    let body = body(db, function);
    let (places, levels) = (statement_places(db, function), uniformity(db, function));
    let found = launchers(db, function, &body, &places, &levels, expr).launchers;
    rests_on_flat_blocks(db, function, expr, found)
}

/// Whether `found` who gets to an expression only because nothing in sight says that blocks have more dimensions.
fn rests_on_flat_blocks<'db>(db: &'db dyn Db, function: FunctionItem<'db>, expr: ExprId, found: Launchers) -> bool {
    if matches!(found, Launchers::Host | Launchers::ManyThreads) {
        return false;
    }
    let body = body(db, function);
    let (places, levels) = (statement_places(db, function), uniformity(db, function));
    let all = [true; 3];
    let proven = launchers_within(db, function, &body, &places, &levels, expr, all, all).launchers;
    if fewer(proven, who_runs(db, function)) == found || proven == found {
        return false;
    }
    !function.signature(db).kernel
        || launch_sites_of(db, function).is_empty()
        || !only_known_launches(db, function)
        || launched_dimensions(db, function).2
}

/// Dimensions beyond the first that blocks and grids of a function have, or may have, by the launches in sight.
fn dimensions_in_sight<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> (Dims, Dims) {
    let (mut threads, mut blocks) = (Dims::default(), Dims::default());
    let mut seen = HashSet::from([function]);
    let mut todo = vec![function];
    while let Some(next) = todo.pop() {
        if next.signature(db).kernel {
            let (t, b, _) = launched_dimensions(db, next);
            (threads, blocks) = (either(threads, t), either(blocks, b));
        } else {
            let callers = calls_of(db, next).iter().map(|call| call.caller);
            todo.extend(callers.filter(|caller| seen.insert(*caller)));
        }
    }
    (threads, blocks)
}

/// Dimensions that blocks and grids have, or may have, in the launches of a kernel that are in sight. Whether there is a size among
/// them of which nothing is known.
#[salsa::tracked(returns(copy))]
pub(super) fn launched_dimensions<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> (Dims, Dims, bool) {
    // It isn't known which of them is the grid's.
    let passed = several_where_passed(db, kernel);
    let (mut threads, mut blocks) = (passed, passed);
    let mut unclear = false;
    for site in launch_sites_of(db, kernel) {
        let body = body(db, site.function);
        let launch = body.launches.get(site.index as usize).map(|e| &body.expr(*e).kind);
        let Some(ExprKind::Launch(launch)) = launch else {
            continue;
        };
        for (index, found, own) in [(0, &mut blocks, Builtin::GridDim), (1, &mut threads, Builtin::BlockDim)] {
            let Some(&size) = launch.config.get(index) else {
                continue;
            };
            // What launches itself with the size that it has.
            let same =
                body.expr(through_variables(db, site.function, &body, size)).kind == ExprKind::Name(Name::Builtin(own));
            if same && site.function == kernel {
                continue;
            }
            let several = |e: ExprId| constant_value(db, site.function, &body, e) != Some(1);
            let dims = match components(db, site.function, &body, size) {
                Some(parts) => parts.map(|part| part.is_some_and(several)),
                None if found.ends_with(&[true; 2]) => {
                    unclear = true;
                    continue;
                }
                None => {
                    unclear = true;
                    several_in_sight(db, site.function, &body, size)
                }
            };
            *found = either(*found, dims);
        }
    }
    (threads, blocks, unclear)
}

/// Who gets to an expression in device code; `None` for a device function of which no caller can be seen.
pub fn who_gets_to<'db>(db: &'db dyn Db, function: FunctionItem<'db>, expr: ExprId) -> Option<Launchers> {
    if !function.signature(db).kernel && calls_of(db, function).is_empty() {
        return None;
    }
    let body = body(db, function);
    let here = launchers(
        db,
        function,
        &body,
        &statement_places(db, function),
        &uniformity(db, function),
        expr,
    );
    Some(fewer(here.launchers, who_runs(db, function)))
}

/// Of two statements about who gets somewhere the narrower one.
fn fewer(a: Launchers, b: Launchers) -> Launchers {
    let rank = |l: Launchers| match l {
        Launchers::ManyThreads => 0,
        Launchers::OnePerWarp => 1,
        Launchers::OnePerBlock => 2,
        Launchers::OnePerGrid | Launchers::Host => 3,
    };
    if rank(a) >= rank(b) { a } else { b }
}

/// Who runs a function at all: the threads of the grids that a kernel is launched with, those that call a device function.
///
/// A query of its own, since functions that call each other have exponentially many paths to the kernels above them. What is called
/// recursively is left before its callers are asked, so that it never asks for itself, nor through more than 64 functions.
#[salsa::tracked(returns(copy))]
fn who_runs<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Launchers {
    if function.signature(db).kernel {
        return single_threaded(db, function).unwrap_or(Launchers::ManyThreads);
    }
    if called_recursively(db, function) || !only_known_calls(db, function) {
        return Launchers::ManyThreads;
    }
    let mut all: Option<Launchers> = None;
    for call in calls_of(db, function) {
        let body = body(db, call.caller);
        let places = statement_places(db, call.caller);
        let levels = uniformity(db, call.caller);
        let here = launchers(db, call.caller, &body, &places, &levels, call.expr);
        let who = fewer(here.launchers, who_runs(db, call.caller));
        all = match all {
            None => Some(who),
            Some(before) if fewer(before, who) == before => Some(who),
            before => before,
        };
    }
    all.unwrap_or(Launchers::ManyThreads)
}

/// Who runs a kernel that the whole workspace launches with blocks of one thread; `None` for other functions.
pub(crate) fn single_threaded<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Option<Launchers> {
    if !function.signature(db).kernel || !only_known_launches(db, function) {
        return None;
    }
    let mut single_block = true;
    let mut any = false;
    for site in launch_sites_of(db, function) {
        let site_function = site.function;
        let site = launches(db, site.function).get(site.index as usize)?;
        if site.block.constant != Some([1, 1, 1]) {
            return None;
        }
        // A recursion has to begin somewhere.
        any |= site_function != function;
        single_block &= site.grid.constant == Some([1, 1, 1]);
    }
    match (any, single_block) {
        (false, _) => None,
        (true, false) => Some(Launchers::OnePerBlock),
        (true, true) => Some(Launchers::OnePerGrid),
    }
}
