//! Grids of several blocks: one grid that stays, whose blocks run those of every iteration.

use crate::api::refusal::Ineligible;
use crate::draft::Draft;
use crate::edit::include::Header;
use crate::emit::replaced_launch::replace_launch_by;
use crate::emit::split::Split;
use crate::facts::graphs;
use crate::transforms::self_launch::{Plan, Runtime, bounds, entries};

use super::kernel::Iteration;

pub(super) const RUNTIME: Runtime = Runtime {
    kernel: "loop",
    memory: "Iterations",
    variable: "iterations",
    runner: "Loop",
    without: "One iteration, which launches the next one by itself.",
    purpose: "Runs the grids that follow each other of",
};

/// The whole edit.
///
/// # Errors
/// The reasons why it can't be done.
pub fn write<'db>(iteration: &Iteration<'db>, header: &Header, draft: &mut Draft<'db>) -> Result<(), Ineligible> {
    let (site, kernel) = (&iteration.site, &iteration.kernel);
    let db = site.db;
    let Draft {
        names, edit, refusals, ..
    } = draft;
    let split = Split::of_instance(site, kernel, &iteration.uniform, refusals);
    let entries = entries(kernel, &iteration.uniform, &RUNTIME, refusals);
    refusals.check()?;
    for (host, _) in &entries {
        names.add_file(db, host.file);
        graphs::keep(host, refusals, edit);
    }
    let varying = split.varying().map(|p| &p.param.ty);
    let bounds = bounds(kernel, varying, &entries, None, refusals, edit);
    refusals.check()?;
    let plan = Plan::new(kernel, &split, &RUNTIME, bounds, names);
    header.include_in(db, edit, kernel.file);
    plan.generate(names, edit);
    let fields: Vec<String> = split.varying().map(|part| part.initialiser.clone()).collect();
    replace_launch_by(site, &fields, None, &format!("{}.launch", plan.launches), edit);
    let launch = if iteration.same_grid {
        "launch_loop"
    } else {
        "launch_growing_loop"
    };
    for (host, split) in &entries {
        header.include_in(db, edit, host.file);
        plan.replace_entry(launch, host, split, edit);
    }
    Ok(())
}
