//! Whether an expression keeps its value over the iterations of a loop, and a parameter its argument.

use std::collections::HashSet;

use super::references::class_changes;
use crate::base::db::Db;
use crate::facts::callee::library_called;
use crate::facts::closures::copies_argument;
use crate::facts::named::{StandsFor, stands_for};
use crate::facts::runtime_calls::is_collector;
use crate::hir::flow::operands;
use crate::hir::items::FunctionItem;
use crate::hir::library::{Library, Memory, vector_fields};
use crate::hir::walk::parts;
use crate::hir::{BindingId, Body, ExprId, ExprKind, Name, StmtId, StmtKind, Storage};

/// What a library function does by its name, where that isn't the name of something else.
type Known<'a> = &'a dyn Fn(&str) -> Option<Library>;

/// Whether `expr` may evaluate differently in different iterations of `loop_stmt` for one thread. Conservative: `true`
/// unless everything that it reads certainly stays the same.
pub fn changes_around(db: &dyn Db, function: FunctionItem<'_>, body: &Body, expr: ExprId, loop_stmt: StmtId) -> bool {
    let known = |name: &str| library_called(db, function, name);
    let Some(region) = Region::of_loop(body, loop_stmt) else {
        return true;
    };
    let exposed = exposed(db, function, body, &known);
    let writes = whole_body(body).writes_memory(body, &known);
    let assigned = region.assigned(body);
    let calls_unknown = region.exprs.iter().any(|e| unknown_call(body, *e, &known));
    let mut seen: HashSet<ExprId> = HashSet::new();
    let mut stack = vec![expr];
    while let Some(e) = stack.pop() {
        if !seen.insert(e) {
            continue;
        }
        match &body.expr(e).kind {
            ExprKind::Name(Name::Local(b)) => {
                let binding = body.binding(*b);
                let plain = matches!(binding.storage, Storage::Local | Storage::Param);
                if binding.ty.volatile || binding.ty.complex || assigned.contains(b) || exposed.contains(b) {
                    return true;
                }
                if binding.ty.reference || !plain {
                    // Memory: what it refers to may be written.
                    if writes {
                        return true;
                    }
                }
                match region.declared(body, *b) {
                    Declared::Outside => {}
                    Declared::With(init) => stack.push(init),
                    Declared::Unknown => return true,
                }
            }
            ExprKind::Name(Name::Other(name)) => {
                // A variable may have other names, too.
                let changed = || writes && stands_for(db, function, name) != StandsFor::Value;
                if calls_unknown || names_written(body, name) || changed() {
                    return true;
                }
            }
            ExprKind::Index { base, .. } | ExprKind::Deref(base) | ExprKind::Field { base, arrow: true, .. } => {
                if writes && !constant_pointer(body, *base) && !local_array(body, *base) {
                    return true;
                }
                stack.extend(operands(&body.expr(e).kind));
            }
            ExprKind::Call { name, args, .. } => {
                let name = name.as_deref().unwrap_or("");
                let pure = known(name).is_some_and(|l| l.is_pure() || l.memory == Memory::ReadOnly);
                if !pure && !plain_type(name) {
                    return true;
                }
                stack.extend(args);
            }
            ExprKind::Construct { ty, args } => {
                if !plain_type(ty) && !ty.contains('*') {
                    return true;
                }
                stack.extend(args);
            }
            ExprKind::Cast { ty, operand, .. } => {
                if ty.contains('&') || ty.contains("volatile") {
                    return true;
                }
                stack.push(*operand);
            }
            ExprKind::Assign { .. }
            | ExprKind::IncDec { .. }
            | ExprKind::New(_)
            | ExprKind::Delete(_)
            | ExprKind::Launch(_)
            | ExprKind::Lambda { .. }
            | ExprKind::Unknown { .. } => return true,
            kind => stack.extend(operands(kind)),
        }
    }
    false
}

/// Whether a parameter keeps the value of its argument throughout: it's never assigned, its address isn't taken, and
/// nothing (a reference, a lambda, a function that may take it by reference) could change it.
pub fn immutable_parameter(db: &dyn Db, function: FunctionItem<'_>, body: &Body, binding: BindingId) -> bool {
    if !body.params.contains(&binding) {
        return false;
    }
    let ty = &body.binding(binding).ty;
    if ty.reference || ty.complex || ty.volatile {
        return false;
    }
    let assigned = |kind: &ExprKind| match kind {
        ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => objects(body, *place).contains(&binding),
        _ => false,
    };
    !body.exprs.iter().any(|e| assigned(&e.kind))
        && !exposed(db, function, body, &|name| library_called(db, function, name)).contains(&binding)
}

pub(super) fn plain_type(name: &str) -> bool {
    let name = name.trim();
    vector_fields(name).is_some()
        || matches!(
            name,
            "int"
                | "unsigned"
                | "unsigned int"
                | "float"
                | "double"
                | "long"
                | "short"
                | "bool"
                | "char"
                | "size_t"
                | "long long"
                | "unsigned long long"
                | "unsigned long"
        )
        || (name.ends_with("_t") && (name.starts_with("int") || name.starts_with("uint")))
}

fn unknown_call(body: &Body, e: ExprId, known: Known<'_>) -> bool {
    match &body.expr(e).kind {
        ExprKind::Call { name, .. } => {
            let name = name.as_deref().unwrap_or("");
            known(name).is_none() && !plain_type(name)
        }
        ExprKind::Unknown { .. } => true,
        _ => false,
    }
}

/// Local variables of which `e`, as an lvalue, may be a part. An element reached through a pointer isn't.
fn objects(body: &Body, e: ExprId) -> Vec<BindingId> {
    let mut found = Vec::new();
    let mut stack = vec![e];
    while let Some(e) = stack.pop() {
        match &body.expr(e).kind {
            ExprKind::Name(Name::Local(b)) => found.push(*b),
            ExprKind::Paren(e)
            | ExprKind::Comma(_, e)
            | ExprKind::Cast { operand: e, .. }
            | ExprKind::Assign { place: e, .. }
            | ExprKind::IncDec { place: e, .. }
            | ExprKind::Field {
                base: e, arrow: false, ..
            } => stack.push(*e),
            ExprKind::Conditional { then, otherwise, .. } => stack.extend([*then, *otherwise]),
            ExprKind::Index { base, .. } => {
                let pointer = matches!(&body.expr(body.strip_parens(*base)).kind,
                    ExprKind::Name(Name::Local(b)) if body.binding(*b).ty.pointers > 0 && body.binding(*b).ty.array.is_empty());
                if !pointer {
                    stack.push(*base);
                }
            }
            _ => {}
        }
    }
    found
}

/// Local variables that may be changed by something that doesn't name them.
fn exposed(db: &dyn Db, function: FunctionItem<'_>, body: &Body, known: Known<'_>) -> HashSet<BindingId> {
    let mut out = class_changes(db, function).clone();
    for (i, expr) in body.exprs.iter().enumerate() {
        match &expr.kind {
            ExprKind::AddrOf(e) => out.extend(objects(body, *e)),
            ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } => out.extend(mentions),
            ExprKind::Cast { ty, operand, .. } if ty.contains('&') => out.extend(objects(body, *operand)),
            ExprKind::Call { callee, args, .. } => {
                if let ExprKind::Field { base, .. } = &body.expr(body.strip_parens(*callee)).kind {
                    out.extend(objects(body, *base));
                }
                if unknown_call(body, ExprId(i as u32), known) {
                    // What is declared `const` can't be bound to a reference that changes it.
                    let copied = |index: usize| copies_argument(db, function, body, *callee, index);
                    let bound = args.iter().enumerate().filter(|(index, _)| !copied(*index));
                    let all = bound.flat_map(|(_, a)| objects(body, *a));
                    out.extend(all.filter(|b| !constant(body, *b)));
                }
            }
            ExprKind::Construct { ty, args } if !plain_type(ty) && !is_collector(ty) => {
                out.extend(
                    args.iter()
                        .flat_map(|a| objects(body, *a))
                        .filter(|b| !constant(body, *b)),
                );
            }
            ExprKind::New(args) => out.extend(args.iter().flat_map(|a| objects(body, *a))),
            _ => {}
        }
    }
    for stmt in &body.stmts {
        match &stmt.kind {
            StmtKind::Asm { mentions, .. } | StmtKind::Unknown { mentions, .. } => out.extend(mentions),
            StmtKind::RangeFor { range, .. } => out.extend(objects(body, *range)),
            StmtKind::Decl(decls) => {
                for d in decls {
                    let ty = &body.binding(d.binding).ty;
                    if let Some(init) = d.init
                        && (ty.reference || ty.complex && !is_collector(&ty.base))
                        && !(ty.const_base && ty.pointers == 0 && !ty.complex)
                    {
                        out.extend(objects(body, init));
                    }
                }
            }
            _ => {}
        }
    }
    // An array handed on as a pointer.
    for expr in &body.exprs {
        for operand in operands(&expr.kind) {
            let element = matches!(&expr.kind, ExprKind::Index { base, .. } if *base == operand);
            if !element && !matches!(expr.kind, ExprKind::Paren(_)) {
                let inner = body.strip_parens(operand);
                let named = objects(body, inner).into_iter();
                out.extend(named.filter(|b| !body.binding(*b).ty.array.is_empty() && !indexed(body, inner, *b)));
            }
        }
    }
    for stmt in &body.stmts {
        if let StmtKind::Decl(decls) = &stmt.kind {
            for init in decls.iter().filter_map(|d| d.init) {
                let inner = body.strip_parens(init);
                let named = objects(body, inner).into_iter();
                out.extend(named.filter(|b| !body.binding(*b).ty.array.is_empty() && !indexed(body, inner, *b)));
            }
        }
    }
    out
}

/// `e` indexes the array as deep as it goes, so that it's an element and no pointer.
fn indexed(body: &Body, mut e: ExprId, b: BindingId) -> bool {
    let mut depth = 0;
    loop {
        match &body.expr(e).kind {
            ExprKind::Index { base, .. } => {
                depth += 1;
                e = *base;
            }
            ExprKind::Paren(inner) | ExprKind::Field { base: inner, .. } => e = *inner,
            _ => return depth >= body.binding(b).ty.array.len(),
        }
    }
}

fn constant(body: &Body, b: BindingId) -> bool {
    let ty = &body.binding(b).ty;
    match ty.pointers {
        0 => ty.const_base,
        _ => ty.const_pointer,
    }
}

/// A pointer through which nothing that anybody writes is read: a `const T* __restrict__` parameter.
fn constant_pointer(body: &Body, e: ExprId) -> bool {
    let ExprKind::Name(Name::Local(b)) = &body.expr(body.strip_parens(e)).kind else {
        return false;
    };
    let ty = &body.binding(*b).ty;
    ty.const_base && ty.restrict && ty.pointers == 1 && !ty.volatile && body.params.contains(b) && ty.array.is_empty()
}

/// An element of an array of the thread's own.
fn local_array(body: &Body, e: ExprId) -> bool {
    let found = objects(body, e);
    !found.is_empty()
        && found.iter().all(|b| {
            let b = body.binding(*b);
            b.storage == Storage::Local && !b.ty.array.is_empty() && b.ty.pointers == 0 && !b.ty.reference
        })
}

fn names_written(body: &Body, name: &str) -> bool {
    body.exprs.iter().any(|e| {
        let (ExprKind::Assign { place: at, .. } | ExprKind::IncDec { place: at, .. } | ExprKind::AddrOf(at)) = &e.kind
        else {
            return false;
        };
        let mut stack = vec![*at];
        while let Some(e) = stack.pop() {
            if matches!(&body.expr(e).kind, ExprKind::Name(Name::Other(n)) if n == name) {
                return true;
            }
            stack.extend(operands(&body.expr(e).kind));
        }
        false
    })
}

enum Declared {
    Outside,
    With(ExprId),
    Unknown,
}

/// Expressions and statements of a part of a body.
pub(super) struct Region {
    pub exprs: Vec<ExprId>,
    pub stmts: Vec<StmtId>,
}

pub(super) fn whole_body(body: &Body) -> Region {
    Region {
        exprs: (0..body.exprs.len() as u32).map(ExprId).collect(),
        stmts: (0..body.stmts.len() as u32).map(StmtId).collect(),
    }
}

impl Region {
    /// What runs in every iteration of a loop; `None` when it isn't a loop.
    pub fn of_loop(body: &Body, id: StmtId) -> Option<Region> {
        let mut stmts: Vec<StmtId> = Vec::new();
        let mut roots: Vec<ExprId> = Vec::new();
        match &body.stmt(id).kind {
            StmtKind::While {
                cond,
                init,
                body: inner,
            } => {
                roots.extend(cond);
                stmts.extend(init);
                stmts.push(*inner);
            }
            StmtKind::DoWhile { body: inner, cond } => {
                roots.push(*cond);
                stmts.push(*inner);
            }
            StmtKind::For {
                cond,
                step,
                body: inner,
                ..
            } => {
                roots.extend(cond.iter().chain(step));
                stmts.push(*inner);
            }
            StmtKind::RangeFor { body: inner, .. } => stmts.push(*inner),
            _ => return None,
        }
        Some(Region::all(body, vec![id], stmts, roots))
    }

    /// What stands in a statement.
    pub fn of_stmt(body: &Body, id: StmtId) -> Region {
        Region::all(body, Vec::new(), vec![id], Vec::new())
    }

    /// `own`, and all that stands in the others.
    fn all(body: &Body, own: Vec<StmtId>, mut stmts: Vec<StmtId>, mut roots: Vec<ExprId>) -> Region {
        let mut region = Region {
            exprs: Vec::new(),
            stmts: own,
        };
        while let Some(s) = stmts.pop() {
            region.stmts.push(s);
            let (children, exprs) = parts(body, s);
            stmts.extend(children);
            roots.extend(exprs);
        }
        while let Some(e) = roots.pop() {
            region.exprs.push(e);
            roots.extend(operands(&body.expr(e).kind));
            if let ExprKind::Lambda { body: Some(s), .. } = &body.expr(e).kind {
                region.stmts.push(*s);
            }
        }
        region
    }

    /// Local variables that are assigned in it, wholly or in part, or take the elements of a range.
    pub fn assigned(&self, body: &Body) -> HashSet<BindingId> {
        let mut out = HashSet::new();
        for e in &self.exprs {
            if let ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } = &body.expr(*e).kind {
                out.extend(objects(body, *place));
            }
        }
        for s in &self.stmts {
            if let StmtKind::RangeFor { binding, .. } = &body.stmt(*s).kind {
                out.insert(*binding);
            }
        }
        out
    }

    fn declared(&self, body: &Body, b: BindingId) -> Declared {
        // The first statement is the loop itself: what its head declares once isn't declared in the region.
        for s in self.stmts.iter().skip(1) {
            if let StmtKind::Decl(decls) = &body.stmt(*s).kind
                && let Some(d) = decls.iter().find(|d| d.binding == b)
            {
                return d.init.map_or(Declared::Unknown, Declared::With);
            }
        }
        Declared::Outside
    }

    /// It may write memory that isn't a local variable of the thread.
    pub fn writes_memory(&self, body: &Body, known: Known<'_>) -> bool {
        let outside = |place: ExprId| {
            let found = objects(body, place);
            found.is_empty()
                || found.iter().any(|b| {
                    let b = body.binding(*b);
                    b.ty.reference || !matches!(b.storage, Storage::Local | Storage::Param)
                })
        };
        self.exprs.iter().any(|e| match &body.expr(*e).kind {
            ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => outside(*place),
            ExprKind::Call { name, .. } => {
                let name = name.as_deref().unwrap_or("");
                let quiet = known(name).is_some_and(|l| !l.changes_memory() && !l.orders_memory());
                !quiet && !plain_type(name)
            }
            ExprKind::Launch(_) | ExprKind::Unknown { .. } | ExprKind::New(_) | ExprKind::Delete(_) => true,
            ExprKind::Construct { ty, .. } => !plain_type(ty),
            _ => false,
        }) || self
            .stmts
            .iter()
            .any(|s| matches!(body.stmt(*s).kind, StmtKind::Asm { .. } | StmtKind::Unknown { .. }))
    }
}
