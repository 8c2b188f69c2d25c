//! `endless-recursion`

use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Cause, Finding, Kind};
use crate::facts::launch::{Child, LaunchFacts, Recursion, launch_counts, launches};
use crate::hir::items::FunctionItem;
use crate::hir::resolve::launch_sites_of;

pub(super) const KIND: Kind = Kind {
    id: "endless-recursion",
    severity: Severity::Error,
    doc: DOC,
    rewrites: &[],
    find: endless_recursion,
};

const DOC: &str = r#"A kernel that launches itself in every run.

## What it does
Finds kernels that launch themselves, directly or by way of other kernels, under no condition except one that only picks a thread
(`threadIdx.x == 0`). A grid that may become empty ends the recursion, since its launch fails. So does `__trap()`. Such kernels are left
alone.

## Why is this bad
Only the limit of pending launches (2048) ends it: there a launch fails, and the host does not learn of it. In `cudaStreamTailLaunch`,
where the grids run one at a time, the recursion never ends.

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
            message: message(db, function, facts),
            label: "launched again and again".to_owned(),
            related: causes(db, function, facts),
            help: Some("launch under a condition that is false at some time".to_owned()),
        })
        .collect()
}

fn message<'db>(db: &'db dyn Db, function: FunctionItem<'db>, facts: &LaunchFacts<'db>) -> String {
    let name = function.name(db);
    match facts.child {
        Child::Kernel(child) if child != function => format!(
            "`{name}` launches `{}` in every run, and that leads to `{name}` again: nothing ends it",
            child.name(db)
        ),
        _ => format!("`{name}` launches itself in every run: nothing ends it"),
    }
}

/// What begins the recursion, and the condition that looks as if it ended it.
fn causes<'db>(db: &'db dyn Db, function: FunctionItem<'db>, facts: &LaunchFacts<'db>) -> Vec<Cause<'db>> {
    let picks = facts.divergence.why.as_ref();
    let picks = picks.map(|why| {
        (
            function,
            why.span,
            "this picks threads of the grid, but doesn't end the recursion".to_owned(),
        )
    });
    let sites = launch_sites_of(db, function);
    let first = sites.iter().find(|site| site.function != function);
    let first = first.and_then(|site| {
        let begins = launches(db, site.function).get(site.index as usize)?;
        Some((site.function, begins.span, "the first one is launched here".to_owned()))
    });
    picks.into_iter().chain(first).collect()
}
