//! Where a name is looked up: in a file, or in a function, whose own scope comes first.

use std::collections::{BTreeSet, HashSet};

use crate::base::db::{Db, SourceFile};
use crate::base::words::words;
use crate::hir::body;
use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, TypeItem, items};
use crate::hir::names::{unqualified, without_template_arguments};
use crate::hir::visible::visible_names;

/// Classes whose bases are followed.
const MAX_BASES: usize = 64;

/// Where a name stands.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'db> {
    /// The file, whose includes count as well.
    pub file: SourceFile,
    function: Option<FunctionItem<'db>>,
}

impl Scope<'_> {
    /// Names as they are written at namespace scope in `file`.
    pub fn of_file(file: SourceFile) -> Self {
        Scope { file, function: None }
    }
}

impl<'db> Scope<'db> {
    /// Names as they are written in `function`.
    pub fn of_function(db: &'db dyn Db, function: FunctionItem<'db>) -> Self {
        Scope {
            file: function.file(db),
            function: Some(function),
        }
    }

    /// Whether `name`, as written here, is something of the function's own: see [`hides`].
    pub fn hides(self, db: &'db dyn Db, name: &str) -> bool {
        self.function.is_some_and(|function| hides(db, function, name))
    }
}

/// Whether a name that is written in `function` is looked up no further than in its own scope: a template parameter of it or of a class
/// around it, a type, alias or enumerator that its body declares, or a member of its class that is no function. What the file has by
/// that name isn't meant then ([basic.lookup.unqual] in the standard).
pub fn hides<'db>(db: &'db dyn Db, function: FunctionItem<'db>, name: &str) -> bool {
    let Some(first) = first_part(name) else { return false };
    is_hidden_outside(db, function, first) || function.has_body(db) && body(db, function).declared.contains(first)
}

/// Whether a class that is written in `function` is, or may be, another one than the file has by that name: a class or an alias that the
/// body declares, a template parameter, an alias of its class. (A class in its class is one of the file's.)
pub(crate) fn hides_class<'db>(db: &'db dyn Db, function: FunctionItem<'db>, name: &str) -> bool {
    let Some(first) = first_part(name) else { return false };
    is_own_type(db, function, first)
        || is_hidden_outside(db, function, first) && {
            let members = class_members(db, function);
            members.unknown || visible_names(db, function.file(db)).aliases.contains_key(first)
        }
}

/// Whether a name is that of a type that the function's body declares, or of a template parameter.
pub(crate) fn is_own_type<'db>(db: &'db dyn Db, function: FunctionItem<'db>, name: &str) -> bool {
    function.signature(db).scope_names.iter().any(|own| own == name)
        || function.has_body(db) && body(db, function).own_types.contains_key(name)
}

/// What [`hides`] says, without what the function's body declares.
pub(crate) fn is_hidden_outside<'db>(db: &'db dyn Db, function: FunctionItem<'db>, name: &str) -> bool {
    let Some(first) = first_part(name) else { return false };
    if function.signature(db).scope_names.iter().any(|own| own == first) {
        return true;
    }
    // Nearly all functions are no members.
    function.name(db).contains("::") && {
        let members = class_members(db, function);
        members.unknown && !members.classes.contains(first) || members.names.contains(first)
    }
}

/// The part of a qualified name that is looked up first; `None` when that happens in the global namespace.
fn first_part(name: &str) -> Option<&str> {
    let first = name.split("::").next().unwrap_or(name);
    let first = first.split('<').next().unwrap_or(first).trim();
    (!first.is_empty()).then_some(first)
}

/// What a function sees as a member of a class.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
struct ClassMembers {
    /// The members that are no functions.
    names: BTreeSet<String>,
    /// The classes themselves.
    classes: BTreeSet<String>,
    /// A base class isn't in sight: anything may be a member of it.
    unknown: bool,
}

/// The members of the classes that a function is a member of, and of their bases. Several classes may have a name: any may be meant.
#[salsa::tracked]
fn class_members<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> ClassMembers {
    let mut found = ClassMembers::default();
    let name = without_template_arguments(function.name(db));
    let Some((scopes, _)) = name.rsplit_once("::") else {
        return found;
    };
    let file = function.file(db);
    let classes = |name: &str| -> Vec<&TypeItem> {
        let types = included_files(db, file).iter().flat_map(|f| &items(db, *f).types);
        types.filter(|ty| !ty.is_enum && ty.name == name).collect()
    };
    let mut pending: Vec<String> = scopes.split("::").map(str::to_owned).collect();
    // Namespaces stand there, too: only of bases it is known that they are classes.
    let own = pending.len();
    let mut seen: HashSet<String> = HashSet::new();
    let mut number = 0;
    while let Some(class) = pending.get(number).cloned() {
        number += 1;
        if !seen.insert(class.clone()) {
            continue;
        }
        let known = classes(&class);
        found.unknown |= known.is_empty() && number > own || seen.len() > MAX_BASES;
        if found.unknown {
            break;
        }
        for ty in known {
            found.classes.insert(class.clone());
            found.names.extend(ty.members.iter().cloned());
            pending.extend(bases(&ty.bases));
        }
    }
    found
}

/// The names of the classes in a list of bases as it is written: `: public Base<int>, detail::Other`.
fn bases(written: &str) -> Vec<String> {
    let mut depth = 0u32;
    let outside = |c: &char| {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    };
    let plain: String = written.trim_start_matches([':', ' ']).chars().filter(outside).collect();
    let access = ["public", "protected", "private", "virtual", "typename"];
    plain
        .split(',')
        .filter(|base| !base.trim().is_empty())
        .map(|base| {
            let last = words(unqualified(base)).filter(|word| !access.contains(word)).last();
            last.unwrap_or_default().to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bases_as_written() {
        assert_eq!(bases(""), Vec::<String>::new());
        assert_eq!(bases(": public Base<int, 3>, virtual detail::Other"), ["Base", "Other"]);
    }

    #[test]
    fn first_parts() {
        assert_eq!(first_part("K"), Some("K"));
        assert_eq!(first_part("T::K"), Some("T"));
        assert_eq!(first_part("Box<T>::K"), Some("Box"));
        assert_eq!(first_part("::K"), None);
    }
}
