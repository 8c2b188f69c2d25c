//! `nesting-depth`

use crate::base::db::Db;
use crate::base::file_settings::settings;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::launch::{Recursion, Stream, launch_counts, launches, pending_launch_limit};
use crate::hir::items::FunctionItem;

pub(super) const KIND: Kind = Kind {
    id: "nesting-depth",
    severity: Severity::Error,
    doc: DOC,
    rewrites: &["flatten-recursion"],
    find: nesting_depth,
};

const DOC: &str = r#"A recursion that goes deeper than grids may be nested.

## What it does
Finds recursive kernels that count a level up to a constant (or down from one), if that nests more grids than launches may be pending:
2048, or what the program sets (or what `nesting-depth` in `gridfuse.toml` says). Launches into `cudaStreamTailLaunch` are left alone.

## Why is this bad
A grid is pending until the grids that it has launched are done, so in a chain all are pending at once. The launch that is one
too many fails, and the host does not learn of it: the work below is just not done. (CUDA's documentation names 24 levels.
CUDA 13.0 on an H200 runs deeper chains, to exactly the limit of pending launches; `nesting-depth = 24` is for those who want to
keep to the documentation.)

## Example
```cuda
__global__ void refine(float* cells, int level) {
    cells[blockIdx.x] *= 0.5f;
    if (level < 5000 && threadIdx.x == 0) refine<<<2, 32>>>(cells, level + 1);
}

void run(float* cells) { refine<<<1, 32>>>(cells, 0); }
```

## Use instead
A grid that starts after the launching grid is done is not nested.

```cuda
__global__ void refine(float* cells, int level) {
    cells[blockIdx.x] *= 0.5f;
    if (level < 5000 && threadIdx.x == 0) refine<<<2, 32, 0, cudaStreamTailLaunch>>>(cells, level + 1);
}

void run(float* cells) { refine<<<1, 32>>>(cells, 0); }
```

[persistent-loop](../rewrites/persistent-loop.md) turns such launches into a loop; [flatten-recursion](../rewrites/flatten-recursion.md)
turns a recursion of any depth into one grid.
"#;

fn nesting_depth<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let file = function.file(db);
    let wanted = settings(db, file).nesting_depth;
    let Some(limit) = wanted.or_else(|| pending_launch_limit(db, file)) else {
        return Vec::new();
    };
    let counted = launches(db, function).iter().zip(launch_counts(db, function));
    counted
        .filter_map(|(facts, count)| {
            let Recursion::Bounded(Some(levels)) = count.recursion else {
                return None;
            };
            if levels <= limit || facts.stream == Stream::TailLaunch {
                return None;
            }
            Some(Finding {
                span: facts.span,
                message: format!(
                    "`{}` launches itself {levels} levels deep, and {limit} grids may be pending",
                    function.name(db)
                ),
                label: "too deep".to_owned(),
                related: count
                    .guard
                    .map(|span| (function, span, "this ends the recursion".to_owned()))
                    .into_iter()
                    .collect(),
                help: Some("end the recursion earlier, launch into `cudaStreamTailLaunch`, or raise `cudaLimitDevRuntimePendingLaunchCount`".to_owned()),
            })
        })
        .collect()
}
