//! The files that make up a program, as far as the workspace shows it: where memory that a kernel allocates can come to.

use std::collections::HashSet;

use gridfuse_analysis::base::db::{Db, SourceFile, Workspace};
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::definitions_by_name;

use crate::runtime::is_header;

/// The files of every program that `file` is a part of, the runtime header left out: the sources that include it, those that
/// have a file in common with one of them or define what it declares, and all that these include. No program has two
/// definitions of `main`, so that a source with a `main` of its own is another program.
pub fn files_of(db: &dyn Db, file: SourceFile) -> Vec<SourceFile> {
    let Some(workspace) = Workspace::try_get(db) else {
        return vec![file];
    };
    let has_main = |f: SourceFile| {
        let mains = definitions_by_name(db).get("main");
        mains.into_iter().flatten().any(|m| m.file(db) == f)
    };
    let own = |f: SourceFile| -> HashSet<SourceFile> {
        let included = included_files(db, f).iter().copied();
        let mut all: HashSet<SourceFile> = included.chain([f]).collect();
        all.retain(|f| !is_header(db, *f));
        all
    };
    let units: Vec<SourceFile> = workspace
        .files(db)
        .values()
        .copied()
        .filter(|f| is_unit(db, *f))
        .collect();
    let roots: Vec<SourceFile> = units.iter().copied().filter(|u| own(*u).contains(&file)).collect();
    let mut found = own(file);
    for root in &roots {
        found.extend(own(*root));
    }
    let several = roots.iter().any(|r| has_main(*r));
    loop {
        let before = found.len();
        for unit in &units {
            if found.contains(unit) || several && has_main(*unit) {
                continue;
            }
            let theirs = own(*unit);
            if theirs.iter().any(|f| found.contains(f))
                || declares_of(db, &found, &theirs)
                || declares_of(db, &theirs, &found)
            {
                found.extend(theirs);
            }
        }
        if found.len() == before {
            let mut all: Vec<SourceFile> = found.into_iter().collect();
            all.sort_by_key(|f| f.path(db).to_path_buf());
            return all;
        }
    }
}

/// A file that is compiled by itself.
fn is_unit(db: &dyn Db, file: SourceFile) -> bool {
    let extension = file
        .path(db)
        .extension()
        .map(|e| e.to_string_lossy().to_ascii_lowercase());
    extension.is_some_and(|e| matches!(e.as_str(), "cu" | "cc" | "cpp" | "cxx" | "c"))
}

/// Some of `files` declare a function that one of `others` defines, without its definition.
fn declares_of(db: &dyn Db, files: &HashSet<SourceFile>, others: &HashSet<SourceFile>) -> bool {
    files.iter().any(|file| {
        items(db, *file).functions.iter().any(|f| {
            !f.has_body(db)
                && definitions_by_name(db)
                    .get(unqualified(f.name(db)))
                    .into_iter()
                    .flatten()
                    .any(|d| others.contains(&d.file(db)))
        })
    })
}
