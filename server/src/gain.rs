//! Which rewrites may make a program faster by themselves: what a menu calls the best is one of them. And which mend what a diagnostic finds.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::launch::{
    Bound, GridSize, LaunchId, Launchers, Operand, launch_counts, launches, who_launches,
};
use gridfuse_analysis::facts::uniformity::Level;
use gridfuse_codeactions::api::rewrite::Family;
use gridfuse_codeactions::handlers::optimize::{self, plan_of};
use gridfuse_codeactions::handlers::rewrite_by_id;

/// Whether a rewrite of a launch, or the steps of which `optimize` consists there, may. Fewer blocks are a preparation: by themselves they
/// make most programs slower (docs/measurements.md). One thread that runs whole grids in place of the GPU is slower, too. A grid of
/// which there is one has none beside it to run or to be collected with.
pub fn may_gain(db: &dyn Db, launch: LaunchId<'_>, rewrite: &str) -> bool {
    let single = who_launches(db, launch) == Launchers::OnePerGrid;
    let counts = launch_counts(db, launch.function).get(launch.index as usize);
    let once = counts.is_some_and(|count| count.per_grid.at_most == Bound::Constant(1));
    let recurs = launches(db, launch.function).iter().any(|facts| facts.recursive);
    let step_gains = |step: &str| {
        let id = step.split('=').next().unwrap_or(step);
        match rewrite_by_id(id).map(|rewrite| rewrite.family) {
            Some(Family::Coarsening) => false,
            Some(Family::InLauncher) => !single && thread_may_gain(db, launch, id),
            Some(Family::Stream) => !once,
            // But for those that leave the launch to the host; one level of a recursion after the other, it would do so each time.
            Some(Family::Aggregation) => {
                !once || !recurs && matches!(id, "aggregate-grid-host" | "aggregate-grid-stream" | "reuse-threads")
            }
            _ => true,
        }
    };
    match plan_of(db, launch) {
        Ok(plan) if rewrite == optimize::ID => plan.steps.iter().any(|(step, _)| step_gains(step)),
        _ => step_gains(rewrite),
    }
}

/// The same of rewrites by which a thread of many runs what it would have launched. Where all grids of a parent grid have one size, either
/// all of them are below a threshold or none. And a thread that runs a grid of many blocks may take longer than all other work.
fn thread_may_gain(db: &dyn Db, launch: LaunchId<'_>, rewrite: &str) -> bool {
    let Some(facts) = launches(db, launch.function).get(launch.index as usize) else {
        return false;
    };
    let counts = launch_counts(db, launch.function).get(launch.index as usize);
    let tiny = counts.is_some_and(|count| count.size == GridSize::Tiny);
    let sizes = [&facts.grid, &facts.block].map(|size| &size.operand);
    match rewrite {
        "threshold" => {
            let differs = |size: &&Operand| size.uniformity.level > Level::Grid || size.changes_in_loop;
            tiny || sizes.iter().any(differs)
        }
        "serialize" => tiny || facts.grid.constant == Some([1, 1, 1]),
        _ => true,
    }
}

/// Whether a rewrite of a launch mends a diagnostic, which names those that do. What `optimize` consists of may be another one, which leaves
/// the launches as many as they are.
pub fn mends(db: &dyn Db, launch: LaunchId<'_>, rewrite: &str, named: &[&str]) -> bool {
    let step_mends = |step: &str| {
        let id = step.split('=').next().unwrap_or(step);
        let family = rewrite_by_id(id).map(|rewrite| rewrite.family);
        named.contains(&id) || !matches!(family, Some(Family::Stream | Family::Coarsening))
    };
    named.contains(&rewrite)
        && match plan_of(db, launch) {
            Ok(plan) if rewrite == optimize::ID => plan.steps.iter().any(|(step, _)| step_mends(step)),
            _ => true,
        }
}
