//! What happens when the code runs: which values threads share, who launches what and how often, what memory is touched and what may
//! run at the same time.

mod bindings;
pub mod callee;
pub mod closures;
pub(crate) mod defaults;
pub mod dependence;
pub mod effects;
pub mod escape;
pub mod functors;
pub mod groups;
pub mod hidden;
pub mod kept;
pub mod launch;
pub mod left_behind;
pub(crate) mod named;
mod overloads;
pub(crate) mod plain_operands;
pub mod referring;
pub(crate) mod runtime_calls;
pub mod streams;
pub mod uniformity;
pub mod unseen;
