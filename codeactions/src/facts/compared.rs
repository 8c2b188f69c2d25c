//! Whether a child looks at a number that it is given, or does its work whatever that is.

use std::collections::BTreeSet;

use gridfuse_analysis::facts::launch::Child;
use gridfuse_analysis::hir::walk::all_in_expr;
use gridfuse_analysis::hir::{BinOp, BindingId, Body, ExprId, ExprKind, Name, StmtKind, body};

use crate::edit::lex;
use crate::facts::site::Site;

/// The child's parameter that gets this number as it is, where the child compares neither it with anything nor what it computes from it.
/// `None` where it may, or isn't in sight.
pub fn never_compared(site: &Site<'_>, number: &str) -> Option<String> {
    let Child::Kernel(kernel) = site.facts.child else {
        return None;
    };
    let body = body(site.db, kernel);
    let words = |text: &str| lex::code_words(text).join(" ");
    let mut args = site.launch.args.iter();
    let index = args.position(|arg| words(site.expr_source(*arg)) == words(number))?;
    let parameter = *body.params.get(index)?;
    let view = View {
        body: &body,
        known: computed_from(&body, parameter),
    };
    let compares = (0..body.exprs.len() as u32).any(|index| view.compares(ExprId(index)));
    let decides = body.stmts.iter().any(|stmt| view.decides(&stmt.kind));
    (body.problems.is_empty() && !compares && !decides).then(|| body.binding(parameter).name.clone())
}

/// A variable and all that are given a value which it has a part in.
fn computed_from(body: &Body, variable: BindingId) -> BTreeSet<BindingId> {
    let declared = (0..body.bindings.len() as u32).map(BindingId);
    let assigned = body.exprs.iter().filter_map(|expr| match &expr.kind {
        ExprKind::Assign { place, value, .. } => match body.expr(body.strip_parens(*place)).kind {
            ExprKind::Name(Name::Local(variable)) => Some((variable, *value)),
            _ => None,
        },
        _ => None,
    });
    let values: Vec<(BindingId, ExprId)> = declared
        .filter_map(|variable| Some((variable, body.initialiser(variable)?)))
        .chain(assigned)
        .collect();
    let mut view = View {
        body,
        known: BTreeSet::from([variable]),
    };
    loop {
        let more = values
            .iter()
            .find(|(variable, value)| !view.known.contains(variable) && view.mentions(*value));
        match more {
            Some((variable, _)) => view.known.insert(*variable),
            None => return view.known,
        };
    }
}

/// A body, and the variables that matter in it.
struct View<'b> {
    body: &'b Body,
    known: BTreeSet<BindingId>,
}

impl View<'_> {
    fn mentions(&self, expr: ExprId) -> bool {
        all_in_expr(self.body, expr)
            .into_iter()
            .any(|part| match &self.body.expr(part).kind {
                ExprKind::Name(Name::Local(variable)) => self.known.contains(variable),
                ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } => {
                    mentions.iter().any(|variable| self.known.contains(variable))
                }
                _ => false,
            })
    }

    /// What is handed to a function may be compared there.
    fn compares(&self, expr: ExprId) -> bool {
        match &self.body.expr(expr).kind {
            ExprKind::Binary(BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge, a, b) => {
                self.mentions(*a) || self.mentions(*b)
            }
            ExprKind::Logical { lhs, rhs, .. } => self.mentions(*lhs) || self.mentions(*rhs),
            ExprKind::Conditional { cond, .. } => self.mentions(*cond),
            ExprKind::Call { name, args, .. } => {
                let adds = matches!(
                    name.as_deref(),
                    Some("atomicAdd" | "atomicSub" | "atomicExch" | "atomicXor")
                );
                !adds && args.iter().any(|arg| self.mentions(*arg))
            }
            ExprKind::Lambda { .. } | ExprKind::Unknown { .. } => self.mentions(expr),
            _ => false,
        }
    }

    fn decides(&self, stmt: &StmtKind) -> bool {
        match stmt {
            StmtKind::If { cond, .. } | StmtKind::For { cond, .. } | StmtKind::While { cond, .. } => {
                cond.is_some_and(|cond| self.mentions(cond))
            }
            StmtKind::DoWhile { cond, .. } | StmtKind::Switch { cond, .. } => self.mentions(*cond),
            StmtKind::Asm { .. } | StmtKind::Unknown { .. } => true,
            _ => false,
        }
    }
}
