//! `device-malloc`

use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::launch::{Launchers, single_threaded, statement_places, who_executes};
use crate::facts::uniformity::uniformity;
use crate::hir::items::FunctionItem;
use crate::hir::resolve::{Meaning, meaning};
use crate::hir::scope::hides;
use crate::hir::{ExprId, ExprKind, body};

pub(super) const KIND: Kind = Kind {
    id: "device-malloc",
    severity: Severity::Warning,
    doc: DOC,
    rewrites: &["aggregate-malloc"],
    find: device_malloc,
};

const DOC: &str = r#"Many threads of a kernel allocate memory each.

## What it does
Finds `malloc`, `cudaMalloc` and `new` in kernels where they aren't under a condition that picks one thread of a warp, block or grid.

## Why is this bad
The device's allocator serves one request at a time: threads that allocate at the same time wait for each other. Its heap has 8 MB unless
the host sets `cudaLimitMallocHeapSize`. When the heap is full, `malloc` returns a null pointer.

## Example
```cuda
__global__ void child(int* scratch, int n) { if (threadIdx.x < n) scratch[threadIdx.x] = 0; }

__global__ void parent(const int* counts) {
    int n = counts[threadIdx.x];
    int* scratch = (int*)malloc(n * sizeof(int));
    if (scratch && n > 0) child<<<1, 64, 0, cudaStreamFireAndForget>>>(scratch, n);
}
```

## Use instead
One allocation for all threads, made by the host or by one thread of the block. Each thread takes a part of it.

```cuda
__global__ void child(int* scratch, int n) { if (threadIdx.x < n) scratch[threadIdx.x] = 0; }

__global__ void parent(const int* counts, const int* starts, int* scratch) {
    int n = counts[threadIdx.x];
    if (n > 0) child<<<1, 64, 0, cudaStreamFireAndForget>>>(scratch + starts[threadIdx.x], n);
}
```
"#;

fn device_malloc<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let text = function.text(db);
    let may = ["malloc", "cudaMalloc", "new"].iter().any(|word| text.contains(word));
    if !function.signature(db).kernel || !may || single_threaded(db, function).is_some() {
        return Vec::new();
    }
    let body = body(db, function);
    let places = statement_places(db, function);
    let levels = uniformity(db, function);
    if levels.too_large {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (i, expr) in body.exprs.iter().enumerate() {
        let id = ExprId(i as u32);
        let name = match &expr.kind {
            ExprKind::Call { name: Some(name), .. } => {
                let plain = name.trim_start_matches("::");
                let own = hides(db, function, name) || meaning(db, function.file(db), name) != Meaning::Unknown;
                match plain {
                    "malloc" | "cudaMalloc" if !own => plain,
                    _ => continue,
                }
            }
            // `new (place) T` allocates nothing.
            ExprKind::New(_) if !is_placement(expr.span.text(&text)) => "new",
            _ => continue,
        };
        // Not reached, or in a lambda.
        let known = levels.exprs.contains_key(&id);
        if known && who_executes(db, function, &body, &places, &levels, id).launchers == Launchers::ManyThreads {
            let around = places.loops_around(&body, id);
            let around = around
                .first()
                .map(|l| (function, l.span, "again in every iteration of this loop".to_owned()));
            found.push(Finding {
                span: expr.span,
                message: format!(
                    "every thread that gets here allocates memory with `{name}`: they wait for each other"
                ),
                label: "allocates in every thread".to_owned(),
                related: around.into_iter().collect(),
                help: Some("allocate once for the grid or the block, and give each thread its part".to_owned()),
            });
        }
    }
    found
}

fn is_placement(text: &str) -> bool {
    let rest = text.trim_start_matches("::").strip_prefix("new").unwrap_or(text);
    rest.trim_start().starts_with('(')
}
