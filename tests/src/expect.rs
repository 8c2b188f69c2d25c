//! Expectations that are files: `UPDATE_EXPECT=1` writes what a test would have liked to find.

use std::fs;
use std::path::Path;

/// Whether the files are to be written.
pub fn updates() -> bool {
    std::env::var_os("UPDATE_EXPECT").is_some_and(|wanted| wanted == "1")
}

/// A file has this text, whatever its line ends; `UPDATE_EXPECT=1` writes it. `test` is the test that asks.
///
/// # Panics
/// When it has another one, with the first line that differs and the command that writes it.
#[allow(clippy::panic, reason = "it's for tests")]
#[track_caller]
pub fn file(path: &Path, text: &str, test: &str) {
    let found = fs::read_to_string(path).unwrap_or_default().replace("\r\n", "\n");
    if found == text {
        return;
    }
    if updates() {
        if let Err(error) = fs::write(path, text) {
            panic!("{}: {error}", path.display());
        }
        return;
    }
    let line = found.lines().zip(text.lines()).take_while(|(a, b)| a == b).count();
    panic!(
        "{}:{}: it is\n  {}\nand should be\n  {}\nrun: UPDATE_EXPECT=1 cargo test -p gridfuse-tests --test {test}",
        path.display(),
        line + 1,
        found.lines().nth(line).unwrap_or("(the end)"),
        text.lines().nth(line).unwrap_or("(the end)"),
    );
}
