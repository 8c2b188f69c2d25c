//! What the `gridfuse` binary does: language server and command line for CUDA dynamic parallelism. A library so that a fuzzer can
//! reach it; without the feature `program`, what is left describes launches and findings, and runs in a browser, too.

#![cfg_attr(
    not(feature = "program"),
    allow(dead_code, reason = "the command line and the language server use it")
)]

mod best_title;
#[cfg(feature = "program")]
mod bounds;
#[cfg(feature = "program")]
mod changes;
#[cfg(feature = "program")]
mod cli;
mod collected;
#[cfg(feature = "program")]
mod compile_commands;
#[cfg(feature = "program")]
mod creates;
pub mod describe;
pub mod diff;
#[cfg(feature = "program")]
mod doctor;
#[cfg(feature = "program")]
mod files;
#[cfg(feature = "program")]
mod fixes;
mod gain;
pub mod glance;
#[cfg(feature = "program")]
mod graph;
#[cfg(feature = "program")]
mod graph_svg;
#[cfg(feature = "program")]
mod hints;
pub mod launches;
#[cfg(feature = "program")]
mod leftover;
mod line_index;
#[cfg(feature = "program")]
mod lsp;
#[cfg(feature = "program")]
mod made;
#[cfg(feature = "program")]
mod manifest;
#[cfg(feature = "program")]
mod manifests;
#[cfg(feature = "program")]
mod measure;
#[cfg(feature = "program")]
mod pending;
#[cfg(feature = "program")]
mod recipe;
pub mod schema;
#[cfg(feature = "program")]
mod steps_back;
#[cfg(feature = "program")]
mod through_calls;

#[cfg(feature = "program")]
pub use cli::main;
#[cfg(feature = "program")]
pub use lsp::{Allowed, serve};

/// An exit code of the command line: wrong use, or a file that cannot be read or written.
#[cfg(feature = "program")]
pub const USAGE_OR_IO: u8 = cli::USAGE_OR_IO;
