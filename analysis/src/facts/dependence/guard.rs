//! The conditions under which a place in a function is reached: `if`s and loops around it, early returns before it, `&&`.

use super::polynomial::{Interval, Polynomial};
use super::subscript::{Evaluator, Fit, Value};
use crate::hir::{BinOp, Body, ExprId, ExprKind, StmtId, StmtKind, UnOp};

/// A condition that holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Guard {
    /// What isn't negative, or zero.
    pub value: Polynomial,
    /// When that is exact.
    pub fits: Vec<Fit>,
    /// It's zero: modulo 2³² even where it isn't exact.
    pub zero: bool,
}

/// Conditions of one place that are kept.
const MAX_GUARDS: usize = 12;

impl Evaluator<'_, '_> {
    /// What holds where an expression is evaluated.
    pub(super) fn guards(&self, e: ExprId) -> Vec<Guard> {
        let mut found = Vec::new();
        let body = self.body;
        // A jump may come from anywhere.
        if body
            .stmts
            .iter()
            .any(|s| matches!(s.kind, StmtKind::Goto(_) | StmtKind::Unknown { .. }))
        {
            return found;
        }
        let mut inner = e;
        while let Some(outer) = self.parents.get(&inner).copied() {
            match &body.expr(outer).kind {
                ExprKind::Logical { and, lhs, rhs } if *rhs == inner => self.condition(*lhs, *and, &mut found),
                ExprKind::Conditional { cond, then, otherwise } => {
                    if *then == inner {
                        self.condition(*cond, true, &mut found);
                    } else if *otherwise == inner {
                        self.condition(*cond, false, &mut found);
                    }
                }
                _ => {}
            }
            inner = outer;
        }
        let mut child: Option<StmtId> = None;
        // A `case` inside of an `if` is reached past the condition.
        let mut jumped_into = false;
        for stmt in self.around.around(e) {
            match &body.stmt(stmt).kind {
                StmtKind::Case { .. } => jumped_into = true,
                StmtKind::Switch { .. } => jumped_into = false,
                _ if jumped_into => {}
                StmtKind::If {
                    cond: Some(cond),
                    then,
                    otherwise,
                    ..
                } => {
                    if child == Some(*then) {
                        self.condition(*cond, true, &mut found);
                    } else if child.is_some() && child == *otherwise {
                        self.condition(*cond, false, &mut found);
                    }
                }
                StmtKind::Block(stmts) => {
                    for before in stmts.iter().take_while(|s| Some(**s) != child) {
                        if let StmtKind::If {
                            cond: Some(cond),
                            then,
                            otherwise: None,
                            ..
                        } = &body.stmt(*before).kind
                            && leaves(body, *then)
                        {
                            self.condition(*cond, false, &mut found);
                        }
                    }
                }
                StmtKind::For { cond, body: inner, .. } if child == Some(*inner) => {
                    if let Some(cond) = cond {
                        self.condition(*cond, true, &mut found);
                    }
                    self.counting(stmt, e, &mut found);
                }
                StmtKind::While {
                    cond: Some(cond),
                    body: inner,
                    ..
                } if child == Some(*inner) => self.condition(*cond, true, &mut found),
                _ => {}
            }
            child = Some(stmt);
        }
        found.truncate(MAX_GUARDS);
        found
    }

    /// A counter doesn't go back behind the value that it begins with.
    fn counting(&self, stmt: StmtId, e: ExprId, found: &mut Vec<Guard>) {
        for (b, counters) in &self.variables.counters {
            let Some(counter) = counters.iter().find(|c| c.stmt == stmt) else {
                continue;
            };
            if self.counter_at(*b, e).is_none_or(|c| c.stmt != stmt) {
                continue;
            }
            let ty = &self.body.binding(*b).ty;
            let Some((ty, _, true)) = super::integer::integer(&self.places.alias(&ty.base)) else {
                continue;
            };
            let step = counter.step.map_or_else(
                || Some(Value::constant(1, ty)),
                |s| self.value(s).and_then(|v| v.convert(ty)),
            );
            let begin = self.value(counter.init).and_then(|v| v.convert(ty));
            let (Some(step), Some(begin)) = (step, begin) else {
                continue;
            };
            // An unsigned counter may wrap around.
            if ty.unsigned {
                continue;
            }
            let own = Polynomial::symbol(super::polynomial::Symbol::Variable(*b));
            let value = if counter.down {
                begin.polynomial.minus(&own)
            } else {
                own.minus(&begin.polynomial)
            };
            let Some(value) = value else { continue };
            let mut fits = begin.fits;
            fits.extend(step.fits);
            fits.push(Fit {
                value: step.polynomial,
                range: Interval { lo: Some(0), hi: None },
            });
            found.push(Guard {
                value,
                fits,
                zero: false,
            });
        }
    }

    fn condition(&self, cond: ExprId, outcome: bool, found: &mut Vec<Guard>) {
        match &self.body.expr(cond).kind {
            ExprKind::Paren(e) => self.condition(*e, outcome, found),
            ExprKind::Unary(UnOp::Not, e) => self.condition(*e, !outcome, found),
            ExprKind::Logical { and, lhs, rhs } if *and == outcome => {
                self.condition(*lhs, outcome, found);
                self.condition(*rhs, outcome, found);
            }
            ExprKind::Binary(op, a, b) => {
                let op = match (op, outcome) {
                    (BinOp::Lt, true) | (BinOp::Ge, false) => BinOp::Lt,
                    (BinOp::Le, true) | (BinOp::Gt, false) => BinOp::Le,
                    (BinOp::Gt, true) | (BinOp::Le, false) => BinOp::Gt,
                    (BinOp::Ge, true) | (BinOp::Lt, false) => BinOp::Ge,
                    (BinOp::Eq, true) | (BinOp::Ne, false) => BinOp::Eq,
                    (BinOp::Eq | BinOp::Ne, _) => return,
                    _ => {
                        self.zero(cond, outcome, found);
                        return;
                    }
                };
                let (Some(a), Some(b)) = (self.value(*a), self.value(*b)) else {
                    return;
                };
                let ty = a.ty.common(b.ty);
                let (Some(a), Some(b)) = (a.convert(ty), b.convert(ty)) else {
                    return;
                };
                let (large, small) = match op {
                    BinOp::Lt | BinOp::Le => (b, a),
                    _ => (a, b),
                };
                let Some(mut value) = large.polynomial.minus(&small.polynomial) else {
                    return;
                };
                if matches!(op, BinOp::Lt | BinOp::Gt) {
                    let Some(less) = value.plus(&Polynomial::constant(-1)) else {
                        return;
                    };
                    value = less;
                }
                let mut fits = large.fits;
                fits.extend(small.fits);
                found.push(Guard {
                    value,
                    fits,
                    zero: op == BinOp::Eq,
                });
            }
            _ => self.zero(cond, outcome, found),
        }
    }

    /// `if (!x)`
    fn zero(&self, value: ExprId, outcome: bool, found: &mut Vec<Guard>) {
        if !outcome && let Some(value) = self.value(value) {
            found.push(Guard {
                value: value.polynomial,
                fits: value.fits,
                zero: true,
            });
        }
    }
}

/// The statement returns from the function on every path.
fn leaves(body: &Body, stmt: StmtId) -> bool {
    match &body.stmt(stmt).kind {
        StmtKind::Return(_) => true,
        StmtKind::Block(stmts) => stmts.last().is_some_and(|s| leaves(body, *s)),
        _ => false,
    }
}
