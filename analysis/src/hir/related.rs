//! Which functions of a workspace may have to do with one: what is found out about its launches hangs on nothing else.

use std::collections::HashSet;

use crate::base::db::{Db, SourceFile};
use crate::base::include::including_files;
use crate::base::preprocess::MacroState;
use crate::base::words::words;
use crate::hir::included::included_files;
use crate::hir::items::FunctionItem;
use crate::hir::macros::function_macros;
use crate::hir::made_words::made_in;
use crate::hir::mentions::{files_mentioning, functions_mentioning, is_function_name};
use crate::hir::names::unqualified;
use crate::hir::resolve::{functions_named, may_mean};

/// The functions that may have to do with `function`, itself included: what it mentions by name, and what device code among these is
/// mentioned by; of the host's functions, which launch it, what they mention.
pub fn related_functions<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> HashSet<FunctionItem<'db>> {
    let mut found: HashSet<FunctionItem<'db>> = HashSet::from([function]);
    let mut users_of: HashSet<FunctionItem<'db>> = HashSet::new();
    // With what mentions them, and without.
    let mut todo = vec![(function, true)];
    let mut looked_at: HashSet<FunctionItem<'db>> = HashSet::new();
    while let Some((item, with_users)) = todo.pop() {
        // It is found by whoever mentions it: the second look finds nothing new, but for its users.
        let again = !looked_at.insert(item);
        if again && (!with_users || users_of.contains(&item)) {
            continue;
        }
        for callee in mentioned(db, item) {
            let on_device = callee.signature(db).kernel || callee.signature(db).device;
            let with_users = with_users && on_device;
            let new = found.insert(callee);
            if new || with_users && !users_of.contains(&callee) {
                todo.push((callee, with_users));
            }
        }
        if !with_users || !users_of.insert(item) {
            continue;
        }
        let name = unqualified(item.name(db));
        for file in files_mentioning(db, name) {
            if !may_mean(db, *file, item) {
                continue;
            }
            for user in functions_mentioning(db, *file, name) {
                let on_device = user.signature(db).kernel || user.signature(db).device;
                let new = found.insert(*user);
                if new || on_device && !users_of.contains(user) {
                    todo.push((*user, on_device));
                }
            }
        }
    }
    found
}

/// The functions that a function mentions, or that a macro does that it uses.
pub(crate) fn mentioned<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<FunctionItem<'db>> {
    let text = function.text(db);
    let mut names: HashSet<&str> = words(&text).collect();
    for (_, state) in function_macros(db, function).states.values().flatten() {
        if let MacroState::Defined(item) = state {
            names.extend(words(&item.body));
        }
    }
    names.extend(made_in(db, function).iter().map(|made| made.word.as_str()));
    let file = function.file(db);
    let functions = names.into_iter().filter(|name| is_function_name(db, name));
    functions.flat_map(|name| functions_named(db, file, name)).collect()
}

/// The files of the workspace that have a say in what is found out about a function's launches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelatedFiles {
    /// Those that functions that may have to do with it stand in, and all that these include.
    pub whole: HashSet<SourceFile>,
    /// Those that include one of these: only their directives matter.
    pub including: HashSet<SourceFile>,
}

/// The files that have a say in what is found out about a function's launches.
pub fn related_files<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> RelatedFiles {
    let mut found = RelatedFiles::default();
    let own: HashSet<SourceFile> = related_functions(db, function).iter().map(|f| f.file(db)).collect();
    for file in own {
        found.whole.extend(included_files(db, file));
    }
    for file in &found.whole {
        found.including.extend(including_files(db, *file));
    }
    // What they include in turn, down to the files in question.
    let more: Vec<SourceFile> = found
        .including
        .iter()
        .flat_map(|f| included_files(db, *f))
        .copied()
        .collect();
    found.including.extend(more);
    found.including.retain(|file| !found.whole.contains(file));
    found
}
