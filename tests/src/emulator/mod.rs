//! Runs CUDA programs with dynamic parallelism on the CPU, under hostile schedules; see `tests/emulator/README.md`.
//!
//! | module | what it is for |
//! |---|---|
//! | [`program`] | the texts of a program |
//! | [`translate`] | CUDA to C++ for the host compiler |
//! | [`build`] | the compiler, the runtime, executables |
//! | [`rewritten`] | what rewrites make of a program |
//! | [`run`] | running executables |
//! | [`report`] | what the emulator says about a run |

pub mod build;
pub mod program;
pub mod report;
pub mod rewritten;
pub mod run;
pub mod translate;

pub use build::Emulator;
pub use program::Program;
