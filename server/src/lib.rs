//! What the `gridfuse` binary does: language server and command line for CUDA dynamic parallelism. A library so that a fuzzer can
//! reach it.

mod best_title;
mod bounds;
mod changes;
mod cli;
mod collected;
mod compile_commands;
mod creates;
pub mod describe;
mod doctor;
mod files;
mod fixes;
mod gain;
mod glance;
mod graph;
mod graph_svg;
mod hints;
pub mod launches;
mod leftover;
mod line_index;
mod lsp;
mod made;
mod manifest;
mod manifests;
mod measure;
mod pending;
mod recipe;
pub mod schema;
mod steps_back;
mod through_calls;

pub use cli::main;
pub use lsp::{Allowed, serve};

/// An exit code of the command line: wrong use, or a file that cannot be read or written.
pub const USAGE_OR_IO: u8 = cli::USAGE_OR_IO;
