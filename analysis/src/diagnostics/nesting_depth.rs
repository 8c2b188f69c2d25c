//! `nesting-depth`

use crate::db::Db;
use crate::diagnostic::{Finding, Kind, Severity};
use crate::items::FunctionItem;
use crate::launch::{Recursion, Stream, launch_counts, launches};
use crate::settings::settings;

pub(super) const KIND: Kind = Kind {
    id: "nesting-depth",
    severity: Severity::Error,
    doc: DOC,
    rewrites: &[],
    find: nesting_depth,
};

const DOC: &str = r#"A recursion that goes deeper than grids may be nested.

## What it does
Finds kernels that launch themselves with a level that is counted up to a constant (or down from one), when that makes more than 24
nested grids (or what `nesting-depth` in `gridfuse.toml` says). Launches into `cudaStreamTailLaunch` are left alone.

## Why is this bad
Grids may be nested 24 deep. The launch that goes deeper fails, and the host does not learn of it: the work below is just not done.

## Example
```cuda
__global__ void refine(float* cells, int level) {
    cells[blockIdx.x] *= 0.5f;
    if (level < 30 && threadIdx.x == 0) refine<<<2, 32>>>(cells, level + 1);
}

void run(float* cells) { refine<<<1, 32>>>(cells, 0); }
```

## Use instead
A limit that the hardware has, and a loop for what is below it.

```cuda
__global__ void refine(float* cells, int level) {
    cells[blockIdx.x] *= 0.5f;
    if (level < 20 && threadIdx.x == 0) refine<<<2, 32>>>(cells, level + 1);
}

void run(float* cells) { refine<<<1, 32>>>(cells, 0); }
```
"#;

fn nesting_depth<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let limit = settings(db).nesting_depth;
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
                    "`{}` launches itself {levels} levels deep, and grids nest {limit} deep",
                    function.name(db)
                ),
                label: "too deep".to_owned(),
                related: count
                    .guard
                    .map(|span| (function, span, "this ends the recursion".to_owned()))
                    .into_iter()
                    .collect(),
                help: Some("end the recursion earlier and go on in a loop".to_owned()),
            })
        })
        .collect()
}
