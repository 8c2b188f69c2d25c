//! The `gridfuse` binary.

use std::process::ExitCode;

/// Syntax trees are walked recursively, so deeply nested code needs room. Only what is used is ever committed.
const STACK_BYTES: usize = 256 << 20;

fn main() -> ExitCode {
    match std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(gridfuse::main)
    {
        Ok(thread) => thread.join().unwrap_or(ExitCode::from(gridfuse::USAGE_OR_IO)),
        Err(_) => gridfuse::main(),
    }
}
