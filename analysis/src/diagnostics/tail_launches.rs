//! `tail-launches`

use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::launch::{Child, LaunchCount, LaunchFacts, LaunchId, Launchers, Stream, launch_counts, launches};
use crate::hir::body;
use crate::hir::items::FunctionItem;
use crate::hir::resolve::{launch_sites_of, only_known_launches};

pub(super) const KIND: Kind = Kind {
    id: "tail-launches",
    severity: Severity::Info,
    doc: DOC,
    rewrites: &[],
    find: tail_launches,
};

const DOC: &str = r#"One thread launches several grids into the tail stream, and the host could launch them.

## What it does
Finds kernels that only the host launches, and of which one thread launches two grids or more into `cudaStreamTailLaunch`, in each run and
one time each. A single tail launch is left alone, and so are launches in loops, under conditions that depend on data, and those of the kernel itself: for
these there is `launch-chain`.

## Why is this bad
Tail launches of a grid run one at a time, in the order in which they were launched, and the first one begins when the grid and its child
grids are done. Each start takes the device several microseconds, as long as small grids run. The host puts the same grids into the
stream while the kernel runs.

## Example
```cuda
__global__ void count(const int* keys, int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[keys[i] & 15], 1);
}

__global__ void scan(int* bins) {
    if (threadIdx.x != 0) return;
    for (int i = 1; i < 16; ++i) bins[i] += bins[i - 1];
}

__global__ void clear(const int* keys, int* bins, int n) {
    if (threadIdx.x != 0) return;
    for (int i = 0; i < 16; ++i) bins[i] = 0;
    count<<<(n + 255) / 256, 256, 0, cudaStreamTailLaunch>>>(keys, bins, n);
    scan<<<1, 32, 0, cudaStreamTailLaunch>>>(bins);
}

void run(const int* keys, int* bins, int n) { clear<<<1, 32>>>(keys, bins, n); }
```

## Use instead
Launches by the host, in the same order, or one kernel that does what several small ones do.

```cuda
__global__ void count(const int* keys, int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[keys[i] & 15], 1);
}

__global__ void scan(int* bins) {
    if (threadIdx.x != 0) return;
    for (int i = 1; i < 16; ++i) bins[i] += bins[i - 1];
}

__global__ void clear(int* bins) {
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
}

void run(const int* keys, int* bins, int n) {
    clear<<<1, 32>>>(bins);
    count<<<(n + 255) / 256, 256>>>(keys, bins, n);
    scan<<<1, 32>>>(bins);
}
```
"#;

/// So many names a message has room for.
const MAX_NAMED: usize = 4;

fn tail_launches<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    one_at_a_time(db, function).into_iter().collect()
}

fn one_at_a_time<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Option<Finding<'db>> {
    let all = launches(db, function);
    let is_tail = |facts: &LaunchFacts<'db>| facts.stream == Stream::TailLaunch;
    if !function.signature(db).kernel || all.iter().filter(|facts| is_tail(facts)).count() < 2 {
        return None;
    }
    if body(db, function).cut || !by_host(db, function) {
        return None;
    }
    let counted = all.iter().zip(launch_counts(db, function));
    let mut found: Vec<&LaunchFacts<'db>> = Vec::new();
    for (facts, count) in counted.filter(|(facts, _)| is_tail(facts)) {
        // What isn't launched in each run, or how often isn't known, the host can't launch in its place.
        if !is_certain(function, facts, count) {
            return None;
        }
        found.push(facts);
    }
    let first = found.first()?;
    let (names, kernel) = (names(&found), function.name(db));
    let related = found.iter().skip(1);
    Some(Finding {
        span: first.span,
        message: format!(
            "{} tail launches by one thread: their grids start one at a time when `{kernel}` is done",
            found.len()
        ),
        label: "the first of them".to_owned(),
        related: related
            .map(|facts| (function, facts.span, "the grid before has to be done first".to_owned()))
            .collect(),
        help: Some(format!(
            "launch {names} from the host, right after `{kernel}`, or let one kernel do what they do"
        )),
    })
}

/// It is plain to see that a grid launches this one time, and that it isn't the kernel itself.
fn is_certain(function: FunctionItem<'_>, facts: &LaunchFacts<'_>, count: &LaunchCount) -> bool {
    let plain = !facts.in_lambda && !facts.from_macro && !facts.conditional && facts.loops.is_empty();
    let another = matches!(facts.child, Child::Kernel(child) if child != function);
    plain && another && count.per_grid.constant() == Some(1)
}

/// All launches of the kernel are known, there are some, and the host does them.
fn by_host(db: &dyn Db, kernel: FunctionItem<'_>) -> bool {
    let sites = launch_sites_of(db, kernel);
    let is_host = |id: &LaunchId<'_>| {
        let facts = launches(db, id.function).get(id.index as usize);
        facts.is_some_and(|facts| facts.launchers == Launchers::Host)
    };
    !sites.is_empty() && sites.iter().all(is_host) && only_known_launches(db, kernel)
}

/// ```text
/// `count` and `scan`
/// `count`, `scan` and 7 more kernels
/// ```
fn names(found: &[&LaunchFacts<'_>]) -> String {
    let mut names: Vec<String> = Vec::new();
    for facts in found {
        let name = format!("`{}`", facts.kernel_name.as_deref().unwrap_or("a kernel"));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.len() > MAX_NAMED {
        let more = names.split_off(MAX_NAMED - 1).len();
        names.push(format!("{more} more kernels"));
    }
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}
