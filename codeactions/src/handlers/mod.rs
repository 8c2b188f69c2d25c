//! The table of rewrites: one file each.

pub mod aggregate_atomics;
mod aggregate_block;
mod aggregate_grid;
mod aggregate_grid_host;
mod aggregate_grid_stream;
mod aggregate_malloc;
mod aggregate_multiblock;
mod aggregate_warp;
mod coarsen;
mod fire_and_forget;
mod flatten_recursion;
pub mod optimize;
mod persistent_loop;
mod promote;
mod promote_lookback;
mod promote_overlap;
mod serialize;
mod threshold;

use crate::api::rewrite::Rewrite;

/// Every rewrite, in the order in which a menu shows them.
pub static REWRITES: &[Rewrite] = &[
    optimize::REWRITE,
    aggregate_grid::REWRITE,
    aggregate_grid_stream::REWRITE,
    aggregate_grid_host::REWRITE,
    aggregate_multiblock::REWRITE,
    aggregate_block::REWRITE,
    aggregate_warp::REWRITE,
    threshold::REWRITE,
    serialize::REWRITE,
    coarsen::REWRITE,
    fire_and_forget::REWRITE,
    flatten_recursion::REWRITE,
    persistent_loop::REWRITE,
    aggregate_malloc::REWRITE,
    aggregate_atomics::REWRITE,
    promote_lookback::REWRITE,
    promote_overlap::REWRITE,
    promote::REWRITE,
];

/// The rewrite with this id.
pub fn rewrite_by_id(id: &str) -> Option<&'static Rewrite> {
    REWRITES.iter().find(|r| r.id == id)
}
