//! Operators of the workspace whose results differ between threads.

use std::collections::HashSet;

use super::memory::Places;
use crate::base::db::{Db, SourceFile};
use crate::facts::effects::looks_at_the_thread;
use crate::facts::hidden::{is_plain, symbol_of};
use crate::hir::ExprId;
use crate::hir::included::included_files;
use crate::hir::items::items;

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

/// Whether some operator of the workspace looks at the number of the thread.
pub(super) fn some_result_may_differ(db: &dyn Db, file: SourceFile) -> bool {
    !differing_operators(db, file).is_empty()
}
