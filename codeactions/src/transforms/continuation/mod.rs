//! What follows a wait for child grids as a kernel of its own, which is launched into the tail of the grid.
//!
//! The tail starts when the whole parent grid and all its children are complete, so for each block that is one of the times at
//! which it may go on behind its own wait: blocks don't rely on each other's progress. What a thread of the continuation needs is
//! handed over where it's the same for all threads, and computed again where it is a function of the thread's place in the grid and
//! of memory that nothing writes.

pub(super) mod addresses;
mod checked;
mod emit;
mod looped;
pub(super) mod needs;
mod order;
mod streams;
pub mod wait;

use std::collections::{BTreeMap, BTreeSet};

use gridfuse_analysis::base::file_settings::file_settings;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::dependence::Waited;
use gridfuse_analysis::facts::effects::{Assembly, BUILTINS, Effects, effects};
use gridfuse_analysis::facts::hidden::hidden;
use gridfuse_analysis::facts::launch::{LaunchFacts, Launchers, gets_there_by_flat_blocks, launches, who_gets_to};
use gridfuse_analysis::facts::left_behind::{may_leave, may_take};
use gridfuse_analysis::facts::uniformity::{FunctionUniformity, Level, uniformity};
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::{functions_named, launch_sites_of, only_known_launches};
use gridfuse_analysis::hir::walk::{all_exprs, all_in_expr};
use gridfuse_analysis::hir::{BindingId, Body, Builtin, ExprId, ExprKind, Name, StmtId, StmtKind};

use crate::api::assumption::{self, Assumed};
use crate::api::refusal::Ineligible;
use crate::api::refusal::Reason;
use crate::api::refusal::Refusals;
use crate::api::refusal::refuse;
use crate::api::source_edit::SourceEdit;
use crate::edit::lex;
use crate::edit::names::Names;
use crate::facts::calls::is_plain_type;
use crate::facts::child::Child;
use crate::transforms::continuation::checked::Checked;
use crate::transforms::continuation::looped::Looped;
use crate::transforms::continuation::streams::Renewed;
use crate::transforms::continuation::wait::Wait;
use crate::transforms::fission::structure::is_barrier;

/// Where a statement stands, from the inside to the outside.
enum Around {
    /// In a block, behind others and in front of others.
    Block {
        /// The block.
        stmt: StmtId,
        /// Its statements.
        stmts: Vec<StmtId>,
        /// Which of them leads to the wait.
        index: usize,
        /// The last one that stays: it leads to the wait, or only looks at errors behind it.
        last: usize,
        /// The first statement that moves; those between the last one that stays and it are barriers that aren't needed any more.
        first: usize,
    },
    /// In a branch.
    Guard {
        cond: ExprId,
        /// In the `else`.
        negated: bool,
        constexpr: bool,
    },
}

impl Around {
    /// The statements that move.
    fn rest(&self) -> &[StmtId] {
        match self {
            Around::Block { stmts, first, .. } => stmts.get(*first..).unwrap_or(&[]),
            Around::Guard { .. } => &[],
        }
    }

    /// The statements that stay, in front of what moves.
    fn before(&self) -> &[StmtId] {
        match self {
            Around::Block { stmts, last, .. } => stmts.get(..=*last).unwrap_or(&[]),
            Around::Guard { .. } => &[],
        }
    }
}

/// Who runs what follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runs {
    /// One thread of the grid, which launches the continuation when it gets there.
    One,
    /// All threads come there together, or none does: the first thread of the grid launches it there.
    All,
    /// Threads that have to find out again: it is launched at the beginning.
    Some,
}

/// A variable that the continuation needs.
enum Given {
    /// A parameter of it, with its declaration.
    Passed(String),
    /// It is declared again.
    Declared,
}

struct Tail<'a, 'db> {
    wait: &'a Wait<'db>,
    kernel: &'a Child<'db>,
    /// The statement that waits, and what stays of it.
    checked: &'a Checked,
    levels: Vec<Around>,
    /// The level whose statements are the last to move.
    outermost: usize,
    runs: Runs,
    /// What moves, relative to the kernel.
    moved: Vec<Span>,
    uniformity: std::sync::Arc<FunctionUniformity>,
    /// The loop that goes on in the continuation, if the wait stands in one.
    looped: Option<Looped>,
    given: BTreeMap<BindingId, Given>,
    /// Streams that the kernel has created before the wait.
    streams: BTreeMap<BindingId, Renewed>,
    /// Reads of memory that are done again.
    reads: BTreeSet<ExprId>,
    /// `if (…) return;` to be done again, by the statement.
    returns: BTreeMap<StmtId, Vec<(ExprId, bool)>>,
}

/// Whether a loop that seems to wait for another thread waits for child grids: a wait stands in it, and no other thread does anything.
pub fn waits_for_children(wait: &Wait<'_>, looping: Span) -> bool {
    let exprs = &wait.body.exprs;
    let mut all = (0..exprs.len() as u32).map(ExprId);
    let waits = all.any(|e| wait.is_one(e) && looping.contains(wait.body.expr(e).span));
    waits && (has_one_thread(wait) || acts_alone(wait))
}

/// The wait stands in a loop.
pub fn is_in(wait: &Wait<'_>, looping: Span) -> bool {
    looping.contains(wait.body.expr(wait.call).span)
}

/// Whether one thread of the grid does all that the kernel does, in a branch around the wait: the others compute a condition and leave.
fn acts_alone(wait: &Wait<'_>) -> bool {
    let body = &*wait.body;
    let mut branches: Vec<StmtId> = wait.places.around(wait.call).collect();
    branches.reverse();
    let alone = branches.into_iter().find_map(|stmt| match body.stmt(stmt).kind {
        StmtKind::If { then, .. } => {
            let inside = body.stmt(then).span;
            let first = all_exprs(body, then).into_iter().next()?;
            let one = who_gets_to(wait.db, wait.function, first) == Some(Launchers::OnePerGrid);
            (one && inside.contains(body.expr(wait.call).span)).then_some(inside)
        }
        _ => None,
    });
    let Some(alone) = alone else { return false };
    let idle = |kind: &ExprKind| match kind {
        ExprKind::Literal(_)
        | ExprKind::Name(_)
        | ExprKind::Paren(_)
        | ExprKind::Unary(..)
        | ExprKind::Binary(..)
        | ExprKind::Logical { .. }
        | ExprKind::Conditional { .. }
        | ExprKind::Index { .. }
        | ExprKind::Deref(_)
        | ExprKind::Field { .. }
        | ExprKind::SizeOf => true,
        ExprKind::Cast { ty, .. } => is_plain_type(ty),
        _ => false,
    };
    let asks = |kind: &StmtKind| {
        matches!(
            kind,
            StmtKind::Asm { .. } | StmtKind::Unknown { .. } | StmtKind::Preprocessor { .. }
        )
    };
    hidden(wait.db, wait.function).is_empty()
        && body.problems.is_empty()
        && body.exprs.iter().all(|e| alone.contains(e.span) || idle(&e.kind))
        && body.stmts.iter().all(|s| alone.contains(s.span) || !asks(&s.kind))
}

/// Whether the kernel that waits has one thread, in all of its grids.
fn has_one_thread(wait: &Wait<'_>) -> bool {
    let (db, function) = (wait.db, wait.function);
    let sites = launch_sites_of(db, function);
    let one = |facts: &LaunchFacts<'_>| is_one_block(facts) && facts.block.constant == Some([1, 1, 1]);
    let mut all = sites.iter().map(|id| launches(db, id.function).get(id.index as usize));
    !sites.is_empty() && all.all(|facts| facts.is_some_and(one)) && only_known_launches(db, function)
}

/// A launch of the kernel that fails whenever it is come to, where the kernel does something about errors.
fn failing_launch(wait: &Wait<'_>) -> Option<Ineligible> {
    let fails = |facts: &&LaunchFacts<'_>| {
        let count = |of: Option<[u64; 3]>| of.map(|[x, y, z]| x.saturating_mul(y).saturating_mul(z));
        let block = count(facts.block.constant);
        count(facts.grid.constant) == Some(0) || block.is_some_and(|threads| threads == 0 || threads > MAX_THREADS)
    };
    let facts = launches(wait.db, wait.function).iter().find(fails)?;
    let child = facts.kernel_name.as_deref().unwrap_or("a kernel");
    Some(refuse(
        format!(
            "this launch of `{child}` fails, and `{}` asks for errors; give it between 1 and {MAX_THREADS} threads in a block, and a block at \
             least",
            wait.kernel()
        ),
        Some(wait.place(facts.span)),
    ))
}

/// Threads of a block at most.
const MAX_THREADS: u64 = 1024;

/// Moves what follows the wait into a kernel of its own.
pub fn move_tail<'db>(wait: &Wait<'db>, waited: &Waited<'db>) -> Result<SourceEdit, Ineligible> {
    let db = wait.db;
    let mut refusals = Refusals::default();
    if file_settings(db, wait.file)
        .cuda
        .is_some_and(|version| version < (12, 0))
    {
        refusals.add("cudaStreamTailLaunch came with CUDA 12", Some(wait.here()));
    }
    let Some(checked) = Checked::find(wait) else {
        return Err(refuse(
            "what follows can't become a kernel of its own, as the wait isn't a statement that only waits, or looks at its error and does \
             nothing where there is none",
            Some(wait.here()),
        ));
    };
    if !checked.plain {
        wait.word()?;
    }
    if checked.stays.is_some()
        && let Some(reason) = failing_launch(wait)
    {
        return Err(reason);
    }
    let mut names = Names::default();
    names.add_file(db, wait.file);
    let kernel = Child::read(db, wait.function, &mut names, &mut refusals);
    refusals.check()?;
    let tail = match Looped::around(wait, &checked, &kernel.text) {
        Some(looped) => Tail::in_loop(wait, &kernel, &checked, looped),
        None => Tail::new(wait, &kernel, &checked),
    };
    let mut tail = tail.map_err(|reason| Ineligible(vec![reason]))?;
    tail.collect().map_err(|reason| Ineligible(vec![reason]))?;
    let mut children: Vec<&str> = waited
        .children
        .iter()
        .filter_map(|index| launches(db, wait.function).get(*index as usize)?.kernel_name.as_deref())
        .map(unqualified)
        .collect();
    children.dedup();
    let child = match children.as_slice() {
        // `sort_after_sort` would say nothing.
        [one] if *one != unqualified(&kernel.name) => one,
        _ => "children",
    };
    let name = names.fresh(&format!("{}_after_{child}", kernel.name));
    match &tail.looped {
        Some(looped) => tail.write_looped(looped, &name),
        None => tail.write(&name),
    }
}

impl<'a, 'db> Tail<'a, 'db> {
    fn empty(wait: &'a Wait<'db>, kernel: &'a Child<'db>, checked: &'a Checked) -> Self {
        Tail {
            wait,
            kernel,
            checked,
            levels: Vec::new(),
            outermost: 0,
            runs: Runs::Some,
            moved: Vec::new(),
            uniformity: uniformity(wait.db, wait.function),
            looped: None,
            given: BTreeMap::new(),
            streams: BTreeMap::new(),
            reads: BTreeSet::new(),
            returns: BTreeMap::new(),
        }
    }

    fn new(wait: &'a Wait<'db>, kernel: &'a Child<'db>, checked: &'a Checked) -> Result<Self, Reason> {
        let mut tail = Tail::empty(wait, kernel, checked);
        tail.refuse_unclear()?;
        tail.levels = tail.around(checked.stmt)?;
        if let Some(Around::Block { last, .. }) = tail.levels.first_mut() {
            *last += checked.behind;
        }
        let body = tail.body();
        // Barriers for those that wait for the one that waits are not needed where nothing of it moves.
        for level in &mut tail.levels {
            if let Around::Block { stmts, last, first, .. } = level {
                let barriers = stmts[*last + 1..].iter().take_while(|s| is_barrier(body, **s)).count();
                *first = *last + 1 + barriers;
            }
            if !level.rest().is_empty() {
                break;
            }
        }
        let Some(outermost) = tail.levels.iter().rposition(|l| !l.rest().is_empty()) else {
            return Err(tail.reason("nothing follows the wait that could move", wait.here()));
        };
        tail.outermost = outermost;
        for level in &tail.levels {
            if let [first, .., last] | [first @ last] = level.rest() {
                tail.moved.push(body.stmt(*first).span.cover(body.stmt(*last).span));
            }
        }
        tail.refuse_other_tails()?;
        tail.runs = tail.who_runs();
        Ok(tail)
    }

    fn body(&self) -> &'a Body {
        &self.wait.body
    }

    fn reason(&self, text: impl Into<String>, place: FileRange) -> Reason {
        Reason {
            text: text.into(),
            place: Some(place),
        }
    }

    fn at(&self, text: impl Into<String>, span: Span) -> Reason {
        self.reason(text, self.wait.place(span))
    }

    /// Code of which it isn't clear what moves with it.
    fn refuse_unclear(&self) -> Result<(), Reason> {
        let (body, name) = (self.body(), self.wait.kernel());
        for stmt in &body.stmts {
            let what = match &stmt.kind {
                StmtKind::Goto(_) | StmtKind::Label(..) => "jumps to labels",
                StmtKind::Preprocessor { .. } => "has parts under an #if",
                StmtKind::Unknown { .. } => "has a statement that is not understood",
                _ => continue,
            };
            return Err(self.at(format!("`{name}` {what}, so nothing of it can be moved"), stmt.span));
        }
        let all = effects(self.wait.db, self.wait.function);
        if let Some(asm) = all.asm.iter().find(|asm| asm.may_have(&["exit", "ret"])) {
            return Err(self.reason(format!("threads may leave `{name}` by inline assembly"), asm.place));
        }
        let around = self.wait.places.around(self.wait.call);
        for stmt in around.skip_while(|stmt| *stmt != self.checked.stmt).skip(1) {
            // All that a macro stands for is where its use is: a part of that can't be moved. What is in other blocks goes as a whole.
            let StmtKind::Block(all) = &body.stmt(stmt).kind else {
                continue;
            };
            let spans = all
                .iter()
                .map(|inner| body.stmt(*inner).span)
                .filter(|span| span.start < span.end);
            let spans: Vec<Span> = spans.collect();
            if let Some(pair) = spans.windows(2).find(|pair| pair[1].start < pair[0].end) {
                return Err(self.at(
                    format!("a macro in `{name}` stands for several statements; write them out"),
                    pair[0],
                ));
            }
        }
        for expr in &body.exprs {
            if matches!(expr.kind, ExprKind::Lambda { .. } | ExprKind::Unknown { .. }) {
                return Err(self.at(
                    format!("`{name}` has an expression that can't be moved to another kernel"),
                    expr.span,
                ));
            }
        }
        // What is destroyed at the end of the kernel would be before what moves runs.
        let hidden = hidden(self.wait.db, self.wait.function);
        if let Some(hidden) = hidden.iter().find(|hidden| hidden.anywhere) {
            let text = format!("`{name}` may run {}, and when isn't known", hidden.what);
            return Err(self.reason(text, self.wait.here()));
        }
        if let Some(group) = self.wait.function.decided(self.wait.db).first() {
            return Err(self.at(
                format!("`{name}` has parts under an #if, so nothing of it can be moved"),
                *group,
            ));
        }
        if let Some(binding) = body.bindings.iter().find(|b| BUILTINS.contains(&b.name.as_str())) {
            return Err(self.at(
                format!("`{name}` has a variable named `{}`", binding.name),
                binding.span,
            ));
        }
        let text = self.wait.function.text(self.wait.db);
        let inner = self.wait.function.body_span(self.wait.db).text(&text);
        // Indented anew, it would read differently.
        if crate::edit::one_line::has_long_literal(inner) {
            return Err(self.reason(
                format!("`{name}` has a string over several lines, so nothing of it can be moved"),
                self.kernel.place(),
            ));
        }
        let directive = || lex::identifiers(inner).find(|word| matches!(*word, "define" | "undef"));
        if let Some(word) = lex::type_declaration(inner).or_else(directive) {
            return Err(self.reason(
                format!("`{name}` has a declaration (`{word}`) that other code of it may need"),
                self.kernel.place(),
            ));
        }
        Ok(())
    }

    /// The blocks and branches around the wait.
    fn around(&self, stmt: StmtId) -> Result<Vec<Around>, Reason> {
        let body = self.body();
        let mut found = Vec::new();
        let mut inner = stmt;
        while let Some(outer) = self.wait.places.parent(inner) {
            match &body.stmt(outer).kind {
                StmtKind::Block(stmts) => {
                    let index = stmts.iter().position(|s| *s == inner).unwrap_or_default();
                    found.push(Around::Block {
                        stmt: outer,
                        stmts: stmts.clone(),
                        index,
                        last: index,
                        first: index + 1,
                    });
                }
                StmtKind::If {
                    init: None,
                    cond: Some(cond),
                    constexpr,
                    then,
                    ..
                } => found.push(Around::Guard {
                    cond: *cond,
                    negated: *then != inner,
                    constexpr: *constexpr,
                }),
                kind => {
                    let what = match kind {
                        StmtKind::While { .. }
                        | StmtKind::DoWhile { .. }
                        | StmtKind::For { .. }
                        | StmtKind::RangeFor { .. } => "a loop",
                        StmtKind::Switch { .. } | StmtKind::Case { .. } => "a switch",
                        _ => "a statement",
                    };
                    return Err(self.at(
                        format!("the wait stands in {what}, so what follows can't become a kernel of its own"),
                        body.stmt(outer).span,
                    ));
                }
            }
            inner = outer;
        }
        if body.root != Some(inner) {
            return Err(self.reason("where the wait stands is not understood", self.wait.here()));
        }
        Ok(found)
    }

    /// The statement that leads to the wait, in the block whose rest moves last.
    fn path(&self) -> StmtId {
        match &self.levels[self.outermost] {
            Around::Block { stmts, index, .. } => stmts[*index],
            // Nothing moves out of a branch by itself.
            Around::Guard { .. } => self.wait.places.statement_of(self.wait.call).unwrap_or(StmtId(0)),
        }
    }

    /// Who gets to this runs what moves.
    fn anchor(&self) -> ExprId {
        let mut around = self.levels[..self.outermost].iter().rev();
        let guard = around.find_map(|level| match level {
            Around::Guard { cond, .. } => Some(*cond),
            Around::Block { .. } => None,
        });
        guard.unwrap_or(self.wait.call)
    }

    /// That one thread runs what moves, where nothing says so for sure.
    fn flat_blocks(&self) -> Option<Assumed> {
        let (db, function) = (self.wait.db, self.wait.function);
        let assumed = self.runs == Runs::One && gets_there_by_flat_blocks(db, function, self.anchor());
        let text = format!(
            "blocks of `{}` have one dimension, so that one thread waits here",
            self.kernel.name
        );
        assumed.then(|| assumption::ONE_DIMENSIONAL_BLOCKS.of(self.reason(text, self.wait.here())))
    }

    /// That functions called by what moves don't count on what an earlier call has left in shared memory.
    fn kept_by_callees(&self) -> Option<Assumed> {
        let (db, function) = (self.wait.db, self.wait.function);
        let own = |place: FileRange| {
            let start = self.wait.start;
            let end = start + function.text(db).len() as u32;
            place.file == self.wait.file && start <= place.range.start && place.range.end <= end
        };
        let all = effects(db, function);
        let theirs = all.shared.iter().find(|found| !own(found.place))?;
        let keeps = |e: &ExprId| match &self.body().expr(*e).kind {
            ExprKind::Call { name: Some(name), .. } => functions_named(db, self.wait.file, name)
                .into_iter()
                .any(|f| !effects(db, f).shared.is_empty()),
            ExprKind::Call { name: None, .. } => true,
            _ => false,
        };
        let text = format!(
            "{}, in a function that `{}` calls, is written before it is read in each call: what follows the wait has new shared memory",
            theirs.what, self.kernel.name
        );
        self.moved_exprs()
            .iter()
            .any(keeps)
            .then(|| assumption::FRESH_SHARED_MEMORY.of(self.reason(text, theirs.place)))
    }

    /// That what moves finds no address of the kernel's local or shared memory, and no stream of its own, where the kernel may have left it.
    fn left_in_memory(&self) -> Option<Assumed> {
        let (db, function) = (self.wait.db, self.wait.function);
        // A loop that goes on there does all that it did.
        let all = [Span::new(0, function.text(db).len() as u32)];
        let parts = if self.looped.is_some() { &all[..] } else { &self.moved };
        may_take(db, function, parts)?;
        let left = may_leave(db, function)?;
        let text = format!(
            "`{}` leaves no address of local or shared memory, and no stream, in memory that what follows the wait reads: another grid can't \
             use them",
            self.kernel.name
        );
        Some(assumption::NOTHING_LEFT_IN_MEMORY.of(self.reason(text, left)))
    }

    /// All launches of the kernel are known and like this.
    fn always(&self, fits: &dyn Fn(&LaunchFacts<'_>) -> bool) -> bool {
        let (db, sites) = (self.wait.db, launch_sites_of(self.wait.db, self.wait.function));
        let mut facts = sites.iter().map(|id| launches(db, id.function).get(id.index as usize));
        !sites.is_empty() && facts.all(|facts| facts.is_some_and(fits)) && only_known_launches(db, self.wait.function)
    }

    /// The kernel's grids have one thread, as one has that a single thread launches into its tail.
    fn has_one_thread(&self) -> bool {
        has_one_thread(self.wait)
    }

    fn who_runs(&self) -> Runs {
        let (db, function) = (self.wait.db, self.wait.function);
        let anchor = self.anchor();
        let one = match who_gets_to(db, function, anchor) {
            Some(Launchers::OnePerGrid) => true,
            Some(Launchers::OnePerBlock) => self.always(&is_one_block),
            _ => false,
        };
        if one && (self.has_one_thread() || !self.numbers_threads()) {
            return Runs::One;
        }
        let level = self.uniformity.divergence.get(&self.path()).map(|u| u.level);
        if level.is_some_and(|level| level <= Level::Grid) {
            Runs::All
        } else {
            Runs::Some
        }
    }

    /// What moves, or a condition in it, may ask which thread runs it, or how many there are.
    fn numbers_threads(&self) -> bool {
        let inside = self.levels[..self.outermost].iter().enumerate();
        let conds = inside.filter_map(|(level, around)| match around {
            Around::Guard { cond, .. } if self.asks_again(level) => Some(*cond),
            _ => None,
        });
        let mut exprs = self.moved_exprs();
        exprs.extend(conds.flat_map(|cond| all_in_expr(self.body(), cond)));
        let own = exprs
            .iter()
            .any(|e| matches!(&self.body().expr(*e).kind, ExprKind::Name(Name::Builtin(b)) if *b != Builtin::WarpSize));
        let all = effects(self.wait.db, self.wait.function);
        own || !all.builtins_in_callees.is_empty() || !all.unknown.is_empty() || self.asks_the_machine(&exprs, &all)
    }

    /// The same without built-in variables: by inline assembly, by what the threads of a warp say to each other. `exprs`: what moves.
    fn asks_the_machine(&self, exprs: &[ExprId], all: &Effects) -> bool {
        let (db, body) = (self.wait.db, self.body());
        let moves = |place: FileRange| {
            let range = place.range;
            let spans = self.moved.iter().map(|span| span.shift(self.wait.start));
            place.file == self.wait.file && spans.into_iter().any(|m| m.start <= range.start && range.end <= m.end)
        };
        let asks = |asm: &Assembly| !asm.computes_alone();
        if all.asm.iter().any(|a| moves(a.place) && asks(a)) || all.warp.iter().any(|w| moves(w.place)) {
            return true;
        }
        exprs.iter().any(|e| match &body.expr(*e).kind {
            ExprKind::Call { name: Some(name), .. } => functions_named(db, self.wait.file, name).into_iter().any(|f| {
                let called = effects(db, f);
                !called.warp.is_empty() || called.asm.iter().any(asks)
            }),
            ExprKind::Call { name: None, .. } => !all.warp.is_empty() || all.asm.iter().any(asks),
            _ => false,
        })
    }

    /// The statements that move.
    fn moved_stmts(&self) -> Vec<StmtId> {
        let looped = self.looped.iter().map(|looped| looped.stmt);
        looped
            .chain(self.levels.iter().flat_map(|l| l.rest().iter().copied()))
            .collect()
    }

    fn moved_exprs(&self) -> Vec<ExprId> {
        let stmts = self.moved_stmts();
        stmts.into_iter().flat_map(|s| all_exprs(self.body(), s)).collect()
    }

    fn moves(&self, span: Span) -> bool {
        self.moved.iter().any(|m| m.start <= span.start && span.end <= m.end)
    }

    /// A branch whose condition the continuation has to look at again.
    fn asks_again(&self, level: usize) -> bool {
        let inside = level < self.outermost && self.levels[..level].iter().any(|l| !l.rest().is_empty());
        inside || level > self.outermost && self.runs == Runs::Some
    }
}

fn is_one_block(facts: &LaunchFacts<'_>) -> bool {
    facts.grid.constant == Some([1, 1, 1])
}
