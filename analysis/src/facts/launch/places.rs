//! Where expressions stand: the statement, the loops, the preprocessor alternatives around them.

use std::collections::HashMap;
use std::sync::Arc;

use super::LoopAround;
use crate::base::db::Db;
use crate::base::span::Span;
use crate::hir::items::FunctionItem;
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
            let (stmts, mut exprs) = children(body, stmt);
            let mut inner = stmts;
            while let Some(expr) = exprs.pop() {
                if places.expr_stmt.insert(expr, stmt).is_some() {
                    continue;
                }
                exprs.extend(operands(body, expr));
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

/// The statements and expressions directly inside a statement.
pub(crate) fn children(body: &Body, stmt: StmtId) -> (Vec<StmtId>, Vec<ExprId>) {
    let mut stmts: Vec<StmtId> = Vec::new();
    let mut exprs: Vec<ExprId> = Vec::new();
    match &body.stmt(stmt).kind {
        StmtKind::Block(inner) => stmts.extend(inner),
        StmtKind::Expr(e) => exprs.push(*e),
        StmtKind::Decl(decls) => {
            for decl in decls {
                exprs.extend(decl.init);
                exprs.extend(body.binding(decl.binding).ty.array.iter().flatten());
            }
        }
        StmtKind::If {
            init,
            cond,
            then,
            otherwise,
            ..
        } => {
            stmts.extend(init);
            stmts.push(*then);
            stmts.extend(otherwise);
            exprs.extend(cond);
        }
        StmtKind::While { cond, init, body } => {
            stmts.extend(init);
            stmts.push(*body);
            exprs.extend(cond);
        }
        StmtKind::DoWhile { body, cond } => {
            stmts.push(*body);
            exprs.push(*cond);
        }
        StmtKind::For { init, cond, step, body } => {
            stmts.extend(init);
            stmts.push(*body);
            exprs.extend(cond);
            exprs.extend(step);
        }
        StmtKind::RangeFor { range, body, .. } => {
            exprs.push(*range);
            stmts.push(*body);
        }
        StmtKind::Switch { cond, body } => {
            exprs.push(*cond);
            stmts.push(*body);
        }
        StmtKind::Case { value, stmts: inner } => {
            exprs.extend(value);
            stmts.extend(inner);
        }
        StmtKind::Return(value) => exprs.extend(value),
        StmtKind::Label(_, inner) => stmts.extend(inner),
        StmtKind::Preprocessor { branches } => stmts.extend(branches.iter().flatten()),
        StmtKind::Asm { parts, .. } => exprs.extend(parts),
        StmtKind::Unknown {
            stmts: inner,
            exprs: parts,
            ..
        } => {
            stmts.extend(inner);
            exprs.extend(parts);
        }
        StmtKind::Break | StmtKind::Continue | StmtKind::Goto(_) | StmtKind::Empty => {}
    }
    (stmts, exprs)
}

/// The operands directly inside an expression.
pub(crate) fn operands(body: &Body, expr: ExprId) -> Vec<ExprId> {
    match &body.expr(expr).kind {
        ExprKind::Literal(_) | ExprKind::Name(_) | ExprKind::SizeOf | ExprKind::Lambda { .. } => Vec::new(),
        ExprKind::Paren(e)
        | ExprKind::Unary(_, e)
        | ExprKind::Deref(e)
        | ExprKind::AddrOf(e)
        | ExprKind::Delete(e)
        | ExprKind::Cast { operand: e, .. }
        | ExprKind::IncDec { place: e, .. }
        | ExprKind::Field { base: e, .. } => vec![*e],
        ExprKind::Binary(_, a, b) | ExprKind::Comma(a, b) => vec![*a, *b],
        ExprKind::Logical { lhs, rhs, .. } => vec![*lhs, *rhs],
        ExprKind::Assign { place, value, .. } => vec![*place, *value],
        ExprKind::Index { base, index } => vec![*base, *index],
        ExprKind::Conditional { cond, then, otherwise } => vec![*cond, *then, *otherwise],
        ExprKind::Call { callee, args, .. } => std::iter::once(callee).chain(args).copied().collect(),
        ExprKind::Construct { args, .. } | ExprKind::InitList(args) | ExprKind::New(args) => args.clone(),
        ExprKind::Launch(launch) => std::iter::once(launch.callee)
            .chain(launch.config.iter().copied())
            .chain(launch.args.iter().copied())
            .collect(),
        ExprKind::Unknown { parts, .. } => parts.clone(),
    }
}
