//! Names that a kernel has for itself, `__func__`: other ones where its body is a function.

use gridfuse_analysis::facts::callee::library_called;
use gridfuse_analysis::facts::effects::Found;
use gridfuse_analysis::facts::launch::statement_places;
use gridfuse_analysis::hir::{BinOp, ExprId, ExprKind, Name, StmtKind};

use crate::facts::child::Child;
use crate::facts::pure;

/// Whether a kernel uses a name of its own, `__func__`, only where a call has failed: `if (cudaGetLastError() != cudaSuccess)
/// printf("%s", __func__);`. That is another name where its body is a function.
pub fn is_told_of_errors_alone(child: &Child<'_>, own_name: &Found) -> bool {
    let (db, item, body) = (child.db, child.item, &child.body);
    let within = item.body_span(db).shift(child.start);
    if own_name.place.file != child.file || !within.contains(own_name.place.range) {
        return false;
    }
    let places = statement_places(db, item);
    let failed = |use_of_it: ExprId| {
        let mut inner = None;
        places.around(use_of_it).any(|stmt| {
            let taken = match &body.stmt(stmt).kind {
                StmtKind::If {
                    cond: Some(cond), then, ..
                } => inner == Some(*then) && says_that_it_failed(child, *cond),
                _ => false,
            };
            inner = Some(stmt);
            taken
        })
    };
    let ids = (0..body.exprs.len() as u32).map(ExprId);
    let names = |e: &ExprId| body.expr(*e).kind == ExprKind::Name(Name::Other(own_name.what.clone()));
    let mut uses = ids.filter(names).peekable();
    uses.peek().is_some() && uses.all(failed)
}

/// `error != cudaSuccess`, of an error that a call of the runtime has returned.
fn says_that_it_failed(child: &Child<'_>, cond: ExprId) -> bool {
    let body = &child.body;
    let ExprKind::Binary(BinOp::Ne, a, b) = body.expr(body.strip_parens(cond)).kind else {
        return false;
    };
    let success =
        |e: ExprId| body.expr(body.strip_parens(e)).kind == ExprKind::Name(Name::Other("cudaSuccess".to_owned()));
    let error = match (success(a), success(b)) {
        (false, true) => a,
        (true, false) => b,
        _ => return false,
    };
    let returned = |e: ExprId| match &body.expr(body.strip_parens(e)).kind {
        ExprKind::Call { name: Some(name), .. } => {
            name.trim_start_matches("::").starts_with("cuda") && library_called(child.db, child.item, name).is_some()
        }
        _ => false,
    };
    match body.expr(body.strip_parens(error)).kind {
        ExprKind::Name(Name::Local(binding)) => {
            let mut declared = body.stmts.iter().filter_map(|stmt| match &stmt.kind {
                StmtKind::Decl(all) => all.iter().find(|one| one.binding == binding),
                _ => None,
            });
            let init = declared.next().and_then(|one| one.init);
            init.is_some_and(returned) && pure::keeps_first_value(child.db, child.item, body, binding)
        }
        _ => returned(error),
    }
}
