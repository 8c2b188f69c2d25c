//! The `gridfuse` binary can be built and found by tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use gridfuse_tests::workspace;

#[test]
fn the_binary_is_there() {
    let binary = workspace::gridfuse_bin();
    assert!(binary.is_file(), "{}", binary.display());
}
