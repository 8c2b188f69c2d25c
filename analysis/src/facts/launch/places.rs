//! Where expressions stand: the statement, the loops, the preprocessor alternatives around them.

use std::collections::HashMap;
use std::sync::Arc;

use super::LoopAround;
use crate::base::db::Db;
use crate::base::span::Span;
use crate::hir::items::FunctionItem;
use crate::hir::walk::{operands, parts};
use crate::hir::{Body, ExprId, ExprKind, StmtId, StmtKind, body};

/// Parent links of a function's body: every launch in it asks for them.
#[salsa::tracked(returns(clone))]
pub fn statement_places<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<Places> {
    Arc::new(Places::of(&body(db, function)))
}

/// Parent links of a body.
#[derive(Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
pub struct Places {
    stmt_parent: HashMap<StmtId, StmtId>,
    expr_stmt: HashMap<ExprId, StmtId>,
}

impl Places {
    /// Links of a body; statements inside lambdas hang below the statement that contains the lambda.
    pub fn of(body: &Body) -> Places {
        let mut places = Places::default();
        let mut todo: Vec<StmtId> = body.root.into_iter().collect();
        while let Some(stmt) = todo.pop() {
            let (stmts, mut exprs) = parts(body, stmt);
            let mut inner = stmts;
            while let Some(expr) = exprs.pop() {
                if places.expr_stmt.insert(expr, stmt).is_some() {
                    continue;
                }
                exprs.extend(operands(&body.expr(expr).kind));
                if let ExprKind::Lambda { body: Some(lambda), .. } = body.expr(expr).kind {
                    inner.push(lambda);
                }
            }
            for child in inner {
                if places.stmt_parent.insert(child, stmt).is_none() {
                    todo.push(child);
                }
            }
        }
        places
    }

    /// The statement that an expression belongs to (for a condition: the `if` or loop).
    pub fn statement_of(&self, expr: ExprId) -> Option<StmtId> {
        self.expr_stmt.get(&expr).copied()
    }

    /// The statement directly around a statement.
    pub fn parent(&self, stmt: StmtId) -> Option<StmtId> {
        self.stmt_parent.get(&stmt).copied()
    }

    /// The statements around an expression, innermost first, its own statement included.
    pub fn around(&self, expr: ExprId) -> impl Iterator<Item = StmtId> + '_ {
        std::iter::successors(self.statement_of(expr), |s| self.parent(*s))
    }

    /// The loops that execute an expression repeatedly, innermost first. The init statement of a `for` is outside of it.
    pub fn loops_around(&self, body: &Body, expr: ExprId) -> Vec<LoopAround> {
        let mut found = Vec::new();
        let mut inner: Option<StmtId> = None;
        for stmt in self.around(expr) {
            let kind = &body.stmt(stmt).kind;
            let span = body.stmt(stmt).span;
            let head = |body_stmt: StmtId| Span::new(span.start, body.stmt(body_stmt).span.start.max(span.start));
            match kind {
                StmtKind::While { body: b, .. } | StmtKind::RangeFor { body: b, .. } => {
                    found.push(LoopAround { stmt, span: head(*b) });
                }
                StmtKind::For { body: b, init, .. } if init.is_none() || *init != inner => {
                    found.push(LoopAround { stmt, span: head(*b) });
                }
                StmtKind::DoWhile { .. } => found.push(LoopAround { stmt, span }),
                _ => {}
            }
            inner = Some(stmt);
        }
        found
    }

    /// Whether an expression stands in an alternative of `#if`.
    pub fn in_preprocessor(&self, body: &Body, expr: ExprId) -> bool {
        self.around(expr)
            .any(|s| matches!(body.stmt(s).kind, StmtKind::Preprocessor { .. }))
    }
}
