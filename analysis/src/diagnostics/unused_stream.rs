//! `unused-stream`

use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::launch::{Launchers, launches};
use crate::facts::streams::created_streams;
use crate::hir::body;
use crate::hir::items::FunctionItem;

pub(super) const KIND: Kind = Kind {
    id: "unused-stream",
    severity: Severity::Warning,
    doc: DOC,
    rewrites: &[],
    find: unused_stream,
};

const DOC: &str = r#"A stream is created in device code and nothing is launched into it.

## What it does
Finds local stream variables of kernels and device functions that are created and then neither used in a launch, nor handed to
another function.

## Why is this bad
Most often a launch was meant to go into the stream, and goes into the NULL stream of the block instead, where it waits for all
others. Creating a stream for nothing costs time as well.

## Example
```cuda
__global__ void child(int* out) { out[threadIdx.x] = threadIdx.x; }

__global__ void parent(int* out) {
    if (threadIdx.x != 0) return;
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    child<<<1, 64>>>(out + 64 * blockIdx.x);
    cudaStreamDestroy(stream);
}
```

## Use instead
```cuda
__global__ void child(int* out) { out[threadIdx.x] = threadIdx.x; }

__global__ void parent(int* out) {
    if (threadIdx.x != 0) return;
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    child<<<1, 64, 0, stream>>>(out + 64 * blockIdx.x);
    cudaStreamDestroy(stream);
}
```
"#;

/// More launches than this aren't shown.
const MAX_LAUNCHES: usize = 3;

fn unused_stream<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let unused = created_streams(db, function)
        .iter()
        .filter(|s| s.last_use.is_none() && !s.escapes);
    let streamless = launches(db, function)
        .iter()
        .filter(|l| l.launchers != Launchers::Host && l.stream_operand.is_none() && !l.in_lambda);
    let others: Vec<_> = streamless
        .take(MAX_LAUNCHES)
        .map(|l| (function, l.span, "this launch names no stream".to_owned()))
        .collect();
    unused
        .map(|stream| {
            let body = body(db, function);
            let name = body.binding(stream.binding).name.as_str();
            Finding {
                span: stream.created,
                message: format!("the stream `{name}` is created and never used"),
                label: "created for nothing".to_owned(),
                related: others.clone(),
                help: Some(format!(
                    "give `{name}` as the fourth part of a launch's configuration, or leave it out"
                )),
            }
        })
        .collect()
}
