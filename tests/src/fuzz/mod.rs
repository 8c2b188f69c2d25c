//! Random programs with dynamic parallelism, and what the rewrites make of them: a Csmith of kernel launches.
//!
//! | module | what it does |
//! |---|---|
//! | [`random`] | numbers from a seed |
//! | [`generate`](mod@generate) | makes a program from a seed; what it computes depends on no schedule |
//! | [`ast`], [`print`](mod@print) | the program as a tree, and as text |
//! | [`rewrite`](mod@rewrite) | applies gridfuse's rewrites, alone and one after the other |
//! | [`fix`] | applies what `gridfuse check --fix` does |
//! | [`check`](mod@check) | builds and runs a program and what was made of it, and compares |
//! | [`shrink`](mod@shrink) | makes a failing program smaller |
//! | [`campaign`] | many programs on all cores |

pub mod ast;
pub mod campaign;
pub mod check;
pub mod fix;
pub mod generate;
pub mod print;
pub mod random;
pub mod rewrite;
pub mod shrink;
