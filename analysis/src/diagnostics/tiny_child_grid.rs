//! `tiny-child-grid`

use crate::db::Db;
use crate::diagnostic::{Finding, Kind, Severity};
use crate::items::FunctionItem;
use crate::launch::{Bound, LaunchId, Launchers, Stream, launch_counts, launches, who_launches};
use crate::settings::settings;

pub(super) const KIND: Kind = Kind {
    id: "tiny-child-grid",
    severity: Severity::Warning,
    doc: DOC,
    rewrites: &["threshold", "aggregate-grid", "aggregate-block"],
    find: tiny_child_grid,
};

const DOC: &str = r#"Many child grids of a few threads each.

## What it does
Finds launches of child grids that have fewer threads than a warp (or than `tiny-grid` in `gridfuse.toml` says), and that are
done again and again: by many threads, by a thread of each warp or block, or in a loop. A grid that a single thread launches once,
and one that is launched into the tail stream to run after its parent, are left alone.

## Why is this bad
A launch costs microseconds, in which a thread does the work of a few threads itself many times over. Blocks with less than a warp
leave the rest of its lanes idle as well.

## Example
```cuda
__global__ void child(float* values, int first) { values[first + threadIdx.x] *= 2.0f; }

__global__ void parent(float* values, const int* chosen, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && chosen[i]) child<<<1, 4>>>(values, 4 * i);
}
```

## Use instead
A loop in the launching thread. Where the sizes differ, the rewrite `threshold` does that for small child grids alone.

```cuda
__global__ void parent(float* values, const int* chosen, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && chosen[i])
        for (int k = 0; k < 4; ++k) values[4 * i + k] *= 2.0f;
}
```
"#;

fn tiny_child_grid<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let counts = launch_counts(db, function);
    let limit = settings(db, function.file(db)).tiny_grid;
    let mut found = Vec::new();
    for (index, (facts, count)) in launches(db, function).iter().zip(counts).enumerate() {
        let Bound::Constant(threads) = count.child_threads else {
            continue;
        };
        let id = LaunchId {
            function,
            index: index as u32,
        };
        let who = who_launches(db, id);
        let repeated = who != Launchers::OnePerGrid || !facts.loops.is_empty();
        let excluded = who == Launchers::Host || facts.in_lambda || facts.stream == Stream::TailLaunch;
        if threads == 0 || threads >= limit || !repeated || excluded {
            continue;
        }
        let kernel = facts.kernel_name.as_deref().unwrap_or("the child");
        let grid = if threads == 1 {
            "a single thread".to_owned()
        } else {
            format!("{threads} threads")
        };
        found.push(Finding {
            span: facts.span,
            message: format!("each launch of `{kernel}` is for {grid}: it costs more than the work"),
            label: format!("{grid} in all"),
            related: match facts.loops.first() {
                Some(around) => vec![(
                    function,
                    around.span,
                    "again in every iteration of this loop".to_owned(),
                )],
                None => Vec::new(),
            },
            help: Some("do the work in the launching thread".to_owned()),
        });
    }
    found
}
