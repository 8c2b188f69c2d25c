//! `optimize` and `extract-and-optimize`

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::launch::{Child, LaunchId, in_recursion};
use gridfuse_analysis::hir::items::FunctionItem;

use super::rewrite_by_id;
use crate::api::refusal::Ineligible;
use crate::api::refusal::refuse;
use crate::api::refusal::{Reason, Refusals};
use crate::api::rewrite::{
    Family, Launches, Measured, Offered, OptionSpec, Options, Rewrite, RewriteCtx, Target, Undo,
};
use crate::api::sequence::Sequence;
use crate::api::source_edit::SourceEdit;
use crate::api::written_out;
use crate::draft::Draft;
use crate::facts::site::Site;
use crate::model::{Proposal, advise, launches_leaves};
use crate::transforms::extraction::{extract_loop, loop_at};
use crate::transforms::iteration::belongs_to_loop;

/// Its id.
pub const ID: &str = "optimize";

pub(super) const REWRITE: Rewrite = Rewrite {
    id: ID,
    title: "Optimize the launch",
    doc: DOC,
    options: &[],
    target: Target::Launch(Launches::Any),
    family: Family::Composition,
    measured: Measured::Alone,
    tunes: None,
    unattended: false,
    undo: Undo::EachStep,
    run: apply,
};

pub(super) const EXTRACTED: Rewrite = Rewrite {
    id: "extract-and-optimize",
    title: "Share the loop's iterations among threads",
    doc: EXTRACTED_DOC,
    options: &[OptionSpec {
        name: "block",
        default: "128",
        doc: "Threads of a block of the child: a power of two from 32 to 1024.",
    }],
    target: Target::Place(Offered::ByDiagnostics),
    family: Family::Extraction,
    measured: Measured::No,
    tunes: None,
    unattended: false,
    undo: Undo::Not("`revert` takes the optimization back, and `serialize` runs the child in its launcher again"),
    run: apply_to_loop,
};

const DOC: &str = r#"Applies what a small cost model recommends for this launch: of `aggregate-malloc`, `threshold`, `coarsen` and `aggregate-*`, in
this order, those that can be applied. `gridfuse explain` says which, and why.

The model goes by what is known without running the program: who launches and how often, whether child grids differ in size, how large
a block is, whether a thread of the child has much to do. Its numbers come from measurements on an H200
([measurements](../measurements.md)):

- What can be collected is collected: a child grid costs about 0.8 µs, a collected one some 20 bytes.
- The host launches what runs it right after the parent ([aggregate-grid-stream](aggregate-grid-stream.md)), where that can be and a thread
  has no more than four launches, as memory is set aside for all of them. Then nothing else is done: neither a threshold nor coarsening
  would save a launch.
- Otherwise all launches of a grid become one, except where the parent has only one block. The host launches it where it waits for the
  parent anyway, right after the launch, and where no child grids are run in the launching thread.
- There, child grids of fewer than 32 threads run in the launching thread, if three things hold: child grids differ in size; a thread of
  the child has little to do (it doesn't loop, and calls nothing that loops or computes logarithms and the like); and a thread doesn't
  launch in a loop, as the other lanes of its warp would wait for each of these grids.
- Threads that allocate memory and launch allocate together.
- There, a block of the child with fewer than 128 threads takes over the work of several, if a child grid has more than one.
- Where launches can't be collected, they go into `cudaStreamFireAndForget`.
- A kernel of one block that launches itself becomes one grid, by `promote-lookback`, `promote-overlap` or `promote`; one that
  launches itself into `cudaStreamTailLaunch` becomes a loop, by `persistent-loop`, and so do kernels that launch each other in turn.
  Stages of a pipeline don't: they are run once, and `persistent-loop` gains little there.
- A recursion becomes a worklist in one grid, by `flatten-recursion`, where that fits and no launch is left. Where it ends in grids of other
  kernels, and a block launches one grid at most, launches go into `cudaStreamFireAndForget`.

It can't know how skewed the data are. The numbers are constants in the result, to be tuned.

## Needs
- A launch by many threads, by one of each warp or block, or in a loop; or one that can be promoted or made a loop.
- What the rewrites need that it applies. A rewrite that can't be applied is left out. It assumes what they assume.

## Before
```cuda
__global__ void expand(const int* col, int* dist, int level, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicMin(&dist[col[begin + i]], level + 1);
}

__global__ void visit(const int* row, const int* col, int* dist, int level, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || dist[v] != level) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) expand<<<(count + 127) / 128, 128>>>(col, dist, level, begin, count);
}

void run(const int* row, const int* col, int* dist, int n, cudaStream_t stream) {
    for (int level = 0; level < 10; ++level)
        visit<<<(n + 255) / 256, 256, 0, stream>>>(row, col, dist, level, n);
}
```

## After
```cuda
#include "gridfuse.cuh"

// The body of expand, for any thread of any grid; `gridfuse revert` takes it back.
__device__ __forceinline__ void expand_thread(uint3 threadIdx, uint3 blockIdx, dim3 gridDim,
                                              dim3 blockDim, const int* col, int* dist, int level,
                                              int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicMin(&dist[col[begin + i]], level + 1);
}

// What a plain launch of expand runs; `gridfuse revert` takes it back.
__global__ void expand(const int* col, int* dist, int level, int begin, int count) {
    expand_thread(threadIdx, blockIdx, gridDim, blockDim, col, dist, level, begin, count);
}

// The threads of a block of expand, for its launches and for what runs them.
constexpr int kExpandBlock = 128;

// The arguments of expand that differ within a grid of visit.
// threads(): how many threads of the grid have work.
struct expand_args { int begin; int count; __device__ int threads() const { return count; } };

// Runs the launches of expand by a grid of visit; `gridfuse revert` takes it back.
__global__ void expand_aggregated(gridfuse::StreamBatch<expand_args, kExpandBlock> batch,
                                  const int* col, int* dist, int level) {
    batch.for_each_thread([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim,
                              const expand_args& args) {
        expand_thread(threadIdx, blockIdx, gridDim, blockDim, col, dist, level, args.begin,
                      args.count);
    });
}

// The body of visit, whose launches the kernel runs; `gridfuse revert` takes it back.
__device__ __forceinline__ void visit_body(
    gridfuse::ThreadReuseInStream<expand_aggregated>& expands, const int* row, const int* col,
    int* dist, int level, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || dist[v] != level) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) expands.launch((count + kExpandBlock - 1) / kExpandBlock, kExpandBlock,
                                  {begin, count});
}

// Runs visit_body, and then the launches that it has collected; `gridfuse revert` takes it back.
__global__ void visit(const int* row, const int* col, int* dist, int level, int n,
                      gridfuse::StreamArena arena) {
    gridfuse::ThreadReuseInStream<expand_aggregated> expands(arena);
    visit_body(expands, row, col, dist, level, n);
    expands.for_each_thread([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim,
                                const expand_args& args) {
        expand_thread(threadIdx, blockIdx, gridDim, blockDim, col, dist, level, args.begin,
                      args.count);
    });
}

void run(const int* row, const int* col, int* dist, int n, cudaStream_t stream) {
    for (int level = 0; level < 10; ++level)
        visit<<<(n + 255) / 256, 256, 0, stream>>>(row, col, dist, level, n,
            gridfuse::followed_at_need<expand_aggregated>((n + 255) / 256, 256, stream, col, dist,
                                                          level));
}
```

## Source
Olabi, Gómez Luna, Mutlu, Hwu, El Hajj: A Compiler Framework for Optimizing Dynamic Parallelism on GPUs, CGO 2022, which applies the
same three in this order with parameters found by search.
"#;

const EXTRACTED_DOC: &str = r#"Applies [extract-launch](extract-launch.md) to a loop in a kernel, and [optimize](optimize.md) to the launch that it makes.

A launch for each thread costs more than the loop did. `optimize` makes one of many: launches of a grid are collected where they can be, and
grids of few threads stay in the thread that looped. Where rows are skewed, that is 5 to 120 times faster than the loop, as fast as what
`optimize` makes of a launch that somebody has written; where they are flat, it takes as long as the loop
([measured](../measurements.md#loops-that-become-launches)).

## Needs
- What [extract-launch](extract-launch.md) needs, and a launch that [optimize](optimize.md) can do something about.

## Before
```cuda
__global__ void scatter(const int* __restrict__ row, const int* __restrict__ col, const int* __restrict__ weight,
                        int* __restrict__ out, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    for (int e = row[v]; e < row[v + 1]; ++e)
        atomicAdd(&out[col[e]], weight[e]);
}

void run(const int* row, const int* col, const int* weight, int* out, int n) {
    scatter<<<(n + 255) / 256, 256>>>(row, col, weight, out, n);
}
```

## After
```cuda
#include "gridfuse.cuh"

// An iteration of the loop in scatter, for each thread.
// The body of scatter_loop, for any thread of any grid; `gridfuse revert` takes it back.
__device__ __forceinline__ void scatter_loop_thread(
    uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim, const int* col, const int* weight,
    int* out, int begin, unsigned count) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int e = begin + i;
    atomicAdd(&out[col[e]], weight[e]);
}

// What a plain launch of scatter_loop runs; `gridfuse revert` takes it back.
__global__ void scatter_loop(const int* __restrict__ col, const int* __restrict__ weight,
                             int* __restrict__ out, int begin, unsigned count) {
    scatter_loop_thread(threadIdx, blockIdx, gridDim, blockDim, col, weight, out, begin, count);
}

// The threads of a block of scatter_loop, for its launches and for what runs them.
constexpr int kScatterLoopBlock = 128;

// The arguments of scatter_loop that differ within a grid of scatter.
// threads(): how many threads of the grid have work.
struct scatter_loop_args {
    int begin;
    unsigned count;
    __device__ unsigned int threads() const { return count; }
};

// Runs the launches of scatter_loop by a grid of scatter; `gridfuse revert` takes it back.
__global__ void scatter_loop_aggregated(
    gridfuse::StreamBatch<scatter_loop_args, kScatterLoopBlock> batch, const int* __restrict__ col,
    const int* __restrict__ weight, int* __restrict__ out) {
    batch.for_each_thread([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim,
                              const scatter_loop_args& args) {
        scatter_loop_thread(threadIdx, blockIdx, gridDim, blockDim, col, weight, out, args.begin,
                            args.count);
    });
}

// The body of scatter, whose launches the kernel runs; `gridfuse revert` takes it back.
__device__ __forceinline__ void scatter_body(
    gridfuse::ThreadReuseInStream<scatter_loop_aggregated>& scatter_loops, const int* row,
    const int* col, const int* weight, int* out, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], end = row[v + 1];
    if (begin < end) {
        unsigned count = (unsigned)end - begin;
        // was: scatter_loop<<<(count - 1) / 128 + 1, 128, 0, cudaStreamFireAndForget>>>(
        //    :             col, weight, out, begin, count)
        scatter_loops.launch((count - 1) / kScatterLoopBlock + 1, kScatterLoopBlock,
                             {begin, count});
    }
}

// Runs scatter_body, and then the launches that it has collected; `gridfuse revert` takes it back.
__global__ void scatter(const int* __restrict__ row, const int* __restrict__ col, const int* __restrict__ weight,
                        int* __restrict__ out, int n, gridfuse::StreamArena arena) {
    gridfuse::ThreadReuseInStream<scatter_loop_aggregated> scatter_loops(arena);
    scatter_body(scatter_loops, row, col, weight, out, n);
    scatter_loops.for_each_thread([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim,
                                      const scatter_loop_args& args) {
        scatter_loop_thread(threadIdx, blockIdx, gridDim, blockDim, col, weight, out, args.begin,
                            args.count);
    });
}

void run(const int* row, const int* col, const int* weight, int* out, int n) {
    scatter<<<(n + 255) / 256, 256>>>(row, col, weight, out, n,
        gridfuse::followed_at_need<scatter_loop_aggregated>(
            (n + 255) / 256, 256, /*stream=*/0, col, weight, out));
}
```

## Source
Yang and Zhou: CUDA-NP, PPoPP 2014; Olabi et al.: A Compiler Framework for Optimizing Dynamic Parallelism on GPUs, CGO 2022.
"#;

/// The launch that a loop becomes, optimized.
fn apply_to_loop(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    let (function, here) = loop_at(ctx.db, ctx.place()?)?;
    let mut sequence = Sequence::of_place(ctx.db, function, here, extract_loop(ctx)?);
    sequence.then(&REWRITE, &Options::default())?;
    Ok(sequence.finish())
}

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    let launch = Draft::begin(ctx)?.site.id;
    plan_of(ctx.db, launch).clone().map(|plan| plan.edit)
}

/// In the order in which they are tried, and why.
const PROMOTIONS: [(&str, &str); 5] = [
    (
        "persistent-loop",
        "an iteration that waits in the kernel for the one before begins sooner than a launch",
    ),
    (
        "promote-lookback",
        "links that only add to a running value run side by side",
    ),
    (
        "promote-overlap",
        "a link can begin before it gets what it needs from the one before",
    ),
    ("promote", "waiting for a flag takes a fraction of the time of a launch"),
    (
        "flatten-recursion",
        "a worklist in one grid costs a fraction of a launch for each call",
    ),
];

/// What `optimize` does to a launch, or why nothing.
pub fn plan_of<'db>(db: &'db dyn Db, launch: LaunchId<'db>) -> &'db Result<Plan, Ineligible> {
    plan(db, launch.function, launch.index)
}

#[salsa::tracked(returns(ref), lru = 512)]
fn plan<'db>(db: &'db dyn Db, function: FunctionItem<'db>, index: u32) -> Result<Plan, Ineligible> {
    Plan::make(db, LaunchId { function, index })
}

/// What `optimize` does to a launch.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Plan {
    /// What is applied (`threshold=32`), in order, and why.
    pub steps: Vec<(String, String)>,
    /// What isn't, and why.
    pub without: Vec<(String, String)>,
    /// All of it.
    pub edit: SourceEdit,
}

impl Plan {
    /// What is recommended for what an edit makes of a launch, with the edit itself.
    fn behind<'db>(db: &'db dyn Db, launch: LaunchId<'db>, edit: SourceEdit) -> Result<Plan, Ineligible> {
        let mut sequence = Sequence::new(db, launch)?;
        sequence.begin(edit);
        let mut plan = sequence.then_of(|db, launch, here| {
            let mut plan = plan_of(db, launch).clone()?;
            for (_, why) in plan.steps.iter_mut().chain(&mut plan.without) {
                let text = std::mem::take(why);
                *why = here(&Reason { text, place: None }).text;
            }
            Ok((std::mem::take(&mut plan.edit), plan))
        })?;
        plan.edit = sequence.finish();
        Ok(plan)
    }

    /// Applies what the model recommends.
    ///
    /// # Errors
    /// Why nothing can be done, or nothing is gained.
    pub fn make<'db>(db: &'db dyn Db, launch: LaunchId<'db>) -> Result<Plan, Ineligible> {
        if let Some(edit) = written_out::itself(db, launch) {
            return Plan::behind(db, launch, edit);
        }
        let site = Site::new(db, launch)?;
        let mut refusals = Refusals::default();
        site.refuse_common(&mut refusals);
        refusals.check()?;
        if let Some(plan) = Plan::promotion(db, &site) {
            return Ok(plan);
        }
        let advice = advise(&site).map_err(|why| refuse(why, Some(site.here())))?;
        let mut plan = Plan::without(&advice.without);
        if !advice.best.is_empty() {
            let mut best = Plan::without(&advice.without_with_best);
            let mut sequence = Sequence::new(db, launch)?.only_what_fits();
            let mut collected = false;
            for proposal in &advice.best {
                // The last step collects the launches.
                collected = best.step(&site, &mut sequence, proposal).is_ok();
            }
            if collected {
                best.edit = sequence.finish();
                return Ok(best);
            }
            plan.without
                .append(&mut best.without.split_off(advice.without_with_best.len()));
        }
        let mut sequence = Sequence::new(db, launch)?.only_what_fits();
        let mut last = None;
        for proposal in &advice.steps {
            last = plan.step(&site, &mut sequence, proposal).err();
            if last.is_none() && plan.leaves_no_launch() {
                break;
            }
        }
        // The last step collects the launches. Without it a threshold is worth something, and one allocation for several threads.
        if let Some(refusal) = last {
            plan.steps.clear();
            sequence = Sequence::new(db, launch)?.only_what_fits();
            let alone = |s: &&Proposal| s.ids.contains(&"threshold") || s.ids.contains(&"aggregate-malloc");
            for proposal in advice.steps.iter().filter(alone).chain(&advice.otherwise) {
                if plan.leaves_no_launch() {
                    break;
                }
                // Why not has been said for the one, and the other may well go there already.
                let _ = plan.step(&site, &mut sequence, proposal);
            }
            if plan.steps.is_empty() {
                // What hinders it in the program itself says more than what hinders it in a text that nobody has seen.
                let wanted = advice
                    .steps
                    .last()
                    .and_then(|proposal| rewrite_by_id(proposal.ids.first()?));
                let plain = wanted.map(|rewrite| rewrite.edit(db, launch, &Options::default()));
                let plain = plain.and_then(|edit| edit.and_then(SourceEdit::unless_contradicted).err());
                return Err(plain.unwrap_or(refusal));
            }
        }
        plan.without.dedup();
        plan.edit = sequence.finish();
        Ok(plan)
    }

    /// All grids run in the launching thread.
    fn leaves_no_launch(&self) -> bool {
        self.steps.iter().any(|(step, _)| step == "serialize")
    }

    /// No steps, and what the model advises against.
    fn without(advice: &[(&'static str, String)]) -> Plan {
        let without = advice.iter().map(|(id, why)| ((*id).to_owned(), why.clone()));
        Plan {
            steps: Vec::new(),
            without: without.collect(),
            edit: SourceEdit::default(),
        }
    }

    /// What takes the place of a kernel's launches of itself, or of kernels that launch each other in turn.
    fn promotion<'db>(db: &'db dyn Db, site: &Site<'db>) -> Option<Plan> {
        let itself = matches!(site.facts.child, Child::Kernel(child) if child == site.parent);
        // What runs once gains little by a loop, and may lose by what its kernels take together.
        let in_turn = belongs_to_loop(site);
        let mut without = Vec::new();
        for (id, why) in PROMOTIONS {
            let fits = match id {
                // Launches of leaves would stay.
                "flatten-recursion" => in_recursion(db, site.id) && !launches_leaves(db, site.parent),
                "persistent-loop" => itself || in_turn,
                _ => itself,
            };
            if !fits {
                continue;
            }
            let edit = rewrite_by_id(id)?.edit(db, site.id, &Options::default());
            match edit.and_then(SourceEdit::unless_contradicted) {
                Ok(edit) => {
                    return Some(Plan {
                        steps: vec![(id.to_owned(), why.to_owned())],
                        without,
                        edit,
                    });
                }
                Err(Ineligible(reasons)) => without.extend(reasons.first().map(|r| (id.to_owned(), r.text.clone()))),
            }
        }
        None
    }

    /// Applies the first rewrite of a proposal that can be; gives the refusal of the first otherwise.
    fn step(&mut self, site: &Site<'_>, sequence: &mut Sequence<'_>, proposal: &Proposal) -> Result<(), Ineligible> {
        let mut first = None;
        let did = |id: &str| self.steps.iter().any(|(step, _)| step.split('=').next() == Some(id));
        // What the child's blocks do is plain to see before they are coarsened, and less so behind it.
        let also_alone = did("coarsen") && !did("aggregate-malloc");
        for id in &proposal.ids {
            let Some(rewrite) = rewrite_by_id(id) else { continue };
            let mut options = Options::default();
            let option = proposal.option.as_ref();
            if let Some((name, value)) = option.filter(|(name, _)| rewrite.options.iter().any(|o| o.name == *name)) {
                options.0.insert((*name).to_owned(), value.clone());
            }
            let alone = match also_alone {
                true => rewrite.edit(site.db, site.id, &options).map(|_| ()),
                false => Ok(()),
            };
            match alone.and_then(|()| sequence.then(rewrite, &options)) {
                Ok(()) => {
                    let value = options.0.values().next().map_or(String::new(), |v| format!("={v}"));
                    self.steps.push((format!("{id}{value}"), proposal.why.clone()));
                    return Ok(());
                }
                Err(refusal) => {
                    let why = refusal.0.first().map_or(String::new(), |r| r.text.clone());
                    self.without.push(((*id).to_owned(), why));
                    first = first.or(Some(refusal));
                }
            }
        }
        Err(first.unwrap_or_else(|| refuse("nothing fits", None)))
    }
}
