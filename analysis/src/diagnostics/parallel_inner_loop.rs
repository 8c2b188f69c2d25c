//! `parallel-inner-loop`

use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::base::span::Span;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::dependence::{CountedLoop, LoopMemory, Sort, counted_loop};
use crate::facts::effects::direct;
use crate::facts::launch::launches;
use crate::facts::uniformity::{Level, uniformity};
use crate::hir::items::FunctionItem;
use crate::hir::walk::{all_exprs, all_in_expr};
use crate::hir::{BindingId, Body, ExprId, ExprKind, Name, StmtId, StmtKind, body};

pub(super) const KIND: Kind = Kind {
    id: "parallel-inner-loop",
    severity: Severity::Info,
    doc: DOC,
    rewrites: &["extract-and-optimize", "extract-launch"],
    find: parallel_inner_loop,
};

const DOC: &str = r#"A loop in each thread whose iterations are independent, and of which some threads have many more than others.

## What it does
Finds `for` loops of kernels that count up to a number which each thread reads from memory: the end of a row of a sparse matrix or graph, say.
Their iterations don't use what others write, or only update memory by atomic operations. Kernels that launch grids are left out, and so are
loops that collect a result in a variable.

## Why is this bad
The threads of a warp wait for the one with the most iterations. In a graph with a few vertices of many edges, most threads of the GPU have
nothing to do while these loops run. The iterations of a long loop could be threads.

## Example
```cuda
__global__ void scatter(const int* __restrict__ row, const int* __restrict__ col, int* __restrict__ out, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    for (int e = row[v]; e < row[v + 1]; ++e)
        atomicAdd(&out[col[e]], 1);
}
```

## Use instead
A warp for each row where rows are long, as here; or a child grid for each long row: the rewrite `extract-launch` makes a launch of the
loop, and `optimize` keeps short rows as they are.

```cuda
__global__ void scatter(const int* __restrict__ row, const int* __restrict__ col, int* __restrict__ out, int n) {
    int v = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (v >= n) return;
    for (int e = row[v] + threadIdx.x % 32; e < row[v + 1]; e += 32)
        atomicAdd(&out[col[e]], 1);
}
```
"#;

fn parallel_inner_loop<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    if !function.signature(db).kernel {
        return Vec::new();
    }
    let body = body(db, function);
    let loops = (0..body.stmts.len() as u32).map(StmtId);
    let loops: Vec<StmtId> = loops
        .filter(|stmt| matches!(body.stmt(*stmt).kind, StmtKind::For { .. }))
        .collect();
    if loops.is_empty() || !launches(db, function).is_empty() {
        return Vec::new();
    }
    let found = loops.into_iter().filter_map(|stmt| {
        let counted = counted_loop(db, function, stmt).ok()?;
        let levels = uniformity(db, function);
        let varies = |e: ExprId| levels.exprs.get(&e).is_some_and(|u| u.level == Level::Varying);
        let array = read_from(&body, counted.limit, &varies)?;
        let differs = varies(counted.limit);
        if counted.step != 1 || !differs || !is_parallel(db, function, &body, &counted) {
            return None;
        }
        let head = Span::new(body.stmt(stmt).span.start, body.stmt(counted.body).span.start);
        let text = function.text(db);
        let head = Span::new(head.start, head.start + head.text(&text).trim_end().len() as u32);
        Some(Finding {
            span: head,
            message: "threads of a warp wait for the one with the most iterations of this loop, and its iterations are independent".to_owned(),
            label: format!("each thread has a number of iterations of its own, read from `{array}`"),
            related: Vec::new(),
            help: None,
        })
    });
    found.collect()
}

/// The variable through which each thread reads a number from a place of its own, by way of the variable that holds it, too.
fn read_from(body: &Body, number: ExprId, varies: &dyn Fn(ExprId) -> bool) -> Option<String> {
    let mut todo = vec![number];
    let mut left = 16;
    while let Some(e) = todo.pop().filter(|_| left > 0) {
        left -= 1;
        for part in all_in_expr(body, e) {
            match &body.expr(part).kind {
                ExprKind::Index { base, index: place } | ExprKind::Deref(base @ place) if varies(*place) => {
                    if let ExprKind::Name(Name::Local(b)) = body.expr(body.strip_parens(*base)).kind {
                        return Some(body.binding(b).name.clone());
                    }
                }
                ExprKind::Name(Name::Local(b)) => todo.extend(body.initialiser(*b)),
                _ => {}
            }
        }
    }
    None
}

/// Whether the iterations are independent but for atomic operations, write something, and meet nobody.
fn is_parallel<'db>(db: &'db dyn Db, function: FunctionItem<'db>, body: &Body, counted: &CountedLoop) -> bool {
    let span = body.stmt(counted.stmt).span;
    let facts = &direct(db, function).facts;
    let meets = facts
        .barriers
        .iter()
        .chain(&facts.warp_ops)
        .any(|at| span.contains(*at));
    let outside = |b: BindingId| !span.contains(body.binding(b).span);
    let changes = |e: &ExprId| match &body.expr(*e).kind {
        ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => {
            matches!(body.expr(body.strip_parens(*place)).kind, ExprKind::Name(Name::Local(b)) if outside(b))
        }
        ExprKind::Lambda { .. } | ExprKind::Unknown { .. } => true,
        _ => false,
    };
    if meets || all_exprs(body, counted.body).iter().any(changes) {
        return false;
    }
    let memory = LoopMemory::of(db, function, counted.stmt);
    memory.writes()
        && memory.gap().is_none()
        && memory.leaves().is_none()
        && memory.between().iter().all(|clash| clash.sort <= Sort::Overlap)
}
