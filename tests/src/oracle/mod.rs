//! A second opinion on uniformity: what LLVM's analysis says of the same values.
//!
//! | module | what it does |
//! |---|---|
//! | [`probe`] | puts probes into a source, and says what gridfuse claims of their values |
//! | [`llvm`] | compiles device code with clang and reads which probed values LLVM calls divergent |
//! | [`kernels`] | random kernels, full of control flow |
//! | [`compare`](mod@compare) | where the two contradict each other |
//!
//! LLVM judges arithmetic, control flow and what stands in local variables. What is loaded from memory is taken for uniform where the
//! address is: which memory changes meanwhile, gridfuse says by other means than LLVM has.

pub mod compare;
pub mod kernels;
pub mod llvm;
pub mod probe;
