//! The header that comes with rewritten code, as a file of the program. What stands in it is known by what it is for, and not by its text.

use crate::base::db::{Db, SourceFile};

/// The file's name.
pub const HEADER_NAME: &str = "gridfuse.cuh";

/// What stands in front of its version.
pub const DEFINES_VERSION: &str = "#define GRIDFUSE_VERSION ";

/// The version of the runtime header that a text is, 0 from before they had one; `None`: it is none.
pub fn header_version(text: &str) -> Option<u32> {
    let written = text.lines().find_map(|line| line.strip_prefix(DEFINES_VERSION));
    let version = written.and_then(|version| version.trim().parse().ok());
    let unversioned = || text.contains("#ifndef GRIDFUSE_CUH") && text.contains("namespace gridfuse {");
    version.or_else(|| unversioned().then_some(0))
}

/// Whether a file is the runtime header, of whichever version.
pub fn is_runtime_header(db: &dyn Db, file: SourceFile) -> bool {
    file.path(db).file_name().is_some_and(|name| name == HEADER_NAME) && *is_header_text(db, file)
}

#[salsa::tracked]
fn is_header_text(db: &dyn Db, file: SourceFile) -> bool {
    header_version(&file.text(db)).is_some()
}
