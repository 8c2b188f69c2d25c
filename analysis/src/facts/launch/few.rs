//! How many threads of a block, or blocks of a grid, the conditions on the way to a launch let through: `threadIdx.x < 8`.

use super::config::definition;
use super::count::{Counter, OnTheWay};
use super::launchers::launched_dimensions;
use super::trips::mirrored;
use crate::facts::dependence::integer;
use crate::hir::resolve::{launch_sites_of, only_known_launches};
use crate::hir::{BinOp, Builtin, ExprId, ExprKind, Name, StmtKind, UnOp};

impl Counter<'_, '_> {
    /// At most so many have a number in this dimension with which all conditions hold; `None`: none of them says so, or there are other
    /// dimensions. `position`: `threadIdx` or `blockIdx`.
    pub(super) fn let_through(&self, conditions: &[OnTheWay], position: Builtin) -> Option<u64> {
        let (threads, blocks, unclear) = launched_dimensions(self.db, self.function);
        let seen = !launch_sites_of(self.db, self.function).is_empty() && only_known_launches(self.db, self.function);
        let dimensions = match position {
            Builtin::ThreadIdx => threads,
            _ => blocks,
        };
        // A jump may lead to a launch past its conditions.
        let jumps = |kind: &StmtKind| matches!(kind, StmtKind::Goto(_) | StmtKind::Switch { .. });
        let passed_by = self.body.stmts.iter().any(|stmt| jumps(&stmt.kind));
        if passed_by || unclear || !seen || dimensions[1] || dimensions[2] {
            return None;
        }
        let few = conditions
            .iter()
            .filter_map(|on| self.few(on.cond?, on.outcome, position));
        few.min()
    }

    /// How many numbers there are with which `cond` has this outcome.
    fn few(&self, cond: ExprId, outcome: bool, position: Builtin) -> Option<u64> {
        let body = self.body;
        match &body.expr(body.strip_parens(cond)).kind {
            ExprKind::Unary(UnOp::Not, e) => self.few(*e, !outcome, position),
            ExprKind::Logical { and, lhs, rhs } if *and == outcome => {
                let both = [lhs, rhs].map(|side| self.few(*side, outcome, position));
                both.into_iter().flatten().min()
            }
            ExprKind::Binary(op, a, b) => {
                let (op, limit) = if self.is_number_of(*a, position) {
                    (*op, *b)
                } else if self.is_number_of(*b, position) {
                    (mirrored(*op)?, *a)
                } else {
                    return None;
                };
                let limit = u64::try_from(self.constant(limit)?).ok()?;
                match (op, outcome) {
                    (BinOp::Lt, true) | (BinOp::Ge, false) => Some(limit),
                    (BinOp::Le, true) | (BinOp::Gt, false) => limit.checked_add(1),
                    (BinOp::Eq, true) | (BinOp::Ne, false) => Some(1),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// `threadIdx.x`, also by way of variables that hold all of its values.
    fn is_number_of(&self, mut expr: ExprId, position: Builtin) -> bool {
        let body = self.body;
        for _ in 0..16 {
            match &body.expr(body.strip_parens(expr)).kind {
                ExprKind::Name(Name::Local(variable)) => {
                    let holds_all =
                        integer(&self.types().alias(&body.binding(*variable).ty.base)).is_some_and(|ty| ty.2);
                    match definition(self.db, self.function, body, *variable) {
                        Some(init) if holds_all => expr = init,
                        _ => return false,
                    }
                }
                ExprKind::Field { base, field, .. } => {
                    let base = &body.expr(body.strip_parens(*base)).kind;
                    return *base == ExprKind::Name(Name::Builtin(position)) && field == "x";
                }
                _ => return false,
            }
        }
        false
    }
}
