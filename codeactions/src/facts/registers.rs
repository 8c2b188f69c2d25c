//! How many registers the code of a kernel may take: an estimate from above, as nothing but a compiler knows. It is there to tell small
//! kernels, which fit into blocks of any size, from those for which that isn't clear.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::launch::constant_value;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::library::library;
use gridfuse_analysis::hir::resolve::functions_in;
use gridfuse_analysis::hir::{Body, ExprKind, StmtKind, Storage, Type, body};

use crate::facts::calls::{VECTORS, is_plain_name};
use crate::facts::sizes::size_of;

/// A loop is unrolled by this factor, mostly, and then there is so much of what is in it at a time.
const UNROLLED: u64 = 4;

/// Calls in calls that are looked into.
const MAX_DEPTH: u32 = 6;

/// What an address takes, and a value that is on its way.
const ADDRESS: u64 = 2;

/// The registers of a function's variables, of what it loads, and of what it calls. `None`: it isn't clear that there is a bound.
pub fn of_code(db: &dyn Db, function: FunctionItem<'_>) -> Option<u64> {
    of_code_in(db, function, 0)
}

fn of_code_in(db: &dyn Db, function: FunctionItem<'_>, depth: u32) -> Option<u64> {
    if depth > MAX_DEPTH {
        return None;
    }
    let body = body(db, function);
    if !body.problems.is_empty() {
        return None;
    }
    let loops: Vec<Span> = body
        .stmts
        .iter()
        .filter(|s| {
            matches!(
                s.kind,
                StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::RangeFor { .. }
            )
        })
        .map(|s| s.span)
        .collect();
    let times = |span: Span| {
        if loops.iter().any(|l| l.contains(span)) {
            UNROLLED
        } else {
            1
        }
    };
    let mut registers = 0u64;
    for variable in body.bindings.iter().filter(|b| b.storage == Storage::Local) {
        registers += of_variable(db, function, &body, &variable.ty)? * times(variable.span);
    }
    for expr in &body.exprs {
        match &expr.kind {
            ExprKind::Index { .. } | ExprKind::Deref(_) => registers += ADDRESS * times(expr.span),
            ExprKind::Unknown { .. } | ExprKind::Lambda { .. } => return None,
            ExprKind::Construct { ty, .. } if !is_plain(ty) => return None,
            ExprKind::Call { name, .. } => {
                let name = name.as_deref()?;
                let functions = functions_in(db, function, name);
                if functions.is_empty() && library(name).is_none() && !is_plain(name) {
                    return None;
                }
                for callee in functions {
                    if !callee.has_body(db) {
                        return None;
                    }
                    registers += of_code_in(db, callee, depth + 1)? * times(expr.span);
                }
            }
            _ => {}
        }
    }
    Some(registers)
}

fn of_variable(db: &dyn Db, function: FunctionItem<'_>, body: &Body, ty: &Type) -> Option<u64> {
    if ty.reference || ty.base == "auto" && ty.array.is_empty() {
        return Some(ADDRESS);
    }
    let mut elements = 1u64;
    for extent in &ty.array {
        let extent = constant_value(db, function, body, (*extent)?)?;
        elements = elements.checked_mul(u64::try_from(extent).ok()?)?;
    }
    let element = Type {
        array: Vec::new(),
        ..ty.clone()
    };
    size_of(&element)?.0.div_ceil(4).checked_mul(elements)
}

fn is_plain(ty: &str) -> bool {
    let name = ty.trim_start_matches("make_");
    is_plain_name(name) || VECTORS.contains(&name)
}
