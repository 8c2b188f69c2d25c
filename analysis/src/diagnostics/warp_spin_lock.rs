//! `warp-spin-lock`

use crate::base::db::Db;
use crate::base::file_settings::settings;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::callee::library_called;
use crate::facts::launch::{Launchers, constant_value, who_gets_to};
use crate::facts::uniformity::{Level, uniformity};
use crate::hir::flow::operands;
use crate::hir::items::FunctionItem;
use crate::hir::{Body, ExprId, ExprKind, StmtKind, body};

pub(super) const KIND: Kind = Kind {
    id: "warp-spin-lock",
    severity: Severity::Warning,
    doc: DOC,
    rewrites: &[],
    find: warp_spin_lock,
};

const DOC: &str = r#"Several lanes of a warp spin on one lock.

## What it does
Finds loops that do nothing but wait for a lock, `while (atomicCAS(&lock, 0, 1) != 0);`. Several threads of a warp may wait for the same
lock, and it is released only after the loop.

## Why is this bad
On GPUs before Volta (compute capability below 7.0) the warp never gets out: the lane that got the lock waits for the others to
leave the loop before it goes on to release it. Since Volta the lanes are scheduled independently, and all get through in the end. But they
get through one at a time, while the others keep the memory system busy with failing attempts: up to 32 times slower than one lane that
takes the lock for its warp.

## Example
```cuda
__device__ int lock;

__global__ void add(float* total, const float* values) {
    float value = values[blockIdx.x * blockDim.x + threadIdx.x];
    while (atomicCAS(&lock, 0, 1) != 0);
    *total += value;
    __threadfence();
    atomicExch(&lock, 0);
}
```

## Use instead
One lane for each warp, or an atomic operation on the data.

```cuda
__device__ int lock;

__global__ void add(float* total, const float* values) {
    float value = values[blockIdx.x * blockDim.x + threadIdx.x];
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS(&lock, 0, 1) != 0);
        *total += value;
        __threadfence();
        atomicExch(&lock, 0);
    }
}
```
"#;

fn warp_spin_lock<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let signature = function.signature(db);
    if !(signature.kernel || signature.device) {
        return Vec::new();
    }
    let body = body(db, function);
    let mut found = Vec::new();
    for stmt in &body.stmts {
        let (cond, repeated) = match &stmt.kind {
            StmtKind::While {
                cond: Some(cond), body, ..
            } => (*cond, *body),
            StmtKind::DoWhile { cond, body } => (*cond, *body),
            _ => continue,
        };
        let Some(lock) = waited_for(db, function, &body, cond) else {
            continue;
        };
        if !idle(&body, repeated) || who_gets_to(db, function, cond) != Some(Launchers::ManyThreads) {
            continue;
        }
        let levels = uniformity(db, function);
        // Locks of elements: lanes that meet at one are likely enough, but it can't be seen.
        let place = match &body.expr(body.strip_parens(lock)).kind {
            ExprKind::AddrOf(place) => *place,
            _ => lock,
        };
        if !same_place(&body, place, &|e| levels.of(e)) {
            continue;
        }
        let old = settings(db, function.file(db)).arch.is_none_or(|arch| arch < 70);
        let effect = match old {
            true => "before Volta the warp deadlocks here; since Volta they take it one at a time",
            false => "they take it one at a time, while the others keep trying",
        };
        found.push(Finding {
            span: body.expr(cond).span,
            message: format!("several lanes of a warp may wait for the same lock: {effect}"),
            label: "several lanes wait for it".to_owned(),
            related: Vec::new(),
            help: Some("let one lane of each warp take the lock, or use an atomic operation on the data".to_owned()),
        });
    }
    found
}

/// The lock that the condition tries to take: `atomicCAS(lock, 0, 1)` or `atomicExch(lock, 1)` with constants.
fn waited_for(db: &dyn Db, function: FunctionItem<'_>, body: &Body, cond: ExprId) -> Option<ExprId> {
    let mut todo = vec![cond];
    while let Some(e) = todo.pop() {
        let kind = &body.expr(e).kind;
        if let ExprKind::Call {
            name: Some(name), args, ..
        } = kind
        {
            let values = match name.trim_start_matches("::") {
                "atomicCAS" if args.len() == 3 => args.get(1..),
                "atomicExch" if args.len() == 2 => args.get(1..),
                _ => None,
            };
            if let Some(values) = values
                && library_called(db, function, name).is_some()
                && values.iter().all(|v| constant_value(db, function, body, *v).is_some())
            {
                return args.first().copied();
            }
            continue;
        }
        todo.extend(operands(kind));
    }
    None
}

/// The loop's body only waits.
fn idle(body: &Body, stmt: crate::hir::StmtId) -> bool {
    match &body.stmt(stmt).kind {
        StmtKind::Empty => true,
        StmtKind::Block(stmts) => stmts.iter().all(|s| idle(body, *s)),
        StmtKind::Expr(e) => matches!(&body.expr(body.strip_parens(*e)).kind,
            ExprKind::Call { name: Some(name), .. } if name.contains("sleep") || name.contains("threadfence")),
        _ => false,
    }
}

/// All threads of a warp mean the same place.
fn same_place(body: &Body, place: ExprId, level: &dyn Fn(ExprId) -> Level) -> bool {
    match &body.expr(body.strip_parens(place)).kind {
        ExprKind::Name(crate::hir::Name::Other(_)) => true,
        ExprKind::Name(crate::hir::Name::Local(b)) => {
            let ty = &body.binding(*b).ty;
            let shared = matches!(
                body.binding(*b).storage,
                crate::hir::Storage::Shared | crate::hir::Storage::ExternShared
            );
            shared || ty.pointers > 0 && level(place) <= Level::Warp
        }
        ExprKind::Index { base, index } => level(*index) <= Level::Warp && same_place(body, *base, level),
        ExprKind::Deref(base) | ExprKind::Field { base, .. } => same_place(body, *base, level),
        _ => false,
    }
}
