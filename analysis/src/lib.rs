//! Incremental database and analyses of CUDA dynamic parallelism.
//!
//! Four layers, each of which uses only those before it: [`base`] reads texts and preprocesses them, [`hir`] knows what stands in them and
//! what names mean, [`facts`] finds out what happens when it runs, [`diagnostics`] tells what is wrong with that. [`host`] owns the
//! files and changes them. Nothing here knows of LSP.

pub mod base;
pub mod diagnostics;
pub mod facts;
pub mod hir;
pub mod host;
