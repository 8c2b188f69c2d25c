//! A command that compiles a file, as far as analyses read it.

use std::path::PathBuf;

/// What `<<<grid, block>>>` without a stream means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub enum DefaultStream {
    /// The NULL stream: in device code, the one that all threads of a block share.
    #[default]
    Legacy,
    /// `--default-stream per-thread`: each thread's own stream.
    PerThread,
}

/// A `-D` or `-U`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub enum MacroFlag {
    /// `-D NAME=text`, written as the line behind `#define` would be: `NAME text`.
    Define(String),
    /// `-U NAME`
    Undefine(String),
}

/// One command that compiles a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct CompileCommand {
    /// Directories in which `#include` looks, absolute, in the compiler's order.
    pub include_dirs: Vec<PathBuf>,
    /// Macros that the command defines and undefines, in order.
    pub macros: Vec<MacroFlag>,
    /// Files that are included before the first line, absolute.
    pub forced_includes: Vec<PathBuf>,
    /// Virtual architectures that device code is compiled for, as ten times the compute capability: 90 for `compute_90`.
    /// Empty: not said, or not known (`-arch=native`).
    pub archs: Vec<u32>,
    /// What a launch without stream means.
    pub default_stream: DefaultStream,
    /// Device code is relocatable: `-rdc=true`, `-dc`, `-fgpu-rdc`.
    pub relocatable: bool,
    /// The command links as well, and leaves CUDA's device runtime out: `-cudadevrt none`.
    pub without_device_runtime: bool,
    /// All pointers that kernels get are `__restrict__`: `--restrict`.
    pub restrict: bool,
    /// Major and minor version of the toolkit, where the compiler's path names it.
    pub cuda: Option<(u32, u32)>,
}
