//! Operators of the workspace whose results differ between threads.

use std::collections::HashSet;

use super::memory::Places;
use crate::base::db::{Db, SourceFile};
use crate::base::words::words;
use crate::facts::effects::looks_at_the_thread;
use crate::facts::hidden::{hidden, operator_use, runs_unseen, symbol_of};
use crate::facts::plain_operands::is_plain;
use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, TypeItem, items};
use crate::hir::names::unqualified;
use crate::hir::resolve::{Meaning, meaning_in};
use crate::hir::walk::all_in_expr;
use crate::hir::{ExprId, ExprKind, Name, body};

/// The operators of the workspace whose result may differ between threads though their operands don't: `+`, `==`; empty for one of which
/// it isn't known which it is.
#[salsa::tracked(returns(ref))]
fn differing_operators(db: &dyn Db, file: SourceFile) -> HashSet<String> {
    let functions = included_files(db, file).iter().flat_map(|f| &items(db, *f).functions);
    let named = functions.filter_map(|f| {
        let symbol = symbol_of(db, *f)?;
        (f.has_body(db) && *looks_at_the_thread(db, *f)).then_some(symbol)
    });
    named.collect()
}

/// Whether an operator between such operands may be a user's, whose result differs between threads though the operands don't.
pub(super) fn result_may_differ(places: Places<'_>, symbol: &str, operands: &[ExprId]) -> bool {
    let differing = differing_operators(places.db, places.function.file(places.db));
    if !differing.contains(symbol) && !differing.contains("") {
        return false;
    }
    // Of two numbers, or pointers, it is C++'s own.
    !operands.iter().all(|e| is_plain(places, *e))
}

/// The classes of the workspace whose objects may differ between threads though what they are made of doesn't: a constructor, a default
/// member initialiser or a conversion looks at the number of the thread.
#[salsa::tracked(returns(ref))]
fn differing_classes(db: &dyn Db, file: SourceFile) -> HashSet<String> {
    let mut found = HashSet::new();
    for file in included_files(db, file) {
        let items = items(db, *file);
        for f in items.functions.iter().filter(|f| f.has_body(db)) {
            let Some((class, name)) = f.name(db).rsplit_once("::") else {
                continue;
            };
            let class = unqualified(class);
            let made = name == class || name.starts_with("operator ");
            if made && !found.contains(class) && *looks_at_the_thread(db, *f) {
                found.insert(class.to_owned());
            }
        }
        let implicit = |ty: &&TypeItem| words(&ty.implicit).any(|word| matches!(word, "threadIdx" | "blockIdx"));
        found.extend(items.types.iter().filter(implicit).map(|ty| ty.name.clone()));
    }
    found
}

/// Whether an object of this type may differ between threads though what it is made of doesn't.
pub(super) fn made_of_the_thread(places: Places<'_>, ty: &str) -> bool {
    let differing = differing_classes(places.db, places.function.file(places.db));
    !differing.is_empty() && words(&places.alias(ty)).any(|word| differing.contains(word))
}

/// Whether an expression may have another value for each thread, or at each place, though its operands are the same: a user's operator in it
/// looks at the number of the thread or does more than compute, or a class's object in it runs something when it is made, copied or
/// converted.
pub fn runs_code_of_no_name(db: &dyn Db, function: FunctionItem<'_>, e: ExprId) -> bool {
    let body = &*body(db, function);
    let places = Places { db, function, body };
    let of_type = |ty: &str| runs_unseen(db, function, &places.alias(ty)) || made_of_the_thread(places, ty);
    let of_object = |e: ExprId| match &body.expr(e).kind {
        ExprKind::Name(Name::Other(name)) => match meaning_in(db, function, name) {
            Meaning::Global(global) => !global.pointer && of_type(&global.base),
            _ => false,
        },
        _ => {
            let shape = places.shape(e).filter(|shape| shape.pointers == 0 && shape.dims == 0);
            shape.is_some_and(|shape| of_type(&shape.base))
        }
    };
    let hidden = hidden(db, function);
    all_in_expr(body, e).into_iter().any(|part| {
        let span = body.expr(part).span;
        hidden.iter().any(|h| !h.anywhere && h.span == span)
            || operator_use(body, part).is_some_and(|(symbol, operands)| result_may_differ(places, symbol, &operands))
            || of_object(part)
    })
}

/// Whether some operator of the workspace looks at the number of the thread.
pub(super) fn some_result_may_differ(db: &dyn Db, file: SourceFile) -> bool {
    !differing_operators(db, file).is_empty()
}
