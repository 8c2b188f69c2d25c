//! Branches of an `#if` in which something is edited: what stands in the others stays as it is.

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::extents::functions_near;
use gridfuse_analysis::hir::runtime_header::is_runtime_header;

use crate::api::assumption::{self, Assumed};
use crate::api::refusal::Reason;

/// What edits take for granted of such groups: that the branch which is compiled now is the one that is compiled.
pub fn assumptions(db: &dyn Db, edited: &[(SourceFile, Vec<TextRange>)]) -> Vec<Assumed> {
    let mut found: Vec<Assumed> = Vec::new();
    // Our own header is replaced as a whole.
    for (file, ranges) in edited.iter().filter(|(file, _)| !is_runtime_header(db, *file)) {
        for range in ranges {
            for function in functions_near(db, *file, *range) {
                for group in function.decided(db) {
                    let group = group.shift(function.start(db));
                    if !group.contains(*range) {
                        continue;
                    }
                    let text = file.text(db);
                    let line = text.get(group.start as usize..).and_then(|rest| rest.lines().next());
                    let assumed = assumption::CONDITIONS_AS_NOW.of(Reason {
                        text: format!(
                            "`{}` is decided as it is now: its other branches keep their code",
                            line.unwrap_or("#if").trim()
                        ),
                        place: Some(FileRange {
                            file: *file,
                            range: group,
                        }),
                    });
                    if !found.contains(&assumed) {
                        found.push(assumed);
                    }
                }
            }
        }
    }
    found
}
