//! The `gridfuse` binary.

fn main() {}
