//! The cost model of `optimize`: which rewrites, with which knobs, in which order.
//!
//! It knows what the analyses know: who launches and how often, whether the child grids of different launchers differ in size, how
//! large a block is, whether a thread of the child loops. It doesn't know the data. Its numbers were measured on an NVIDIA H200
//! with CUDA 13.0 (`docs/measurements.md`); nothing is scaled to other GPUs.
//!
//! - A child grid costs about 0.8 µs of a GPU that does nothing else meanwhile, and 2 µs and more when the limit of pending launches
//!   is raised; an aggregated launch costs a record of some 20 bytes and an atomic addition for each warp. So what can be collected is.
//! - What the host has launched after the parent runs what was collected sooner than anything that is launched for it, by the device
//!   or by the host, and the parent is faster without a launch in its code: that took half to two thirds of the time of one launch for a
//!   grid in every search through a graph. It costs some 4 µs where nothing was collected, and a record for each launch that there may be,
//!   so where a thread is known to launch more often than [`MOST_LAUNCHES`] times it isn't proposed. (Where that isn't known there is room
//!   for some, and the others run in their threads.) One thread that makes all launches of a grid, over a number of iterations that
//!   isn't known, pays for each record in turn: 8,000 launches of a matrix took 9.7 ms that way, 3.8 collected per block, and more where the
//!   records were larger, as coarsening makes them. A threshold saves nothing then, as what
//!   follows the parent is launched anyway: with one the loops of a few threads came on top (`cc`, `gc`, `mstf`: a quarter more).
//! - Otherwise a whole grid makes one launch, which was fastest in every search through a graph with many launchers, or as fast as the
//!   others within a few percent. Where the parent has one block the block is the grid, and its state is in shared memory.
//! - Where the host waits for the parent right behind its launch, it may as well launch the children: that took half the time of a launch by
//!   the device for some (`mstv`, `tc`), and the same for others. With other work in between, or with children that are run in the launcher, so that
//!   often none is left, waiting once more cost a few percent (`bfs`, `gc`, `sssp`).
//! - A warp of the child is the smallest unit that is worth another thread: grids of fewer than 32 threads run in the launcher, which
//!   brought 0.068 ms to 0.050 for a power-law graph. That is so while a thread of the child has a few memory accesses to
//!   do; where it loops, or computes a logarithm, one thread would do all of that one after the other, and it took up to ten times
//!   as long (`tc`, `mstv`, `sp`): so then nothing is run in the launcher. Where a thread launches in a loop, its warp comes to the
//!   launch with other lanes in each iteration, and each such serial loop keeps all the others waiting: there each threshold that
//!   was measured took longer than none (`bh`), and without one the host may launch.
//! - No threshold is the best for all data. In `cc`, `gc` and `mstf` none at all takes less time than 32 where the grids are skewed, and
//!   more where all grids are small (docs/measurements.md, what `optimize` can't know). Of those that were measured 32 comes nearest to
//!   the best one in the worse of the two cases.
//! - A recursion that ends in grids of other kernels, as a Mandelbrot set by Mariani and Silver does, is collected per grid. A worklist has the
//!   launches of all leaves in one grid, and the host has a round for each depth: they took seven times and almost twice as long for a picture with
//!   26,000 grids, and for one with 1,000 grids both took longer than the original (`newcomer-mandelbrot` and `recursion-mandelbrot` of
//!   tests/gpu/measure.sh).
//! - Where all threads of a child grid have their atomic operations on the same place, these go one after the other, and one for each warp
//!   brought two thirds of the time (`bh`), a third (`mstf`), or nothing, but cost nothing then (`gc`, `tc`).
//! - Where many threads store the same number to the same place, these stores go one after the other as well, and a look in front of each
//!   took half of the time off at 2^22 vertices (`bfs`, `sssp`), and cost nothing where it brought nothing.
//! - The device's allocator serves one request at a time: where the parent allocates, that is what takes the time
//!   (`bt_malloc`: 30 ms, and 0.5 with one allocation for a warp).
//! - A block of an aggregated grid looks up its launch once. Blocks of fewer than 128 threads do that too often, so one takes several.
//!   This is derived from the other measurements and not measured by itself.
//!
//! What the model can't see: how skewed the sizes are, how long a thread of the child runs, what else the GPU does. The constants
//! in the result are there to be tuned.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::launch::{
    Child, GridSize, LaunchCount, LaunchFacts, Launchers, launch_counts, launches, who_launches,
};
use gridfuse_analysis::facts::uniformity::Level;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::{Meaning, launch_sites_of, meaning_in};
use gridfuse_analysis::hir::{ExprKind, StmtKind, body};

use crate::facts::allocations::allocates;
use crate::facts::combinable;
use crate::facts::flat::has_no_loop;
use crate::facts::room::{launches_at, most_launches_at};
use crate::facts::silent_stores;
use crate::facts::site::Site;
use crate::facts::waits_anyway::host_waits_anyway;

/// Child grids of fewer threads run in the launching thread: those that leave lanes of a warp idle.
const THRESHOLD: u64 = 32;

/// Threads of the child that a block of an aggregated grid should stand for.
const BLOCK_THREADS: u64 = 128;

/// Launches of a thread of the parent for which memory is set aside, whether it launches or not.
const MOST_LAUNCHES: u64 = 4;

/// What one step does: `threshold`, `coarsen`, `aggregate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Ids of rewrites, the best first; the first that can be applied is.
    pub ids: Vec<&'static str>,
    /// Its option and value, where it has one.
    pub option: Option<(&'static str, String)>,
    /// Why: a sentence fragment.
    pub why: String,
}

/// What the model has to say of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// What is best, if all of it can be applied: then there are no other steps.
    pub best: Vec<Proposal>,
    /// What not to do besides, with the reason.
    pub without_with_best: Vec<(&'static str, String)>,
    /// What to do, in order.
    pub steps: Vec<Proposal>,
    /// What not to do, with the reason.
    pub without: Vec<(&'static str, String)>,
    /// What to do when nothing else can be.
    pub otherwise: Option<Proposal>,
}

/// The advice for a launch; an error is the reason why there is nothing to gain.
pub fn advise(site: &Site<'_>) -> Result<Advice, String> {
    let facts = site.facts;
    let counts = launch_counts(site.db, site.parent);
    let Some(count) = counts.get(site.id.index as usize) else {
        return Err("the launch is not understood".to_owned());
    };
    if facts.launchers == Launchers::OnePerGrid && facts.loops.is_empty() {
        return Err("one thread of the grid launches once, so there is nothing to collect".to_owned());
    }
    let mut advice = Advice::default();
    if let Child::Kernel(child) = &facts.child
        && combinable::has_some(site.db, *child)
    {
        advice.steps.push(Proposal {
            ids: vec!["aggregate-atomics"],
            option: None,
            why: "all threads of a child grid have their atomic operations on the same place".to_owned(),
        });
    }
    if let Child::Kernel(child) = &facts.child
        && silent_stores::has_some(site.db, *child)
    {
        advice.steps.push(Proposal {
            ids: vec!["skip-silent-stores"],
            option: None,
            why: "many threads store the same number to the same place, one at a time".to_owned(),
        });
    }
    if allocates(site.db, site.parent) {
        advice.steps.push(Proposal {
            ids: vec!["aggregate-malloc"],
            option: None,
            why: "the device's allocator serves one request at a time".to_owned(),
        });
    }
    let lone = who_launches(site.db, site.id) == Launchers::OnePerGrid && most_launches_at(site, false) == u64::MAX;
    if lone {
        let why = "one thread makes all launches, and a record for what follows takes it longer than one for its block";
        advice.without.push(("aggregate-grid-stream", why.to_owned()));
    } else if launches_at(site, false) <= MOST_LAUNCHES {
        advice.best.clone_from(&advice.steps);
        advice.best.push(Proposal {
            ids: match facts.child {
                Child::Kernel(child) if has_no_loop(site.db, child) => vec!["reuse-threads", "aggregate-grid-stream"],
                _ => vec!["aggregate-grid-stream"],
            },
            option: Some(("assignment", "grid".to_owned())),
            why: "the parent's threads are running already, and a host launch right after the parent starts sooner than a device launch"
                .to_owned(),
        });
        let why = "one grid runs the child grids anyway";
        advice.without_with_best = vec![
            ("threshold", why.to_owned()),
            (
                "coarsen",
                "a block runs the child's blocks one at a time anyway".to_owned(),
            ),
        ];
    }
    threshold(site, facts, count, &mut advice);
    if lone {
        let why = "one thread makes all launches, and its records would be larger";
        advice.without.push(("coarsen", why.to_owned()));
    } else {
        coarsen(facts, count, &mut advice);
    }
    let by_host = !advice.steps.iter().any(|step| step.ids.contains(&"threshold"))
        && host_waits_anyway(site.db, site.parent)
        && !launches_leaves(site.db, site.parent);
    advice.steps.push(granularity(site, by_host));
    advice.otherwise = Some(Proposal {
        ids: vec!["fire-and-forget"],
        option: None,
        why: "the launches can't be collected; without the order of the NULL stream they run side by side".to_owned(),
    });
    Ok(advice)
}

/// Whether a recursive kernel launches others, too.
pub fn launches_leaves<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> bool {
    let all = launches(db, kernel);
    all.iter().any(|facts| facts.recursive) && all.iter().any(|facts| !facts.recursive)
}

fn threshold(site: &Site<'_>, facts: &LaunchFacts<'_>, count: &LaunchCount, advice: &mut Advice) {
    let varies = facts.grid.operand.uniformity.level > Level::Grid || facts.grid.operand.changes_in_loop;
    let why_not = if count.size == GridSize::Constant {
        Some("all child grids have the same size, which is a warp or more")
    } else if count.size == GridSize::Symbolic && !varies {
        Some("the child grids of one parent grid all have the same size")
    } else if launches_at(site, false) > 1 {
        Some("a thread launches in a loop, and the other lanes of its warp would wait for each of its grids")
    } else {
        match &facts.child {
            Child::Kernel(child) => takes_long(site.db, *child, &mut Vec::new()),
            _ => None,
        }
    };
    match why_not {
        Some(why) => advice.without.push(("threshold", why.to_owned())),
        // All of them are small.
        None if count.size == GridSize::Tiny => advice.steps.push(Proposal {
            ids: vec!["serialize", "threshold"],
            option: None,
            why: format!(
                "a child grid has {} threads, and leaves lanes of its warp idle",
                count.child_threads
            ),
        }),
        None => advice.steps.push(Proposal {
            ids: vec!["threshold"],
            option: Some(("threshold", THRESHOLD.to_string())),
            why: format!(
                "child grids differ in size, and one of fewer than {THRESHOLD} threads leaves lanes of its warp idle"
            ),
        }),
    }
}

fn coarsen(facts: &LaunchFacts<'_>, count: &LaunchCount, advice: &mut Advice) {
    let single = facts.grid.constant == Some([1, 1, 1]);
    match facts.block.constant {
        _ if single || count.size == GridSize::Tiny => {
            advice.without.push(("coarsen", "a child grid is one block".to_owned()));
        }
        None => advice
            .without
            .push(("coarsen", "the block size isn't constant".to_owned())),
        Some([x, y, z]) => {
            let threads = x.saturating_mul(y).saturating_mul(z).max(1);
            if threads >= BLOCK_THREADS {
                let why = format!("a block of the child has {threads} threads, which is enough");
                advice.without.push(("coarsen", why));
                return;
            }
            advice.steps.push(Proposal {
                ids: vec!["coarsen"],
                option: Some(("factor", BLOCK_THREADS.div_ceil(threads).to_string())),
                why: format!(
                    "a block of the child has {threads} threads, and each looks up which launch it belongs to"
                ),
            });
        }
    }
}

/// `by_host`: the host waits anyway, and has something to launch.
fn granularity(site: &Site<'_>, by_host: bool) -> Proposal {
    let sizes: Vec<Option<[u64; 3]>> = launch_sites_of(site.db, site.parent)
        .into_iter()
        .filter_map(|id| launches(site.db, id.function).get(id.index as usize))
        .map(|facts| facts.grid.constant)
        .collect();
    let one_block = !sizes.is_empty() && sizes.iter().all(|s| *s == Some([1, 1, 1]));
    let (ids, why) = if by_host {
        (
            vec![
                "aggregate-grid-host",
                "aggregate-grid",
                "aggregate-multiblock",
                "aggregate-block",
                "aggregate-warp",
            ],
            "all launches of a grid become one, made by the host where it can be: it waits for the parent anyway",
        )
    } else if one_block {
        (
            vec!["aggregate-block", "aggregate-grid", "aggregate-warp"],
            "the parent is a single block: one launch for each block is as few as one for the grid",
        )
    } else {
        (
            vec![
                "aggregate-grid",
                "aggregate-multiblock",
                "aggregate-block",
                "aggregate-warp",
            ],
            "the fewer launches the better, and one for the whole grid is the fewest",
        )
    };
    Proposal {
        ids,
        option: None,
        why: why.to_owned(),
    }
}

/// Functions of the math library that take some hundred instructions in double precision.
const MATH: [&str; 32] = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "cospi", "erf", "erfc", "exp",
    "exp10", "exp2", "expm1", "fmod", "hypot", "lgamma", "log", "log10", "log1p", "log2", "pow", "sin", "sincos",
    "sinh", "sinpi", "tan", "tanh", "tgamma",
];

/// Why a thread of a kernel takes long, callees included; `seen`: those that have been looked at.
fn takes_long<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    seen: &mut Vec<FunctionItem<'db>>,
) -> Option<&'static str> {
    if seen.contains(&function) {
        return None;
    }
    seen.push(function);
    let body = body(db, function);
    let loops = body.stmts.iter().any(|stmt| {
        matches!(
            stmt.kind,
            StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::RangeFor { .. }
        )
    });
    if loops {
        return Some("a thread of the child loops, and one thread would do all of it");
    }
    body.exprs.iter().find_map(|expr| {
        let ExprKind::Call { name: Some(name), .. } = &expr.kind else {
            return None;
        };
        match meaning_in(db, function, name) {
            Meaning::Functions(callees) => callees.into_iter().find_map(|callee| takes_long(db, callee, seen)),
            _ => {
                let plain = unqualified(name);
                let math = |name: &str| MATH.contains(&name);
                (math(plain) || plain.strip_suffix('f').is_some_and(math))
                    .then_some("a thread of the child computes much, and one thread would do all of it")
            }
        }
    })
}
