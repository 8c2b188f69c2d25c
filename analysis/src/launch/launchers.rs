//! Who executes a launch: every thread, or one thread of a warp, a block, the grid.

use super::config::{constant_value, through_variables};
use super::places::Places;
use super::{LaunchId, Launchers, launches};
use crate::db::Db;
use crate::hir::{BinOp, Body, Builtin, ExprId, ExprKind, Name, StmtId, StmtKind, UnOp};
use crate::items::FunctionItem;
use crate::resolve::launch_sites_of;
use crate::uniformity::{FunctionUniformity, Level};

/// A number that names a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ThreadNumber {
    /// Different for all threads of a warp, repeats every warp: `threadIdx.x % 32`.
    InWarp,
    /// Different for all threads of a block: `threadIdx.x` (one-dimensional blocks).
    InBlock,
    /// Different for all threads of a grid: `blockIdx.x * blockDim.x + threadIdx.x`.
    InGrid,
    /// Different for all blocks: `blockIdx.x`.
    OfBlock,
}

/// Who executes an expression, by the conditions around it and by the early returns before it.
pub(crate) fn launchers(
    db: &dyn Db,
    function: FunctionItem<'_>,
    body: &Body,
    places: &Places,
    levels: &FunctionUniformity,
    launch: ExprId,
) -> Launchers {
    let context = Pins::new(db, function, body, levels);
    let mut found: Vec<ThreadNumber> = Vec::new();
    let mut inner: Option<StmtId> = None;
    for stmt in places.around(launch) {
        match &body.stmt(stmt).kind {
            StmtKind::If {
                cond: Some(cond),
                then,
                otherwise,
                ..
            } => {
                if inner == Some(*then) {
                    context.pinned(*cond, true, &mut found);
                } else if inner.is_some() && inner == *otherwise {
                    context.pinned(*cond, false, &mut found);
                }
            }
            StmtKind::Block(stmts) => {
                // `if (threadIdx.x != 0) return;` before the launch, in a block around it.
                for before in stmts.iter().take_while(|s| Some(**s) != inner) {
                    if let StmtKind::If {
                        cond: Some(cond),
                        then,
                        otherwise: None,
                        ..
                    } = &body.stmt(*before).kind
                        && leaves(body, *then)
                    {
                        context.pinned(*cond, false, &mut found);
                    }
                }
            }
            _ => {}
        }
        inner = Some(stmt);
    }
    let has = |n: ThreadNumber| found.contains(&n);
    if has(ThreadNumber::InGrid) || (has(ThreadNumber::InBlock) && has(ThreadNumber::OfBlock)) {
        Launchers::OnePerGrid
    } else if has(ThreadNumber::InBlock) {
        Launchers::OnePerBlock
    } else if has(ThreadNumber::InWarp) {
        Launchers::OnePerWarp
    } else {
        Launchers::ManyThreads
    }
}

/// Who executes a launch, also by what is known of the grids that its kernel is launched with: a kernel that the whole
/// workspace launches with blocks of one thread has one launcher per block.
pub fn who_launches<'db>(db: &'db dyn Db, id: LaunchId<'db>) -> Launchers {
    let Some(facts) = launches(db, id.function).get(id.index as usize) else {
        return Launchers::ManyThreads;
    };
    if !matches!(facts.launchers, Launchers::ManyThreads | Launchers::OnePerWarp) {
        return facts.launchers;
    }
    single_threaded(db, id.function).unwrap_or(facts.launchers)
}

/// Who runs a kernel that the whole workspace launches with blocks of one thread; `None` for other functions.
pub(crate) fn single_threaded<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Option<Launchers> {
    if !function.signature(db).kernel {
        return None;
    }
    let mut single_block = true;
    let mut any = false;
    for site in launch_sites_of(db, function) {
        let site = launches(db, site.function).get(site.index as usize)?;
        if site.block.constant != Some([1, 1, 1]) {
            return None;
        }
        any = true;
        single_block &= site.grid.constant == Some([1, 1, 1]);
    }
    match (any, single_block) {
        (false, _) => None,
        (true, false) => Some(Launchers::OnePerBlock),
        (true, true) => Some(Launchers::OnePerGrid),
    }
}

/// The statement returns from the function on every path (a `return`, or a block that ends with one).
fn leaves(body: &Body, stmt: StmtId) -> bool {
    match &body.stmt(stmt).kind {
        StmtKind::Return(_) => true,
        StmtKind::Block(stmts) => stmts.last().is_some_and(|s| leaves(body, *s)),
        _ => false,
    }
}

/// `threadIdx.y` or `.z` occur: the block may have several dimensions, and `threadIdx.x` alone doesn't name a thread.
fn uses_higher_dimensions(body: &Body) -> bool {
    body.exprs.iter().any(|e| match &e.kind {
        ExprKind::Field { base, field, .. } => {
            matches!(field.as_str(), "y" | "z")
                && matches!(
                    body.expr(*base).kind,
                    ExprKind::Name(Name::Builtin(Builtin::ThreadIdx | Builtin::BlockIdx))
                )
        }
        _ => false,
    })
}

/// Finds conditions that pick one thread.
pub(crate) struct Pins<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &'a Body,
    levels: &'a FunctionUniformity,
    multi_dimensional: bool,
}

impl<'a, 'db> Pins<'a, 'db> {
    /// For the conditions of a function.
    pub fn new(
        db: &'db dyn Db,
        function: FunctionItem<'db>,
        body: &'a Body,
        levels: &'a FunctionUniformity,
    ) -> Pins<'a, 'db> {
        Pins {
            db,
            function,
            body,
            levels,
            multi_dimensional: uses_higher_dimensions(body),
        }
    }

    /// Where `cond` has this outcome, one thread of a warp, block or grid is left, and it depends on nothing else.
    pub fn picks_one_thread(&self, cond: ExprId, outcome: bool) -> bool {
        self.picks(cond, outcome, false)
    }

    /// The same, and the thread is number 0, which every grid has.
    pub fn picks_thread_zero(&self, cond: ExprId, outcome: bool) -> bool {
        self.picks(cond, outcome, true)
    }

    /// The expression is a different number for all threads of a block.
    pub fn numbers_threads(&self, expr: ExprId) -> bool {
        matches!(self.number(expr), Some(ThreadNumber::InBlock | ThreadNumber::InGrid))
    }

    fn picks(&self, cond: ExprId, outcome: bool, zero: bool) -> bool {
        match &self.body.expr(cond).kind {
            ExprKind::Paren(e) => self.picks(*e, outcome, zero),
            ExprKind::Logical { and, lhs, rhs } => {
                *and == outcome && self.picks(*lhs, outcome, zero) && self.picks(*rhs, outcome, zero)
            }
            ExprKind::Unary(UnOp::Not, e) if self.number(*e).is_none() => self.picks(*e, !outcome, zero),
            ExprKind::Binary(BinOp::Eq | BinOp::Ne, a, b)
                if zero && self.constant(*a) != Some(0) && self.constant(*b) != Some(0) =>
            {
                false
            }
            _ => {
                let mut found = Vec::new();
                self.pinned(cond, outcome, &mut found);
                !found.is_empty()
            }
        }
    }

    /// Collects the thread numbers that are fixed where `cond` evaluated to `outcome`.
    fn pinned(&self, cond: ExprId, outcome: bool, found: &mut Vec<ThreadNumber>) {
        match &self.body.expr(cond).kind {
            ExprKind::Paren(e) => self.pinned(*e, outcome, found),
            ExprKind::Unary(UnOp::Not, e) => {
                // `!threadIdx.x`
                if outcome && let Some(number) = self.number(*e) {
                    found.push(number);
                }
                self.pinned(*e, !outcome, found);
            }
            ExprKind::Logical { and, lhs, rhs } if *and == outcome => {
                self.pinned(*lhs, outcome, found);
                self.pinned(*rhs, outcome, found);
            }
            ExprKind::Binary(BinOp::Eq, a, b) if outcome => self.equal(*a, *b, found),
            ExprKind::Binary(BinOp::Ne, a, b) if !outcome => self.equal(*a, *b, found),
            // `if (threadIdx.x < 1)`, `if (threadIdx.x > 0) return;`
            ExprKind::Binary(BinOp::Lt, a, b) if outcome && self.constant(*b) == Some(1) => {
                found.extend(self.number(*a))
            }
            ExprKind::Binary(BinOp::Ge, a, b) if !outcome && self.constant(*b) == Some(1) => {
                found.extend(self.number(*a))
            }
            ExprKind::Binary(BinOp::Gt, a, b) if !outcome && self.constant(*b) == Some(0) => {
                found.extend(self.number(*a))
            }
            // The bare number as a condition: zero where it is false.
            _ if !outcome => found.extend(self.number(cond)),
            _ => {}
        }
    }

    fn equal(&self, a: ExprId, b: ExprId, found: &mut Vec<ThreadNumber>) {
        for (number, other) in [(a, b), (b, a)] {
            if let Some(number) = self.number(number) {
                let enough = match number {
                    ThreadNumber::InWarp => Level::Warp,
                    ThreadNumber::InBlock => Level::Block,
                    ThreadNumber::InGrid | ThreadNumber::OfBlock => Level::Grid,
                };
                // A constant is one even where the function as a whole can't be analysed.
                if self.levels.of(other) <= enough || self.constant(other).is_some() {
                    found.push(number);
                }
            }
        }
    }

    fn constant(&self, expr: ExprId) -> Option<i128> {
        constant_value(self.db, self.function, self.body, expr)
    }

    fn number(&self, expr: ExprId) -> Option<ThreadNumber> {
        let body = self.body;
        let mut expr = through_variables(body, expr);
        while let ExprKind::Cast { operand, .. } = body.expr(expr).kind {
            expr = through_variables(body, operand);
        }
        match &body.expr(expr).kind {
            ExprKind::Field {
                base,
                field,
                arrow: false,
            } if field == "x" && !self.multi_dimensional => match body.expr(*base).kind {
                ExprKind::Name(Name::Builtin(Builtin::ThreadIdx)) => Some(ThreadNumber::InBlock),
                ExprKind::Name(Name::Builtin(Builtin::BlockIdx)) => Some(ThreadNumber::OfBlock),
                _ => None,
            },
            ExprKind::Binary(BinOp::Rem, a, b) if self.is_warp_size(*b) => self.in_warp(*a),
            ExprKind::Binary(BinOp::BitAnd, a, b) if self.constant(*b) == Some(31) => self.in_warp(*a),
            ExprKind::Binary(BinOp::Add, a, b) => {
                let pair = [(*a, *b), (*b, *a)];
                pair.iter()
                    .any(|(product, thread)| {
                        self.number(*thread) == Some(ThreadNumber::InBlock) && self.is_block_start(*product)
                    })
                    .then_some(ThreadNumber::InGrid)
            }
            _ => None,
        }
    }

    fn in_warp(&self, expr: ExprId) -> Option<ThreadNumber> {
        matches!(self.number(expr)?, ThreadNumber::InBlock | ThreadNumber::InGrid).then_some(ThreadNumber::InWarp)
    }

    fn is_warp_size(&self, expr: ExprId) -> bool {
        let expr = self.body.strip_parens(expr);
        self.constant(expr) == Some(32) || self.body.expr(expr).kind == ExprKind::Name(Name::Builtin(Builtin::WarpSize))
    }

    /// `blockIdx.x * blockDim.x`
    fn is_block_start(&self, expr: ExprId) -> bool {
        let body = self.body;
        let is = |e: ExprId, builtin: Builtin| match &body.expr(through_variables(body, e)).kind {
            ExprKind::Field { base, field, .. } => {
                field == "x" && body.expr(*base).kind == ExprKind::Name(Name::Builtin(builtin))
            }
            _ => false,
        };
        match body.expr(through_variables(body, expr)).kind {
            ExprKind::Binary(BinOp::Mul, a, b) => {
                (is(a, Builtin::BlockIdx) && is(b, Builtin::BlockDim))
                    || (is(b, Builtin::BlockIdx) && is(a, Builtin::BlockDim))
            }
            _ => false,
        }
    }
}
