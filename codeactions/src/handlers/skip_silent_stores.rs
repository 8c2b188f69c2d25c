//! `skip-silent-stores`

use gridfuse_analysis::base::place::FileRange;

use crate::api::refusal::Ineligible;
use crate::api::refusal::refuse;
use crate::api::rewrite::{Family, Launches, Layer, Measured, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::emit::look_first::{comment, look};
use crate::facts::combinable::worker;
use crate::facts::silent_stores::{refuse_fences, unguarded};

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "skip-silent-stores",
    title: "Store only what changes",
    doc: DOC,
    options: &[],
    target: Target::Launch(Launches::Any),
    family: Family::Stores,
    measured: Measured::No,
    tunes: None,
    unattended: false,
    undo: Undo::Layer(Layer::LookedFirst),
    run: apply,
};

const DOC: &str = r#"Lets a thread of the child look before it stores what many threads store: a flag for a change, say, or the number of a round.
Such a store is silent where another thread has already stored the same, but the memory system runs stores to one place one at a time. A
look is a read, and the cache answers it for thousands of threads at once. In breadth-first search and in shortest paths over 2^22
vertices, that halved the time.

The place has the same number afterwards, in whatever order threads come: what a thread found there it would have stored at that moment.

## Needs
- A statement that stores an integer to what a pointer parameter points to. The child's arguments alone decide the number and the place,
  and the store isn't left to one thread of a block (`if (threadIdx.x == 0)`).
- No fence (`__threadfence()`), nor anything that may be one: it orders what a thread writes before its own store.

## Before
```cuda
__global__ void relax(const int* col, int* dist, int* changed, int base, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && atomicMin(&dist[col[begin + i]], base + 1) > base + 1)
        *changed = 1;
}

__global__ void round(const int* row, const int* col, int* dist, int* changed, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) relax<<<(count + 127) / 128, 128>>>(col, dist, changed, dist[v], begin, count);
}
```

## After
```cuda
__global__ void relax(const int* col, int* dist, int* changed, int base, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && atomicMin(&dist[col[begin + i]], base + 1) > base + 1)
        if (*changed != 1) *changed = 1;  // only what changes
}

__global__ void round(const int* row, const int* col, int* dist, int* changed, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) relax<<<(count + 127) / 128, 128>>>(col, dist, changed, dist[v], begin, count);
}
```

## Source
Lepak and Lipasti: Silent Stores for Free, MICRO 2000, in hardware; the look in front of a store as in test-and-test-and-set (Rudolph and
Segall: Dynamic Decentralized Cache Schemes for MIMD Parallel Processors, ISCA 1984).
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    let db = ctx.db;
    let mut draft = Draft::begin(ctx)?;
    draft.site.refuse_common(&mut draft.refusals);
    let child = draft.site.child(&mut draft.refusals);
    let child = draft.settle(child)?;
    let Draft {
        site, edit, refusals, ..
    } = &mut draft;
    let worker = worker(db, child);
    let (file, start) = (worker.file(db), worker.start(db));
    let found = unguarded(db, worker);
    if found.is_empty() {
        let name = worker.signature(db).name_span.shift(start);
        return Err(refuse(
            format!(
                "`{}` has no store whose address and value depend on its arguments alone",
                site.child_name()
            ),
            Some(FileRange { file, range: name }),
        ));
    }
    refuse_fences(db, worker, site.child_name(), refusals);
    refusals.check()?;
    for store in found {
        let stmt = gridfuse_analysis::hir::body(db, worker)
            .stmt(store.stmt)
            .span
            .shift(start);
        edit.insert(file, stmt.start, look(db, worker, &store));
        edit.insert(file, stmt.end, comment(&file.text(db), stmt.end as usize));
    }
    draft.finish()
}
