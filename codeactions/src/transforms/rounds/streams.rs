//! Whether the program may have work in other streams than the loop's.

use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::functions_named;

use super::host_loop::HostLoop;
use crate::edit::lex;
use crate::runtime::is_header;

/// What the names begin with without which a program has no stream but the default one, of CUDA's runtime and of its driver.
const NAMES: [&str; 6] = [
    "cudaStream_t",
    "cudaStreamCreate",
    "cudaStreamPerThread",
    "cudaStreamLegacy",
    "CUstream",
    "cuStreamCreate",
];

/// Whether what is in sight names streams, or a function that another file of the program defines.
pub fn may_be_others(host: &HostLoop<'_>) -> bool {
    let db = host.function.db;
    let seen = included_files(db, host.file());
    // What another file says isn't read, also where the workspace has it.
    let is_elsewhere = |function: &FunctionItem<'_>| {
        let all = functions_named(db, host.file(), function.name(db));
        !function.signature(db).kernel && !all.iter().any(|f| f.has_body(db) && seen.contains(&f.file(db)))
    };
    let mut files = included_files(db, host.file())
        .iter()
        .filter(|file| !is_header(db, **file));
    files.any(|file| {
        let text = file.text(db);
        // Large files are searched before they are read word by word.
        let named = NAMES.iter().any(|name| text.contains(name))
            && lex::identifiers(&text).any(|word| NAMES.iter().any(|name| unqualified(word).starts_with(name)));
        named || items(db, *file).functions.iter().any(is_elsewhere)
    })
}
