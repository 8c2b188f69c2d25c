//! What the host's pointers may hold: nothing but what `cudaMalloc` has put into certain variables, or what a function returns that has
//! just allocated it.
//!
//! What else may set a variable is any use of it by which something gets a reference to it; so each use has to be one that reads it. The
//! fields of an object count as variables, where the object itself is only ever copied.

use std::collections::{BTreeSet, HashMap};

use super::fields::{fields, with_field};
use crate::base::db::Db;
use crate::base::span::Span;
use crate::base::words::words;
use crate::facts::callee::{Callee, by_name, callee, is_runtime};
use crate::facts::plain_operands::is_plain;
use crate::facts::uniformity::memory::{Class, Places};
use crate::hir::flow::operands;
use crate::hir::items::FunctionItem;
use crate::hir::mentions::anchor;
use crate::hir::visible::visible_names;
use crate::hir::{BinOp, BindingId, Body, ExprId, ExprKind, Literal, Name, StmtKind, Storage, Type, body, parameters};

/// Functions that call functions that allocate, which are followed.
const MAX_CALLS: u32 = 4;

/// A local variable, or a field of one that is an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Holder {
    pub binding: BindingId,
    /// `edges`, `graph.edges`; nothing for the variable itself.
    pub path: String,
}

impl Holder {
    /// The variable, or the field of one, that an expression names.
    pub fn named(body: &Body, mut e: ExprId) -> Option<Holder> {
        let mut path = String::new();
        loop {
            match &body.expr(body.strip_parens(e)).kind {
                ExprKind::Name(Name::Local(binding)) => {
                    return Some(Holder {
                        binding: *binding,
                        path,
                    });
                }
                ExprKind::Field {
                    base,
                    field,
                    arrow: false,
                } => {
                    path = with_field(field, &path);
                    e = *base;
                }
                _ => return None,
            }
        }
    }
}

/// The variables of a function of the host whose memory a pointer may lead to: each of them holds what was allocated for it alone. `None`
/// where it may hold something else, too, or nothing.
pub(super) fn held(db: &dyn Db, function: FunctionItem<'_>, holder: &Holder) -> Option<BTreeSet<Holder>> {
    held_within(db, function, holder, MAX_CALLS).filter(|found| !found.is_empty())
}

/// The same of a pointer as an expression.
pub(super) fn held_by(db: &dyn Db, function: FunctionItem<'_>, e: ExprId) -> Option<BTreeSet<Holder>> {
    let body = body(db, function);
    let found = pointer(db, function, &body, e, MAX_CALLS)?;
    // Who gets the memory that is allocated on the spot has no name.
    let Found::From(from) = found else { return None };
    let mut all = BTreeSet::new();
    for holder in from {
        all.extend(held(db, function, &holder)?);
    }
    Some(all).filter(|all| !all.is_empty())
}

fn held_within(db: &dyn Db, function: FunctionItem<'_>, holder: &Holder, calls: u32) -> Option<BTreeSet<Holder>> {
    let mut seen = BTreeSet::from([holder.clone()]);
    let mut todo = vec![holder.clone()];
    let mut found = BTreeSet::new();
    while let Some(holder) = todo.pop() {
        let set = Uses::of(db, function, &holder, calls)?;
        if set.allocated {
            found.insert(holder);
        }
        todo.extend(set.from.into_iter().filter(|other| seen.insert(other.clone())));
    }
    Some(found)
}

/// What an expression that is a pointer leads to.
enum Found {
    /// What these variables hold; nothing where it is null.
    From(Vec<Holder>),
    /// Memory that has been allocated just then.
    New,
}

fn pointer(db: &dyn Db, function: FunctionItem<'_>, body: &Body, e: ExprId, calls: u32) -> Option<Found> {
    let places = Places { db, function, body };
    // An address that has been a number may be that of anything: `(int*)(a ^ b)`.
    let is_pointer = |e: ExprId| {
        places
            .shape(e)
            .is_some_and(|s| s.pointers > 0 || s.dims > 0 || s.base.contains('*'))
    };
    let is_number = |e: ExprId| places.shape(e).is_none_or(|s| s.pointers == 0 && s.dims == 0);
    let mut e = e;
    loop {
        match &body.expr(e).kind {
            ExprKind::Literal(Literal::Null | Literal::Int(0)) => return Some(Found::From(Vec::new())),
            ExprKind::Paren(inner) => e = *inner,
            ExprKind::Cast { operand, .. } if is_pointer(e) => e = *operand,
            ExprKind::Binary(BinOp::Add | BinOp::Sub, a, b) if is_pointer(*a) && is_number(*b) => e = *a,
            ExprKind::Binary(BinOp::Add, a, b) if is_pointer(*b) && is_number(*a) => e = *b,
            ExprKind::Name(Name::Local(_)) | ExprKind::Field { arrow: false, .. } => {
                return Holder::named(body, e).map(|holder| Found::From(vec![holder]));
            }
            ExprKind::Conditional { then, otherwise, .. } => {
                let then = pointer(db, function, body, *then, calls)?;
                let otherwise = pointer(db, function, body, *otherwise, calls)?;
                return match (then, otherwise) {
                    (Found::From(a), Found::From(b)) => Some(Found::From(a.into_iter().chain(b).collect())),
                    (Found::New, Found::New) => Some(Found::New),
                    _ => None,
                };
            }
            ExprKind::Call {
                callee: target,
                name,
                args,
                ..
            } => {
                let calls = calls.checked_sub(1)?;
                let Callee::Functions(all, None) = callee(db, function, body, *target, name.as_deref(), args) else {
                    return None;
                };
                let new = all.iter().all(|f| returns_new(db, *f, calls));
                return (new && !all.is_empty()).then_some(Found::New);
            }
            _ => return None,
        }
    }
}

/// A function of the host returns memory that it has allocated in the call.
fn returns_new(db: &dyn Db, function: FunctionItem<'_>, calls: u32) -> bool {
    let signature = function.signature(db);
    if !signature.host || signature.kernel || !function.has_body(db) {
        return false;
    }
    let body = body(db, function);
    // Another definition of it may be meant.
    let (file, start) = (function.file(db), function.start(db));
    let (from, to) = (anchor(db, file, start), start + function.body_span(db).start);
    let text = file.text(db);
    let head = text.get(from as usize..to as usize).unwrap_or("weak");
    if body.cut || !body.problems.is_empty() || words(head).any(|word| matches!(word, "weak" | "__weak__" | "virtual"))
    {
        return false;
    }
    let mut any = false;
    let all = body.stmts.iter().all(|stmt| match stmt.kind {
        StmtKind::Return(Some(value)) => match pointer(db, function, &body, value, calls) {
            Some(Found::New) => {
                any = true;
                true
            }
            Some(Found::From(from)) => from.iter().all(|holder| {
                any = true;
                let own = BTreeSet::from([holder.clone()]);
                held_within(db, function, holder, calls) == Some(own)
            }),
            None => false,
        },
        _ => true,
    });
    all && any
}

/// What sets a variable.
#[derive(Default)]
struct Set {
    /// Something allocates memory for it.
    allocated: bool,
    /// What these hold is assigned to it.
    from: Vec<Holder>,
}

struct Uses<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &'a Body,
    places: Places<'a>,
    parents: HashMap<ExprId, ExprId>,
    holder: &'a Holder,
    b: BindingId,
    calls: u32,
    set: Set,
}

impl<'db> Uses<'_, 'db> {
    /// What sets a variable; `None` where something else may.
    fn of(db: &'db dyn Db, function: FunctionItem<'db>, holder: &Holder, calls: u32) -> Option<Set> {
        let body = &body(db, function);
        let b = holder.binding;
        let binding = body.binding(b);
        let ty = &binding.ty;
        if binding.storage != Storage::Local || ty.reference || ty.complex || !ty.array.is_empty() {
            return None;
        }
        match holder.path.is_empty() {
            true if ty.pointers != 1 => return None,
            false if ty.pointers != 0 => return None,
            _ => {}
        }
        let mut parents: HashMap<ExprId, ExprId> = HashMap::new();
        for (i, expr) in body.exprs.iter().enumerate() {
            for operand in operands(&expr.kind) {
                parents.insert(operand, ExprId(i as u32));
            }
        }
        let mut uses = Uses {
            db,
            function,
            body,
            places: Places { db, function, body },
            parents,
            holder,
            b,
            calls,
            set: Set::default(),
        };
        // What an object is made of can be told, for those that hold no others.
        let object = !holder.path.is_empty();
        if object && (holder.path.contains('.') || fields(db, function, body, &ty.base).is_none()) {
            return None;
        }
        let exprs = (0..body.exprs.len() as u32)
            .map(ExprId)
            .all(|e| match &body.expr(e).kind {
                ExprKind::Name(Name::Local(named)) if *named == b => match holder.path.is_empty() {
                    true => uses.reads(e),
                    false => uses.reads_object(e),
                },
                ExprKind::Lambda { mentions, .. } => !mentions.contains(&b),
                ExprKind::Unknown { mentions, parts } => {
                    !mentions.contains(&b) || uses.checks(body.expr(e).span, parts)
                }
                _ => true,
            });
        (exprs && uses.statements()).then_some(uses.set)
    }

    /// A pointer is assigned to the variable.
    fn assigned(&mut self, value: ExprId) -> bool {
        match pointer(self.db, self.function, self.body, value, self.calls) {
            Some(Found::New) => self.set.allocated = true,
            Some(Found::From(from)) => self.set.from.extend(from),
            None => return false,
        }
        true
    }

    /// An object is assigned to the one that has the field, or it is made of that.
    fn assigned_object(&mut self, value: ExprId) -> bool {
        let body = self.body;
        let value = body.strip_parens(value);
        let parts = match &body.expr(value).kind {
            ExprKind::InitList(parts) => parts,
            ExprKind::Name(_) | ExprKind::Field { .. } => {
                let Some(mut other) = Holder::named(body, value) else {
                    return false;
                };
                let ty = self.places.shape(value);
                if !ty.is_some_and(|ty| ty.pointers == 0 && ty.dims == 0 && self.is_of_its_type(&ty.base)) {
                    return false;
                }
                other.path = with_field(&other.path, &self.holder.path);
                self.set.from.push(other);
                return true;
            }
            _ => return false,
        };
        // A list of one object copies it; what is no value for sure may be one.
        if let [only] = parts.as_slice()
            && !is_plain(self.places, *only)
        {
            return self.assigned_object(*only);
        }
        // One value after the other, for what holds nothing but values.
        let Some(all) = fields(self.db, self.function, body, &body.binding(self.b).ty.base) else {
            return false;
        };
        let known = parts
            .iter()
            .all(|part| !matches!(body.expr(*part).kind, ExprKind::Unknown { .. }));
        match all.iter().position(|field| field.name == self.holder.path) {
            Some(at) if known && all.iter().take(at).all(|field| field.single) => {
                parts.get(at).is_none_or(|part| self.assigned(*part))
            }
            _ => false,
        }
    }

    /// Whether an occurrence of the object only reads it, or sets its field in a way that is followed.
    fn reads_object(&mut self, e: ExprId) -> bool {
        let body = self.body;
        let mut e = e;
        let mut path = String::new();
        while let Some(outer) = self.parents.get(&e).copied() {
            match &body.expr(outer).kind {
                ExprKind::Paren(_) => e = outer,
                ExprKind::Field {
                    base,
                    field,
                    arrow: false,
                } if *base == e && path != self.holder.path => {
                    path = with_field(&path, field);
                    e = outer;
                }
                _ => break,
            }
        }
        if path == self.holder.path {
            return self.reads(e);
        }
        let Some(outer) = self.parents.get(&e).copied() else {
            return self.is_copied(e, &path);
        };
        let within = self.holder.path.starts_with(&format!("{path}."));
        let whole = path.is_empty();
        match &body.expr(outer).kind {
            // A member function may set any field.
            ExprKind::Call { callee: target, .. } if *target == e => false,
            ExprKind::Launch(launch) if launch.callee != e => {
                let kernel = launch.kernel.as_deref().filter(|_| launch.template_args.is_none());
                match kernel.map(|name| by_name(self.db, self.function, name, &launch.args)) {
                    _ if !whole && !within => true,
                    Some(Callee::Functions(all, _)) => self.are_copies(&all, &launch.args, e),
                    _ => false,
                }
            }
            ExprKind::Launch(_) => false,
            ExprKind::Assign { op: None, place, value } if *place == e && whole => self.assigned_object(*value),
            ExprKind::Assign { place, .. } if *place == e => !whole && !within,
            // An assignment of another class may take a reference.
            ExprKind::Assign { op: None, place, .. } if whole => {
                let to = self.places.shape(*place);
                to.is_some_and(|to| to.pointers == 0 && to.dims == 0 && self.is_of_its_type(&to.base))
            }
            ExprKind::Assign { .. } => !whole && !within,
            ExprKind::Call {
                callee: target,
                name,
                args,
                template_args,
            } => {
                let found = callee(self.db, self.function, body, *target, name.as_deref(), args);
                match found {
                    _ if !whole && !within => true,
                    Callee::Functions(all, None) if template_args.is_none() => self.are_copies(&all, args, e),
                    _ => false,
                }
            }
            // What has a field's address may write those beside it, too: all but what allocates for that one.
            ExprKind::AddrOf(_) => !whole && self.is_allocating(outer),
            _ => !whole && !within,
        }
    }

    /// A type is the object's own: nothing is converted, so a copy is made of it.
    fn is_of_its_type(&self, ty: &str) -> bool {
        let plain = |ty: &str| {
            let ty = self.places.alias(ty);
            let ty = ty.trim().trim_start_matches("const ").trim();
            ty.strip_prefix("struct ").unwrap_or(ty).trim().to_owned()
        };
        plain(ty) == plain(&self.body.binding(self.b).ty.base)
    }

    /// All of these functions get a copy of the object `e`.
    fn are_copies(&self, all: &[FunctionItem<'_>], args: &[ExprId], e: ExprId) -> bool {
        let index = args.iter().position(|arg| *arg == e);
        let copied = |f: &FunctionItem<'_>| {
            let of_it = parameters(self.db, *f);
            let parameter = index.and_then(|index| of_it.get(index));
            // A template's parameter is what the argument is.
            let deduced = |ty: &str| f.signature(self.db).template_types.iter().any(|own| own == ty);
            parameter.is_some_and(|p| {
                let value = p.ty.pointers == 0 && p.ty.array.is_empty() && !p.ty.reference && !p.ty.complex;
                value && (self.is_of_its_type(&p.ty.base) || deduced(&p.ty.base))
            })
        };
        all.iter().all(copied)
    }

    /// The object, or the part of it that `path` says, stands alone in a statement: another one is made of it.
    fn is_copied(&self, e: ExprId, path: &str) -> bool {
        let within = path.is_empty() || self.holder.path.starts_with(&format!("{path}."));
        self.body.stmts.iter().all(|stmt| match &stmt.kind {
            StmtKind::Decl(decls) => {
                let mut bound = decls.iter().filter(|d| d.init == Some(e));
                bound.all(|d| {
                    let ty = &self.body.binding(d.binding).ty;
                    let copy = ty.pointers == 0 && ty.array.is_empty() && !ty.reference && !ty.complex;
                    !within || copy && (ty.base == "auto" || self.is_of_its_type(&ty.base))
                })
            }
            StmtKind::RangeFor { range, .. } => *range != e,
            _ => true,
        })
    }
}

impl Uses<'_, '_> {
    fn strip(&self, mut e: ExprId) -> ExprId {
        loop {
            match &self.body.expr(e).kind {
                ExprKind::Paren(inner) => e = *inner,
                ExprKind::Cast { operand, .. } => e = *operand,
                _ => return e,
            }
        }
    }

    /// A macro around calls of the runtime, whose own text doesn't name the variable.
    fn checks(&self, span: Span, parts: &[ExprId]) -> bool {
        let text = self.function.text(self.db);
        let names = visible_names(self.db, self.function.file(self.db));
        let name = &self.body.binding(self.b).name;
        let item = words(span.text(&text)).next().and_then(|name| names.macros.get(name));
        let runtime = |e: &ExprId| {
            matches!(&self.body.expr(self.strip(*e)).kind, ExprKind::Call { name: Some(n), .. }
                if is_runtime(self.db, self.function, n))
        };
        item.is_some_and(|item| !words(&item.body).any(|w| w == name)) && !parts.is_empty() && parts.iter().all(runtime)
    }

    /// What the variable is made of.
    fn begins(&mut self, init: ExprId) -> bool {
        match self.holder.path.is_empty() {
            true => self.assigned(init),
            false => self.assigned_object(init),
        }
    }

    fn statements(&mut self) -> bool {
        let b = self.b;
        // What a loop over a range, a binding or a condition declares is made of something else.
        let declared = self.body.stmts.iter().any(|stmt| match &stmt.kind {
            StmtKind::Decl(decls) => decls.iter().any(|d| d.binding == b),
            _ => false,
        });
        declared
            && self.body.stmts.iter().all(|stmt| match &stmt.kind {
                StmtKind::Asm { mentions, .. } => !mentions.contains(&b),
                StmtKind::Unknown { mentions, exprs, .. } => {
                    let parts = exprs.iter().flat_map(|e| match &self.body.expr(*e).kind {
                        ExprKind::Unknown { parts, .. } => parts.clone(),
                        _ => vec![*e],
                    });
                    !mentions.contains(&b) || self.checks(stmt.span, &parts.collect::<Vec<_>>())
                }
                StmtKind::Decl(decls) => decls
                    .iter()
                    .all(|d| d.binding != b || d.init.is_none_or(|init| self.begins(init))),
                _ => true,
            })
    }

    /// A pointer or a number: making one of a pointer takes its value.
    fn takes_value(&self, ty: &Type) -> bool {
        let plain = ty.pointers > 0 || ty.base == "auto" || self.places.class_kind(&ty.base, &[]) == Class::Plain;
        !ty.reference && !ty.complex && plain
    }

    /// Whether an occurrence of the variable, or a place that is the variable, is one that only reads it, or allocates for it.
    fn reads(&mut self, mut e: ExprId) -> bool {
        let body = self.body;
        while let Some(outer) = self.parents.get(&e).copied() {
            match &body.expr(outer).kind {
                ExprKind::Paren(_) => e = outer,
                ExprKind::Comma(first, last) if *last == e && is_plain(self.places, *first) => e = outer,
                ExprKind::Conditional { cond, .. } if *cond != e => e = outer,
                ExprKind::Assign { op, place, value } if *place == e => {
                    if op.is_some() || !self.assigned(*value) {
                        return false;
                    }
                    e = outer;
                }
                ExprKind::AddrOf(_) => return self.allocates(outer),
                kind => return self.reads_as_part(kind, outer, e),
            }
        }
        body.stmts.iter().all(|stmt| match &stmt.kind {
            StmtKind::Decl(decls) => {
                let mut bound = decls.iter().filter(|d| d.init == Some(e));
                bound.all(|d| self.takes_value(&body.binding(d.binding).ty))
            }
            StmtKind::RangeFor { range, .. } => *range != e,
            _ => true,
        })
    }

    /// The same of an operand `e` of what isn't a place by itself.
    fn reads_as_part(&self, kind: &ExprKind, outer: ExprId, e: ExprId) -> bool {
        let of_value =
            |ty: &str| !ty.contains('&') && (ty.contains('*') || self.places.class_kind(ty, &[]) == Class::Plain);
        match kind {
            ExprKind::Index { base, .. } if *base == e => true,
            // An operator may be a user's where the other operand is an object.
            ExprKind::Assign { place: x, value: y, .. }
            | ExprKind::Comma(x, y)
            | ExprKind::Index { base: x, index: y } => [x, y]
                .into_iter()
                .all(|operand| *operand == e || is_plain(self.places, *operand)),
            ExprKind::Conditional { .. }
            | ExprKind::Deref(_)
            | ExprKind::Field { arrow: true, .. }
            | ExprKind::Unary(..)
            | ExprKind::Delete(_)
            | ExprKind::SizeOf => true,
            ExprKind::Binary(_, x, y) | ExprKind::Logical { lhs: x, rhs: y, .. } => [x, y]
                .into_iter()
                .all(|operand| *operand == e || is_plain(self.places, *operand)),
            ExprKind::Cast { ty, .. } => of_value(ty),
            ExprKind::Call {
                callee: target,
                name,
                args,
                ..
            } => self.passed_by_value(*target, name.as_deref(), args, e),
            ExprKind::Launch(launch) => {
                let kernel = launch.kernel.as_deref();
                match kernel.map(|name| by_name(self.db, self.function, name, &launch.args)) {
                    Some(Callee::Functions(all, _)) => self.are_values(&all, &launch.args, e),
                    _ => launch.callee != e,
                }
            }
            // Pointers in an array, or in an object that is nothing but its fields.
            ExprKind::InitList(_) => self.body.stmts.iter().any(|stmt| match &stmt.kind {
                StmtKind::Decl(decls) => decls.iter().any(|d| {
                    let ty = &self.body.binding(d.binding).ty;
                    let pointers = ty.pointers > 0 || fields(self.db, self.function, self.body, &ty.base).is_some();
                    d.init == Some(outer) && pointers && !ty.reference && !ty.complex
                }),
                _ => false,
            }),
            _ => false,
        }
    }

    /// The address is an argument of a call that allocates.
    fn allocates(&mut self, address: ExprId) -> bool {
        let fits = self.is_allocating(address);
        self.set.allocated |= fits;
        fits
    }

    /// The address is where a call puts what it allocates.
    fn is_allocating(&self, address: ExprId) -> bool {
        let mut e = address;
        while let Some(outer) = self.parents.get(&e).copied() {
            match &self.body.expr(outer).kind {
                ExprKind::Paren(_) | ExprKind::Cast { .. } => e = outer,
                ExprKind::Call {
                    name: Some(name), args, ..
                } => {
                    let allocating = matches!(
                        name.trim_start_matches("::"),
                        "cudaMalloc" | "cudaMallocManaged" | "cudaMallocAsync"
                    );
                    return allocating && args.first() == Some(&e) && is_runtime(self.db, self.function, name);
                }
                _ => return false,
            }
        }
        false
    }

    fn passed_by_value(&self, target: ExprId, name: Option<&str>, args: &[ExprId], e: ExprId) -> bool {
        if target == e {
            return false;
        }
        match callee(self.db, self.function, self.body, target, name, args) {
            Callee::Functions(all, None) => self.are_values(&all, args, e),
            Callee::Known(library) => library.keeps_arguments(),
            Callee::Unknown => name.is_some_and(|n| {
                is_runtime(self.db, self.function, n) || matches!(n.trim_start_matches("::"), "free" | "std::free")
            }),
            Callee::Functions(_, Some(_)) | Callee::Type(_) => false,
        }
    }

    /// All of these functions take the argument `e` by value.
    fn are_values(&self, all: &[FunctionItem<'_>], args: &[ExprId], e: ExprId) -> bool {
        let Some(index) = args.iter().position(|arg| *arg == e) else {
            return true;
        };
        all.iter().all(|f| {
            let parameter = parameters(self.db, *f).get(index);
            parameter.is_some_and(|p| self.takes_value(&p.ty))
        })
    }
}
