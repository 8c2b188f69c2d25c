//! Kernels that end by launching themselves into `cudaStreamTailLaunch`, or each other, in turn or as stages: an iteration begins when
//! the one before is done. The launches become a loop, in the block where the grids have one block, in a grid that stays otherwise.

mod chain;
mod cycle;
mod driver;
mod instances;
mod kernel;
mod many_blocks;
mod one_block;
mod read_only;
mod several_kernels;
mod threads;

use crate::api::refusal::Ineligible;
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::transforms::self_launch::refuse_other_kernel;

pub use chain::belongs_to_loop;
use cycle::Cycle;
use kernel::Iteration;
pub use threads::Threads;

/// The edit that makes a loop of the launch.
///
/// # Errors
/// The reasons why it can't be done.
pub fn make_loop(mut draft: Draft<'_>) -> Result<SourceEdit, Ineligible> {
    let site = &draft.site;
    let several = chain::launches_of_chain(site)
        .or_else(|| driver::launches_of_driver(site))
        .or_else(|| cycle::launches_in_turn(site));
    if let Some(launches) = several {
        let cycle = Cycle::find(&launches, &mut draft)?;
        let header = draft.header();
        let header = draft.settle(header)?;
        several_kernels::write(&cycle, &header, &mut draft)?;
        return draft.finish();
    }
    chain::refuse_unfollowed(&draft.site)?;
    refuse_other_kernel(&mut draft)?;
    let iteration = Iteration::find(&mut draft)?;
    let header = draft.header();
    let header = draft.settle(header)?;
    if iteration.one_block {
        one_block::write(&iteration, &header, &mut draft)?;
    } else {
        many_blocks::write(&iteration, &header, &mut draft)?;
    }
    draft.finish()
}
