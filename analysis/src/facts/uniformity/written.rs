//! Through which pointer parameters, and to which globals, memory is written while a function runs: by itself, by what it
//! calls and by the kernels that it launches.
//!
//! Unlike [`crate::facts::effects::memory_effects`], which only takes types for proof that two accesses don't meet, this takes for granted
//! that different parameters lead to different memory. Whatever relies on it says so.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::memory::{MemoryClass, Places, Root};
use super::methods::{methods, reads_only};
use crate::base::budget::CALLEES;
use crate::base::db::Db;
use crate::facts::callee::Callee;
use crate::facts::callee::callee;
use crate::facts::callee::is_runtime;
use crate::facts::effects::leads_too_far;
use crate::facts::runtime_calls::{RuntimeCall, runtime_call};
use crate::hir::items::FunctionItem;
use crate::hir::library::Memory;
use crate::hir::{BinOp, BindingId, Body, ExprId, ExprKind, Name, StmtKind, Storage, body, parameters};

/// A parameter by index, and the field of it that is followed; empty: all of it.
pub(crate) type Handle = (u32, String);

/// Where a pointer may come from.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub(crate) struct Origins {
    pub params: BTreeSet<Handle>,
    pub globals: BTreeSet<String>,
    /// Shared memory, or variables of the thread.
    pub private: bool,
    /// Somewhere that isn't known.
    pub unknown: bool,
}

impl Origins {
    /// A global variable.
    pub fn global(name: &str) -> Origins {
        Origins {
            globals: BTreeSet::from([name.to_owned()]),
            ..Origins::default()
        }
    }

    /// A parameter.
    pub fn param(index: u32) -> Origins {
        Origins {
            params: BTreeSet::from([(index, String::new())]),
            ..Origins::default()
        }
    }

    /// Not known.
    pub fn anywhere() -> Origins {
        Origins {
            unknown: true,
            ..Origins::default()
        }
    }

    /// What a field of it leads to.
    pub fn field(mut self, field: &str) -> Origins {
        let named = self.params.into_iter().map(|(i, f)| match f.is_empty() {
            true => (i, field.to_owned()),
            false => (i, f),
        });
        self.params = named.collect();
        self
    }

    /// Both.
    pub fn add(&mut self, other: Origins) {
        self.params.extend(other.params);
        self.globals.extend(other.globals);
        self.private |= other.private;
        self.unknown |= other.unknown;
    }

    /// What lies behind the one may be what lies behind the other.
    pub fn meets(&self, written: &Origins) -> bool {
        let same = |(i, f): &Handle, (j, g): &Handle| i == j && (f.is_empty() || g.is_empty() || f == g);
        let nowhere = !self.private && self.params.is_empty() && self.globals.is_empty();
        self.unknown
            || nowhere
            || self.private
            || written.unknown
            || self.globals.intersection(&written.globals).next().is_some()
            || self.params.iter().any(|a| written.params.iter().any(|b| same(a, b)))
    }
}

/// Something is handed to a parameter of another function.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
struct HandedOn<'db> {
    from: Origins,
    to: FunctionItem<'db>,
    param: u32,
}

/// What one body writes, and what it hands on.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
struct Own<'db> {
    written: Origins,
    handed: Vec<HandedOn<'db>>,
    reached: Vec<FunctionItem<'db>>,
}

/// What is written while `function` runs, in terms of its parameters.
#[salsa::tracked(returns(clone))]
pub(super) fn written<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<Origins> {
    let unknown = || {
        Arc::new(Origins {
            unknown: true,
            ..Origins::default()
        })
    };
    if leads_too_far(db, function) {
        return unknown();
    }
    let mut all = vec![function];
    let mut seen = HashSet::from([function]);
    let mut next = 0;
    while let Some(f) = all.get(next).copied() {
        next += 1;
        for g in &own(db, f).reached {
            if seen.insert(*g) {
                all.push(*g);
            }
        }
        // Member functions, which nothing else follows, count as well.
        if all.len() > CALLEES {
            return unknown();
        }
    }
    let mut found: HashMap<FunctionItem<'db>, Origins> =
        all.iter().map(|f| (*f, own(db, *f).written.clone())).collect();
    loop {
        let mut changed = false;
        for f in &all {
            let mut new = found.get(f).cloned().unwrap_or_default();
            let before = new.clone();
            let own = own(db, *f);
            for g in &own.reached {
                if let Some(inner) = found.get(g) {
                    new.globals.extend(inner.globals.iter().cloned());
                    new.unknown |= inner.unknown;
                }
            }
            for edge in &own.handed {
                let Some(inner) = found.get(&edge.to) else { continue };
                let fields: Vec<&String> = inner
                    .params
                    .iter()
                    .filter(|(i, _)| *i == edge.param)
                    .map(|(_, f)| f)
                    .collect();
                if fields.is_empty() {
                    continue;
                }
                new.globals.extend(edge.from.globals.iter().cloned());
                new.unknown |= edge.from.unknown;
                for (i, field) in &edge.from.params {
                    match field.is_empty() {
                        true => new.params.extend(fields.iter().map(|f| (*i, (*f).clone()))),
                        false => new.params.extend([(*i, field.clone())]),
                    }
                }
            }
            if new != before {
                found.insert(*f, new);
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    Arc::new(found.remove(&function).unwrap_or_default())
}

#[salsa::tracked]
fn own<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Own<'db> {
    let body = body(db, function);
    let places = Places {
        db,
        function,
        body: &body,
    };
    let follow = Follow {
        db,
        function,
        body: &body,
        places,
    };
    let mut own = Own::default();
    for expr in &body.exprs {
        match &expr.kind {
            ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => {
                own.written.add(follow.stored(*place, places.root(*place)));
            }
            ExprKind::Launch(launch) => {
                let target = launch.kernel.as_deref().unwrap_or("");
                let callee = callee(db, function, &body, launch.callee, Some(target), &launch.args);
                follow.hand_on(callee, target, &launch.args, &mut own);
            }
            ExprKind::Call {
                callee: target,
                name,
                args,
                ..
            } => {
                if follow.of_runtime(*target, args, &mut own) {
                    continue;
                }
                let callee = callee(db, function, &body, *target, name.as_deref(), args);
                if let (Callee::Unknown, ExprKind::Field { base, .. }) =
                    (&callee, &body.expr(body.strip_parens(*target)).kind)
                {
                    // A member function may write through what its object points at.
                    let methods = methods(db, places, *target, args.len());
                    if methods.is_empty() || !methods.iter().all(|m| reads_only(db, *m)) {
                        own.written.add(follow.origins(*base));
                    }
                }
                follow.hand_on(callee, name.as_deref().unwrap_or(""), args, &mut own);
            }
            ExprKind::Unknown { mentions, .. } => {
                own.written.add(follow.all(mentions));
            }
            _ => {}
        }
    }
    for stmt in &body.stmts {
        if let StmtKind::Asm { mentions, .. } | StmtKind::Unknown { mentions, .. } = &stmt.kind {
            own.written.add(follow.all(mentions));
        }
    }
    own
}

/// Where the pointer that `e` is computed from may come from (for a place: what it lies behind).
pub(super) fn origins<'db>(db: &'db dyn Db, function: FunctionItem<'db>, body: &Body, e: ExprId) -> Origins {
    let places = Places { db, function, body };
    Follow {
        db,
        function,
        body,
        places,
    }
    .origins(e)
}

#[derive(Clone, Copy)]
struct Follow<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &'a Body,
    places: Places<'a>,
}

impl<'db> Follow<'_, 'db> {
    fn hand_on(self, callee: Callee<'db>, name: &str, args: &[ExprId], own: &mut Own<'db>) {
        match callee {
            Callee::Functions(all, library) => {
                if let Some(library) = library {
                    self.hand_on(Callee::Known(library), name, args, own);
                }
                for to in all {
                    own.reached.push(to);
                    let params = parameters(self.db, to);
                    for (i, arg) in args.iter().enumerate() {
                        let read_only = params.get(i).is_some_and(|p| p.ty.const_base && p.ty.pointers <= 1);
                        let from = self.origins(*arg);
                        if !read_only && from != Origins::default() {
                            own.handed.push(HandedOn {
                                from,
                                to,
                                param: i as u32,
                            });
                        }
                    }
                }
            }
            Callee::Known(library) => {
                for pointer in library.writes(args.len()).filter_map(|at| args.get(at)) {
                    own.written
                        .add(self.stored(*pointer, self.places.pointee_root(*pointer)));
                }
                own.written.unknown |= matches!(library.memory, Memory::Handle { writes: true });
            }
            Callee::Type(_) => {}
            Callee::Unknown => {
                let declared = super::vars::declared(self.db, self.function, name);
                for (i, arg) in args.iter().enumerate() {
                    let shape = self.places.shape(*arg);
                    let pointer = shape.is_none_or(|s| s.pointers > 0 || s.dims > 0);
                    let read_only = declared.as_deref().is_some_and(|all| {
                        all.iter()
                            .all(|params| params.get(i).is_some_and(|ty| ty.const_base && ty.pointers <= 1))
                    });
                    if pointer && !read_only {
                        own.written.add(self.origins(*arg));
                    }
                }
            }
        }
    }

    /// What a call of our runtime hands on; `false`: it's none.
    fn of_runtime(self, target: ExprId, args: &[ExprId], own: &mut Own<'db>) -> bool {
        let Some(call) = runtime_call(self.db, self.function, self.body, target, args) else {
            return false;
        };
        let RuntimeCall::Collects { kernels, made_of } = call else {
            return true;
        };
        for to in kernels {
            own.reached.push(to);
            for (i, arg) in made_of.iter().enumerate().skip(1) {
                own.handed.push(HandedOn {
                    from: self.origins(*arg),
                    to,
                    param: i as u32,
                });
            }
        }
        let mut parts: Vec<ExprId> = args.to_vec();
        while let Some(part) = parts.pop() {
            match &self.body.expr(part).kind {
                ExprKind::InitList(inner) => parts.extend(inner),
                // What stands in it has been looked at by itself.
                ExprKind::Lambda { .. } => {}
                _ if self.is_number(part) => {}
                _ => own.written.add(self.origins(part)),
            }
        }
        true
    }

    /// Nothing is reached through it.
    fn is_number(self, e: ExprId) -> bool {
        let numbers = self.places.shape(e).is_some_and(|s| s.dims == 0);
        numbers && !matches!(self.places.class(e), MemoryClass::Any | MemoryClass::Pointer)
    }

    /// Memory that a store to the place changes, as far as other threads may see it.
    fn stored(self, place: ExprId, root: Root) -> Origins {
        match root {
            Root::Object(_) => Origins::default(),
            Root::Through(_) | Root::Global(_) | Root::Other => self.origins(place),
        }
    }

    fn all(self, bindings: &[BindingId]) -> Origins {
        let mut found = Origins::default();
        for b in bindings {
            found.add(self.variable(*b, &mut HashSet::new()));
        }
        found
    }

    fn origins(self, e: ExprId) -> Origins {
        self.walk(e, &mut HashSet::new())
    }

    fn walk(self, e: ExprId, seen: &mut HashSet<BindingId>) -> Origins {
        let body = self.body;
        let mut found = Origins::default();
        match &body.expr(e).kind {
            ExprKind::Name(Name::Local(b)) => found = self.variable(*b, seen),
            ExprKind::Name(Name::Other(name)) => {
                found.globals.insert(name.clone());
            }
            ExprKind::Field { base, field, .. } => {
                found = self.walk(*base, seen).field(field);
            }
            ExprKind::Paren(e)
            | ExprKind::Unary(_, e)
            | ExprKind::Deref(e)
            | ExprKind::Index { base: e, .. }
            | ExprKind::Cast { operand: e, .. }
            | ExprKind::IncDec { place: e, .. }
            | ExprKind::Comma(_, e) => found = self.walk(*e, seen),
            ExprKind::AddrOf(inner) => match self.places.root(*inner) {
                Root::Object(_) => found.private = true,
                _ => found = self.walk(*inner, seen),
            },
            ExprKind::Binary(BinOp::Add | BinOp::Sub, a, b) => {
                let pointer = |e: ExprId| self.places.shape(e).is_some_and(|s| s.pointers > 0 || s.dims > 0);
                if pointer(*a) {
                    found = self.walk(*a, seen);
                } else if pointer(*b) {
                    found = self.walk(*b, seen);
                } else {
                    found = self.walk(*a, seen);
                    found.add(self.walk(*b, seen));
                }
            }
            ExprKind::Assign { place, value, .. } => {
                found = self.walk(*place, seen);
                found.add(self.walk(*value, seen));
            }
            ExprKind::Conditional { then, otherwise, .. } => {
                found = self.walk(*then, seen);
                found.add(self.walk(*otherwise, seen));
            }
            ExprKind::Call {
                callee: target,
                name,
                args,
                ..
            } => {
                for arg in args {
                    found.add(self.walk(*arg, seen));
                }
                if let ExprKind::Field { base, .. } = &body.expr(body.strip_parens(*target)).kind {
                    found.add(self.walk(*base, seen));
                }
                let pointer = self.places.shape(e).is_none_or(|s| s.pointers > 0 || s.dims > 0);
                let known = matches!(
                    callee(self.db, self.function, body, *target, name.as_deref(), args),
                    Callee::Known(_) | Callee::Type(_)
                );
                found.unknown |= pointer && !known && args.is_empty();
            }
            ExprKind::Construct { args, .. } | ExprKind::InitList(args) => {
                for arg in args {
                    found.add(self.walk(*arg, seen));
                }
            }
            ExprKind::Unknown { .. } | ExprKind::Lambda { .. } => found.unknown = true,
            ExprKind::Literal(_)
            | ExprKind::Name(Name::Builtin(_))
            | ExprKind::SizeOf
            | ExprKind::Logical { .. }
            | ExprKind::Binary(..)
            | ExprKind::New(_)
            | ExprKind::Delete(_)
            | ExprKind::Launch(_) => {}
        }
        found
    }

    fn variable(self, b: BindingId, seen: &mut HashSet<BindingId>) -> Origins {
        let mut found = Origins::default();
        if !seen.insert(b) {
            return found;
        }
        let body = self.body;
        let binding = body.binding(b);
        if let Some(i) = body.params.iter().position(|p| *p == b) {
            found.params.insert((i as u32, String::new()));
        } else if matches!(binding.storage, Storage::Shared | Storage::ExternShared) || !binding.ty.array.is_empty() {
            found.private = true;
            return found;
        }
        if let Some(init) = body.initialiser(b) {
            found.add(self.walk(init, seen));
        }
        for stmt in &body.stmts {
            match &stmt.kind {
                StmtKind::RangeFor { binding, range, .. } if *binding == b => found.add(self.walk(*range, seen)),
                _ => {}
            }
        }
        for expr in &body.exprs {
            match &expr.kind {
                ExprKind::Assign { op: None, place, value } if self.places.root(*place) == Root::Object(b) => {
                    found.add(self.walk(*value, seen));
                }
                // Something else may set the pointer: `get(&p)`. Memory that is allocated for it is new.
                ExprKind::Call { name, args, .. } => {
                    let set = |e: &&ExprId| {
                        let mut e = body.strip_parens(**e);
                        while let ExprKind::Cast { operand, .. } = body.expr(e).kind {
                            e = body.strip_parens(operand);
                        }
                        matches!(body.expr(e).kind, ExprKind::AddrOf(inner) if self.places.root(inner) == Root::Object(b))
                    };
                    let allocates = name.as_deref().is_some_and(|n| is_runtime(self.db, self.function, n));
                    let pointer = binding.ty.pointers > 0 || !binding.ty.is_value();
                    found.unknown |= pointer && !allocates && args.iter().any(|a| set(&a));
                }
                _ => {}
            }
        }
        found
    }
}
