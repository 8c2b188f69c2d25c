//! What follows a wait for child grids as a kernel of its own, which is launched into the tail of the grid.
//!
//! The tail starts when the whole parent grid and all its children are complete, so for each block that is one of the times at
//! which it may go on behind its own wait: blocks don't rely on each other's progress. What a thread of the continuation needs is
//! handed over where it's the same for all threads, and computed again where it is a function of the thread's place in the grid and
//! of memory that nothing writes.

use std::collections::{BTreeMap, BTreeSet};

use gridfuse_analysis::db::{Db, SourceFile};
use gridfuse_analysis::dependence::{Dependence, Waited, unchanged};
use gridfuse_analysis::escape::escapes;
use gridfuse_analysis::hir::{BindingId, Body, Builtin, ExprId, ExprKind, Literal, Name, StmtId, StmtKind, Storage};
use gridfuse_analysis::launch::{
    Bound, LaunchFacts, Launchers, in_recursion, launch_counts, launches, pending_launch_limit, who_gets_to,
};
use gridfuse_analysis::resolve::{Meaning, functions_named, launch_sites_of, meaning, unqualified};
use gridfuse_analysis::settings::file_settings;
use gridfuse_analysis::span::{FileRange, Span, TextRange};
use gridfuse_analysis::summary::summary;
use gridfuse_analysis::uniformity::{FunctionUniformity, Level, uniformity};

use crate::calls::{self, Library};
use crate::child::{Child, copies_plainly};
use crate::edit::{EditBuilder, SourceEdit};
use crate::effects::{BUILTINS, effects, is_pure};
use crate::fission::uses::{all_exprs, all_stmts};
use crate::fixes::replace_device_sync::{Wait, delete};
use crate::handlers::finish;
use crate::lex;
use crate::names::Names;
use crate::outline;
use crate::pure::{assignments, is_plain_type, only_assigned};
use crate::rewrite::{Ineligible, Reason};
use crate::site::{Refusals, refuse};
use crate::style;
use crate::target;

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
        /// The first statement that moves; those between the wait and it are barriers that aren't needed any more.
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
    levels: Vec<Around>,
    /// The level whose statements are the last to move.
    outermost: usize,
    runs: Runs,
    /// What moves, relative to the kernel.
    moved: Vec<Span>,
    uniformity: std::sync::Arc<FunctionUniformity>,
    given: BTreeMap<BindingId, Given>,
    /// Reads of memory that are done again.
    reads: BTreeSet<ExprId>,
    /// `if (…) return;` to be done again, by the statement.
    returns: BTreeMap<StmtId, Vec<(ExprId, bool)>>,
}

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
    let Some(stmt) = wait.statement() else {
        return Err(refuse(
            "what follows can't become a kernel of its own, as the wait isn't a statement",
            Some(wait.here()),
        ));
    };
    let mut names = Names::default();
    names.add_file(db, wait.file);
    let kernel = Child::read(db, wait.function, &mut names, &mut refusals);
    refusals.check()?;
    let Some(kernel) = kernel else {
        return Err(refuse("the kernel is not understood", Some(wait.here())));
    };
    let mut tail = Tail::new(wait, &kernel, stmt).map_err(|reason| Ineligible(vec![reason]))?;
    tail.collect().map_err(|reason| Ineligible(vec![reason]))?;
    let mut children: Vec<&str> = waited
        .children
        .iter()
        .filter_map(|index| launches(db, wait.function).get(*index as usize)?.kernel_name.as_deref())
        .map(unqualified)
        .collect();
    children.dedup();
    let child = match children.as_slice() {
        [one] => one,
        _ => "children",
    };
    let name = names.fresh(&format!("{}_after_{child}", kernel.name));
    tail.write(&name, stmt)
}

impl<'a, 'db> Tail<'a, 'db> {
    fn new(wait: &'a Wait<'db>, kernel: &'a Child<'db>, stmt: StmtId) -> Result<Self, Reason> {
        let db = wait.db;
        let mut tail = Tail {
            wait,
            kernel,
            levels: Vec::new(),
            outermost: 0,
            runs: Runs::Some,
            moved: Vec::new(),
            uniformity: uniformity(db, wait.function),
            given: BTreeMap::new(),
            reads: BTreeSet::new(),
            returns: BTreeMap::new(),
        };
        tail.refuse_unclear()?;
        tail.levels = tail.around(stmt)?;
        let body = tail.body();
        // Barriers for those that wait for the one that waits are not needed where nothing of it moves.
        for level in &mut tail.levels {
            if let Around::Block {
                stmts, index, first, ..
            } = level
            {
                let barriers = stmts[*index + 1..].iter().take_while(|s| is_barrier(body, **s)).count();
                *first = *index + 1 + barriers;
            }
            if !level.rest().is_empty() {
                break;
            }
        }
        let Some(outermost) = tail.levels.iter().rposition(|l| !l.rest().is_empty()) else {
            return Err(tail.reason("nothing that could move stands behind the wait", wait.here()));
        };
        tail.outermost = outermost;
        for level in &tail.levels {
            if let [first, .., last] | [first @ last] = level.rest() {
                tail.moved.push(body.stmt(*first).span.cover(body.stmt(*last).span));
            }
        }
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
        for expr in &body.exprs {
            if matches!(expr.kind, ExprKind::Lambda { .. } | ExprKind::Unknown { .. }) {
                return Err(self.at(
                    format!("`{name}` has an expression that can't be moved to another kernel"),
                    expr.span,
                ));
            }
        }
        if let Some(group) = self.wait.function.signature(self.wait.db).decided.first() {
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
        let types = [
            "struct", "class", "union", "enum", "typedef", "using", "define", "undef",
        ];
        if let Some(word) = lex::identifiers(inner).find(|w| types.contains(w)) {
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

    fn who_runs(&self) -> Runs {
        let (db, function) = (self.wait.db, self.wait.function);
        let anchor = self.levels[..self.outermost]
            .iter()
            .rev()
            .find_map(|level| match level {
                Around::Guard { cond, .. } => Some(*cond),
                Around::Block { .. } => None,
            })
            .unwrap_or(self.wait.call);
        let sites = launch_sites_of(db, function);
        let all = |fits: &dyn Fn(&LaunchFacts<'_>) -> bool| {
            let mut facts = sites.iter().map(|id| launches(db, id.function).get(id.index as usize));
            !sites.is_empty() && facts.all(|facts| facts.is_some_and(fits))
        };
        let one_block = all(&|f| f.grid.constant == Some([1, 1, 1]));
        let alone = one_block && all(&|f| f.block.constant == Some([1, 1, 1]));
        let one = match who_gets_to(db, function, anchor) {
            Some(Launchers::OnePerGrid) => true,
            Some(Launchers::OnePerBlock) => one_block,
            _ => false,
        };
        if one && (alone || !self.numbers_threads()) {
            return Runs::One;
        }
        let level = self.uniformity.divergence.get(&self.path()).map(|u| u.level);
        if level.is_some_and(|level| level <= Level::Grid) {
            Runs::All
        } else {
            Runs::Some
        }
    }

    /// What moves may ask which thread runs it, or how many there are.
    fn numbers_threads(&self) -> bool {
        let own = self
            .moved_exprs()
            .iter()
            .any(|e| matches!(&self.body().expr(*e).kind, ExprKind::Name(Name::Builtin(b)) if *b != Builtin::WarpSize));
        let all = effects(self.wait.db, self.wait.function);
        own || !all.builtins_in_callees.is_empty() || !all.unknown.is_empty()
    }

    /// The statements that move.
    fn moved_stmts(&self) -> Vec<StmtId> {
        self.levels.iter().flat_map(|l| l.rest().iter().copied()).collect()
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

    /// Finds out what the continuation needs.
    fn collect(&mut self) -> Result<(), Reason> {
        let body = self.body();
        let mut needed: Vec<ExprId> = self.moved_exprs();
        let path = body.stmt(self.path()).span;
        for (index, stmt) in body.stmts.iter().enumerate() {
            if !matches!(stmt.kind, StmtKind::Return(_)) || self.moves(stmt.span) || self.runs == Runs::One {
                continue;
            }
            let id = StmtId(index as u32);
            if path.start <= stmt.span.start && stmt.span.end <= path.end {
                return Err(self.at("some threads leave the kernel where others get to the wait", stmt.span));
            }
            if self.runs == Runs::Some {
                let (holder, cond, negated) = self.simple_return(id)?;
                self.again(cond)?;
                needed.push(cond);
                self.returns.entry(holder).or_default().push((cond, negated));
            }
        }
        let guards: Vec<(ExprId, bool)> = self
            .levels
            .iter()
            .enumerate()
            .filter(|(level, _)| self.asks_again(*level))
            .filter_map(|(_, around)| match around {
                Around::Guard { cond, constexpr, .. } => Some((*cond, *constexpr)),
                Around::Block { .. } => None,
            })
            .collect();
        for (cond, constexpr) in guards {
            if constexpr {
                return Err(self.at(
                    "an `if constexpr` around the wait can't be repeated",
                    body.expr(cond).span,
                ));
            }
            self.again(cond)?;
            needed.push(cond);
        }
        for stmt in self.moved_stmts().into_iter().flat_map(|s| all_stmts(body, s)) {
            if let StmtKind::Asm { mentions, .. } = &body.stmt(stmt).kind {
                for binding in mentions.clone() {
                    self.give(binding, body.stmt(stmt).span)?;
                }
            }
        }
        for expr in needed {
            self.names_in(expr)?;
        }
        let all = effects(self.wait.db, self.wait.function);
        let asked = all.errors.iter().find(|error| {
            let own = (0..body.exprs.len() as u32).map(ExprId).any(|e| {
                let span = body.expr(e).span;
                self.wait.place(span) == error.place && !self.moves(span)
            });
            !own
        });
        if let Some(error) = asked {
            return Err(self.reason(
                format!(
                    "what follows may ask for errors of launches before the wait with {}",
                    error.what
                ),
                error.place,
            ));
        }
        let facts = summary(self.wait.db, self.wait.function);
        if let Some(span) = facts.dynamic_shared.iter().find(|span| self.moves(**span)) {
            return Err(self.at(
                "what follows uses dynamic shared memory, whose size isn't known there",
                *span,
            ));
        }
        self.refuse_clashes()?;
        match unchanged(self.wait.db, self.wait.function, &self.reads) {
            Dependence::None(_) => Ok(()),
            Dependence::Conflict(a, b) => {
                let write = if a.kind.reads_only() { b } else { a };
                let place = FileRange {
                    file: write.function.file(self.wait.db),
                    range: write.span.shift(write.function.start(self.wait.db)),
                };
                let name = unqualified(write.function.name(self.wait.db));
                let verb = write.kind.verb();
                Err(self.reason(
                    format!("what follows can't be computed again from memory that `{name}` {verb}"),
                    place,
                ))
            }
            Dependence::Unknown(doubt) => {
                let read = self.reads.first().map_or(self.wait.call, |e| *e);
                Err(self.at(
                    format!(
                        "that what is read here is still the same behind the wait isn't proven: {}",
                        doubt.reason
                    ),
                    body.expr(read).span,
                ))
            }
        }
    }

    /// Variables named directly by an expression: `names` has all its parts.
    fn names_in(&mut self, expr: ExprId) -> Result<(), Reason> {
        let body = self.body();
        for part in crate::fission::uses::all_in_expr(body, expr) {
            match &body.expr(part).kind {
                ExprKind::Name(Name::Local(binding)) => self.give(*binding, body.expr(part).span)?,
                ExprKind::SizeOf | ExprKind::Launch(_) => {
                    // Operands of `sizeof` and template arguments are not lowered.
                    let text = self.wait.function.text(self.wait.db);
                    let words: BTreeSet<&str> = lex::identifiers(body.expr(part).span.text(&text)).collect();
                    let named: Vec<BindingId> = (0..body.bindings.len() as u32)
                        .map(BindingId)
                        .filter(|b| words.contains(body.binding(*b).name.as_str()))
                        .collect();
                    for binding in named {
                        let own = body.binding(binding).storage != Storage::Param || body.params.contains(&binding);
                        if own && body.binding(binding).span.start < body.expr(part).span.start {
                            self.give(binding, body.expr(part).span)?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The `if` in a block on the way to the wait that does nothing else at its end than to leave the kernel.
    fn simple_return(&self, stmt: StmtId) -> Result<(StmtId, ExprId, bool), Reason> {
        let body = self.body();
        let unclear = || {
            self.at(
                "threads leave the kernel here before the wait, and which ones can't be found out again",
                body.stmt(stmt).span,
            )
        };
        let mut inner = stmt;
        let mut outer = self.wait.places.parent(inner).ok_or_else(unclear)?;
        if let StmtKind::Block(stmts) = &body.stmt(outer).kind {
            if stmts.last() != Some(&inner) {
                return Err(unclear());
            }
            inner = outer;
            outer = self.wait.places.parent(inner).ok_or_else(unclear)?;
        }
        let StmtKind::If {
            init: None,
            cond: Some(cond),
            constexpr: false,
            then,
            ..
        } = &body.stmt(outer).kind
        else {
            return Err(unclear());
        };
        let on_the_way = self.levels.iter().any(|level| match level {
            Around::Block { stmts, index, .. } => stmts[..*index].contains(&outer),
            Around::Guard { .. } => false,
        });
        if !on_the_way {
            return Err(unclear());
        }
        Ok((outer, *cond, *then != inner))
    }

    /// Whether a variable is assigned to before the wait.
    fn assigned_before(&self, binding: BindingId) -> bool {
        let body = self.body();
        assignments(body, binding).any(|e| !self.moves(body.expr(e).span))
    }

    /// Whether a variable is used by what stays, beside its declaration.
    fn used_before(&self, binding: BindingId) -> bool {
        let body = self.body();
        let named = |kind: &ExprKind| matches!(kind, ExprKind::Name(Name::Local(b)) if *b == binding);
        let exprs = body.exprs.iter().any(|e| named(&e.kind) && !self.moves(e.span));
        let stmts = body.stmts.iter().any(|s| {
            matches!(&s.kind, StmtKind::Asm { mentions, .. } if mentions.contains(&binding)) && !self.moves(s.span)
        });
        exprs || stmts
    }

    /// The declaration of a variable, on the way to the wait.
    fn declaration(&self, binding: BindingId) -> Option<(StmtId, Option<ExprId>)> {
        let body = self.body();
        let before = self.levels.iter().flat_map(|level| match level {
            Around::Block { stmts, index, .. } => &stmts[..*index],
            Around::Guard { .. } => &[],
        });
        before.copied().find_map(|stmt| match &body.stmt(stmt).kind {
            StmtKind::Decl(decls) => decls.iter().find(|d| d.binding == binding).map(|d| (stmt, d.init)),
            _ => None,
        })
    }

    /// Sees to it that a variable is there in the continuation.
    fn give(&mut self, binding: BindingId, used: Span) -> Result<(), Reason> {
        let (db, file, body) = (self.wait.db, self.wait.file, self.body());
        let variable = body.binding(binding);
        let declared_there = self.moves(variable.span) && !body.params.contains(&binding);
        if declared_there || self.given.contains_key(&binding) {
            return Ok(());
        }
        let name = &variable.name;
        if let Some(index) = body.params.iter().position(|p| *p == binding) {
            let settled = only_assigned(db, file, body, binding) && !self.assigned_before(binding);
            if !settled {
                self.may_pass(binding, used)?;
            }
            let decl = outline::one_line(&self.kernel.params[index].decl);
            self.given.insert(binding, Given::Passed(decl));
            return Ok(());
        }
        match variable.storage {
            Storage::Local => {}
            Storage::Shared if !self.used_before(binding) && self.declaration(binding).is_some() => {
                self.given.insert(binding, Given::Declared);
                return self.extents(binding);
            }
            Storage::Shared => {
                return Err(self.at(format!("shared memory (`{name}`) doesn't live as long as that"), used));
            }
            Storage::ExternShared => {
                return Err(self.at(
                    format!("what follows uses dynamic shared memory (`{name}`), whose size isn't known there"),
                    used,
                ));
            }
            Storage::Static | Storage::Param => {
                return Err(self.at(format!("`{name}` can't be handed to another kernel"), used));
            }
        }
        let declaration = self.declaration(binding);
        if let Some((_, None)) = declaration
            && !self.used_before(binding)
        {
            // Nothing is in it yet.
            self.given.insert(binding, Given::Declared);
            return self.extents(binding);
        }
        if self.runs == Runs::One {
            self.may_pass(binding, used)?;
            let decl = format!("{} {name}", variable.ty.spelled());
            self.given.insert(binding, Given::Passed(decl));
            return Ok(());
        }
        let plain = variable.ty.array.is_empty() && only_assigned(db, file, body, binding);
        let why = match declaration {
            Some((_, Some(init))) if plain && !self.assigned_before(binding) => {
                // Before what it is made of, so that a cycle would end.
                self.given.insert(binding, Given::Declared);
                match self.again(init) {
                    Ok(()) => return self.names_in(init),
                    Err(why) => {
                        self.given.remove(&binding);
                        Some(why)
                    }
                }
            }
            _ => None,
        };
        match self.may_pass(binding, used) {
            Ok(()) => {
                let decl = format!("{} {name}", variable.ty.spelled());
                self.given.insert(binding, Given::Passed(decl));
                Ok(())
            }
            Err(reason) => Err(why.unwrap_or(reason)),
        }
    }

    /// The sizes of an array are needed with it.
    fn extents(&mut self, binding: BindingId) -> Result<(), Reason> {
        let extents: Vec<ExprId> = self
            .body()
            .binding(binding)
            .ty
            .array
            .iter()
            .flatten()
            .copied()
            .collect();
        for extent in extents {
            self.again(extent)?;
            self.names_in(extent)?;
        }
        Ok(())
    }

    /// Whether the value that a variable has at the wait can be an argument of the launch.
    fn may_pass(&self, binding: BindingId, used: Span) -> Result<(), Reason> {
        let (db, file, body) = (self.wait.db, self.wait.file, self.body());
        let variable = body.binding(binding);
        let (name, ty) = (&variable.name, &variable.ty);
        let copied = ty.array.is_empty()
            && !ty.reference
            && !ty.complex
            && !ty.volatile
            && ty.base != "auto"
            && !["cudaStream_t", "cudaEvent_t"].contains(&unqualified(&ty.base))
            && copies_plainly(db, self.wait.function, ty, 0).is_ok();
        if !copied {
            return Err(self.at(format!("`{name}` can't be handed to another kernel"), used));
        }
        let private = body.bindings.iter().any(|b| {
            !b.ty.array.is_empty() && b.storage != Storage::Param
                || matches!(b.storage, Storage::Shared | Storage::ExternShared)
        }) || body.exprs.iter().any(|e| matches!(e.kind, ExprKind::AddrOf(_)))
            || !escapes(db, self.wait.function).is_empty();
        let points = ty.pointers > 0 || !is_plain_type(&ty.base);
        if private && points {
            return Err(self.at(
                format!("`{name}` may point at shared or local memory, which another kernel can't use"),
                used,
            ));
        }
        match self.runs {
            Runs::One => Ok(()),
            Runs::All if only_assigned(db, file, body, binding) && self.same_everywhere(binding) => Ok(()),
            _ => Err(self.at(
                format!("`{name}` may differ between threads, and can't be computed again"),
                used,
            )),
        }
    }

    /// All threads of the grid have set the variable to the same value, when they are at the wait.
    fn same_everywhere(&self, binding: BindingId) -> bool {
        let body = self.body();
        let level = |e: ExprId| self.uniformity.exprs.get(&e).is_some_and(|u| u.level <= Level::Grid);
        let together = |s: StmtId| {
            self.uniformity
                .divergence
                .get(&s)
                .is_some_and(|u| u.level <= Level::Grid)
        };
        let declared = match self.declaration(binding) {
            Some((stmt, Some(init))) => together(stmt) && level(init),
            Some((_, None)) => true,
            None => body.params.contains(&binding),
        };
        declared
            && assignments(body, binding).all(|e| {
                if self.moves(body.expr(e).span) {
                    return true;
                }
                let Some(stmt) = self.wait.places.statement_of(e) else {
                    return false;
                };
                let alone = matches!(body.stmt(stmt).kind, StmtKind::Expr(x) if body.strip_parens(x) == e);
                let value = match &body.expr(e).kind {
                    ExprKind::Assign { value, .. } => level(*value),
                    _ => true,
                };
                alone && together(stmt) && value && level(e)
            })
    }

    /// Whether an expression can be computed again in the continuation; notes what it reads.
    fn again(&mut self, expr: ExprId) -> Result<(), Reason> {
        let (db, file, body) = (self.wait.db, self.wait.file, self.body());
        let span = body.expr(expr).span;
        let no =
            |tail: &Self, what: &str| Err(tail.at(format!("{what} can't be computed again in another kernel"), span));
        if body.expr(expr).from_macro && !matches!(body.expr(expr).kind, ExprKind::Literal(_)) {
            return no(self, "what comes out of a macro");
        }
        match &body.expr(expr).kind {
            ExprKind::Literal(Literal::Str) => no(self, "a string"),
            ExprKind::Literal(_) | ExprKind::SizeOf | ExprKind::Name(Name::Builtin(_)) => Ok(()),
            ExprKind::Name(Name::Local(binding)) => {
                let variable = body.binding(*binding);
                let name = &variable.name;
                let settled = only_assigned(db, file, body, *binding)
                    && !self.assigned_before(*binding)
                    && variable.ty.array.is_empty();
                let init = self.declaration(*binding).and_then(|(_, init)| init);
                match variable.storage {
                    Storage::Param if settled && body.params.contains(binding) => Ok(()),
                    Storage::Local if settled && self.given.contains_key(binding) => Ok(()),
                    Storage::Local if settled && init.is_some() => match init {
                        Some(init) => self.again(init),
                        None => Ok(()),
                    },
                    _ => no(self, &format!("`{name}`")),
                }
            }
            ExprKind::Name(Name::Other(name)) => match meaning(db, file, name) {
                Meaning::Enumerator => Ok(()),
                Meaning::Global(global) if global.constant && !global.shared || global.constant_memory => Ok(()),
                Meaning::Global(_) => {
                    self.reads.insert(expr);
                    Ok(())
                }
                Meaning::Unknown if self.wait.function.signature(db).template_names.contains(name) => Ok(()),
                _ => no(self, &format!("`{name}`")),
            },
            ExprKind::Paren(e)
            | ExprKind::Unary(_, e)
            | ExprKind::Field {
                base: e, arrow: false, ..
            } => self.again(*e),
            ExprKind::Deref(e)
            | ExprKind::Field {
                base: e, arrow: true, ..
            } => {
                self.reads.insert(expr);
                self.again(*e)
            }
            ExprKind::Index { base, index } => {
                self.reads.insert(expr);
                self.again(*base)?;
                self.again(*index)
            }
            ExprKind::Binary(_, a, b) | ExprKind::Logical { lhs: a, rhs: b, .. } => {
                self.again(*a)?;
                self.again(*b)
            }
            ExprKind::Conditional { cond, then, otherwise } => {
                self.again(*cond)?;
                self.again(*then)?;
                self.again(*otherwise)
            }
            ExprKind::Cast {
                ty,
                operand,
                reinterpret: false,
            } if is_plain_type(ty) => self.again(*operand),
            ExprKind::Construct { ty, args } if is_plain_type(ty) => args.iter().try_for_each(|a| self.again(*a)),
            ExprKind::Call {
                name: Some(name), args, ..
            } => {
                let known = match calls::library(name) {
                    Some(Library::Pure) => !name.contains("ldg") && !name.contains("clock"),
                    Some(_) => false,
                    None => {
                        let bodies: Vec<_> = functions_named(db, file, name)
                            .into_iter()
                            .filter(|f| f.has_body(db))
                            .collect();
                        let values = |f: &gridfuse_analysis::items::FunctionItem<'_>| {
                            let callee = gridfuse_analysis::hir::body(db, *f);
                            let touches = callee.exprs.iter().any(|e| {
                                matches!(
                                    e.kind,
                                    ExprKind::Deref(_) | ExprKind::Index { .. } | ExprKind::Field { arrow: true, .. }
                                )
                            });
                            let globals = callee.exprs.iter().any(|e| {
                                matches!(&e.kind, ExprKind::Name(Name::Other(n))
                                    if matches!(meaning(db, f.file(db), n), Meaning::Global(g) if !g.constant && !g.constant_memory))
                            });
                            !touches && !globals
                        };
                        !bodies.is_empty() && bodies.iter().all(|f| is_pure(db, *f, 0) && values(f))
                    }
                };
                if !known {
                    return no(self, &format!("a call of `{name}`"));
                }
                args.iter().try_for_each(|a| self.again(*a))
            }
            _ => no(self, "this"),
        }
    }

    /// Variables that stand in different blocks of the kernel, or that what moves hides, end up in one block.
    fn refuse_clashes(&self) -> Result<(), Reason> {
        let body = self.body();
        let mut seen: BTreeMap<&str, BindingId> = BTreeMap::new();
        for binding in self.given.keys() {
            let variable = body.binding(*binding);
            let clash = || {
                self.at(
                    format!("several variables are named `{}`", variable.name),
                    variable.span,
                )
            };
            if seen.insert(&variable.name, *binding).is_some() {
                return Err(clash());
            }
            let hidden = (0..body.bindings.len() as u32).map(BindingId).any(|other| {
                let theirs = body.binding(other);
                other != *binding && theirs.name == variable.name && self.moves(theirs.span)
            });
            if hidden {
                return Err(clash());
            }
        }
        Ok(())
    }

    fn source(&self, span: Span) -> &str {
        self.kernel.source(span)
    }

    /// The range of what moves out of a block, in the file: from behind the line before it to its last statement or comment.
    fn range_of(&self, level: &Around) -> Option<TextRange> {
        let Around::Block { stmt, stmts, first, .. } = level else {
            return None;
        };
        if level.rest().is_empty() {
            return None;
        }
        let text: &str = &self.kernel.text;
        let before = self
            .body()
            .stmt(*stmts.get(first.checked_sub(1)?)?)
            .span
            .shift(self.wait.start)
            .end as usize;
        let line = style::line_end(text, before);
        let from = if lex::is_blank(text.get(before..line)?) {
            line
        } else {
            before
        };
        let block = self.body().stmt(*stmt).span.shift(self.wait.start);
        let close = block.end as usize - 1;
        let inner = text.get(from..close)?;
        let start = from + (inner.len() - inner.trim_start().len());
        let end = from + inner.trim_end().len();
        Some(TextRange::new(start as u32, end as u32))
    }

    /// Code of the kernel as it stands in the continuation, `depth` levels deep.
    fn verbatim(&self, range: TextRange, depth: usize) -> String {
        let text: &str = &self.kernel.text;
        let indent = style::indent_at(text, range.start as usize);
        let tabs = "\t".repeat(depth);
        let code = range.text(text).replace("\r\n", "\n");
        let mut out = String::new();
        for (number, line) in code.split('\n').enumerate() {
            if number > 0 {
                out.push('\n');
            }
            match if number == 0 {
                Some(line)
            } else {
                line.strip_prefix(indent)
            } {
                Some(rest) if !rest.trim().is_empty() => {
                    out.push_str(&tabs);
                    out.push_str(rest);
                }
                _ => out.push_str(line.trim_end()),
            }
        }
        out
    }

    /// The declaration of the variables that are declared again, of those that a statement declares.
    fn declared_again(&self, stmt: StmtId) -> Vec<String> {
        let body = self.body();
        let StmtKind::Decl(decls) = &body.stmt(stmt).kind else {
            return Vec::new();
        };
        let again = |b: &BindingId| matches!(self.given.get(b), Some(Given::Declared));
        if decls.iter().all(|d| again(&d.binding)) {
            return vec![outline::one_line(self.source(body.stmt(stmt).span))];
        }
        let single = decls.iter().filter(|d| again(&d.binding)).map(|d| {
            let variable = body.binding(d.binding);
            let mut code = format!("{} {}", variable.ty.spelled(), variable.name);
            for extent in &variable.ty.array {
                let size = extent.map_or("", |e| self.source(body.expr(e).span));
                code.push_str(&format!("[{size}]"));
            }
            if let Some(init) = d.init {
                code.push_str(&format!(" = {}", outline::one_line(self.source(body.expr(init).span))));
            }
            code.push(';');
            if variable.storage == Storage::Shared {
                code.insert_str(0, "__shared__ ");
            }
            code
        });
        single.collect()
    }

    /// The lines of the continuation for a block or branch and what is inside it.
    fn lines(&self, level: usize, depth: usize, out: &mut Vec<String>) {
        let tabs = "\t".repeat(depth);
        let inner = |depth: usize, out: &mut Vec<String>| {
            if let Some(next) = level.checked_sub(1) {
                self.lines(next, depth, out);
            }
        };
        match &self.levels[level] {
            Around::Block { stmts, index, .. } => {
                for stmt in &stmts[..*index] {
                    out.extend(self.declared_again(*stmt).iter().map(|code| format!("{tabs}{code}")));
                    for (cond, negated) in self.returns.get(stmt).into_iter().flatten() {
                        let cond = self.condition(*cond, *negated);
                        out.push(format!("{tabs}if ({cond}) return;"));
                    }
                }
                inner(depth, out);
                if let Some(range) = self.range_of(&self.levels[level]) {
                    out.push(self.verbatim(range, depth));
                }
            }
            Around::Guard { cond, negated, .. } if self.asks_again(level) => {
                let mut code = Vec::new();
                inner(depth + 1, &mut code);
                let cond = self.condition(*cond, *negated);
                out.push(format!("{tabs}if ({cond}) {{"));
                out.append(&mut code);
                out.push(format!("{tabs}}}"));
            }
            // Nothing inside moves, or whoever gets there has passed.
            Around::Guard { .. } if level < self.outermost => {}
            Around::Guard { .. } => inner(depth, out),
        }
    }

    fn condition(&self, cond: ExprId, negated: bool) -> String {
        let code = outline::one_line(self.source(self.body().expr(cond).span));
        if negated { format!("!({code})") } else { code }
    }

    /// The condition that the first thread of the grid fulfils.
    fn first_thread(&self) -> &'static str {
        let (db, function) = (self.wait.db, self.wait.function);
        let sites = launch_sites_of(db, function);
        let flat = |id: &gridfuse_analysis::launch::LaunchId<'_>| {
            let facts = launches(db, id.function).get(id.index as usize);
            facts.is_some_and(|facts| {
                [&facts.grid, &facts.block].iter().all(|extent| {
                    extent.constant.is_some_and(|[_, y, z]| (y, z) == (1, 1))
                        || matches!(extent.components, Some([_, None, None]))
                })
            })
        };
        if !sites.is_empty() && sites.iter().all(flat) {
            "threadIdx.x == 0 && blockIdx.x == 0"
        } else {
            "(threadIdx.x | threadIdx.y | threadIdx.z | blockIdx.x | blockIdx.y | blockIdx.z) == 0"
        }
    }

    /// Each parent grid that device code launches has one more grid pending, its tail, until all its children are done.
    fn pile_up(&self) -> Option<Reason> {
        let (db, function) = (self.wait.db, self.wait.function);
        let limit = pending_launch_limit(db, self.wait.file);
        let many = launch_sites_of(db, function).into_iter().any(|id| {
            let Some(facts) = launches(db, id.function).get(id.index as usize) else {
                return true;
            };
            let count = launch_counts(db, id.function).get(id.index as usize);
            let most = count.and_then(|c| match c.per_grid.at_most {
                Bound::Constant(n) => Some(n),
                _ => None,
            });
            let few = most
                .zip(limit)
                .is_some_and(|(most, limit)| most.saturating_mul(2) <= limit);
            facts.launchers != Launchers::Host && (in_recursion(db, id) || !few)
        });
        many.then(|| {
            self.reason(
                most_pending(
                    db,
                    self.wait.file,
                    &format!("each `{}` has one more, its tail", self.kernel.name),
                ),
                self.wait.here(),
            )
        })
    }

    /// Declarations that nothing uses that stays.
    fn unused(&self) -> Vec<StmtId> {
        let body = self.body();
        let mut gone: Vec<StmtId> = Vec::new();
        let before = self.levels.iter().flat_map(|level| match level {
            Around::Block { stmts, index, .. } => &stmts[..*index],
            Around::Guard { .. } => &[],
        });
        let mut before: Vec<StmtId> = before.copied().collect();
        before.sort_by_key(|s| std::cmp::Reverse(body.stmt(*s).span.start));
        for stmt in before {
            let StmtKind::Decl(decls) = &body.stmt(stmt).kind else {
                continue;
            };
            let stays = |span: Span| {
                let in_gone = gone.iter().chain([&stmt]).any(|s| {
                    let s = body.stmt(*s).span;
                    s.start <= span.start && span.end <= s.end
                });
                !in_gone && !self.moves(span)
            };
            let used = |b: BindingId| {
                body.exprs.iter().any(|e| match &e.kind {
                    ExprKind::Name(Name::Local(named)) => *named == b && stays(e.span),
                    ExprKind::SizeOf => {
                        stays(e.span) && lex::identifiers(self.source(e.span)).any(|w| w == body.binding(b).name)
                    }
                    _ => false,
                }) || body.stmts.iter().any(|s| {
                    matches!(&s.kind, StmtKind::Asm { mentions, .. } if mentions.contains(&b)) && stays(s.span)
                })
            };
            let again = decls
                .iter()
                .all(|d| matches!(self.given.get(&d.binding), Some(Given::Declared)));
            if again && !decls.iter().any(|d| used(d.binding)) {
                gone.push(stmt);
            }
        }
        gone
    }

    /// Writes the continuation and its launch.
    fn write(&self, name: &str, stmt: StmtId) -> Result<SourceEdit, Ineligible> {
        let (wait, kernel, body) = (self.wait, self.kernel, self.body());
        let unclear = || {
            refuse(
                "where what follows begins and ends is not understood",
                Some(wait.here()),
            )
        };
        let mut edit = EditBuilder::new(wait.db);
        if let Some(reason) = self.pile_up() {
            edit.assume(reason);
        }
        let file_style = edit.style(wait.file);
        let mut params = Vec::new();
        let mut args = Vec::new();
        for (binding, given) in &self.given {
            if let Given::Passed(decl) = given {
                params.push(decl.clone());
                args.push(body.binding(*binding).name.clone());
            }
        }

        // The continuation, in front of the kernel.
        let mut lines = Vec::new();
        self.lines(self.levels.len() - 1, 1, &mut lines);
        let code = lines.join("\n");
        let behind = outline::behind(&mut edit, kernel);
        let template = kernel.template.as_ref().map_or(String::new(), |t| format!("{t}\n"));
        let is_static = if kernel.is_static { "static " } else { "" };
        let head = format!("{template}{is_static}__global__ void ");
        let bounds = kernel.launch_bounds.as_ref().map_or(String::new(), |b| format!("{b} "));
        let function = behind.function(&format!("{head}{bounds}{name}("), &params, &code);
        let mut generated = String::new();
        if lex::identifiers(&code).any(|w| w == kernel.name) {
            let defaults = kernel
                .body
                .params
                .iter()
                .any(|p| kernel.body.binding(*p).default.is_some());
            if defaults || wait.function.signature(wait.db).extern_c {
                return Err(refuse(
                    format!(
                        "what follows launches `{}`, which can't be declared before",
                        kernel.name
                    ),
                    Some(kernel.place()),
                ));
            }
            let all: Vec<String> = kernel.params.iter().map(|p| outline::one_line(&p.decl)).collect();
            let (before, last) = head.rsplit_once('\n').map_or(("", head.as_str()), |(b, l)| (b, l));
            let newline = if before.is_empty() { "" } else { "\n" };
            let list = file_style.list(behind.column(), &format!("{last}{}(", kernel.name), &all, ");");
            generated.push_str(&format!("{before}{newline}{list}\n\n"));
        }
        generated.push_str(&function);
        generated.push_str("\n\n");
        let indent = style::indent_at(&kernel.text, kernel.front() as usize).to_owned();
        let at = target::above_comment(wait.db, wait.file, kernel.front() as usize);
        let mut text = file_style.fit(&generated, &indent);
        text.push_str(&indent);
        edit.insert(wait.file, at as u32, text);

        // Its launch.
        let shape = if self.runs == Runs::One {
            "1, 1"
        } else {
            "gridDim, blockDim"
        };
        let prefix = format!("{name}{}<<<{shape}, 0, cudaStreamTailLaunch>>>(", kernel.template_args);
        let outermost = &self.levels[self.outermost];
        let Around::Block {
            stmts, index, first, ..
        } = outermost
        else {
            return Err(unclear());
        };
        let whole = self.range_of(outermost).ok_or_else(unclear)?;
        let path = body.stmt(stmts[*index]).span.shift(wait.start);
        let is_wait = stmts[*index] == stmt;
        let launch = |indent: &str| {
            let conditional = self.runs != Runs::One;
            let unit = if conditional {
                style::columns(&file_style.unit)
            } else {
                0
            };
            let call = file_style.list(style::columns(indent) + unit, &prefix, &args, ");");
            if conditional {
                format!("if ({})\n\t{}", self.first_thread(), call.replace('\n', "\n\t"))
            } else {
                call
            }
        };
        // From the first barrier that isn't needed, or the wait.
        let from = if is_wait {
            path.start
        } else if *first > *index + 1 {
            body.stmt(stmts[*index + 1]).span.shift(wait.start).start
        } else {
            whole.start
        };
        let place = FileRange {
            file: wait.file,
            range: TextRange::new(from, whole.end),
        };
        if self.runs == Runs::Some {
            edit.delete_lines(place);
            let root = body
                .root
                .map(|r| body.stmt(r).span.shift(wait.start))
                .ok_or_else(unclear)?;
            let Some(Around::Block { stmts, .. }) = self.levels.last() else {
                return Err(unclear());
            };
            let first = stmts.first().ok_or_else(unclear)?;
            let indent =
                style::indent_at(&kernel.text, (body.stmt(*first).span.start + wait.start) as usize).to_owned();
            let code = file_style.fit(&launch(&indent), &indent);
            edit.insert(
                wait.file,
                root.start + 1,
                format!("{}{indent}{code}", file_style.newline),
            );
        } else {
            let indent = style::indent_at(&kernel.text, from as usize).to_owned();
            edit.replace_code(place, &launch(&indent));
        }
        for (level, around) in self.levels.iter().enumerate() {
            if level != self.outermost
                && let Some(range) = self.range_of(around)
            {
                edit.delete_lines(FileRange { file: wait.file, range });
            }
        }
        if !is_wait {
            delete(wait, stmt, &mut edit);
        }
        for stmt in self.unused() {
            edit.delete_lines(wait.place(body.stmt(stmt).span));
        }
        finish(edit)
    }
}

/// The assumption that not too many launches are pending, with what speaks against it.
pub fn most_pending(db: &dyn Db, file: SourceFile, why: &str) -> String {
    let limit = pending_launch_limit(db, file).map_or_else(|| "the limit that is set".to_owned(), |n| n.to_string());
    format!("no more grids are pending at a time than {limit} (`cudaLimitDevRuntimePendingLaunchCount`): {why}")
}

/// `__syncthreads();` or `__syncwarp();`
fn is_barrier(body: &Body, stmt: StmtId) -> bool {
    let StmtKind::Expr(expr) = body.stmt(stmt).kind else {
        return false;
    };
    match &body.expr(body.strip_parens(expr)).kind {
        ExprKind::Call {
            name: Some(name), args, ..
        } => args.is_empty() && matches!(name.trim_start_matches("::"), "__syncthreads" | "__syncwarp"),
        _ => false,
    }
}
