//! Random programs with dynamic parallelism, and what the rewrites make of them: the Csmith of kernel launches.
//!
//! | module | what it does |
//! |---|---|
//! | [`generate`] | makes a program from a seed; what it computes depends on no schedule |
//! | [`ast`], [`print`] | the program as a tree, and as text |

pub mod ast;
pub mod generate;
pub mod print;
pub mod random;
pub mod rewrite;
