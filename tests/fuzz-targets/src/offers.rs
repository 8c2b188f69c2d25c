//! Every rewrite of every launch: `check` and `apply` agree, the edit can be applied, and what comes out parses where the original does.

use std::path::Path;

use gridfuse::launches::in_file;
use gridfuse_analysis::base::db::{Database, SourceFile};
use gridfuse_analysis::base::parse::parse;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::diagnostics::diagnostics;
use gridfuse_analysis::host::Host;
use gridfuse_codeactions::api::rewrite::{Options, Verdict};
use gridfuse_codeactions::api::source_edit::SourceEdit;
use gridfuse_codeactions::api::source_edit::apply;
use gridfuse_codeactions::handlers::{of_launches, of_places};
use gridfuse_codeactions::runtime::HEADER_NAME;

use crate::{facts, workspace};

/// Launches of a file that are looked at.
const MAX_LAUNCHES: usize = 4;

/// Diagnostics of a file that are looked at.
const MAX_PLACES: usize = 8;

/// Runs the target.
pub fn run(bytes: &[u8]) {
    crate::with_stack(check, bytes);
}

fn check(bytes: &[u8]) {
    let texts = workspace::texts(bytes);
    let host = workspace::host(&texts);
    let db = host.db();
    let options = Options::default();
    for file in facts::files(db) {
        for site in in_file(db, file)
            .iter()
            .filter(|site| site.device_side())
            .take(MAX_LAUNCHES)
        {
            for rewrite in of_launches() {
                let verdict = rewrite.verdict(db, site.id, &options);
                match (rewrite.apply(db, site.id, &options), &verdict) {
                    (Ok(edit), Verdict::Eligible | Verdict::Assumes(_)) => result(&host, rewrite.id, &edit),
                    (Err(refusal), Verdict::Ineligible(reasons)) => {
                        assert_eq!(
                            &refusal.0, reasons,
                            "{}: check and apply refuse for different reasons",
                            rewrite.id
                        );
                        assert!(!reasons.is_empty(), "{}: refused without a reason", rewrite.id);
                    }
                    (applied, verdict) => panic!(
                        "{}: check says {verdict:?}, apply says {:?}",
                        rewrite.id,
                        applied.map(|_| "yes").map_err(|refusal| refusal.0)
                    ),
                }
            }
        }
        let places: Vec<FileRange> = diagnostics(db, file)
            .iter()
            .map(|found| found.place)
            .take(MAX_PLACES)
            .collect();
        for place in places {
            for fix in of_places() {
                if let Ok(edit) = fix.apply(db, place, &options) {
                    result(&host, fix.id, &edit);
                }
            }
        }
    }
}

/// The edit can be applied, and leaves no error in a text that was without; no query panics on the result.
fn result(host: &Host, id: &str, edit: &SourceEdit) {
    let db = host.db();
    let read = |path: &Path| host.file(path).map(|file| file.text(db).to_string());
    let mut after = match apply(edit, read) {
        Ok(after) => after,
        Err(error) => panic!("{id}: the edit can't be applied: {error:?}"),
    };
    // The runtime is the same each time, and for compilers, which read it in other tests: without it an input takes a tenth of the time.
    if edit.creates.keys().any(|path| path.ends_with(HEADER_NAME)) {
        after.retain(|path, _| !path.ends_with(HEADER_NAME));
    }
    let mut rewritten = Host::new();
    let all = facts::files(db)
        .into_iter()
        .map(|file| (file.path(db).to_path_buf(), file.text(db)));
    rewritten.set_files(all.collect());
    rewritten.set_files(after.into_iter().map(|(path, text)| (path, text.into())).collect());
    for file in facts::files(rewritten.db()) {
        let path = file.path(rewritten.db());
        let before = host.file(path).map_or(0, |file| errors(db, file));
        let after = errors(rewritten.db(), file);
        // Where something doesn't parse, how many nodes the parser gives up differs with every word.
        assert!(
            after == 0 || before > 0,
            "{id}: {} has {after} syntax errors where it had none:\n{}",
            path.display(),
            file.text(rewritten.db())
        );
        diagnostics(rewritten.db(), file);
    }
}

/// Places that don't parse.
fn errors(db: &Database, file: SourceFile) -> usize {
    let parsed = parse(db, file);
    let mut cursor = parsed.tree().walk();
    let mut errors = 0;
    loop {
        let node = cursor.node();
        errors += usize::from(node.is_error() || node.is_missing());
        if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return errors;
            }
        }
    }
}
