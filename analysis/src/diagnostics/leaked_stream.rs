//! `leaked-stream`

use crate::db::Db;
use crate::diagnostic::{Finding, Kind, Severity};
use crate::hir::body;
use crate::items::FunctionItem;
use crate::streams::created_streams;

pub(super) const KIND: Kind = Kind {
    id: "leaked-stream",
    severity: Severity::Warning,
    doc: DOC,
    rewrites: &["destroy-stream"],
    find: leaked_stream,
};

const DOC: &str = r#"A stream is created in device code and never destroyed.

## What it does
Finds local stream variables of kernels and device functions that are created and used, and for which the function never calls
`cudaStreamDestroy`. A stream that is handed to another function is left alone.

## Why is this bad
The device runtime has room for a limited number of streams; when it is used up, further ones cannot be created. A stream can be
destroyed right after the last launch into it: the launched grids run all the same.

## Example
```cuda
__global__ void child(int* out) { out[threadIdx.x] = threadIdx.x; }

__global__ void parent(int* out) {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    child<<<1, 64, 0, stream>>>(out + 64 * threadIdx.x);
}
```

## Use instead
```cuda
__global__ void child(int* out) { out[threadIdx.x] = threadIdx.x; }

__global__ void parent(int* out) {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    child<<<1, 64, 0, stream>>>(out + 64 * threadIdx.x);
    cudaStreamDestroy(stream);
}
```

For a single launch, `cudaStreamFireAndForget` needs no stream to be created at all.
"#;

fn leaked_stream<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let streams = created_streams(db, function).iter();
    let leaked = streams.filter(|s| s.used && !s.destroyed && !s.escapes);
    leaked
        .map(|stream| {
            let body = body(db, function);
            let name = body.binding(stream.binding).name.as_str();
            Finding {
                span: stream.created,
                message: format!("the stream `{name}` is never destroyed"),
                label: "never destroyed".to_owned(),
                related: Vec::new(),
                help: Some(format!(
                    "call `cudaStreamDestroy({name})` behind the last launch into it; its grids run all the same"
                )),
            }
        })
        .collect()
}
