//! Loops that count and launch nothing: what an iteration does to memory, against the other iterations and against what the kernel does
//! after the loop.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::access::{Access, Footprint, Gap, Kind, WAITS, own_footprint};
use super::compare::{Comparison, Dependence, Executions, Touch, is_size};
use super::integer::Integer;
use super::iterations::Inside;
use super::location::Root;
use super::parent::evaluated_behind;
use super::subscript::Evaluator;
use super::variables::exposed;
use crate::base::db::Db;
use crate::base::span::Span;
use crate::facts::launch::statement_places;
use crate::facts::uniformity::changes_around;
use crate::facts::uniformity::memory::Places;
use crate::hir::flow::Flow;
use crate::hir::items::FunctionItem;
use crate::hir::names::unqualified;
use crate::hir::plain_types::{is_plain_type, is_vector_type};
use crate::hir::resolve::{Meaning, meaning_in};
use crate::hir::{BinOp, BindingId, Body, ExprId, ExprKind, Literal, Name, StmtId, StmtKind, Storage, body};

/// A loop `for (T i = first; i < limit; i += step)` whose head says how often it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedLoop {
    /// The loop.
    pub stmt: StmtId,
    /// What it declares in its head and counts with.
    pub counter: BindingId,
    /// The counter's type: 32 bits.
    pub counts: Integer,
    /// Its first value.
    pub first: ExprId,
    /// What it is compared with: the same in all iterations.
    pub limit: ExprId,
    /// The type of that.
    pub limits: Integer,
    /// `<=` rather than `<`.
    pub inclusive: bool,
    /// What is added in each iteration: 1 at least.
    pub step: u32,
    /// What it repeats.
    pub body: StmtId,
}

/// Why a loop isn't counted so: a fragment of a sentence, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotCounted {
    /// Why.
    pub reason: &'static str,
    /// Where, in the function.
    pub span: Span,
}

/// Two accesses that may be to one place, by two iterations or by an iteration and what follows the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash<'db> {
    /// What sort of clash it is.
    pub sort: Sort,
    /// An iteration's.
    pub one: Touch<'db>,
    /// The other one.
    pub other: Touch<'db>,
    /// Why nothing more is known; empty where it is certain.
    pub reason: String,
}

/// What two accesses have to do with each other, from the harmless to the certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    /// They add numbers atomically, whose sum depends on the order in its last digits.
    Sums,
    /// Both are atomic, and who comes first may find something else.
    Atomics,
    /// They begin at different pointers, which may lead to the same memory.
    Overlap,
    /// They are to elements of one array, which may be the same.
    Elements,
    /// One of them changes or uses what the other one does, in all likelihood.
    Depends,
}

/// Looks at the head of a loop.
///
/// # Errors
/// It isn't counted, or by numbers that may leave 32 bits.
pub fn counted_loop(db: &dyn Db, function: FunctionItem<'_>, stmt: StmtId) -> Result<CountedLoop, NotCounted> {
    let body = &*body(db, function);
    let span = body.stmt(stmt).span;
    let no = |reason: &'static str, span: Span| NotCounted { reason, span };
    let StmtKind::For {
        init,
        cond,
        step,
        body: inner,
    } = body.stmt(stmt).kind
    else {
        return Err(no("the loop isn't a `for` with a counter", span));
    };
    let declared = init.and_then(|init| match &body.stmt(init).kind {
        StmtKind::Decl(decls) => match decls.as_slice() {
            [one] => Some((one.binding, one.init?)),
            _ => None,
        },
        _ => None,
    });
    let Some((counter, first)) = declared else {
        return Err(no(
            "the loop's head doesn't declare one counter with its first value",
            span,
        ));
    };
    let is_counter = |e: ExprId| body.expr(body.strip_parens(e)).kind == ExprKind::Name(Name::Local(counter));
    let (inclusive, limit) = match cond.map(|cond| &body.expr(body.strip_parens(cond)).kind) {
        Some(ExprKind::Binary(BinOp::Lt, left, right)) if is_counter(*left) => (false, *right),
        Some(ExprKind::Binary(BinOp::Le, left, right)) if is_counter(*left) => (true, *right),
        _ => {
            return Err(no(
                "the loop doesn't go on while its counter is less than a number",
                span,
            ));
        }
    };
    let constant = |e: ExprId| match body.expr(body.strip_parens(e)).kind {
        ExprKind::Literal(Literal::Int(n)) => u32::try_from(n).ok().filter(|n| (1..=1 << 20).contains(n)),
        _ => None,
    };
    let step = match step.map(|step| &body.expr(body.strip_parens(step)).kind) {
        Some(ExprKind::IncDec {
            place, increment: true, ..
        }) if is_counter(*place) => Some(1),
        Some(ExprKind::Assign {
            op: Some(BinOp::Add),
            place,
            value,
        }) if is_counter(*place) => constant(*value),
        _ => None,
    };
    let Some(step) = step else {
        return Err(no("the loop doesn't add a constant to its counter", span));
    };
    let evaluator = Evaluator::new(db, function, body);
    let variable = body.binding(counter);
    let own = super::integer::integer(&evaluator.places.alias(&variable.ty.base));
    let counts = match own {
        Some((ty, _, true)) if variable.ty.is_value() && !variable.ty.volatile => ty,
        _ => return Err(no("the loop's counter isn't an `int` or an `unsigned`", variable.span)),
    };
    if !matches!(counts, Integer::INT | Integer::UNSIGNED) {
        return Err(no("the loop's counter isn't an `int` or an `unsigned`", variable.span));
    }
    let Some(limits) = evaluator.integer_type(limit) else {
        return Err(no("the type of the loop's limit isn't known", body.expr(limit).span));
    };
    // Where it wraps around, a thread goes on for ever; what counts iterations would not.
    let wraps = counts.unsigned && (step > 1 || inclusive || limits.narrow > 32 || limits.wide > 32);
    if wraps || inclusive && limits != Integer::INT || limits.narrow != limits.wide {
        return Err(no(
            "the loop's counter may wrap around in front of its limit",
            body.expr(limit).span,
        ));
    }
    if evaluator.integer_type(first).is_none() {
        return Err(no(
            "the type of the counter's first value isn't known",
            body.expr(first).span,
        ));
    }
    if exposed(db, function, body, &evaluator.places).contains(&counter) || assigned_in(body, inner, counter) {
        return Err(no("the loop's counter changes in its body", variable.span));
    }
    if changes_around(db, function, body, limit, stmt) && names_locals_that_change(db, function, body, stmt, limit) {
        return Err(no("the loop's limit changes while it runs", body.expr(limit).span));
    }
    Ok(CountedLoop {
        stmt,
        counter,
        counts,
        first,
        limit,
        limits,
        inclusive,
        step,
        body: inner,
    })
}

/// Whether a statement assigns to a variable.
fn assigned_in(body: &Body, stmt: StmtId, variable: BindingId) -> bool {
    let span = body.stmt(stmt).span;
    body.exprs.iter().any(|expr| match expr.kind {
        ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => {
            span.contains(expr.span)
                && body.expr(body.strip_parens(place)).kind == ExprKind::Name(Name::Local(variable))
        }
        _ => false,
    })
}

/// Whether a limit changes for another reason than that memory may be written, which the accesses tell.
fn names_locals_that_change(db: &dyn Db, function: FunctionItem<'_>, body: &Body, stmt: StmtId, limit: ExprId) -> bool {
    let mut parts = crate::hir::walk::all_in_expr(body, limit).into_iter();
    parts.any(|e| match &body.expr(e).kind {
        ExprKind::Name(Name::Local(_)) => changes_around(db, function, body, e, stmt),
        ExprKind::Literal(_)
        | ExprKind::Name(_)
        | ExprKind::Paren(_)
        | ExprKind::Unary(..)
        | ExprKind::Binary(..)
        | ExprKind::Index { .. }
        | ExprKind::Deref(_)
        | ExprKind::Field { .. }
        | ExprKind::Cast { .. } => false,
        _ => true,
    })
}

/// What a loop does to memory.
pub struct LoopMemory<'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: Arc<Body>,
    stmt: StmtId,
    span: Span,
    own: Arc<Footprint<'db>>,
}

impl<'db> LoopMemory<'db> {
    /// Looks at a loop.
    pub fn of(db: &'db dyn Db, function: FunctionItem<'db>, stmt: StmtId) -> LoopMemory<'db> {
        let body = body(db, function);
        LoopMemory {
            db,
            function,
            span: body.stmt(stmt).span,
            body,
            stmt,
            own: own_footprint(db, function),
        }
    }

    /// An expression that is evaluated in an iteration, or before each.
    fn repeats(&self, e: ExprId) -> bool {
        let span = self.body.expr(e).span;
        let once = match self.body.stmt(self.stmt).kind {
            StmtKind::For { init: Some(init), .. } => self.body.stmt(init).span.contains(span),
            _ => false,
        };
        self.span.contains(span) && !once
    }

    /// What isn't known of what the loop does.
    pub fn gap(&self) -> Option<&Gap<'db>> {
        // A counted loop has as many iterations as its head says.
        let itself = |gap: &&Gap<'db>| gap.reason == WAITS && gap.at.is_none() && gap.span == self.span;
        self.own
            .gaps
            .iter()
            .filter(|gap| !itself(gap))
            .find(|gap| match gap.at {
                Some(at) => self.repeats(at),
                None => gap.whole || gap.function != self.function || self.span.contains(gap.span),
            })
    }

    /// What leaves the loop otherwise than by its condition.
    pub fn leaves(&self) -> Option<Span> {
        let evaluator = Evaluator::new(self.db, self.function, &self.body);
        self.as_inside(&evaluator, &[]).early_end()
    }

    fn as_inside<'a>(&'a self, evaluator: &'a Evaluator<'a, 'db>, outer: &'a [StmtId]) -> Inside<'a, 'db> {
        Inside {
            db: self.db,
            function: self.function,
            body: &self.body,
            evaluator,
            span: self.span,
            stmt: self.stmt,
            outer,
        }
    }

    fn inside(&self) -> impl Iterator<Item = &Access<'db>> {
        // Each iteration has its own of what it declares.
        let shared = |access: &&Access<'db>| match access.root {
            Root::Object(b) => {
                let variable = self.body.binding(b);
                variable.storage != Storage::Local || !self.span.contains(variable.decl_span)
            }
            _ => true,
        };
        self.own.accesses.iter().filter(|a| self.repeats(a.at)).filter(shared)
    }

    /// An iteration changes memory that others may see.
    pub fn writes(&self) -> bool {
        let private = |root: &Root| matches!(root, Root::Object(_));
        self.inside()
            .any(|access| !access.kind.reads_only() && !private(&access.root))
    }

    /// The accesses by which two iterations may have to do with each other.
    pub fn between(&self) -> Vec<Clash<'db>> {
        let (db, function, body) = (self.db, self.function, &*self.body);
        let evaluator = Evaluator::new(db, function, body);
        let StmtKind::For { cond: Some(cond), .. } = body.stmt(self.stmt).kind else {
            return Vec::new();
        };
        let around = statement_places(db, function).loops_around(body, cond);
        let outer: Vec<StmtId> = around.iter().map(|l| l.stmt).filter(|s| *s != self.stmt).collect();
        let inside = self.as_inside(&evaluator, &outer);
        let stable = |symbol: &super::polynomial::Symbol| inside.stable(symbol);
        let counters = [inside.counter(&stable)];
        let executions = Executions::Iterations {
            stable: &stable,
            counters: &counters,
        };
        let mut ranges = self.own.ranges.clone();
        ranges.extend(evaluator.ranges());
        let comparison = Comparison::new(db, function, &executions, [&ranges, &ranges]);
        let head = body.expr(cond).span;
        let all: Vec<&Access<'db>> = self.inside().collect();
        let mut found = Vec::new();
        for (index, one) in all.iter().enumerate() {
            for other in &all[index..] {
                db.unwind_if_revision_cancelled();
                if self.write_alike(one, other) {
                    continue;
                }
                let Some(mut clash) = self.clash(&comparison, one, other) else {
                    continue;
                };
                // Its end is found out once, before all iterations.
                let decides = [one, other].iter().any(|a| head.contains(body.expr(a.at).span));
                if decides && clash.sort > Sort::Overlap {
                    clash.sort = Sort::Depends;
                }
                found.push(clash);
            }
        }
        found
    }

    /// The accesses by which an iteration may have to do with what the function does after the loop, in whatever thread: in a later
    /// iteration of a loop around it, too. And what isn't known of that.
    pub fn after(&self) -> (Vec<Clash<'db>>, Option<&Gap<'db>>) {
        let (db, function, body) = (self.db, self.function, &*self.body);
        let flow = Flow::of(body);
        let cond = match body.stmt(self.stmt).kind {
            StmtKind::For { cond: Some(cond), .. } => cond,
            _ => ExprId(0),
        };
        let (forward, later) = evaluated_behind(&flow, cond);
        let known = flow.expr_block.contains_key(&cond);
        let outside = |e: &ExprId| !self.span.contains(body.expr(*e).span);
        let again = later.iter().any(outside) || !known;
        // A later round of a loop around this one evaluates its head anew.
        let init = match body.stmt(self.stmt).kind {
            StmtKind::For { init: Some(init), .. } => Some(body.stmt(init).span),
            _ => None,
        };
        let head = |e: ExprId| {
            let span = body.expr(e).span;
            known && body.expr(cond).span.contains(span) || init.is_some_and(|init| init.contains(span))
        };
        let of_head = |e: ExprId| again && head(e);
        let behind: BTreeSet<ExprId> = forward.union(&later).copied().filter(outside).collect();
        let follows = |at: Option<ExprId>, span: Span| match at {
            Some(at) if known && flow.expr_block.contains_key(&at) => behind.contains(&at),
            _ => (again || span.end > self.span.start) && !self.span.contains(span),
        };
        let gap = self.own.gaps.iter().find(|gap| {
            let own = gap.function == function && !gap.whole;
            let span = if own { gap.span } else { Span::new(0, u32::MAX) };
            let inside = |at: ExprId| self.span.contains(body.expr(at).span) && !of_head(at);
            !gap.at.is_some_and(inside) && (follows(gap.at, span) || gap.at.is_some_and(of_head))
        });
        let executions = Executions::Grid;
        let mut ranges = self.own.ranges.clone();
        ranges.extend(Evaluator::new(db, function, body).ranges());
        let comparison = Comparison::new(db, function, &executions, [&ranges, &ranges]);
        let mut found = Vec::new();
        for ours in &self.own.accesses {
            let outside = !self.span.contains(body.expr(ours.at).span) && follows(Some(ours.at), ours.span);
            if !(outside || of_head(ours.at)) || matches!(ours.root, Root::Object(_)) {
                continue;
            }
            for theirs in self.inside().filter(|a| !matches!(a.root, Root::Object(_))) {
                db.unwind_if_revision_cancelled();
                found.extend(self.clash(&comparison, theirs, ours));
            }
        }
        (found, gap)
    }

    fn clash(&self, comparison: &Comparison<'_, 'db>, one: &Access<'db>, other: &Access<'db>) -> Option<Clash<'db>> {
        if one.kind.reads_only() && other.kind.reads_only() {
            return None;
        }
        let (certain, reason) = match comparison.pair(one, other) {
            Dependence::None(_) => return None,
            Dependence::Conflict(..) => (true, String::new()),
            Dependence::Unknown(doubt) => (false, doubt.reason),
        };
        let atomic = |access: &Access<'db>| matches!(access.kind, Kind::Atomic { .. });
        let plain = |access: &Access<'db>| matches!(access.kind, Kind::Read | Kind::Write(None));
        let sort = if atomic(one) && atomic(other) {
            match self.sums(one) && self.sums(other) && one.width == other.width {
                true => Sort::Sums,
                false => Sort::Atomics,
            }
        } else if !certain && one.root != other.root {
            Sort::Overlap
        } else if certain
            || [one, other]
                .iter()
                .any(|a| matches!(a.kind, Kind::Update { .. } | Kind::Free))
        {
            Sort::Depends
        } else if plain(one) && plain(other) && one.kind != other.kind {
            // One reads the array into which the other one writes what it has computed.
            Sort::Depends
        } else {
            Sort::Elements
        };
        Some(Clash {
            sort,
            one: Touch::of(one, false),
            other: Touch::of(other, false),
            reason,
        })
    }

    /// Both write the same value, whichever iterations they stand in: `*changed = level + 1`. Who comes last makes no difference.
    fn write_alike(&self, one: &Access<'db>, other: &Access<'db>) -> bool {
        let body = &*self.body;
        let written = |access: &Access<'db>| {
            let here = access.function == self.function && access.width.is_some();
            let plain = matches!(access.kind, Kind::Write(_)) && here;
            body.exprs.iter().find_map(|expr| match expr.kind {
                ExprKind::Assign { op: None, place, value } if plain && body.strip_parens(place) == access.at => {
                    Some(value)
                }
                _ => None,
            })
        };
        let (Some(one_value), Some(other_value)) = (written(one), written(other)) else {
            return false;
        };
        // Numbers of one type: places of another one may overlap in parts, and hold other bits.
        let places = Places {
            db: self.db,
            function: self.function,
            body,
        };
        let number = |access: &Access<'db>| {
            let shape = places.shape(access.at).filter(|s| s.pointers == 0 && s.dims == 0)?;
            let base = places.alias(&shape.base);
            (is_plain_type(&base) && !is_vector_type(&base) && is_size(&access.width)).then_some(base)
        };
        let same_type = number(one).is_some_and(|ty| number(other) == Some(ty));
        let text = self.function.text(self.db);
        let written = |e: ExprId| body.expr(e).span.text(&text);
        let same = one_value == other_value || written(one_value) == written(other_value);
        same && same_type && self.stays(one_value) && self.stays(other_value)
    }

    /// A number that is made of constants and of variables of the thread that the loop doesn't change.
    fn stays(&self, value: ExprId) -> bool {
        let body = &*self.body;
        let places = Places {
            db: self.db,
            function: self.function,
            body,
        };
        let plain = crate::hir::walk::all_in_expr(body, value)
            .into_iter()
            .all(|e| match &body.expr(e).kind {
                ExprKind::Name(Name::Local(b)) => {
                    let variable = body.binding(*b);
                    let own = matches!(variable.storage, Storage::Local | Storage::Param);
                    own && variable.ty.is_value()
                        && is_plain_type(&places.alias(&variable.ty.base))
                        && !variable.ty.volatile
                        && !self.span.contains(variable.decl_span)
                }
                ExprKind::Name(Name::Builtin(_)) => true,
                ExprKind::Name(Name::Other(name)) => match meaning_in(self.db, self.function, name) {
                    Meaning::Enumerator(_) => true,
                    Meaning::Global(global) => global.constant || global.constant_memory,
                    _ => false,
                },
                ExprKind::Field { base, .. } => matches!(body.expr(*base).kind, ExprKind::Name(Name::Builtin(_))),
                ExprKind::Literal(_)
                | ExprKind::Paren(_)
                | ExprKind::Unary(..)
                | ExprKind::Binary(..)
                | ExprKind::Conditional { .. }
                | ExprKind::Cast { .. } => !body.expr(e).from_macro,
                _ => false,
            });
        plain && !changes_around(self.db, self.function, body, value, self.stmt)
    }

    /// `atomicAdd(p, x);`, whose result goes nowhere.
    fn sums(&self, access: &Access<'db>) -> bool {
        let body = &self.body;
        let adds = match &body.expr(access.at).kind {
            ExprKind::Call { name: Some(name), .. } => unqualified(name) == "atomicAdd",
            _ => false,
        };
        let unused = body
            .stmts
            .iter()
            .any(|stmt| matches!(stmt.kind, StmtKind::Expr(e) if body.strip_parens(e) == access.at));
        adds && unused && access.function == self.function
    }
}
