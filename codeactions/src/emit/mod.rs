//! Pieces of generated code that several rewrites share: bodies that move, arenas, launch bounds, arguments.

pub mod arena;
pub mod callees;
pub mod described;
pub mod launch_bounds;
pub mod launchpad;
pub mod look_first;
pub mod outline;
pub mod removed_streams;
pub mod replaced_launch;
pub mod split;
pub mod target;
pub mod uniform;
pub mod was;
