//! What a function does, for its callers: effects on memory, synchronisation, launches, and which built-ins it reads.
//!
//! [`direct`] looks at one body; [`summary`] and [`effects`] walk the graph of calls (and, for memory, of launches) over it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crate::base::budget::CALLEES;
use crate::base::db::Db;
use crate::base::span::Span;
use crate::facts::callee::Callee;
use crate::facts::callee::by_name;
use crate::facts::callee::callee;
use crate::facts::callee::library_called;
use crate::facts::defaults::default_may_run;
use crate::facts::hidden::hidden;
use crate::facts::uniformity::memory::MemoryClass;
use crate::facts::uniformity::memory::Places;
use crate::facts::uniformity::memory::Root;
use crate::facts::unseen::Role;
use crate::facts::unseen::unseen;
use crate::hir::Body;
use crate::hir::Builtin;
use crate::hir::ExprId;
use crate::hir::ExprKind;
use crate::hir::Name;
use crate::hir::StmtId;
use crate::hir::StmtKind;
use crate::hir::Storage;
use crate::hir::assembly::assembly_may_have;
use crate::hir::body;
use crate::hir::flow::operands;
use crate::hir::items::FunctionItem;
use crate::hir::library::{Does, Library, Memory, Together, library};
use crate::hir::names::unqualified;
use rustc_hash::FxHashSet;

/// A set of CUDA's built-in variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Builtins(u8);

impl Builtins {
    /// All of them.
    pub const ALL: Builtins = Builtins(31);

    /// Adds one.
    pub fn insert(&mut self, builtin: Builtin) {
        self.0 |= 1 << builtin as u8;
    }

    /// Whether it's in the set.
    pub fn contains(self, builtin: Builtin) -> bool {
        self.0 & (1 << builtin as u8) != 0
    }

    /// The union.
    pub fn union(self, other: Builtins) -> Builtins {
        Builtins(self.0 | other.0)
    }

    /// No built-in at all.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A write to memory that other threads may see.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Write {
    /// What kind of memory.
    pub class: MemoryClass,
    /// Certainly to shared memory.
    pub shared: bool,
    /// Where, in the function that the facts are about: the write, or the call or launch that leads to it.
    pub span: Span,
}

/// A call of a function of the workspace.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct CallSite<'db> {
    /// The call or launch expression.
    pub expr: ExprId,
    /// Its span.
    pub span: Span,
    /// Every definition that it may mean.
    pub candidates: Vec<FunctionItem<'db>>,
}

/// Facts that hold for a function, or for all that it calls as well.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub struct Facts {
    /// Built-in variables that are read.
    pub builtins: Builtins,
    /// Block barriers, warp barriers, barriers of cooperative groups and in `asm`.
    pub barriers: Vec<Span>,
    /// Shuffles, votes, `__activemask`, warp reductions.
    pub warp_ops: Vec<Span>,
    /// Declarations of `__shared__` variables of fixed size.
    pub static_shared: Vec<Span>,
    /// Declarations of `extern __shared__` arrays.
    pub dynamic_shared: Vec<Span>,
    /// Kernel launches.
    pub launches: Vec<Span>,
    /// Waits for child grids.
    pub device_sync: Vec<Span>,
    /// Loops that may wait for another thread: their end depends on an atomic's result, on volatile or on spinning on memory.
    pub may_wait: Vec<Span>,
    /// `asm`.
    pub asm: Vec<Span>,
    /// Calls of functions of which nothing is known, with their names; constructs that weren't understood have an empty name.
    pub unknown_calls: Vec<(String, Span)>,
    /// Writes to memory that other threads may see.
    pub writes: Vec<Write>,
    /// `printf`
    pub prints: Vec<Span>,
}

/// The facts of one body alone, and the calls and launches in it.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub struct Direct<'db> {
    /// The facts.
    pub facts: Facts,
    /// Calls of functions of the workspace.
    pub calls: Vec<CallSite<'db>>,
    /// Launches; without candidates when the kernel isn't known.
    pub launches: Vec<CallSite<'db>>,
    /// Parameters (by index) that the body itself may write through, or hands on to something that may.
    pub written_params: BTreeSet<u32>,
    /// Parameters that are used as values, so that what they point at may be reached in other ways.
    pub leaked_params: BTreeSet<u32>,
    /// Pointers are cast between types: types say nothing about aliasing.
    pub puns: bool,
}

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

/// The facts of one body.
#[salsa::tracked(returns(clone))]
pub fn direct<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<Direct<'db>> {
    let body = body(db, function);
    let mut scan = Scan {
        db,
        function,
        places: Places {
            db,
            function,
            body: &body,
        },
        body: &body,
        found: Direct::default(),
    };
    for i in 0..body.exprs.len() {
        scan.expr(ExprId(i as u32));
    }
    for i in 0..body.stmts.len() {
        scan.stmt(StmtId(i as u32));
    }
    for binding in &body.bindings {
        match binding.storage {
            Storage::Shared => scan.found.facts.static_shared.push(binding.decl_span),
            Storage::ExternShared => scan.found.facts.dynamic_shared.push(binding.decl_span),
            _ => {}
        }
    }
    for (span, _) in &body.problems {
        scan.unknown("", *span);
    }
    for name in unseen(db, function).iter().filter(|name| name.role != Role::Value) {
        scan.unknown(&name.name, name.span);
    }
    for hidden in hidden(db, function).iter() {
        scan.unknown(&hidden.what, hidden.span);
    }
    scan.found.puns = scan.places.puns();
    let facts = &mut scan.found.facts;
    facts.may_wait = crate::facts::uniformity::waiting_loops(db, function);
    for spans in [
        &mut facts.barriers,
        &mut facts.warp_ops,
        &mut facts.may_wait,
        &mut facts.launches,
    ] {
        spans.sort();
    }
    Arc::new(scan.found)
}

struct Scan<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &'a Body,
    places: Places<'a>,
    found: Direct<'db>,
}

impl<'db> Scan<'_, 'db> {
    fn unknown(&mut self, name: &str, span: Span) {
        self.found.facts.unknown_calls.push((name.to_owned(), span));
        self.write(MemoryClass::Any, false, span);
    }

    fn write(&mut self, class: MemoryClass, shared: bool, span: Span) {
        let write = Write { class, shared, span };
        let known = |w: &&Write| w.class == class && w.shared == shared;
        if self.found.facts.writes.iter().filter(known).count() < 4 {
            self.found.facts.writes.push(write);
        }
    }

    fn param(&self, binding: crate::hir::BindingId) -> Option<u32> {
        self.body.params.iter().position(|p| *p == binding).map(|i| i as u32)
    }

    /// A write to the place with this root.
    fn write_to(&mut self, root: &Root, class: MemoryClass, span: Span) {
        match root {
            Root::Object(b) => match self.body.binding(*b).storage {
                Storage::Shared | Storage::ExternShared => self.write(class, true, span),
                Storage::Static => self.write(class, false, span),
                Storage::Param | Storage::Local => {}
            },
            Root::Through(b) => {
                self.found.written_params.extend(self.param(*b));
                self.write(class, false, span);
            }
            Root::Global(_) | Root::Other => self.write(class, false, span),
        }
    }

    fn hand_on(&mut self, args: &[ExprId]) {
        for arg in args {
            for root in [self.places.pointee_root(*arg), self.places.root(*arg)] {
                if let Root::Through(b) | Root::Object(b) = root {
                    self.found.written_params.extend(self.param(b));
                }
            }
        }
    }

    fn expr(&mut self, id: ExprId) {
        let body = self.body;
        let expr = body.expr(id);
        let span = expr.span;
        let facts = &mut self.found.facts;
        match &expr.kind {
            ExprKind::Name(Name::Builtin(b)) => facts.builtins.insert(*b),
            ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => {
                let class = self.places.class(*place);
                self.write_to(&self.places.root(*place), class, span);
            }
            ExprKind::Launch(launch) => {
                facts.launches.push(span);
                let candidates = match &launch.kernel {
                    Some(name) => match by_name(self.db, self.function, name, &launch.args) {
                        Callee::Functions(all, _) => all,
                        _ => Vec::new(),
                    },
                    None => Vec::new(),
                };
                self.hand_on(&launch.args);
                self.defaults(&candidates, launch.args.len(), span);
                self.found.launches.push(CallSite {
                    expr: id,
                    span,
                    candidates,
                });
            }
            ExprKind::Call {
                callee: target,
                name,
                args,
                ..
            } => match callee(self.db, self.function, body, *target, name.as_deref(), args) {
                Callee::Functions(candidates, library) => {
                    if let Some(library) = library {
                        self.library(library, args, span);
                    }
                    self.hand_on(args);
                    self.defaults(&candidates, args.len(), span);
                    self.found.calls.push(CallSite {
                        expr: id,
                        span,
                        candidates,
                    });
                }
                Callee::Known(library) => self.library(library, args, span),
                Callee::Type(ty) => self.construct(&ty, span),
                Callee::Unknown => {
                    self.hand_on(args);
                    self.unknown(name.as_deref().unwrap_or(""), span);
                }
            },
            ExprKind::Construct { ty, .. } => self.construct(ty, span),
            ExprKind::Delete(_) | ExprKind::New(_) => self.unknown("", span),
            ExprKind::Unknown { mentions, .. } => {
                let params: Vec<u32> = mentions.iter().filter_map(|b| self.param(*b)).collect();
                self.found.written_params.extend(params);
                self.unknown("", span);
            }
            _ => {}
        }
        // A pointer parameter that is used other than to access what it points at.
        for operand in operands(&expr.kind) {
            let access = match &expr.kind {
                ExprKind::Index { base, .. } | ExprKind::Field { base, arrow: true, .. } => *base == operand,
                ExprKind::Deref(_) | ExprKind::Paren(_) => true,
                _ => false,
            };
            if !access {
                self.leak(operand);
            }
        }
    }

    /// The default arguments that a call with so many arguments evaluates.
    fn defaults(&mut self, candidates: &[FunctionItem<'db>], count: usize, span: Span) {
        for f in candidates.iter().filter(|f| default_may_run(self.db, **f, count)) {
            self.unknown(&format!("a default argument of {}", f.name(self.db)), span);
        }
    }

    /// A pointer parameter that is used as a value.
    fn leak(&mut self, e: ExprId) {
        if let ExprKind::Name(Name::Local(b)) = &self.body.expr(self.body.strip_parens(e)).kind
            && self.body.binding(*b).ty.is_pointer_like()
        {
            self.found.leaked_params.extend(self.param(*b));
        }
    }

    fn construct(&mut self, ty: &str, span: Span) {
        let templates = &self.function.signature(self.db).template_types;
        let group = ty.starts_with("cg::") || ty.starts_with("cooperative_groups::");
        if !group && self.places.is_opaque(ty, templates) {
            self.unknown(ty, span);
        }
    }

    fn library(&mut self, library: Library, args: &[ExprId], span: Span) {
        let facts = &mut self.found.facts;
        if library.is_barrier() {
            facts.barriers.push(span);
        } else if library.together != Together::Alone {
            facts.warp_ops.push(span);
        }
        if library.does.has(Does::PRINTS) {
            facts.prints.push(span);
        }
        if library.does.has(Does::WAITS_FOR_CHILDREN) {
            facts.device_sync.push(span);
        }
        let whole = match library.memory {
            Memory::Atomic(_) | Memory::Stores => false,
            Memory::Through { whole, .. } => whole,
            Memory::Handle { writes: true } => return self.write(MemoryClass::Any, false, span),
            Memory::Untouched
            | Memory::ReadOnly
            | Memory::Loads { .. }
            | Memory::Frees
            | Memory::Handle { writes: false }
            | Memory::References => return,
        };
        if args.is_empty() {
            return self.unknown("", span);
        }
        if whole {
            self.hand_on(args);
        }
        for pointer in library.writes(args.len()).filter_map(|at| args.get(at)) {
            let class = match whole {
                true => MemoryClass::Any,
                false => self.places.pointee_class(*pointer),
            };
            self.write_to(&self.places.pointee_root(*pointer), class, span);
        }
    }

    fn stmt(&mut self, id: StmtId) {
        let stmt = self.body.stmt(id);
        match &stmt.kind {
            StmtKind::Asm { text, mentions, .. } => {
                let params: Vec<u32> = mentions.iter().filter_map(|b| self.param(*b)).collect();
                self.found.written_params.extend(params);
                let facts = &mut self.found.facts;
                facts.asm.push(stmt.span);
                let waits = [
                    "bar",
                    "barrier",
                    "mbarrier",
                    "warpsync",
                    "sync",
                    "aligned",
                    "wait",
                    "wait_group",
                    "wait_all",
                ];
                if assembly_may_have(text.as_deref(), &waits) {
                    facts.barriers.push(stmt.span);
                }
                self.write(MemoryClass::Any, false, stmt.span);
            }
            StmtKind::Unknown { mentions, .. } => {
                let params: Vec<u32> = mentions.iter().filter_map(|b| self.param(*b)).collect();
                self.found.written_params.extend(params);
                self.unknown("", stmt.span);
            }
            StmtKind::Return(Some(e)) => self.leak(*e),
            StmtKind::Decl(decls) => {
                for d in decls {
                    if let Some(init) = d.init {
                        self.leak(init);
                    }
                    let ty = &self.body.binding(d.binding).ty;
                    let made = d
                        .init
                        .is_none_or(|e| matches!(&self.body.expr(e).kind, ExprKind::InitList(_)));
                    let shared = self.body.binding(d.binding).storage != Storage::Local;
                    if made && !shared && ty.pointers == 0 && !ty.reference && !ty.complex {
                        self.construct(&ty.base.clone(), stmt.span);
                    }
                }
            }
            _ => {}
        }
    }
}

/// What runs while a function does.
struct Reached<'db> {
    /// Functions that may run, the function itself included, each with the call (in it) that leads there; the function alone when there
    /// are more than are looked at.
    all: Vec<(FunctionItem<'db>, Option<Span>)>,
    /// The calls that lead to a kernel that isn't known, or to more functions than are looked at.
    unknown: Vec<Span>,
    /// There are more functions than are looked at.
    cut: bool,
}

/// Functions that `function` may run; with `launches`, also the kernels that these launch.
fn reached<'db>(db: &'db dyn Db, function: FunctionItem<'db>, launches: bool) -> Reached<'db> {
    let mut seen = FxHashSet::from_iter([function]);
    let mut queue = VecDeque::from([(function, None)]);
    let mut all = Vec::new();
    let mut unknown = Vec::new();
    let mut cut = false;
    'functions: while let Some((f, root)) = queue.pop_front() {
        all.push((f, root));
        let direct = direct(db, f);
        let launched = direct.launches.iter().filter(|_| launches);
        for site in direct.calls.iter().chain(launched) {
            let root = root.or(Some(site.span));
            if site.candidates.is_empty() {
                unknown.extend(root);
            }
            for f in &site.candidates {
                if !seen.contains(f) && seen.len() >= CALLEES {
                    cut = true;
                    break 'functions;
                } else if seen.insert(*f) {
                    queue.push_back((*f, root));
                }
            }
        }
    }
    if cut {
        // Who leads to what isn't looked at isn't known: each call may. So nothing is gained by what others do.
        all = vec![(function, None)];
        unknown.clear();
        let direct = direct(db, function);
        let launched = direct.launches.iter().filter(|_| launches);
        unknown.extend(direct.calls.iter().chain(launched).map(|site| site.span));
    }
    Reached { all, unknown, cut }
}

/// Whether something that runs while `function` does may end the program, or a thread before its end: a trap, a failed assertion, inline
/// assembly, code that isn't known.
#[salsa::tracked]
pub fn may_end_the_program<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    let Reached { all, unknown, cut } = reached(db, function, true);
    cut || !unknown.is_empty()
        || all.iter().any(|(f, _)| {
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
    let Reached { all, unknown, cut } = reached(db, function, false);
    let numbers = |f: FunctionItem<'db>| {
        body(db, f).exprs.iter().any(|e| match &e.kind {
            ExprKind::Name(Name::Builtin(builtin)) => matches!(builtin, Builtin::ThreadIdx | Builtin::BlockIdx),
            ExprKind::Call { name: Some(name), .. } => library_called(db, f, name).is_some_and(|l| l.looks_around()),
            _ => false,
        })
    };
    cut || !unknown.is_empty()
        || all.iter().any(|(f, _)| {
            let facts = &direct(db, *f).facts;
            !facts.asm.is_empty() || !facts.unknown_calls.is_empty() || numbers(*f)
        })
}

/// Writes to memory by anything that runs while `function` does: itself, its callees, and the kernels that these launch.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub struct Effects {
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
    effects(db, function).cut
}

/// See [`Effects`].
#[salsa::tracked(returns(clone))]
pub fn effects<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<Effects> {
    let Reached { all, unknown, cut } = reached(db, function, true);
    let mut effects = Effects {
        opaque: cut,
        cut,
        ..Effects::default()
    };
    let mut puns = None;
    for span in unknown {
        effects.writes.push(Write {
            class: MemoryClass::Any,
            shared: false,
            span,
        });
    }
    for (f, root) in all {
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
    let Reached { all, unknown, cut } = reached(db, function, false);
    if cut {
        s.unknown_calls
            .extend(unknown.into_iter().map(|span| (String::new(), span)));
    }
    let mut firsts: [Vec<Span>; 4] = Default::default();
    for (f, root) in all {
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
