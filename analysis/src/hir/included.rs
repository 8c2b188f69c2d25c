//! What a file includes, and what the included files include.

use std::collections::HashSet;

use super::items::items;
use crate::base::compile::compilation;
use crate::base::db::{Db, SourceFile, Workspace};
use crate::base::include::resolve_include;

/// The file itself and all files that it includes, directly or not, in the order in which they are read.
#[salsa::tracked]
pub fn included_files(db: &dyn Db, file: SourceFile) -> Vec<SourceFile> {
    let mut seen = HashSet::from([file]);
    let mut order = vec![file];
    if let Some(workspace) = Workspace::try_get(db)
        && let Some(command) = compilation(db, file).commands.first()
    {
        let files = workspace.files(db);
        let forced = command
            .forced_includes
            .iter()
            .filter_map(|path| files.get(path).copied());
        order.extend(forced.filter(|forced| seen.insert(*forced)));
    }
    let mut next = 0;
    while let Some(current) = order.get(next).copied() {
        next += 1;
        for include in &items(db, current).includes {
            if let Some(target) = resolve_include(db, current, include)
                && seen.insert(target)
            {
                order.push(target);
            }
        }
    }
    order
}
