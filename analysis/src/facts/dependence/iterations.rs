//! Whether the iterations of a loop around a launch depend on each other.

use super::access::{Access, Footprint, Kind, Operation, child_footprint, own_footprint};
use super::children::counter;
use super::compare::{Comparison, Dependence, Doubt, Executions, Independence, Touch};
use super::location::Root;
use super::polynomial::{Polynomial, Symbol};
use super::subscript::Evaluator;
use super::variables::object;
use crate::base::db::Db;
use crate::base::span::Span;
use crate::facts::launch::{Launchers, grid_stride_limit, launches};
use crate::hir::flow::operands;
use crate::hir::items::FunctionItem;
use crate::hir::names::unqualified;
use crate::hir::{BinOp, BindingId, Body, ExprId, ExprKind, Name, StmtId, StmtKind, Storage, body};

/// What the iterations of a loop have to do with each other.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub enum Iterations<'db> {
    /// Nothing: they may run in any order, or at once.
    Parallel,
    /// They collect results by an operation that may be done in any order, at this place.
    Reduction(Operation, Touch<'db>),
    /// Each uses the result that such an operation has so far.
    Scan(Operation, Touch<'db>),
    /// A later one uses or overwrites what an earlier one did.
    Carried(Touch<'db>, Touch<'db>),
    /// An iteration decides whether there is another one, here.
    Ends(Span),
    /// Not known.
    Unknown(Doubt<'db>),
}

/// A loop around a launch.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct LoopDependence<'db> {
    /// The loop's head.
    pub span: Span,
    /// Its iterations.
    pub iterations: Iterations<'db>,
    /// What it goes over, where it's written as a grid-stride loop.
    pub grid_stride: Option<Span>,
}

/// For every launch of a function, in the order of [`launches`]: the loops around it, innermost first.
#[salsa::tracked]
pub fn loops<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Vec<LoopDependence<'db>>> {
    let all = launches(db, function);
    let body = body(db, function);
    if all.iter().all(|l| l.loops.is_empty() || l.launchers == Launchers::Host) {
        return all.iter().map(|_| Vec::new()).collect();
    }
    let evaluator = Evaluator::new(db, function, &body);
    let own = own_footprint(db, function);
    let mut found = Vec::new();
    for facts in all {
        let mut around = Vec::new();
        for (depth, l) in facts.loops.iter().enumerate() {
            let outer: Vec<StmtId> = facts.loops[depth + 1..].iter().map(|l| l.stmt).collect();
            let inside = Inside {
                db,
                function,
                body: &body,
                evaluator: &evaluator,
                span: body.stmt(l.stmt).span,
                stmt: l.stmt,
                outer: &outer,
            };
            let limit = grid_stride_limit(db, function, l.stmt);
            around.push(LoopDependence {
                span: l.span,
                grid_stride: limit.map(|limit| body.expr(limit).span),
                iterations: inside.iterations(&own),
            });
        }
        found.push(around);
    }
    found
}

/// Whether no two rounds of a loop have anything to do with each other, whichever two values its counter has in them and whoever runs
/// them: what one of them writes, no other one reads or writes.
pub fn rounds_are_independent(db: &dyn Db, function: FunctionItem<'_>, stmt: StmtId, index: BindingId) -> bool {
    let body = body(db, function);
    let evaluator = Evaluator::new(db, function, &body);
    let own = own_footprint(db, function);
    let span = body.stmt(stmt).span;
    let outside = |b: BindingId| !span.contains(body.binding(b).decl_span);
    let stable = |symbol: &Symbol| match symbol {
        Symbol::Opaque(e) => !span.contains(body.expr(*e).span),
        Symbol::Variable(b) => *b != index && outside(*b),
        _ => false,
    };
    let counters = [Some((Symbol::Variable(index), Polynomial::constant(1)))];
    let executions = Executions::Iterations {
        stable: &stable,
        counters: &counters,
    };
    let mut ranges = own.ranges.clone();
    ranges.extend(evaluator.ranges());
    // Each round has its own of what it declares.
    let shared = |root: &Root| match root {
        Root::Object(b) => outside(*b),
        _ => true,
    };
    let accesses = own.accesses.iter();
    let inside: Vec<Access<'_>> = accesses
        .filter(|a| span.contains(body.expr(a.at).span) && shared(&a.root))
        .cloned()
        .collect();
    let comparison = Comparison::new(db, function, &executions, [&ranges, &ranges]);
    own.gaps.is_empty() && comparison.all(&inside, &inside).is_none()
}

/// A loop, and what stays the same in its iterations.
pub(super) struct Inside<'a, 'db> {
    pub(super) db: &'db dyn Db,
    pub(super) function: FunctionItem<'db>,
    pub(super) body: &'a Body,
    pub(super) evaluator: &'a Evaluator<'a, 'db>,
    pub(super) span: Span,
    pub(super) stmt: StmtId,
    /// The loops around it.
    pub(super) outer: &'a [StmtId],
}

impl<'db> Inside<'_, 'db> {
    fn contains(&self, e: ExprId) -> bool {
        self.span.contains(self.body.expr(e).span)
    }

    fn touch(&self, e: ExprId, kind: Kind) -> Touch<'db> {
        Touch {
            meets: false,
            function: self.function,
            span: self.body.expr(e).span,
            kind,
        }
    }

    fn iterations(&self, own: &Footprint<'db>) -> Iterations<'db> {
        let body = self.body;
        if let Some(end) = self.early_end() {
            return Iterations::Ends(end);
        }
        let counted = match &body.stmt(self.stmt).kind {
            StmtKind::For { .. } => self.counter(&|s| self.stable(s)),
            StmtKind::RangeFor { .. } => None,
            StmtKind::While { cond: Some(cond), .. } | StmtKind::DoWhile { cond, .. } => {
                return Iterations::Ends(body.expr(*cond).span);
            }
            _ => return Iterations::Ends(self.span),
        };
        if counted.is_none() && !matches!(body.stmt(self.stmt).kind, StmtKind::RangeFor { .. }) {
            let reason = match grid_stride_limit(self.db, self.function, self.stmt) {
                Some(_) => "its stride is the number of threads in the grid, which isn't constant",
                None => "it has no counter with a constant stride",
            };
            return Iterations::Unknown(Doubt {
                reason: reason.to_owned(),
                place: None,
                pair: None,
            });
        }
        let counter = counted.as_ref().map(|(symbol, _)| symbol.clone());
        let mut result = self.scalars(counter.as_ref());
        // Outer loops stay where they are.
        let stable = |symbol: &Symbol| self.stable(symbol);
        let counters = [counted];
        let executions = Executions::Iterations {
            stable: &stable,
            counters: &counters,
        };
        let mut footprints: Vec<std::sync::Arc<Footprint<'db>>> = Vec::new();
        for (index, facts) in launches(self.db, self.function).iter().enumerate() {
            if self.contains(facts.expr) {
                footprints.push(child_footprint(self.db, self.function, index as u32));
            }
        }
        let mut ranges = own.ranges.clone();
        ranges.extend(self.evaluator.ranges());
        for gap in own
            .gaps
            .iter()
            .filter(|g| g.whole || g.function != self.function || self.span.contains(g.span))
        {
            result = worse(result, of(Dependence::gap(gap)));
        }
        let inside: Vec<Access<'db>> = own.accesses.iter().filter(|a| self.contains(a.at)).cloned().collect();
        let comparison = Comparison::new(self.db, self.function, &executions, [&ranges, &ranges]);
        result = self.pairs(result, &comparison, &inside, &inside);
        for (i, theirs) in footprints.iter().enumerate() {
            if let Some(gap) = theirs.gaps.first() {
                result = worse(result, of(Dependence::gap(gap)));
            }
            let comparison = Comparison::new(self.db, self.function, &executions, [&ranges, &theirs.ranges]);
            result = self.pairs(result, &comparison, &inside, &theirs.accesses);
            for others in &footprints[i..] {
                let comparison = Comparison::new(self.db, self.function, &executions, [&theirs.ranges, &others.ranges]);
                result = self.pairs(result, &comparison, &theirs.accesses, &others.accesses);
            }
        }
        result
    }

    /// Its counter, with what each iteration adds.
    pub(super) fn counter(&self, stable: &dyn Fn(&Symbol) -> bool) -> Option<(Symbol, super::polynomial::Polynomial)> {
        counter(self.evaluator, self.stmt, stable)
    }

    /// It's computed before the loop and not in it, or counts an outer one.
    pub(super) fn stable(&self, symbol: &Symbol) -> bool {
        match symbol {
            Symbol::Opaque(e) => !self.contains(*e),
            Symbol::Variable(b) => {
                let counters = self.evaluator.variables.counters.get(b);
                let counts = counters.is_some_and(|all| all.iter().any(|c| !self.outer.contains(&c.stmt)));
                !counts && !self.span.contains(self.body.binding(*b).decl_span)
            }
            _ => false,
        }
    }

    /// What leaves the loop other than by its condition.
    pub(super) fn early_end(&self) -> Option<Span> {
        let inside = |s: &Span| self.span.contains(*s) && *s != self.span;
        // What leaves a lambda doesn't leave the loop around it.
        let lambdas: Vec<Span> = self
            .body
            .exprs
            .iter()
            .filter(|expr| matches!(expr.kind, ExprKind::Lambda { .. }) && !expr.from_macro && inside(&expr.span))
            .map(|expr| expr.span)
            .collect();
        self.body.stmts.iter().find_map(|stmt| {
            let leaves = match &stmt.kind {
                StmtKind::Unknown { .. } => true,
                _ if lambdas.iter().any(|lambda| lambda.contains(stmt.span)) => false,
                StmtKind::Return(_) | StmtKind::Goto(_) | StmtKind::Label(..) => true,
                StmtKind::Break => self.breaks_this(stmt.span),
                _ => false,
            };
            (leaves && inside(&stmt.span)).then_some(stmt.span)
        })
    }

    /// A `break` belongs to the innermost loop or `switch` around it.
    fn breaks_this(&self, at: Span) -> bool {
        let around = self.body.stmts.iter().enumerate().filter(|(_, s)| {
            s.span.contains(at)
                && matches!(
                    s.kind,
                    StmtKind::For { .. }
                        | StmtKind::While { .. }
                        | StmtKind::DoWhile { .. }
                        | StmtKind::RangeFor { .. }
                        | StmtKind::Switch { .. }
                )
        });
        let innermost = around.min_by_key(|(_, s)| s.span.end - s.span.start);
        innermost.is_none_or(|(i, _)| StmtId(i as u32) == self.stmt)
    }

    fn pairs(
        &self,
        mut result: Iterations<'db>,
        comparison: &Comparison<'_, 'db>,
        a: &[Access<'db>],
        b: &[Access<'db>],
    ) -> Iterations<'db> {
        for x in a {
            for y in b {
                // A variable that an iteration declares is its own.
                let local = |access: &Access<'db>| match access.root {
                    super::location::Root::Object(b) => {
                        self.body.binding(b).storage != Storage::Local
                            || !self.span.contains(self.body.binding(b).decl_span)
                    }
                    _ => true,
                };
                if x.kind.reads_only() && y.kind.reads_only() || !local(x) || !local(y) {
                    continue;
                }
                let pair = comparison.pair(x, y);
                let collects = match (x.kind, y.kind) {
                    (Kind::Update { operation: Some(a) }, Kind::Update { operation: Some(b) })
                    | (Kind::Atomic { operation: Some(a) }, Kind::Atomic { operation: Some(b) })
                        if a == b && x.width.is_some() && x.width == y.width =>
                    {
                        Some(a)
                    }
                    _ => None,
                };
                let next = match (pair, collects) {
                    (Dependence::None(Independence::Commuting), Some(op)) => {
                        Iterations::Reduction(op, Touch::of(x, false))
                    }
                    (Dependence::Conflict(..) | Dependence::Unknown(_), Some(op)) => {
                        Iterations::Reduction(op, Touch::of(x, false))
                    }
                    (pair, _) => of(pair),
                };
                result = worse(result, next);
            }
        }
        result
    }

    /// Variables of the thread that outlive an iteration.
    fn scalars(&self, counter: Option<&Symbol>) -> Iterations<'db> {
        let body = self.body;
        let mut result = Iterations::Parallel;
        for (i, binding) in body.bindings.iter().enumerate() {
            let b = BindingId(i as u32);
            let counts = matches!(counter, Some(Symbol::Variable(c)) if *c == b);
            if counts
                || self.span.contains(binding.decl_span) && !self.declared_in_head(b)
                || !binding.ty.array.is_empty()
            {
                continue;
            }
            let mut writes: Vec<(ExprId, Option<Operation>)> = Vec::new();
            for (i, expr) in body.exprs.iter().enumerate() {
                let e = ExprId(i as u32);
                let (ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. }) = &expr.kind else {
                    continue;
                };
                if object(&self.evaluator.places, *place) == Some(b) && self.contains(e) {
                    writes.push((e, self.collects(b, e)));
                }
            }
            let Some((first, operation)) = writes.first().copied() else {
                continue;
            };
            let uses = self.uses(b, &writes);
            let whole = |e: ExprId| matches!(&body.expr(e).kind, ExprKind::Assign { op: None, .. });
            let next = match operation {
                Some(op) if writes.iter().all(|(_, o)| *o == Some(op)) => match uses.first() {
                    None => Iterations::Reduction(op, self.touch(first, Kind::Update { operation })),
                    Some(_) => Iterations::Scan(op, self.touch(first, Kind::Update { operation })),
                },
                _ => {
                    let read = uses.first().copied().unwrap_or(first);
                    // Written before anything reads it, and nothing does behind the loop.
                    let private = writes.iter().all(|(e, _)| whole(*e)) && self.private(b, first);
                    if private {
                        continue;
                    }
                    Iterations::Carried(self.touch(first, Kind::Write(None)), self.touch(read, Kind::Read))
                }
            };
            result = worse(result, next);
        }
        result
    }

    fn declared_in_head(&self, b: BindingId) -> bool {
        let StmtKind::For { init: Some(init), .. } = self.body.stmt(self.stmt).kind else {
            return false;
        };
        self.body.stmt(init).span.contains(self.body.binding(b).span)
    }

    /// `x += e`, `x = max(x, e)`, with a result that goes nowhere.
    fn collects(&self, b: BindingId, e: ExprId) -> Option<Operation> {
        let body = self.body;
        let stmt = self.evaluator.around.statement_of(e)?;
        let alone = matches!(&body.stmt(stmt).kind, StmtKind::Expr(whole) if body.strip_parens(*whole) == e);
        if !alone {
            return None;
        }
        let own = |e: ExprId| body.expr(body.strip_parens(e)).kind == ExprKind::Name(Name::Local(b));
        match &body.expr(e).kind {
            ExprKind::IncDec { place, .. } if own(*place) => Some(Operation::Add),
            ExprKind::Assign {
                op: Some(op),
                place,
                value,
            } if own(*place) && !self.mentions(b, *value) => match op {
                BinOp::Add | BinOp::Sub => Some(Operation::Add),
                BinOp::Mul => Some(Operation::Multiply),
                BinOp::BitAnd => Some(Operation::And),
                BinOp::BitOr => Some(Operation::Or),
                BinOp::BitXor => Some(Operation::Xor),
                _ => None,
            },
            ExprKind::Assign { op: None, place, value } if own(*place) => {
                match &body.expr(body.strip_parens(*value)).kind {
                    ExprKind::Call {
                        name: Some(name), args, ..
                    } => {
                        let [x, y] = args.as_slice() else { return None };
                        let other = if own(*x) { *y } else { *x };
                        if !own(*x) && !own(*y) || self.mentions(b, other) {
                            return None;
                        }
                        match unqualified(name) {
                            "min" | "fminf" | "fmin" => Some(Operation::Minimum),
                            "max" | "fmaxf" | "fmax" => Some(Operation::Maximum),
                            _ => None,
                        }
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn mentions(&self, b: BindingId, e: ExprId) -> bool {
        let mut todo = vec![e];
        while let Some(e) = todo.pop() {
            match &self.body.expr(e).kind {
                ExprKind::Name(Name::Local(x)) if *x == b => return true,
                ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } if mentions.contains(&b) => {
                    return true;
                }
                kind => todo.extend(operands(kind)),
            }
        }
        false
    }

    /// Places in the loop that use a variable, other than the assignments to it.
    fn uses(&self, b: BindingId, writes: &[(ExprId, Option<Operation>)]) -> Vec<ExprId> {
        let all = (0..self.body.exprs.len() as u32).map(ExprId);
        let uses = all.filter(|e| match &self.body.expr(*e).kind {
            ExprKind::Name(Name::Local(x)) => *x == b,
            ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } => mentions.contains(&b),
            _ => false,
        });
        uses.filter(|e| {
            let span = self.body.expr(*e).span;
            let part = |(w, op): &(ExprId, Option<Operation>)| op.is_some() && self.body.expr(*w).span.contains(span);
            self.contains(*e) && !writes.iter().any(part)
        })
        .filter(|e| {
            // The place of a plain assignment isn't a use.
            !writes.iter().any(|(w, _)| match &self.body.expr(*w).kind {
                ExprKind::Assign { op: None, place, .. } => self.body.strip_parens(*place) == *e,
                _ => false,
            })
        })
        .collect()
    }

    /// The first statement of the loop's body that names the variable assigns it, unconditionally; nothing outside names it.
    fn private(&self, b: BindingId, first: ExprId) -> bool {
        let body = self.body;
        let own_stmt = self.evaluator.around.statement_of(first);
        let inner = match body.stmt(self.stmt).kind {
            StmtKind::For { body, .. } | StmtKind::RangeFor { body, .. } => body,
            _ => return false,
        };
        let StmtKind::Block(stmts) = &body.stmt(inner).kind else {
            return own_stmt == Some(inner);
        };
        let names: Vec<Span> = (0..body.exprs.len() as u32)
            .map(ExprId)
            .filter(|e| match &body.expr(*e).kind {
                ExprKind::Name(Name::Local(x)) => *x == b,
                ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } => mentions.contains(&b),
                _ => false,
            })
            .map(|e| body.expr(e).span)
            .collect();
        let inside = names.iter().all(|s| body.stmt(inner).span.contains(*s));
        let head = stmts
            .iter()
            .find(|s| names.iter().any(|n| body.stmt(**s).span.contains(*n)));
        let ExprKind::Assign { value, .. } = body.expr(first).kind else {
            return false;
        };
        inside && head.copied() == own_stmt && own_stmt.is_some() && !self.mentions(b, value)
    }
}

fn of(dependence: Dependence<'_>) -> Iterations<'_> {
    match dependence {
        Dependence::None(_) => Iterations::Parallel,
        Dependence::Conflict(a, b) => Iterations::Carried(a, b),
        Dependence::Unknown(doubt) => Iterations::Unknown(doubt),
    }
}

/// The less parallel of the two.
fn worse<'db>(a: Iterations<'db>, b: Iterations<'db>) -> Iterations<'db> {
    let rank = |i: &Iterations<'db>| match i {
        Iterations::Parallel => 0,
        Iterations::Reduction(..) => 1,
        Iterations::Scan(..) => 2,
        Iterations::Unknown(_) => 3,
        Iterations::Carried(..) | Iterations::Ends(_) => 4,
    };
    if rank(&b) > rank(&a) { b } else { a }
}
