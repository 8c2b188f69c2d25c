//! How often a loop runs its body, where its head counts: `for (i = a; i < b; i += s)`.

use super::Launchers;
use super::amount::{Amount, Bound, divisor, summand};
use super::config::is_signed;
use super::count::{Counter, Of, jump_in, local};
use super::shared_loops::{Shared, Sharing, shared_by_head, shared_loop};
use crate::facts::callee::library_called;
use crate::facts::dependence::{Integer, Interval, exposed, integer};
use crate::facts::uniformity::changes_around;
use crate::facts::uniformity::memory::Places as TypePlaces;
use crate::hir::walk::{operands, parts};
use crate::hir::{BinOp, BindingId, ExprId, ExprKind, Name, StmtId, StmtKind};

impl Counter<'_, '_> {
    /// How often a loop runs its body as far as the launch, each time that it is come to; `outer`: the loops around it, innermost first.
    pub(super) fn trips(&self, stmt: StmtId, outer: &[StmtId], launch: ExprId, of: Of) -> Amount {
        let body = self.body;
        let leaves = |inner: StmtId| jump_in(body, inner).is_some();
        match &body.stmt(stmt).kind {
            StmtKind::DoWhile { body: inner, .. } => Amount {
                at_least: u64::from(!leaves(*inner)),
                at_most: Bound::Unbounded,
            },
            StmtKind::For {
                init: Some(_),
                cond: Some(_),
                step: Some(_),
                body: inner,
            } => {
                // Evaluated in the head: not once per iteration.
                if self.places.statement_of(launch) == Some(stmt) {
                    return Amount::up_to(Bound::Unbounded);
                }
                let mut amount = match self.counted(stmt, outer, of) {
                    Some(amount) => amount,
                    None => Amount::up_to(Bound::Unbounded),
                };
                if leaves(*inner) {
                    amount.at_least = 0;
                }
                amount
            }
            _ => Amount::up_to(Bound::Unbounded),
        }
    }

    /// How the iterations of a loop that is counted are shared.
    pub(super) fn shared(&self, stmt: StmtId) -> Option<Shared> {
        self.counted(stmt, &[], Of::AnyThread)?;
        self.shared_loop(stmt)
    }

    pub(super) fn shared_loop(&self, stmt: StmtId) -> Option<Shared> {
        shared_loop(self.db, self.function, self.body, stmt)
    }

    /// Made of the numbers of a thread and its block, and of sizes: 0 at least, and 0 for the first thread.
    fn numbers_a_thread(&self, expr: ExprId) -> bool {
        let body = self.body;
        match &body.expr(body.strip_parens(expr)).kind {
            ExprKind::Name(Name::Builtin(_)) => true,
            ExprKind::Field { base, .. } => self.numbers_a_thread(*base),
            ExprKind::Binary(BinOp::Add | BinOp::Mul, a, b) => self.numbers_a_thread(*a) && self.numbers_a_thread(*b),
            _ => false,
        }
    }

    /// How many iterations a shared loop has in all.
    pub(super) fn limit(&self, shared: Shared) -> Bound {
        let first = shared.first.map(|first| (first, self.constant(first)));
        match (self.constant(shared.limit), first) {
            (Some(limit), None | Some((_, Some(0)))) if u64::try_from(limit).is_ok() => {
                Bound::Constant(u64::try_from(limit).unwrap_or_default())
            }
            (_, None) => Bound::Symbolic(self.source(shared.limit)),
            (_, Some((first, _))) => Bound::Symbolic(self.difference(shared.limit, first).plus(0)),
        }
    }

    /// `high - low`, with constants taken together.
    fn difference(&self, high: ExprId, low: ExprId) -> Linear {
        let mut difference = self.linear(high);
        match self.constant(low) {
            Some(low) => difference.plus -= low,
            None => difference.text.push_str(&format!(" - {}", self.factor(low))),
        }
        difference
    }

    /// What is added to the rest of a sum, if that is a constant: `n - 1`.
    fn linear(&self, expr: ExprId) -> Linear {
        let body = self.body;
        let (rest, plus) = match body.expr(body.strip_parens(expr)).kind {
            ExprKind::Binary(BinOp::Add, a, b) => (a, self.constant(b)),
            ExprKind::Binary(BinOp::Sub, a, b) => (a, self.constant(b).map(|n| -n)),
            _ => (expr, None),
        };
        // Far from where it would overflow.
        match plus.filter(|n| n.unsigned_abs() < 1 << 31) {
            Some(plus) => Linear {
                text: summand(&self.source(rest)),
                plus,
            },
            None => Linear {
                text: summand(&self.source(expr)),
                plus: 0,
            },
        }
    }

    /// The head of `for (i = a; i < b; i += s)`, when nothing else changes `i`, and nothing changes `b` and `s`.
    fn head(&self, stmt: StmtId) -> Option<Head> {
        let body = self.body;
        let StmtKind::For {
            init: Some(init),
            cond: Some(cond),
            step: Some(step),
            body: inner,
        } = body.stmt(stmt).kind
        else {
            return None;
        };
        let (variable, first) = match &body.stmt(init).kind {
            StmtKind::Decl(decls) => match decls.as_slice() {
                [one] => (one.binding, one.init?),
                _ => return None,
            },
            StmtKind::Expr(e) => match &body.expr(*e).kind {
                ExprKind::Assign { op: None, place, value } => (local(body, *place)?, *value),
                _ => return None,
            },
            _ => return None,
        };
        let ty = &body.binding(variable).ty;
        if !ty.is_value() || ty.volatile || self.may_change(inner, variable) || self.is_exposed(variable) {
            return None;
        }
        // Numbers of a class, and floating ones, are counted in ways of their own. Of a template's type it's a whole number.
        let signature = self.function.signature(self.db);
        let counter = match integer(&self.types().alias(&ty.base)) {
            Some(counter) => Some(counter),
            None if signature.template_types.contains(&ty.base) || ty.base == "auto" => None,
            None => return None,
        };
        let (up, by, by_text) = self.step(step, variable)?;
        let (op, limit) = match &body.expr(body.strip_parens(cond)).kind {
            ExprKind::Binary(op, a, b) if local(body, *a) == Some(variable) => (*op, *b),
            ExprKind::Binary(op, a, b) if local(body, *b) == Some(variable) => (mirrored(*op)?, *a),
            _ => return None,
        };
        let inclusive = match (op, up) {
            (BinOp::Lt, true) | (BinOp::Gt, false) => false,
            (BinOp::Le, true) | (BinOp::Ge, false) => true,
            (BinOp::Ne, _) if by == Some(1) => false,
            _ => return None,
        };
        if changes_around(self.db, self.function, body, limit, stmt) {
            return None;
        }
        Some(Head {
            variable,
            counter,
            first,
            op,
            limit,
            inclusive,
            up,
            by,
            by_text,
        })
    }

    /// The largest (or smallest) value that an operand of a loop's head has over the iterations of the loops around it, innermost first: an
    /// expression that none of them changes, and what is added to it. `None`: it changes in a way that nothing is known of.
    fn extreme(&self, operand: ExprId, outer: &[StmtId], largest: bool) -> Option<(ExprId, i128)> {
        let body = self.body;
        let (mut at, mut plus) = (operand, 0_i128);
        for stmt in outer {
            if !changes_around(self.db, self.function, body, at, *stmt) {
                continue;
            }
            let (rest, more) = match body.expr(body.strip_parens(at)).kind {
                ExprKind::Binary(BinOp::Add, a, b) => (a, self.constant(b)?),
                ExprKind::Binary(BinOp::Sub, a, b) => match self.constant(b) {
                    Some(less) => (a, less.checked_neg()?),
                    // `m - i`
                    None if !changes_around(self.db, self.function, body, a, *stmt) => {
                        let (other, more) = self.extreme(b, std::slice::from_ref(stmt), !largest)?;
                        let less = self.constant(other)?.checked_add(more)?;
                        (at, plus) = (a, plus.checked_sub(less)?);
                        continue;
                    }
                    None => return None,
                },
                _ => (at, 0),
            };
            let head = self.head(*stmt)?;
            if local(body, rest) != Some(head.variable) {
                return None;
            }
            let beyond = i128::from(!head.inclusive);
            let (end, within) = match (head.up, largest) {
                (true, true) => (head.limit, -beyond),
                (false, false) => (head.limit, beyond),
                (true, false) | (false, true) => (head.first, 0),
            };
            at = end;
            plus = plus.checked_add(more)?.checked_add(within)?;
        }
        Some((at, plus))
    }

    /// Iterations of a loop whose head counts.
    fn counted(&self, stmt: StmtId, outer: &[StmtId], of: Of) -> Option<Amount> {
        let body = self.body;
        let Head {
            counter,
            first,
            op,
            limit,
            inclusive,
            up,
            mut by,
            mut by_text,
            ..
        } = self.head(stmt)?;
        let (low, high) = if up { (first, limit) } else { (limit, first) };
        if let (Some(a), Some(b), Some(by)) = (self.constant(low), self.constant(high), by) {
            let distance = b.checked_sub(a)?.checked_add(i128::from(inclusive))?;
            // It gets to the limit when it has wrapped around.
            if op == BinOp::Ne && distance < 0 {
                return None;
            }
            let trips = distance.max(0).checked_add(by - 1)?.checked_div(by)?;
            let (start, last) = match up {
                true => (a, a.checked_add(trips.checked_mul(by)?)?),
                false => (b, b.checked_sub(trips.checked_mul(by)?)?),
            };
            // Its type holds all values that it gets, and none is taken for another when it's compared.
            let range = counter.map_or(Integer::INT.range(), |(_, range, _)| range);
            let negative = a < 0 || b < 0 || last < 0;
            let signed =
                counter.is_none_or(|(ty, _, _)| !ty.unsigned) && is_signed(self.db, self.function, body, limit);
            let held = |value: i128| Interval::new(value, value).within(range);
            if !held(start) || !held(last) || negative && !signed {
                return None;
            }
            return Some(Amount::exactly(u64::try_from(trips).ok()?));
        }
        // A small one gets to its limit when it has wrapped around.
        if op == BinOp::Ne && counter.is_some_and(|(_, _, holds_all)| !holds_all) {
            return None;
        }
        let shared = shared_by_head(self.db, self.function, self.body, stmt);
        if let Some(shared) = shared {
            let size = self.parent_size(Launchers::ManyThreads);
            let (known, text) = match shared.sharing {
                Sharing::Threads => (
                    size.blocks
                        .zip(size.threads)
                        .map(|(blocks, threads)| blocks.saturating_mul(threads)),
                    "gridDim.x * blockDim.x",
                ),
                Sharing::Blocks => (size.blocks, "gridDim.x"),
                Sharing::BlockThreads => (size.threads, "blockDim.x"),
            };
            by = known.filter(|n| *n > 0).map(i128::from);
            by_text = by.map_or(text.to_owned(), |by| by.to_string());
        }
        let ((low, below), (high, above)) = (self.extreme(low, outer, false)?, self.extreme(high, outer, true)?);
        let apart = above.checked_sub(below)?;
        if let (Some(a), Some(b), Some(by), None) = (self.constant(low), self.constant(high), by, shared) {
            let distance = b
                .checked_sub(a)?
                .checked_add(apart)?
                .checked_add(i128::from(inclusive))?;
            let trips = distance.max(0).checked_add(by - 1)?.checked_div(by)?;
            // Told as it is, but no number to rely on: the values in between may wrap around.
            return Some(Amount::up_to(Bound::Symbolic(trips.to_string())));
        }
        let mut distance = match shared {
            // Rounded up, it is for the thread that begins first: also where the threads don't agree on the limits.
            Some(Shared { first: Some(first), .. }) => self.difference(high, first),
            Some(_) => self.linear(high),
            None if of == Of::AnyThread && self.numbers_a_thread(low) => self.linear(high),
            None => self.difference(high, low),
        };
        distance.plus = distance.plus.checked_add(apart)?;
        // `a + b - 1` over `b` is the quotient, rounded up: the last iteration may be for less than a whole step.
        let more = i128::from(inclusive) - 1;
        let mut text = match by {
            Some(by) => distance.plus(by + more),
            None => {
                let text = format!("{} + {by_text}", distance.text);
                Linear { text, ..distance }.plus(more)
            }
        };
        if by != Some(1) {
            text = format!("{} / {}", Bound::Symbolic(text).factor(), divisor(&by_text));
        }
        Some(Amount::up_to(Bound::Symbolic(text)))
    }

    pub(super) fn types(&self) -> TypePlaces<'_> {
        TypePlaces {
            db: self.db,
            function: self.function,
            body: self.body,
        }
    }

    /// Anything in a statement that may change a variable.
    fn may_change(&self, stmt: StmtId, variable: BindingId) -> bool {
        let body = self.body;
        let mut stmts = vec![stmt];
        while let Some(next) = stmts.pop() {
            let (inner, mut exprs) = parts(body, next);
            stmts.extend(inner);
            if let StmtKind::Asm { mentions, .. } | StmtKind::Unknown { mentions, .. } = &body.stmt(next).kind
                && mentions.contains(&variable)
            {
                return true;
            }
            while let Some(e) = exprs.pop() {
                let is = |place: ExprId| local(body, place) == Some(variable);
                let changed = match &body.expr(e).kind {
                    ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => is(*place),
                    ExprKind::AddrOf(place) => is(*place),
                    ExprKind::Call { args, name, .. } => {
                        args.iter().any(|a| is(*a)) && !self.keeps_arguments(name.as_deref())
                    }
                    ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } => {
                        mentions.contains(&variable)
                    }
                    _ => false,
                };
                if changed {
                    return true;
                }
                exprs.extend(operands(&body.expr(e).kind));
            }
        }
        false
    }

    /// A library function that changes no argument that is a number.
    fn keeps_arguments(&self, name: Option<&str>) -> bool {
        name.is_some_and(|name| library_called(self.db, self.function, name).is_some())
    }

    /// A variable is changed in a way that no assignment shows: by a reference, a pointer, a lambda, a function.
    fn is_exposed(&self, variable: BindingId) -> bool {
        exposed(self.db, self.function, self.body, &self.types()).contains(&variable)
    }

    fn factor(&self, expr: ExprId) -> String {
        Bound::Symbolic(self.source(expr)).factor()
    }

    /// Direction, constant value and text of what is added to the variable.
    fn step(&self, step: ExprId, variable: BindingId) -> Option<(bool, Option<i128>, String)> {
        let body = self.body;
        let positive = |up: bool, by: ExprId| match self.constant(by) {
            Some(n) if n > 0 => Some((up, Some(n), n.to_string())),
            Some(_) => None,
            None => Some((up, None, self.factor(by))),
        };
        match &body.expr(body.strip_parens(step)).kind {
            ExprKind::IncDec { place, increment, .. } if local(body, *place) == Some(variable) => {
                Some((*increment, Some(1), "1".to_owned()))
            }
            ExprKind::Assign { op, place, value } if local(body, *place) == Some(variable) => match op {
                Some(BinOp::Add) => positive(true, *value),
                Some(BinOp::Sub) => positive(false, *value),
                None => match &body.expr(body.strip_parens(*value)).kind {
                    ExprKind::Binary(BinOp::Add, a, b) if local(body, *a) == Some(variable) => positive(true, *b),
                    ExprKind::Binary(BinOp::Add, b, a) if local(body, *a) == Some(variable) => positive(true, *b),
                    ExprKind::Binary(BinOp::Sub, a, b) if local(body, *a) == Some(variable) => positive(false, *b),
                    _ => None,
                },
                Some(_) => None,
            },
            _ => None,
        }
    }
}

/// The head of a loop that counts.
struct Head {
    variable: BindingId,
    /// What values the variable's type holds; `None`: a template's type.
    counter: Option<(Integer, Interval, bool)>,
    first: ExprId,
    op: BinOp,
    limit: ExprId,
    /// The limit itself is one of the values.
    inclusive: bool,
    up: bool,
    /// What is added, or taken away, in each iteration.
    by: Option<i128>,
    by_text: String,
}

/// An expression and a constant.
struct Linear {
    text: String,
    plus: i128,
}

impl Linear {
    /// The sum of it and `more`, as one writes it: `n + 1`, `n - 1`, `n`.
    fn plus(&self, more: i128) -> String {
        match self.plus.saturating_add(more) {
            0 => self.text.clone(),
            n if n < 0 => format!("{} - {}", self.text, n.unsigned_abs()),
            n => format!("{} + {n}", self.text),
        }
    }
}

/// The comparison with its sides exchanged.
pub(super) fn mirrored(op: BinOp) -> Option<BinOp> {
    Some(match op {
        BinOp::Lt => BinOp::Gt,
        BinOp::Le => BinOp::Ge,
        BinOp::Gt => BinOp::Lt,
        BinOp::Ge => BinOp::Le,
        BinOp::Eq | BinOp::Ne => op,
        _ => return None,
    })
}
