//! Addresses of a function's own objects that something keeps: a variable, memory that outlives the function, or somebody who is called.
//!
//! What may hold an address is told by its type; who is called, by its code. Nothing is said of when: an address that is kept once counts
//! as kept everywhere.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::db::Db;
use crate::base::words::words;
use crate::facts::callee::{Callee, callee};
use crate::facts::hidden::hidden;
use crate::facts::uniformity::memory::{Class, MemoryClass, Places, Shape};
use crate::facts::uniformity::{class_changes, variables_of_place};
use crate::hir::flow::operands;
use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, items};
use crate::hir::library::{Library, Memory};
use crate::hir::names::unqualified;
use crate::hir::plain_types::is_plain_type;
use crate::hir::resolve::{Meaning, functions_named, meaning_in};
use crate::hir::walk::all_in_expr;
use crate::hir::{
    BinOp, BindingId, Body, ExprId, ExprKind, Literal, Name, StmtKind, Storage, Type, UnOp, body, parameters,
};

/// Objects whose addresses are known: variables, and `None` for CUDA's built-in ones.
type Objects = BTreeSet<Option<BindingId>>;

/// Who keeps the addresses of a function's objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
pub struct Kept {
    /// By variable: the objects whose addresses it may hold, or that it refers to.
    by_variable: BTreeMap<BindingId, Objects>,
    /// The objects whose addresses may be kept where no variable of the function's own says so.
    elsewhere: Objects,
}

impl Kept {
    /// The objects that may be reached as long as these variables live, and from elsewhere; `None`: a built-in variable.
    pub fn while_alive(&self, variables: impl Iterator<Item = BindingId>) -> BTreeSet<Option<BindingId>> {
        let mut found = BTreeSet::new();
        let mut todo: Vec<Option<BindingId>> = self.elsewhere.iter().copied().collect();
        todo.extend(variables.filter_map(|v| self.by_variable.get(&v)).flatten().copied());
        while let Some(next) = todo.pop() {
            if found.insert(next) {
                todo.extend(next.and_then(|b| self.by_variable.get(&b)).into_iter().flatten());
            }
        }
        found
    }
}

/// What a function does with the addresses that it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, salsa::SalsaValue)]
struct Hands {
    /// It may store one where it is found when the function has returned.
    on: bool,
    /// It may return one.
    back: bool,
}

const UNSEEN: Hands = Hands { on: true, back: true };

/// Who keeps the addresses of the objects of a function.
#[salsa::tracked(returns(ref))]
pub fn kept<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Kept {
    let body = &*body(db, function);
    let reader = Reader::new(db, function, body);
    let mut kept = Kept::default();
    loop {
        let before = kept.clone();
        reader.collect(&mut kept);
        if kept == before {
            return kept;
        }
    }
}

#[salsa::tracked(cycle_result = of_itself)]
fn hands<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Hands {
    if !function.has_body(db) {
        return UNSEEN;
    }
    let body = &*body(db, function);
    if !body.problems.is_empty() || body.cut || !hidden(db, function).is_empty() {
        return UNSEEN;
    }
    let reader = Reader::new(db, function, body);
    let exprs = (0..body.exprs.len() as u32).map(ExprId);
    let mut hands = Hands {
        on: exprs.into_iter().any(|e| reader.hands_on(e)),
        back: !reader.returns_no_address(),
    };
    for stmt in &body.stmts {
        match &stmt.kind {
            StmtKind::Asm { .. } | StmtKind::Unknown { .. } => return UNSEEN,
            StmtKind::Return(Some(value)) => hands.back |= !reader.is_no_address(*value),
            StmtKind::Decl(decls) => {
                let lasting = |b: BindingId| body.binding(b).storage != Storage::Local;
                let mut given = decls.iter().filter(|d| lasting(d.binding)).filter_map(|d| d.init);
                hands.on |= given.any(|init| !reader.is_no_address(init));
            }
            _ => {}
        }
    }
    hands
}

fn of_itself<'db>(_: &'db dyn Db, _: salsa::Id, _: FunctionItem<'db>) -> Hands {
    UNSEEN
}

/// Who is called.
enum Called<'db> {
    Functions(Vec<FunctionItem<'db>>),
    Known(Library),
    /// An object is made: its class holds what it is made of.
    Class(String),
    Unseen,
}

struct Reader<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &'a Body,
    places: Places<'a>,
    /// The function's code names what gives a `double` other bits.
    makes_doubles_of_bits: bool,
}

impl<'a, 'db: 'a> Reader<'a, 'db> {
    fn new(db: &'db dyn Db, function: FunctionItem<'db>, body: &'a Body) -> Self {
        let places = Places { db, function, body };
        let text = function.text(db);
        Reader {
            db,
            function,
            body,
            places,
            makes_doubles_of_bits: ["as_double", "2double", "bit_cast"]
                .iter()
                .any(|name| text.contains(name)),
        }
    }

    fn collect(&self, kept: &mut Kept) {
        let body = self.body;
        for expr in (0..body.exprs.len() as u32).map(ExprId) {
            match &body.expr(expr).kind {
                ExprKind::Assign { place, value, .. } if !self.is_narrow(*place) => {
                    let held = self.value(*value, kept);
                    match self.own_root(*place) {
                        Some(own) => kept.by_variable.entry(own).or_default().extend(held),
                        None => kept.elsewhere.extend(held),
                    }
                }
                ExprKind::Call { callee, args, .. } => {
                    let held = self.kept_by_call(expr, *callee, args, kept);
                    kept.elsewhere.extend(held);
                }
                ExprKind::Construct { ty, args } => {
                    let held = self.kept_by_class(ty, args, kept);
                    kept.elsewhere.extend(held);
                }
                ExprKind::New(_) | ExprKind::Launch(_) => {
                    for operand in operands(&body.expr(expr).kind) {
                        let held = self.place(operand, kept);
                        kept.elsewhere.extend(held);
                    }
                }
                ExprKind::Unknown { mentions, .. } | ExprKind::Lambda { mentions, .. } => {
                    kept.elsewhere.extend(mentions.iter().map(|b| Some(*b)));
                }
                _ => {}
            }
        }
        for stmt in &body.stmts {
            match &stmt.kind {
                StmtKind::Decl(decls) => {
                    for decl in decls {
                        if let Some(init) = decl.init {
                            self.declared(decl.binding, init, kept);
                        }
                    }
                }
                StmtKind::RangeFor { binding, range, .. } => {
                    let held = self.place(*range, kept);
                    kept.by_variable.entry(*binding).or_default().extend(held);
                }
                StmtKind::Asm { mentions, .. } | StmtKind::Unknown { mentions, .. } => {
                    kept.elsewhere.extend(mentions.iter().map(|b| Some(*b)));
                }
                _ => {}
            }
        }
        // The program's own operators run without a call.
        if !hidden(self.db, self.function).is_empty() {
            let changed = class_changes(self.db, self.function);
            kept.elsewhere.extend(changed.iter().map(|b| Some(*b)));
        }
    }

    fn declared(&self, variable: BindingId, init: ExprId, kept: &mut Kept) {
        let binding = self.body.binding(variable);
        let ty = &binding.ty;
        let refers = ty.reference || ty.complex;
        if !refers && self.is_narrow_type(ty) {
            return;
        }
        let parts = match &self.body.expr(init).kind {
            ExprKind::InitList(parts) | ExprKind::Construct { args: parts, .. } => parts.clone(),
            _ => vec![init],
        };
        let mut held = self.value(init, kept);
        // A class that is made of something else may refer to it.
        let converts = ty.pointers == 0
            && ty.base != "auto"
            && !is_plain_type(&ty.base)
            && self.places.shape(init).is_none_or(|s| s.base != ty.base);
        if refers || converts {
            held.extend(parts.iter().flat_map(|part| self.place(*part, kept)));
        }
        let named = binding.name.chars().all(|c| c == '_' || c.is_alphanumeric());
        if binding.storage == Storage::Local && named {
            kept.by_variable.entry(variable).or_default().extend(held);
        } else {
            kept.elsewhere.extend(held);
        }
    }

    /// What a call may store the addresses of.
    fn kept_by_call(&self, call: ExprId, callee: ExprId, args: &[ExprId], kept: &Kept) -> Objects {
        match self.called(call) {
            Called::Known(library) => match library.memory {
                Memory::Atomic(_) | Memory::Stores => {
                    args.iter().skip(1).flat_map(|arg| self.value(*arg, kept)).collect()
                }
                Memory::Through { .. } => {
                    // What lies in the objects, not where they lie.
                    let objects: Objects = args.iter().flat_map(|arg| self.value(*arg, kept)).collect();
                    let inside = objects.into_iter().flatten();
                    inside
                        .filter_map(|b| kept.by_variable.get(&b))
                        .flatten()
                        .copied()
                        .collect()
                }
                _ => Objects::new(),
            },
            Called::Functions(all) => match all.iter().any(|f| hands(self.db, *f).on) {
                true => self.passed(callee, args, &all, kept),
                false => Objects::new(),
            },
            Called::Class(ty) => self.kept_by_class(&ty, args, kept),
            Called::Unseen => self.passed(callee, args, &[], kept),
        }
    }

    /// What making an object of a class may store the addresses of, the object itself left out.
    fn kept_by_class(&self, ty: &str, args: &[ExprId], kept: &Kept) -> Objects {
        match self.makes_alone(ty) {
            true => Objects::new(),
            false => args.iter().flat_map(|arg| self.place(*arg, kept)).collect(),
        }
    }

    /// Nothing but the object is made.
    fn makes_alone(&self, ty: &str) -> bool {
        is_plain_type(ty) || self.places.class_kind(ty, &[]) != Class::Opaque
    }

    /// The objects whose addresses a call gets.
    fn passed(&self, callee: ExprId, args: &[ExprId], all: &[FunctionItem<'db>], kept: &Kept) -> Objects {
        let mut found = Objects::new();
        for (index, arg) in args.iter().enumerate() {
            let by_value = !all.is_empty()
                && all.iter().all(|f| {
                    let parameters = parameters(self.db, *f);
                    parameters.get(index).is_some_and(|p| !p.ty.reference && !p.ty.complex)
                });
            found.extend(self.value(*arg, kept));
            // What is made of `{x}` may have a reference to `x`.
            if let ExprKind::InitList(items) = &self.body.expr(self.body.strip_parens(*arg)).kind {
                found.extend(items.iter().flat_map(|item| self.place(*item, kept)));
            }
            // Of who isn't seen it is not said that he keeps a built-in variable, which all pass to everybody.
            if !by_value {
                let object = self.place(*arg, kept);
                found.extend(object.into_iter().filter(|o| o.is_some() || !all.is_empty()));
            }
        }
        if let ExprKind::Field { base, arrow, .. } = &self.body.expr(self.body.strip_parens(callee)).kind {
            found.extend(if *arrow {
                self.value(*base, kept)
            } else {
                self.place(*base, kept)
            });
        }
        found
    }

    /// The objects whose addresses a value may hold.
    fn value(&self, e: ExprId, kept: &Kept) -> Objects {
        let body = self.body;
        let is_call = matches!(body.expr(e).kind, ExprKind::Call { .. });
        if !is_call && self.is_no_address(e) {
            return Objects::new();
        }
        let of_operands = || -> Objects {
            let inner = operands(&body.expr(e).kind);
            inner.into_iter().flat_map(|e| self.value(e, kept)).collect()
        };
        match &body.expr(e).kind {
            ExprKind::AddrOf(inner) => self.place(*inner, kept),
            ExprKind::Name(Name::Local(b)) => {
                let mut found = kept.by_variable.get(b).cloned().unwrap_or_default();
                if !body.binding(*b).ty.array.is_empty() {
                    found.insert(Some(*b));
                }
                found
            }
            ExprKind::Name(_) => Objects::new(),
            ExprKind::Field { .. } | ExprKind::Index { .. } | ExprKind::Deref(_) => {
                let mut found = of_operands();
                let objects = variables_of_place(self.db, self.function, body, e);
                for object in &objects {
                    found.extend(kept.by_variable.get(object).into_iter().flatten());
                }
                // An array becomes a pointer to its first element.
                if self.places.shape(e).is_none_or(|s| s.dims > 0) {
                    found.extend(self.place(e, kept));
                }
                found
            }
            ExprKind::Call { callee, args, .. } => match self.called(e) {
                Called::Known(_) => args.iter().flat_map(|arg| self.value(*arg, kept)).collect(),
                Called::Functions(all) => match all.iter().any(|f| hands(self.db, *f).back) {
                    true => self.passed(*callee, args, &all, kept),
                    false => Objects::new(),
                },
                Called::Class(_) => args.iter().flat_map(|arg| self.place(*arg, kept)).collect(),
                Called::Unseen => self.passed(*callee, args, &[], kept),
            },
            ExprKind::Construct { ty, args } if !is_plain_type(ty) => {
                args.iter().flat_map(|arg| self.place(*arg, kept)).collect()
            }
            ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } => {
                mentions.iter().map(|b| Some(*b)).collect()
            }
            _ => of_operands(),
        }
    }

    /// The objects of which a place may be the whole or a part.
    fn place(&self, e: ExprId, kept: &Kept) -> Objects {
        let body = self.body;
        match &body.expr(e).kind {
            ExprKind::Name(Name::Local(b)) => {
                let mut found = kept.by_variable.get(b).cloned().unwrap_or_default();
                found.insert(Some(*b));
                found
            }
            ExprKind::Name(Name::Builtin(_)) => Objects::from([None]),
            ExprKind::Paren(inner)
            | ExprKind::Comma(_, inner)
            | ExprKind::IncDec { place: inner, .. }
            | ExprKind::Field {
                base: inner,
                arrow: false,
                ..
            } => self.place(*inner, kept),
            ExprKind::Assign { place, value, .. } => {
                let mut found = self.place(*place, kept);
                found.extend(self.value(*value, kept));
                found
            }
            ExprKind::Field { base, .. } | ExprKind::Deref(base) => self.pointee(*base, kept),
            ExprKind::Index { base, .. } => {
                let mut found = self.pointee(*base, kept);
                if self.places.shape(*base).is_none_or(|s| s.dims > 0 || s.pointers == 0) {
                    found.extend(self.place(*base, kept));
                }
                found
            }
            // A reference may be made of what stands in it.
            ExprKind::InitList(items) => {
                let mut found = self.value(e, kept);
                found.extend(items.iter().flat_map(|item| self.place(*item, kept)));
                found
            }
            ExprKind::Conditional { then, otherwise, .. } => {
                let mut found = self.place(*then, kept);
                found.extend(self.place(*otherwise, kept));
                found
            }
            ExprKind::Cast { operand, .. } => {
                let mut found = self.place(*operand, kept);
                found.extend(self.value(*operand, kept));
                found
            }
            // An operator of a class may return a reference to its operand.
            ExprKind::Binary(..) | ExprKind::Unary(..) => {
                let all = all_in_expr(body, e).into_iter();
                let class = |b: &BindingId| {
                    let ty = &body.binding(*b).ty;
                    ty.pointers == 0 && !is_plain_type(&ty.base)
                };
                let mut found = self.value(e, kept);
                found.extend(all.filter_map(|e| match &body.expr(e).kind {
                    ExprKind::Name(Name::Local(b)) if class(b) => Some(Some(*b)),
                    _ => None,
                }));
                found
            }
            _ => self.value(e, kept),
        }
    }

    /// What a pointer, or an object that is used as one, may lead to.
    fn pointee(&self, pointer: ExprId, kept: &Kept) -> Objects {
        let mut found = self.value(pointer, kept);
        // A class has an operator for that.
        if self
            .places
            .shape(pointer)
            .is_some_and(|s| s.dims == 0 && s.pointers == 0)
        {
            found.extend(self.place(pointer, kept));
        }
        found
    }

    /// The function's own variable that is written where this place is.
    fn own_root(&self, place: ExprId) -> Option<BindingId> {
        match &self.body.expr(place).kind {
            ExprKind::Paren(inner) => self.own_root(*inner),
            ExprKind::Field {
                base,
                field,
                arrow: false,
            } => self.own_root(*base).filter(|_| !self.may_be_reference(field)),
            ExprKind::Index { base, .. } if self.places.shape(*base).is_some_and(|s| s.dims > 0) => {
                self.own_root(*base)
            }
            ExprKind::Name(Name::Local(b)) => {
                let variable = self.body.binding(*b);
                // A parameter that is declared as an array is a pointer.
                let own = match variable.storage {
                    Storage::Local => true,
                    Storage::Param => variable.ty.array.is_empty(),
                    _ => false,
                };
                (own && !variable.ty.reference && !variable.ty.complex).then_some(*b)
            }
            _ => None,
        }
    }

    /// Whether code in sight may declare a reference by this name, as a member of some class.
    fn may_be_reference(&self, field: &str) -> bool {
        included_files(self.db, self.function.file(self.db)).iter().any(|file| {
            let text = file.text(self.db);
            text.match_indices(field).any(|(at, _)| {
                let before = text.get(..at).unwrap_or("").trim_end();
                let after = text.get(at + field.len()..).unwrap_or("").trim_start();
                before.ends_with('&') && !before.ends_with("&&") && after.starts_with([';', ',', '{', '=', '['])
            })
        })
    }

    /// Whether an expression may store an address where others find it.
    fn hands_on(&self, e: ExprId) -> bool {
        match &self.body.expr(e).kind {
            ExprKind::Assign { place, value, .. } => {
                self.own_root(*place).is_none() && !self.is_narrow(*place) && !self.is_no_address(*value)
            }
            ExprKind::Call { args, .. } => match self.called(e) {
                Called::Known(library) => match library.memory {
                    Memory::Atomic(_) | Memory::Stores => !args.iter().skip(1).all(|arg| self.is_no_address(*arg)),
                    Memory::Through { .. } => !args.iter().all(|arg| self.leads_to_no_address(*arg)),
                    _ => false,
                },
                Called::Functions(all) => all.iter().any(|f| hands(self.db, *f).on),
                Called::Class(ty) => !self.makes_alone(&ty),
                Called::Unseen => true,
            },
            ExprKind::Construct { ty, .. } => !self.makes_alone(ty),
            ExprKind::New(_) | ExprKind::Launch(_) | ExprKind::Lambda { .. } | ExprKind::Unknown { .. } => true,
            _ => false,
        }
    }

    /// The function's head says that it returns a number that is too small for an address, or nothing.
    fn returns_no_address(&self) -> bool {
        let text = self.function.text(self.db);
        let head = self.function.signature(self.db).head_span.text(&text);
        let of_function = |word: &&str| {
            let plain = ["inline", "constexpr", "static", "const", "void"].contains(word);
            plain || word.starts_with("__") && word.ends_with("__")
        };
        let ty: Vec<&str> = words(head).filter(|word| !of_function(word)).collect();
        !head.contains(['*', '&'])
            && (ty.is_empty() && words(head).any(|w| w == "void") || self.is_narrow_name(&ty.join(" ")))
    }

    /// No address lies where the pointer leads, or it is no pointer.
    fn leads_to_no_address(&self, pointer: ExprId) -> bool {
        let narrow = |s: Shape| s.pointers + s.dims < 2 && self.is_narrow_name(&s.base);
        self.is_no_address(pointer) || self.places.shape(pointer).is_some_and(narrow)
    }

    /// The value is none that an address fits into, or isn't made of one.
    fn is_no_address(&self, e: ExprId) -> bool {
        let body = self.body;
        let all = |inner: &[ExprId]| inner.iter().all(|e| self.is_no_address(*e));
        match &body.expr(e).kind {
            ExprKind::Literal(literal) => *literal != Literal::Str,
            ExprKind::SizeOf | ExprKind::Logical { .. } | ExprKind::Unary(UnOp::Not, _) => true,
            ExprKind::Name(Name::Builtin(_)) => true,
            ExprKind::Name(Name::Other(name)) => {
                matches!(meaning_in(self.db, self.function, name), Meaning::Enumerator(_)) || self.is_narrow(e)
            }
            ExprKind::Field { base, .. } if matches!(body.expr(*base).kind, ExprKind::Name(Name::Builtin(_))) => true,
            ExprKind::Paren(inner) | ExprKind::Unary(_, inner) | ExprKind::Comma(_, inner) => {
                self.is_no_address(*inner)
            }
            ExprKind::Binary(BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge, ..) => true,
            ExprKind::Binary(_, a, b) => all(&[*a, *b]),
            ExprKind::Conditional { then, otherwise, .. } => all(&[*then, *otherwise]),
            ExprKind::Cast { ty, operand, .. } => self.is_narrow_name(ty) || self.is_no_address(*operand),
            ExprKind::Construct { ty, args } => self.is_narrow_name(ty) || is_plain_type(ty) && all(args),
            ExprKind::Call { args, .. } => match self.called(e) {
                Called::Known(library) => matches!(library.memory, Memory::Untouched) && all(args),
                Called::Functions(functions) => !functions.iter().any(|f| hands(self.db, *f).back),
                Called::Class(ty) => self.is_narrow_name(&ty) || is_plain_type(&ty) && all(args),
                Called::Unseen => false,
            },
            _ => self.is_narrow(e),
        }
    }

    /// The type of an expression has no room for an address.
    fn is_narrow(&self, e: ExprId) -> bool {
        let narrow = |s: Shape| s.pointers == 0 && s.dims == 0 && self.is_narrow_name(&s.base);
        self.places.shape(e).is_some_and(narrow)
    }

    fn is_narrow_type(&self, ty: &Type) -> bool {
        ty.pointers == 0 && !ty.complex && self.is_narrow_name(&ty.base)
    }

    fn is_narrow_name(&self, base: &str) -> bool {
        let base = self.places.alias(base.trim().trim_start_matches("const ").trim());
        if base.is_empty() || base.contains(['*', '&']) {
            return false;
        }
        let small = [
            "char",
            "signed char",
            "unsigned char",
            "int8_t",
            "uint8_t",
            "half",
            "__half",
        ];
        let narrow = match self.places.class_of(&base, 0) {
            MemoryClass::Bool | MemoryClass::Short | MemoryClass::Int | MemoryClass::Float => true,
            // An address becomes one by its bits alone.
            MemoryClass::Double => !self.makes_doubles_of_bits,
            _ => false,
        };
        narrow || small.contains(&base.as_str()) || self.places.is_enumeration(&base)
    }

    fn called(&self, call: ExprId) -> Called<'db> {
        let ExprKind::Call {
            callee: target,
            name,
            args,
            ..
        } = &self.body.expr(call).kind
        else {
            return Called::Unseen;
        };
        match callee(self.db, self.function, self.body, *target, name.as_deref(), args) {
            Callee::Known(library) => Called::Known(library),
            // The library's function may be meant, which does something else.
            Callee::Functions(_, Some(library)) if !matches!(library.memory, Memory::Untouched) => Called::Unseen,
            Callee::Functions(all, _) => Called::Functions(all),
            Callee::Type(ty) => Called::Class(ty),
            Callee::Unknown => match self.members(*target) {
                all if all.is_empty() => Called::Unseen,
                all => Called::Functions(all),
            },
        }
    }

    /// The member functions that are called of an object of a class in sight, which has no bases; none if that isn't certain.
    fn members(&self, callee: ExprId) -> Vec<FunctionItem<'db>> {
        let ExprKind::Field { base, field, arrow } = &self.body.expr(self.body.strip_parens(callee)).kind else {
            return Vec::new();
        };
        let shape = self.places.shape(*base);
        let Some(shape) = shape.filter(|s| s.dims == 0 && s.pointers == u32::from(*arrow)) else {
            return Vec::new();
        };
        let class = self.places.alias(&shape.base);
        let class = unqualified(class.split('<').next().unwrap_or_default().trim());
        let files = included_files(self.db, self.function.file(self.db)).iter();
        let mut types = files
            .flat_map(|f| &items(self.db, *f).types)
            .filter(|t| t.name == class);
        let plain = types.next().is_some_and(|t| t.bases.is_empty()) && types.next().is_none();
        match plain {
            true => functions_named(self.db, self.function.file(self.db), &format!("{class}::{field}")),
            false => Vec::new(),
        }
    }
}
