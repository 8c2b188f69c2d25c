//! The host: it owns the database, adds, changes and removes files, and says what projects say about themselves.

mod patch;
mod settling;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use salsa::{Durability, Setter};

use crate::base::command::CompileCommand;
use crate::base::db::{Database, SourceFile, Workspace};
use crate::base::mask::directives;
use crate::base::parsed::LastTrees;
use crate::base::preprocess::IncludeItem;
use crate::base::settings::Settings;
use crate::base::span::TextRange;
use crate::hir::settled::SettledFiles;
use patch::Patch;
use settling::Settling;

/// Every `#include` in a text.
fn includes_in(text: &str) -> Arc<Vec<IncludeItem>> {
    let directives = directives(text);
    let includes = directives.iter().filter(|d| d.name == "include");
    Arc::new(includes.filter_map(|d| IncludeItem::parse(d.rest(text))).collect())
}

/// Whether another `#include` may be read, or none any more, where `removed` between `head` and `tail` becomes `inserted`: not where no
/// line, comment, literal or directive begins or ends there, and the line is no directive.
fn may_touch_includes(head: &str, removed: &str, inserted: &str, tail: &str) -> bool {
    let begins = |c: char| matches!(c, '#' | '/' | '*' | '"' | '\'' | '\\' | '\n' | '\r' | '(' | ')' | 'R');
    let line_start = head.rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = tail.find('\n').unwrap_or(tail.len());
    let continued = head[..line_start].trim_end_matches(['\r', '\n']).ends_with('\\');
    let around = [&head[line_start..], &tail[..line_end]];
    continued
        || removed.contains(begins)
        || inserted.contains(begins)
        || around
            .iter()
            .any(|part| part.contains(['#', '/', '*', '"', '\'', '\\']))
}

/// Owner of the database: adds, changes and removes files.
pub struct Host {
    pub(crate) db: Database,
    pub(crate) settling: Settling,
}

impl Default for Host {
    fn default() -> Self {
        Host::new()
    }
}

impl Host {
    /// An empty workspace.
    pub fn new() -> Self {
        Host::over(Database::new(false))
    }

    /// An empty workspace that can tell which queries execute.
    pub fn observed() -> Self {
        Host::over(Database::new(true))
    }

    fn over(db: Database) -> Self {
        let _ = Workspace::builder(Arc::default(), Arc::default(), Arc::default(), Arc::default())
            .durability(Durability::HIGH)
            .new(&db);
        let _ = SettledFiles::builder(Arc::default())
            .durability(Durability::HIGH)
            .new(&db);
        let settling = Settling::default();
        Host { db, settling }
    }

    /// The database, for queries on this thread.
    pub fn db(&self) -> &Database {
        &self.db
    }

    /// A snapshot for queries on another thread. A later change waits until all snapshots are dropped and makes their
    /// queries unwind with [`salsa::Cancelled`].
    pub fn snapshot(&self) -> Database {
        self.db.clone()
    }

    /// The file at `path`, if it is known.
    pub fn file(&self, path: &Path) -> Option<SourceFile> {
        Workspace::get(&self.db).files(&self.db).get(path).copied()
    }

    /// Adds a file or replaces its text.
    pub fn set_file(&mut self, path: &Path, text: impl Into<Arc<str>>) -> SourceFile {
        let text = text.into();
        if let Some(file) = self.file(path) {
            self.set_text(file, text, Durability::LOW);
            self.settle();
            return file;
        }
        let includes = includes_in(&text);
        let file = SourceFile::builder(path.to_path_buf(), text, includes, None, None, None)
            .durability(Durability::HIGH)
            .text_durability(Durability::LOW)
            .patched_durability(Durability::LOW)
            .new(&self.db);
        let workspace = Workspace::get(&self.db);
        let mut files = workspace.files(&self.db).as_ref().clone();
        files.insert(path.to_path_buf(), file);
        workspace.set_files(&mut self.db).to(Arc::new(files));
        self.settle();
        file
    }

    /// Adds a file that is going to be edited, or replaces its text. Does the same as [`Host::set_file`], and edits take less time.
    pub fn open_file(&mut self, path: &Path, text: impl Into<Arc<str>>) -> SourceFile {
        let file = self.set_file(path, text);
        self.begin_settling(file);
        file
    }

    /// From now on the trees of a file are made from those before.
    pub(crate) fn keep_trees(&mut self, file: SourceFile) {
        if file.last_trees(&self.db).is_none() {
            file.set_last_trees(&mut self.db)
                .with_durability(Durability::HIGH)
                .to(Some(LastTrees::default()));
        }
    }

    /// `durability`: what was found out from files that hardly ever change isn't looked at again when others do.
    fn set_text(&mut self, file: SourceFile, text: Arc<str>, durability: Durability) {
        if file.text(&self.db) != text {
            self.set_includes(file, includes_in(&text));
            file.set_patched(&mut self.db).with_durability(durability).to(None);
            self.set_patched_items(file, None);
            file.set_text(&mut self.db).with_durability(durability).to(text);
        }
    }

    fn set_includes(&mut self, file: SourceFile, includes: Arc<Vec<IncludeItem>>) {
        if file.includes(&self.db) != includes {
            file.set_includes(&mut self.db)
                .with_durability(Durability::HIGH)
                .to(includes);
        }
    }

    /// Adds many files at once, replacing the text of those that are known: one change of the workspace. They are taken to change
    /// less often than those that [`Host::set_file`] and [`Host::edit_file`] change.
    pub fn set_files(&mut self, texts: Vec<(PathBuf, Arc<str>)>) {
        let workspace = Workspace::get(&self.db);
        let mut files = workspace.files(&self.db).as_ref().clone();
        let before = files.len();
        for (path, text) in texts {
            match files.entry(path) {
                Entry::Occupied(known) => {
                    let file = *known.get();
                    self.end_settling(file);
                    self.set_text(file, text, Durability::HIGH);
                }
                Entry::Vacant(free) => {
                    let includes = includes_in(&text);
                    let file = SourceFile::builder(free.key().clone(), text, includes, None, None, None)
                        .durability(Durability::HIGH)
                        .new(&self.db);
                    free.insert(file);
                }
            }
        }
        if files.len() != before {
            workspace.set_files(&mut self.db).to(Arc::new(files));
        }
        self.settle();
    }

    /// Replaces the bytes `range` of a known file by `insert`, keeping its tree for incremental parsing.
    /// A range that doesn't lie on character boundaries inside the text is ignored, and so is an unknown file.
    pub fn edit_file(&mut self, path: &Path, range: TextRange, insert: &str) {
        let Some(file) = self.file(path) else { return };
        let old = file.text(&self.db);
        let (start, end) = (range.start as usize, range.end as usize);
        let (Some(head), Some(tail)) = (old.get(..start), old.get(end..)) else {
            return;
        };
        if start > end {
            return;
        }
        self.begin_settling(file);
        let new: Arc<str> = [head, insert, tail].concat().into();
        self.keep_trees(file);
        // A panic of a query is that of the next one who asks.
        let patch = catch_unwind(AssertUnwindSafe(|| Patch::after(&self.db, file, start, end, insert)));
        let (patched, items) = match patch.ok().flatten() {
            Some(patch) => (Some(Arc::new(patch.text)), Some(Arc::new(patch.items))),
            None => (None, None),
        };
        if patched.is_none() && may_touch_includes(head, &old[start..end], insert, tail) {
            self.set_includes(file, includes_in(&new));
        }
        file.set_patched(&mut self.db)
            .with_durability(Durability::LOW)
            .to(patched);
        self.set_patched_items(file, items);
        file.set_text(&mut self.db).with_durability(Durability::LOW).to(new);
        self.settle();
    }

    /// Forgets a file.
    pub fn remove_file(&mut self, path: &Path) {
        let workspace = Workspace::get(&self.db);
        let mut files = workspace.files(&self.db).as_ref().clone();
        if let Some(file) = files.remove(path) {
            self.end_settling(file);
            workspace.set_files(&mut self.db).to(Arc::new(files));
            self.settle();
        }
    }

    /// Sets the include directories.
    pub fn set_include_dirs(&mut self, dirs: Vec<PathBuf>) {
        let workspace = Workspace::get(&self.db);
        if *workspace.include_dirs(&self.db) != dirs {
            workspace.set_include_dirs(&mut self.db).to(Arc::new(dirs));
            self.settle();
        }
    }

    /// Sets what the project says about itself, by directory.
    pub fn set_settings(&mut self, settings: BTreeMap<PathBuf, Arc<Settings>>) {
        let workspace = Workspace::get(&self.db);
        if *workspace.settings(&self.db) != settings {
            workspace.set_settings(&mut self.db).to(Arc::new(settings));
            self.settle();
        }
    }

    /// Sets the commands that compile each file.
    pub fn set_commands(&mut self, commands: BTreeMap<PathBuf, Vec<Arc<CompileCommand>>>) {
        let workspace = Workspace::get(&self.db);
        if *workspace.commands(&self.db) != commands {
            workspace.set_commands(&mut self.db).to(Arc::new(commands));
            self.settle();
        }
    }

    /// How many results of queries were looked at again and found to be as before.
    pub fn validations(&self) -> usize {
        self.db.validations.load(Ordering::Relaxed)
    }

    /// Starts recording which queries execute.
    pub fn record_executions(&self) {
        if let Ok(mut log) = self.db.executions.lock() {
            *log = Some(Vec::new());
        }
    }

    /// Stops recording and returns the executed queries as `name(Id(..))`.
    pub fn take_executions(&self) -> Vec<String> {
        self.db
            .executions
            .lock()
            .ok()
            .and_then(|mut log| log.take())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random edits of texts in which nearly everything begins or ends something.
    #[test]
    fn includes_are_those_of_the_text() {
        const PIECES: [&str; 22] = [
            "#include \"a.h\"\n",
            "#include <b.h>\n",
            "#",
            "\n",
            "/*",
            "*/",
            "//",
            "\"",
            "'",
            "\\",
            "\\\n",
            "R\"x(",
            ")x\"",
            "x",
            "include",
            "<c.h>",
            " ",
            "8R",
            "1'000",
            "#define A \\\n",
            "(",
            "\r\n",
        ];
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let path = Path::new("/a.cu");
        let mut kept = 0;
        for _ in 0..400 {
            let mut host = Host::new();
            let text: String = (0..8).map(|_| PIECES[random(PIECES.len())]).collect();
            let file = host.set_file(path, text);
            for _ in 0..8 {
                let text = file.text(host.db());
                let mut ends = [random(text.len() + 1), random(text.len() + 1)];
                ends.sort_unstable();
                if random(2) == 0 {
                    ends[1] = ends[0];
                }
                let range = TextRange::new(ends[0] as u32, ends[1] as u32);
                host.edit_file(path, range, PIECES[random(PIECES.len())]);
                let now = file.text(host.db());
                assert_eq!(file.includes(host.db()), includes_in(&now), "{now:?}");
                kept += usize::from(now != text);
            }
        }
        assert!(kept > 2000, "{kept}");
    }
}
