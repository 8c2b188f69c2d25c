//! `grid-barrier-occupancy`

use std::collections::HashSet;

use crate::base::db::{Db, Workspace};
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::callee::library_called;
use crate::facts::launch::single_definition;
use crate::facts::uniformity::memory::{Places, Root};
use crate::hir::flow::operands;
use crate::hir::items::FunctionItem;
use crate::hir::mentions::has_word;
use crate::hir::{Body, Builtin, ExprId, ExprKind, Name, StmtId, StmtKind, body};

pub(super) const KIND: Kind = Kind {
    id: "grid-barrier-occupancy",
    severity: Severity::Warning,
    doc: DOC,
    rewrites: &[],
    find: grid_barrier_occupancy,
};

const DOC: &str = r#"A hand-made barrier over the grid hangs when not all blocks are resident.

## What it does
Finds hand-made barriers over all blocks: loops that wait until a counter in memory reaches a number that depends on `gridDim`. The same
function increments the counter with an atomic operation. Programs that use cooperative launches, or ask anywhere for the occupancy or the
number of multiprocessors, are left alone.

## Why is this bad
A waiting block keeps its place on the GPU. When the grid has more blocks than the GPU runs at once, the others never start, and the grid
waits for ever. How many fit depends on the GPU, on registers and on shared memory; child grids and other programs take room as well.

## Example
```cuda
__device__ volatile unsigned arrived;

__global__ void two_phases(float* data) {
    data[blockIdx.x * blockDim.x + threadIdx.x] *= 2.0f;
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd((unsigned*)&arrived, 1);
        while (arrived < gridDim.x);
    }
    __syncthreads();
    data[threadIdx.x] += 1.0f;
}
```

## Use instead
Two kernels, the second after the first; or a cooperative launch (`cudaLaunchCooperativeKernel`), which fails instead of hanging, with
`cooperative_groups::this_grid().sync()`. Device code can't launch cooperatively: there the second phase goes into the tail stream.

```cuda
__global__ void second(float* data) { data[threadIdx.x] += 1.0f; }

__global__ void first(float* data) {
    data[blockIdx.x * blockDim.x + threadIdx.x] *= 2.0f;
    if (blockIdx.x == 0 && threadIdx.x == 0) second<<<1, 256, 0, cudaStreamTailLaunch>>>(data);
}
```
"#;

/// Words of programs that see to it that all blocks fit.
const BOUNDED: [&str; 7] = [
    "cudaLaunchCooperativeKernel",
    "cuLaunchCooperativeKernel",
    "cudaLaunchAttributeCooperative",
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
    "cudaOccupancyMaxPotentialBlockSize",
    "multiProcessorCount",
    "cudaDevAttrMultiProcessorCount",
];

fn grid_barrier_occupancy<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let signature = function.signature(db);
    if !(signature.kernel || signature.device) {
        return Vec::new();
    }
    let body = body(db, function);
    let places = Places {
        db,
        function,
        body: &body,
    };
    let counters: Vec<Root> = body
        .exprs
        .iter()
        .filter_map(|e| match &e.kind {
            ExprKind::Call {
                name: Some(name), args, ..
            } if matches!(name.trim_start_matches("::"), "atomicAdd" | "atomicInc")
                && library_called(db, function, name).is_some() =>
            {
                args.first().map(|a| pointee(places, *a))
            }
            _ => None,
        })
        .filter(|root| matches!(root, Root::Global(_) | Root::Through(_)))
        .collect();
    if counters.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for stmt in &body.stmts {
        let (cond, repeated) = match &stmt.kind {
            StmtKind::While {
                cond: Some(cond), body, ..
            } => (*cond, *body),
            StmtKind::DoWhile { cond, body } => (*cond, *body),
            _ => continue,
        };
        let waits = waits_only(&body, repeated) && reads(places, cond).iter().any(|root| counters.contains(root));
        if waits && depends_on_grid(&body, cond) && !bounded(db) {
            found.push(Finding {
                span: body.expr(cond).span,
                message: "this barrier over the grid hangs when the grid has more blocks than the GPU runs at once"
                    .to_owned(),
                label: "waits for all blocks".to_owned(),
                related: Vec::new(),
                help: Some("split the kernel here, or launch it with `cudaLaunchCooperativeKernel`".to_owned()),
            });
        }
    }
    found
}

/// What a pointer points at, casts aside.
fn pointee(places: Places<'_>, mut pointer: ExprId) -> Root {
    let body = places.body;
    for _ in 0..16 {
        pointer = body.strip_parens(pointer);
        match body.expr(pointer).kind {
            ExprKind::Cast { operand, .. } => pointer = operand,
            _ => break,
        }
    }
    places.pointee_root(pointer)
}

/// Memory that a condition reads, also with an atomic operation.
fn reads(places: Places<'_>, cond: ExprId) -> Vec<Root> {
    let body = places.body;
    let mut found = Vec::new();
    let mut todo = vec![cond];
    while let Some(e) = todo.pop() {
        let kind = &body.expr(e).kind;
        match kind {
            ExprKind::Name(Name::Other(name)) => found.push(Root::Global(name.clone())),
            ExprKind::Deref(pointer) => found.push(pointee(places, *pointer)),
            ExprKind::Index { .. } => found.push(places.root(e)),
            ExprKind::Call { args, .. } => found.extend(args.first().map(|a| pointee(places, *a))),
            _ => {}
        }
        todo.extend(operands(kind));
    }
    found
}

fn waits_only(body: &Body, stmt: StmtId) -> bool {
    match &body.stmt(stmt).kind {
        StmtKind::Empty => true,
        StmtKind::Block(stmts) => stmts.iter().all(|s| waits_only(body, *s)),
        StmtKind::Expr(e) => matches!(&body.expr(body.strip_parens(*e)).kind, ExprKind::Call { name: Some(name), .. }
            if name.contains("sleep") || name.contains("threadfence")),
        _ => false,
    }
}

/// `gridDim` decides the number, as far as variables with a single definition tell.
fn depends_on_grid(body: &Body, cond: ExprId) -> bool {
    let mut seen = HashSet::new();
    let mut todo = vec![cond];
    while let Some(e) = todo.pop() {
        if !seen.insert(e) {
            continue;
        }
        match &body.expr(e).kind {
            ExprKind::Name(Name::Builtin(Builtin::GridDim)) => return true,
            ExprKind::Name(Name::Local(binding)) => todo.extend(single_definition(body, *binding)),
            kind => todo.extend(operands(kind)),
        }
    }
    false
}

/// The workspace sees to it that all blocks are resident, somewhere.
fn bounded(db: &dyn Db) -> bool {
    let Some(workspace) = Workspace::try_get(db) else {
        return false;
    };
    let files = workspace.files(db);
    files
        .values()
        .any(|file| BOUNDED.iter().any(|word| has_word(db, *file, word)))
}
