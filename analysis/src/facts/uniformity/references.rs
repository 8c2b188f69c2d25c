//! Local variables that are changed where no assignment shows it: by what may get a reference to them. One rule for all who follow
//! variables.

use std::collections::{HashMap, HashSet};

use super::memory::{Class, Places};
use super::objects::objects;
use super::operators::may_change;
use crate::base::db::{Db, SourceFile};
use crate::base::words::words;
use crate::facts::callee::{Callee, by_name, callee};
use crate::facts::hidden::{hidden, may_run_unseen, operator_use};
use crate::facts::runtime_calls::is_collector;
use crate::hir::flow::operands;
use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, items};
use crate::hir::names::unqualified;
use crate::hir::reference_names::{field_leads, may_be_a_reference, may_hold_a_reference};
use crate::hir::resolve::{Meaning, functions_named, meaning_in};
use crate::hir::special_members::Constructors;
use crate::hir::{BindingId, ExprId, ExprKind, Name, StmtKind, Type, body, parameters};

/// Whether a function may change an argument that it takes by a parameter of this type: a reference, also one to `const` where it casts
/// that away.
pub(super) fn changes_through(db: &dyn Db, function: FunctionItem<'_>, ty: &Type) -> bool {
    ty.complex || ty.reference && (!(ty.const_base && ty.pointers == 0) || *casts_away(db, function))
}

/// Calls that are followed to find out what becomes of a reference.
const MAX_CALLS: usize = 4;

/// A function may do more with a parameter that it has by reference to `const` than read its value.
#[salsa::tracked]
fn casts_away<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    hands_out(db, function, MAX_CALLS)
}

/// A function makes a reference or a pointer of a parameter that it has by reference, takes its address, makes an object of it, or
/// hands it to a function of which the same holds, or that isn't known.
fn hands_out(db: &dyn Db, function: FunctionItem<'_>, calls: usize) -> bool {
    if !parameters(db, function).iter().any(|p| p.ty.reference) {
        return false;
    }
    let body = body(db, function);
    let reference = |b: &BindingId| body.binding(*b).ty.reference;
    let places = Places {
        db,
        function,
        body: &body,
    };
    let whole = |e: ExprId| {
        let inner = body.strip_parens(e);
        matches!(&body.expr(inner).kind, ExprKind::Name(Name::Local(b)) if reference(b))
    };
    // The whole of it, or a part.
    let named = |e: ExprId| {
        let part = |e: ExprId| match &body.expr(body.strip_parens(e)).kind {
            ExprKind::Field { base, arrow: false, .. } => Some(*base),
            ExprKind::Index { base, .. } if places.shape(*base).is_some_and(|s| s.dims > 0) => Some(*base),
            _ => None,
        };
        whole(std::iter::successors(Some(e), |e| part(*e)).last().unwrap_or(e))
    };
    let parts = |e: ExprId| mentions_apart_from_elements(places, e).iter().any(reference);
    // `const int* at = p.values;`, a member that is an array.
    let becomes_pointer = |value: ExprId| {
        let mut todo = vec![value];
        while let Some(e) = todo.pop() {
            match &body.expr(e).kind {
                ExprKind::Paren(inner) | ExprKind::Comma(_, inner) => todo.push(*inner),
                ExprKind::Binary(_, a, b) => todo.extend([*a, *b]),
                ExprKind::Conditional { then, otherwise, .. } => todo.extend([*then, *otherwise]),
                ExprKind::Field { .. } | ExprKind::Index { .. }
                    if named(e) && places.shape(e).is_some_and(|s| s.dims > 0) =>
                {
                    return true;
                }
                _ => {}
            }
        }
        false
    };
    let goes_on = body.stmts.iter().any(|stmt| match &stmt.kind {
        StmtKind::Decl(decls) => decls.iter().filter_map(|d| d.init).any(becomes_pointer),
        StmtKind::Return(Some(value)) => becomes_pointer(*value),
        _ => false,
    });
    goes_on
        || body.exprs.iter().any(|e| match &e.kind {
            ExprKind::Assign { value, .. } if becomes_pointer(*value) => true,
            ExprKind::Cast { ty, operand, .. } if ty.contains(['&', '*']) => parts(*operand),
            ExprKind::AddrOf(place) => parts(*place),
            ExprKind::InitList(parts) => parts.iter().any(|part| named(*part)),
            ExprKind::Call {
                callee: target,
                name,
                args,
                ..
            } if args.iter().any(|arg| named(*arg)) => {
                match callee(db, function, &body, *target, name.as_deref(), args) {
                    Callee::Known(_) => false,
                    Callee::Functions(all, _) => all.iter().any(|f| {
                        let by_reference = |(at, arg): (usize, &ExprId)| {
                            named(*arg) && parameters(db, *f).get(at).is_none_or(|p| p.ty.reference)
                        };
                        args.iter().enumerate().any(by_reference) && (calls == 0 || hands_out(db, *f, calls - 1))
                    }),
                    Callee::Type(ty) => takes_in(db, function.file(db), &ty),
                    Callee::Unknown => args.iter().any(|arg| whole(*arg)),
                }
            }
            _ => false,
        })
}

/// Local variables that occur in an expression, but for what only says which element of other memory is meant: `p.values[i]` is no part
/// of `p` where `values` is a pointer.
fn mentions_apart_from_elements(places: Places<'_>, e: ExprId) -> Vec<BindingId> {
    let body = places.body;
    let elsewhere = |base: ExprId| matches!(places.shape(base), Some(shape) if shape.dims == 0 && shape.pointers > 0);
    let mut found = Vec::new();
    let mut stack = vec![e];
    while let Some(e) = stack.pop() {
        match &body.expr(e).kind {
            ExprKind::Name(Name::Local(b)) => found.push(*b),
            ExprKind::Index { base, .. } if elsewhere(*base) => {}
            kind => stack.extend(operands(kind)),
        }
    }
    found
}

/// Whether an object of a class in sight may keep a reference to what it is made of, or change that while it is made.
pub(super) fn takes_in(db: &dyn Db, file: SourceFile, ty: &str) -> bool {
    let taking = taking_classes(db, file);
    may_hold_a_reference(db, file, ty) || words(ty).any(|word| word == "reference_wrapper" || taking.contains(word))
}

/// The classes whose objects may do so, and the names of types that stand for them.
#[salsa::tracked(returns(ref))]
fn taking_classes(db: &dyn Db, file: SourceFile) -> HashSet<String> {
    let files = included_files(db, file);
    let mut found: HashSet<String> = HashSet::new();
    let types = || {
        files
            .iter()
            .flat_map(|file| &items(db, *file).types)
            .filter(|t| !t.is_enum)
    };
    let aliases = || files.iter().flat_map(|file| &items(db, *file).aliases);
    let constructors: HashMap<&str, Vec<FunctionItem<'_>>> = types()
        .filter(|t| t.constructors != Constructors::None)
        .map(|t| {
            let all = functions_named(db, file, &format!("{0}::{0}", t.name));
            (t.name.as_str(), all.to_vec())
        })
        .collect();
    loop {
        let before = found.len();
        for item in types() {
            let name = item.name.as_str();
            let among = |ty: &str| words(ty).any(|word| found.contains(word));
            let inside = |ty: &str| may_hold_a_reference(db, file, ty) || among(ty);
            let field =
                |field: &(String, String)| field_leads(db, file, field) || !field.1.contains('*') && among(&field.0);
            let by_parameter = |f: &FunctionItem<'_>| {
                parameters(db, *f).iter().any(|p| {
                    let own = p.ty.reference && unqualified(&p.ty.base) == name;
                    !own && (changes_through(db, *f, &p.ty) || p.ty.pointers == 0 && inside(&p.ty.base))
                })
            };
            let made = constructors.get(name).is_some_and(|all| {
                all.is_empty() && item.constructors == Constructors::Other || all.iter().any(by_parameter)
            });
            if made || item.fields.iter().any(field) || inside(&item.bases) {
                found.insert(name.to_owned());
            }
        }
        for (name, stands_for) in aliases() {
            if words(stands_for).any(|word| found.contains(word)) {
                found.insert(name.clone());
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// What a function returns may lead to what its arguments refer to: a reference, a pointer, an object that holds one.
fn leads_back(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    let text = function.text(db);
    let signature = function.signature(db);
    let head = signature.head_span.text(&text);
    let behind = text.get(signature.params_span.end as usize..).unwrap_or("");
    let behind = behind
        .get(..behind.find(['{', ';']).unwrap_or(behind.len()))
        .unwrap_or("");
    let behind = behind.split_once("->").map_or("", |(_, ty)| ty);
    may_be_a_reference(db, function.file(db), head)
        || head.contains('*')
        || behind.contains(['&', '*'])
        || words(head)
            .chain(words(behind))
            .any(|word| word == "decltype" || takes_in(db, function.file(db), word))
}

/// The name of a class without what it is a template of and where it stands.
fn class_name(ty: &str) -> &str {
    unqualified(ty.split('<').next().unwrap_or(ty).trim())
}

/// The template parameters with defaults of a function, and of the classes in its qualified name.
fn defaults_of(db: &dyn Db, file: SourceFile, function: FunctionItem<'_>) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(parameters) = function.signature(db).template_params {
        let text = function.text(db);
        found.extend(
            Some(parameters.text(&text))
                .filter(|list| list.contains('='))
                .map(str::to_owned),
        );
    }
    let mut scopes: Vec<&str> = function.name(db).split("::").collect();
    scopes.pop();
    if !scopes.is_empty() {
        let types = included_files(db, file).iter().flat_map(|file| &items(db, *file).types);
        let around = types.filter(|ty| !ty.template_defaults.is_empty() && scopes.contains(&ty.name.as_str()));
        found.extend(around.map(|ty| ty.template_defaults.clone()));
    }
    found
}

/// Whether a parameter by value has a type that a template parameter tells, of the function or of what is around it.
fn takes_what_it_is_given(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    let given = &function.signature(db).scope_names;
    parameters(db, function)
        .iter()
        .any(|p| p.ty.is_value() && words(&p.ty.base).any(|word| given.iter().any(|name| name == word)))
}

/// Follows what expressions may refer to.
struct Reader<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    places: Places<'a>,
}

impl<'a, 'db: 'a> Reader<'a, 'db> {
    /// The local variables that a place may be a part of, also by a function that hands on a reference to its argument.
    fn denoted(&self, e: ExprId) -> Vec<BindingId> {
        let body = self.places.body;
        let mut found = objects(self.places, e);
        let mut stack = vec![e];
        while let Some(e) = stack.pop() {
            match &body.expr(e).kind {
                ExprKind::Paren(e)
                | ExprKind::Comma(_, e)
                | ExprKind::Cast { operand: e, .. }
                | ExprKind::AddrOf(e)
                | ExprKind::Deref(e)
                | ExprKind::Field { base: e, .. }
                | ExprKind::Index { base: e, .. } => stack.push(*e),
                ExprKind::Conditional { then, otherwise, .. } => stack.extend([*then, *otherwise]),
                ExprKind::InitList(parts) => {
                    found.extend(parts.iter().flat_map(|part| objects(self.places, *part)));
                    stack.extend(parts);
                }
                ExprKind::Call {
                    callee: target,
                    name,
                    args,
                    ..
                } => {
                    let name = name.as_deref();
                    // `max(x, y)` of the standard library hands one of them on.
                    let back: Vec<ExprId> = match callee(self.db, self.function, body, *target, name, args) {
                        Callee::Functions(_, Some(_)) => args.clone(),
                        Callee::Functions(all, None) => {
                            let all: Vec<_> = all.into_iter().filter(|f| leads_back(self.db, *f)).collect();
                            let refers = |index: usize| all.iter().any(|f| self.refers(*f, index));
                            let args = args.iter().enumerate().filter(|(index, _)| refers(*index));
                            args.map(|(_, arg)| *arg).collect()
                        }
                        Callee::Known(_) if name.is_some_and(|n| n.contains("std::")) => args.clone(),
                        _ => Vec::new(),
                    };
                    found.extend(back.iter().flat_map(|arg| objects(self.places, *arg)));
                    stack.extend(back);
                }
                _ => {}
            }
        }
        found
    }

    /// A parameter refers to its argument.
    fn refers(&self, f: FunctionItem<'db>, index: usize) -> bool {
        let parameter = parameters(self.db, f).get(index);
        parameter.is_none_or(|p| p.ty.reference || p.ty.complex || p.ty.pointers == 0 && self.takes(&p.ty.base))
    }

    /// The value of an object of a class or an enumeration; a number where that isn't known.
    fn class(&self, e: ExprId) -> bool {
        let shape = self.places.shape(self.places.body.strip_parens(e));
        let users = |ty: &str| self.places.class_kind(ty, &[]) != Class::Plain || self.places.is_enumeration(ty);
        shape.is_some_and(|s| s.pointers == 0 && s.dims == 0 && users(&s.base))
    }

    /// The same, or it isn't known what it is.
    fn may_be_class(&self, e: ExprId) -> bool {
        let inner = self.places.body.strip_parens(e);
        let named = matches!(
            &self.places.body.expr(inner).kind,
            ExprKind::Name(Name::Other(_)) | ExprKind::Call { .. } | ExprKind::Field { .. } | ExprKind::Unknown { .. }
        );
        self.class(e) || named && self.places.shape(inner).is_none()
    }

    /// An object of a class, also one that is made here: `In()`.
    fn object(&self, e: ExprId) -> bool {
        let inner = self.places.body.strip_parens(e);
        let made = match &self.places.body.expr(inner).kind {
            ExprKind::Call { name: Some(name), .. } => {
                matches!(meaning_in(self.db, self.function, name), Meaning::Type)
            }
            _ => false,
        };
        made || self.class(e)
    }

    fn takes(&self, ty: &str) -> bool {
        let own = &self.places.body.own_types;
        takes_in(self.db, self.function.file(self.db), ty) || words(ty).any(|word| own.get(word) == Some(&true))
    }

    /// An argument becomes an object of a class that may keep a reference to it.
    fn is_converted(&self, arg: ExprId, ty: &Type) -> bool {
        let own = || {
            let shape = self.places.shape(self.places.body.strip_parens(arg));
            shape.is_some_and(|s| s.pointers == 0 && class_name(&s.base) == class_name(&ty.base))
        };
        ty.pointers == 0 && ty.array.is_empty() && !ty.complex && self.takes(&ty.base) && !own()
    }

    /// The variables that a call of one of these functions may change, by what their parameters are.
    fn of_call(&self, candidates: &[FunctionItem<'db>], args: &[ExprId], out: &mut HashSet<BindingId>) {
        for f in candidates {
            let parameters = parameters(self.db, *f);
            for (i, arg) in args.iter().enumerate() {
                let may = parameters
                    .get(i)
                    .is_none_or(|p| changes_through(self.db, *f, &p.ty) || self.is_converted(*arg, &p.ty));
                if may {
                    out.extend(self.denoted(*arg));
                }
            }
        }
    }

    /// A type that is given as a template's argument may take a reference: `put<View>(x)`. So may one that a template of the function, or
    /// of a class that it is called by, has for a default, and what the calling function's own template is given.
    fn named_in_template(&self, target: ExprId, all: &[FunctionItem<'db>]) -> bool {
        let (db, file) = (self.db, self.function.file(self.db));
        let text = self.function.text(db);
        let written = self.places.body.expr(target).span.text(&text);
        let given = written.split_once('<').map_or("", |(_, given)| given);
        let takes = |types: &str| may_be_a_reference(db, file, types) || words(types).any(|word| self.takes(word));
        let own = |word: &str| self.function.signature(db).scope_names.iter().any(|name| name == word);
        let may_be_given = words(given).any(own) && all.iter().any(|f| takes_what_it_is_given(db, *f));
        takes(given)
            || may_be_given
            || all
                .iter()
                .any(|f| defaults_of(db, file, *f).iter().any(|defaults| takes(defaults)))
    }

    /// `children.launch`: a collector of our runtime copies the values that it gets.
    fn is_collected(&self, target: ExprId) -> bool {
        let body = self.places.body;
        let ExprKind::Field { base, field, .. } = &body.expr(body.strip_parens(target)).kind else {
            return false;
        };
        let ExprKind::Name(Name::Local(object)) = body.expr(body.strip_parens(*base)).kind else {
            return false;
        };
        matches!(field.as_str(), "launch" | "launch_at_once") && body.binding(object).ty.base.starts_with("gridfuse::")
    }

    fn of_expr(&self, e: ExprId, out: &mut HashSet<BindingId>) {
        let (db, body) = (self.db, self.places.body);
        let changed = |e: ExprId, out: &mut HashSet<BindingId>| out.extend(self.denoted(e));
        match &body.expr(e).kind {
            ExprKind::Deref(e) | ExprKind::Index { base: e, .. } if self.class(*e) => changed(*e, out),
            ExprKind::Field { base, arrow: true, .. } if self.class(*base) => changed(*base, out),
            ExprKind::Call {
                callee: target,
                name,
                args,
                ..
            } => {
                if self.is_collected(*target) {
                    return;
                }
                let inner = body.strip_parens(*target);
                if matches!(body.expr(inner).kind, ExprKind::Name(Name::Local(_))) && self.class(inner) {
                    changed(inner, out);
                }
                for arg in args {
                    if let ExprKind::InitList(parts) = &body.expr(*arg).kind {
                        parts.iter().for_each(|part| changed(*part, out));
                    }
                }
                match callee(db, self.function, body, *target, name.as_deref(), args) {
                    Callee::Functions(all, _) => {
                        self.of_call(&all, args, out);
                        if self.named_in_template(*target, &all) {
                            args.iter().for_each(|arg| changed(*arg, out));
                        }
                    }
                    Callee::Type(ty) if self.takes(&ty) => args.iter().for_each(|arg| changed(*arg, out)),
                    _ => {}
                }
            }
            ExprKind::Launch(launch) => {
                let kernel = launch.kernel.as_deref();
                if let Some(Callee::Functions(all, _)) =
                    kernel.map(|name| by_name(db, self.function, name, &launch.args))
                {
                    self.of_call(&all, &launch.args, out);
                }
            }
            ExprKind::Construct { ty, args } if !is_collector(ty) && self.takes(ty) => {
                args.iter().for_each(|arg| changed(*arg, out))
            }
            // The number of elements is a value: `new T[n]`.
            ExprKind::New(args) => {
                let text = self.function.text(db);
                let is_number = |arg: &ExprId| {
                    let behind = text.get(body.expr(*arg).span.end as usize..);
                    behind.is_some_and(|rest| rest.trim_start().starts_with(']'))
                };
                { args.iter() }
                    .filter(|arg| !is_number(arg))
                    .for_each(|arg| changed(*arg, out));
            }
            ExprKind::Cast { ty, operand, .. } if ty.contains('&') || self.takes(ty) => changed(*operand, out),
            // The address of what a function hands on; that of a variable is seen where variables are followed.
            ExprKind::AddrOf(place) => {
                let own = objects(self.places, *place);
                out.extend(self.denoted(*place).into_iter().filter(|b| !own.contains(b)));
            }
            _ => {}
        }
        self.of_operator(e, out);
    }

    /// A user's operator changes operands that it takes by reference.
    fn of_operator(&self, e: ExprId, out: &mut HashSet<BindingId>) {
        let body = self.places.body;
        let Some((symbol, mut operands)) = operator_use(body, e) else {
            return;
        };
        let (object, others) = may_change(self.db, self.function.file(self.db), symbol);
        if !object && !others {
            return;
        }
        let assigns = match &body.expr(e).kind {
            ExprKind::Assign { value, .. } => {
                operands.push(*value);
                true
            }
            ExprKind::Index { index, .. } => {
                operands.push(*index);
                true
            }
            ExprKind::IncDec { .. } | ExprKind::Deref(_) | ExprKind::AddrOf(_) | ExprKind::Field { .. } => true,
            ExprKind::Call { .. } => return,
            _ => false,
        };
        let theirs = match assigns {
            true => operands.first().is_some_and(|e| self.object(*e)),
            false => operands.iter().any(|e| self.may_be_class(*e)),
        };
        if !theirs {
            return;
        }
        // `b == a` may be asked as `a == b`.
        let either = matches!(symbol, "==" | "!=");
        for (index, operand) in operands.into_iter().enumerate() {
            let first = index == 0;
            // What an assignment writes is seen where variables are followed.
            let may = if first { object && !assigns } else { others };
            if may || either {
                out.extend(self.denoted(operand));
            }
        }
    }
}

/// The local variables that something may change which no assignment shows: a function or a user's operator that takes them by
/// reference, an operator or a member array of their own class, a class that keeps a reference to them, a reference from which `const`
/// is cast away.
#[salsa::tracked(returns(ref))]
pub fn class_changes<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> HashSet<BindingId> {
    let body = &*body(db, function);
    let places = Places { db, function, body };
    let reader = Reader { db, function, places };
    let mut out = HashSet::new();
    let changed = |e: ExprId, out: &mut HashSet<BindingId>| out.extend(reader.denoted(e));
    // A member array that becomes a pointer.
    let decays = |e: ExprId| {
        let inner = body.strip_parens(e);
        let member = matches!(
            body.expr(inner).kind,
            ExprKind::Index { .. } | ExprKind::Field { arrow: false, .. }
        );
        member && places.shape(inner).is_some_and(|s| s.dims > 0)
    };
    for (index, expr) in body.exprs.iter().enumerate() {
        reader.of_expr(ExprId(index as u32), &mut out);
        let element = |e: ExprId| matches!(&expr.kind, ExprKind::Index { base, .. } if *base == e);
        for operand in operands(&expr.kind) {
            if !element(operand) && !matches!(expr.kind, ExprKind::Paren(_)) && decays(operand) {
                changed(operand, &mut out);
            }
        }
    }
    // What runs without being seen may change any object.
    if hidden(db, function).iter().any(|hidden| hidden.anywhere) {
        let objects = (0..).map(BindingId).zip(&body.bindings);
        let objects = objects.filter(|(_, b)| b.ty.pointers == 0 && may_run_unseen(db, function, &b.ty.base));
        out.extend(objects.map(|(id, _)| id));
    }
    let mut constant: Vec<(BindingId, Vec<BindingId>)> = Vec::new();
    for stmt in &body.stmts {
        let StmtKind::Decl(decls) = &stmt.kind else { continue };
        for decl in decls {
            let Some(init) = decl.init else { continue };
            let ty = &body.binding(decl.binding).ty;
            // Those of our runtime copy what they are made of.
            let ours = is_collector(&ty.base);
            if decays(init) {
                changed(init, &mut out);
            }
            // `int& r{x}`, `int& r(x)`
            let parts = match &body.expr(init).kind {
                ExprKind::InitList(parts) | ExprKind::Construct { args: parts, .. } => parts.clone(),
                _ => vec![init],
            };
            if ty.reference && ty.const_base && ty.pointers == 0 {
                if reader.is_converted(init, ty) {
                    parts.iter().for_each(|part| changed(*part, &mut out));
                }
                constant.push((
                    decl.binding,
                    parts.iter().flat_map(|part| reader.denoted(*part)).collect(),
                ));
            } else if (ty.reference || ty.complex) && !ours {
                parts.iter().for_each(|part| changed(*part, &mut out));
            }
            // A class may keep a reference to what it is made of.
            let opaque = ty.base != "auto" && places.class_kind(&ty.base, &[]) == Class::Opaque;
            let keeps = ty.pointers == 0 && !ours && (opaque || reader.takes(&ty.base));
            let mut parts = vec![init];
            while let Some(e) = parts.pop() {
                match &body.expr(e).kind {
                    ExprKind::InitList(inner) | ExprKind::Construct { args: inner, .. } if keeps => parts.extend(inner),
                    // A copy of an object of that class.
                    _ if e == init && reader.class(e) => {}
                    _ if keeps => changed(e, &mut out),
                    _ => {}
                }
            }
        }
    }
    // What a reference to `const` refers to changes with it.
    loop {
        let before = out.len();
        for (reference, to) in &constant {
            if out.contains(reference) {
                out.extend(to);
            }
        }
        if out.len() == before {
            return out;
        }
    }
}
