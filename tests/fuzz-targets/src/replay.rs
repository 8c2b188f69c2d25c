//! Runs a target without a fuzzer.

use std::io;

/// Runs a target on each file that the command line names.
pub fn files(run: fn(&[u8])) -> io::Result<()> {
    for path in std::env::args_os().skip(1) {
        println!("{}", path.display());
        run(&std::fs::read(path)?);
    }
    Ok(())
}
