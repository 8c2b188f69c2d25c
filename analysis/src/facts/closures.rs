//! Lambdas that are handed to functions: a call of one runs code that stands in the function that makes it.
//!
//! What such code does is found where that function is looked at; which of it is the lambda's, its place tells. A lambda that may be
//! several functions (`auto` parameters), keeps something from call to call, is part of a macro, or has more to it than the variables that
//! it captures is no [`Closure`]: nothing is known of it.

use crate::base::db::Db;
use crate::base::span::Span;
use crate::base::words::words;
use crate::facts::functors::launches_somewhere;
use crate::facts::hidden::some_class_says_so;
use crate::facts::uniformity::memory::{Class, Places};
use crate::hir::items::FunctionItem;
use crate::hir::resolve::functions_in;
use crate::hir::visible::{Names, visible_names};
use crate::hir::{Body, ExprId, ExprKind, Name, Storage};

/// A lambda, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Closure<'db> {
    /// The function in which it stands.
    pub function: FunctionItem<'db>,
    /// All of it, in that function.
    pub span: Span,
}

impl Closure<'_> {
    /// Whether something in its function is, or begins, in the lambda.
    pub fn has(&self, span: Span) -> bool {
        self.span.start <= span.start && span.start < self.span.end
    }

    /// Whether a piece of its function and the lambda have something in common.
    pub fn meets(&self, span: Span) -> bool {
        self.span.start < span.end && span.start < self.span.end
    }
}

/// The lambda that an expression is, where a call of it is one piece of code for sure.
pub(super) fn closure<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    lambda: ExprId,
) -> Option<Closure<'db>> {
    let expr = body.expr(lambda);
    let ExprKind::Lambda {
        mentions,
        body: Some(_),
        ..
    } = &expr.kind
    else {
        return None;
    };
    let text = function.text(db);
    let code = expr.span.text(&text);
    let signature = function.signature(db);
    // What it captures of an object is named in other ways.
    if expr.from_macro || signature.member || !captures_variables(code) {
        return None;
    }
    let keeps = |word: &str| matches!(word, "mutable" | "this" | "const_cast" | "static");
    if words(code).any(|word| keeps(word) || is_macro_of_code(visible_names(db, function.file(db)), word)) {
        return None;
    }
    let several = body.bindings.iter().any(|variable| {
        let inside = expr.span.contains(variable.decl_span);
        inside && variable.storage == Storage::Param && words(&variable.ty.text).any(|word| word == "auto")
    });
    let within = |span: Span| expr.span.contains(span);
    let launches = body
        .exprs
        .iter()
        .any(|inner| matches!(inner.kind, ExprKind::Launch(_)) && within(inner.span));
    let calls_launcher = || {
        words(code).any(|word| {
            functions_in(db, function, word)
                .into_iter()
                .any(|f| launches_somewhere(db, f))
        })
    };
    if several || launches || calls_launcher() {
        return None;
    }
    // What is no variable of the thread isn't captured: each grid that calls the lambda has its own.
    let of_thread = |storage: Storage| matches!(storage, Storage::Param | Storage::Local);
    if !mentions
        .iter()
        .all(|variable| of_thread(body.binding(*variable).storage))
    {
        return None;
    }
    // Whoever hands it on copies what it captures.
    let places = Places { db, function, body };
    let templates = &signature.template_types;
    let copied = mentions.iter().map(|variable| &body.binding(*variable).ty);
    let mut objects = copied.filter(|ty| ty.pointers == 0);
    let opaque = objects.any(|ty| match ty.base == "auto" || templates.contains(&ty.base) {
        true => some_class_says_so(db, function),
        false => ty.complex || places.is_opaque(&ty.base, templates),
    });
    (!opaque).then_some(Closure {
        function,
        span: expr.span,
    })
}

/// Whether a call of a lambda that a local variable holds copies the argument with this number, a number or a pointer: nothing gets to the
/// variable that is passed.
pub(crate) fn copies_argument(
    db: &dyn Db,
    function: FunctionItem<'_>,
    body: &Body,
    target: ExprId,
    index: usize,
) -> bool {
    let ExprKind::Name(Name::Local(holder)) = body.expr(body.strip_parens(target)).kind else {
        return false;
    };
    // No other lambda can be assigned to it.
    let held = &body.binding(holder).ty;
    let Some(init) = body.initialiser(holder).filter(|_| held.base == "auto") else {
        return false;
    };
    let ExprKind::Lambda { params, .. } = &body.expr(body.strip_parens(init)).kind else {
        return false;
    };
    let places = Places { db, function, body };
    params.get(index).is_some_and(|param| {
        let ty = &body.binding(*param).ty;
        let plain = ty.pointers > 0 || places.class_kind(&ty.base, &[]) == Class::Plain;
        !ty.reference && !ty.complex && ty.base != "auto" && plain
    })
}

/// Whether a lambda captures variables alone, each as it is or by a reference, and is no template: `[=]`, `[&, n]`, `[a, &b](int i)`.
pub fn captures_variables(code: &str) -> bool {
    let Some((captures, behind)) = code
        .trim_start()
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    else {
        return false;
    };
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
    let one = |capture: &str| {
        let capture = capture.trim();
        matches!(capture, "=" | "&") || is_name(capture.strip_prefix('&').unwrap_or(capture).trim())
    };
    (captures.trim().is_empty() || captures.split(',').all(one)) && !behind.trim_start().starts_with('<')
}

/// Whether a word is, or may be, a macro that stands for more than a number.
fn is_macro_of_code(names: &Names, word: &str) -> bool {
    let more = |body: &str| words(body).next().is_some();
    !names.constant_macros.contains(word)
        && (names.ambiguous_macros.contains(word) || names.macros.get(word).is_some_and(|item| more(&item.body)))
}

#[cfg(test)]
mod tests {
    use super::captures_variables;

    #[test]
    fn captures() {
        for code in [
            "[](int i) {}",
            "[=] { }",
            "[&, n](int i) {}",
            "[a, &b, c](int i) {}",
            "[=, &x] __device__ (int i) {}",
        ] {
            assert!(captures_variables(code), "{code}");
        }
        for code in [
            "[x = f()](int i) {}",
            "[*this] {}",
            "[...p] {}",
            "[&r = q] {}",
            "[]<class T>(T t) {}",
            "[p...] {}",
            "[v = a[0]] {}",
        ] {
            assert!(!captures_variables(code), "{code}");
        }
    }
}
