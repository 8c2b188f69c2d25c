//! The table of fixes: edits at a place of the text that need no launch as written there. One file each.

mod add_threshold;
mod check_launch_error;
mod destroy_stream;
mod guard_empty_grid;
mod pending_launch_limit;
pub(crate) mod replace_device_sync;
mod retune;
mod revert;

use crate::api::fix::Fix;

/// Every fix.
pub static FIXES: &[Fix] = &[
    guard_empty_grid::FIX,
    check_launch_error::FIX,
    pending_launch_limit::RAISE,
    pending_launch_limit::RESTORE,
    destroy_stream::FIX,
    replace_device_sync::FIX,
    add_threshold::FIX,
    retune::GRID,
    retune::GRID_STREAM,
    retune::GRID_HOST,
    retune::MULTIBLOCK,
    retune::BLOCK,
    retune::WARP,
    revert::FIX,
];

/// The fix with this id.
pub fn fix_by_id(id: &str) -> Option<&'static Fix> {
    FIXES.iter().find(|fix| fix.id == id)
}
