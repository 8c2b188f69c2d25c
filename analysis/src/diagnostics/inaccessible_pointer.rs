//! `inaccessible-pointer`

use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::escape::{Private, escapes};
use crate::hir::items::FunctionItem;
use crate::hir::{Storage, body};

pub(super) const KIND: Kind = Kind {
    id: "inaccessible-pointer",
    severity: Severity::Error,
    doc: DOC,
    rewrites: &[],
    find: inaccessible_pointer,
};

const DOC: &str = r#"A pointer to local or shared memory is passed to a child grid.

## What it does
Finds launch arguments that point into a local variable of the launching thread or into shared memory of its block. They do so directly,
through pointer variables and pointer arithmetic, in a struct that is passed by value, or through a device function that passes its
parameter on to a launch.

## Why is this bad
A child grid cannot access its parent's local and shared memory: the same address means other memory there, or none. The child
reads garbage, overwrites something else or stops the program. Compilers say so only for the address of a local variable right in the
launch.

## Example
```cuda
struct Task { const float* values; int count; };

__global__ void child(Task task, float* out) {
    if (threadIdx.x < task.count) out[threadIdx.x] = task.values[threadIdx.x];
}

__global__ void parent(const float* in, float* out) {
    __shared__ float tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    Task task = {tile, 64};
    if (threadIdx.x == 0) child<<<1, 64>>>(task, out);
}
```

## Use instead
Global memory, which parent and child share; for a few values, a struct that is passed by value and holds them itself.

```cuda
struct Task { const float* values; int count; };

__global__ void child(Task task, float* out) {
    if (threadIdx.x < task.count) out[threadIdx.x] = task.values[threadIdx.x];
}

__global__ void parent(const float* in, float* scratch, float* out) {
    float* tile = scratch + blockIdx.x * 64;
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    Task task = {tile, 64};
    if (threadIdx.x == 0) child<<<1, 64>>>(task, out);
}
```
"#;

fn inaccessible_pointer<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let body = body(db, function);
    let mut found = Vec::new();
    for escape in escapes(db, function).iter().filter(|e| !e.through_parameter) {
        let (name, shared, declared) = match &escape.into {
            Private::Variable(binding) => {
                let binding = body.binding(*binding);
                let shared = matches!(binding.storage, Storage::Shared | Storage::ExternShared);
                (binding.name.as_str(), shared, Some(binding.span))
            }
            Private::SharedGlobal(name) => (name.as_str(), true, None),
        };
        let (memory, whose) = if shared {
            ("shared memory", "of the launching block")
        } else {
            ("local memory", "of the launching thread")
        };
        let child = escape.child.as_deref().unwrap_or("the child");
        let mut related = Vec::new();
        if let Some(span) = declared {
            related.push((function, span, format!("`{name}` is in {memory}")));
        }
        if let Some((callee, span)) = escape.passed_on {
            related.push((callee, span, format!("`{}` passes it on here", callee.name(db))));
        }
        found.push(Finding {
            span: escape.span,
            message: format!("a pointer into `{name}`, which is {memory} {whose}, is passed to `{child}`: a child grid cannot access it"),
            label: format!("points to {memory}"),
            related,
            help: Some("pass the values themselves, or keep them in global memory".to_owned()),
        });
    }
    found
}
