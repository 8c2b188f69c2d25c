//! Whether the host waits for a kernel as soon as it has launched it.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::launch::LaunchId;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::launch_sites_of;
use gridfuse_analysis::hir::{Body, ExprKind, StmtId, StmtKind, body};

/// Whether the host launches `kernel`, and behind each such launch waits for the stream or the device before it does anything but
/// look for errors. It goes by the order of the statements and the names of the functions, which is good enough for a guess at what
/// is faster and for nothing else.
pub fn host_waits_anyway<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> bool {
    let by_host = |id: &LaunchId<'db>| {
        let signature = id.function.signature(db);
        !signature.kernel && !signature.device
    };
    let mut launches = launch_sites_of(db, kernel).into_iter().filter(by_host).peekable();
    launches.peek().is_some() && launches.all(|id| waits_behind(db, id))
}

fn waits_behind<'db>(db: &'db dyn Db, id: LaunchId<'db>) -> bool {
    let body = body(db, id.function);
    let (Some(launch), Some(root)) = (body.launches.get(id.index as usize), body.root) else {
        return false;
    };
    let launch = body.expr(*launch).span;
    Search { body: &body, launch }.within(root) == Found::Waits
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// The launch isn't there.
    Nothing,
    /// The launch is there, and what comes behind it is still to be looked at.
    Launch,
    /// The host waits behind it.
    Waits,
    /// It does something else first.
    GoesOn,
}

struct Search<'a> {
    body: &'a Body,
    launch: Span,
}

impl Search<'_> {
    fn within(&self, stmt: StmtId) -> Found {
        if !self.body.stmt(stmt).span.contains(self.launch) {
            return Found::Nothing;
        }
        match &self.body.stmt(stmt).kind {
            StmtKind::Block(stmts) | StmtKind::Case { stmts, .. } => {
                let mut found = Found::Nothing;
                for stmt in stmts {
                    found = match found {
                        Found::Nothing => self.within(*stmt),
                        Found::Launch => self.behind(*stmt),
                        Found::Waits | Found::GoesOn => break,
                    };
                }
                found
            }
            StmtKind::If { then, otherwise, .. } => match self.within(*then) {
                Found::Nothing => otherwise.map_or(Found::GoesOn, |otherwise| self.within(otherwise)),
                found => found,
            },
            StmtKind::Expr(_) => Found::Launch,
            // In a loop, the next launch comes first; a wait at the end of its body has been found before this.
            StmtKind::While { body, .. } | StmtKind::For { body, .. } | StmtKind::DoWhile { body, .. } => {
                match self.within(*body) {
                    Found::Waits => Found::Waits,
                    _ => Found::GoesOn,
                }
            }
            _ => Found::GoesOn,
        }
    }

    /// What a statement behind the launch does.
    fn behind(&self, stmt: StmtId) -> Found {
        let stmt = self.body.stmt(stmt);
        match &stmt.kind {
            StmtKind::Empty => return Found::Launch,
            StmtKind::Block(_) | StmtKind::Expr(_) | StmtKind::Decl(_) | StmtKind::If { .. } | StmtKind::Return(_) => {}
            _ => return Found::GoesOn,
        }
        let mut found = Found::Launch;
        for expr in self.body.exprs.iter().filter(|e| stmt.span.contains(e.span)) {
            match &expr.kind {
                ExprKind::Launch(_) => return Found::GoesOn,
                ExprKind::Call { name, .. } => {
                    let name = name.as_deref().map_or("", unqualified);
                    if WAITS.contains(&name) {
                        found = Found::Waits;
                    } else if !CHECKS.contains(&name) {
                        return Found::GoesOn;
                    }
                }
                _ => {}
            }
        }
        if matches!(stmt.kind, StmtKind::Return(_)) && found == Found::Launch {
            return Found::GoesOn;
        }
        found
    }
}

const WAITS: &[&str] = &[
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaMemcpy",
    "cudaMemcpyFromSymbol",
];

/// What code that looks for errors calls.
const CHECKS: &[&str] = &[
    "cudaGetLastError",
    "cudaPeekAtLastError",
    "cudaGetErrorString",
    "cudaGetErrorName",
    "printf",
    "fprintf",
    "exit",
    "abort",
];
