//! The header that rewritten code includes: gridfuse's own code in the user's project, of which users are told nothing.

use super::db::{Db, SourceFile};

/// Its name.
const NAME: &str = "gridfuse.cuh";

/// What it defines, and nobody else.
const MARK: &str = "#define GRIDFUSE_VERSION ";

/// The file is the runtime header, as gridfuse writes it into a project.
pub fn is_runtime_header(db: &dyn Db, file: SourceFile) -> bool {
    file.path(db).file_name().is_some_and(|name| name == NAME) && file.text(db).contains(MARK)
}
