//! What rewrites ask about launches, children and parents, beyond what the analyses say.

pub mod allocations;
pub(crate) mod barriers;
pub(crate) mod calls;
pub(crate) mod child;
pub(crate) mod cluster;
pub(crate) mod combinable;
pub(crate) mod configured;
pub(crate) mod ctype;
pub(crate) mod effects;
pub(crate) mod grid_stride;
pub(crate) mod guard;
pub(crate) mod instance;
pub(crate) mod launch_errors;
pub(crate) mod movable;
pub(crate) mod moved;
pub mod order;
pub(crate) mod plain_pointer;
pub(crate) mod program;
pub(crate) mod pure;
pub(crate) mod qualified;
pub(crate) mod read_only;
pub(crate) mod room;
pub(crate) mod site;
pub(crate) mod surface;
pub(crate) mod uses;
pub(crate) mod waits_anyway;
