//! Incremental database and analyses of CUDA dynamic parallelism.
//!
//! Text goes through [`mask`] and [`parse`] to [`items`]; each function's body is lowered to [`hir`], and everything else is
//! a query over that: [`uniformity`], [`launch`], [`dependence`]. Nothing here knows of LSP.

pub mod budget;
pub mod compile;
pub mod db;
pub mod dependence;
pub mod diagnostic;
pub mod diagnostics;
pub mod escape;
mod fields;
pub mod flow;
pub mod hidden;
pub mod hir;
pub mod include;
pub mod items;
pub mod launch;
pub mod mask;
pub mod mentions;
mod outline;
pub mod parse;
mod patch;
pub mod preprocess;
pub mod related;
pub mod resolve;
pub mod settings;
mod settled;
mod skeleton;
pub mod span;
pub mod special_members;
pub mod stream_ordered;
pub mod streams;
pub mod summary;
pub mod suppress;
mod tree_cache;
pub mod uniformity;
