//! One walk over a body: what stands directly in a statement and in an expression, all that stands inside of them, and where a variable
//! is declared.

use super::types::*;

impl Body {
    /// The statement that declares a variable, and what the variable is initialised with there. A body declares each once: parameters
    /// and what takes the elements of a range aren't declared by a statement of their own.
    pub fn declaration(&self, variable: BindingId) -> Option<(StmtId, Option<ExprId>)> {
        self.stmts
            .iter()
            .enumerate()
            .find_map(|(index, stmt)| match &stmt.kind {
                StmtKind::Decl(decls) => {
                    let found = decls.iter().find(|decl| decl.binding == variable)?;
                    Some((StmtId(index as u32), found.init))
                }
                _ => None,
            })
    }

    /// What a variable is declared with. It may be assigned to behind that.
    pub fn initialiser(&self, variable: BindingId) -> Option<ExprId> {
        self.declaration(variable)?.1
    }
}

/// The statements and expressions directly inside a statement, each in the order in which they stand there; what is in lambdas is not
/// there.
pub fn parts(body: &Body, stmt: StmtId) -> (Vec<StmtId>, Vec<ExprId>) {
    let mut stmts = Vec::new();
    let mut exprs = Vec::new();
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

/// The operands of an expression that are evaluated before it, in order; those of `&&`, `||` and `?:` included.
pub fn operands(kind: &ExprKind) -> Vec<ExprId> {
    match kind {
        ExprKind::Literal(_) | ExprKind::Name(_) | ExprKind::SizeOf | ExprKind::Lambda { .. } => vec![],
        ExprKind::Paren(e)
        | ExprKind::Unary(_, e)
        | ExprKind::Deref(e)
        | ExprKind::AddrOf(e)
        | ExprKind::Delete(e)
        | ExprKind::Field { base: e, .. }
        | ExprKind::Cast { operand: e, .. }
        | ExprKind::IncDec { place: e, .. } => vec![*e],
        ExprKind::Binary(_, a, b) | ExprKind::Comma(a, b) => vec![*a, *b],
        ExprKind::Logical { lhs, rhs, .. } => vec![*lhs, *rhs],
        ExprKind::Conditional { cond, then, otherwise } => vec![*cond, *then, *otherwise],
        // C++17: the value of an assignment comes first.
        ExprKind::Assign { place, value, .. } => vec![*value, *place],
        ExprKind::Index { base, index } => vec![*base, *index],
        ExprKind::Call { callee, args, .. } => {
            let mut all = vec![*callee];
            all.extend(args);
            all
        }
        ExprKind::Construct { args, .. } | ExprKind::InitList(args) | ExprKind::New(args) => args.clone(),
        ExprKind::Launch(l) => {
            let mut all = vec![l.callee];
            all.extend(&l.config);
            all.extend(&l.args);
            all
        }
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
        todo.extend(operands(&body.expr(next).kind));
    }
    found
}

/// All expressions in a statement and the statements inside it.
pub fn all_exprs(body: &Body, stmt: StmtId) -> Vec<ExprId> {
    let stmts = all_stmts(body, stmt);
    let direct = stmts.into_iter().flat_map(|s| parts(body, s).1);
    direct.flat_map(|e| all_in_expr(body, e)).collect()
}
