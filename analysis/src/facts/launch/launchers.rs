//! Who executes a launch: every thread, or one thread of a warp, a block, the grid.

use std::collections::HashSet;

use super::config::{
    components, constant_value, definition, is_changed_unseen, may_be_users, stable, through_variables,
};
use super::extents::Extents;
use super::places::{Places, statement_places};
use super::{LaunchId, Launchers, launches};
use crate::base::db::Db;
use crate::base::span::Span;
use crate::base::words::words;
use crate::facts::callee::library_called;
use crate::facts::dependence::{Interval, integer, writers};
use crate::facts::groups::{Group, group};
use crate::facts::hidden::operator_use;
use crate::facts::uniformity::memory::{Class, MemoryClass, Places as TypePlaces};
use crate::facts::uniformity::{FunctionUniformity, Level, called_recursively, calls_of, only_known_calls, uniformity};
use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, items};
use crate::hir::library::{Does, vector_fields};
use crate::hir::names::unqualified;
use crate::hir::resolve::{Meaning, functions_in, launch_sites_of, meaning_in, only_known_launches};
use crate::hir::walk::operands;
use crate::hir::{
    BinOp, BindingId, Body, Builtin, Expr, ExprId, ExprKind, Name, Stmt, StmtId, StmtKind, Storage, UnOp, body,
};

/// Dimensions, x to z.
type Dims = [bool; 3];

fn either(a: Dims, b: Dims) -> Dims {
    [a[0] || b[0], a[1] || b[1], a[2] || b[2]]
}

/// A number that differs between threads or blocks that differ in certain dimensions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Number {
    /// Dimensions of the thread index.
    thread: Dims,
    /// Dimensions of the block index.
    block: Dims,
    /// All dimensions of the thread index.
    all_threads: bool,
    /// All dimensions of the block index.
    all_blocks: bool,
    /// The lane: it repeats every warp.
    lane: bool,
    /// Different threads have different numbers; otherwise only 0 is had by one alone.
    exact: bool,
    /// What it is compared with may be another number each time, and so the thread may be another one: `threadIdx.x == k` in a loop
    /// over `k`.
    turns: bool,
    /// It was drawn from a counter, and only after all others were.
    last: bool,
    /// The largest that it can be; `None`: it counts the threads or blocks of a whole grid.
    most: Option<i128>,
    /// The same by the sizes of the grid and its blocks, where that is known.
    extents: Option<Extents>,
}

/// Who executes something, and whether that is the same thread of a block each time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Who {
    /// In one execution.
    pub launchers: Launchers,
    /// In another one, it may be another thread of the block.
    pub turns: bool,
}

/// The largest number of 32 bits.
const MAX: i128 = u32::MAX as i128;

impl Number {
    /// The index of a thread in its block along an axis.
    fn of_thread(axis: usize) -> Number {
        Number {
            thread: std::array::from_fn(|own| own == axis),
            exact: true,
            most: Some(if axis == 2 { 63 } else { 1023 }),
            extents: Extents::of_index(Builtin::ThreadIdx, axis),
            ..Number::default()
        }
    }

    /// The index of a block in its grid along an axis.
    fn of_block(axis: usize) -> Number {
        Number {
            block: std::array::from_fn(|own| own == axis),
            exact: true,
            most: Some(if axis == 0 { i128::from(i32::MAX) - 1 } else { 65534 }),
            extents: Extents::of_index(Builtin::BlockIdx, axis),
            ..Number::default()
        }
    }

    /// A sum, or bits of both: 0 where both are, as the sum of what is known doesn't wrap around. That there are fewer than 2³² threads
    /// in a grid is taken for granted everywhere.
    fn over(self, other: Number) -> Option<Number> {
        let most = match self.most.zip(other.most) {
            Some((a, b)) => Some(a.checked_add(b).filter(|sum| *sum <= MAX)?),
            None => None,
        };
        Some(Number {
            thread: either(self.thread, other.thread),
            block: either(self.block, other.block),
            all_threads: self.all_threads || other.all_threads,
            all_blocks: self.all_blocks || other.all_blocks,
            lane: self.lane || other.lane,
            exact: false,
            turns: self.turns || other.turns,
            last: false,
            most,
            extents: self.extents.zip(other.extents).and_then(|(a, b)| a.plus(b)),
        })
    }

    /// Times what is 1 at least and doesn't make it wrap around.
    fn times(self, factor: i128) -> Option<Number> {
        let blocks = self.of_blocks() && !self.all_threads && self.thread == Dims::default();
        let most = match (factor, self.most) {
            (1, most) => most,
            // `blockIdx.x * 64`: the number of a block's first thread.
            (2..=1024, most) if blocks => most.map(|most| most * factor).filter(|product| *product <= MAX),
            (2.., Some(most)) => Some(most.checked_mul(factor).filter(|product| *product <= MAX)?),
            _ => return None,
        };
        Some(Number {
            exact: self.exact && factor == 1,
            most,
            extents: self.extents.filter(|_| factor == 1),
            ..self
        })
    }

    fn of_blocks(self) -> bool {
        self.all_blocks || self.block != Dims::default()
    }
}

/// Who executes an expression, by the conditions around it and by the early returns before it.
pub(crate) fn launchers(
    db: &dyn Db,
    function: FunctionItem<'_>,
    body: &Body,
    places: &Places,
    levels: &FunctionUniformity,
    launch: ExprId,
) -> Who {
    let (threads, blocks) = dimensions_in_sight(db, function);
    launchers_within(db, function, body, places, levels, launch, threads, blocks)
}

/// The same, where blocks and grids have these dimensions beside those that the body mentions.
#[allow(clippy::too_many_arguments, reason = "what the launch stands in, and the dimensions")]
fn launchers_within(
    db: &dyn Db,
    function: FunctionItem<'_>,
    body: &Body,
    places: &Places,
    levels: &FunctionUniformity,
    launch: ExprId,
    threads: Dims,
    blocks: Dims,
) -> Who {
    // The conditions in the text may not be those that are compiled.
    if body.cut {
        return Who {
            launchers: Launchers::ManyThreads,
            turns: false,
        };
    }
    let mut context = Pins::new(db, function, body, levels);
    context.threads = either(context.threads, threads);
    context.blocks = either(context.blocks, blocks);
    let found = context.pinned_at(places, launch);
    let lasting: Vec<Number> = found.iter().filter(|number| !number.turns).copied().collect();
    let launchers = context.who(&found);
    Who {
        launchers,
        turns: context.one_per_block(&found) && !context.one_per_block(&lasting),
    }
}

/// Who executes a launch, also by what is known of the grids that its kernel is launched with: a kernel that the whole
/// workspace launches with blocks of one thread has one launcher per block.
pub fn who_launches<'db>(db: &'db dyn Db, id: LaunchId<'db>) -> Launchers {
    let Some(facts) = launches(db, id.function).get(id.index as usize) else {
        return Launchers::ManyThreads;
    };
    if facts.launchers == Launchers::Host || facts.in_lambda {
        return facts.launchers;
    }
    fewer(facts.launchers, who_runs(db, id.function, 16))
}

/// Whether [`LaunchFacts::launchers`](super::LaunchFacts::launchers) and [`who_launches`] take something for granted: that blocks
/// (or the grid, where one thread of the grid launches) have no dimension but those that the launching function mentions, so that
/// `if (threadIdx.x == 0)` leaves one thread of a block. The launches in sight don't speak against it; it is taken for granted where
/// they aren't all launches, where there is none, or where nothing is known of a size (a parameter of type `dim3`). For a diagnostic
/// that is good enough. A rewrite that relies on there being one launcher has to say so as an assumption, or to treat the launch as
/// one by many threads.
pub fn takes_flat_blocks<'db>(db: &'db dyn Db, id: LaunchId<'db>) -> bool {
    let facts = launches(db, id.function).get(id.index as usize);
    facts.is_some_and(|facts| rests_on_flat_blocks(db, id.function, facts.expr, facts.launchers))
}

/// The same for [`who_gets_to`] an expression.
pub fn gets_there_by_flat_blocks<'db>(db: &'db dyn Db, function: FunctionItem<'db>, expr: ExprId) -> bool {
    let body = body(db, function);
    let (places, levels) = (statement_places(db, function), uniformity(db, function));
    let found = launchers(db, function, &body, &places, &levels, expr).launchers;
    rests_on_flat_blocks(db, function, expr, found)
}

/// Whether `found` who gets to an expression only because nothing in sight says that blocks have more dimensions.
fn rests_on_flat_blocks<'db>(db: &'db dyn Db, function: FunctionItem<'db>, expr: ExprId, found: Launchers) -> bool {
    if matches!(found, Launchers::Host | Launchers::ManyThreads) {
        return false;
    }
    let body = body(db, function);
    let (places, levels) = (statement_places(db, function), uniformity(db, function));
    let all = [true; 3];
    let proven = launchers_within(db, function, &body, &places, &levels, expr, all, all).launchers;
    if fewer(proven, who_runs(db, function, 16)) == found || proven == found {
        return false;
    }
    !function.signature(db).kernel
        || launch_sites_of(db, function).is_empty()
        || !only_known_launches(db, function)
        || launched_dimensions(db, function).2
}

/// Dimensions beyond the first that blocks and grids of a function have, or may have, by the launches in sight.
fn dimensions_in_sight<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> (Dims, Dims) {
    let (mut threads, mut blocks) = (Dims::default(), Dims::default());
    let mut seen = HashSet::from([function]);
    let mut todo = vec![function];
    while let Some(next) = todo.pop() {
        if next.signature(db).kernel {
            let (t, b, _) = launched_dimensions(db, next);
            (threads, blocks) = (either(threads, t), either(blocks, b));
        } else {
            let callers = calls_of(db, next).iter().map(|call| call.caller);
            todo.extend(callers.filter(|caller| seen.insert(*caller)));
        }
    }
    (threads, blocks)
}

/// Dimensions that blocks and grids have, or may have, in the launches of a kernel that are in sight. Whether there is a size among
/// them of which nothing is known.
#[salsa::tracked(returns(copy))]
fn launched_dimensions<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> (Dims, Dims, bool) {
    let (mut threads, mut blocks) = (Dims::default(), Dims::default());
    let mut unclear = false;
    for site in launch_sites_of(db, kernel) {
        let body = body(db, site.function);
        let launch = body.launches.get(site.index as usize).map(|e| &body.expr(*e).kind);
        let Some(ExprKind::Launch(launch)) = launch else {
            continue;
        };
        for (index, found, own) in [(0, &mut blocks, Builtin::GridDim), (1, &mut threads, Builtin::BlockDim)] {
            let Some(&size) = launch.config.get(index) else {
                continue;
            };
            // What launches itself with the size that it has.
            let same =
                body.expr(through_variables(db, site.function, &body, size)).kind == ExprKind::Name(Name::Builtin(own));
            if same && site.function == kernel {
                continue;
            }
            let several = |e: ExprId| constant_value(db, site.function, &body, e) != Some(1);
            let dims = match components(db, site.function, &body, size) {
                Some(parts) => parts.map(|part| part.is_some_and(several)),
                None => {
                    unclear = true;
                    several_in_sight(db, site.function, &body, size)
                }
            };
            *found = either(*found, dims);
        }
    }
    (threads, blocks, unclear)
}

/// The dimensions that a size has in any case which isn't understood as a whole: a constant `dim3`, a list that is assigned later, a
/// function that makes one.
fn several_in_sight<'db>(db: &'db dyn Db, function: FunctionItem<'db>, body: &Body, size: ExprId) -> Dims {
    let of_list = |of: FunctionItem<'db>, body: &Body, args: &[ExprId]| {
        let mut dims = Dims::default();
        for (slot, arg) in dims.iter_mut().zip(args).skip(1) {
            *slot = constant_value(db, of, body, *arg) != Some(1);
        }
        dims
    };
    let is_vector = |name: &str| {
        let plain = unqualified(name.trim_start_matches("const ").trim());
        matches!(plain, "dim3" | "uint3" | "make_uint3" | "int3" | "make_int3")
    };
    let made = |of: FunctionItem<'db>, body: &Body, e: ExprId| match &body.expr(body.strip_parens(e)).kind {
        ExprKind::Construct { ty, args } if is_vector(ty) => of_list(of, body, args),
        ExprKind::Call {
            name: Some(name), args, ..
        } if is_vector(name) => of_list(of, body, args),
        ExprKind::InitList(args) => of_list(of, body, args),
        _ => Dims::default(),
    };
    let own = made(function, body, size);
    match &body.expr(body.strip_parens(size)).kind {
        ExprKind::Name(Name::Local(binding)) => {
            let assigned = body.exprs.iter().filter_map(|expr| match &expr.kind {
                ExprKind::Assign { place, value, .. } => {
                    let whole = matches!(&body.expr(body.strip_parens(*place)).kind, ExprKind::Name(Name::Local(b)) if b == binding);
                    whole.then_some(*value)
                }
                _ => None,
            });
            let values = body.initialiser(*binding).into_iter().chain(assigned);
            values.fold(own, |dims, value| either(dims, made(function, body, value)))
        }
        ExprKind::Name(Name::Other(name)) => match meaning_in(db, function, name) {
            Meaning::Global(global) if is_vector(&global.base) => match global.init.as_deref().map(list_parts) {
                Some(parts) => {
                    let mut dims = own;
                    for (slot, part) in dims.iter_mut().zip(parts).skip(1) {
                        *slot = part != "1";
                    }
                    dims
                }
                None => own,
            },
            _ => own,
        },
        ExprKind::Call { name: Some(name), .. } => {
            let mut dims = own;
            for callee in functions_in(db, function, name).into_iter().filter(|f| f.has_body(db)) {
                let inner = crate::hir::body(db, callee);
                for stmt in &inner.stmts {
                    if let StmtKind::Return(Some(value)) = &stmt.kind {
                        dims = either(dims, made(callee, &inner, *value));
                    }
                }
            }
            dims
        }
        _ => own,
    }
}

/// The parts of a list as it is written: of `dim3(16, 3)`, `(16, 3)` and `{16, 3}`.
fn list_parts(text: &str) -> Vec<&str> {
    let inner = text
        .trim()
        .trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
    let inner = inner.trim_start_matches(['(', '{']).trim_end_matches([')', '}', ';']);
    inner.split(',').map(str::trim).collect()
}

/// Whether something jumps into a part of a function's body from outside, on whose way to `at` a condition in front of it isn't met: a
/// `goto`, or a label of a `switch` around it.
fn is_jumped_into(body: &Body, part: Span, at: Span) -> bool {
    let leads = |label: Span| part.start <= label.start && label.start < part.end && label.start <= at.start;
    body.stmts.iter().any(|stmt| match &stmt.kind {
        StmtKind::Label(..) if leads(stmt.span) => {
            let outside = |jump: &Stmt| matches!(jump.kind, StmtKind::Goto(_)) && !part.contains(jump.span);
            body.stmts.iter().any(outside)
        }
        StmtKind::Case { .. } if leads(stmt.span) => {
            let switches = body.stmts.iter().filter(|s| matches!(s.kind, StmtKind::Switch { .. }));
            let nearest = switches
                .filter(|s| s.span.contains(stmt.span))
                .max_by_key(|s| s.span.start);
            nearest.is_some_and(|switch| !part.contains(switch.span))
        }
        _ => false,
    })
}

/// An expression is a variable, a part of it or its address, or what is made of such: an argument by which it may be changed.
fn leads_to(db: &dyn Db, function: FunctionItem<'_>, body: &Body, e: ExprId, root: &Name) -> bool {
    let leads = |e: ExprId| leads_to(db, function, body, e, root);
    match &body.expr(e).kind {
        ExprKind::Name(name) => name == root,
        ExprKind::Paren(e)
        | ExprKind::AddrOf(e)
        | ExprKind::Deref(e)
        | ExprKind::Cast { operand: e, .. }
        | ExprKind::Comma(_, e)
        | ExprKind::Field { base: e, .. }
        | ExprKind::Index { base: e, .. } => leads(*e),
        ExprKind::Binary(BinOp::Add | BinOp::Sub, a, b)
        | ExprKind::Conditional {
            then: a, otherwise: b, ..
        } => leads(*a) || leads(*b),
        ExprKind::InitList(parts) | ExprKind::Construct { args: parts, .. } => parts.iter().any(|part| leads(*part)),
        // The library returns numbers.
        ExprKind::Call { name, args, .. } => {
            name.as_deref()
                .is_none_or(|name| library_called(db, function, name).is_none())
                && args.iter().any(|part| leads(*part))
        }
        _ => false,
    }
}

/// Who gets to an expression in device code; `None` for a device function of which no caller can be seen.
pub fn who_gets_to<'db>(db: &'db dyn Db, function: FunctionItem<'db>, expr: ExprId) -> Option<Launchers> {
    if !function.signature(db).kernel && calls_of(db, function).is_empty() {
        return None;
    }
    let body = body(db, function);
    let here = launchers(
        db,
        function,
        &body,
        &statement_places(db, function),
        &uniformity(db, function),
        expr,
    );
    Some(fewer(here.launchers, who_runs(db, function, 16)))
}

/// Of two statements about who gets somewhere the narrower one.
fn fewer(a: Launchers, b: Launchers) -> Launchers {
    let rank = |l: Launchers| match l {
        Launchers::ManyThreads => 0,
        Launchers::OnePerWarp => 1,
        Launchers::OnePerBlock => 2,
        Launchers::OnePerGrid | Launchers::Host => 3,
    };
    if rank(a) >= rank(b) { a } else { b }
}

/// Who runs a function at all: the threads of the grids that a kernel is launched with, those that call a device function.
fn who_runs<'db>(db: &'db dyn Db, function: FunctionItem<'db>, depth: u32) -> Launchers {
    if function.signature(db).kernel {
        return single_threaded(db, function).unwrap_or(Launchers::ManyThreads);
    }
    let Some(depth) = depth.checked_sub(1) else {
        return Launchers::ManyThreads;
    };
    if called_recursively(db, function) || !only_known_calls(db, function) {
        return Launchers::ManyThreads;
    }
    let mut all: Option<Launchers> = None;
    for call in calls_of(db, function) {
        let body = body(db, call.caller);
        let places = statement_places(db, call.caller);
        let levels = uniformity(db, call.caller);
        let here = launchers(db, call.caller, &body, &places, &levels, call.expr);
        let who = fewer(here.launchers, who_runs(db, call.caller, depth));
        all = match all {
            None => Some(who),
            Some(before) if fewer(before, who) == before => Some(who),
            before => before,
        };
    }
    all.unwrap_or(Launchers::ManyThreads)
}

/// Who runs a kernel that the whole workspace launches with blocks of one thread; `None` for other functions.
pub(crate) fn single_threaded<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Option<Launchers> {
    if !function.signature(db).kernel || !only_known_launches(db, function) {
        return None;
    }
    let mut single_block = true;
    let mut any = false;
    for site in launch_sites_of(db, function) {
        let site_function = site.function;
        let site = launches(db, site.function).get(site.index as usize)?;
        if site.block.constant != Some([1, 1, 1]) {
            return None;
        }
        // A recursion has to begin somewhere.
        any |= site_function != function;
        single_block &= site.grid.constant == Some([1, 1, 1]);
    }
    match (any, single_block) {
        (false, _) => None,
        (true, false) => Some(Launchers::OnePerBlock),
        (true, true) => Some(Launchers::OnePerGrid),
    }
}

/// What stands behind the statement in its block isn't reached through it: it returns, or leaves the block otherwise.
fn leaves(body: &Body, stmt: StmtId) -> bool {
    match &body.stmt(stmt).kind {
        StmtKind::Return(_) | StmtKind::Continue | StmtKind::Break => true,
        StmtKind::Block(stmts) => stmts.last().is_some_and(|s| leaves(body, *s)),
        _ => false,
    }
}

/// The variable of which a place is a part, or that points to it.
fn root_name(body: &Body, mut place: ExprId) -> Option<Name> {
    loop {
        place = body.strip_parens(place);
        place = match &body.expr(place).kind {
            ExprKind::Name(name) => return Some(name.clone()),
            ExprKind::Index { base, .. } | ExprKind::Field { base, .. } | ExprKind::Deref(base) => *base,
            ExprKind::Binary(BinOp::Add, base, _) => *base,
            _ => return None,
        };
    }
}

fn is_loop(kind: &StmtKind) -> bool {
    matches!(
        kind,
        StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::RangeFor { .. }
    )
}

/// Dimensions of an index (and its extent) that occur; x always does.
fn used(body: &Body, index: Builtin, extent: Builtin) -> Dims {
    let mut found = [true, false, false];
    for e in &body.exprs {
        if let ExprKind::Field { base, field, .. } = &e.kind
            && matches!(&body.expr(*base).kind, ExprKind::Name(Name::Builtin(b)) if *b == index || *b == extent)
        {
            found[1] |= field == "y";
            found[2] |= field == "z";
        }
    }
    found
}

/// Finds conditions that pick one thread.
pub(crate) struct Pins<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &'a Body,
    levels: &'a FunctionUniformity,
    /// Dimensions that blocks and grids may have, as far as the body tells.
    threads: Dims,
    blocks: Dims,
    /// How many conditions on counters are followed inside of each other, and whether it is asked who sets a counter back.
    depth: u32,
    resets: bool,
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
            threads: used(body, Builtin::ThreadIdx, Builtin::BlockDim),
            blocks: used(body, Builtin::BlockIdx, Builtin::GridDim),
            depth: 3,
            resets: true,
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
        self.number(expr).is_some_and(|n| n.exact && self.one_per_block(&[n]))
    }

    /// The dimension along which an expression is the index of the thread in its block.
    pub fn axis(&self, expr: ExprId) -> Option<usize> {
        let number = self.number(expr)?;
        let axis = number.thread.iter().position(|used| *used)?;
        (number == Number::of_thread(axis)).then_some(axis)
    }

    /// The numbers that are fixed where an expression is evaluated.
    fn pinned_at(&self, places: &Places, expr: ExprId) -> Vec<Number> {
        let body = self.body;
        let mut found: Vec<Number> = Vec::new();
        let mut inner: Option<StmtId> = None;
        let mut own_case: Option<ExprId> = None;
        let mut in_case = false;
        let at = body.expr(expr).span;
        let jumps = body
            .stmts
            .iter()
            .any(|s| matches!(s.kind, StmtKind::Goto(_) | StmtKind::Case { .. }));
        for stmt in places.around(expr) {
            match &body.stmt(stmt).kind {
                StmtKind::If { .. } | StmtKind::While { .. }
                    if jumps && inner.is_some_and(|inner| is_jumped_into(body, body.stmt(inner).span, at)) => {}
                StmtKind::If {
                    cond: Some(cond),
                    then,
                    otherwise,
                    ..
                } => {
                    if inner == Some(*then) {
                        self.pinned(*cond, true, &mut found);
                    } else if inner.is_some() && inner == *otherwise {
                        self.pinned(*cond, false, &mut found);
                    }
                }
                StmtKind::While {
                    cond: Some(cond),
                    body: repeated,
                    ..
                } if inner == Some(*repeated) => self.pinned(*cond, true, &mut found),
                StmtKind::Switch { cond, .. } => {
                    // `case 0:` of `switch (threadIdx.x)`, where no other case leads to it.
                    in_case = false;
                    if let Some(value) = own_case.take() {
                        self.equal(*cond, value, &mut found);
                    }
                }
                StmtKind::Block(stmts) | StmtKind::Case { stmts, .. } => {
                    // A case in the block of another one: the inner one's label leads to the launch, too.
                    if let StmtKind::Case { value, .. } = &body.stmt(stmt).kind
                        && !std::mem::replace(&mut in_case, true)
                    {
                        own_case = *value;
                        let above = places.parent(stmt).map(|s| &body.stmt(s).kind);
                        let before = match above {
                            Some(StmtKind::Block(all)) => all.iter().take_while(|s| **s != stmt).last(),
                            _ => None,
                        };
                        let falls = before.is_some_and(|s| match &body.stmt(*s).kind {
                            StmtKind::Case { stmts, .. } => !stmts.last().is_some_and(|s| leaves(body, *s)),
                            _ => !leaves(body, *s),
                        });
                        if falls || matches!(above, Some(StmtKind::Case { .. })) {
                            own_case = None;
                        }
                    }
                    // `if (threadIdx.x != 0) return;` before the launch, in a block around it.
                    for before in stmts.iter().take_while(|s| Some(**s) != inner) {
                        let passed = Span::new(body.stmt(*before).span.end, at.end);
                        if jumps && is_jumped_into(body, passed, at) {
                            continue;
                        }
                        if let StmtKind::If {
                            cond: Some(cond),
                            then,
                            otherwise,
                            ..
                        } = &body.stmt(*before).kind
                        {
                            if leaves(body, *then) {
                                self.pinned(*cond, false, &mut found);
                            } else if otherwise.is_some_and(|s| leaves(body, s)) {
                                self.pinned(*cond, true, &mut found);
                            }
                        }
                    }
                }
                _ => {}
            }
            inner = Some(stmt);
        }
        found
    }

    /// Who is left when all of these are fixed.
    fn who(&self, pinned: &[Number]) -> Launchers {
        let blocks = self.covers(pinned, self.blocks, |n| n.block) || pinned.iter().any(|n| n.all_blocks);
        match (self.one_per_block(pinned), blocks) {
            (true, true) => Launchers::OnePerGrid,
            (true, false) => Launchers::OnePerBlock,
            (false, _) if pinned.iter().any(|n| n.lane) => Launchers::OnePerWarp,
            (false, _) => Launchers::ManyThreads,
        }
    }

    fn one_per_block(&self, pinned: &[Number]) -> bool {
        self.covers(pinned, self.threads, |n| n.thread) || pinned.iter().any(|n| n.all_threads)
    }

    fn covers(&self, pinned: &[Number], used: Dims, of: impl Fn(&Number) -> Dims) -> bool {
        (0..3).all(|d| !used[d] || pinned.iter().any(|n| of(n)[d]))
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
                // `if (threadIdx.y == 0)` in blocks of two dimensions leaves a row.
                self.who(&found) != Launchers::ManyThreads
                    || found
                        .iter()
                        .any(|n| n.of_blocks() && !self.threads[1] && !self.threads[2])
            }
        }
    }

    /// Collects the thread numbers that are fixed where `cond` evaluated to `outcome`.
    fn pinned(&self, cond: ExprId, outcome: bool, found: &mut Vec<Number>) {
        let zero = |e: ExprId, found: &mut Vec<Number>| found.extend(self.number(e));
        match &self.body.expr(cond).kind {
            // What a user's comparison says of its operands isn't known.
            _ if self.is_users(cond) => {}
            ExprKind::Paren(e) => self.pinned(*e, outcome, found),
            ExprKind::Unary(UnOp::Not, e) => {
                // `!threadIdx.x`
                if outcome {
                    zero(*e, found);
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
            ExprKind::Binary(BinOp::Lt, a, b) if outcome && self.constant(*b) == Some(1) => zero(*a, found),
            ExprKind::Binary(BinOp::Ge, a, b) if !outcome && self.constant(*b) == Some(1) => zero(*a, found),
            ExprKind::Binary(BinOp::Gt, a, b) if !outcome && self.constant(*b) == Some(0) => zero(*a, found),
            // `const bool leader = threadIdx.x == 0;`
            ExprKind::Name(Name::Local(binding)) if self.body.binding(*binding).ty.base == "bool" => {
                match self.flag(*binding) {
                    Some((value, shared)) => {
                        let mut inner = Vec::new();
                        self.pinned(value, outcome, &mut inner);
                        // A shared variable tells all threads of the block what one found out.
                        found.extend(inner.into_iter().map(|n| match shared {
                            true => Number {
                                thread: Dims::default(),
                                all_threads: false,
                                lane: false,
                                ..n
                            },
                            false => n,
                        }));
                    }
                    None if !outcome => zero(cond, found),
                    None => {}
                }
            }
            // The bare number as a condition: zero where it is false.
            _ if !outcome => zero(cond, found),
            _ => {}
        }
    }

    /// A condition may be an operator of the user's.
    fn is_users(&self, cond: ExprId) -> bool {
        operator_use(self.body, cond)
            .is_some_and(|(symbol, operands)| may_be_users(self.db, self.function, self.body, symbol, &operands))
    }

    /// The one value that a truth variable is given, and whether it is shared.
    fn flag(&self, binding: BindingId) -> Option<(ExprId, bool)> {
        let body = self.body;
        match body.binding(binding).storage {
            Storage::Local => {
                let init = definition(self.db, self.function, body, binding)?;
                Some((init, false))
            }
            // Whatever may change it beside what names it tells another thing.
            Storage::Shared if is_changed_unseen(self.db, self.function, body, binding) => None,
            Storage::Shared if body.binding(binding).ty.is_value() => {
                let mut values = body.exprs.iter().filter_map(|e| match &e.kind {
                    ExprKind::Assign { op, place, value } => {
                        let place = &body.expr(body.strip_parens(*place)).kind;
                        let hit = *place == ExprKind::Name(Name::Local(binding));
                        hit.then_some((*value, op.is_none()))
                    }
                    ExprKind::IncDec { place, .. } => {
                        let place = &body.expr(body.strip_parens(*place)).kind;
                        (*place == ExprKind::Name(Name::Local(binding))).then_some((ExprId(0), false))
                    }
                    _ => None,
                });
                match (values.next(), values.next()) {
                    (Some((value, true)), None) => Some((value, true)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn equal(&self, a: ExprId, b: ExprId, found: &mut Vec<Number>) {
        for (number, other) in [(a, b), (b, a)] {
            let level = match self.constant(other) {
                // A constant is one even where the function as a whole can't be analysed.
                Some(_) => Level::Constant,
                None => self.levels.of(other),
            };
            if let Some(number) = self.number(number) {
                let enough = match (number.of_blocks(), number.lane) {
                    (true, _) => Level::Grid,
                    (false, true) => Level::Warp,
                    (false, false) => Level::Block,
                };
                if level <= enough && (number.exact || self.constant(other) == Some(0)) {
                    found.push(Number {
                        turns: !self.lasts(other),
                        ..number
                    });
                }
            } else if level <= Level::Grid
                && let Some(number) = self.ticket(number, other)
            {
                found.push(number);
            }
        }
    }

    /// The value is the same wherever this function compares with it in one execution of a thread: nothing in it changes from one
    /// iteration of a loop to the next.
    fn lasts(&self, expr: ExprId) -> bool {
        let body = self.body;
        let jumps = || body.stmts.iter().any(|stmt| matches!(stmt.kind, StmtKind::Goto(_)));
        if self.constant(expr).is_some() {
            return true;
        }
        if jumps() || !stable(self.db, self.function, body, expr) {
            return false;
        }
        let repeated = |binding: BindingId| {
            let span = body.binding(binding).decl_span;
            body.stmts
                .iter()
                .any(|stmt| is_loop(&stmt.kind) && stmt.span.contains(span))
        };
        let mut todo = vec![expr];
        while let Some(next) = todo.pop() {
            match &body.expr(next).kind {
                // One of those is another variable in each iteration.
                ExprKind::Name(Name::Local(binding)) if repeated(*binding) => {
                    match definition(self.db, self.function, body, *binding) {
                        Some(init) if stable(self.db, self.function, body, init) => todo.push(init),
                        _ => return false,
                    }
                }
                ExprKind::Name(Name::Local(binding)) if body.binding(*binding).storage == Storage::Shared => {
                    return false;
                }
                ExprKind::Name(Name::Other(_)) if self.levels.of(next) > Level::Constant => return false,
                _ => todo.extend(operands(&body.expr(next).kind)),
            }
        }
        true
    }

    /// What `atomicAdd` gives is had by one thread alone: of the grid, or of the block when there is a counter for each. `wanted`: the
    /// number that it is compared with.
    fn ticket(&self, expr: ExprId, wanted: ExprId) -> Option<Number> {
        let body = self.body;
        let mut expr = body.strip_parens(expr);
        if let ExprKind::Name(Name::Local(binding)) = body.expr(expr).kind {
            // Another type may hold fewer numbers.
            self.converted(Number::default(), &body.binding(binding).ty.base)
                .filter(|n| n.most.is_none())?;
            expr = body.strip_parens(definition(self.db, self.function, body, binding)?);
        }
        let ExprKind::Call {
            name: Some(name), args, ..
        } = &body.expr(expr).kind
        else {
            return None;
        };
        let [counter, step] = args.as_slice() else { return None };
        let place = match &body.expr(body.strip_parens(*counter)).kind {
            ExprKind::AddrOf(place) => *place,
            _ => *counter,
        };
        // A user's function may have the same name.
        library_called(self.db, self.function, name)?;
        let level = self.address(place);
        let once = || !self.is_repeated(expr) && self.is_drawn_by_one_of_a_block(expr);
        let last = match name.trim_start_matches("::") {
            // More at once and it goes around before all have drawn; a sum of floating-point numbers stays as it is from some number on.
            "atomicAdd" if matches!(self.constant(*step), Some(1..=32)) && self.counts(*counter) => {
                level <= Level::Grid
                    && self.constant(*step) == Some(1)
                    && self.is_number_of_blocks(wanted, true)
                    && once()
            }
            // It starts again behind its bound.
            "atomicInc" => {
                let blocks = self.is_number_of_blocks(*step, false) || self.is_number_of_blocks(*step, true);
                let never = self.constant(*step) == Some(MAX) || level <= Level::Grid && blocks && once();
                never.then_some(())?;
                level <= Level::Grid && self.is_number_of_blocks(wanted, true) && once()
            }
            _ => return None,
        };
        let set_back = self.resets && self.is_set_back(*counter, place, expr, last);
        (!set_back).then_some(())?;
        (level <= Level::Block).then_some(Number {
            all_threads: true,
            all_blocks: level <= Level::Grid,
            exact: true,
            // The one whose number it is isn't the same each time, either because another number is drawn or because another is wanted.
            turns: self.is_repeated(expr) || !self.lasts(wanted),
            last,
            ..Number::default()
        })
    }

    /// A pointer to whole numbers, as far as its type is seen.
    fn counts(&self, pointer: ExprId) -> bool {
        let places = TypePlaces {
            db: self.db,
            function: self.function,
            body: self.body,
        };
        match self.body.expr(self.body.strip_parens(pointer)).kind {
            ExprKind::AddrOf(place) => !matches!(places.class(place), MemoryClass::Float | MemoryClass::Double),
            _ => !matches!(places.pointee_class(pointer), MemoryClass::Float | MemoryClass::Double),
        }
    }

    fn is_drawn_by_one_of_a_block(&self, expr: ExprId) -> bool {
        let Some(depth) = self.depth.checked_sub(1) else {
            return false;
        };
        let inner = Pins { depth, ..*self };
        inner.one_per_block(&inner.pinned_at(&statement_places(self.db, self.function), expr))
    }

    /// `gridDim.x`, or the product of all dimensions that grids have; `less`: less 1.
    fn is_number_of_blocks(&self, expr: ExprId, less: bool) -> bool {
        let body = self.body;
        let mut expr = through_variables(self.db, self.function, body, expr);
        if less {
            let ExprKind::Binary(BinOp::Sub, blocks, one) = body.expr(expr).kind else {
                return false;
            };
            if self.constant(one) != Some(1) {
                return false;
            }
            expr = through_variables(self.db, self.function, body, blocks);
        }
        let mut seen = Dims::default();
        let mut todo = vec![expr];
        while let Some(next) = todo.pop() {
            match &body.expr(through_variables(self.db, self.function, body, next)).kind {
                ExprKind::Binary(BinOp::Mul, a, b) => todo.extend([*a, *b]),
                ExprKind::Field { base, field, .. }
                    if body.expr(*base).kind == ExprKind::Name(Name::Builtin(Builtin::GridDim)) =>
                {
                    let axis = ["x", "y", "z"].iter().position(|d| d == field);
                    let Some(slot) = axis.and_then(|axis| seen.get_mut(axis)) else {
                        return false;
                    };
                    *slot = true;
                }
                _ => return false,
            }
        }
        (0..3).all(|d| seen[d] || !self.blocks[d])
    }

    /// Something else than this draw may change the counter, so that a number is drawn twice. What fills a counter of the block before
    /// the draw doesn't, nor what the one does who has drawn the `last` number.
    fn is_set_back(&self, pointer: ExprId, counter: ExprId, draw: ExprId, last: bool) -> bool {
        let body = self.body;
        let Some(root) = root_name(body, counter) else {
            return true;
        };
        // What goes by another pointer, or by another name.
        let Some(writers) = writers(self.db, self.function, pointer) else {
            return true;
        };
        let shared = matches!(&root, Name::Local(b) if body.binding(*b).storage == Storage::Shared);
        let drawn = body.expr(draw).span;
        let names = |e: ExprId| root_name(body, e).as_ref() == Some(&root);
        let address = |e: ExprId| leads_to(self.db, self.function, body, e, &root);
        if self.is_changed_elsewhere(&root) {
            return true;
        }
        let changes = |e: &ExprKind| match e {
            ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => names(*place),
            ExprKind::Call { name, args, .. } => {
                let library = name.as_deref().and_then(|n| library_called(self.db, self.function, n));
                let counts = match (name.as_deref(), library, args.as_slice()) {
                    (Some("atomicAdd" | "::atomicAdd"), Some(_), [_, step]) => {
                        matches!(self.constant(*step), Some(0..=32))
                    }
                    (_, Some(library), _) => library.only_loads() || library.does.has(Does::PRINTS),
                    _ => false,
                };
                !counts && args.iter().any(|arg| address(*arg))
            }
            ExprKind::Launch(launch) => launch.args.iter().any(|arg| address(*arg)),
            ExprKind::Construct { ty, args } => !self.is_plain(ty) && args.iter().any(|arg| address(*arg)),
            ExprKind::New(args) => args.iter().any(|arg| address(*arg)),
            _ => false,
        };
        let places = statement_places(self.db, self.function);
        (0..body.exprs.len() as u32).map(ExprId).any(|e| {
            let expr = body.expr(e);
            let by_its_name = || match &expr.kind {
                ExprKind::Call { args, .. } => args.iter().any(|arg| address(*arg)),
                _ => names(e),
            };
            let otherwise = || writers.contains(&e) && !by_its_name();
            if e == draw || !changes(&expr.kind) && !otherwise() {
                return false;
            }
            if shared && expr.span.end <= drawn.start && !self.is_repeated(draw) && !self.is_repeated(e) {
                return false;
            }
            let Some(depth) = self.depth.checked_sub(1) else {
                return true;
            };
            let lenient = Pins {
                depth,
                resets: false,
                ..*self
            };
            !(last && lenient.pinned_at(&places, e).iter().any(|number| number.last))
        })
    }

    /// A device function or a child kernel may change the counter, or another variable here points to it.
    fn is_changed_elsewhere(&self, root: &Name) -> bool {
        let (db, body) = (self.db, self.body);
        let within = |e: ExprId| {
            let span = body.expr(e).span;
            let names = |inner: &Expr| inner.kind == ExprKind::Name(root.clone()) && span.contains(inner.span);
            body.exprs.iter().any(names)
        };
        let keeps = |binding: BindingId, value: ExprId| {
            let ty = &body.binding(binding).ty;
            if ty.reference && ty.const_base && ty.pointers == 0 {
                return false;
            }
            // A reference is to what is read otherwise.
            if ty.reference || ty.complex {
                return within(value);
            }
            let class = || ty.array.is_empty() && !self.is_plain(&ty.base);
            (ty.pointers > 0 || ty.base == "auto" || class()) && self.points_to(value, &within)
        };
        let aliased = body.stmts.iter().any(|stmt| match &stmt.kind {
            StmtKind::Decl(decls) => decls.iter().any(|d| d.init.is_some_and(|init| keeps(d.binding, init))),
            _ => false,
        });
        let assigned = body.exprs.iter().any(|expr| match &expr.kind {
            ExprKind::Assign { place, value, .. } => match &body.expr(body.strip_parens(*place)).kind {
                ExprKind::Name(Name::Local(b)) => keeps(*b, *value),
                _ => false,
            },
            _ => false,
        });
        if aliased || assigned {
            return true;
        }
        let Name::Other(name) = root else { return false };
        let last = unqualified(name);
        let files = included_files(db, self.function.file(db)).iter();
        let mut functions = files.flat_map(|file| &items(db, *file).functions).copied();
        functions.any(|other| {
            let signature = other.signature(db);
            let launched = || {
                let sites = launch_sites_of(db, other);
                sites.iter().any(|site| site.function == self.function)
            };
            let may = other != self.function && other.has_body(db) && (signature.device || signature.kernel);
            may && words(&other.text(db)).any(|word| word == last) && (signature.device || launched())
        })
    }

    /// Whether a value may be an address of what `within` finds in expressions: not an element that is read, a number that is drawn.
    fn points_to(&self, value: ExprId, within: &dyn Fn(ExprId) -> bool) -> bool {
        let body = self.body;
        match &body.expr(value).kind {
            ExprKind::Paren(e) | ExprKind::Cast { operand: e, .. } => self.points_to(*e, within),
            ExprKind::Deref(_) | ExprKind::Index { .. } => false,
            // Of a class it may keep a reference.
            ExprKind::InitList(parts) | ExprKind::Construct { args: parts, .. } => parts.iter().any(|e| within(*e)),
            // The library returns numbers, but for what adds up addresses.
            ExprKind::Call { name: Some(name), .. } if library_called(self.db, self.function, name).is_some() => false,
            _ => within(value),
        }
    }

    /// A number or a vector of numbers.
    fn is_plain(&self, ty: &str) -> bool {
        let places = TypePlaces {
            db: self.db,
            function: self.function,
            body: self.body,
        };
        let vector = vector_fields(&places.alias(ty)).is_some();
        ty.contains('*') || vector || places.class_kind(ty, &[]) == Class::Plain
    }

    /// One thread may come to an expression more than once.
    fn is_repeated(&self, expr: ExprId) -> bool {
        let body = self.body;
        let span = body.expr(expr).span;
        body.stmts
            .iter()
            .any(|stmt| matches!(stmt.kind, StmtKind::Goto(_)) || is_loop(&stmt.kind) && stmt.span.contains(span))
    }

    /// How uniform the place of a counter is: a name, or an element of what a name denotes.
    fn address(&self, place: ExprId) -> Level {
        let body = self.body;
        match &body.expr(body.strip_parens(place)).kind {
            ExprKind::Name(Name::Other(_)) => Level::Constant,
            ExprKind::Name(Name::Local(binding)) => match body.binding(*binding).storage {
                Storage::Shared | Storage::ExternShared => Level::Block,
                _ => self.levels.of(place),
            },
            ExprKind::Index { base, index } => self.address(*base).join(self.levels.of(*index)),
            ExprKind::Field { base, .. } | ExprKind::Deref(base) => self.address(*base),
            _ => Level::Varying,
        }
    }

    fn constant(&self, expr: ExprId) -> Option<i128> {
        constant_value(self.db, self.function, self.body, expr)
    }

    fn number(&self, expr: ExprId) -> Option<Number> {
        self.number_within(expr, 24)
    }

    fn number_within(&self, expr: ExprId, depth: u32) -> Option<Number> {
        let depth = depth.checked_sub(1)?;
        let body = self.body;
        let expr = body.strip_parens(expr);
        match &body.expr(expr).kind {
            ExprKind::Name(Name::Local(binding)) => {
                let init = definition(self.db, self.function, body, *binding)
                    .filter(|init| stable(self.db, self.function, body, *init))?;
                let ty = &body.binding(*binding).ty;
                let number = self.number_within(init, depth)?;
                (ty.pointers == 0).then(|| self.converted(number, &ty.base))?
            }
            ExprKind::Cast { ty, operand, .. } => self.converted(self.number_within(*operand, depth)?, ty),
            ExprKind::Field {
                base,
                field,
                arrow: false,
            } => {
                let axis = ["x", "y", "z"].iter().position(|d| d == field)?;
                match body.expr(*base).kind {
                    ExprKind::Name(Name::Builtin(Builtin::ThreadIdx)) => Some(Number::of_thread(axis)),
                    ExprKind::Name(Name::Builtin(Builtin::BlockIdx)) => Some(Number::of_block(axis)),
                    _ => None,
                }
            }
            ExprKind::Binary(BinOp::Rem, a, b) if self.is_warp_size(*b) => self.in_warp(*a, depth),
            ExprKind::Binary(BinOp::BitAnd, a, b) if self.is_lane_mask(*b) => self.in_warp(*a, depth),
            ExprKind::Binary(BinOp::Add | BinOp::BitOr, a, b) => {
                let (x, y) = (self.number_within(*a, depth)?, self.number_within(*b, depth)?);
                if x.lane || y.lane {
                    return None;
                }
                let pairs = [(*a, y), (*b, x)];
                let exact = matches!(body.expr(expr).kind, ExprKind::Binary(BinOp::Add, ..))
                    && pairs
                        .iter()
                        .any(|(product, other)| other.exact && self.is_start(*product, *other));
                Some(Number { exact, ..x.over(y)? })
            }
            // A multiple is 0 where the number is, if the factor is no 0 and the product doesn't wrap around.
            ExprKind::Binary(BinOp::Mul, a, b) => {
                let pairs = [(*a, *b), (*b, *a)];
                pairs.iter().find_map(|(number, factor)| {
                    let number = self.number_within(*number, depth).filter(|n| !n.lane)?;
                    match self.constant(*factor) {
                        Some(factor) => number.times(factor),
                        None => self.within_grid(number, *factor, depth),
                    }
                })
            }
            ExprKind::Call { callee, .. } => self.rank(*callee),
            _ => None,
        }
    }

    /// What a number is after a conversion; `None`: other numbers may become the same.
    fn converted(&self, number: Number, ty: &str) -> Option<Number> {
        let places = TypePlaces {
            db: self.db,
            function: self.function,
            body: self.body,
        };
        let ty = places.alias(ty.trim_start_matches("const ").trim());
        if ty == "auto" {
            return Some(number);
        }
        if ty == "bool" {
            // Only 0 stays by itself.
            return Some(Number {
                exact: false,
                most: Some(1),
                ..number
            });
        }
        let (_, range, whole) = integer(&ty)?;
        let fits = whole || number.most.is_some_and(|most| Interval::new(0, most).within(range));
        fits.then_some(number)
    }

    /// An index times sizes of the grid or of its blocks, each of another dimension than all others and than the index: there are that
    /// many threads, so it doesn't wrap around. The sizes are 1 at least.
    fn within_grid(&self, number: Number, factor: ExprId, depth: u32) -> Option<Number> {
        let mut factors = Vec::new();
        if !self.sizes(factor, depth, &mut factors) {
            return None;
        }
        let extents = number.extents.and_then(|extents| extents.times(&factors));
        let product = Number {
            exact: false,
            most: None,
            extents,
            ..number
        };
        if extents.is_some() {
            return Some(product);
        }
        let mut sizes = Vec::new();
        let axes = |of: Builtin, dims: Dims, all: bool| {
            let used = move |axis: &usize| all || dims.get(*axis) == Some(&true);
            (0..3).filter(used).map(move |axis| (of, axis))
        };
        sizes.extend(axes(Builtin::BlockDim, number.thread, number.all_threads));
        sizes.extend(axes(Builtin::GridDim, number.block, number.all_blocks));
        sizes.extend(factors);
        let mut seen = HashSet::new();
        let of_grid = sizes.iter().any(|(of, _)| *of == Builtin::GridDim);
        let distinct = sizes.iter().all(|(of, axis)| {
            let fits = *of != Builtin::WarpSize || !of_grid;
            fits && seen.insert((*of as u8, *axis))
        });
        (number.exact && distinct).then_some(product)
    }

    /// Collects the sizes of which an expression is the product, with their axes.
    fn sizes(&self, expr: ExprId, depth: u32, found: &mut Vec<(Builtin, usize)>) -> bool {
        let Some(depth) = depth.checked_sub(1) else {
            return false;
        };
        let body = self.body;
        let expr = body.strip_parens(expr);
        let whole = |ty: &str| {
            let number = Number::default();
            matches!(self.converted(number, ty), Some(Number { most: None, .. }))
        };
        match &body.expr(expr).kind {
            ExprKind::Name(Name::Builtin(Builtin::WarpSize)) => {
                found.push((Builtin::WarpSize, 0));
                true
            }
            ExprKind::Name(Name::Local(binding)) => {
                let ty = &body.binding(*binding).ty;
                let init = definition(self.db, self.function, body, *binding)
                    .filter(|init| stable(self.db, self.function, body, *init));
                ty.pointers == 0 && whole(&ty.base) && init.is_some_and(|init| self.sizes(init, depth, found))
            }
            ExprKind::Cast { ty, operand, .. } => whole(ty) && self.sizes(*operand, depth, found),
            ExprKind::Binary(BinOp::Mul, a, b) => self.sizes(*a, depth, found) && self.sizes(*b, depth, found),
            ExprKind::Field {
                base,
                field,
                arrow: false,
            } => {
                let of = match &body.expr(body.strip_parens(*base)).kind {
                    ExprKind::Name(Name::Builtin(of @ (Builtin::BlockDim | Builtin::GridDim))) => *of,
                    _ => return false,
                };
                let axis = ["x", "y", "z"].iter().position(|d| d == field);
                found.extend(axis.map(|axis| (of, axis)));
                axis.is_some()
            }
            _ => false,
        }
    }

    /// `block.thread_rank()` of a cooperative group.
    fn rank(&self, callee: ExprId) -> Option<Number> {
        let body = self.body;
        let ExprKind::Field { base, field, .. } = &body.expr(body.strip_parens(callee)).kind else {
            return None;
        };
        if field != "thread_rank" {
            return None;
        }
        let of = group(self.db, self.function, body, *base)?;
        let number = Number {
            exact: true,
            ..Number::default()
        };
        match of {
            Group::Block => Some(Number {
                all_threads: true,
                most: Some(1023),
                ..number
            }),
            Group::Grid => Some(Number {
                all_threads: true,
                all_blocks: true,
                ..number
            }),
            Group::Warp if self.is_whole_warp(*base) => Some(Number {
                lane: true,
                most: Some(31),
                ..number
            }),
            _ => None,
        }
    }

    /// A group of threads of a warp is made as a tile of 32.
    fn is_whole_warp(&self, group: ExprId) -> bool {
        let body = self.body;
        let mut made = body.strip_parens(group);
        if let ExprKind::Name(Name::Local(binding)) = body.expr(made).kind {
            if body.binding(binding).ty.base.contains("thread_block_tile<32>") {
                return true;
            }
            made = definition(self.db, self.function, body, binding).map_or(made, |init| body.strip_parens(init));
        }
        let text = self.function.text(self.db);
        matches!(&body.expr(made).kind, ExprKind::Call { callee, .. }
            if body.expr(*callee).span.text(&text).contains("tiled_partition<32>"))
    }

    fn in_warp(&self, expr: ExprId, depth: u32) -> Option<Number> {
        let number = self.number_within(expr, depth)?;
        (number.exact && self.one_per_block(&[number])).then_some(Number {
            lane: true,
            exact: true,
            most: Some(31),
            ..Number::default()
        })
    }

    fn is_warp_size(&self, expr: ExprId) -> bool {
        let expr = self.body.strip_parens(expr);
        self.constant(expr) == Some(32) || self.body.expr(expr).kind == ExprKind::Name(Name::Builtin(Builtin::WarpSize))
    }

    /// `31`, `warpSize - 1`
    fn is_lane_mask(&self, expr: ExprId) -> bool {
        let expr = self.body.strip_parens(expr);
        self.constant(expr) == Some(31)
            || matches!(self.body.expr(expr).kind, ExprKind::Binary(BinOp::Sub, a, b)
                if self.is_warp_size(a) && self.constant(b) == Some(1))
    }

    /// `blockIdx.x * blockDim.x` to a thread's `threadIdx.x`, `threadIdx.y * blockDim.x` to it.
    fn is_start(&self, expr: ExprId, rest: Number) -> bool {
        let body = self.body;
        let is = |e: ExprId, builtin: Builtin, dim: &str| match &body
            .expr(through_variables(self.db, self.function, body, e))
            .kind
        {
            ExprKind::Field { base, field, .. } => {
                field == dim && body.expr(*base).kind == ExprKind::Name(Name::Builtin(builtin))
            }
            _ => false,
        };
        let ExprKind::Binary(BinOp::Mul, a, b) = body.expr(through_variables(self.db, self.function, body, expr)).kind
        else {
            return false;
        };
        let product = |index: Builtin, of: &str, extent: &str| {
            [(a, b), (b, a)]
                .iter()
                .any(|(x, y)| is(*x, index, of) && is(*y, Builtin::BlockDim, extent))
        };
        let only = |d: usize| {
            let mut dims = Dims::default();
            dims[d] = true;
            rest.thread == dims && rest.block == Dims::default()
        };
        ["x", "y", "z"]
            .iter()
            .enumerate()
            .any(|(d, dim)| only(d) && product(Builtin::BlockIdx, dim, dim))
            || (only(0) && product(Builtin::ThreadIdx, "y", "x"))
    }
}
