//! Recovering the wanted number of child threads from the grid size's ceiling division (Olabi et al., CGO 2022, §3.1).

use super::config::{constant_value, through_variables};
use super::{Extent, ThreadCount};
use crate::base::db::Db;
use crate::hir::items::FunctionItem;
use crate::hir::resolve::{Meaning, meaning_in};
use crate::hir::{BinOp, Body, ExprId, ExprKind, Literal, Name, StmtKind};

/// The `n` of a one-dimensional grid of `ceil(n / block)` blocks.
pub(super) fn recover(
    db: &dyn Db,
    function: FunctionItem<'_>,
    body: &Body,
    grid: &Extent,
    block: &Extent,
) -> Option<ThreadCount> {
    let [Some(grid), None, None] = one_dimensional(db, function, body, grid.components?) else {
        return None;
    };
    let [Some(block), None, None] = one_dimensional(db, function, body, block.components?) else {
        return None;
    };
    let grid = strip_casts(body, through_variables(db, function, body, strip_casts(body, grid)));
    let matcher = Matcher { db, function, body };
    let (expr, form) = matcher.division(grid, block).or_else(|| matcher.helper(grid, block))?;
    let span = body.expr(expr).span;
    (!body.expr(expr).from_macro).then_some(ThreadCount { expr, span, form })
}

/// A component that is the constant 1 is as good as none.
fn one_dimensional(
    db: &dyn Db,
    function: FunctionItem<'_>,
    body: &Body,
    components: [Option<ExprId>; 3],
) -> [Option<ExprId>; 3] {
    let [x, y, z] = components;
    let drop_one = |c: Option<ExprId>| c.filter(|e| constant_value(db, function, body, *e) != Some(1));
    [x, drop_one(y), drop_one(z)]
}

fn strip_casts(body: &Body, mut expr: ExprId) -> ExprId {
    loop {
        expr = match &body.expr(expr).kind {
            ExprKind::Paren(e) => *e,
            ExprKind::Cast {
                operand,
                reinterpret: false,
                ..
            } => *operand,
            _ => return expr,
        };
    }
}

struct Matcher<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &'a Body,
}

impl Matcher<'_, '_> {
    fn constant(&self, expr: ExprId) -> Option<i128> {
        constant_value(self.db, self.function, self.body, expr)
    }

    /// Same value: same constant, or the same expression over variables that stand for the same thing.
    fn same(&self, a: ExprId, b: ExprId) -> bool {
        if let (Some(a), Some(b)) = (self.constant(a), self.constant(b)) {
            return a == b;
        }
        let a = strip_casts(self.body, through_variables(self.db, self.function, self.body, a));
        let b = strip_casts(self.body, through_variables(self.db, self.function, self.body, b));
        a == b
            || match (&self.body.expr(a).kind, &self.body.expr(b).kind) {
                (ExprKind::Name(x), ExprKind::Name(y)) => x == y,
                (ExprKind::Binary(o, a1, a2), ExprKind::Binary(p, b1, b2)) => {
                    o == p && self.same(*a1, *b1) && self.same(*a2, *b2)
                }
                (
                    ExprKind::Field {
                        base: a,
                        field: f,
                        arrow: false,
                    },
                    ExprKind::Field {
                        base: b,
                        field: g,
                        arrow: false,
                    },
                ) => f == g && self.same(*a, *b),
                _ => false,
            }
    }

    fn is_divisor(&self, expr: ExprId, divisor: ExprId) -> bool {
        self.same(expr, divisor)
    }

    /// `d - 1`, also as a constant.
    fn is_divisor_less_one(&self, expr: ExprId, divisor: ExprId) -> bool {
        if let (Some(value), Some(block)) = (self.constant(expr), self.constant(divisor)) {
            return value == block - 1;
        }
        match self.body.expr(strip_casts(self.body, expr)).kind {
            ExprKind::Binary(BinOp::Sub, a, b) => self.is_divisor(a, divisor) && self.constant(b) == Some(1),
            _ => false,
        }
    }

    /// The numerator `n + d - 1` in its usual orders.
    fn rounded_up(&self, expr: ExprId, divisor: ExprId) -> Option<ExprId> {
        match self.body.expr(strip_casts(self.body, expr)).kind {
            // (n + d) - 1, (d + n) - 1
            ExprKind::Binary(BinOp::Sub, sum, one) if self.constant(one) == Some(1) => {
                match self.body.expr(strip_casts(self.body, sum)).kind {
                    ExprKind::Binary(BinOp::Add, n, d) if self.is_divisor(d, divisor) => Some(n),
                    ExprKind::Binary(BinOp::Add, d, n) if self.is_divisor(d, divisor) => Some(n),
                    _ => None,
                }
            }
            // n + (d - 1), (d - 1) + n
            ExprKind::Binary(BinOp::Add, a, b) => {
                if self.is_divisor_less_one(b, divisor) {
                    Some(a)
                } else if self.is_divisor_less_one(a, divisor) {
                    Some(b)
                } else {
                    None
                }
            }
            _ => None,
        }
    }

    /// `n % d != 0`, `n % d > 0`, `n % d ? 1 : 0`, `!!(n % d)` is left out.
    fn is_remainder(&self, expr: ExprId, n: ExprId, divisor: ExprId) -> bool {
        let modulo = |e: ExprId| match self.body.expr(strip_casts(self.body, e)).kind {
            ExprKind::Binary(BinOp::Rem, a, d) => self.same(a, n) && self.is_divisor(d, divisor),
            _ => false,
        };
        let nonzero = |e: ExprId| match self.body.expr(strip_casts(self.body, e)).kind {
            ExprKind::Binary(BinOp::Ne | BinOp::Gt, a, zero) => modulo(a) && self.constant(zero) == Some(0),
            _ => modulo(e),
        };
        match self.body.expr(strip_casts(self.body, expr)).kind {
            ExprKind::Binary(BinOp::Ne | BinOp::Gt, ..) => nonzero(expr),
            ExprKind::Conditional { cond, then, otherwise } => {
                nonzero(cond) && self.constant(then) == Some(1) && self.constant(otherwise) == Some(0)
            }
            _ => false,
        }
    }

    fn division(&self, grid: ExprId, divisor: ExprId) -> Option<(ExprId, &'static str)> {
        let body = self.body;
        match &body.expr(strip_casts(body, grid)).kind {
            ExprKind::Binary(BinOp::Div, numerator, d) if self.is_divisor(*d, divisor) => {
                self.rounded_up(*numerator, divisor).map(|n| (n, "(n + b - 1) / b"))
            }
            // (n - 1) / d + 1
            ExprKind::Binary(BinOp::Add, quotient, rest) => match body.expr(strip_casts(body, *quotient)).kind {
                ExprKind::Binary(BinOp::Div, numerator, d) if self.is_divisor(d, divisor) => {
                    if self.constant(*rest) == Some(1)
                        && let ExprKind::Binary(BinOp::Sub, n, one) = body.expr(strip_casts(body, numerator)).kind
                        && self.constant(one) == Some(1)
                    {
                        return Some((n, "(n - 1) / b + 1"));
                    }
                    self.is_remainder(*rest, numerator, divisor)
                        .then_some((numerator, "n / b + (n % b != 0)"))
                }
                _ => None,
            },
            // ceil(n / (float)d), ceil((float)n / d)
            ExprKind::Call {
                name: Some(name), args, ..
            } if matches!(crate::hir::names::unqualified(name), "ceil" | "ceilf") && args.len() == 1 => {
                let quotient = body.strip_parens(args[0]);
                match body.expr(quotient).kind {
                    ExprKind::Binary(BinOp::Div, n, d) => {
                        let floating = self.is_floating(n) || self.is_floating(d);
                        let d = strip_casts(body, d);
                        (floating && self.is_divisor(d, divisor)).then(|| (strip_casts(body, n), "ceil(n / (float)b)"))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn is_floating(&self, expr: ExprId) -> bool {
        match &self.body.expr(self.body.strip_parens(expr)).kind {
            ExprKind::Cast { ty, .. } => matches!(ty.as_str(), "float" | "double"),
            ExprKind::Literal(Literal::Float(_)) => true,
            ExprKind::Name(Name::Local(b)) => matches!(self.body.binding(*b).ty.base.as_str(), "float" | "double"),
            ExprKind::Binary(_, a, b) => self.is_floating(*a) || self.is_floating(*b),
            _ => false,
        }
    }

    /// `div_up(n, b)`: a function whose body is one `return` of such a division of its parameters.
    fn helper(&self, grid: ExprId, block: ExprId) -> Option<(ExprId, &'static str)> {
        let ExprKind::Call {
            name: Some(name), args, ..
        } = &self.body.expr(strip_casts(self.body, grid)).kind
        else {
            return None;
        };
        let [first, second] = args.as_slice() else { return None };
        let Meaning::Functions(functions) = meaning_in(self.db, self.function, name) else {
            return None;
        };
        let mut definitions = functions.into_iter().filter(|f| f.has_body(self.db));
        let definition = definitions.next()?;
        if definitions.next().is_some() {
            return None;
        }
        let helper = crate::hir::body(self.db, definition);
        if !helper.problems.is_empty() || helper.params.len() != 2 {
            return None;
        }
        let StmtKind::Block(stmts) = &helper.stmt(helper.root?).kind else {
            return None;
        };
        let [only] = stmts.as_slice() else { return None };
        let StmtKind::Return(Some(value)) = helper.stmt(*only).kind else {
            return None;
        };
        let inner = Matcher {
            db: self.db,
            function: definition,
            body: &helper,
        };
        // Find the divisor parameter by trying both.
        for (n_arg, d_arg, d_param) in [(*first, *second, helper.params[1]), (*second, *first, helper.params[0])] {
            if !self.is_divisor(d_arg, block) {
                continue;
            }
            let uses = helper.exprs.iter().enumerate();
            for (index, _) in uses.filter(|(_, e)| e.kind == ExprKind::Name(Name::Local(d_param))) {
                let Some((n, _)) = inner.division(value, ExprId(index as u32)) else {
                    continue;
                };
                let n = strip_casts(&helper, n);
                let n_param = if d_param == helper.params[1] {
                    helper.params[0]
                } else {
                    helper.params[1]
                };
                if helper.expr(n).kind == ExprKind::Name(Name::Local(n_param)) {
                    return Some((n_arg, "div_up(n, b)"));
                }
            }
        }
        None
    }
}
