//! Bytes to all queries: none of them panics, and each place that they name is one.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::diagnostics::diagnostics;
use gridfuse_codeactions::api::rewrite::Options;
use gridfuse_codeactions::handlers::of_places;

use crate::{facts, workspace};

/// Places that each fix is tried at.
const MAX_PLACES: usize = 12;

/// Runs the target.
pub fn run(bytes: &[u8]) {
    crate::with_stack(check, bytes);
}

fn check(bytes: &[u8]) {
    let texts = workspace::texts(bytes);
    let host = workspace::host(&texts);
    let db = host.db();
    facts::all(db);
    let shown = facts::shown(db);
    assert_eq!(
        shown,
        facts::shown(db),
        "what is shown differs from one time to the other"
    );
    for file in facts::files(db) {
        let length = file.text(db).len() as u32;
        let found = diagnostics(db, file);
        for found in found {
            let range = found.place.range;
            assert!(
                found
                    .place
                    .file
                    .text(db)
                    .get(range.start as usize..range.end as usize)
                    .is_some(),
                "{} stands at {range:?}, which is no place",
                found.id
            );
        }
        let whole = FileRange {
            file,
            range: TextRange::new(0, length),
        };
        let places = found.iter().map(|found| found.place).take(MAX_PLACES);
        for place in places.chain([whole]) {
            for fix in of_places() {
                let _ = fix.apply(db, place, &Options::default());
            }
        }
    }
}
