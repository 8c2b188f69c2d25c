//! What the directives of a file say.

use std::sync::Arc;

use super::line::{Line, line};
use crate::base::db::{Db, SourceFile};
use crate::base::mask::{Directive, directives};

/// All directives of a file, in order.
#[salsa::tracked(returns(clone))]
pub fn file_directives(db: &dyn Db, file: SourceFile) -> Arc<Vec<Directive>> {
    match file.patched(db) {
        Some(patched) => patched.directives.clone(),
        None => Arc::new(directives(&file.text(db))),
    }
}

/// The directives of a file, each as it is written, wherever it stands.
pub(super) fn lines(db: &dyn Db, file: SourceFile) -> &[Line] {
    match file.settled_lines(db) {
        Some(lines) => lines,
        None => lines_in_text(db, file),
    }
}

/// The same as the text says now.
#[salsa::tracked]
pub(crate) fn lines_in_text(db: &dyn Db, file: SourceFile) -> Arc<Vec<Line>> {
    if let Some(patched) = file.patched(db) {
        return patched.lines.clone();
    }
    let text = file.text(db);
    let directives = file_directives(db, file);
    let lines = directives.iter().map(|d| line(&d.name, d.rest(&text)));
    Arc::new(lines.collect())
}
