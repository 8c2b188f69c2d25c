//! `leaked-stream`

use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::base::span::Span;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::streams::{CreatedStream, created_streams};
use crate::hir::flow::{BlockId, Flow};
use crate::hir::items::FunctionItem;
use crate::hir::{Body, ExprId, ExprKind, StmtId, StmtKind, body};

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
    let leaked = streams.filter(|s| s.last_use.is_some() && !s.destroyed && !s.escapes);
    leaked
        .map(|stream| {
            let body = body(db, function);
            let name = body.binding(stream.binding).name.as_str();
            let last = stream.last_use.map(|span| (span, "the last use of it"));
            let lost = first_return(&body, stream).map(|span| (span, "returns without destroying it"));
            let related = last.into_iter().chain(lost);
            let related = related.map(|(span, text)| (function, span, text.to_owned())).collect();
            Finding {
                span: stream.created,
                message: format!("the stream `{name}` is never destroyed"),
                label: "never destroyed".to_owned(),
                related,
                help: Some(format!(
                    "call `cudaStreamDestroy({name})` after the last launch into it; its grids run all the same"
                )),
            }
        })
        .collect()
}

/// The first `return` in the source that control may come to once the stream is created.
fn first_return(body: &Body, stream: &CreatedStream) -> Option<Span> {
    let flow = Flow::of(body);
    let created = body.exprs.iter().position(|expr| {
        let call = matches!(&expr.kind, ExprKind::Call { name: Some(name), .. } if name.contains("cudaStreamCreate"));
        call && expr.span == stream.created
    })?;
    let home = *flow.expr_block.get(&ExprId(created as u32))?;
    let mut seen = vec![home];
    let mut todo: Vec<BlockId> = vec![home];
    while let Some(block) = todo.pop() {
        for to in flow.block(block).targets() {
            if !seen.contains(to) {
                seen.push(*to);
                todo.push(*to);
            }
        }
    }
    let reached = body.stmts.iter().enumerate().filter(|(index, stmt)| {
        let block = flow.stmt_block.get(&StmtId(*index as u32));
        matches!(stmt.kind, StmtKind::Return(_))
            && stmt.span.start > stream.created.start
            && block.is_some_and(|block| seen.contains(block))
    });
    reached.map(|(_, stmt)| stmt.span).min()
}
