//! Nothing is installed without a word.

use std::io::Write as _;
use std::path::Path;

/// Says what is about to be installed, and where. It goes past the harness, which keeps what tests print to itself.
pub fn installing(what: &str, place: &Path) {
    let mut terminal = std::io::stderr().lock();
    // Without a terminal there is nobody to tell.
    let _ = writeln!(terminal, "tests: installing {what} into {}", place.display());
}
