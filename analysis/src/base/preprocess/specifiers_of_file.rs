//! Which macros of a file may stand for specifiers.

use std::collections::{BTreeMap, BTreeSet};

use super::MacroState;
use super::specifiers::{MARKS, SpecifierMacros};
use super::walk::preprocessed;
use crate::base::db::{Db, SourceFile};
use crate::base::include::including_files;
use crate::base::words::words;

/// Includers of a header that are asked for what it doesn't define itself.
const MAX_INCLUDERS: usize = 64;

/// The macros of a file that may stand for specifiers.
#[salsa::tracked]
pub(crate) fn specifier_macros(db: &dyn Db, file: SourceFile) -> SpecifierMacros {
    let mut found = own_specifier_macros(db, file).clone();
    for includer in including_files(db, file).iter().take(MAX_INCLUDERS) {
        let of = own_specifier_macros(db, *includer);
        for (name, states) in &of.states {
            let known = found.from_includers.entry(name.clone()).or_default();
            for (_, state) in states {
                if let MacroState::Defined(item) = state
                    && !known.contains(item)
                {
                    known.push(item.clone());
                }
            }
        }
    }
    let SpecifierMacros {
        states, from_includers, ..
    } = &mut found;
    from_includers.retain(|name, items| !items.is_empty() && !states.contains_key(name));
    found
}

/// The same without what the files that include this one say.
#[salsa::tracked]
fn own_specifier_macros(db: &dyn Db, file: SourceFile) -> SpecifierMacros {
    let known = &preprocessed(db, file).states;
    let bodies = |states: &'_ [(u32, MacroState)]| -> Vec<String> {
        let defined = states.iter().filter_map(|(_, state)| match state {
            MacroState::Defined(item) => Some(item.body.clone()),
            _ => None,
        });
        defined.collect()
    };
    // Macros by the names that their texts use.
    let mut users: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut pending: Vec<&str> = Vec::new();
    for (name, states) in known {
        for body in bodies(states) {
            if words(&body).any(|w| MARKS.contains(&w)) || body.contains("\"C\"") {
                pending.push(name);
            }
            for word in words(&body).filter(|w| known.contains_key(*w)) {
                users.entry(word.to_owned()).or_default().push(name);
            }
        }
    }
    let mut heads: BTreeSet<String> = BTreeSet::new();
    while let Some(name) = pending.pop() {
        if heads.insert(name.to_owned()) {
            pending.extend(users.get(name).into_iter().flatten());
        }
    }
    let mut needed: Vec<String> = heads.iter().cloned().collect();
    let mut found = SpecifierMacros {
        heads,
        ..SpecifierMacros::default()
    };
    while let Some(name) = needed.pop() {
        if let Some(states) = known.get(&name)
            && found.states.insert(name, states.clone()).is_none()
        {
            for body in bodies(states) {
                needed.extend(words(&body).map(str::to_owned));
            }
        }
    }
    found
}
