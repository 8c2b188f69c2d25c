//! Which local variables statements and expressions use and set.

use std::collections::BTreeSet;

use gridfuse_analysis::hir::{BindingId, Body, ExprId, ExprKind, Name, StmtId, StmtKind};

/// The statements and expressions directly inside a statement; those inside of lambdas are not there.
pub fn parts(body: &Body, stmt: StmtId) -> (Vec<StmtId>, Vec<ExprId>) {
    let mut exprs = Vec::new();
    let mut stmts = Vec::new();
    match &body.stmt(stmt).kind {
        StmtKind::Block(inner) => stmts.extend(inner),
        StmtKind::Expr(e) => exprs.push(*e),
        StmtKind::Decl(decls) => {
            for decl in decls {
                exprs.extend(body.binding(decl.binding).ty.array.iter().flatten());
                exprs.extend(decl.init);
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
            exprs.extend(cond);
            stmts.push(*then);
            stmts.extend(otherwise);
        }
        StmtKind::While {
            cond,
            init,
            body: inner,
        } => {
            stmts.extend(init);
            exprs.extend(cond);
            stmts.push(*inner);
        }
        StmtKind::DoWhile { body: inner, cond } => {
            stmts.push(*inner);
            exprs.push(*cond);
        }
        StmtKind::For {
            init,
            cond,
            step,
            body: inner,
        } => {
            stmts.extend(init);
            exprs.extend(cond);
            exprs.extend(step);
            stmts.push(*inner);
        }
        StmtKind::RangeFor { range, body: inner, .. } => {
            exprs.push(*range);
            stmts.push(*inner);
        }
        StmtKind::Switch { cond, body: inner } => {
            exprs.push(*cond);
            stmts.push(*inner);
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
            exprs: more,
            ..
        } => {
            stmts.extend(inner);
            exprs.extend(more);
        }
        StmtKind::Break | StmtKind::Continue | StmtKind::Goto(_) | StmtKind::Empty => {}
    }
    (stmts, exprs)
}

/// The operands directly inside an expression.
pub fn operands(body: &Body, expr: ExprId) -> Vec<ExprId> {
    match &body.expr(expr).kind {
        ExprKind::Literal(_) | ExprKind::Name(_) | ExprKind::SizeOf | ExprKind::Lambda { .. } => Vec::new(),
        ExprKind::Paren(e)
        | ExprKind::Unary(_, e)
        | ExprKind::Deref(e)
        | ExprKind::AddrOf(e)
        | ExprKind::Delete(e)
        | ExprKind::Field { base: e, .. }
        | ExprKind::Cast { operand: e, .. }
        | ExprKind::IncDec { place: e, .. } => vec![*e],
        ExprKind::Binary(_, a, b)
        | ExprKind::Comma(a, b)
        | ExprKind::Logical { lhs: a, rhs: b, .. }
        | ExprKind::Index { base: a, index: b }
        | ExprKind::Assign { place: a, value: b, .. } => vec![*a, *b],
        ExprKind::Conditional { cond, then, otherwise } => vec![*cond, *then, *otherwise],
        ExprKind::Call { callee, args, .. } => std::iter::once(*callee).chain(args.iter().copied()).collect(),
        ExprKind::Construct { args, .. } | ExprKind::InitList(args) | ExprKind::New(args) => args.clone(),
        ExprKind::Launch(launch) => launch.config.iter().chain(&launch.args).copied().collect(),
        ExprKind::Unknown { parts, .. } => parts.clone(),
    }
}

/// All statements in a statement, itself first.
pub fn all_stmts(body: &Body, stmt: StmtId) -> Vec<StmtId> {
    let mut found = Vec::new();
    let mut todo = vec![stmt];
    while let Some(next) = todo.pop() {
        found.push(next);
        let (inner, _) = parts(body, next);
        todo.extend(inner.into_iter().rev());
    }
    found
}

/// All expressions in an expression, itself included.
pub fn all_in_expr(body: &Body, expr: ExprId) -> Vec<ExprId> {
    let mut found = Vec::new();
    let mut todo = vec![expr];
    while let Some(next) = todo.pop() {
        found.push(next);
        todo.extend(operands(body, next));
    }
    found
}

/// All expressions in a statement and the statements inside it.
pub fn all_exprs(body: &Body, stmt: StmtId) -> Vec<ExprId> {
    let stmts = all_stmts(body, stmt);
    let direct = stmts.into_iter().flat_map(|s| parts(body, s).1);
    direct.flat_map(|e| all_in_expr(body, e)).collect()
}

/// The local variable that an expression names.
pub fn named(body: &Body, expr: ExprId) -> Option<BindingId> {
    match body.expr(expr).kind {
        ExprKind::Name(Name::Local(binding)) => Some(binding),
        _ => None,
    }
}

/// The local variables in some expressions.
pub fn variables(body: &Body, exprs: &[ExprId]) -> BTreeSet<BindingId> {
    exprs.iter().filter_map(|e| named(body, *e)).collect()
}

/// The variable that is set when `place` is assigned to: the whole of it, or a field.
pub fn root(body: &Body, place: ExprId) -> Option<BindingId> {
    match &body.expr(place).kind {
        ExprKind::Name(_) => named(body, place),
        ExprKind::Paren(e)
        | ExprKind::Field {
            base: e, arrow: false, ..
        } => root(body, *e),
        _ => None,
    }
}
