//! Variables that are changed where nothing but an operator, a class or an array says so.

use std::collections::HashSet;

use super::memory::{Class, Places};
use super::objects::objects;
use crate::base::db::{Db, SourceFile};
use crate::facts::hidden::{hidden, may_run_unseen, symbol, symbol_of, unary};
use crate::facts::summary::looks_at_the_thread;
use crate::hir::flow::operands;
use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, items};
use crate::hir::{BindingId, Body, ExprId, ExprKind, Name, StmtKind, Type, body, parameters};

/// The operators of the workspace that may change an operand: `>>`, `[]`; empty for one of which it isn't known which it is.
#[salsa::tracked(returns(ref))]
fn changing_operators(db: &dyn Db, file: SourceFile) -> HashSet<String> {
    let functions = included_files(db, file).iter().flat_map(|f| &items(db, *f).functions);
    let named = functions.filter_map(|f| {
        let symbol = symbol_of(db, *f)?;
        may_change_an_operand(db, *f).then_some(symbol)
    });
    named.collect()
}

/// The operators of the workspace whose result may differ between threads though their operands don't: `+`, `==`; empty for one of which
/// it isn't known which it is.
#[salsa::tracked(returns(ref))]
fn differing_operators(db: &dyn Db, file: SourceFile) -> HashSet<String> {
    let functions = included_files(db, file).iter().flat_map(|f| &items(db, *f).functions);
    let named = functions.filter_map(|f| {
        let symbol = symbol_of(db, *f)?;
        (f.has_body(db) && *looks_at_the_thread(db, *f)).then_some(symbol)
    });
    named.collect()
}

/// Whether an operator between such operands may be a user's, whose result differs between threads though the operands don't.
pub(super) fn result_may_differ(places: Places<'_>, symbol: &str, operands: &[ExprId]) -> bool {
    let differing = differing_operators(places.db, places.function.file(places.db));
    if !differing.contains(symbol) && !differing.contains("") {
        return false;
    }
    // Of two numbers, or pointers, it is C++'s own.
    let own = |e: &ExprId| {
        let shape = places.shape(places.body.strip_parens(*e));
        shape.is_some_and(|s| s.pointers > 0 || s.dims > 0 || places.class_kind(&s.base, &[]) == Class::Plain)
            || matches!(
                places.body.expr(places.body.strip_parens(*e)).kind,
                ExprKind::Literal(_)
            )
    };
    !operands.iter().all(own)
}

/// A member that isn't `const`, or a function that takes something by a reference that isn't.
fn may_change_an_operand(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    let signature = function.signature(db);
    let by_reference = |ty: &Type| ty.complex || ty.reference && !(ty.const_base && ty.pointers == 0);
    let text = function.text(db);
    let behind = text.get(signature.params_span.end as usize..).unwrap_or("");
    let end = behind.find(['{', ';']).unwrap_or(behind.len());
    let constant = crate::base::words::words(behind.get(..end).unwrap_or("")).any(|word| word == "const");
    let own = signature.member && !constant;
    own || parameters(db, function).iter().any(|p| by_reference(&p.ty))
}

/// The local variables that something may change which no assignment shows: a user's operator that takes them by reference, an operator
/// or a member array of their own class, a class that keeps a reference to them.
#[salsa::tracked(returns(ref))]
pub fn class_changes<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> HashSet<BindingId> {
    let file = function.file(db);
    let body = &*body(db, function);
    let places = Places { db, function, body };
    let operators = changing_operators(db, file);
    let may_change = |symbol: &str| operators.contains(symbol) || operators.contains("");
    let mut out = HashSet::new();
    let is_class = |base: &str| places.class_kind(base, &[]) != Class::Plain;
    // The value of an object of a class; a number where that isn't known.
    let class = |e: ExprId| {
        let shape = places.shape(body.strip_parens(e));
        shape.is_some_and(|s| s.pointers == 0 && s.dims == 0 && is_class(&s.base))
    };
    let unknown = |e: ExprId| {
        let inner = body.strip_parens(e);
        let named = matches!(
            &body.expr(inner).kind,
            ExprKind::Name(Name::Other(_)) | ExprKind::Call { .. } | ExprKind::Field { .. } | ExprKind::Unknown { .. }
        );
        named && places.shape(inner).is_none()
    };
    let changed = |e: ExprId, out: &mut HashSet<BindingId>| out.extend(objects(places, e));
    // A member array that becomes a pointer.
    let decays = |e: ExprId| {
        let inner = body.strip_parens(e);
        let member = matches!(
            body.expr(inner).kind,
            ExprKind::Index { .. } | ExprKind::Field { arrow: false, .. }
        );
        member && places.shape(inner).is_some_and(|s| s.dims > 0)
    };
    for expr in &body.exprs {
        match &expr.kind {
            ExprKind::Binary(op, a, b) => {
                let theirs = [*a, *b].iter().any(|e| class(*e) || unknown(*e));
                if theirs && may_change(symbol(*op)) {
                    changed(*a, &mut out);
                    changed(*b, &mut out);
                }
            }
            ExprKind::Unary(op, e) if class(*e) && may_change(unary(*op)) => changed(*e, &mut out),
            ExprKind::Deref(e) | ExprKind::Index { base: e, .. } if class(*e) => changed(*e, &mut out),
            ExprKind::Field { base, arrow: true, .. } if class(*base) => changed(*base, &mut out),
            ExprKind::Call { callee, args, .. } => {
                let target = body.strip_parens(*callee);
                if matches!(body.expr(target).kind, ExprKind::Name(Name::Local(_))) && class(target) {
                    changed(target, &mut out);
                }
                for arg in args {
                    if let ExprKind::InitList(parts) = &body.expr(*arg).kind {
                        parts.iter().for_each(|part| changed(*part, &mut out));
                    }
                }
            }
            ExprKind::Cast { ty, operand, .. } if ty.contains('&') => changed(*operand, &mut out),
            _ => {}
        }
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
    for stmt in &body.stmts {
        let StmtKind::Decl(decls) = &stmt.kind else { continue };
        for decl in decls {
            let Some(init) = decl.init else { continue };
            let ty = &body.binding(decl.binding).ty;
            if decays(init) {
                changed(init, &mut out);
            }
            // A class may keep a reference to what it is made of.
            let keeps = ty.pointers == 0 && places.class_kind(&ty.base, &[]) == Class::Opaque && ty.base != "auto";
            let mut parts = vec![init];
            while let Some(e) = parts.pop() {
                match &body.expr(e).kind {
                    ExprKind::InitList(inner) | ExprKind::Construct { args: inner, .. } if keeps => parts.extend(inner),
                    // A copy of an object of that class.
                    _ if e == init && class(e) => {}
                    _ if keeps => changed(e, &mut out),
                    _ => {}
                }
            }
        }
    }
    out
}

/// The local variables of which a place may be a part: `x`, `x.f`, `x.a[i]` for a member array, `c ? x : y`; not `*p`, `p[i]`.
pub fn variables_of_place(db: &dyn Db, function: FunctionItem<'_>, body: &Body, place: ExprId) -> Vec<BindingId> {
    objects(Places { db, function, body }, place)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::host::Host;

    #[test]
    fn operators_that_may_change_an_operand() {
        let mut host = Host::new();
        let text = "struct Reader { int n; __device__ int& operator[](int i) { return n; }\n  __device__ int operator()(int i) const { return n; } };\n\
                    __device__ Reader& operator>>(Reader& r, int& x) { x = ++r.n; return r; }\n\
                    __device__ float3 operator*(const float3& a, float b) { return a; }\n\
                    __device__ inline float3 operator + (float3 a, float3 b) { return a; }\n\
                    inline __host__ __device__ void operator+=(float3& a, float3 b) { a.x += b.x; }\n";
        let file = host.set_file(Path::new("/a.cu"), text);
        let db = host.db();
        let names: Vec<String> = items(db, file)
            .functions
            .iter()
            .map(|f| f.name(db).to_owned())
            .collect();
        let mut found: Vec<&str> = changing_operators(db, file).iter().map(String::as_str).collect();
        found.sort_unstable();
        assert_eq!(found, ["+=", ">>", "[]"], "{names:?}");
    }
}
