//! `promote`, `promote-overlap`, `promote-lookback`.

use super::{refuses, rewrite};

/// A kernel that sums up tile by tile; `BODY` and `LAUNCH` can be something else.
const SUMS: &str = "\
__device__ int sum_of(int value);
__device__ int helper_of_block() { return blockIdx.x; }
__device__ int sum(const int* in, int i) {
    __shared__ int all;
    if (threadIdx.x == 0) all = 0;
    __syncthreads();
    atomicAdd(&all, in[i]);
    __syncthreads();
    return all;
}
__global__ void sums(const int* in, int* out, int n, int tile, int before) {
    int total = sum(in, tile * 128 + threadIdx.x);
    if (threadIdx.x == 0 && tile + 1 < n) sums<<<1, 128>>>(in, out, n, tile + 1, before + total);
    if (threadIdx.x == 0) out[tile] = before;
}
void run(const int* in, int* out, int n) { sums<<<1, 128>>>(in, out, n, 0, 0); }
";

const ALL: [&str; 3] = ["promote", "promote-overlap", "promote-lookback"];

/// The program with `from` replaced, which must occur.
#[track_caller]
fn with(from: &str, to: &str) -> String {
    assert!(SUMS.contains(from), "no {from}");
    SUMS.replace(from, to)
}

#[track_caller]
fn refused(ids: &[&str], program: &str, reason: &str) {
    for id in ids {
        refuses(id, program, reason);
    }
}

#[test]
fn waits_for_the_launch() {
    rewrite("promote", SUMS).has(&[
        "struct sums_args { int tile; int before; };",
        "void sums_link(gridfuse::Chain<sums_args>& chain, const int* in,",
        "if (threadIdx.x == 0 && tile + 1 < n) chain.launch({tile + 1, before + total});",
        "while (chain.next()) {",
        "sums<<<gridfuse::chain_blocks<sums>(128), 128>>>(in, out, n, 0, 0,",
        "gridfuse::chain_for());",
    ]);
}

#[test]
fn runs_early_what_needs_nothing() {
    rewrite("promote-overlap", SUMS).has(&[
        "struct sums_args { int before; };",
        "    int total = sum(in, tile * 128 + threadIdx.x);\n    int before = chain.wait().before;\n    if (threadIdx.x == 0 && tile + 1 < n) chain.launch_at_once({before + total});",
        "bool sums_goes_on(int n, int tile) {\n    return tile + 1 < n;\n}",
        "return sums_goes_on(n, tile + static_cast<int>(link));",
        "sums_link(chain, in, out, n, tile + static_cast<int>(chain.number()));",
    ]);
}

#[test]
fn looks_back_for_a_running_sum() {
    rewrite("promote-lookback", SUMS).has(&[
        "gridfuse::RunningChain<int, gridfuse::Sum> chain(memory, before);",
        "    int before = chain.before(total);\n    if (threadIdx.x == 0 && tile + 1 < n) chain.launch();",
    ]);
}

#[test]
fn the_corpus_is_promoted() {
    let programs = [
        include_str!("../../../tests/corpus/los.cu"),
        include_str!("../../../tests/corpus/pd.cu"),
        include_str!("../../../tests/corpus/pt.cu"),
        include_str!("../../../tests/corpus/sc.cu"),
        include_str!("../../../tests/corpus/unq.cu"),
        include_str!("../../../tests/corpus/upd.cu"),
    ];
    for program in programs {
        for id in ALL {
            let result = rewrite(id, program);
            assert!(
                result
                    .assumes
                    .iter()
                    .all(|a| a.contains("of the shared memory that it may use")),
                "{id}: {:?}",
                result.assumes
            );
        }
    }
}

#[test]
fn returns_of_all_threads_end_the_chain() {
    let program = with("    int total", "    if (tile >= n) return;\n    int total").replace(" && tile + 1 < n", "");
    rewrite("promote-overlap", &program).has(&["return !(tile >= n);"]);
    rewrite("promote-lookback", &program);
}

#[test]
fn variables_in_the_condition_are_computed_again() {
    let program = with(
        "    if (threadIdx.x == 0 && tile + 1 < n)",
        "    const int next = tile + 1;\n    if (threadIdx.x == 0 && next < n)",
    );
    rewrite("promote-overlap", &program).has(&["return static_cast<int>(tile + 1) < n;"]);
}

#[test]
fn steps_of_any_size() {
    let program = with("tile + 1, before", "tile - n / 4, before").replace("tile + 1 < n", "tile > n");
    rewrite("promote-overlap", &program).has(&["tile - static_cast<int>(chain.number()) * (n / 4)"]);
}

#[test]
fn what_is_not_a_chain() {
    refused(
        &ALL,
        &with(
            "sums<<<1, 128>>>(in, out, n, tile + 1",
            "sums<<<2, 128>>>(in, out, n, tile + 1",
        ),
        "isn't known to be one block",
    );
    refused(
        &ALL,
        &with(
            "void run(const int* in, int* out, int n) { sums<<<1,",
            "void run(const int* in, int* out, int n) { sums<<<n,",
        ),
        "isn't known to be one block",
    );
    refused(
        &ALL,
        &with("threadIdx.x == 0 && tile + 1 < n", "tile + 1 < n"),
        "more than one thread may launch",
    );
    refused(
        &ALL,
        &with(
            "sums<<<1, 128>>>(in, out, n, tile + 1",
            "sums<<<1, 64>>>(in, out, n, tile + 1",
        ),
        "block size of this one",
    );
    refused(
        &ALL,
        &with(
            "sums<<<1, 128>>>(in, out, n, tile + 1",
            "sums<<<1, 128, 64>>>(in, out, n, tile + 1",
        ),
        "dynamic shared memory",
    );
    refused(
        &ALL,
        &with(
            "sums<<<1, 128>>>(in, out, n, tile + 1",
            "sums<<<1, 128, 0, cudaStreamTailLaunch>>>(in, out, n, tile + 1",
        ),
        "cudaStreamTailLaunch",
    );
    refused(
        &ALL,
        &with("out[tile] = before", "out[tile] = before + blockIdx.x"),
        "reads `blockIdx`",
    );
    refused(
        &ALL,
        &with("out[tile] = before", "out[tile] = helper_of_block()"),
        "which reads `blockIdx`",
    );
    refused(
        &ALL,
        &with("out[tile] = before", "out[tile] = sum_of(before)"),
        "no definition is in sight",
    );
    refused(
        &ALL,
        &with("    int total", "    if (in[threadIdx.x] == 0) return;\n    int total"),
        "others wait for each other",
    );
    refused(
        &ALL,
        &with(
            "if (threadIdx.x == 0 && tile + 1 < n) sums",
            "for (int k = 0; k < n; ++k) if (threadIdx.x == 0 && tile + 1 < n) sums",
        ),
        "in a loop",
    );
    refused(
        &ALL,
        &with(
            "void run(const int* in, int* out, int n)",
            "__global__ void run(const int* in, int* out, int n)",
        ),
        "from the device",
    );
    refused(
        &ALL,
        &with(
            "{ sums<<<1, 128>>>(in, out, n, 0, 0); }",
            "{ void* k = (void*)sums; sums<<<1, 128>>>(in, out, n, 0, 0); }",
        ),
        "mentioned where it isn't launched",
    );
}

#[test]
fn the_launch_in_another_kernel() {
    let program = "__global__ void b(int n) {}\n__global__ void a(int n) { if (threadIdx.x == 0) b<<<1, 32>>>(n); }\nvoid run() { a<<<1, 32>>>(3); }\n";
    refused(&ALL, program, "not itself");
}

#[test]
fn what_can_not_begin_early() {
    let early = &ALL[1..];
    // The condition is known late.
    refused(
        early,
        &with("tile + 1 < n", "before < n"),
        "known only when this one has run",
    );
    // The data is got by the link before.
    refused(
        early,
        &with("int total = sum(in, tile", "int total = sum(in, before"),
        "needs `before`",
    );
    // What is read early is written before the launch.
    refused(
        early,
        &with(
            "    if (threadIdx.x == 0 && tile",
            "    out[tile] = total;\n    if (threadIdx.x == 0 && tile",
        ),
        "writes memory before the launch",
    );
    // A changed parameter isn't a step.
    refused(
        early,
        &with("    int total", "    ++tile;\n    int total").replace("tile + 1, before", "tile, before"),
        "known only when this one has run",
    );
    // Nothing in front of the launch.
    refused(
        early,
        &with("    int total = sum(in, tile * 128 + threadIdx.x);\n", "").replace("before + total", "before + 1"),
        "nothing can run before the launch",
    );
}

#[test]
fn who_returns_does_not_launch() {
    let program = "\
__global__ void sums(const int* in, int* out, int n, int tile, int before) {
    int total = in[tile];
    if (threadIdx.x == 0) {
        if (total == 7) return;
        if (tile + 1 < n) sums<<<1, 128>>>(in, out, n, tile + 1, before + total);
    }
    out[tile] = before;
}
void run(const int* in, int* out, int n) { sums<<<1, 128>>>(in, out, n, 0, 0); }
";
    rewrite("promote", program);
    refused(&ALL[1..], program, "known only when this one has run");
}

#[test]
fn what_is_no_running_value() {
    let lookback = &ALL[2..];
    refused(
        lookback,
        &with("before + total", "before * total"),
        "isn't this one plus",
    );
    refused(
        lookback,
        &with("before + total", "before - total"),
        "isn't this one plus",
    );
    refused(
        lookback,
        &with("int tile, int before", "int tile, float before"),
        "isn't a sum of `int`s",
    );
    refused(
        lookback,
        &with("int tile, int before", "int tile, long long before"),
        "isn't a sum of `int`s",
    );
    refused(
        lookback,
        &with(
            "    if (threadIdx.x == 0 && tile",
            "    int late = before;\n    if (threadIdx.x == 0 && tile",
        ),
        "something stands between",
    );
    refused(
        lookback,
        &with("threadIdx.x == 0 && tile", "threadIdx.x == 127 && tile"),
        "known only when this one has run",
    );
    refused(
        lookback,
        &with("before + total", "before + in[tile]"),
        "other threads than the first",
    );
}

#[test]
fn loads_as_if_nobody_wrote() {
    let program = with(
        "const int* in, int* out, int n, int tile",
        "const int* __restrict__ in, int* out, int n, int tile",
    )
    .replace(
        "    if (threadIdx.x == 0 && tile",
        "    out[tile] = total;\n    if (threadIdx.x == 0 && tile",
    );
    refused(&["promote"], &program, "loads as if nobody wrote");
}
