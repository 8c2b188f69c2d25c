//! `reuse-threads`

use super::{rewrite_files, with_child};

const ID: &str = "reuse-threads";

fn by(assignment: &str, text: &str) -> super::Rewritten {
    let options = [("assignment", assignment)];
    match rewrite_files(ID, &[("a.cu", text)], &options) {
        Ok(result) => result,
        Err(reasons) => panic!("refused: {reasons:?}"),
    }
}

fn refuses_by(assignment: &str, text: &str, reason: &str) {
    match rewrite_files(ID, &[("a.cu", text)], &[("assignment", assignment)]) {
        Ok(result) => panic!("not refused:\n{}", result.text()),
        Err(reasons) => assert!(reasons.iter().any(|r| r.contains(reason)), "{reasons:#?}"),
    }
}

/// A parent that the host launches somewhere else, of a launch that many threads come to.
fn parent(body: &str) -> String {
    with_parent("const int* row, int* out, int n", body)
}

fn with_parent(parameters: &str, body: &str) -> String {
    format!(
        r#"__global__ void child(int* out, int begin, int count) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[begin + i] = i;
}}

__global__ void parent({parameters}) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
{body}
}}
"#
    )
}

const LAUNCH: &str = "    if (v >= n) return;\n    int begin = row[v], count = row[v + 1] - begin;\n    child<<<(count + 31) / 32, 32>>>(out, begin, count);";

#[test]
fn the_host_stays_as_it_is() {
    for (assignment, name) in [
        ("warp", "ByWarp"),
        ("block", "ByBlock"),
        ("size", "BySize"),
        ("auto", "BySize"),
    ] {
        let result = by(assignment, &parent(LAUNCH));
        result.has(&[
            &format!("    gridfuse::ThreadReuse<gridfuse::{name}, child_args, kChildBlock> children;\n"),
            "    parent_body(children, row, out, n);\n    children.for_each_thread([&](uint3 threadIdx",
            "        child_thread(threadIdx, blockIdx, gridDim, blockDim, out, args.begin, args.count);\n    });\n}",
            "    children.launch((count + kChildBlock - 1) / kChildBlock, kChildBlock, {begin, count});",
            "__global__ void parent(const int* row, int* out, int n) {",
        ]);
        assert!(
            !result.text().contains("child_aggregated") && result.text().contains("`gridfuse revert` takes it back")
        );
    }
}

#[test]
fn blanks_are_as_the_code_has_them() {
    let tight = LAUNCH.replace("(count + 31) / 32", "(count+31)/32");
    by("block", &parent(&tight)).has(&["(count+kChildBlock-1)/kChildBlock, kChildBlock, {"]);
}

#[test]
fn a_grid_may_follow() {
    let text = format!(
        "{}\nvoid run(const int* row, int* out, int n) {{\n    parent<<<n / 64, 64>>>(row, out, n);\n}}\n",
        parent(LAUNCH)
    );
    by("auto", &text).has(&[
        "gridfuse::ThreadReuseInStream<child_aggregated> children(arena);",
        "gridfuse::followed_at_need<child_aggregated>(n / 64, 64, /*stream=*/0, out)",
        "__global__ void parent(const int* row, int* out, int n, gridfuse::StreamArena arena) {",
    ]);
    refuses_by("grid", &parent(LAUNCH), "no launch of `parent` by the host was found");
    refuses_by("many", &parent(LAUNCH), "`many` is no assignment");
}

#[test]
fn the_first_launch_of_a_thread_is_shared() {
    let body = "    for (int k = 0; k < n; ++k) child<<<1, 32>>>(out + k * v, k, n);";
    by("size", &parent(body)).has(&[
        "children.launch(1, kChildBlock, {out + k * v, k},\n        [&](dim3 grid, dim3 block, const child_args& args) {",
        "child_serial(grid, block, args.out, args.begin, n);",
    ]);
    let twice = "    if (v < n) child<<<1, 32>>>(out, v, 3);\n    if (v < n / 2) child<<<1, 32>>>(out, v + n, 3);";
    let result = by("size", &parent(twice));
    assert_eq!(
        result
            .text()
            .matches("child_serial(grid, block, out, args.begin, 3)")
            .count(),
        2
    );
}

#[test]
fn built_in_variables_are_the_childs_where_it_runs() {
    // `blockDim.x` is the same in all of the parent's grid, and another number in the child's threads.
    let body = "    if (v < n) child<<<1, 32>>>(out, v, blockDim.x);";
    by("size", &parent(body)).has(&["struct child_args { int begin; int count; "]);
}

#[test]
fn built_in_variables_in_macros_are_the_childs_too() {
    let body = "    if (v < n) child<<<1, 32>>>(out, v, STRIDE);";
    let text = format!("#define STRIDE blockDim.x\n{}", parent(body));
    by("size", &text).has(&["struct child_args { int begin; int count; "]);
}

#[test]
fn bodies_that_know_their_function() {
    let body = "    if (v == 0) printf(\"%s\", __func__);\n    child<<<1, 32>>>(out, v, n);";
    refuses_by("size", &parent(body), "`parent` uses __func__");
    let coarsened = r#"__global__ void child(int* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = i;
}
__device__ void parent_body(uint3 blockIdx, dim3 gridDim, dim3 blockDim, int* out, int n) {
    child<<<1, 32>>>(out + threadIdx.x, n);
}
__global__ void parent(int* out, int n) {
    parent_body(blockIdx, gridDim, blockDim, out, n);
}
"#;
    refuses_by(
        "size",
        coarsened,
        "has been moved to `parent_body` by an earlier rewrite",
    );
}

#[test]
fn what_cuda_refuses_by_launch_bounds() {
    let text = parent(LAUNCH).replace("__global__ void child(", "__global__ void __launch_bounds__(16) child(");
    let result = by("size", &text);
    assert!(
        result.assumes.iter().any(|a| a.contains("__launch_bounds__")),
        "{:?}",
        result.assumes
    );
}

#[test]
fn blocks_of_several_dimensions() {
    let child = r#"__global__ void child(int* out, int begin, int count) {
    atomicAdd(&out[begin + threadIdx.y], count + blockIdx.y);
}
"#;
    let launch = "child<<<dim3(2, n), dim3(8, 4)>>>(out, v, count);";
    let result = by("size", &with_child(child, launch));
    result.has(&["gridfuse::ThreadReuse<gridfuse::BySize, child_args, kChildBlockX, kChildBlockY> children;"]);
    refuses_by("grid", &with_child(child, launch), "how many threads of `child` work");
}

#[test]
fn threads_that_do_not_come_back_together() {
    let meets = "    if (v >= n) return;\n    __syncthreads();\n    child<<<1, 32>>>(out, v, 3);";
    refuses_by(
        "size",
        &parent(meets),
        "so the barrier would wait for threads that have left",
    );
    let leaves = "    if (v >= n) asm(\"exit;\");\n    child<<<1, 32>>>(out, v, 3);";
    refuses_by("size", &parent(leaves), "may leave by inline assembly");
}

#[test]
fn what_the_parent_reads_by_restrict() {
    let text = with_parent("const int* __restrict__ row, int* out, int n", LAUNCH);
    let result = by("size", &text);
    assert!(
        result
            .assumes
            .iter()
            .any(|a| a.contains("no child grid writes what `parent` reads through `row`")),
        "{:?}",
        result.assumes
    );
    result.has(&["child_args, kChildBlock>& children, const int* row,\n    int* out, int n) {"]);
}

#[test]
fn a_child_below_its_parent() {
    let text = r#"__global__ void child(int* out, int count);
__global__ void parent(int* out, int n) {
    child<<<1, 32>>>(out, n);
}
__global__ void child(int* out, int count) {
    atomicAdd(out, count);
}
"#;
    refuses_by(
        "size",
        text,
        "`child` is defined below `parent`, which is to run it; move it up",
    );
}

#[test]
fn a_function_that_launches() {
    let text = r#"__global__ void child(int* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = i;
}
__device__ void go(int* out, int count) {
    child<<<1, 32>>>(out, count);
}
__global__ void parent(int* out, int n) {
    go(out + threadIdx.x, n);
}
"#;
    by("warp", text).has(&[
        "__device__ void go(gridfuse::ThreadReuse<gridfuse::ByWarp, child_args, kChildBlock>& children,\n",
        "    go(children, out + threadIdx.x, n);",
        "    parent_body(children, out, n);\n    children.for_each_thread(",
    ]);
}

#[test]
fn templates() {
    let text = r#"template <class T>
__global__ void child(T* out, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[begin + i] = T(i);
}
template <class T>
__global__ void parent(const int* row, T* out, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) child<T><<<1, 32>>>(out, row[v], row[v + 1] - row[v]);
}
"#;
    by("size", text).has(&[
        "template <class T, class Children>\n",
        "    parent_body<T>(children, row, out, n);",
        "        child_thread<T>(threadIdx, blockIdx, gridDim, blockDim, out, args.begin, args.count);",
    ]);
}
