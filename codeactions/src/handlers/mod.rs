//! The table of rewrites: one file each.

mod add_threshold;
pub mod aggregate_atomics;
mod aggregate_block;
mod aggregate_grid;
mod aggregate_grid_host;
mod aggregate_grid_stream;
mod aggregate_malloc;
mod aggregate_multiblock;
mod aggregate_warp;
mod check_launch_error;
mod coarsen;
mod destroy_stream;
mod extract_launch;
mod fire_and_forget;
mod flatten_recursion;
mod guard_empty_grid;
pub mod optimize;
mod outline_iteration;
mod pending_launch_limit;
mod persistent_loop;
mod promote;
mod promote_lookback;
mod promote_overlap;
mod replace_device_sync;
mod retune;
mod reuse_threads;
mod revert;
mod serialize;
mod skip_silent_stores;
mod threshold;

use crate::api::rewrite::Rewrite;

/// Every rewrite, in the order in which a menu shows them: those of launches, then those of places.
pub static REWRITES: &[Rewrite] = &[
    optimize::REWRITE,
    aggregate_grid::REWRITE,
    aggregate_grid_stream::REWRITE,
    aggregate_grid_host::REWRITE,
    aggregate_multiblock::REWRITE,
    aggregate_block::REWRITE,
    aggregate_warp::REWRITE,
    threshold::REWRITE,
    reuse_threads::REWRITE,
    serialize::REWRITE,
    coarsen::REWRITE,
    fire_and_forget::REWRITE,
    flatten_recursion::REWRITE,
    persistent_loop::REWRITE,
    aggregate_malloc::REWRITE,
    aggregate_atomics::REWRITE,
    skip_silent_stores::REWRITE,
    promote_lookback::REWRITE,
    promote_overlap::REWRITE,
    promote::REWRITE,
    outline_iteration::REWRITE,
    optimize::EXTRACTED,
    extract_launch::REWRITE,
    guard_empty_grid::REWRITE,
    check_launch_error::REWRITE,
    pending_launch_limit::RAISE,
    pending_launch_limit::RESTORE,
    destroy_stream::REWRITE,
    replace_device_sync::REWRITE,
    add_threshold::REWRITE,
    retune::GRID,
    retune::GRID_STREAM,
    retune::GRID_HOST,
    retune::MULTIBLOCK,
    retune::BLOCK,
    retune::WARP,
    revert::REWRITE,
];

/// The rewrite with this id.
pub fn rewrite_by_id(id: &str) -> Option<&'static Rewrite> {
    REWRITES.iter().find(|rewrite| rewrite.id == id)
}

/// Those of launches, in the order of a menu.
pub fn of_launches() -> impl Iterator<Item = &'static Rewrite> + Clone {
    REWRITES.iter().filter(|rewrite| rewrite.target.is_launch())
}

/// Those of what stands at a place.
pub fn of_places() -> impl Iterator<Item = &'static Rewrite> + Clone {
    REWRITES.iter().filter(|rewrite| !rewrite.target.is_launch())
}

/// The rewrite of launches with this id.
pub fn launch_rewrite(id: &str) -> Option<&'static Rewrite> {
    of_launches().find(|rewrite| rewrite.id == id)
}

/// The rewrite of places with this id.
pub fn place_rewrite(id: &str) -> Option<&'static Rewrite> {
    of_places().find(|rewrite| rewrite.id == id)
}
