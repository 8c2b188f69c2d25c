//! Measuring the corpus on a GPU: what `gpu-bench` and `gpu-tables` are made of.
//!
//! [`plan`] says what to measure, [`bench`] does it, [`record`] is what is written down, and
//! [`tables`] turns that into the tables of `docs/measurements.md`.

pub mod bench;
pub mod machine;
pub mod plan;
pub mod process;
pub mod record;
pub mod sources;
pub mod tables;
