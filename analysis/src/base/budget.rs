//! How much is analysed before the answer is "not known: too large".
//!
//! The limits count bytes, nodes and steps, never seconds: the same text has the same answer on every machine. What is beyond a
//! limit counts as not known to every analysis, and no rewrite touches it; the diagnostic `too-large` says so at its place.
//! They are far beyond what people write; what programs generate, and what is broken, may reach them.

/// Bytes of a file. A file is parsed at some 10 MB a second, and its tree takes some 20 times its size.
pub const FILE_BYTES: usize = 8 << 20;

/// Bytes of the body of a function as it is written: some 4,000 lines.
pub const FUNCTION_BYTES: usize = 128 << 10;

/// Bytes of a body that nothing closes. While one types, a body reaches to the end of the file: that has to be allowed.
pub const UNCLOSED_BYTES: usize = 1 << 20;

/// Bytes of an initialiser in braces, or of a declaration that isn't a function: what stands in it is of no use to any analysis.
pub const DECLARATION_BYTES: usize = 256 << 10;

/// Brackets of all kinds within each other in one declaration.
pub const BRACKETS: usize = 500;

/// Groups of `#if` within each other: each is read together with those in it.
pub const GROUPS: usize = 100;

/// Namespaces, classes and other blocks around a declaration.
pub const SCOPES: usize = 100;

/// Nodes of a function's syntax tree, its macros expanded. Most analyses take time in proportion; some take more.
pub const FUNCTION_NODES: usize = 120_000;

/// Levels of a function's syntax tree.
pub const FUNCTION_LEVELS: usize = 6_000;

/// Launches in one function of device code: each is looked at together with the whole function.
pub const LAUNCHES: usize = 128;

/// The same in a function of host code, of which less is asked.
pub const HOST_LAUNCHES: usize = 1_000;

/// Jumps in one function: each may go in circles with all others.
pub const GOTOS: usize = 200;

/// Functions that a function calls, directly or through others, each of which is looked at for each caller.
pub const CALLEES: usize = 256;

/// Steps and merged variables that are looked at, all rounds together, to tell how uniform what a function computes is.
pub const UNIFORMITY_STEPS: usize = 1_000_000;

/// Bytes of the macros that a function uses and that could not be expanded, those that macros use included, each as often as it is
/// used: what they do is looked up without a syntax tree.
pub const MACRO_BYTES: usize = 256 << 10;

/// Why nothing is known of a function.
pub const TOO_LARGE: &str = "this function is too large to be analysed";
