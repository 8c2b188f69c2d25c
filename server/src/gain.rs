//! Which rewrites may make a program faster by themselves: what a menu calls the best is one of them.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::launch::{Bound, LaunchId, Launchers, launch_counts, who_launches};
use gridfuse_codeactions::api::rewrite::Family;
use gridfuse_codeactions::handlers::optimize::{self, plan_of};
use gridfuse_codeactions::handlers::rewrite_by_id;

/// Whether a rewrite of a launch, or the steps of which `optimize` consists there, may. Fewer blocks are a preparation: by themselves they
/// make most programs slower (docs/measurements.md). One thread that runs whole grids in place of the GPU is slower, too. And a grid of
/// which there is one has none beside it to run or to be collected with.
pub fn may_gain(db: &dyn Db, launch: LaunchId<'_>, rewrite: &str) -> bool {
    let single = who_launches(db, launch) == Launchers::OnePerGrid;
    let counts = launch_counts(db, launch.function).get(launch.index as usize);
    let once = counts.is_some_and(|count| count.per_grid.at_most == Bound::Constant(1));
    let step_gains = |step: &str| {
        let id = step.split('=').next().unwrap_or(step);
        match rewrite_by_id(id).map(|rewrite| rewrite.family) {
            Some(Family::Coarsening) => false,
            Some(Family::InLauncher) => !single,
            Some(Family::Stream) => !once,
            // But for those that leave the launch to the host.
            Some(Family::Aggregation) => {
                !once || matches!(id, "aggregate-grid-host" | "aggregate-grid-stream" | "reuse-threads")
            }
            _ => true,
        }
    };
    match plan_of(db, launch) {
        Ok(plan) if rewrite == optimize::ID => plan.steps.iter().any(|(step, _)| step_gains(step)),
        _ => step_gains(rewrite),
    }
}
