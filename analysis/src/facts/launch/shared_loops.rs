//! Loops whose iterations threads share among them: `for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)`,
//! a grid-stride loop, does each of its iterations once in the whole grid, however many threads there are.

use super::config::{definition, stable};
use super::launchers::launched_dimensions;
use crate::base::db::Db;
use crate::facts::dependence::integer;
use crate::facts::uniformity::memory::Places as TypePlaces;
use crate::facts::uniformity::{Level, uniformity};
use crate::hir::items::FunctionItem;
use crate::hir::resolve::only_known_launches;
use crate::hir::{BinOp, BindingId, Body, Builtin, ExprId, ExprKind, Name, StmtId, StmtKind, body};

/// Who shares the iterations of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// The threads of the grid.
    Threads,
    /// The blocks of the grid: each thread of a block does what its block does.
    Blocks,
    /// The threads of a block: each block does all of it.
    BlockThreads,
}

/// A loop whose iterations are shared, each of which some thread (or block) does once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared {
    /// Who shares them.
    pub sharing: Sharing,
    /// They are numbered up to this, without it.
    pub limit: ExprId,
    /// From this on, where it isn't 0.
    pub first: Option<ExprId>,
}

/// How the iterations of a loop are shared, if they are. That its variable changes by nothing but its step, the caller has seen.
pub(super) fn shared_loop<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    stmt: StmtId,
) -> Option<Shared> {
    let shared = shared_by_head(db, function, body, stmt)?;
    // All who share have to agree on where it begins and ends.
    let levels = uniformity(db, function);
    let mut level = levels.exprs.get(&shared.limit)?.level;
    if let Some(first) = shared.first {
        level = level.max(levels.exprs.get(&first)?.level);
    }
    let agreed = match shared.sharing {
        Sharing::BlockThreads => level <= Level::Block,
        _ => level <= Level::Grid,
    };
    agreed.then_some(shared)
}

/// The same, but those who share a loop may not agree on where it begins and ends: each goes over its own part of what it would do alone.
pub(super) fn shared_by_head<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    stmt: StmtId,
) -> Option<Shared> {
    written_as_shared(db, function, body, stmt).filter(|_| only_in_x(db, function))
}

/// What a loop is written to go over where its head is that of a grid-stride loop: `n`. For people: nothing proves that its threads agree.
pub fn grid_stride_limit<'db>(db: &'db dyn Db, function: FunctionItem<'db>, stmt: StmtId) -> Option<ExprId> {
    let shared = written_as_shared(db, function, &body(db, function), stmt)?;
    (shared.sharing == Sharing::Threads).then_some(shared.limit)
}

/// Who shares the iterations of a loop by its head.
fn written_as_shared<'db>(db: &'db dyn Db, function: FunctionItem<'db>, body: &Body, stmt: StmtId) -> Option<Shared> {
    let StmtKind::For {
        init: Some(init),
        cond: Some(cond),
        step: Some(step),
        ..
    } = body.stmt(stmt).kind
    else {
        return None;
    };
    let StmtKind::Decl(decls) = &body.stmt(init).kind else {
        return None;
    };
    let [decl] = decls.as_slice() else { return None };
    let is_variable = |expr: ExprId| matches!(body.expr(body.strip_parens(expr)).kind, ExprKind::Name(Name::Local(b)) if b == decl.binding);
    let limit = match body.expr(body.strip_parens(cond)).kind {
        ExprKind::Binary(BinOp::Lt, i, limit) | ExprKind::Binary(BinOp::Gt, limit, i) if is_variable(i) => limit,
        _ => return None,
    };
    let by = match body.expr(body.strip_parens(step)).kind {
        ExprKind::Assign {
            op: Some(BinOp::Add),
            place,
            value,
        } if is_variable(place) => value,
        ExprKind::Assign { op: None, place, value } if is_variable(place) => {
            match body.expr(body.strip_parens(value)).kind {
                ExprKind::Binary(BinOp::Add, a, b) if is_variable(a) => b,
                ExprKind::Binary(BinOp::Add, a, b) if is_variable(b) => a,
                _ => return None,
            }
        }
        _ => return None,
    };
    let seen = Seen { db, function, body };
    let from = decl.init.filter(|_| seen.keeps_numbers(decl.binding))?;
    use Builtin::{BlockDim, BlockIdx, GridDim, ThreadIdx};
    let mut first = None;
    let sharing = if seen.is_sum(from) && seen.is_product(by, GridDim, BlockDim) {
        Sharing::Threads
    } else if seen.is_x(from, BlockIdx) && seen.is_x(by, GridDim) {
        Sharing::Blocks
    } else if seen.is_x(from, ThreadIdx) && seen.is_x(by, BlockDim) {
        Sharing::BlockThreads
    } else if let Some(begin) = seen.before_thread(from).filter(|_| seen.is_x(by, BlockDim)) {
        first = Some(begin);
        Sharing::BlockThreads
    } else {
        return None;
    };
    Some(Shared { sharing, limit, first })
}

/// Nobody else may be there, in another dimension: all launches of a kernel are known, and none has more than one dimension.
fn only_in_x<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    let (threads, blocks, unclear) = launched_dimensions(db, function);
    let flat = [threads, blocks].iter().all(|dims| !dims[1] && !dims[2]);
    function.signature(db).kernel && only_known_launches(db, function) && flat && !unclear
}

/// Looks through variables and conversions.
struct Seen<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &'a Body,
}

impl Seen<'_, '_> {
    fn value(&self, expr: ExprId) -> ExprId {
        let mut value = self.body.strip_parens(expr);
        for _ in 0..16 {
            let next = match &self.body.expr(value).kind {
                ExprKind::Name(Name::Local(binding)) if self.keeps_numbers(*binding) => {
                    let set = definition(self.db, self.function, self.body, *binding);
                    set.filter(|set| stable(self.db, self.function, self.body, *set))
                }
                ExprKind::Cast { ty, operand, .. } if self.is_whole(ty) => Some(*operand),
                _ => None,
            };
            let Some(next) = next else { break };
            value = self.body.strip_parens(next);
        }
        value
    }

    /// A variable has another value for each number of a thread.
    fn keeps_numbers(&self, binding: BindingId) -> bool {
        let ty = &self.body.binding(binding).ty;
        ty.pointers == 0 && ty.array.is_empty() && self.is_whole(&ty.base)
    }

    /// A type that holds every number of a thread: in a smaller one several threads have the same.
    fn is_whole(&self, ty: &str) -> bool {
        let places = TypePlaces {
            db: self.db,
            function: self.function,
            body: self.body,
        };
        let ty = places.alias(ty.trim_start_matches("const ").trim());
        ty == "auto" || integer(&ty).is_some_and(|(_, _, whole)| whole)
    }

    fn is_x(&self, expr: ExprId, wanted: Builtin) -> bool {
        let value = self.value(expr);
        matches!(&self.body.expr(value).kind, ExprKind::Field { base, field, arrow: false }
            if field == "x" && matches!(self.body.expr(*base).kind, ExprKind::Name(Name::Builtin(b)) if b == wanted))
    }

    /// `begin` of `begin + threadIdx.x`.
    fn before_thread(&self, expr: ExprId) -> Option<ExprId> {
        match self.body.expr(self.body.strip_parens(expr)).kind {
            ExprKind::Binary(BinOp::Add, a, b) if self.is_x(b, Builtin::ThreadIdx) => Some(a),
            ExprKind::Binary(BinOp::Add, a, b) if self.is_x(a, Builtin::ThreadIdx) => Some(b),
            _ => None,
        }
    }

    fn is_product(&self, expr: ExprId, a: Builtin, b: Builtin) -> bool {
        let value = self.value(expr);
        matches!(self.body.expr(value).kind, ExprKind::Binary(BinOp::Mul, x, y)
            if (self.is_x(x, a) && self.is_x(y, b)) || (self.is_x(x, b) && self.is_x(y, a)))
    }

    /// `blockIdx.x * blockDim.x + threadIdx.x` in any order.
    fn is_sum(&self, expr: ExprId) -> bool {
        let first = |e: ExprId| self.is_product(e, Builtin::BlockIdx, Builtin::BlockDim);
        let value = self.value(expr);
        matches!(self.body.expr(value).kind, ExprKind::Binary(BinOp::Add, a, b)
            if (first(a) && self.is_x(b, Builtin::ThreadIdx)) || (first(b) && self.is_x(a, Builtin::ThreadIdx)))
    }
}
