//! Takes `reuse-threads` back: the kernel's body has moved to a function, and the kernel calls it and runs what its threads have launched
//! there.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::resolve::{functions_named, other_mentions};
use gridfuse_analysis::hir::{ExprKind, StmtKind, body};

use super::text::source;
use crate::facts::site::function_around;

/// The type of what launches are left to.
pub const TYPE: &str = "ThreadReuse";

/// The same where a grid may follow.
pub const IN_STREAM_TYPE: &str = "ThreadReuseInStream";

/// What stands for the granularity at which launches are collected that a grid may follow.
pub const IN_STREAM: &str = "gridfuse::ThreadReuseInStream";

/// The types of the runtime that say which threads run what, and what `reuse-threads` calls that.
const ASSIGNMENTS: [(&str, &str); 3] = [
    ("gridfuse::ByWarp", "warp"),
    ("gridfuse::ByBlock", "block"),
    ("gridfuse::BySize", "size"),
];

/// What stands for the granularity at which launches are collected that the parent's threads run, by the first template argument.
pub fn granularity(assignment: &str) -> String {
    format!("gridfuse::{TYPE}<{assignment}>")
}

/// Which threads run what, where such a granularity says so.
pub fn assignment(granularity: &str) -> Option<&'static str> {
    if granularity == IN_STREAM {
        return Some("grid");
    }
    let own = granularity.strip_prefix("gridfuse::ThreadReuse<")?.strip_suffix('>')?;
    ASSIGNMENTS.iter().find(|(ty, _)| *ty == own).map(|(_, name)| *name)
}

/// Whether a code declares what launches are left to.
fn leaves_launches(code: &str) -> bool {
    code.contains(IN_STREAM) || code.contains("gridfuse::ThreadReuse<")
}

/// The kernel that runs what its threads have launched, and the function that its body has moved to, of which `function` is one.
pub fn kernel_with_worker<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
) -> Option<(FunctionItem<'db>, FunctionItem<'db>)> {
    let code = source(db, function);
    if function.signature(db).kernel {
        return worker_of(db, function)
            .filter(|_| leaves_launches(&code))
            .map(|worker| (function, worker));
    }
    // A template gets what it leaves its launches to by the name of a parameter.
    if !leaves_launches(&code) && !code.contains(".launch(") {
        return None;
    }
    let mentions = other_mentions(db, function).into_iter();
    let mut kernels = mentions.filter_map(|mention| function_around(db, mention));
    let kernel = kernels.find(|f| f.signature(db).kernel && leaves_launches(&source(db, *f)))?;
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
