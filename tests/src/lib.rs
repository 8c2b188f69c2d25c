//! Support for the end-to-end tests, the corpus and the GPU measurements of gridfuse.
//!
//! | module | what it is for |
//! |---|---|
//! | [`announce`] | what is installed, and where |
//! | [`assumptions`] | which rewrite makes which assumption |
//! | [`cli`] | the command line, temporary directories, work on two threads |
//! | [`compile_time`] | what the runtime header costs those who compile |
//! | [`docs`] | the pages that are made from the source |
//! | [`doctor_captures`] | what `gridfuse doctor` says on three machines |
//! | [`editors`] | real editors, installed on first use |
//! | [`emulator`] | runs CUDA programs on the CPU |
//! | [`examples`] | the corpus rewritten, as pages |
//! | [`expect`] | expectations that are files |
//! | [`fixture`] | CUDA sources with a cursor and expected diagnostics in comments |
//! | [`fuzz`] | random programs, rewritten and run under the emulator |
//! | `lsp_bench` | measures language servers, behind `gridfuse-bench` |
//! | `hostile` | files that are made to be hard, and what the program takes for them |
//! | [`installing`] | ways to install it, tried in empty directories |
//! | [`json_schema`] | whether JSON is as a schema says |
//! | [`lsp_client`] | a language client that talks to a real server process |
//! | [`nvcc`] | a real CUDA compiler, installed on first use when there is none |
//! | [`once_wrong`] | what is offered for programs that were rewritten wrongly once |
//! | [`oracle`] | what LLVM says of the same values |
//! | [`overhead`] | what the rewrites cost in registers and code |
//! | [`patience`] | how long tests wait |
//! | [`reach`] | how much of real code is rewritten |
//! | [`resources`] | registers and memory, as the compiler says |
//! | `remote_hosts` | an ssh server and a Slurm cluster |
//! | [`rule_mutants`] | rules of soundness that are taken out, and the tests that notice |
//! | [`severities`] | the severities in the manifest of an extension |
//! | [`tutorial`] | a program that gets faster step by step, as a page |
//! | [`workspace`] | where the repository and its binaries are |
//! | [`gpu`] | what runs on a GPU, behind `gpu-bench`, `gpu-tables`, `gpu-conformance` and `gpu-random-programs` |
#![allow(
    clippy::too_many_lines,
    reason = "generators and tables of programs are lists: what follows has nothing to do with what is above"
)]

pub mod announce;
pub mod assumptions;
pub mod cli;
pub mod compile_time;
pub mod docs;
pub mod doctor_captures;
pub mod editors;
pub mod emulator;
pub mod examples;
pub mod expect;
pub mod fixture;
pub mod fuzz;
pub mod gpu;
pub mod hostile;
pub mod installing;
pub mod json_schema;
#[cfg(target_os = "linux")]
pub mod lsp_bench;
pub mod lsp_client;
pub mod newcomers;
pub mod nvcc;
pub mod once_wrong;
pub mod oracle;
pub mod overhead;
pub mod patience;
pub mod processes;
pub mod reach;
#[cfg(unix)]
pub mod remote_hosts;
pub mod resources;
pub mod rule_mutants;
pub mod screens;
pub mod severities;
pub mod tutorial;
pub mod workspace;
