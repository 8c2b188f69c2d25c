//! `aggregate-atomics`

use std::collections::HashSet;

use gridfuse_analysis::db::Db;
use gridfuse_analysis::hir::{BinOp, Body, ExprId, ExprKind, Name, StmtId, StmtKind, body};
use gridfuse_analysis::items::FunctionItem;
use gridfuse_analysis::launch::{LaunchId, Launchers, who_gets_to};
use gridfuse_analysis::resolve::functions_named;
use gridfuse_analysis::span::FileRange;

use super::finish;
use crate::child::Child;
use crate::ctype;
use crate::edit::{EditBuilder, SourceEdit};
use crate::effects::{BUILTINS, effects};
use crate::fission::uses::{all_in_expr, all_stmts};
use crate::include::Header;
use crate::names::Names;
use crate::plain_pointer::is_pointer;
use crate::pure;
use crate::rewrite::{Ineligible, Options, Rewrite};
use crate::site::{Refusals, Site, refuse};

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "aggregate-atomics",
    title: "Combine the child's atomic operations within a warp",
    doc: DOC,
    options: &[],
    apply,
};

pub use crate::calls::TOGETHER as NAMESPACE;

/// Their names.
const OPERATIONS: [&str; 7] = [
    "atomicAdd",
    "atomicSub",
    "atomicMin",
    "atomicMax",
    "atomicAnd",
    "atomicOr",
    "atomicXor",
];

const DOC: &str = r#"Lets the threads of a warp that are at the same atomic operation of the child together combine their values first, and one of them do it
for all: where every thread of a child grid adds to the same place, as in the sum over the neighbours of one vertex, the operations go one
after the other, and a warp does one of them instead of 32.

The result is the same to the last bit: whole numbers are combined (by the instruction `redux.sync`, on GPUs that have it), and
floating-point numbers, whose sum depends on the order, are added as before. Threads whose places differ do their operations as before, too,
so the child's code stays right wherever it runs.

## Needs
- `atomicAdd`, `atomicSub`, `atomicMin`, `atomicMax`, `atomicAnd`, `atomicOr` or `atomicXor` as a statement, so that nobody looks at
  the old value; on a place that the child's arguments alone decide, and not by one thread of a block (`if (threadIdx.x == 0)`).
- No fence (`__threadfence()`), nor anything that may be one: it would be that of another thread than does the operation.

## Before
```cuda
__global__ void check(const int* col, const int* weight, int* too_light, int v, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && weight[begin + i] < col[begin + i]) atomicAdd(&too_light[v], 1);
}

__global__ void verify(const int* row, const int* col, const int* weight, int* too_light, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) check<<<(count + 127) / 128, 128>>>(col, weight, too_light, v, begin, count);
}
```

## After
```cuda
#include "gridfuse.cuh"

__global__ void check(const int* col, const int* weight, int* too_light, int v, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && weight[begin + i] < col[begin + i]) gridfuse::together::atomicAdd(&too_light[v], 1);
}

__global__ void verify(const int* row, const int* col, const int* weight, int* too_light, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) check<<<(count + 127) / 128, 128>>>(col, weight, too_light, v, begin, count);
}
```

## Source
Adinets: CUDA Pro Tip: Optimized Filtering with Warp-Aggregated Atomics, NVIDIA 2014; for places that are the same for a whole grid.
"#;

fn apply<'db>(db: &'db dyn Db, launch: LaunchId<'db>, options: &Options) -> Result<SourceEdit, Ineligible> {
    options.validate(REWRITE.options)?;
    let site = Site::new(db, launch)?;
    let mut refusals = Refusals::default();
    site.refuse_common(&mut refusals);
    let child = site.child(&mut refusals);
    let header = Header::for_file(db, site.file)
        .map_err(|r| refusals.add(r.text, r.place))
        .ok();
    refusals.check()?;
    let (Some(child), Some(header)) = (child, header) else {
        return Err(refuse("the launch is not understood", Some(site.here())));
    };
    let worker = worker(db, child);
    let found = uncombined(db, worker);
    if found.is_empty() {
        let name = worker.signature(db).name_span.shift(worker.start(db));
        return Err(refuse(
            format!(
                "`{}` has no atomic operation as a statement on a place that its arguments alone decide",
                site.child_name()
            ),
            Some(FileRange {
                file: worker.file(db),
                range: name,
            }),
        ));
    }
    refuse_order(db, worker, site.child_name(), &mut refusals);
    refusals.check()?;
    let mut edit = EditBuilder::new(db);
    header.include_in(db, &mut edit, worker.file(db));
    for start in found {
        edit.insert(worker.file(db), start + worker.start(db), NAMESPACE.to_owned());
    }
    finish(edit)
}

/// The child does such operations, so that there is something to gain.
pub fn has_some(db: &dyn Db, child: FunctionItem<'_>) -> bool {
    let worker = worker(db, child);
    let mut refusals = Refusals::default();
    refuse_order(db, worker, "", &mut refusals);
    refusals.is_empty() && !uncombined(db, worker).is_empty()
}

/// Refuses a child that says in which order others see what it writes: behind a thread's fence stands an atomic operation that another
/// thread would do for it.
fn refuse_order(db: &dyn Db, worker: FunctionItem<'_>, name: &str, refusals: &mut Refusals) {
    let effects = effects(db, worker);
    for (list, what) in [
        (
            &effects.fences,
            "has a fence, which orders what a thread writes before its own atomic operation",
        ),
        (&effects.unknown, "uses what may be a fence"),
    ] {
        if let Some(first) = list.first() {
            refusals.add(format!("`{name}` {what}: {}", first.what), Some(first.place));
        }
    }
    if let Some(asm) = effects.asm.first() {
        refusals.add(
            format!("`{name}` holds inline assembly, which may be a fence"),
            Some(asm.place),
        );
    }
}

/// Where the calls of those begin that are CUDA's.
fn uncombined(db: &dyn Db, function: FunctionItem<'_>) -> Vec<u32> {
    let body = body(db, function);
    let found = on_one_place(db, function).into_iter();
    let plain = found.filter(|operation| !operation.name.starts_with(NAMESPACE));
    plain.map(|operation| body.expr(operation.call).span.start).collect()
}

/// The function that holds the child's code, which an earlier rewrite may have moved.
fn worker<'db>(db: &'db dyn Db, child: FunctionItem<'db>) -> FunctionItem<'db> {
    let read = Child::read(db, child, &mut Names::default(), &mut Refusals::default());
    read.map_or(child, |child| child.worker())
}

/// An atomic operation that is a statement.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The statement.
    pub stmt: StmtId,
    /// The call.
    pub call: ExprId,
    /// `atomicAdd`, or `gridfuse::together::atomicAdd`.
    pub name: String,
    /// Its first argument.
    pub pointer: ExprId,
    /// Its second argument.
    pub value: ExprId,
}

/// The atomic operations of more than one thread of a warp whose old value nobody uses, and whose place is the same for all threads of a
/// grid, in the order of the text.
pub fn on_one_place(db: &dyn Db, function: FunctionItem<'_>) -> Vec<Operation> {
    let file = function.file(db);
    let body = body(db, function);
    let Some(root) = body.root else { return Vec::new() };
    let stmts = all_stmts(&body, root);
    let by_one: HashSet<StmtId> = stmts.iter().flat_map(|stmt| done_by_one(&body, *stmt)).collect();
    let mut found = Vec::new();
    for stmt in stmts.into_iter().filter(|stmt| !by_one.contains(stmt)) {
        let StmtKind::Expr(expr) = body.stmt(stmt).kind else {
            continue;
        };
        let call = body.strip_parens(expr);
        let expr = body.expr(call);
        let ExprKind::Call {
            name: Some(name), args, ..
        } = &expr.kind
        else {
            continue;
        };
        let [pointer, value] = args.as_slice() else { continue };
        let known = match name.strip_prefix(NAMESPACE) {
            Some(plain) => OPERATIONS.contains(&plain),
            None => OPERATIONS.contains(&name.as_str()) && functions_named(db, file, name).is_empty(),
        };
        let place = is_pointer(&body, *pointer) && is_same_for_all(db, function, &body, *pointer);
        // Where one thread comes, for example because all others have returned, there is nothing to combine.
        let many = || matches!(who_gets_to(db, function, call), None | Some(Launchers::ManyThreads));
        if known && !expr.from_macro && place && !is_float(&body, *pointer) && many() {
            found.push(Operation {
                stmt,
                call,
                name: name.clone(),
                pointer: *pointer,
                value: *value,
            });
        }
    }
    found.sort_by_key(|operation| body.expr(operation.call).span.start);
    found
}

/// What an `if` leaves to one thread of the block or of each warp, `if (threadIdx.x == 0) …`: there is nothing to combine. A comparison
/// of something in memory says nothing about how many threads come there. It's seen in the text, so also where the body has been moved and
/// `threadIdx` is a parameter, of which [`who_gets_to`] knows nothing.
fn done_by_one(body: &Body, stmt: StmtId) -> Vec<StmtId> {
    let StmtKind::If {
        cond: Some(cond), then, ..
    } = &body.stmt(stmt).kind
    else {
        return Vec::new();
    };
    let mut conditions = vec![body.strip_parens(*cond)];
    while let Some(cond) = conditions.pop() {
        match &body.expr(cond).kind {
            ExprKind::Logical { and: true, lhs, rhs } => conditions.extend([lhs, rhs].map(|e| body.strip_parens(*e))),
            ExprKind::Binary(BinOp::Eq, a, b) => {
                let is_number = |e: &ExprId| matches!(body.expr(body.strip_parens(*e)).kind, ExprKind::Literal(_));
                let loads = all_in_expr(body, cond).into_iter().any(|e| {
                    matches!(
                        body.expr(e).kind,
                        ExprKind::Index { .. }
                            | ExprKind::Deref(_)
                            | ExprKind::Field { arrow: true, .. }
                            | ExprKind::Call { .. }
                    )
                });
                if !loads && (is_number(a) || is_number(b)) {
                    return all_stmts(body, *then);
                }
            }
            _ => {}
        }
    }
    Vec::new()
}

/// The value is the same for all threads of a grid: made of parameters that nothing changes, and of constants.
fn is_same_for_all(db: &dyn Db, function: FunctionItem<'_>, body: &Body, expr: ExprId) -> bool {
    let same = |e: ExprId| is_same_for_all(db, function, body, e);
    match &body.expr(expr).kind {
        ExprKind::Paren(inner) => same(*inner),
        ExprKind::Cast { operand, .. } => same(*operand),
        ExprKind::Literal(_) => true,
        ExprKind::Binary(_, a, b) => same(*a) && same(*b),
        ExprKind::Field { base, arrow: false, .. } => same(*base),
        ExprKind::Name(Name::Local(binding)) => {
            !BUILTINS.contains(&body.binding(*binding).name.as_str())
                && pure::is_immutable_parameter(db, function, body, *binding)
        }
        ExprKind::AddrOf(place) => is_one_place(db, function, body, *place),
        _ => false,
    }
}

/// The place is the same: an element of what a parameter points to, a part of it, or a global variable.
fn is_one_place(db: &dyn Db, function: FunctionItem<'_>, body: &Body, place: ExprId) -> bool {
    let same = |e: ExprId| is_same_for_all(db, function, body, e);
    match &body.expr(place).kind {
        ExprKind::Paren(inner) => is_one_place(db, function, body, *inner),
        ExprKind::Index { base, index } => same(*base) && same(*index),
        ExprKind::Deref(pointer) => same(*pointer),
        ExprKind::Field { base, arrow: true, .. } => same(*base),
        ExprKind::Field { base, .. } => is_one_place(db, function, body, *base),
        ExprKind::Name(Name::Other(_)) => true,
        _ => false,
    }
}

/// The pointer is sure to point to a floating-point number, which isn't combined.
fn is_float(body: &Body, pointer: ExprId) -> bool {
    match &body.expr(pointer).kind {
        ExprKind::Paren(inner) => is_float(body, *inner),
        ExprKind::Binary(_, a, b) => is_float(body, *a) || is_float(body, *b),
        ExprKind::AddrOf(place) => match &body.expr(body.strip_parens(*place)).kind {
            ExprKind::Index { base, .. } => is_float(body, *base),
            ExprKind::Deref(inner) => is_float(body, *inner),
            _ => false,
        },
        ExprKind::Name(Name::Local(binding)) => {
            let ty = &body.binding(*binding).ty;
            ty.pointers == 1
                && matches!(
                    ctype::normalize(&ty.base).as_str(),
                    "float" | "double" | "__half" | "half"
                )
        }
        _ => false,
    }
}
