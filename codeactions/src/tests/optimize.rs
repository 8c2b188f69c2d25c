//! `optimize`

use super::{program, refuses, rewrite, with_child};

const ID: &str = "optimize";

#[test]
fn the_host_launches_behind_the_parent() {
    let result = rewrite(ID, &program("child<<<(count + 127) / 128, 128>>>(out, begin, count);"));
    result.has(&[
        "gridfuse::ThreadReuseInStream<child_aggregated> children(arena);",
        "children.launch((count + kChildBlock - 1) / kChildBlock, kChildBlock, {begin, count});",
    ]);
    assert!(!result.text().contains("Threshold"));
    assert_eq!(result.assumes.len(), 2, "{:?}", result.assumes);
    // Memory for so many launches of each thread isn't set aside by a guess.
    let often = |n: u32| {
        let launch =
            format!("for (int k = 0; k < {n}; ++k) child<<<(count + 127) / 128, 128>>>(out, begin + k, count);");
        rewrite(ID, &program(&launch)).text().contains("PerGridInStream")
    };
    assert!(often(4));
    assert!(!often(5));
}

#[test]
fn one_thread_that_launches_in_a_loop_collects_for_its_block() {
    let by = |grid: &str| {
        let text = program("for (int k = begin; k < n; ++k) child<<<(count + 63) / 64, 64>>>(out, begin + k, count);");
        rewrite(ID, &text.replace("<<<(n + 127) / 128, 128>>>", grid))
    };
    let alone = by("<<<1, 1>>>");
    alone.has(&["gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated>"]);
    assert!(
        !alone.text().contains("coarsened"),
        "records would be larger\n{}",
        alone.text()
    );
    by("<<<(n + 127) / 128, 128>>>").has(&["gridfuse::PerGridInStream"]);
}

// With dynamic shared memory, which the host doesn't know in time.
#[test]
fn sizes_that_differ_get_a_threshold() {
    let result = rewrite(
        ID,
        &program("child<<<(count + 127) / 128, 128, 8>>>(out, begin, count);"),
    );
    result.has(&[
        "constexpr int kChildThreshold = 32;",
        "gridfuse::Aggregator<gridfuse::PerGrid, child_aggregated> children(arena, out);",
        "else\n        children.launch(",
    ]);
    assert!(!result.text().contains("coarsened"));
    assert_eq!(result.assumes.len(), 1, "{:?}", result.assumes);
}

#[test]
fn grids_that_are_all_small_are_looped_over() {
    let result = rewrite(ID, &program("child<<<1, 4, 8>>>(out, begin, count);"));
    result.has(&["child_serial(1, 4, out, begin, count);"]);
    assert!(!result.text().contains("Threshold") && !result.text().contains("aggregated"));
}

#[test]
fn small_blocks_get_more_to_do() {
    rewrite(ID, &program("child<<<(count + 31) / 32, 32, 8>>>(out, begin, count);")).has(&[
        "kChildCoarsening = 4;",
        "kChildThreshold = 32;",
        "children.launch(gridfuse::coarsened((count + 31) / 32, kChildCoarsening), 32,",
    ]);
}

#[test]
fn what_does_not_help_is_left_out() {
    let same = rewrite(ID, &program("child<<<n, 256>>>(out, begin, count);"));
    assert!(!same.text().contains("Threshold"));
    let child = r#"__global__ void child(int* out, int begin, int count) {
    for (int k = 0; k < count; ++k) atomicAdd(&out[begin + k], 1);
}
"#;
    let loops = rewrite(
        ID,
        &with_child(child, "child<<<(count + 127) / 128, 128, 8>>>(out, begin, count);"),
    );
    assert!(!loops.text().contains("Threshold"));
}

#[test]
fn what_cannot_be_applied_is_left_out() {
    let child = r#"__global__ void child(int* out, int begin, int count) {
    __syncthreads();
    out[begin + threadIdx.x] = count;
}
"#;
    let result = rewrite(ID, &with_child(child, "child<<<count, 128>>>(out, begin, count);"));
    result.has(&["children.launch(count, kChildBlock, {begin, count});"]);
    assert!(!result.text().contains("Threshold"));
    // Nobody launches the parent, so there is nobody to make an arena.
    let text = with_child(child, "child<<<count, 128>>>(out, begin, count);").replace("parent<<<", "other<<<");
    let alone = text.replace(
        "__global__ void parent",
        r#"__global__ void other(int*, const int*, int);
__global__ void parent"#,
    );
    refuses(
        ID,
        &alone.replace("128>>>(out, begin", "128, 0, cudaStreamTailLaunch>>>(out, begin"),
        "no launch of `parent`",
    );
    rewrite(ID, &alone.replace("child<<<", "$0child<<<")).has(&["child<<<count, 128, 0, cudaStreamFireAndForget>>>"]);
}

#[test]
fn one_launch_is_left_alone() {
    refuses(
        ID,
        &program("if (v == 0) child<<<(count + 127) / 128, 128>>>(out, begin, count);"),
        "nothing to collect",
    );
}

#[test]
fn a_parent_of_one_block_collects_per_block() {
    let text = program("child<<<(count + 127) / 128, 128, 8>>>(out, begin, count);");
    rewrite(ID, &text.replace("parent<<<(n + 127) / 128,", "parent<<<1,")).has(&["gridfuse::PerBlock"]);
}

#[test]
fn what_takes_long_does_not_run_in_the_launcher() {
    let with = |helper: &str, value: &str| {
        let child = format!(
            r#"{helper}__global__ void child(int* out, int begin, int count) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[begin + i] += {value};
}}
"#
        );
        rewrite(
            ID,
            &with_child(&child, "child<<<(count + 127) / 128, 128, 8>>>(out, begin, count);"),
        )
    };
    let short = "__device__ int square(int x) { return x * x; }\n";
    with(short, "square(i)").has(&["kChildThreshold = 32;"]);
    let long = r#"__device__ int sum(int x) { int s = 0; while (x > 0) s += x--; return s; }
__device__ int twice(int x) { return 2 * sum(x); }
"#;
    assert!(!with(long, "twice(i)").text().contains("Threshold"));
    for call in ["int(log1p(double(i)))", "int(expf(i))"] {
        assert!(!with("", call).text().contains("Threshold"), "{call}");
    }
}

#[test]
fn launches_in_a_loop_get_no_threshold() {
    let result = rewrite(
        ID,
        &program("for (int k = 0; k < count; ++k) child<<<(k + 127) / 128, 128>>>(out, begin, k);"),
    );
    result.has(&["gridfuse::PerGrid"]);
    assert!(!result.text().contains("Threshold"));
}

#[test]
fn memory_is_allocated_together() {
    let text = r#"__global__ void fill(int* list, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) list[i] = i;
}

__global__ void make(int** lists, const int* counts, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int count = counts[v];
    int* list = static_cast<int*>(malloc(count * sizeof(int)));
    lists[v] = list;
    if (list && count > 0) fill<<<(count + 127) / 128, 128, 8>>>(list, count);
}

__global__ void release(int** lists, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) free(lists[v]);
}

void run(int** lists, const int* counts, int n) {
    make<<<(n + 127) / 128, 128>>>(lists, counts, n);
    release<<<(n + 127) / 128, 128>>>(lists, n);
}
"#;
    rewrite(ID, text).has(&[
        "gridfuse::malloc_together(",
        "gridfuse::free_together(",
        "kFillThreshold = 32;",
        "gridfuse::PerGrid",
    ]);
}

#[test]
fn a_host_that_waits_anyway_launches() {
    let looping = r#"__global__ void child(int* out, int begin, int count) {
    for (int k = 0; k < count; ++k) atomicAdd(&out[begin + k], 1);
}
"#;
    let text = with_child(looping, "child<<<(count + 127) / 128, 128, 8>>>(out, begin, count);");
    let Some(at) = text.find("parent<<<") else {
        panic!("{text}")
    };
    let Some(end) = text[at..].find(';') else {
        panic!("{text}")
    };
    let behind = |more: &str| {
        let (before, after) = text.split_at(at + end + 1);
        rewrite(ID, &format!("{before}{more}{after}"))
    };
    let waits = [
        " cudaDeviceSynchronize();",
        r#" if (cudaGetLastError() != cudaSuccess) exit(1);
 int host; cudaMemcpy(&host, p, 4, cudaMemcpyDeviceToHost);"#,
    ];
    for wait in waits {
        behind(wait).has(&["Aggregator<gridfuse::PerGridFromHost, child_aggregated>"]);
    }
    let goes_on = [
        "",
        " cudaGetLastError();",
        " prepare(); cudaDeviceSynchronize();",
        " for (int i = 0; i < 2; ++i) cudaDeviceSynchronize();",
    ];
    for more in goes_on {
        behind(more).has(&["Aggregator<gridfuse::PerGrid, child_aggregated>"]);
    }
}

// A warp's lanes would run so many of these threads one after the other.
#[test]
fn threads_that_loop_are_dealt_out_by_a_grid() {
    let child = r#"__device__ int sum(const int* in, int n) {
    int all = 0;
    for (int i = 0; i < n; ++i) all += in[i];
    return all;
}
__global__ void child(int* out, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[begin + i] = sum(out, i);
}
"#;
    rewrite(
        ID,
        &with_child(child, "child<<<(count + 127) / 128, 128>>>(out, begin, count);"),
    )
    .has(&["gridfuse::Aggregator<gridfuse::PerGridInStream, child_aggregated> children(arena);"]);
}
