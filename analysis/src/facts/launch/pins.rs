//! Conditions that pick one thread of a warp, a block or a grid.

mod counters;
pub(super) mod numbers;

use self::numbers::{Dims, Number, either};
use super::Launchers;
use super::config::{definition, is_changed_unseen, may_be_users, stable};
use super::places::Places;
use crate::base::db::Db;
use crate::base::span::Span;
use crate::facts::hidden::operator_use;
use crate::facts::uniformity::{FunctionUniformity, Level, called_recursively, calls_of, only_known_calls, uniformity};
use crate::hir::items::FunctionItem;
use crate::hir::resolve::{Meaning, meaning_in};
use crate::hir::walk::operands;
use crate::hir::{
    BinOp, BindingId, Body, Builtin, ExprId, ExprKind, Name, Stmt, StmtId, StmtKind, Storage, UnOp, body,
};

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

/// What stands behind the statement in its block isn't reached through it: it returns, or leaves the block otherwise.
fn leaves(body: &Body, stmt: StmtId) -> bool {
    match &body.stmt(stmt).kind {
        StmtKind::Return(_) | StmtKind::Continue | StmtKind::Break => true,
        StmtKind::Block(stmts) => stmts.last().is_some_and(|s| leaves(body, *s)),
        _ => false,
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
    pub(super) threads: Dims,
    pub(super) blocks: Dims,
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
    pub(super) fn pinned_at(&self, places: &Places, expr: ExprId) -> Vec<Number> {
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
                        // Nor does a label within another statement, to which that one comes, too.
                        let block = places.parent(stmt).and_then(|block| places.parent(block));
                        let directly = block.is_some_and(|s| matches!(body.stmt(s).kind, StmtKind::Switch { .. }));
                        let label = body.stmt(stmt).span.start;
                        let led = body.stmts.iter().any(|other| {
                            matches!(other.kind, StmtKind::Case { .. })
                                && label < other.span.start
                                && other.span.start <= at.start
                        });
                        if falls || matches!(above, Some(StmtKind::Case { .. })) || led || !directly {
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
    pub(super) fn who(&self, pinned: &[Number]) -> Launchers {
        let blocks = self.covers(pinned, self.blocks, |n| n.block) || pinned.iter().any(|n| n.all_blocks);
        match (self.one_per_block(pinned), blocks) {
            (true, true) => Launchers::OnePerGrid,
            (true, false) => Launchers::OnePerBlock,
            (false, _) if pinned.iter().any(|n| n.lane) => Launchers::OnePerWarp,
            (false, _) => Launchers::ManyThreads,
        }
    }

    pub(super) fn one_per_block(&self, pinned: &[Number]) -> bool {
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
            ExprKind::Name(Name::Local(binding)) if self.is_truth_variable(*binding) => {
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
            ExprKind::Call {
                name: Some(name), args, ..
            } if outcome && args.is_empty() => self.answered(cond, name, found),
            // The bare number as a condition: zero where it is false.
            _ if !outcome => zero(cond, found),
            _ => {}
        }
    }

    /// What is fixed where a device function says yes, which asks for the block or the thread: `if (is_last_block())`. It is called nowhere
    /// else, so that what it draws from a counter is drawn once.
    fn answered(&self, call: ExprId, name: &str, found: &mut Vec<Number>) {
        let db = self.db;
        let (Some(depth), Meaning::Functions(functions)) =
            (self.depth.checked_sub(1), meaning_in(db, self.function, name))
        else {
            return;
        };
        let [callee] = functions.as_slice() else { return };
        let signature = callee.signature(db);
        let certain =
            callee.has_body(db) && signature.device && !signature.member && signature.template_params.is_none();
        let calls = calls_of(db, *callee);
        let once = matches!(calls.as_slice(), [call] if call.caller == self.function) && only_known_calls(db, *callee);
        if !certain || !once || self.is_repeated(call) || called_recursively(db, *callee) {
            return;
        }
        let inner = body(db, *callee);
        let mut returned = inner.stmts.iter().filter_map(|stmt| match stmt.kind {
            StmtKind::Return(value) => Some(value),
            _ => None,
        });
        let (Some(Some(value)), None) = (returned.next(), returned.next()) else {
            return;
        };
        if inner.cut || !inner.problems.is_empty() {
            return;
        }
        let levels = uniformity(db, *callee);
        let own = Pins::new(db, *callee, &inner, &levels);
        let own = Pins {
            threads: either(own.threads, self.threads),
            blocks: either(own.blocks, self.blocks),
            depth,
            resets: self.resets,
            ..own
        };
        own.pinned(value, true, found);
    }

    /// A condition may be an operator of the user's.
    fn is_users(&self, cond: ExprId) -> bool {
        operator_use(self.body, cond)
            .is_some_and(|(symbol, operands)| may_be_users(self.db, self.function, self.body, symbol, &operands))
    }

    /// A variable that is true where the value that it is given is: a `bool`, or a whole number that holds what a comparison says.
    fn is_truth_variable(&self, binding: BindingId) -> bool {
        let ty = &self.body.binding(binding).ty;
        let number = || {
            matches!(
                ty.base.as_str(),
                "int" | "unsigned" | "unsigned int" | "char" | "unsigned char"
            )
        };
        let compares = |value| {
            let told = &self.body.expr(self.body.strip_parens(value)).kind;
            match told {
                ExprKind::Binary(op, ..) => {
                    matches!(
                        op,
                        BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge
                    )
                }
                ExprKind::Logical { .. } | ExprKind::Unary(UnOp::Not, _) => true,
                _ => false,
            }
        };
        let holds = || {
            self.flag(binding)
                .is_some_and(|(value, _)| !self.is_users(value) && compares(value))
        };
        ty.base == "bool" || ty.is_value() && !ty.volatile && number() && holds()
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
}
