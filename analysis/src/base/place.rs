//! Places in files.

use crate::base::db::SourceFile;
use crate::base::span::TextRange;

/// A range of bytes in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct FileRange {
    /// The file.
    pub file: SourceFile,
    /// Absolute byte range in its text.
    pub range: TextRange,
}
