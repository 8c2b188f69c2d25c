//! `launch-chain`

use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::effects::effects;
use crate::facts::launch::{Child, Extent, LaunchFacts, LaunchId, Launchers, Operand, Stream, launches, who_launches};
use crate::hir::items::FunctionItem;
use crate::hir::resolve::{launch_sites_of, only_known_launches};
use crate::hir::{BindingId, Body, Builtin, ExprId, ExprKind, Name, body};

pub(super) const KIND: Kind = Kind {
    id: "launch-chain",
    severity: Severity::Info,
    doc: DOC,
    rewrites: &[
        "optimize",
        "promote-lookback",
        "promote-overlap",
        "promote",
        "persistent-loop",
        "flatten-recursion",
    ],
    find: launch_chain,
};

const DOC: &str = r#"Each grid of a kernel launches the next one: a chain of grids that run one at a time.

## What it does
Finds recursive kernels in which each grid launches one further grid, and the host launches the first one. Either one thread launches a
grid of one block, or one thread of the grid launches the next grid into the tail stream. A driver of rounds launches other kernels
first, and itself after them. Any other kernel that launches something else as well is left alone, and so is one that waits for
the next grid. If each grid launches several others, or one with several blocks that do the same,
it is a tree: `launch-tree`.

## Why is this bad
The links of a chain run one at a time, on one multiprocessor. Each of them has to be launched first: that takes about 10 µs. On an H200,
six programs that scan, filter or move an array in 24 tiles take 0.27 to 0.37 ms as a chain, and 0.016 to 0.020 ms as one grid
(`promote-lookback`): 15 to 18 times less. With 4096 tiles the chain breaks off: too many launches are pending. 1000 sweeps over a small
plate take 12.1 ms with a tail launch for each, and 3.2 ms as a loop in one grid (`persistent-loop`); over a plate that fills the GPU, a
loop is no faster. [All numbers](../measurements.md)

## Example
```cuda
// The sums of all tiles so far.
__global__ void sum_tiles(const int* in, int* sums, int tiles, int tile, int before) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = before;
    __syncthreads();
    atomicAdd(&sum, in[tile * 256 + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) {
        sums[tile] = sum;
        if (tile + 1 < tiles) sum_tiles<<<1, 256>>>(in, sums, tiles, tile + 1, sum);
    }
}

void run(const int* in, int* sums, int tiles) { sum_tiles<<<1, 256>>>(in, sums, tiles, 0, 0); }
```

## Use instead
A loop in one grid (`promote`, `persistent-loop`), or a grid with a block for each link, in which each block passes on what the next one
needs (`promote-overlap`, `promote-lookback`).

```cuda
__global__ void sum_tiles(const int* in, int* sums, int tiles) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
        __syncthreads();
        atomicAdd(&sum, in[tile * 256 + threadIdx.x]);
        __syncthreads();
        if (threadIdx.x == 0) sums[tile] = sum;
    }
}

void run(const int* in, int* sums, int tiles) { sum_tiles<<<1, 256>>>(in, sums, tiles); }
```
"#;

fn launch_chain<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    next_link(db, function).into_iter().collect()
}

fn next_link<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Option<Finding<'db>> {
    if !function.signature(db).kernel {
        return None;
    }
    // The other launches of a driver come before its own.
    let (facts, others) = launches(db, function).split_last()?;
    let own = matches!(facts.child, Child::Kernel(child) if child == function);
    let drives = facts.stream == Stream::TailLaunch && others.iter().all(|other| is_of_a_round(function, other));
    // How often it is launched has to be plain to see.
    let unclear = facts.in_lambda || facts.from_macro || facts.conditional || !facts.loops.is_empty();
    let body = body(db, function);
    if !own || unclear || body.cut || !(others.is_empty() || drives) {
        return None;
    }
    let index = others.len() as u32;
    let who = who_launches(db, LaunchId { function, index });
    let firsts = by_host(db, function)?;
    let tail = facts.stream == Stream::TailLaunch;
    let one_block = facts.grid.constant == Some([1, 1, 1]);
    let one_thread = match who {
        Launchers::OnePerGrid => true,
        // Of a grid that has one block, as the one before.
        Launchers::OnePerBlock if tail => {
            (one_block || is_builtin(&body, facts.grid.operand.expr, Builtin::GridDim))
                && firsts.iter().all(|first| first.grid.constant == Some([1, 1, 1]))
        }
        Launchers::OnePerBlock => one_block,
        _ => false,
    };
    let fits = match facts.stream {
        Stream::TailLaunch => firsts.iter().all(|first| keeps_size(&body, facts, &first.block)),
        Stream::Null | Stream::FireAndForget | Stream::PerThread | Stream::Created(_) => one_block,
        Stream::Other => false,
    };
    if !one_thread || !fits || is_bound_to_its_grid(db, function, facts, others.len()) {
        return None;
    }
    let kernel = function.name(db);
    Some(Finding {
        span: facts.span,
        message: match tail {
            true if !others.is_empty() => format!(
                "each grid of `{kernel}` launches the next one when {} done: several launches for each round",
                are(others)
            ),
            true => format!("each grid of `{kernel}` launches the next one when it is done: one launch for each round"),
            false => format!("each grid of `{kernel}` launches the next one: a chain of grids that run one at a time"),
        },
        label: "one launch for each further grid".to_owned(),
        related: Vec::new(),
        help: Some(
            match tail {
                true => "turn the launches into a loop in one grid",
                false => "turn the chain into one grid",
            }
            .to_owned(),
        ),
    })
}

/// Another kernel, after which the next link comes: in the same stream, or as a child grid of this one.
fn is_of_a_round<'db>(driver: FunctionItem<'db>, other: &LaunchFacts<'db>) -> bool {
    let before = matches!(other.stream, Stream::TailLaunch | Stream::Null);
    matches!(other.child, Child::Kernel(child) if child != driver) && before
}

/// ```text
/// `step` is
/// `step` and `swap` are
/// ```
fn are(others: &[LaunchFacts<'_>]) -> String {
    let mut names: Vec<String> = Vec::new();
    for other in others {
        let name = format!("`{}`", other.kernel_name.as_deref().unwrap_or("a kernel"));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names.as_slice() {
        [only] => format!("{only} is"),
        _ => format!("{} are", names.join(" and ")),
    }
}

/// The launches of a kernel by others than itself, if the host does all of them, and there are some.
fn by_host<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> Option<Vec<&'db LaunchFacts<'db>>> {
    let others = launch_sites_of(db, kernel)
        .into_iter()
        .filter(|id| id.function != kernel);
    let others: Vec<&LaunchFacts<'db>> = others
        .map(|id| launches(db, id.function).get(id.index as usize))
        .collect::<Option<_>>()?;
    let all = others.iter().all(|facts| facts.launchers == Launchers::Host);
    (all && !others.is_empty()).then_some(others)
}

/// What the kernel does has to stay in a grid of its own for each link, or isn't known. `others`: how often it launches something else.
fn is_bound_to_its_grid<'db>(
    db: &'db dyn Db,
    kernel: FunctionItem<'db>,
    next: &LaunchFacts<'db>,
    others: usize,
) -> bool {
    let does = effects(db, kernel);
    let body = body(db, kernel);
    let handed_on = |(arg, parameter): (&Operand, &BindingId)| {
        let arg = &body.expr(body.strip_parens(arg.expr)).kind;
        matches!(arg, ExprKind::Name(Name::Local(binding)) if binding == parameter)
            || body.binding(*parameter).ty.pointers == 0
    };
    // It loads as if nobody wrote there, from where the round before has written.
    let loads_of_a_round = || {
        let marked = !does.read_only.is_empty() || !does.restricts.is_empty();
        marked && !next.args.iter().zip(&body.params).all(handed_on)
    };
    let tail = next.stream == Stream::TailLaunch;
    let waits = !does.syncs.is_empty() || !does.waits.is_empty();
    let others = does.launches.len() > 1 + others || tail && !does.operations.is_empty();
    waits
        || others
        || !does.errors.is_empty()
        || !does.unknown.is_empty()
        || tail && loads_of_a_round()
        || !only_known_launches(db, kernel)
}

/// The next grid has blocks of this grid's size.
fn keeps_size(body: &Body, facts: &LaunchFacts<'_>, first: &Extent) -> bool {
    let own = &facts.block;
    is_builtin(body, own.operand.expr, Builtin::BlockDim) || own.constant.is_some() && own.constant == first.constant
}

/// `blockDim`, or its first dimension.
fn is_builtin(body: &Body, expr: ExprId, builtin: Builtin) -> bool {
    match &body.expr(body.strip_parens(expr)).kind {
        ExprKind::Name(Name::Builtin(found)) => *found == builtin,
        ExprKind::Field { base, field, .. } => field == "x" && is_builtin(body, *base, builtin),
        _ => false,
    }
}
