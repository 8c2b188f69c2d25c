//! `varying-block-size`

use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::launch::{LaunchId, Launchers, depends_on_thread_index, launches, who_launches};
use crate::facts::uniformity::Level;
use crate::hir::body;
use crate::hir::items::FunctionItem;

pub(super) const KIND: Kind = Kind {
    id: "varying-block-size",
    severity: Severity::Info,
    doc: DOC,
    rewrites: &[],
    find: varying_block_size,
};

const DOC: &str = r#"Child grids of different threads have blocks of different sizes.

## What it does
Finds launches in which the threads of a block choose different block sizes, or different amounts of dynamic shared memory.

## Why is this bad
Launches can be collected into one only when their blocks are alike, so no aggregation applies here. Block sizes that follow the data are
seldom a multiple of the warp size, either. The grid size may differ freely.

## Example
```cuda
__global__ void child(int* out, int begin) { out[begin + threadIdx.x] = begin; }

__global__ void parent(int* out, const int* row) {
    int begin = row[threadIdx.x], count = row[threadIdx.x + 1] - begin;
    if (count > 0) child<<<1, count>>>(out, begin);
}
```

## Use instead
```cuda
__global__ void child(int* out, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[begin + i] = begin;
}

__global__ void parent(int* out, const int* row) {
    int begin = row[threadIdx.x], count = row[threadIdx.x + 1] - begin;
    if (count > 0) child<<<(count + 127) / 128, 128>>>(out, begin, count);
}
```
"#;

fn varying_block_size<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let mut found = Vec::new();
    let body = body(db, function);
    for (index, facts) in launches(db, function).iter().enumerate() {
        let id = LaunchId {
            function,
            index: index as u32,
        };
        if facts.in_lambda || who_launches(db, id) != Launchers::ManyThreads {
            continue;
        }
        let operands = [(&facts.block.operand, "block size")].into_iter();
        let operands = operands.chain(facts.shared.iter().map(|shared| (shared, "amount of shared memory")));
        for (operand, what) in operands {
            let Some(why) = &operand.uniformity.why else { continue };
            // What isn't understood counts as varying, too: only what a thread's number decides is reported.
            if operand.uniformity.level <= Level::Warp || !depends_on_thread_index(&body, operand.expr) {
                continue;
            }
            found.push(Finding {
                span: operand.span,
                message: format!(
                    "the {what} may differ from thread to thread: these launches can't be collected into one"
                ),
                label: "may differ".to_owned(),
                related: vec![(function, why.span, why.text.clone())],
                help: None,
            });
        }
    }
    found
}
