//! Copies of the workspace, or of what matters in it to one function, in which edits are tried.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridfuse_analysis::base::db::{Db, SourceFile, Workspace};
use gridfuse_analysis::base::preprocess::file_directives;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::related::related_files;
use gridfuse_analysis::host::Host;

use crate::api::sequence::difference;
use crate::api::source_edit::TextEdit;
use crate::runtime::is_header;

/// A workspace of its own with the same files.
pub fn copy_of(db: &dyn Db) -> Option<Host> {
    let files = Workspace::try_get(db)?.files(db);
    copy_with(db, files.iter().map(|(p, f)| (p.clone(), f.text(db))).collect())
}

fn copy_with(db: &dyn Db, texts: Vec<(PathBuf, Arc<str>)>) -> Option<Host> {
    let workspace = Workspace::try_get(db)?;
    let mut host = Host::new();
    host.set_include_dirs(workspace.include_dirs(db).as_ref().clone());
    host.set_settings(workspace.settings(db).as_ref().clone());
    host.set_commands(workspace.commands(db).as_ref().clone());
    host.set_files(texts);
    Some(host)
}

/// A workspace of its own with the files that have a say in what is found out about a function's launches.
pub struct Copy {
    /// The workspace.
    pub host: Host,
    /// The files that may be edited in it, as they were. Of the others, which only include these, there are just the directives.
    before: BTreeMap<PathBuf, Arc<str>>,
}

impl Copy {
    /// The copy for a function.
    pub fn around<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Option<Copy> {
        let files = related_files(db, function);
        // The runtime header, which a rewrite may have to add to, even where nobody includes it yet.
        let all = Workspace::try_get(db)
            .map(|workspace| workspace.files(db))
            .unwrap_or_default();
        let headers = all.values().filter(|file| is_header(db, **file));
        let named = |file: &SourceFile, text: Arc<str>| (file.path(db).to_path_buf(), text);
        let before: BTreeMap<PathBuf, Arc<str>> = files
            .whole
            .iter()
            .chain(headers)
            .map(|f| named(f, f.text(db)))
            .collect();
        let mut texts: Vec<(PathBuf, Arc<str>)> = before.iter().map(|(p, text)| (p.clone(), text.clone())).collect();
        texts.extend(files.including.iter().map(|f| named(f, directives_of(db, *f).into())));
        Some(Copy {
            host: copy_with(db, texts)?,
            before,
        })
    }

    /// A file as it is now.
    pub fn text(&self, path: &Path) -> Option<Arc<str>> {
        self.host.file(path).map(|file| file.text(self.host.db()))
    }

    /// A file as it was.
    pub fn before(&self, path: &Path) -> Option<Arc<str>> {
        self.before.get(path).cloned()
    }

    /// What has been edited in the copy, as edits of the workspace that it was made of.
    pub fn edits(&self) -> BTreeMap<PathBuf, Vec<TextEdit>> {
        let changed = self.before.iter().filter_map(|(path, before)| {
            let after = self.text(path).filter(|after| after != before)?;
            Some((path.clone(), difference(before, &after)))
        });
        changed.collect()
    }
}

/// A file without its code.
fn directives_of(db: &dyn Db, file: SourceFile) -> String {
    let text = file.text(db);
    let mut found = String::new();
    for directive in file_directives(db, file).iter() {
        found.push_str(text.get(directive.start..directive.end).unwrap_or_default());
        found.push('\n');
    }
    found
}
