//! `replace-device-sync`

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::dependence::{Dependence, Touch, Waited, behind_wait};
use gridfuse_analysis::facts::effects::summary;
use gridfuse_analysis::facts::launch::{launches, pending_launch_limit};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;

use crate::api::assumption::{self, Assumed};
use crate::api::refusal::Ineligible;
use crate::api::refusal::Reason;
use crate::api::refusal::Refusals;
use crate::api::refusal::refuse;
use crate::api::rewrite::{Family, Measured, Offered, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::edit::builder::EditBuilder;
use crate::edit::builder::finish;
use crate::facts::pending;
use crate::transforms::continuation;
use crate::transforms::continuation::wait::{Wait, delete};

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "replace-device-sync",
    title: "Replace the wait for child grids",
    doc: DOC,
    options: &[],
    target: Target::Place(Offered::ByDiagnostics),
    family: Family::Repair,
    measured: Measured::No,
    tunes: None,
    unattended: true,
    undo: Undo::Not("what was there was wrong"),
    run: apply,
};

const DOC: &str = r#"Changes a kernel that waits for its children with `cudaDeviceSynchronize()` so that CUDA 12 and later compile it.

Where nothing after the wait needs it, the wait goes away. That takes two things. What follows touches no memory that the children write
and writes none that they read, in later iterations as well. And what it launches, it launches after them into the same stream, the NULL
stream of the block.

Otherwise what follows becomes a kernel of its own: one thread launches it into `cudaStreamTailLaunch` with the parent's grid and block
size. It starts when the parent grid and all its children are complete. The original may go on at that time as well. Complete includes what
the children launch, into their tails too: a grid is complete only when all that it has launched is. Variables that are uniform over all
threads become parameters. Others are computed again from thread and block indices and from memory that nobody writes; so are the
conditions under which threads have left before.

Where the value of the wait is used, `cudaPeekAtLastError()` takes its place and asks for errors of launches.

What only looks at the error stays where it is: `cudaError_t e = cudaDeviceSynchronize(); if (e != cudaSuccess) return;`, a macro or a function
that does the same, and questions for errors right after the wait. `cudaPeekAtLastError()` takes the place of the wait there. The rewrite
assumes that no launch fails: what the kernel does about an error is done before the child grids are complete.

A stream that the kernel has created is its own. What follows creates it again where it launches into it, and the kernel destroys its own one.
Memory from `malloc` goes along, as all grids can use it.

## Needs
- The wait stands in a kernel. No spinning on memory, no launches in functions that it calls.
- For the wait to go: no memory fence, by which other grids could be told that the children are done.
- For a kernel of its own: the wait is a statement, or one that does nothing but look at its error; no launch is sure to fail. Every thread
  that comes to what follows comes from the same place. If the wait is in a loop that one thread of the grid runs, the new kernel goes on with
  the loop, and launches itself into its tail at the next wait. Such a loop waits in one place and declares no `static` and no `__shared__`
  variables, and no other thread puts something into the tail. Shared memory that is filled before the wait is not read after it, nor by
  functions that are called on both sides of the wait. What differs between threads can be computed again. No address of shared or local
  memory is left in memory.

Without the wait, more launches are pending at a time. Where device code launches the parent, each of its grids also has one
more grid pending. The rewrite assumes that they are fewer than `cudaLimitDevRuntimePendingLaunchCount` (2048, if it isn't set), unless
that is clear.

## Before
```cuda
__global__ void square(int* values) { values[threadIdx.x] *= values[threadIdx.x]; }

__global__ void sums(int* values, int* out) {
    int i = threadIdx.x;
    if (i == 0) {
        square<<<1, 32>>>(values);
        cudaDeviceSynchronize();
    }
    __syncthreads();
    // Neighbours, around the corner.
    out[i] = values[i] + values[(i + 1) % 32];
}

void run(int* values, int* out) { sums<<<1, 32>>>(values, out); }
```

## After
```cuda
__global__ void square(int* values) { values[threadIdx.x] *= values[threadIdx.x]; }

// What sums does after its wait.
__global__ void sums_after_square(int* values, int* out) {
    int i = threadIdx.x;
    // Neighbours, around the corner.
    out[i] = values[i] + values[(i + 1) % 32];
}

__global__ void sums(int* values, int* out) {
    int i = threadIdx.x;
    if (i == 0) {
        square<<<1, 32>>>(values);
    }
    if (threadIdx.x == 0 && blockIdx.x == 0)
        sums_after_square<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(values, out);
}

void run(int* values, int* out) { sums<<<1, 32>>>(values, out); }
```

## Source
CUDA C++ Programming Guide, CUDA Dynamic Parallelism: "Parent and Child Grids" (a grid is complete when all grids that its threads
have created are), "Global Memory" (what children have written is visible in a kernel launched into the tail launch stream),
"The Tail Launch Stream"; the diagnostic `device-sync`.
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    let (db, place) = (ctx.db, ctx.place()?);
    let wait = Wait::at(db, place)?;
    let mut refusals = Refusals::default();
    wait.refuse_common(&mut refusals);
    refusals.check()?;
    let waited = behind_wait(db, wait.function, wait.call);
    let needed = needs(&wait, waited);
    let edit = if needed.is_empty() {
        remove(&wait, waited)
    } else {
        continuation::move_tail(&wait, waited).map_err(|Ineligible(mut reasons)| {
            let mut all = needed;
            all.append(&mut reasons);
            Ineligible(all)
        })
    };
    // Who waits for another thread may wait for what that one does behind the wait.
    match summary(db, wait.function).may_wait {
        Some(span) if edit.is_ok() && !continuation::waits_for_children(&wait, span) => {
            let kernel = wait.kernel();
            let why = match continuation::is_in(&wait, span) {
                true => format!(
                    "in this loop a thread may wait for other threads of `{kernel}`, not for its child grids alone; launch `{kernel}` \
                     with one thread, or loop on the host"
                ),
                false => format!("`{kernel}` may wait in a loop for another thread"),
            };
            Err(refuse(why, Some(wait.place(span))))
        }
        _ => edit,
    }
}

/// Why the wait can't just go: what needs it.
fn needs(wait: &Wait<'_>, waited: &Waited<'_>) -> Vec<Reason> {
    let mut found = Vec::new();
    let mut add = |text: String, place: FileRange| {
        found.push(Reason {
            text,
            place: Some(place),
        })
    };
    match &waited.dependence {
        Dependence::None(_) => {}
        Dependence::Conflict(child, parent) => {
            let (first, place) = touch(wait, child);
            add(format!("what follows needs the wait: {first}"), place);
            let (second, place) = touch(wait, parent);
            add(format!("and after the wait, {second}"), place);
        }
        Dependence::Unknown(doubt) => {
            let place = doubt
                .place
                .map_or_else(|| wait.here(), |(function, span)| in_function(wait.db, function, span));
            add(format!("perhaps what follows needs the wait: {}", doubt.reason), place);
            if let Some((child, parent)) = &doubt.pair {
                for one in [child, parent] {
                    let (text, place) = touch(wait, one);
                    add(text, place);
                }
            }
        }
    }
    found
}

fn touch(wait: &Wait<'_>, touch: &Touch<'_>) -> (String, FileRange) {
    let place = in_function(wait.db, touch.function, touch.span);
    let text = place.file.text(wait.db);
    let code: Vec<&str> = place.range.text(&text).split_whitespace().collect();
    let name = unqualified(touch.function.name(wait.db));
    (format!("`{name}` {} `{}`", touch.kind.verb(), code.join(" ")), place)
}

fn in_function(db: &dyn Db, function: FunctionItem<'_>, span: Span) -> FileRange {
    FileRange {
        file: function.file(db),
        range: span.shift(function.start(db)),
    }
}

/// Takes the wait out.
fn remove(wait: &Wait<'_>, waited: &Waited<'_>) -> Result<SourceEdit, Ineligible> {
    let mut edit = EditBuilder::new(wait.db);
    if let Some(reason) = pile_up(wait, waited) {
        edit.assume(reason);
    }
    match wait.statement() {
        Some(stmt) => delete(wait, stmt, &mut edit),
        None => {
            wait.ask_only(&mut edit)?;
            let shown = wait.shown();
            edit.assume(assumption::NO_LAUNCH_FAILS.of(Reason {
                text: format!(
                    "no CUDA call of `{}` fails before the wait, nor does a grid that it waits for: its error is asked for before those grids \
                     are complete{shown}",
                    wait.kernel()
                ),
                place: Some(wait.here()),
            }));
        }
    }
    finish(edit)
}

/// Without the wait there are more launches at a time: more than may be?
fn pile_up(wait: &Wait<'_>, waited: &Waited<'_>) -> Option<Assumed> {
    if waited.behind.is_empty() {
        return None;
    }
    let (db, function) = (wait.db, wait.function);
    let limit = pending_launch_limit(db, wait.file);
    let sum = pending::most_launched(db, function);
    if launches(db, function).is_empty() || sum.zip(limit).is_some_and(|(sum, limit)| sum <= limit) {
        return None;
    }
    let why = format!(
        "without the wait the grids that `{}` launches one at a time pile up",
        wait.kernel()
    );
    Some(assumption::PENDING_LAUNCHES.of(Reason {
        text: pending::most_pending(db, wait.file, &why),
        place: Some(wait.here()),
    }))
}
