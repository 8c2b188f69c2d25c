//! Objects that a function leaves as they are though it could reach them: that a `const` member function is called for, or that it takes
//! by reference to `const`. Where one of them casts that away, or its class has a `mutable` member, it may change them all the same.

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::functions_in;
use gridfuse_analysis::hir::scope::hides;
use gridfuse_analysis::hir::visible::visible_names;
use gridfuse_analysis::hir::{Body, ExprId, ExprKind, Name, body};

use crate::edit::lex;
use crate::facts::calls;

/// Calls that are followed.
const MAX_CALLS: usize = 4;

/// Whether a call of the member function `method` for `object` leaves that as it is.
pub fn object_of_method(db: &dyn Db, function: FunctionItem<'_>, own: &Body, object: ExprId, method: &str) -> bool {
    let ExprKind::Name(Name::Local(binding)) = own.expr(own.strip_parens(object)).kind else {
        return false;
    };
    let ty = &own.binding(binding).ty;
    let class = ty
        .base
        .trim_start_matches("struct ")
        .split('<')
        .next()
        .unwrap_or("")
        .trim();
    let file = function.file(db);
    let known = visible_names(db, file).types.contains(unqualified(class)) && !hides(db, function, class);
    if !known || ty.pointers > 0 || !ty.array.is_empty() || ty.complex {
        return false;
    }
    let mut all = functions_in(db, function, &format!("{class}::{method}"));
    // A member function that is defined apart is declared in its class.
    let declared = all.iter().filter(|f| !f.has_body(db)).count();
    all.retain(|f| f.has_body(db));
    all.len() >= declared.max(1)
        && all.iter().all(|f| is_const(db, *f) && !casts(db, *f, MAX_CALLS))
        && !has_mutable(db, file)
}

/// Whether a call leaves the variable `argument` as it is that it gets at a position, by value or by reference to `const`.
pub fn argument(
    db: &dyn Db,
    function: FunctionItem<'_>,
    own: &Body,
    call: ExprId,
    position: usize,
    argument: ExprId,
) -> bool {
    let ExprKind::Call {
        name: Some(name),
        callee,
        template_args: None,
        ..
    } = &own.expr(call).kind
    else {
        return false;
    };
    let (ExprKind::Name(Name::Other(_)), ExprKind::Name(Name::Local(binding))) = (
        &own.expr(own.strip_parens(*callee)).kind,
        &own.expr(own.strip_parens(argument)).kind,
    ) else {
        return false;
    };
    let given = &own.binding(*binding).ty;
    let all = functions_in(db, function, name);
    let keeps = |f: &FunctionItem<'_>| {
        let body = body(db, *f);
        let Some(parameter) = body.params.get(position).map(|p| &body.binding(*p).ty) else {
            return false;
        };
        let constant = parameter.reference && parameter.const_base && parameter.pointers == 0;
        // An object of another class may be made of it, which keeps hold of it.
        let same = unqualified(&parameter.base) == unqualified(&given.base)
            || f.signature(db).template_types.contains(&parameter.base);
        let plain = parameter.array.is_empty() && !parameter.complex;
        plain && constant && same && f.has_body(db) && !casts(db, *f, MAX_CALLS)
    };
    !all.is_empty() && all.iter().all(keeps) && !has_mutable(db, function.file(db))
}

/// A member function says `const` behind its parameters.
fn is_const(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    let text = function.text(db);
    let (from, to) = (function.signature(db).params_span.end, function.body_span(db).start);
    let behind = match to > from {
        true => Span::new(from, to).text(&text),
        false => text.get(from as usize..).unwrap_or(""),
    };
    let behind = behind.split("->").next().unwrap_or("");
    function.signature(db).member && lex::code_words(behind).contains(&"const")
}

/// A function may cast `const` away, or hands on what it can reach to one that may.
fn casts(db: &dyn Db, function: FunctionItem<'_>, calls: usize) -> bool {
    if !function.has_body(db) {
        return true;
    }
    let body = body(db, function);
    let text = function.text(db);
    let inside = function.body_span(db).text(&text);
    let words = lex::code_words(inside);
    let hands_itself_on = words.iter().enumerate().any(|(at, word)| {
        let behind: String = words.iter().skip(at + 1).take(2).copied().collect();
        *word == "this" && !behind.starts_with("->")
    });
    if hands_itself_on || !body.problems.is_empty() || words.contains(&"const_cast") || words.contains(&"asm") {
        return true;
    }
    body.exprs.iter().any(|expr| match &expr.kind {
        ExprKind::Cast { ty, .. } => ty.contains(['*', '&']),
        ExprKind::Lambda { .. } | ExprKind::Unknown { .. } | ExprKind::New(_) | ExprKind::Launch(_) => true,
        ExprKind::Call { name, callee, .. } => {
            let member = match &body.expr(body.strip_parens(*callee)).kind {
                ExprKind::Field { field, .. } => Some(field.as_str()),
                ExprKind::Name(Name::Local(_)) => Some("operator()"),
                _ => None,
            };
            let Some(called) = member.or(name.as_deref()) else {
                return true;
            };
            if member.is_none() && (calls::keeps_arguments(db, function, called) || calls::is_plain_type(called)) {
                return false;
            }
            let all = functions_in(db, function, called);
            calls == 0 || all.is_empty() || all.iter().any(|f| casts(db, *f, calls - 1))
        }
        _ => false,
    })
}

/// Some class in sight may have a member that a `const` object can change.
fn has_mutable(db: &dyn Db, file: SourceFile) -> bool {
    let files = included_files(db, file);
    files.iter().any(|file| {
        let text = file.text(db);
        text.contains("mutable") && lex::code_words(&text).contains(&"mutable")
    })
}
