//! Takes `reuse-threads` back, where a grid may follow the parent: the kernel's body has moved to a function, and the kernel calls it and runs
//! what its threads have launched there.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::resolve::{functions_named, other_mentions};
use gridfuse_analysis::hir::{ExprKind, StmtKind, body};

use super::text::source;
use crate::facts::site::function_around;

/// The type of what launches are left to.
pub const TYPE: &str = "ThreadReuseInStream";

/// What stands for the granularity at which such launches are collected.
pub const IN_STREAM: &str = "gridfuse::ThreadReuseInStream";

/// Whether a function's launches run in the threads of its kernel, and no grid may follow that.
pub fn stays<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    let own = |f: FunctionItem<'db>| source(db, f).contains("gridfuse::ThreadReuse<");
    if own(function) {
        return true;
    }
    // A template gets what it leaves its launches to by the name of a parameter.
    let mentions = other_mentions(db, function).into_iter();
    let mut around = mentions.filter_map(|mention| function_around(db, mention));
    source(db, function).contains(".launch(") && around.any(|f| f.signature(db).kernel && own(f))
}

/// The kernel that runs what its threads have launched, and the function that its body has moved to, of which `function` is one.
pub fn kernel_with_worker<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
) -> Option<(FunctionItem<'db>, FunctionItem<'db>)> {
    if !source(db, function).contains(IN_STREAM) {
        return None;
    }
    if function.signature(db).kernel {
        return Some((function, worker_of(db, function)?));
    }
    let mentions = other_mentions(db, function).into_iter();
    let mut kernels = mentions.filter_map(|mention| function_around(db, mention));
    let kernel = kernels.find(|f| f.signature(db).kernel && source(db, *f).contains(IN_STREAM))?;
    (worker_of(db, kernel)? == function).then_some((kernel, function))
}

/// The first function of the kernel's file that it calls: what stands behind its declarations.
fn worker_of<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> Option<FunctionItem<'db>> {
    let body = body(db, kernel);
    let StmtKind::Block(statements) = &body.stmt(body.root?).kind else {
        return None;
    };
    statements.iter().find_map(|statement| {
        let StmtKind::Expr(call) = body.stmt(*statement).kind else {
            return None;
        };
        let ExprKind::Call { name: Some(name), .. } = &body.expr(call).kind else {
            return None;
        };
        let mut found = functions_named(db, kernel.file(db), name).into_iter();
        found.find(|f| f.has_body(db) && f.signature(db).device && f.file(db) == kernel.file(db))
    })
}
