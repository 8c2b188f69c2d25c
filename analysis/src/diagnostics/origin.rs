//! Where the value of an expression comes from: the places that give variables in it their values, as causes of a diagnostic.

use std::collections::HashSet;

use crate::diagnostics::diagnostic::Cause;
use crate::facts::launch::single_definition;
use crate::hir::flow::operands;
use crate::hir::items::FunctionItem;
use crate::hir::{BindingId, Body, ExprId, ExprKind, Name};

/// More places than this are no help.
const MAX_PLACES: usize = 4;

/// The variables in an expression that never change after their declaration, and those in their initialisers, each with the
/// initialiser's place, as far as they stand outside of the expression.
pub(super) fn origins<'db>(function: FunctionItem<'db>, body: &Body, expr: ExprId) -> Vec<Cause<'db>> {
    let mut found: Vec<Cause<'db>> = Vec::new();
    let mut seen: HashSet<BindingId> = HashSet::new();
    let mut todo = vec![expr];
    while let Some(next) = todo.pop() {
        let ExprKind::Name(Name::Local(binding)) = body.expr(next).kind else {
            // What is loaded is the value; the address it's loaded from says nothing about it.
            if !is_load(body, next) {
                todo.extend(operands(&body.expr(next).kind).into_iter().rev());
            }
            continue;
        };
        let Some(init) = seen.insert(binding).then(|| single_definition(body, binding)).flatten() else {
            continue;
        };
        let known = found.iter().any(|cause| cause.1 == body.expr(init).span);
        // Out of a macro comes one place for all of it.
        if !known && !body.expr(init).from_macro && found.len() < MAX_PLACES {
            let verb = if is_load(body, init) { "loaded" } else { "set" };
            let text = format!("`{}` is {verb} here", body.binding(binding).name);
            found.push((function, body.expr(init).span, text));
        }
        todo.push(init);
    }
    found
}

fn is_load(body: &Body, expr: ExprId) -> bool {
    matches!(
        body.expr(body.strip_parens(expr)).kind,
        ExprKind::Index { .. } | ExprKind::Deref(_) | ExprKind::Field { arrow: true, .. }
    )
}
