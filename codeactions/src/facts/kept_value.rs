//! The value of a local variable that never gets another one.

use gridfuse_analysis::facts::launch::{Child, constant_of_variable};
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::{Meaning, functions_named, meaning_in};
use gridfuse_analysis::hir::{BindingId, ExprId, StmtKind, Storage};

use crate::edit::lex;
use crate::facts::ctype;
use crate::facts::pure;
use crate::facts::site::Site;

/// What a variable of the function begins with, and keeps.
pub fn kept_value(site: &Site<'_>, binding: BindingId) -> Option<ExprId> {
    let body = &site.body;
    let variable = body.binding(binding);
    let plain = variable.storage == Storage::Local && variable.ty.is_value() && variable.ty.array.is_empty();
    if !plain || !pure::assignments(site.db, site.parent, body, binding).is_empty() {
        return None;
    }
    let declarations = body.stmts.iter().filter_map(|stmt| match &stmt.kind {
        StmtKind::Decl(decls) => decls.iter().find(|decl| decl.binding == binding),
        _ => None,
    });
    declarations.into_iter().next()?.init
}

/// The number that a constant of the function is, as `constexpr int BLOCK = 128;`, where nothing else has that name and the number says as
/// much as a template argument of the launch.
pub fn local_constant(site: &Site<'_>, name: &str) -> Option<i128> {
    // What takes a number of any type, or of several, sees another one of its own.
    if !is_int(site, name) && !has_plain_parameters(site) {
        return None;
    }
    if !matches!(meaning_in(site.db, site.parent, name), Meaning::Unknown) {
        return None;
    }
    let mut named = (0u32..)
        .zip(&site.body.bindings)
        .filter(|(_, binding)| binding.name == name);
    let (index, _) = named.next()?;
    if named.next().is_some() {
        return None;
    }
    let initial = kept_value(site, BindingId(index))?;
    constant_of_variable(site.db, site.parent, &site.body, BindingId(index), initial)
}

/// A number by itself has the type of the constant.
fn is_int(site: &Site<'_>, name: &str) -> bool {
    let mut named = site.body.bindings.iter().filter(|binding| binding.name == name);
    named.all(|binding| ctype::normalize(&binding.ty.base) == "int")
}

/// The launched kernel is one template whose parameters have types of their own.
fn has_plain_parameters(site: &Site<'_>) -> bool {
    let Child::Kernel(child) = site.facts.child else {
        return false;
    };
    let text = child.text(site.db);
    let head = text.split_once("__global__").map_or(&*text, |(head, _)| head);
    let any = |word: &str| matches!(word, "auto" | "decltype");
    let name = unqualified(child.name(site.db));
    let one = functions_named(site.db, child.file(site.db), name).len() == 1;
    one && !lex::code_words(head).into_iter().any(any)
}

/// Such a constant where it has no name: its number, with the name before it.
pub fn by_value(name: &str, value: i128) -> String {
    format!("/*{name}=*/{value}")
}

/// The same taken back, in a list of template arguments, for names that are those of constants of the function. Somebody may have written
/// others as comments.
pub fn by_name(list: &str, is_constant: impl Fn(&str) -> bool) -> String {
    let mut found = String::new();
    let mut rest = list;
    while let Some((before, after)) = rest.split_once("/*") {
        found.push_str(before);
        match after.split_once("=*/").filter(|(name, _)| is_constant(name)) {
            Some((name, number)) => {
                found.push_str(name);
                rest = number.trim_start_matches(|c: char| c == '-' || c.is_ascii_digit());
            }
            None => {
                found.push_str("/*");
                rest = after;
            }
        }
    }
    found + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_by_value_and_by_name() {
        let list = format!("<T, {}, {}, 3>", by_value("BS", 128), by_value("low", -1));
        assert_eq!(list, "<T, /*BS=*/128, /*low=*/-1, 3>");
        assert_eq!(by_name(&list, |_| true), "<T, BS, low, 3>");
        for written in ["<T, /* threads */ 3>", "<T, /*threads=*/3>"] {
            assert_eq!(by_name(written, |name| name != "threads"), written);
        }
    }
}
