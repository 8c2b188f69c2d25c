//! What runs on a GPU: `gpu-bench`, `gpu-scale`, `gpu-tables`, `gpu-conformance` and `gpu-random-programs` are made of it.
//!
//! [`plan`] says what to measure of the corpus, [`bench`] does it, [`record`] is what is written down, and
//! [`tables`] turns that into the tables of `docs/measurements.md`. [`conformance`] runs the programs that the
//! emulator is compared with, and [`conformance_record`] keeps what they printed. [`by_hand`] compares with the
//! design by hand, [`thresholds`] thresholds with each other, [`chains`] the rewrites of chains; [`measured`] shows what `gridfuse measure` has noticed, [`tune_record`] what `gridfuse tune` has. [`scale`] lets inputs grow, beside peers. [`random_programs`]
//! compares the fuzzer's programs and their rewrites with the emulator.

pub mod bench;
pub mod by_hand;
pub mod chains;
pub mod conformance;
pub mod conformance_record;
pub mod machine;
pub mod measured;
pub mod plan;
pub mod process;
pub mod random_programs;
pub mod random_tables;
pub mod record;
pub mod scale;
pub mod sources;
pub mod summary;
pub mod tables;
pub mod thresholds;
pub mod tune_record;
