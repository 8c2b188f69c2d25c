//! `unordered-child-result`

use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::dependence::{Kind as Access, after};
use crate::facts::launch::{Child, Launchers, Places, Stream, launches, statement_places};
use crate::facts::uniformity::changes_around;
use crate::hir::items::FunctionItem;
use crate::hir::{BinOp, Body, ExprId, ExprKind, StmtKind, UnOp, body};

pub(super) const KIND: Kind = Kind {
    id: "unordered-child-result",
    severity: Severity::Warning,
    doc: DOC,
    rewrites: &[],
    find: unordered_child_result,
};

const DOC: &str = r#"The parent reads what a child grid writes, and nothing orders the two.

## What it does
Finds reads, after a launch, of memory that the launched kernel writes, itself or through what it calls and launches. They read elements of
an array or of a variable whose subscripts, as functions of thread and block indices, may equal those of the writes. In a loop that
launches, a read before the launch comes after it in the next iteration: it is found if every iteration reads at the same place. Launches
into `cudaStreamTailLaunch` are left alone. So are functions that synchronize with their children, which CUDA 12 no longer allows.

## Why is this bad
Without `cudaDeviceSynchronize()`, which no longer exists in device code, a parent cannot wait for its child: the child may run before
the read, after it, or after the parent has ended. `__syncthreads()` waits for the block's own threads only.

## Example
```cuda
__global__ void sum(const int* values, int n, int* result) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(result, values[i]);
}

__global__ void parent(const int* values, int n, int* result, float* mean) {
    if (threadIdx.x == 0) {
        sum<<<(n + 255) / 256, 256>>>(values, n, result);
        *mean = (float)*result / n;
    }
}
```

## Use instead
Put what needs the result into a kernel of its own, and launch it after the child into the same stream, or into
`cudaStreamTailLaunch`, where it runs after all other children.

```cuda
__global__ void sum(const int* values, int n, int* result) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(result, values[i]);
}

__global__ void divide(const int* result, int n, float* mean) { *mean = (float)*result / n; }

__global__ void parent(const int* values, int n, int* result, float* mean) {
    if (threadIdx.x == 0) {
        sum<<<(n + 255) / 256, 256>>>(values, n, result);
        divide<<<1, 1>>>(result, n, mean);
    }
}
```
"#;

fn unordered_child_result<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let all = launches(db, function);
    let text = function.text(db);
    let waits = ["cudaDeviceSynchronize", "cudaThreadSynchronize"];
    if all.iter().all(|l| l.launchers == Launchers::Host) || waits.iter().any(|name| text.contains(name)) {
        return Vec::new();
    }
    let body = body(db, function);
    if !body.problems.is_empty() {
        return Vec::new();
    }
    let places = statement_places(db, function);
    let mut found: Vec<Finding<'db>> = Vec::new();
    for (facts, behind) in all.iter().zip(after(db, function)) {
        let Child::Kernel(child) = facts.child else { continue };
        if facts.in_lambda || facts.stream == Stream::TailLaunch || facts.launchers == Launchers::Host {
            continue;
        }
        for meeting in &behind.meetings {
            // What an atomic function reads may be meant to be found in any state.
            let reads = matches!(meeting.parent.kind, Access::Read | Access::Update { .. });
            let span = body.expr(meeting.at).span;
            let known = found.iter().any(|f| f.span == span);
            if !reads || meeting.child.kind.reads_only() || known {
                continue;
            }
            if meeting.later_iteration && !in_every_iteration(db, function, &body, &places, facts.expr, meeting.at) {
                continue;
            }
            let name = child.name(db);
            let mut related = vec![(function, facts.span, "launched here".to_owned())];
            if meeting.parent.function != function {
                let reader = meeting.parent.function.name(db);
                related.push((
                    meeting.parent.function,
                    meeting.parent.span,
                    format!("`{reader}` reads it here"),
                ));
            }
            let verb = meeting.child.kind.verb();
            let writer = meeting.child.function.name(db);
            related.push((
                meeting.child.function,
                meeting.child.span,
                format!("`{writer}` {verb} it here"),
            ));
            found.push(Finding {
                span,
                message: match meeting.later_iteration {
                    true => format!(
                        "nothing orders this read with the write in `{name}`, which the previous iteration launched"
                    ),
                    false => format!("nothing orders this read with the write in `{name}`, which was launched before"),
                },
                label: "the child may not have run yet".to_owned(),
                related,
                help: Some(
                    "read it in a kernel that is launched after the child into the same stream, or into `cudaStreamTailLaunch`"
                        .to_owned(),
                ),
            });
        }
    }
    found.sort_by_key(|f| f.span);
    found
}

/// A read in front of a launch, in the same loop, that is made in each iteration at the same place, so that the next iteration finds
/// what the child of the one before writes.
fn in_every_iteration(
    db: &dyn Db,
    function: FunctionItem<'_>,
    body: &Body,
    places: &Places,
    launch: ExprId,
    read: ExprId,
) -> bool {
    let of_launch = places.loops_around(body, launch);
    let common = places
        .loops_around(body, read)
        .into_iter()
        .find(|l| of_launch.iter().any(|o| o.stmt == l.stmt));
    let Some(common) = common else {
        return false;
    };
    let changes = |e: ExprId| changes_around(db, function, body, e, common.stmt);
    stays(body, read, &changes)
        && [launch, read].iter().all(|at| {
            let own = places.statement_of(*at);
            let inside = places
                .around(*at)
                .take_while(|s| *s != common.stmt)
                .filter(|s| Some(*s) != own);
            inside.into_iter().all(|stmt| match &body.stmt(stmt).kind {
                StmtKind::If { cond: Some(cond), .. } | StmtKind::Switch { cond, .. } => {
                    !picks_iterations(body, *cond, &changes)
                }
                _ => true,
            })
        })
}

/// The place that an expression reads, or that it hands to a function that reads it, is the same in all iterations.
fn stays(body: &Body, read: ExprId, changes: &dyn Fn(ExprId) -> bool) -> bool {
    let same = |e: &ExprId| !changes(*e);
    match &body.expr(read).kind {
        ExprKind::Paren(e) => stays(body, *e, changes),
        ExprKind::Index { base, index } => (same(base) || stays(body, *base, changes)) && same(index),
        ExprKind::Deref(base) => same(base),
        ExprKind::Field { base, arrow: false, .. } => stays(body, *base, changes),
        ExprKind::Field { base, arrow: true, .. } => same(base),
        ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => stays(body, *place, changes),
        ExprKind::Call { args, .. } => args.iter().all(same),
        ExprKind::Name(_) => true,
        _ => false,
    }
}

/// The condition asks which iteration it is: `i == 0`, `!first`.
fn picks_iterations(body: &Body, cond: ExprId, changes: &dyn Fn(ExprId) -> bool) -> bool {
    match &body.expr(cond).kind {
        ExprKind::Paren(e) | ExprKind::Unary(UnOp::Not, e) => picks_iterations(body, *e, changes),
        ExprKind::Logical { lhs, rhs, .. } => {
            picks_iterations(body, *lhs, changes) || picks_iterations(body, *rhs, changes)
        }
        ExprKind::Binary(BinOp::Eq | BinOp::Ne, a, b) => changes(*a) || changes(*b),
        ExprKind::Binary(..) => false,
        _ => changes(cond),
    }
}
