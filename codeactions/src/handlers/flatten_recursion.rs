//! `flatten-recursion`

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::effects::effects;
use gridfuse_analysis::facts::launch::{Stream, launches};
use gridfuse_analysis::hir::resolve::other_mentions;
use gridfuse_analysis::hir::{ExprId, StmtKind};

use crate::api::assumption;
use crate::api::refusal::Ineligible;
use crate::api::refusal::Reason;
use crate::api::refusal::Refusals;
use crate::api::rewrite::{Family, Launches, Layer, Measured, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::edit::builder::EditBuilder;
use crate::emit::removed_streams;
use crate::emit::replaced_launch::replace_launch_by;
use crate::emit::split::Split;
use crate::emit::target;
use crate::facts::barriers;
use crate::facts::child::Child;
use crate::facts::graphs;
use crate::facts::launch_errors;
use crate::facts::movable::KEPT_BLOCK;
use crate::facts::pending;
use crate::facts::read_only;
use crate::facts::site::Site;
use crate::runtime::is_header;
use crate::transforms::aggregate::{refuse_child, understand_stream};
use crate::transforms::self_launch::{
    Plan, Runtime, bounds, entries, launches_kernel, own_launches, refuse_other_instance, uniform,
};

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "flatten-recursion",
    title: "Flatten the recursion into a worklist",
    doc: DOC,
    options: &[],
    target: Target::Launch(Launches::Recursive),
    family: Family::Recursion,
    measured: Measured::Alone,
    tunes: None,
    unattended: false,
    undo: Undo::Layer(Layer::Flattened),
    run: apply,
};

const RUNTIME: Runtime = Runtime {
    kernel: "flattened",
    memory: "Worklist",
    variable: "worklist",
    runner: "Recursion",
    without: "Without a worklist, launches are made as before.",
    purpose: "Runs all grids of the recursion of",
};

const DOC: &str = r#"Runs a recursive kernel as a single grid. Its blocks take what is left to do from a worklist.

The kernel's body becomes a function, `visit_body`. Where the kernel launched itself, it now writes down a record for each block of that
grid. `visit_flattened` has as many blocks as the device can run at a time. Each of them takes a record, runs the body as the block for
which the record stands, and takes the next one. It stops when there is none left, and no block at work could add one. A block that
launches keeps one record for itself, so a chain of single launches never waits for anybody. The recursion has no depth limit any more, and
no pending launches add up. If the kernel launches other kernels besides, those launches stay, and the one grid that runs now keeps a slot
for each of them until it is done: the rewrite assumes that they are fewer than `cudaLimitDevRuntimePendingLaunchCount`.

The host launches `visit_flattened`, with the arguments of the first grid in the worklist. `visit` itself stays, for launches that
the rewrite doesn't see; from there each launch goes out by itself.

A launch is never lost. A launch that doesn't fit is done as before: when there is no more room (for 2^18 records), when it has more than
4096 blocks, or when its block has another size or more dynamic shared memory than the first grid's. `gridfuse::direct_launches()` counts
those.

## Needs
- A kernel that launches itself in its own body; launches in functions that it calls are refused.
- Fire-and-forget launches, launches into the NULL stream, or into streams that are created for one launch each (these are removed).
  No tail launches, by the kernel or by what it calls: they wait for the launching grid, which is now the only one.
- Every barrier is reached by all threads of a block or by none, as the blocks' threads wait for each other between two records.
  Where that depends on memory that the kernel writes itself (`if (nodes[which].count <= kLeaf) return;`), the rewrite assumes that all
  threads of a block find the same there: none of them writes it before all have read it.
- A kernel that doesn't wait for its children or for other blocks, nor use events or `cudaGetLastError`.
- No read-only loads (`__ldg`, `ld.global.nc`) through a pointer through which something is written: within one grid such a load may miss
  it. The rewrite assumes that nothing gets there in other ways (another pointer, a texture). `__restrict__`
  does no harm: the flattened kernel goes without it.
- A launch by the host that can be changed.

It assumes that grids that the NULL stream would run one at a time are independent of each other, unless that is proven. If another kernel
is launched into the NULL stream after the recursive launch (to merge what the recursion has sorted, say), the rewrite is refused.

## Why it can't hang
A block that wants work takes a ticket. The tickets, in order, stand for the blocks of the first grid and then for the records. A
block whose record isn't there yet waits for it, and looks from time to time whether everything is done. So:

- Only blocks that run have tickets. A block that hasn't begun is not waited for: it is enough that blocks that have begun go on,
  which is what CUDA promises for compute capability 7.0 and newer. With fewer resident blocks than expected (another kernel, a
  debugger, a partition of the GPU) the others begin when these are done, and find nothing to do. One block is enough.
- A record gets its place before it is written. Writing it waits for nothing except, after 2^18 records, for the reader of what stood there
  before. That reader has a ticket, so it runs; it reads and leaves before it begins to work. There are never more records under way than
  places, so it isn't waiting for a record that comes later.
- The number of records that aren't done counts those that are being run. It becomes zero only when no block can add one.
- Nothing waits for launches that go out by themselves.

A record is written before its place is marked as full, with a fence in between, and read after another one: a block sees
what the thread that launched it had written or seen. This is the order that a launch gives, too.

## Before
```cuda
// The children of a node of a tree have the numbers row[node] to row[node + 1] - 1.
__global__ void visit(const int* row, int* depths, int first, int depth) {
    int node = first + blockIdx.x;
    depths[node] = depth;
    int begin = row[node], count = row[node + 1] - begin;
    if (count > 0) visit<<<count, 1, 0, cudaStreamFireAndForget>>>(row, depths, begin, depth + 1);
}

void run(const int* row, int* depths, int root, cudaStream_t stream) {
    visit<<<1, 1, 0, stream>>>(row, depths, root, 0);
}
```

## After
```cuda
#include "gridfuse.cuh"

// The arguments of visit that differ between its launches.
struct visit_args { int first; int depth; };

__global__ void visit_flattened(gridfuse::Worklist<visit_args> worklist, const int* row,
                                int* depths);

// The children of a node of a tree have the numbers row[node] to row[node + 1] - 1.
// The body of visit, for any block of any grid; `gridfuse revert` takes it back.
__device__ __forceinline__ void visit_body(gridfuse::Recursion<visit_flattened>& visits,
                                           uint3 blockIdx, dim3 gridDim, dim3 blockDim,
                                           const int* row, int* depths, int first, int depth) {
    int node = first + blockIdx.x;
    depths[node] = depth;
    int begin = row[node], count = row[node + 1] - begin;
    // was: visit<<<count, 1, 0, cudaStreamFireAndForget>>>(row, depths, begin, depth + 1)
    if (count > 0) visits.launch(count, 1, {begin, depth + 1});
}

// What a plain launch of visit runs; `gridfuse revert` takes it back.
__global__ void visit(const int* row, int* depths, int first, int depth) {
    // Without a worklist, launches are made as before.
    gridfuse::Recursion<visit_flattened> visits({}, row, depths);
    visit_body(visits, blockIdx, gridDim, blockDim, row, depths, first, depth);
}

// Runs all grids of the recursion of visit; `gridfuse revert` takes it back.
__global__ void visit_flattened(gridfuse::Worklist<visit_args> worklist, const int* row,
                                int* depths) {
    gridfuse::Recursion<visit_flattened> visits(worklist, row, depths);
    visits.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const visit_args& args) {
        visit_body(visits, blockIdx, gridDim, blockDim, row, depths, args.first, args.depth);
    });
}

void run(const int* row, int* depths, int root, cudaStream_t stream) {
    // was: visit<<<1, 1, 0, stream>>>(row, depths, root, 0)
    gridfuse::launch_recursion<visit_flattened>(1, 1, 0, stream, {root, 0}, row, depths);
}
```

## Source
Single-launcher recursion is what most programs with dynamic parallelism do (see El Hajj, dissertation 2018, chapter 4, for chains of
such launches). Worklists in persistent kernels: Aila and Laine, HPG 2009; Tzeng, Patney and Owens, HPG 2010; the queue with
tickets: Kerbl et al., The Broker Queue, ICS 2018.
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    let db = ctx.db;
    let mut draft = Draft::begin(ctx)?;
    let Draft {
        site: asked, refusals, ..
    } = &mut draft;
    asked.refuse_common(refusals);
    let kernel = asked.parent;
    if asked.child(refusals) != Some(kernel) {
        refusals.add(
            format!("`{}` isn't a kernel that launches itself here", asked.parent_name()),
            Some(asked.here()),
        );
    }
    refusals.check()?;
    let child = draft.read(kernel);
    let header = draft.header();
    let header = draft.settle(header)?;
    let Draft {
        site: asked,
        edit,
        refusals,
        ..
    } = &mut draft;
    let sites = own_launches(db, &child);
    let mut streams = Vec::new();
    for site in &sites {
        site.refuse_common(refusals);
        target::refuse_place(site, refusals);
        target::refuse_undecided(site, refusals);
        target::refuse_operands_but_defaults(site, true, refusals);
        streams.extend(understand_stream(site, &[], refusals, edit).map(|stream| (site, stream)));
        refuse_other_instance(site, &child, refusals);
    }
    refuse_kernel(asked, &child, &sites, refusals, edit);
    let uniform = uniform(&sites, &child);
    let splits: Vec<Split<'_>> = sites
        .iter()
        .map(|site| Split::of_instance(site, &child, &uniform, refusals))
        .collect();
    let entries = entries(&child, &uniform, &RUNTIME, refusals);
    let split = draft.settle(splits.first())?;
    let Draft {
        names, edit, refusals, ..
    } = &mut draft;
    for (host, _) in &entries {
        names.add_file(db, host.file);
        graphs::keep(host, refusals, edit);
    }
    let varying = split.varying().map(|p| &p.param.ty);
    let bounds = bounds(&child, varying, &entries, None, refusals, edit);
    let plan = Plan::new(&child, split, &RUNTIME, bounds, names);
    refusals.check()?;
    header.include_in(db, edit, child.file);
    plan.generate(names, edit);
    for (site, split) in sites.iter().zip(&splits) {
        let fields: Vec<String> = split.varying().map(|part| part.initialiser.clone()).collect();
        replace_launch_by(site, &fields, None, &format!("{}.launch", plan.launches), edit);
    }
    removed_streams::remove(streams.iter().map(|(site, stream)| (*site, stream)), edit);
    for (host, split) in &entries {
        header.include_in(db, edit, host.file);
        plan.replace_entry("launch_recursion", host, split, edit);
    }
    draft.finish()
}

/// Refuses a kernel that can't be run block by block by a grid that stays.
fn refuse_kernel<'db>(
    asked: &Site<'db>,
    child: &Child<'db>,
    sites: &[Site<'db>],
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'db>,
) {
    let db = child.db;
    let name = &child.name;
    let effects = effects(db, child.item);
    refuse_child(asked, child, true, KEPT_BLOCK, refusals);
    launch_errors::refuse_asked(name, &effects, refusals);
    for reason in barriers::refuse_divergent(db, child.item, name, &effects, true, refusals) {
        edit.assume(reason);
    }
    read_only::refuse_written(db, child.item, name, &effects, refusals, edit);
    if child.template.as_ref().is_some_and(|t| t.contains('=')) {
        refusals.add(
            format!("`{name}` has default template arguments, and its kernel has to be declared twice"),
            Some(child.place()),
        );
    }
    let own = launches(db, child.item);
    if effects.launches.len() > own.len() {
        let place = effects.launches.last().map(|l| l.place);
        refusals.add(format!("`{name}` calls functions that launch"), place);
    }
    for other in own.iter().filter(|facts| !launches_kernel(facts, child)) {
        let place = Some(FileRange {
            file: child.file,
            range: other.span.shift(child.start),
        });
        match other.stream {
            Stream::FireAndForget | Stream::Created(_) => {}
            Stream::Null => {
                let follows = |site: &&Site<'_>| {
                    let loops = &site.facts.loops;
                    let behind = site.facts.span.end <= other.span.start;
                    site.facts.stream == Stream::Null && (behind || !loops.is_empty()) && !excludes(site, other.expr)
                };
                if sites.iter().any(|site| follows(&site)) {
                    refusals.add(
                        format!("the NULL stream runs this after a grid of `{name}`, with all that it launches"),
                        place,
                    );
                }
            }
            _ => refusals.add(
                format!("`{name}` launches into a stream that depends on which grid launches"),
                place,
            ),
        }
    }
    let others: Vec<String> = own
        .iter()
        .filter(|facts| !launches_kernel(facts, child))
        .map(|facts| facts.kernel_name.clone().unwrap_or_else(|| "another kernel".to_owned()))
        .collect();
    if let Some(text) = pending::kept_by_one_grid(db, child.file, name, &others) {
        let place = Some(child.place());
        edit.assume(assumption::PENDING_LAUNCHES.of(Reason { text, place }));
    }
    let of_user = |m: &FileRange| !is_header(db, m.file);
    for mention in other_mentions(db, child.item).into_iter().filter(of_user).take(3) {
        refusals.add(
            format!(
                "`{name}` is mentioned where it isn't launched, and what is set for it there doesn't hold for the flattened kernel"
            ),
            Some(mention),
        );
    }
}

/// Whether a launch and another expression stand in different branches of an `if`, to which a thread comes only once.
fn excludes(site: &Site<'_>, other: ExprId) -> bool {
    let body = &site.body;
    let (own, other) = (site.facts.span, body.expr(other).span);
    let jumps = |kind: &StmtKind| matches!(kind, StmtKind::Goto(_) | StmtKind::Unknown { .. });
    if body.stmts.iter().any(|stmt| jumps(&stmt.kind)) {
        return false;
    }
    let once = |span: Span| !site.facts.loops.iter().any(|l| body.stmt(l.stmt).span.contains(span));
    body.stmts.iter().filter(|stmt| once(stmt.span)).any(|stmt| {
        let StmtKind::If {
            then,
            otherwise: Some(otherwise),
            ..
        } = &stmt.kind
        else {
            return false;
        };
        let (then, otherwise) = (body.stmt(*then).span, body.stmt(*otherwise).span);
        then.contains(own) && otherwise.contains(other) || then.contains(other) && otherwise.contains(own)
    })
}
