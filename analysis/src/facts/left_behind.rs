//! What another grid can't use, though it finds it in memory: addresses of local and shared memory, and streams (CUDA C++ Programming Guide,
//! "Coherence and Consistency" and "Streams and Events" of device-side launches).
//!
//! Two questions, each answered with a place where nothing excludes it: whether a function may leave such a thing in memory, and whether a
//! part of one may take it from there. Where both are so, the two belong to one grid.

use std::collections::HashMap;

use crate::base::db::{Db, SourceFile};
use crate::base::place::FileRange;
use crate::base::span::Span;
use crate::base::words::words;
use crate::facts::effects::keeps_arguments;
use crate::facts::hidden::{hidden, operator_use};
use crate::facts::plain_operands::is_plain;
use crate::facts::uniformity::memory::Places;
use crate::hir::flow::operands;
use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, items};
use crate::hir::library::library;
use crate::hir::names::unqualified;
use crate::hir::plain_types::is_plain_type;
use crate::hir::resolve::{Meaning, functions_in, meaning_in};
use crate::hir::runtime_header::is_runtime_header;
use crate::hir::{Body, ExprId, ExprKind, Name, StmtKind, Storage, body};

/// Calls in calls that are followed; behind them anything may happen.
const MAX_DEPTH: u32 = 8;

/// Where a function, or one that it calls, may leave an address of its local or shared memory, or a stream of its own, in memory.
pub fn may_leave(db: &dyn Db, function: FunctionItem<'_>) -> Option<FileRange> {
    let mut seen = Vec::new();
    leaves(db, function, &mut seen, 0)
}

/// Whether the program has operators of its own in sight of a file, which may keep the address of an operand.
pub fn has_operators(db: &dyn Db, file: SourceFile) -> bool {
    let theirs = included_files(db, file)
        .iter()
        .filter(|file| !is_runtime_header(db, **file));
    let mut functions = theirs.flat_map(|file| &items(db, *file).functions);
    functions.any(|f| unqualified(f.name(db)).starts_with("operator"))
}

fn leaves<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    seen: &mut Vec<FunctionItem<'db>>,
    depth: u32,
) -> Option<FileRange> {
    if seen.contains(&function) {
        return None;
    }
    seen.push(function);
    let body = &*body(db, function);
    let place = |span: Span| FileRange {
        file: function.file(db),
        range: span.shift(function.start(db)),
    };
    let mut parents: HashMap<ExprId, ExprId> = HashMap::new();
    for (index, expr) in body.exprs.iter().enumerate() {
        for operand in operands(&expr.kind) {
            parents.insert(operand, ExprId(index as u32));
        }
    }
    let places = Places { db, function, body };
    let has_operators = has_operators(db, function.file(db));
    for index in 0..body.exprs.len() as u32 {
        let e = ExprId(index);
        let expr = body.expr(e);
        let own = match &expr.kind {
            ExprKind::AddrOf(object) => is_own(body, *object),
            ExprKind::Name(Name::Local(b)) => {
                let variable = body.binding(*b);
                !variable.ty.array.is_empty() && variable.storage != Storage::Param
            }
            // A row of an array is an array.
            ExprKind::Index { .. } | ExprKind::Deref(_) | ExprKind::Field { .. } => {
                places.shape(e).is_some_and(|shape| shape.dims > 0) && is_own(body, e)
            }
            _ => false,
        };
        if own && !is_used_at_once(db, function, body, &parents, e) {
            return Some(place(expr.span));
        }
        match &expr.kind {
            // A member function has its object.
            ExprKind::Call { callee, .. }
                if matches!(body.expr(body.strip_parens(*callee)).kind, ExprKind::Field { .. }) =>
            {
                return Some(place(expr.span));
            }
            ExprKind::Call { name: Some(name), .. } => {
                if name.starts_with("cudaStreamCreate") || name.starts_with("cudaEventCreate") {
                    return Some(place(expr.span));
                }
                let callees = functions_in(db, function, name);
                if callees.is_empty() && library(name).is_none() && !is_plain_type(name) || depth >= MAX_DEPTH {
                    return Some(place(expr.span));
                }
                for callee in callees {
                    if !callee.has_body(db) {
                        return Some(place(expr.span));
                    }
                    if let Some(found) = leaves(db, callee, seen, depth + 1) {
                        return Some(found);
                    }
                }
            }
            ExprKind::Call { name: None, .. } | ExprKind::Unknown { .. } => return Some(place(expr.span)),
            _ => {
                // A user's operator may keep what it gets.
                let used = operator_use(body, e).filter(|_| has_operators);
                if used.is_some_and(|(_, operands)| operands.iter().any(|operand| !is_plain(places, *operand))) {
                    return Some(place(expr.span));
                }
            }
        }
    }
    None
}

/// A place is in a variable of the function's own, or may be: `a`, `a[i]`, `s.v`.
fn is_own(body: &Body, place: ExprId) -> bool {
    match &body.expr(place).kind {
        ExprKind::Paren(inner) => is_own(body, *inner),
        ExprKind::Field { base, arrow: false, .. } => is_own(body, *base),
        ExprKind::Index { base, .. } | ExprKind::Deref(base) => {
            let base = body.strip_parens(*base);
            match &body.expr(base).kind {
                ExprKind::Name(Name::Local(b)) => {
                    let variable = body.binding(*b);
                    !variable.ty.array.is_empty() && variable.storage != Storage::Param
                }
                ExprKind::Index { .. } | ExprKind::Field { arrow: false, .. } => is_own(body, base),
                _ => false,
            }
        }
        // A reference may lead to a variable of the caller's.
        ExprKind::Name(Name::Local(_)) => true,
        _ => false,
    }
}

/// What is done with an address lets nobody else have it: something is read or written there, or a function of the library gets it that
/// keeps nothing.
fn is_used_at_once(
    db: &dyn Db,
    function: FunctionItem<'_>,
    body: &Body,
    parents: &HashMap<ExprId, ExprId>,
    mut e: ExprId,
) -> bool {
    while let Some(outer) = parents.get(&e).copied() {
        match &body.expr(outer).kind {
            ExprKind::Paren(_) => e = outer,
            ExprKind::Binary(..) => e = outer,
            ExprKind::Cast { ty, .. } if ty.contains('*') => e = outer,
            ExprKind::Index { base, .. } => {
                // Of a row of an array it is asked by itself.
                return body.strip_parens(*base) == body.strip_parens(e) || *base == e;
            }
            ExprKind::Deref(_) | ExprKind::Field { .. } | ExprKind::SizeOf | ExprKind::AddrOf(_) => return true,
            ExprKind::Call { name: Some(name), .. } => {
                return functions_in(db, function, name).is_empty() && keeps_arguments(db, function, name);
            }
            _ => return false,
        }
    }
    false
}

/// Where a part of a function, or a function that it calls there, may take a pointer or a stream from memory. `parts` are relative to the
/// function.
pub fn may_take(db: &dyn Db, function: FunctionItem<'_>, parts: &[Span]) -> Option<FileRange> {
    let mut seen = Vec::new();
    takes(db, function, Some(parts), &mut seen, 0)
}

fn takes<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    parts: Option<&[Span]>,
    seen: &mut Vec<FunctionItem<'db>>,
    depth: u32,
) -> Option<FileRange> {
    if parts.is_none() {
        if seen.contains(&function) {
            return None;
        }
        seen.push(function);
    }
    let body = &*body(db, function);
    let inside = |span: Span| parts.is_none_or(|parts| parts.iter().any(|part| part.contains(span)));
    let place = |span: Span| FileRange {
        file: function.file(db),
        range: span.shift(function.start(db)),
    };
    let unclear = hidden(db, function).iter().any(|h| h.anywhere || inside(h.span));
    let unread = body.stmts.iter().find(|stmt| {
        let kind = matches!(stmt.kind, StmtKind::Asm { .. } | StmtKind::Unknown { .. });
        kind && inside(stmt.span)
    });
    if unclear || unread.is_some() {
        let span = unread.map_or(function.signature(db).name_span, |stmt| stmt.span);
        return Some(place(span));
    }
    let places = Places { db, function, body };
    for (index, expr) in body.exprs.iter().enumerate().filter(|(_, expr)| inside(expr.span)) {
        let e = ExprId(index as u32);
        let found = match &expr.kind {
            ExprKind::Unknown { .. } | ExprKind::Call { name: None, .. } => true,
            ExprKind::Call { callee, .. }
                if matches!(body.expr(body.strip_parens(*callee)).kind, ExprKind::Field { .. }) =>
            {
                true
            }
            ExprKind::Index { .. } | ExprKind::Deref(_) | ExprKind::Field { .. } if is_own(body, e) => false,
            ExprKind::Index { .. } | ExprKind::Deref(_) | ExprKind::Field { arrow: true, .. } => {
                match places.shape(e) {
                    Some(shape) if shape.dims > 0 => false,
                    Some(shape) => shape.pointers > 0 || may_hold(&places, &shape.base, 0),
                    None => true,
                }
            }
            ExprKind::Name(Name::Other(name)) => match meaning_in(db, function, name) {
                Meaning::Global(global) => global.pointer || may_hold(&places, &global.base, 0),
                _ => false,
            },
            ExprKind::Cast { ty, operand, .. } if ty.contains(['*', '&']) || ty.contains("cudaStream_t") => {
                let shape = places.shape(*operand);
                let address = shape.is_some_and(|shape| shape.pointers > 0 || shape.dims > 0);
                !address && !matches!(body.expr(body.strip_parens(*operand)).kind, ExprKind::Literal(_))
            }
            ExprKind::Call { name: Some(name), .. } => {
                let callees = functions_in(db, function, name);
                let unknown = callees.is_empty() && library(name).is_none() && !is_plain_type(name);
                if unknown || depth >= MAX_DEPTH || callees.iter().any(|callee| !callee.has_body(db)) {
                    true
                } else if let Some(found) = callees.into_iter().find_map(|f| takes(db, f, None, seen, depth + 1)) {
                    return Some(found);
                } else {
                    false
                }
            }
            _ => false,
        };
        if found {
            return Some(place(expr.span));
        }
    }
    None
}

/// A value of a type may be, or have in it, a stream or a pointer.
fn may_hold(places: &Places<'_>, ty: &str, depth: u32) -> bool {
    let ty = places.alias(ty);
    let ty = ty
        .trim()
        .trim_start_matches("const ")
        .trim_start_matches("struct ")
        .trim();
    if ty.contains('*') || depth > MAX_DEPTH || matches!(unqualified(ty), "cudaStream_t" | "cudaEvent_t") {
        return true;
    }
    if is_plain_type(ty) {
        return false;
    }
    let files = included_files(places.db, places.function.file(places.db)).iter();
    let mut classes = files
        .flat_map(|file| items(places.db, *file).types.iter())
        .filter(|class| class.name == ty)
        .peekable();
    let hides = places
        .function
        .signature(places.db)
        .scope_names
        .iter()
        .any(|name| name == ty)
        || places.body.declared.contains(ty);
    if classes.peek().is_none() || hides {
        return true;
    }
    classes.any(|class| {
        !class.bases.is_empty()
            || !class.template_names.is_empty()
            || class.fields.iter().any(|(ty, declarator)| {
                declarator.contains(['*', '&', '(']) || words(ty).next().is_none() || may_hold(places, ty, depth + 1)
            })
    })
}
