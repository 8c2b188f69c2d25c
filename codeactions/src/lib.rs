//! Rewrites of device-side kernel launches: a rewrite is a function from a launch to an edit of the user's sources, or to the
//! reason why not. See [`rewrite::Rewrite`].

mod accumulate;
mod aggregate;
mod arena;
mod barriers;
mod calls;
mod child;
mod cluster;
mod configured;
mod continuation;
pub mod copy;
mod ctype;
pub mod edit;
mod effects;
mod fission;
pub mod fixes;
mod grid_stride;
mod guard;
pub mod handlers;
mod in_launcher;
pub mod include;
mod instance;
mod iteration;
mod launch_bounds;
mod launch_errors;
mod launchpad;
pub mod lex;
mod model;
mod moved;
mod names;
mod order;
pub mod outcome;
mod outline;
mod plain_pointer;
mod program;
mod promotion;
mod pure;
mod read_only;
mod replaced_launch;
pub mod rewrite;
mod room;
mod self_launch;
pub mod sequence;
mod site;
mod split;
mod stream;
mod style;
mod surface;
mod target;
pub mod undo;
mod uniform;
mod waits_anyway;

#[cfg(test)]
#[allow(clippy::panic, clippy::expect_used, clippy::unwrap_used)]
mod tests;
