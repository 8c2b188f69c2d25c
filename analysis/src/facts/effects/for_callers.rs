//! What a function does, for its callers: what it reads and writes, where in the function that happens or which call leads to it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::of_body::direct;
use super::types::{Builtins, Write};
use crate::base::budget::CALLEES;
use crate::base::db::Db;
use crate::base::span::Span;
use crate::facts::callee::library_called;
use crate::facts::uniformity::memory::MemoryClass;
use crate::hir::items::FunctionItem;
use crate::hir::library::{Does, library};
use crate::hir::names::unqualified;
use crate::hir::{Builtin, ExprKind, Name, body};

/// What a function does, callees included. Spans stand in the function itself: of the thing, or of the call that leads to it.
/// Whatever isn't known counts as done; see `unknown_calls`.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub struct Summary {
    /// Built-in variables that the function or a callee reads (all, when something isn't known).
    pub reads_builtin: Builtins,
    /// Built-in variables that the body itself mentions.
    pub reads_builtin_directly: Builtins,
    /// First place of a block barrier, a warp barrier, a barrier of a cooperative group or in `asm`.
    pub barriers: Option<Span>,
    /// Shuffles, votes, `__activemask`.
    pub warp_ops: Vec<Span>,
    /// `__shared__` variables of fixed size.
    pub static_shared: Vec<Span>,
    /// `extern __shared__` arrays.
    pub dynamic_shared: Vec<Span>,
    /// Launches of kernels.
    pub launches: Vec<Span>,
    /// Waits for child grids.
    pub device_sync: Vec<Span>,
    /// A loop that may wait for another thread.
    pub may_wait: Option<Span>,
    /// It contains `asm`.
    pub uses_asm: Option<Span>,
    /// Calls of which nothing is known: every other field is a lower bound as far as these go.
    pub unknown_calls: Vec<(String, Span)>,
    /// Parameters (by index) through which it may write.
    pub writes_params: BTreeSet<u32>,
    /// Writes to memory that other threads may see; launched kernels not included.
    pub writes: Vec<Write>,
    /// Prints.
    pub prints: Option<Span>,
}

impl Summary {
    /// It may write memory that other threads see.
    pub fn writes_memory(&self) -> bool {
        !self.writes.is_empty()
    }
}

/// What runs while a function does.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
struct Reached<'db> {
    /// Functions that may run, the function itself included, each with the call (in it) that leads there; the function alone when there
    /// are more than are looked at.
    all: Vec<(FunctionItem<'db>, Option<Span>)>,
    /// The calls that lead to a kernel that isn't known, or to more functions than are looked at.
    unknown: Vec<Span>,
    /// There are more functions than are looked at.
    cut: bool,
    /// Some of them launch kernels.
    launching: bool,
}

/// Functions that `function` may run by calls.
#[salsa::tracked(returns(clone))]
fn called<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<Reached<'db>> {
    Arc::new(reached(db, function, false))
}

/// Functions that `function` may run by calls, and the kernels that these launch.
fn called_and_launched<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<Reached<'db>> {
    let called = called(db, function);
    match called.launching {
        // There are more still.
        true if called.cut => Arc::new(too_many(db, function, true)),
        true => Arc::new(reached(db, function, true)),
        // It's the same.
        false => called,
    }
}

/// Functions that `function` may run; with `launches`, also the kernels that these launch.
fn reached<'db>(db: &'db dyn Db, function: FunctionItem<'db>, launches: bool) -> Reached<'db> {
    let mut seen = FxHashSet::from_iter([function]);
    let mut queue = VecDeque::from([(function, None)]);
    let mut all = Vec::new();
    let mut unknown = Vec::new();
    let mut launching = false;
    while let Some((f, root)) = queue.pop_front() {
        all.push((f, root));
        let direct = direct(db, f);
        launching |= !direct.launches.is_empty();
        let launched = direct.launches.iter().filter(|_| launches);
        for site in direct.calls.iter().chain(launched) {
            let root = root.or(Some(site.span));
            if site.candidates.is_empty() {
                unknown.extend(root);
            }
            for f in &site.candidates {
                if !seen.contains(f) && seen.len() >= CALLEES {
                    return too_many(db, function, launches);
                } else if seen.insert(*f) {
                    queue.push_back((*f, root));
                }
            }
        }
    }
    Reached {
        all,
        unknown,
        cut: false,
        launching,
    }
}

/// What is said where there are more functions than are looked at. Who leads to what isn't known then: each call may. So nothing is gained
/// by what others do.
fn too_many<'db>(db: &'db dyn Db, function: FunctionItem<'db>, launches: bool) -> Reached<'db> {
    let direct = direct(db, function);
    let launched = direct.launches.iter().filter(|_| launches);
    Reached {
        all: vec![(function, None)],
        unknown: direct.calls.iter().chain(launched).map(|site| site.span).collect(),
        cut: true,
        launching: !direct.launches.is_empty(),
    }
}

/// Whether something that runs while `function` does may end the program, or a thread before its end: a trap, a failed assertion, inline
/// assembly, code that isn't known.
#[salsa::tracked]
pub fn may_end_the_program<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    let reached = called_and_launched(db, function);
    reached.cut
        || !reached.unknown.is_empty()
        || reached.all.iter().any(|(f, _)| {
            let facts = &direct(db, *f).facts;
            // By any namespace: what a program calls `mine::exit` is likely to do the same.
            let ends = |name: &str| library(unqualified(name)).is_some_and(|l| l.does.has(Does::TRAPS));
            !facts.asm.is_empty()
                || !facts.unknown_calls.is_empty()
                || body(db, *f)
                    .exprs
                    .iter()
                    .any(|e| matches!(&e.kind, ExprKind::Call { name: Some(name), .. } if ends(name)))
        })
}

/// Whether a function, or one that it calls, may look at more than its operands and memory: at the number of the thread or block, at a
/// clock, by inline assembly, in code that isn't known.
#[salsa::tracked]
pub(crate) fn looks_at_the_thread<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    let reached = called(db, function);
    let numbers = |f: FunctionItem<'db>| {
        body(db, f).exprs.iter().any(|e| match &e.kind {
            ExprKind::Name(Name::Builtin(builtin)) => matches!(builtin, Builtin::ThreadIdx | Builtin::BlockIdx),
            ExprKind::Call { name: Some(name), .. } => library_called(db, f, name).is_some_and(|l| l.looks_around()),
            _ => false,
        })
    };
    reached.cut
        || !reached.unknown.is_empty()
        || reached.all.iter().any(|(f, _)| {
            let facts = &direct(db, *f).facts;
            !facts.asm.is_empty() || !facts.unknown_calls.is_empty() || numbers(*f)
        })
}

/// Writes to memory by anything that runs while `function` does: itself, its callees, and the kernels that these launch.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub struct MemoryEffects {
    /// The writes.
    pub writes: Vec<Write>,
    /// A callee declares dynamic shared memory, or something isn't known.
    pub foreign_dynamic_shared: bool,
    /// `asm` or constructs that weren't understood.
    pub opaque: bool,
    /// More functions run than are looked at: see [`CALLEES`].
    pub cut: bool,
}

/// Whether a function, by calls and launches, leads to more functions than are looked at. What follows calls from function to function
/// asks this first: its answer is that of something unknown, and chains and circles of calls stay short.
#[salsa::tracked(returns(copy))]
pub fn leads_too_far<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    memory_effects(db, function).cut
}

/// See [`MemoryEffects`].
#[salsa::tracked(returns(clone))]
pub fn memory_effects<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<MemoryEffects> {
    let reached = called_and_launched(db, function);
    let mut effects = MemoryEffects {
        opaque: reached.cut,
        cut: reached.cut,
        ..MemoryEffects::default()
    };
    let mut puns = None;
    for span in reached.unknown.iter().copied() {
        effects.writes.push(Write {
            class: MemoryClass::Any,
            shared: false,
            span,
        });
    }
    for (f, root) in reached.all.iter().copied() {
        let direct = direct(db, f);
        if direct.puns {
            puns = puns.or(Some(root));
        }
        let facts = &direct.facts;
        effects.opaque |= !facts.asm.is_empty() || !facts.unknown_calls.is_empty();
        effects.foreign_dynamic_shared |= root.is_some() && !facts.dynamic_shared.is_empty();
        for w in &facts.writes {
            let span = root.unwrap_or(w.span);
            let write = Write { span, ..w.clone() };
            if !effects.writes.contains(&write) {
                effects.writes.push(write);
            }
        }
    }
    effects.foreign_dynamic_shared |= effects.opaque;
    if puns.is_some() {
        for w in &mut effects.writes {
            w.class = MemoryClass::Any;
        }
    }
    Arc::new(effects)
}

/// What `function` does, callees included.
#[salsa::tracked(returns(clone))]
pub fn summary<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<Summary> {
    let own = direct(db, function);
    let mut s = Summary {
        reads_builtin_directly: own.facts.builtins,
        writes_params: own.written_params.clone(),
        ..Summary::default()
    };
    let reached = called(db, function);
    if reached.cut {
        s.unknown_calls
            .extend(reached.unknown.iter().map(|span| (String::new(), *span)));
    }
    let mut firsts: [Vec<Span>; 4] = Default::default();
    for (f, root) in reached.all.iter().copied() {
        let direct = direct(db, f);
        let facts = &direct.facts;
        let place = |list: &[Span], into: &mut Vec<Span>| match root {
            None => into.extend(list),
            Some(call) if !list.is_empty() && !into.contains(&call) => into.push(call),
            Some(_) => {}
        };
        s.reads_builtin = s.reads_builtin.union(facts.builtins);
        place(&facts.barriers, &mut firsts[0]);
        place(&facts.may_wait, &mut firsts[1]);
        place(&facts.asm, &mut firsts[2]);
        place(&facts.prints, &mut firsts[3]);
        place(&facts.warp_ops, &mut s.warp_ops);
        place(&facts.static_shared, &mut s.static_shared);
        place(&facts.dynamic_shared, &mut s.dynamic_shared);
        place(&facts.launches, &mut s.launches);
        place(&facts.device_sync, &mut s.device_sync);
        for (name, span) in &facts.unknown_calls {
            s.unknown_calls.push((name.clone(), root.unwrap_or(*span)));
        }
        for w in &facts.writes {
            let write = Write {
                span: root.unwrap_or(w.span),
                ..w.clone()
            };
            if !s.writes.contains(&write) {
                s.writes.push(write);
            }
        }
    }
    if !s.unknown_calls.is_empty() {
        s.reads_builtin = Builtins::ALL;
    }
    if s.writes_memory() {
        s.writes_params.extend(&own.leaked_params);
    }
    let [barriers, waits, asm, prints] = firsts.map(|spans| spans.into_iter().min());
    (s.barriers, s.may_wait, s.uses_asm, s.prints) = (barriers, waits, asm, prints);
    Arc::new(s)
}
