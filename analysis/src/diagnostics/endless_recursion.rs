//! `endless-recursion`

use crate::db::Db;
use crate::diagnostic::{Finding, Kind, Severity};
use crate::items::FunctionItem;
use crate::launch::{Recursion, launch_counts, launches};

pub(super) const KIND: Kind = Kind {
    id: "endless-recursion",
    severity: Severity::Error,
    doc: DOC,
    rewrites: &[],
    find: endless_recursion,
};

const DOC: &str = r#"A kernel that launches itself in every run.

## What it does
Finds kernels that launch themselves under no condition but one that only picks a thread (`threadIdx.x == 0`).

## Why is this bad
Nothing ends it but the limit of pending launches (2048), at which a launch fails and the host does not learn of it. Launched into
`cudaStreamTailLaunch`, where one grid runs after the other, it never ends.

## Example
```cuda
__global__ void halve(float* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] *= 0.5f;
    if (i == 0) halve<<<1, 256>>>(values, n / 2);
}
```

## Use instead
```cuda
__global__ void halve(float* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] *= 0.5f;
    if (i == 0 && n > 1) halve<<<1, 256>>>(values, n / 2);
}
```
"#;

fn endless_recursion<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let counted = launches(db, function).iter().zip(launch_counts(db, function));
    counted
        .filter(|(_, count)| count.recursion == Recursion::Endless)
        .map(|(facts, _)| Finding {
            span: facts.span,
            message: format!("`{}` launches itself in every run: nothing ends it", function.name(db)),
            label: "launched again and again".to_owned(),
            related: Vec::new(),
            help: Some("launch under a condition that is false at some time".to_owned()),
        })
        .collect()
}
