//! Whether what a type is called leads to a reference: by an alias, a macro, a member of a class, a trait of the library, `decltype`. One
//! rule for variables, parameters, fields, results, casts and template arguments. What isn't known to be a value may be a reference.

use std::collections::HashSet;

use crate::base::db::{Db, SourceFile};
use crate::base::preprocess::{MacroState, preprocessed};
use crate::base::words::words;
use crate::hir::included::included_files;
use crate::hir::items::{TypeItem, items};
use crate::hir::names::{unqualified, without_template_arguments};
use crate::hir::visible::{Names, visible_names};

/// Words that make a type what an expression or a function says, which may be a reference; and another way to write `&`.
const MAY_BE: [&str; 10] = [
    "bitand",
    "decltype",
    "__decltype",
    "typeof",
    "__typeof",
    "__typeof__",
    "invoke_result",
    "invoke_result_t",
    "result_of",
    "result_of_t",
];

/// Names of types that lead to a reference.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
struct Leading {
    /// Aliases and macros that may stand for one.
    named: HashSet<String>,
    /// These, and the classes that hold one, by whatever name.
    held: HashSet<String>,
}

/// Whether a type, as it is written in `file`, may be a reference.
pub(crate) fn may_be_a_reference(db: &dyn Db, file: SourceFile, ty: &str) -> bool {
    let leading = leading(db, file);
    leads(visible_names(db, file), &leading.named, ty)
}

/// Whether a type, as it is written in `file`, may be a reference or a class that holds one.
pub fn may_hold_a_reference(db: &dyn Db, file: SourceFile, ty: &str) -> bool {
    let leading = leading(db, file);
    leads(visible_names(db, file), &leading.held, ty)
}

/// Whether a macro or an alias of this name may stand for a reference.
pub(super) fn stands_for_a_reference(db: &dyn Db, file: SourceFile, name: &str) -> bool {
    leading(db, file).named.contains(name)
}

/// Whether a field, as its class declares it, may be a reference or hold one.
pub(crate) fn field_leads(db: &dyn Db, file: SourceFile, field: &(String, String)) -> bool {
    is_leading_field(visible_names(db, file), &leading(db, file).held, field)
}

fn is_leading_field(names: &Names, known: &HashSet<String>, (ty, declarator): &(String, String)) -> bool {
    // `int AMP v`: the parser may take a macro for the name.
    let end = declarator.find(['[', '=', '{', ':']).unwrap_or(declarator.len());
    let mut macros = words(&declarator[..end]).filter(|word| names.macros.contains_key(*word));
    declarator.contains('&')
        || macros.any(|name| known.contains(name))
        || !declarator.contains('*') && leads(names, known, ty)
}

fn leads(names: &Names, known: &HashSet<String>, ty: &str) -> bool {
    ty.contains('&')
        || words(ty).any(|word| known.contains(word) || is_trait(names, word))
        || follows_an_expression(ty)
        || is_unseen_member(names, ty)
}

/// A type is what an expression is: `decltype((x))`, but not `decltype(x)`, which is what `x` is declared as.
fn follows_an_expression(ty: &str) -> bool {
    let mut rest = ty;
    for word in words(ty).filter(|word| MAY_BE.contains(word)) {
        let behind = rest.find(word).map_or("", |at| &rest[at + word.len()..]);
        let operand = behind
            .trim_start()
            .strip_prefix('(')
            .and_then(|inner| inner.split_once(')'));
        let named = |(operand, _): (&str, &str)| {
            let operand = operand.trim();
            !operand.is_empty() && operand.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        if !(word.contains("decltype") || word.contains("typeof")) || !operand.is_some_and(named) {
            return true;
        }
        rest = behind;
    }
    false
}

/// A member of a class or of the library that is named for what it is: `T::reference`, `std::add_lvalue_reference_t<T>`.
fn is_trait(names: &Names, word: &str) -> bool {
    makes_a_reference(word) && !names.types.contains(word) && !names.aliases.contains_key(word)
}

/// Whether something that isn't in sight is a reference, by its name.
pub(super) fn makes_a_reference(word: &str) -> bool {
    word.contains("reference") && !word.starts_with("remove_") && word != "reference_wrapper"
}

/// A member of a template's parameter or of a class that is made from a template, which nothing in sight declares: `typename T::item`.
fn is_unseen_member(names: &Names, ty: &str) -> bool {
    let Some((scope, _)) = ty.rsplit_once("::") else {
        return false;
    };
    let dependent = scope.contains('<') || words(scope).any(|word| word == "typename");
    let library = ["std", "cuda", "thrust", "cub"];
    if !dependent
        || words(scope)
            .find(|word| *word != "typename")
            .is_some_and(|word| library.contains(&word))
    {
        return false;
    }
    // The brackets may be around it: `Box<T::item>`.
    let written = without_template_arguments(ty);
    let Some(last) = words(unqualified(&written)).next() else {
        return false;
    };
    let by_custom = last.ends_with("value_type") || last.ends_with("size_type") || last.ends_with("difference_type");
    written.contains("::") && !by_custom && !names.aliases.contains_key(last) && !names.types.contains(last)
}

/// Whether an `&` in a macro's text may be a type's, and is no operator for sure: `int&`, not `(SIZE & ~31)`.
fn has_a_types_ampersand(text: &str) -> bool {
    let operand = |rest: &str| rest.starts_with(['~', '!', '(', '-']) || rest.starts_with(|c: char| c.is_ascii_digit());
    let behind = text
        .match_indices('&')
        .map(|(at, _)| text[at..].trim_start_matches('&').trim_start());
    behind.into_iter().any(|rest| !operand(rest))
}

/// All names in sight of `file` that lead to a reference.
#[salsa::tracked(returns(ref))]
fn leading(db: &dyn Db, file: SourceFile) -> Leading {
    let names = visible_names(db, file);
    let definitions = preprocessed(db, file).states.iter().flat_map(|(name, states)| {
        states.iter().filter_map(move |(_, state)| match state {
            MacroState::Defined(item) => Some((name.as_str(), item.body.as_str())),
            _ => None,
        })
    });
    let macros: Vec<(&str, &str)> = definitions.collect();
    let mut found = Leading::default();
    close(names, &macros, &[], &mut found.named);
    let files = included_files(db, file).iter();
    let classes: Vec<&TypeItem> = files
        .flat_map(|file| &items(db, *file).types)
        .filter(|ty| !ty.is_enum)
        .collect();
    found.held.clone_from(&found.named);
    close(names, &macros, &classes, &mut found.held);
    found
}

/// Adds the names that lead to those that are `known`, until there are no more.
fn close(names: &Names, macros: &[(&str, &str)], classes: &[&TypeItem], known: &mut HashSet<String>) {
    loop {
        let before = known.len();
        for (name, text) in macros {
            let inside =
                || words(text).any(|word| MAY_BE.contains(&word) || known.contains(word) || is_trait(names, word));
            if !known.contains(*name) && (has_a_types_ampersand(text) || inside()) {
                known.insert((*name).to_owned());
            }
        }
        for (name, target) in &names.aliases {
            if !known.contains(name) && leads(names, known, target) {
                known.insert(name.clone());
            }
        }
        for class in classes {
            let field = |field: &(String, String)| is_leading_field(names, known, field);
            if !known.contains(&class.name) && (class.fields.iter().any(field) || leads(names, known, &class.bases)) {
                known.insert(class.name.clone());
            }
        }
        if known.len() == before {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ampersands_of_types() {
        assert!(has_a_types_ampersand("int&"));
        assert!(has_a_types_ampersand("&"));
        assert!(has_a_types_ampersand("const T &&"));
        assert!(!has_a_types_ampersand("((N + 31) & ~31)"));
        assert!(!has_a_types_ampersand("(N & 7)"));
    }

    #[test]
    fn types_of_expressions() {
        assert!(follows_an_expression("decltype((x))"));
        assert!(follows_an_expression("decltype(x.y)"));
        assert!(follows_an_expression("decltype(x) decltype(*p)"));
        assert!(follows_an_expression("__typeof__(f())"));
        assert!(follows_an_expression("int bitand"));
        assert!(!follows_an_expression("const decltype(x)"));
        assert!(!follows_an_expression("int"));
    }

    #[test]
    fn members_that_nothing_declares() {
        let names = Names::default();
        assert!(is_unseen_member(&names, "typename T::item"));
        assert!(is_unseen_member(&names, "Add<int>::type"));
        assert!(!is_unseen_member(&names, "typename T::value_type"));
        assert!(!is_unseen_member(&names, "std::make_unsigned<int>::type"));
        assert!(!is_unseen_member(&names, "ns::Item"));
        assert!(!is_unseen_member(&names, "Box<ns::Item>"));
    }
}
