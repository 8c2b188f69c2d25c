//! Atomics on shared memory. Local memory, where that memory lies when one thread runs the block, has none: they become plain
//! reads and writes, which nothing can interrupt there.

use std::collections::BTreeSet;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::callee::library_called;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::library::{Memory, library};
use gridfuse_analysis::hir::resolve::functions_named;
use gridfuse_analysis::hir::scope::hides;
use gridfuse_analysis::hir::visible::visible_names;
use gridfuse_analysis::hir::walk::{all_exprs, all_in_expr, all_stmts, operands};
use gridfuse_analysis::hir::{BindingId, Body, ExprId, ExprKind, Name, StmtKind, Storage, body, parameters};

use super::memory::is_number;
use super::reasons::reason;
use crate::api::refusal::Reason;
use crate::edit::lex;
use crate::facts::calls::is_plain_type;
use crate::facts::child::Child;
use crate::facts::uses::root;

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
    let Some(whole) = body.root.filter(|_| body.bindings.iter().any(shared)) else {
        return Ok(Vec::new());
    };
    let exprs = all_exprs(body, whole);
    let mut found = Vec::new();
    let mut refused = Vec::new();
    let mut handed_on = pointers_to_shared(child, &exprs);
    refused.extend(objects_on_shared(child, &exprs, &mut handed_on));
    let kept = is_kept_elsewhere(body, &exprs, &handed_on);
    for expr in &exprs {
        if let Some(method) = atomic_method(child, *expr).filter(|_| !handed_on.is_empty()) {
            refused.push(reason(
                format!(
                    "`{}` calls `{method}` of an object that may know shared memory, with atomics, which is not possible in the local \
                     memory of one thread",
                    child.name
                ),
                child.place_of(body.expr(*expr).span),
            ));
        }
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
        if is_atomic(name) {
            let pointer = args.first().copied();
            match pointer.map_or(Target::Unknown, |a| target(child, a)) {
                // An overload of the user's may be meant, which can't be replaced.
                Target::Shared if library_called(child.db, child.item, name).is_some() => {
                    found.push(body.expr(*callee).span)
                }
                Target::Elsewhere if !kept => {}
                Target::Unknown if handed_on.is_empty() && !pointer.is_some_and(|a| names_shared(body, a)) => {}
                _ => refused.push(reason(
                    format!(
                        "`{}` may use {}() on shared memory, which is not possible in the local memory of one thread",
                        child.name,
                        name.rsplit("::").next().unwrap_or(name)
                    ),
                    child.place_of(span),
                )),
            }
        } else if (hands_on(child, &handed_on, args) || refers_to_shared(child, *callee, args, &own))
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

/// Adds to what hands shared memory on the objects that keep it: made of something in it, of a class that may have a reference or a pointer.
/// Refuses those whose class isn't in sight, or has a function that may run atomics.
fn objects_on_shared(child: &Child<'_>, exprs: &[ExprId], handed_on: &mut Vec<ExprId>) -> Vec<Reason> {
    let body: &Body = &child.body;
    let mut refused = Vec::new();
    let mut keepers: BTreeSet<BindingId> = BTreeSet::new();
    let mut look_at = |ty: &str, span: Span| {
        let class = class_of(child, ty);
        if class.keeps
            && let Some(why) = class.why
        {
            refused.push(reason(
                    format!(
                        "`{}` makes an object of `{ty}` of shared memory, {why}, which is not possible in the local memory of one thread",
                        child.name
                    ),
                    child.place_of(span),
                ));
        }
        class.keeps
    };
    for stmt in body.root.map(|r| all_stmts(body, r)).unwrap_or_default() {
        let StmtKind::Decl(decls) = &body.stmt(stmt).kind else {
            continue;
        };
        for decl in decls {
            let variable = body.binding(decl.binding);
            let ty = &variable.ty;
            let is_object = ty.pointers == 0 && !ty.reference && !is_number(&ty.base);
            let made = |init: ExprId| match &body.expr(body.strip_parens(init)).kind {
                // Of what the class is it's seen where it's constructed.
                ExprKind::Construct { ty: class, .. } if ty.base == "auto" => {
                    is_made_of_shared(child, init, handed_on) && class_of(child, class).keeps
                }
                ExprKind::Call { args, .. } if ty.base == "auto" => {
                    args.iter().any(|a| is_made_of_shared(child, *a, handed_on))
                }
                ExprKind::InitList(_) | ExprKind::Construct { .. } => {
                    is_made_of_shared(child, init, handed_on) && look_at(&ty.base, variable.span)
                }
                _ => false,
            };
            if is_object && decl.init.is_some_and(made) {
                keepers.insert(decl.binding);
            }
        }
    }
    for expr in exprs {
        match &body.expr(*expr).kind {
            ExprKind::Construct { ty, args } if !is_plain_type(ty) => {
                let of_shared = args.iter().any(|a| is_made_of_shared(child, *a, handed_on));
                if of_shared && look_at(ty, body.expr(*expr).span) {
                    handed_on.push(*expr);
                }
            }
            ExprKind::Name(Name::Local(b)) if keepers.contains(b) => handed_on.push(*expr),
            _ => {}
        }
    }
    refused
}

/// The member function that is called, if one of this name may use atomics and its object isn't a parameter: that one was made elsewhere.
fn atomic_method(child: &Child<'_>, call: ExprId) -> Option<String> {
    let body: &Body = &child.body;
    let ExprKind::Call { callee, .. } = &body.expr(call).kind else {
        return None;
    };
    let ExprKind::Field { base, field, .. } = &body.expr(body.strip_parens(*callee)).kind else {
        return None;
    };
    let is_parameter = root(body, *base).is_some_and(|b| body.params.contains(&b));
    let files = included_files(child.db, child.file);
    let mut functions = files
        .iter()
        .flat_map(|file| items(child.db, *file).functions.iter().copied());
    let named_so = |f: &FunctionItem<'_>| {
        f.name(child.db)
            .rsplit_once("::")
            .is_some_and(|(_, last)| last == field)
    };
    let atomic = !is_parameter && functions.any(|f| named_so(&f) && may_use_atomics(child.db, f, 0));
    atomic.then(|| field.clone())
}

/// Whether something is in shared memory, points into it, or has parts that do.
fn is_made_of_shared(child: &Child<'_>, expr: ExprId, handed_on: &[ExprId]) -> bool {
    let body: &Body = &child.body;
    match &body.expr(expr).kind {
        ExprKind::Paren(inner) => is_made_of_shared(child, *inner, handed_on),
        ExprKind::InitList(parts) | ExprKind::Construct { args: parts, .. } => {
            parts.iter().any(|part| is_made_of_shared(child, *part, handed_on))
        }
        _ => handed_on.contains(&expr) || matches!(memory_of(child, expr), Target::Shared),
    }
}

/// What is known of a class whose objects are made of shared memory.
struct ClassOnShared {
    /// Its objects may keep a reference or a pointer.
    keeps: bool,
    /// Why atomics may run unseen.
    why: Option<String>,
}

fn class_of(child: &Child<'_>, ty: &str) -> ClassOnShared {
    let unknown = |why: &str| ClassOnShared {
        keeps: true,
        why: Some(why.to_owned()),
    };
    let values = ClassOnShared {
        keeps: false,
        why: None,
    };
    let files = included_files(child.db, child.file);
    let aliases = || files.iter().flat_map(|file| &items(child.db, *file).aliases);
    let mut bare = bare_type(ty);
    // Aliases of aliases, but not for ever.
    for _ in 0..8 {
        match aliases().find(|(name, _)| name == bare) {
            Some((_, meant)) => bare = bare_type(meant),
            None => break,
        }
    }
    let is_parameter = child.item.signature(child.db).template_types.iter().any(|t| t == bare);
    if is_plain_type(bare) || is_number(bare) || is_parameter {
        return values;
    }
    let name = bare.rsplit("::").next().unwrap_or(bare);
    let mut found = None;
    for file in files.iter() {
        for item in items(child.db, *file).types.iter().filter(|t| t.name == name) {
            if found.replace(item).is_some() {
                return unknown("of which there are several in sight");
            }
        }
    }
    let Some(class) = found else {
        return unknown("whose definition isn't in sight");
    };
    if class.is_enum {
        return values;
    }
    // A type that isn't one of the language's own may be a reference by another name.
    let keeps = !class.bases.is_empty()
        || class
            .fields
            .iter()
            .any(|(ty, name)| !is_number(ty) || name.contains(['*', '&']));
    let is_member = |f: &FunctionItem<'_>| f.name(child.db).rsplit("::").nth(1) == Some(name);
    let functions = || {
        files
            .iter()
            .flat_map(|file| items(child.db, *file).functions.iter().copied())
    };
    let atomic = keeps && functions().filter(is_member).any(|f| may_use_atomics(child.db, f, 0));
    ClassOnShared {
        keeps,
        why: atomic.then(|| "which may use atomics on it".to_owned()),
    }
}

/// A type without its arguments and `const`.
fn bare_type(ty: &str) -> &str {
    let bare = ty.split('<').next().unwrap_or(ty).trim();
    bare.strip_prefix("const ").unwrap_or(bare).trim()
}

/// A call takes something in shared memory by a reference: an argument, what becomes an object that may hold one, or the object of a
/// member function.
fn refers_to_shared(child: &Child<'_>, callee: ExprId, args: &[ExprId], functions: &[FunctionItem<'_>]) -> bool {
    let body: &Body = &child.body;
    let shared = |e: ExprId| matches!(memory_of(child, e), Target::Shared);
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

/// An atomic of the library's, by its name.
fn is_atomic(name: &str) -> bool {
    library(name).is_some_and(|known| matches!(known.memory, Memory::Atomic(_)))
}

fn is_shared(body: &Body, binding: BindingId) -> bool {
    matches!(body.binding(binding).storage, Storage::Shared | Storage::ExternShared)
}

/// A shared variable is named in an expression.
fn names_shared(body: &Body, expr: ExprId) -> bool {
    let named = |e: &ExprId| matches!(body.expr(*e).kind, ExprKind::Name(Name::Local(b)) if is_shared(body, b));
    all_in_expr(body, expr).iter().any(named)
}

/// A pointer to shared memory is written where it isn't followed: into a parameter, or where other functions and other blocks find it.
fn is_kept_elsewhere(body: &Body, exprs: &[ExprId], handed_on: &[ExprId]) -> bool {
    let leads = |value: ExprId| all_in_expr(body, value).iter().any(|e| handed_on.contains(e));
    exprs.iter().any(|expr| match &body.expr(*expr).kind {
        ExprKind::Assign { place, value, .. } => {
            root(body, *place).is_none_or(|b| body.params.contains(&b)) && leads(*value)
        }
        _ => false,
    })
}

/// A call gets a pointer to shared memory, or what may have become one where there are some: what is neither a number nor leads elsewhere.
fn hands_on(child: &Child<'_>, handed_on: &[ExprId], args: &[ExprId]) -> bool {
    let body: &Body = &child.body;
    args.iter().any(|arg| {
        handed_on.contains(arg)
            || !handed_on.is_empty() && !is_value(body, *arg) && !matches!(target(child, *arg), Target::Elsewhere)
    })
}

/// A number: nothing that refers to memory.
fn is_value(body: &Body, expr: ExprId) -> bool {
    match &body.expr(expr).kind {
        ExprKind::Literal(_) | ExprKind::SizeOf | ExprKind::Name(Name::Builtin(_)) => true,
        ExprKind::Paren(e) | ExprKind::Unary(_, e) => is_value(body, *e),
        ExprKind::Cast { ty, operand, .. } => !ty.contains(['*', '&']) && is_value(body, *operand),
        ExprKind::Binary(_, a, b) => is_value(body, *a) && is_value(body, *b),
        ExprKind::Logical { .. } => true,
        ExprKind::Field { base, arrow: false, .. } => {
            matches!(body.expr(*base).kind, ExprKind::Name(Name::Builtin(_)))
        }
        ExprKind::Name(Name::Local(b)) => {
            let ty = &body.binding(*b).ty;
            ty.pointers == 0 && ty.array.is_empty() && !ty.reference && !ty.complex && is_number(&ty.base)
        }
        _ => false,
    }
}

/// What is true of either of two pointers.
fn either(a: Target, b: Target) -> Target {
    match (a, b) {
        (Target::Shared, Target::Shared) => Target::Shared,
        (Target::Elsewhere, Target::Elsewhere) => Target::Elsewhere,
        _ => Target::Unknown,
    }
}

/// What a pointer points into: an array of shared memory is a pointer into it; what a pointer in shared memory points to isn't known.
fn target(child: &Child<'_>, pointer: ExprId) -> Target {
    let body: &Body = &child.body;
    let of = |binding: BindingId| match body.binding(binding).storage {
        Storage::Shared | Storage::ExternShared if keeps_pointers(child, binding) => Target::Unknown,
        Storage::Shared | Storage::ExternShared => Target::Shared,
        Storage::Param if body.params.contains(&binding) => Target::Elsewhere,
        _ => Target::Unknown,
    };
    match &body.expr(pointer).kind {
        ExprKind::Paren(e) | ExprKind::Comma(_, e) => target(child, *e),
        ExprKind::Cast { operand, .. } => target(child, *operand),
        ExprKind::Conditional { then, otherwise, .. } => either(target(child, *then), target(child, *otherwise)),
        ExprKind::AddrOf(place) => memory_of(child, *place),
        ExprKind::Name(Name::Local(b)) => of(*b),
        ExprKind::Name(Name::Other(_)) => Target::Elsewhere,
        // A number is how far it is from the other one.
        ExprKind::Binary(_, a, b) if is_value(body, *b) => target(child, *a),
        ExprKind::Binary(_, a, b) if is_value(body, *a) => target(child, *b),
        ExprKind::Binary(_, a, b) => match (target(child, *a), target(child, *b)) {
            (Target::Shared, _) | (_, Target::Shared) => Target::Shared,
            (Target::Elsewhere, _) => Target::Elsewhere,
            _ => Target::Unknown,
        },
        _ => Target::Unknown,
    }
}

/// What lies in a shared variable may lead out of it.
fn keeps_pointers(child: &Child<'_>, binding: BindingId) -> bool {
    let ty = &child.body.binding(binding).ty;
    ty.pointers > 0 || ty.complex || !is_number(&ty.base) && class_of(child, &ty.base).keeps
}

/// The memory that the object at a place belongs to.
fn memory_of(child: &Child<'_>, place: ExprId) -> Target {
    let body: &Body = &child.body;
    // An object itself lies there, whatever it keeps.
    let named = |e: ExprId| match body.expr(e).kind {
        ExprKind::Name(Name::Local(b)) if is_shared(body, b) => Some(Target::Shared),
        _ => None,
    };
    match &body.expr(place).kind {
        ExprKind::Paren(e) | ExprKind::Comma(_, e) => memory_of(child, *e),
        ExprKind::Conditional { then, otherwise, .. } => either(memory_of(child, *then), memory_of(child, *otherwise)),
        ExprKind::Field {
            base: e, arrow: false, ..
        } => memory_of(child, *e),
        ExprKind::Index { base, .. } => match &body.expr(*base).kind {
            ExprKind::Index { .. } | ExprKind::Field { arrow: false, .. } | ExprKind::Paren(_) => {
                let inner = memory_of(child, *base);
                let leads_on = root(body, *base).is_some_and(|b| is_shared(body, b) && keeps_pointers(child, b));
                if leads_on { Target::Unknown } else { inner }
            }
            // An element of an array lies where the array does.
            _ => match named(*base).filter(|_| is_array(body, *base)) {
                Some(inside) => inside,
                None => target(child, *base),
            },
        },
        ExprKind::Deref(pointer) | ExprKind::Field { base: pointer, .. } => target(child, *pointer),
        ExprKind::Name(_) => named(place).unwrap_or_else(|| target(child, place)),
        _ => Target::Unknown,
    }
}

fn is_array(body: &Body, expr: ExprId) -> bool {
    matches!(body.expr(expr).kind, ExprKind::Name(Name::Local(b)) if !body.binding(b).ty.array.is_empty())
}

/// Expressions that are pointers to shared memory and are used as values: not indexed at once.
fn pointers_to_shared(child: &Child<'_>, exprs: &[ExprId]) -> Vec<ExprId> {
    let body: &Body = &child.body;
    let mut found = Vec::new();
    let mut accesses = Vec::new();
    for expr in exprs {
        match &body.expr(*expr).kind {
            ExprKind::Index { base, .. } => accesses.push(*base),
            ExprKind::Field { base, arrow: false, .. } => accesses.push(*base),
            // The pointer of an atomic is looked at by itself.
            ExprKind::Call {
                name: Some(name), args, ..
            } if is_atomic(name) => accesses.extend(args.first()),
            _ => {}
        }
    }
    let mut todo: Vec<ExprId> = accesses.clone();
    let mut inside = Vec::new();
    while let Some(next) = todo.pop() {
        inside.push(next);
        if !matches!(body.expr(next).kind, ExprKind::Call { .. }) {
            todo.extend(operands(&body.expr(next).kind));
        }
    }
    for expr in exprs {
        let pointer = match &body.expr(*expr).kind {
            ExprKind::AddrOf(place) => matches!(memory_of(child, *place), Target::Shared),
            ExprKind::Name(Name::Local(b)) => {
                let variable = body.binding(*b);
                matches!(variable.storage, Storage::Shared | Storage::ExternShared) && !variable.ty.array.is_empty()
            }
            // A row of an array of several dimensions.
            ExprKind::Index { base, .. } | ExprKind::Deref(base) => {
                matches!(&body.expr(*base).kind, ExprKind::Name(Name::Local(b))
                if body.binding(*b).ty.array.len() > 1
                    && matches!(body.binding(*b).storage, Storage::Shared | Storage::ExternShared))
            }
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
                found.extend(decl.init.filter(|i| matches!(memory_of(child, *i), Target::Shared)));
            }
            // `int& c{shared}`, and objects that may hold a reference.
            for decl in decls {
                let ty = &body.binding(decl.binding).ty;
                let parts = match decl.init.map(|init| &body.expr(init).kind) {
                    Some(ExprKind::InitList(parts) | ExprKind::Construct { args: parts, .. }) => parts,
                    _ => continue,
                };
                if ty.reference || ty.pointers == 0 && !is_number(&ty.base) {
                    found.extend(parts.iter().filter(|e| matches!(memory_of(child, **e), Target::Shared)));
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
