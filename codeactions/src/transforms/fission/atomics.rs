//! Atomics on shared memory. Local memory, where that memory lies when one thread runs the block, has none: they become plain
//! reads and writes, which nothing can interrupt there.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::library::{Memory, library};
use gridfuse_analysis::hir::resolve::functions_named;
use gridfuse_analysis::hir::scope::hides;
use gridfuse_analysis::hir::visible::visible_names;
use gridfuse_analysis::hir::{BindingId, Body, ExprId, ExprKind, Name, StmtKind, Storage, body, parameters};

use super::memory::is_number;
use super::{Reason, reason};
use crate::edit::lex;
use crate::facts::child::Child;
use crate::facts::uses::{all_exprs, all_stmts, operands};

/// What a pointer points into.
enum Target {
    /// A shared variable.
    Shared,
    /// Memory that a parameter or a global variable points into.
    Elsewhere,
    /// Not known.
    Unknown,
}

/// The callees to be replaced. Refuses atomics of which it isn't known what they work on.
pub fn on_shared_memory(child: &Child<'_>) -> Result<Vec<Span>, Vec<Reason>> {
    let body: &Body = &child.body;
    let shared = |b: &gridfuse_analysis::hir::Binding| matches!(b.storage, Storage::Shared | Storage::ExternShared);
    let Some(root) = body.root.filter(|_| body.bindings.iter().any(shared)) else {
        return Ok(Vec::new());
    };
    let exprs = all_exprs(body, root);
    let mut found = Vec::new();
    let mut refused = Vec::new();
    let handed_on = pointers_to_shared(body, &exprs);
    for expr in &exprs {
        let ExprKind::Call {
            callee,
            name: Some(name),
            args,
            ..
        } = &body.expr(*expr).kind
        else {
            continue;
        };
        let span = body.expr(*expr).span;
        let own = functions_named(child.db, child.file, name);
        let last = name.rsplit("::").next().unwrap_or(name);
        let library = own.is_empty()
            && !hides(child.db, child.item, name)
            && library(name).is_some_and(|known| matches!(known.memory, Memory::Atomic(_)));
        if library {
            match args.first().map_or(Target::Unknown, |a| target(body, *a)) {
                Target::Shared => found.push(body.expr(*callee).span),
                Target::Elsewhere => {}
                Target::Unknown if handed_on.is_empty() => {}
                Target::Unknown => refused.push(reason(
                    format!(
                        "`{}` may use {last}() on shared memory, which is not possible in the local memory of one thread",
                        child.name
                    ),
                    child.place_of(span),
                )),
            }
        } else if (args.iter().any(|a| handed_on.contains(a)) || refers_to_shared(child, *callee, args, &own))
            && own.iter().any(|f| may_use_atomics(child.db, *f, 0))
        {
            refused.push(reason(
                format!(
                    "`{}` hands shared memory to `{name}`, which may use atomics on it, which is not possible in the local memory \
                     of one thread",
                    child.name
                ),
                child.place_of(span),
            ));
        }
    }
    // In a macro it isn't seen what an atomic works on.
    let whole = child.item.body_span(child.db);
    let names = visible_names(child.db, child.file);
    let text = child.source(whole);
    for token in lex::code_tokens(text) {
        let mut macros = vec![token.text(text)];
        let mut seen: Vec<&str> = Vec::new();
        while let Some(word) = macros.pop() {
            let Some(item) = names.macros.get(word).filter(|_| !seen.contains(&word)) else {
                continue;
            };
            seen.push(word);
            macros.extend(lex::identifiers(&item.body));
            if item.body.contains("atomic") {
                let span = Span::new(whole.start + token.start as u32, whole.start + token.end as u32);
                refused.push(reason(
                    format!("the macro `{}` may use atomics on shared memory", token.text(text)),
                    child.place_of(span),
                ));
                break;
            }
        }
    }
    if refused.is_empty() { Ok(found) } else { Err(refused) }
}

/// A call takes something in shared memory by a reference: an argument, what becomes an object that may hold one, or the object of a
/// member function.
fn refers_to_shared(child: &Child<'_>, callee: ExprId, args: &[ExprId], functions: &[FunctionItem<'_>]) -> bool {
    let body: &Body = &child.body;
    let shared = |e: ExprId| matches!(object(body, e), Target::Shared);
    let inside = |e: ExprId| match &body.expr(e).kind {
        ExprKind::InitList(parts) | ExprKind::Construct { args: parts, .. } => parts.iter().any(|part| shared(*part)),
        _ => shared(e),
    };
    let by_value = |index: usize| {
        functions.iter().all(|f| {
            parameters(child.db, *f).get(index).is_some_and(|p| {
                let ty = &p.ty;
                !ty.reference && !ty.complex && (ty.pointers > 0 || is_number(&ty.base))
            })
        })
    };
    let method = matches!(&body.expr(body.strip_parens(callee)).kind, ExprKind::Field { base, .. } if shared(*base));
    method
        || args
            .iter()
            .enumerate()
            .any(|(index, arg)| inside(*arg) && !by_value(index))
}

fn target(body: &Body, pointer: ExprId) -> Target {
    let of = |binding: BindingId| match body.binding(binding).storage {
        Storage::Shared | Storage::ExternShared => Target::Shared,
        Storage::Param if body.params.contains(&binding) => Target::Elsewhere,
        _ => Target::Unknown,
    };
    match &body.expr(pointer).kind {
        ExprKind::Paren(e) => target(body, *e),
        ExprKind::Cast { operand, .. } => target(body, *operand),
        ExprKind::AddrOf(place) => object(body, *place),
        ExprKind::Name(Name::Local(b)) => of(*b),
        ExprKind::Name(Name::Other(_)) => Target::Elsewhere,
        ExprKind::Binary(_, a, b) => match (target(body, *a), target(body, *b)) {
            (Target::Shared, _) | (_, Target::Shared) => Target::Shared,
            (Target::Elsewhere, _) => Target::Elsewhere,
            _ => Target::Unknown,
        },
        _ => Target::Unknown,
    }
}

/// What the object at a place belongs to.
fn object(body: &Body, place: ExprId) -> Target {
    match &body.expr(place).kind {
        ExprKind::Paren(e)
        | ExprKind::Field {
            base: e, arrow: false, ..
        } => object(body, *e),
        ExprKind::Index { base, .. } => match &body.expr(*base).kind {
            ExprKind::Index { .. } | ExprKind::Field { arrow: false, .. } | ExprKind::Paren(_) => object(body, *base),
            _ => target(body, *base),
        },
        ExprKind::Deref(pointer) | ExprKind::Field { base: pointer, .. } => target(body, *pointer),
        ExprKind::Name(_) => target(body, place),
        _ => Target::Unknown,
    }
}

/// Expressions that are pointers to shared memory and are used as values: not indexed at once.
fn pointers_to_shared(body: &Body, exprs: &[ExprId]) -> Vec<ExprId> {
    let mut found = Vec::new();
    let mut accesses = Vec::new();
    for expr in exprs {
        match &body.expr(*expr).kind {
            ExprKind::Index { base, .. } => accesses.push(*base),
            ExprKind::Field { base, arrow: false, .. } => accesses.push(*base),
            // The pointer of an atomic is looked at by itself.
            ExprKind::Call {
                name: Some(name), args, ..
            } if name.contains("atomic") => accesses.extend(args.first()),
            _ => {}
        }
    }
    let mut todo: Vec<ExprId> = accesses.clone();
    let mut inside = Vec::new();
    while let Some(next) = todo.pop() {
        inside.push(next);
        if !matches!(body.expr(next).kind, ExprKind::Call { .. }) {
            todo.extend(operands(body, next));
        }
    }
    for expr in exprs {
        let pointer = match &body.expr(*expr).kind {
            ExprKind::AddrOf(place) => matches!(object(body, *place), Target::Shared),
            ExprKind::Name(Name::Local(b)) => {
                let variable = body.binding(*b);
                matches!(variable.storage, Storage::Shared | Storage::ExternShared) && !variable.ty.array.is_empty()
            }
            // A row of an array of several dimensions.
            ExprKind::Index { base, .. } => matches!(&body.expr(*base).kind, ExprKind::Name(Name::Local(b))
                if body.binding(*b).ty.array.len() > 1
                    && matches!(body.binding(*b).storage, Storage::Shared | Storage::ExternShared)),
            _ => false,
        };
        if pointer && !inside.contains(expr) {
            found.push(*expr);
        }
    }
    // Whatever is made of such a pointer.
    for expr in exprs {
        let made = match &body.expr(*expr).kind {
            ExprKind::Paren(e) | ExprKind::Cast { operand: e, .. } => found.contains(e),
            ExprKind::Binary(_, a, b) => found.contains(a) || found.contains(b),
            ExprKind::Conditional { then, otherwise, .. } => found.contains(then) || found.contains(otherwise),
            _ => false,
        };
        if made && !found.contains(expr) {
            found.push(*expr);
        }
    }
    // References to shared memory.
    for stmt in body.root.map(|r| all_stmts(body, r)).unwrap_or_default() {
        if let StmtKind::Decl(decls) = &body.stmt(stmt).kind {
            for decl in decls.iter().filter(|d| body.binding(d.binding).ty.reference) {
                found.extend(decl.init.filter(|i| matches!(object(body, *i), Target::Shared)));
            }
            // `int& c{shared}`, and objects that may hold a reference.
            for decl in decls {
                let ty = &body.binding(decl.binding).ty;
                let parts = match decl.init.map(|init| &body.expr(init).kind) {
                    Some(ExprKind::InitList(parts) | ExprKind::Construct { args: parts, .. }) => parts,
                    _ => continue,
                };
                if ty.reference || ty.pointers == 0 && !is_number(&ty.base) {
                    found.extend(parts.iter().filter(|e| matches!(object(body, **e), Target::Shared)));
                }
            }
        }
    }
    found
}

/// Whether a function, or one that it calls, holds an atomic.
fn may_use_atomics<'db>(db: &'db dyn Db, function: FunctionItem<'db>, depth: u32) -> bool {
    let text = function.text(db);
    if depth > 8 || text.contains("atomic") || text.contains("asm") {
        return true;
    }
    let names = visible_names(db, function.file(db));
    let in_macro = lex::identifiers(&text).any(|w| names.macros.contains_key(w) || names.ambiguous_macros.contains(w));
    in_macro
        || body(db, function).exprs.iter().any(|e| match &e.kind {
            ExprKind::Call { name: Some(name), .. } => {
                hides(db, function, name)
                    || functions_named(db, function.file(db), name)
                        .into_iter()
                        .any(|f| may_use_atomics(db, f, depth + 1))
            }
            ExprKind::Call { name: None, .. } | ExprKind::Unknown { .. } | ExprKind::Lambda { .. } => true,
            _ => false,
        })
}
