//! The `gridfuse` binary: language server and command line for CUDA dynamic parallelism.

mod changes;
mod cli;
mod compile_commands;
mod creates;
mod describe;
mod files;
mod fixes;
mod graph;
mod graph_svg;
mod hints;
mod launches;
mod line_index;
mod lsp;
mod manifest;
mod manifests;
mod measure;
mod recipe;
mod schema;

use std::process::ExitCode;

/// Syntax trees are walked recursively, so deeply nested code needs room. Only what is used is ever committed.
const STACK_BYTES: usize = 256 << 20;

fn main() -> ExitCode {
    match std::thread::Builder::new().stack_size(STACK_BYTES).spawn(cli::main) {
        Ok(thread) => thread.join().unwrap_or(ExitCode::from(cli::USAGE_OR_IO)),
        Err(_) => cli::main(),
    }
}
