//! Programs for which a rewrite was once offered that computed something else, trapped, or didn't compile: what is offered for them now,
//! in `tests/fixtures/once_wrong/offers.expect`. Each of these offers was run in the emulator before it was written down there
//! (`emulate FILE --apply ID --at LINE --seeds 6`), and prints what the original prints, unless what it assumes doesn't hold.
//!
//! `UPDATE_EXPECT=1` writes the file anew; run what is new in it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::process::Command;

use gridfuse_tests::cli::in_parallel;
use gridfuse_tests::{expect, once_wrong, workspace};

#[test]
fn what_was_wrong_once_is_offered_no_more() {
    let names = once_wrong::names().expect("the fixtures");
    let all = in_parallel(&names, |name| {
        once_wrong::offers(&mut Command::new(workspace::gridfuse_bin()), name).expect("offers")
    });
    expect::file(&once_wrong::expected(), &all.concat(), "once_wrong");
}
