//! Bytes as the files of a workspace: a byte `0x01` ends a file. The first is `a.cu`; the others are headers that it may include. A fuzzer
//! finds that byte soon, and a text without it is a workspace of one file.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use gridfuse_analysis::host::Host;

/// Ends a file.
pub const END: char = '\u{1}';

/// Longer texts are cut: a fuzzer's time is better spent on many short ones.
const MAX_BYTES: usize = 16 << 10;

/// Their names, in order.
const NAMES: [&str; 4] = ["a.cu", "b.cuh", "c.cu", "d.cuh"];

/// The path of a file, by its number.
pub fn path(number: usize) -> PathBuf {
    let name = NAMES.get(number % NAMES.len()).copied().unwrap_or_default();
    Path::new("/fuzz").join(name)
}

/// The texts, as many as there are names at most.
pub fn texts(bytes: &[u8]) -> Vec<String> {
    let bytes = bytes.get(..MAX_BYTES).unwrap_or(bytes);
    let all: Cow<'_, str> = String::from_utf8_lossy(bytes);
    all.splitn(NAMES.len(), END).map(str::to_owned).collect()
}

/// A workspace with these texts.
pub fn host(texts: &[String]) -> Host {
    let mut host = Host::new();
    let files = texts.iter().enumerate();
    host.set_files(
        files
            .map(|(number, text)| (path(number), text.as_str().into()))
            .collect(),
    );
    host
}
