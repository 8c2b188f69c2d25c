//! What one body does by itself, looked up in its lowered form.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::named::{BUILTINS, Named};
use super::types::{Act, CallSite, Direct, Step, What, Write};
use crate::base::db::Db;
use crate::base::span::Span;
use crate::facts::callee::{Callee, by_name, callee};
use crate::facts::defaults::default_may_run;
use crate::facts::functors::called_operators;
use crate::facts::groups::group_call;
use crate::facts::hidden::hidden;
use crate::facts::runtime_calls::{RuntimeCall, is_collector, runtime_call};
use crate::facts::uniformity::memory::{MemoryClass, Places, Root};
use crate::facts::uniformity::waiting_loops;
use crate::facts::unseen::{Role, unseen};
use crate::hir::assembly::assembly_may_have;
use crate::hir::items::FunctionItem;
use crate::hir::library::{Does, Library, Memory, Together};
use crate::hir::names::unqualified;
use crate::hir::walk::operands;
use crate::hir::{Binding, BindingId, Body, Builtin, ExprId, ExprKind, Name, StmtId, StmtKind, Storage, body};

/// The facts of one body.
#[salsa::tracked(returns(clone))]
pub fn direct<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<Direct<'db>> {
    let body = body(db, function);
    let text = function.text(db);
    let mut scan = Scan {
        db,
        function,
        places: Places {
            db,
            function,
            body: &body,
        },
        body: &body,
        text: &text,
        called: names_called(&body),
        named: Named::new(db, function),
        found: Direct::default(),
    };
    for i in 0..body.exprs.len() {
        scan.expr(ExprId(i as u32));
    }
    for i in 0..body.stmts.len() {
        scan.stmt(StmtId(i as u32));
    }
    for binding in &body.bindings {
        scan.binding(binding);
    }
    scan.unclear();
    scan.found.puns = scan.places.puns();
    for span in waiting_loops(db, function) {
        scan.named.does(What::Waits, super::types::WAITING_LOOP, span, span);
        scan.found.facts.may_wait.push(span);
    }
    let Scan { named, mut found, .. } = scan;
    found.steps = named.found;
    found.steps.sort_by_key(|step| step.at().start);
    let facts = &mut found.facts;
    for step in &found.steps {
        if let Step::Does(Act {
            what: What::Calls(known),
            span,
            ..
        }) = step
        {
            if known.is_barrier() {
                facts.barriers.push(*span);
            } else if known.together != Together::Alone {
                facts.warp_ops.push(*span);
            }
            if known.does.has(Does::PRINTS) {
                facts.prints.push(*span);
            }
            if known.does.has(Does::WAITS_FOR_CHILDREN) {
                facts.device_sync.push(*span);
            }
        }
    }
    for spans in [
        &mut facts.barriers,
        &mut facts.warp_ops,
        &mut facts.may_wait,
        &mut facts.launches,
    ] {
        spans.sort();
    }
    Arc::new(found)
}

/// The expressions that are called by their names.
fn names_called(body: &Body) -> FxHashSet<ExprId> {
    let called = body.exprs.iter().filter_map(|expr| match &expr.kind {
        ExprKind::Call { callee, .. } => Some(body.strip_parens(*callee)),
        _ => None,
    });
    called.collect()
}

/// A variable that is a lambda, so that what calls it runs code of the function's own.
pub(super) fn is_lambda(body: &Body, variable: BindingId) -> bool {
    let binding = body.binding(variable);
    let lambda = |init: ExprId| {
        matches!(
            body.expr(body.strip_parens(init)).kind,
            ExprKind::Lambda { body: Some(_), .. }
        )
    };
    binding.ty.base == "auto" && !binding.ty.complex && body.initialiser(variable).is_some_and(lambda)
}

struct Scan<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &'a Body,
    text: &'a str,
    places: Places<'a>,
    /// See [`names_called`].
    called: FxHashSet<ExprId>,
    named: Named<'db>,
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

    fn param(&self, binding: BindingId) -> Option<u32> {
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
            ExprKind::Name(Name::Builtin(b)) => {
                facts.builtins.insert(*b);
                if let Some(name) = builtin_name(*b) {
                    self.named.does(What::Builtin(name), name, span, span);
                }
            }
            ExprKind::Name(Name::Other(name))
                if !self.called.contains(&id) && !self.named.is_unexpanded(name, expr.from_macro) =>
            {
                let at = self.last_word(span, unqualified(name));
                self.named.value(name, at);
            }
            ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => {
                let class = self.places.class(*place);
                self.write_to(&self.places.root(*place), class, span);
            }
            ExprKind::Launch(launch) => {
                facts.launches.push(span);
                self.named.does(What::Launches, "a launch", span, launch.config_span);
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
            } => {
                let means = callee(self.db, self.function, body, *target, name.as_deref(), args);
                self.call(id, *target, name.as_deref(), &means);
                if let Some(call) = runtime_call(self.db, self.function, body, *target, args) {
                    return self.memory_of_runtime(id, name.as_deref(), call, args);
                }
                self.memory_of_call(id, name.as_deref(), args, means);
            }
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
            let what = format!("a default argument of {}", f.name(self.db));
            self.unknown(&what, span);
            // What rewrites ask of it isn't known either.
            self.named.unknown(what, span, span);
        }
    }

    /// What a call does to memory.
    fn memory_of_call(&mut self, id: ExprId, name: Option<&str>, args: &[ExprId], means: Callee<'db>) {
        let span = self.body.expr(id).span;
        match means {
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
                self.unknown(name.unwrap_or(""), span);
            }
        }
    }

    /// What a call of our runtime does to memory: it keeps its own apart.
    fn memory_of_runtime(&mut self, id: ExprId, name: Option<&str>, call: RuntimeCall<'db>, args: &[ExprId]) {
        let span = self.body.expr(id).span;
        self.found
            .facts
            .unknown_calls
            .push((name.unwrap_or("").to_owned(), span));
        if let RuntimeCall::Collects { kernels, made_of } = call {
            self.hand_on(&made_of);
            let record = args.iter().flat_map(|arg| match &self.body.expr(*arg).kind {
                ExprKind::InitList(parts) => parts.clone(),
                _ => vec![*arg],
            });
            self.hand_on(&record.collect::<Vec<_>>());
            self.found.launches.push(CallSite {
                expr: id,
                span,
                candidates: kernels,
            });
        }
    }

    /// What a call does beside that.
    fn call(&mut self, id: ExprId, target: ExprId, name: Option<&str>, means: &Callee<'db>) {
        let (db, body) = (self.db, self.body);
        let span = body.expr(id).span;
        let called = body.expr(body.strip_parens(target));
        match &called.kind {
            ExprKind::Field { field, .. } => {
                let at = self.last_word(called.span, field);
                match group_call(db, self.function, body, target) {
                    Some((group, known)) => self.named.group_member(field, group, known, span, at),
                    None => self.named.method(field, span, at),
                }
            }
            ExprKind::Name(Name::Local(b)) => {
                if let Some(runs) = called_operators(db, self.function, body, *b) {
                    self.named.runs(runs.operators, called.span);
                    self.named.runs_lambda(runs.closures, called.span);
                } else if !is_lambda(body, *b) {
                    let what = format!("a call of `{}`", body.binding(*b).name);
                    self.named.unknown(what, span, called.span);
                }
            }
            ExprKind::Name(Name::Other(name)) => {
                if !self.named.is_unexpanded(name, called.from_macro) {
                    let at = self.last_word(called.span, unqualified(name));
                    self.named.call(name, means, span, at);
                }
            }
            ExprKind::Lambda { body: Some(_), .. } => {}
            _ => match name {
                Some(name) => self.named.call(name, means, span, called.span),
                None => {
                    let code: Vec<&str> = called.span.text(self.text).split_whitespace().collect();
                    self.named
                        .unknown(format!("what `{}` calls", code.join(" ")), span, called.span);
                }
            },
        }
    }

    /// Where a word stands last in a piece of the function; all of it when it doesn't, as in the use of a macro.
    fn last_word(&self, span: Span, word: &str) -> Span {
        match span.text(self.text).rfind(word) {
            Some(at) if !word.is_empty() => {
                let start = span.start + at as u32;
                Span::new(start, start + word.len() as u32)
            }
            _ => span,
        }
    }

    /// What a declaration says.
    fn binding(&mut self, binding: &Binding) {
        let facts = &mut self.found.facts;
        let (name, span) = (&binding.name, binding.decl_span);
        match binding.storage {
            Storage::Shared => facts.static_shared.push(span),
            Storage::ExternShared => facts.dynamic_shared.push(span),
            _ => {}
        }
        if matches!(binding.storage, Storage::Shared | Storage::ExternShared) {
            let at = self.last_word(span, "__shared__");
            self.named.does(What::Shared, "__shared__ memory", span, at);
        }
        if binding.ty.restrict {
            let parameter = binding.storage == Storage::Param;
            let name = format!("`{name}`, which is __restrict__");
            self.named
                .does(What::Restrict { parameter }, name, binding.span, binding.span);
        }
    }

    /// What isn't understood, isn't in sight, or runs without being called by its name.
    fn unclear(&mut self) {
        let (db, function) = (self.db, self.function);
        let mut note = |what: What, name: String, span: Span| {
            self.found.unclear.push(Act {
                what,
                name,
                span,
                at: span,
            });
        };
        for (span, reason) in &self.body.problems {
            note(What::Unknown, reason.clone(), *span);
        }
        let unseen = unseen(db, function);
        for name in unseen.iter() {
            let what = match name.role {
                Role::Value => What::UnknownValue,
                _ => What::Unknown,
            };
            note(
                what,
                format!("`{}`, of which no definition is in sight", name.name),
                name.span,
            );
        }
        let hidden = hidden(db, function);
        for hidden in hidden.iter() {
            note(
                What::Unknown,
                format!("{}, which isn't called by its name", hidden.what),
                hidden.span,
            );
        }
        // As far as memory goes.
        for (span, _) in &self.body.problems {
            self.unknown("", *span);
        }
        for name in unseen.iter().filter(|name| name.role != Role::Value) {
            self.unknown(&name.name, name.span);
        }
        for hidden in hidden.iter() {
            self.unknown(&hidden.what, hidden.span);
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
        // A collector keeps what it is made of until it collects a launch.
        if !group && !is_collector(ty) && self.places.is_opaque(ty, templates) {
            self.unknown(ty, span);
        }
    }

    fn library(&mut self, library: Library, args: &[ExprId], span: Span) {
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
                self.named.does(What::Asm(text.clone()), "asm", stmt.span, stmt.span);
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

fn builtin_name(builtin: Builtin) -> Option<&'static str> {
    let name = match builtin {
        Builtin::ThreadIdx => "threadIdx",
        Builtin::BlockIdx => "blockIdx",
        Builtin::BlockDim => "blockDim",
        Builtin::GridDim => "gridDim",
        Builtin::WarpSize => return None,
    };
    BUILTINS.into_iter().find(|known| *known == name)
}
