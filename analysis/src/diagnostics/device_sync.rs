//! `device-sync`

use crate::base::db::Db;
use crate::base::file_settings::file_settings;
use crate::base::severity::Severity;
use crate::base::span::Span;
use crate::diagnostics::diagnostic::{Cause, Finding, Kind};
use crate::facts::dependence::after;
use crate::facts::launch::launches;
use crate::hir::items::FunctionItem;
use crate::hir::{ExprKind, body};

pub(super) const KIND: Kind = Kind {
    id: "device-sync",
    severity: Severity::Error,
    doc: DOC,
    rewrites: &["replace-device-sync"],
    find: device_sync,
};

const DOC: &str = r#"Device-side synchronization with child grids.

## What it does
Finds `cudaDeviceSynchronize()` and `cudaThreadSynchronize()` in device code. For a project that says `cuda = "11.8"` in its
`gridfuse.toml`, the message says that they are deprecated.

## Why is this bad
CUDA 12 removed them from device code: the program no longer compiles for sm_90, and for older architectures only in a legacy mode. Where
they compiled they were slow as well: the registers and shared memory of a waiting block were swapped out to memory.

## Example
```cuda
__global__ void child(int* out) { out[threadIdx.x] = threadIdx.x; }
__global__ void finish(int* out) { out[0] += out[31]; }

__global__ void parent(int* out) {
    if (threadIdx.x == 0) {
        child<<<1, 32>>>(out);
        cudaDeviceSynchronize();
        finish<<<1, 1>>>(out);
    }
}
```

## Use instead
Launches of one thread into one stream run in order. Put what has to run after all children into a kernel, and launch it into
`cudaStreamTailLaunch`: it starts when the launching grid and its other children are done.

```cuda
__global__ void child(int* out) { out[threadIdx.x] = threadIdx.x; }
__global__ void finish(int* out) { out[0] += out[31]; }

__global__ void parent(int* out) {
    if (threadIdx.x == 0) {
        child<<<1, 32>>>(out);
        finish<<<1, 1, 0, cudaStreamTailLaunch>>>(out);
    }
}
```
"#;

fn device_sync<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let signature = function.signature(db);
    // A function for host and device may keep the call under `#ifndef __CUDA_ARCH__`.
    if !(signature.kernel || signature.device) || signature.host {
        return Vec::new();
    }
    let settings = file_settings(db, function.file(db));
    // The last toolkit that had it, and only for architectures before sm_90.
    let old = settings.cuda.is_some_and(|version| version < (12, 0)) && settings.archs.iter().all(|arch| *arch < 90);
    let body = body(db, function);
    body.exprs
        .iter()
        .filter_map(|expr| {
            let ExprKind::Call { name: Some(name), .. } = &expr.kind else { return None };
            let name = name.trim_start_matches("::");
            let (message, label) = if old {
                ("is deprecated in device code and gone in CUDA 12", "slow, and deprecated")
            } else {
                ("does not exist in device code since CUDA 12", "does not compile")
            };
            matches!(name, "cudaDeviceSynchronize" | "cudaThreadSynchronize").then(|| Finding {
                span: expr.span,
                message: format!("`{name}` {message}"),
                label: label.to_owned(),
                related: dependents(db, function, expr.span),
                help: Some(
                    "launch what depends on the children into `cudaStreamTailLaunch`, or after them into the same stream".to_owned(),
                ),
            })
        })
        .collect()
}

/// More places than this are no help.
const MAX_PLACES: usize = 4;

/// What the function does behind the call that depends on a grid launched before it.
fn dependents<'db>(db: &'db dyn Db, function: FunctionItem<'db>, sync: Span) -> Vec<Cause<'db>> {
    let body = body(db, function);
    let mut found: Vec<Cause<'db>> = Vec::new();
    let earlier = launches(db, function).iter().zip(after(db, function));
    for (facts, behind) in earlier.filter(|(facts, _)| facts.span.end <= sync.start) {
        let kernel = facts.kernel_name.as_deref().unwrap_or("the child");
        let surely = behind.meetings.iter().map(|meeting| (meeting, true));
        let perhaps = behind.perhaps.iter().map(|meeting| (meeting, false));
        for (meeting, certain) in surely.chain(perhaps) {
            let span = body.expr(meeting.at).span;
            let known = found.iter().any(|(_, known, _)| *known == span);
            if span.start < sync.end || known || found.len() == MAX_PLACES {
                continue;
            }
            let (ours, theirs) = (meeting.parent.kind.verb(), meeting.child.kind.verb());
            let may = if certain { "" } else { "perhaps " };
            found.push((function, span, format!("{may}{ours} what `{kernel}` {theirs}")));
        }
    }
    found
}
