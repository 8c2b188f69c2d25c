//! Rewrites of device-side kernel launches: a rewrite is a function from a launch to an edit of the user's sources, or to the
//! reason why not. See [`rewrite::Rewrite`].

pub mod api;
mod draft;
pub mod edit;
mod emit;
pub mod facts;
pub mod handlers;
mod model;
pub mod runtime;
mod transforms;
pub mod undo;

#[cfg(test)]
#[allow(clippy::panic, clippy::expect_used, clippy::unwrap_used)]
#[allow(clippy::too_many_lines, reason = "tables of programs")]
mod tests;
