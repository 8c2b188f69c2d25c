//! How rewritten programs fare as their inputs grow, beside kernels that are written by hand: `gpu-scale` measures it, `gpu-tables` makes
//! `docs/scale.md` of it.
//!
//! The graphs are those of `tests/corpus/`, made once, in parallel, by `tests/gpu/scale/make_graphs.cpp`, which also computes on the CPU
//! what has to come out. [`host_part`] lets a program read them. The peers are those of `tests/gpu/scale/peers.cu`.

pub mod host_part;
pub mod measure;
pub mod page;
pub mod record;
