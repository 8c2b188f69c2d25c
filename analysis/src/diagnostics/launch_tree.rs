//! `launch-tree`

use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::launch::{Child, LaunchId, Launchers, Stream, launches, waits_after, who_launches};
use crate::hir::body;
use crate::hir::items::FunctionItem;

pub(super) const KIND: Kind = Kind {
    id: "launch-tree",
    severity: Severity::Info,
    doc: DOC,
    rewrites: &[
        "optimize",
        "aggregate-grid-stream",
        "aggregate-grid",
        "flatten-recursion",
    ],
    find: launch_tree,
};

const DOC: &str = r#"A recursive kernel launches a tree of small grids.

## What it does
Finds recursive kernels in which one thread of each block launches the kernel again: either a child grid of several blocks, or several
child grids. Several launches may also come from one thread of the grid. A kernel that launches a single grid of one block is a chain, and
one that launches into the tail stream is an iteration: `launch-chain` reports both. A launch is left alone if the launching grid waits for
it.

## Why is this bad
A launch costs about a microsecond, and the grids of a tree are small and many: the GPU spends most of the time launching, and few of its
multiprocessors have work. On an H200, a quicksort that launches this way takes 40 ms, and 0.43 ms as a worklist (`flatten-recursion`); a
quadtree takes 2.4 ms, and 0.63 ms. [All numbers](../measurements.md)

## Example
```cuda
__global__ void split(const int* first_child, int* depths, int node, int depth) {
    int own = node + blockIdx.x;
    if (threadIdx.x == 0) depths[own] = depth;
    int below = first_child[own];
    if (threadIdx.x == 0 && below > 0) split<<<4, 128>>>(first_child, depths, below, depth + 1);
}
```

## Use instead
One grid for all nodes of a level, or what these rewrites make: one grid for all launches of a grid (`aggregate-grid-stream`,
`aggregate-grid`), or one whose blocks take nodes from a worklist (`flatten-recursion`).

```cuda
__global__ void split(const int* first_child, int* depths, const int* level, int* next, int* count, int depth) {
    int own = level[blockIdx.x];
    if (threadIdx.x == 0) depths[own] = depth;
    int below = first_child[own];
    if (threadIdx.x < 4 && below > 0) next[atomicAdd(count, 1)] = below + threadIdx.x;
}
```
"#;

fn launch_tree<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    // Who launches may be said in a branch of an `#if` that isn't shown.
    if !function.signature(db).kernel || body(db, function).cut {
        return Vec::new();
    }
    let own = launches(db, function).iter().enumerate();
    let own: Vec<(u32, _)> = own
        .filter(|(_, facts)| matches!(facts.child, Child::Kernel(child) if child == function))
        .map(|(index, facts)| (index as u32, facts))
        .collect();
    let several = own.len() > 1;
    let waits = waits_after(db, function);
    let branches = own.iter().filter(|(index, facts)| {
        let who = who_launches(
            db,
            LaunchId {
                function,
                index: *index,
            },
        );
        let branches = match who {
            Launchers::OnePerBlock => several || facts.grid.constant != Some([1, 1, 1]),
            Launchers::OnePerGrid => several,
            _ => false,
        };
        let waits = waits.get(*index as usize).is_some_and(Option::is_some);
        branches && !waits && facts.stream != Stream::TailLaunch && !facts.in_lambda
    });
    let kernel = function.name(db);
    branches
        .map(|(_, facts)| Finding {
            span: facts.span,
            message: format!(
                "`{kernel}` is recursive: its blocks launch a tree of small grids, each by a launch of its own"
            ),
            label: "launches one grid of the tree".to_owned(),
            related: Vec::new(),
            help: Some("collect the launches of a grid, or run the recursion as a worklist".to_owned()),
        })
        .collect()
}
