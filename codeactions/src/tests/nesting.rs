//! Launches in kernels that are launched themselves, and in functions that kernels call.

use super::{refuses, rewrite, rewrite_files};
use crate::handlers::of_launches;

pub(super) const QUICKSORT: &str = r#"__global__ void sort(int* data, int left, int right, int depth) {
    if (depth > 20 || right - left < 2) return;
    int middle = (left + right) / 2;
    if (threadIdx.x == 0) {
        sort<<<1, 32>>>(data, left, middle, depth + 1);
        sort<<<1, 32>>>(data, middle, right, depth + 1);
    }
}

int main() {
    sort<<<1, 32>>>(nullptr, 0, 1000, 0);
}
"#;

#[test]
fn a_kernel_that_launches_itself() {
    for (id, ty) in [("aggregate-block", "PerBlock"), ("aggregate-grid", "PerGrid")] {
        let kernel = format!("gridfuse::Aggregator<gridfuse::{ty}, sort_aggregated>");
        rewrite(id, QUICKSORT).has(&[
            r#"struct sort_args { int left; int right; };

__global__ void sort_aggregated(gridfuse::NestedBatch<sort_args> batch, int* data, int depth);
"#,
            &format!("void sort_body(\n    {kernel}& sorts, uint3 blockIdx,"),
            "sorts.launch(1, 32, {left, middle});",
            "void sort(int* data, int left, int right, int depth, gridfuse::Arena arena) {\n",
            &format!(
                r#"{kernel} sorts(arena, data, depth + 1);
    sort_body(sorts, blockIdx, gridDim, blockDim, data, left, right, depth);"#
            ),
            &format!(
                r#"{kernel} sorts(batch.arena(), data, depth + 1);
    batch.for_each_block("#
            ),
            "sort_body(sorts, blockIdx, gridDim, blockDim, data, args.left, args.right, depth);",
            "gridfuse::arena_for(1, 32, /*stream=*/0, /*bytes_per_thread=*/64, /*aggregators=*/1,
                            gridfuse::kNestedBytes));",
        ]);
    }
}

pub(super) const NEST: &str = r#"__global__ void leaf(int* out, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd(&out[begin + i], 1);
}

__global__ void child(int* out, const int* row, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) leaf<<<(row[begin + i] + 31) / 32, 32>>>(out, begin + i, row[begin + i]);
}

__global__ void parent(int* out, const int* row, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) child<<<2, 64>>>(out, row, v, row[v]);
}

int main() {
    parent<<<4, 128>>>(nullptr, nullptr, 512);
}
"#;

#[test]
fn the_inner_launch_takes_the_outer_one_along() {
    let marked = NEST.replace("leaf<<<", "$0leaf<<<");
    rewrite("aggregate-block", &marked).has(&[
        "PerBlock, leaf_aggregated>& leafs,",
        "leafs.launch((row[begin + i] + 31) / 32, 32, {begin + i, row[begin + i]});",
        "leafs(batch.arena(), out);",
        "children(arena, out, row);",
        "children.launch(2, 64, {v, row[v]});",
        "gridfuse::arena_for(4, 128, /*stream=*/0, /*bytes_per_thread=*/64, /*aggregators=*/1,
                            gridfuse::kNestedBytes)",
        r#"void child(int* out, const int* row, int begin, int count, gridfuse::Arena arena) {
    gridfuse::Aggregator"#,
    ]);
}

#[test]
fn one_after_the_other() {
    let marked = NEST.replace("child<<<", "$0child<<<");
    let outer = rewrite("aggregate-block", &marked);
    outer.has(&["leaf<<<(row", "gridfuse::arena_for(4, 128))"]);
    let inner = rewrite("aggregate-grid", &outer.text().replace("leaf<<<", "$0leaf<<<"));
    inner.has(&[
        "void child_body(\n    gridfuse::Aggregator<gridfuse::PerGrid, leaf_aggregated>& leafs,\n    uint3 blockIdx,",
        "child_body(leafs, blockIdx, gridDim, blockDim, out, row, begin, count);",
        r#"gridfuse::Aggregator<gridfuse::PerGrid, leaf_aggregated> leafs(batch.arena(), out);
    batch.for_each_block("#,
        "child_body(leafs, blockIdx, gridDim, blockDim, out, row, args.begin, args.count);",
        "gridfuse::arena_for(4, 128, /*stream=*/0, /*bytes_per_thread=*/64, /*aggregators=*/1,
                            gridfuse::kNestedBytes)",
    ]);
}

#[test]
fn kernels_that_launch_each_other() {
    let text = r#"__global__ void odd(int* out, int n);

__global__ void even(int* out, int n) {
    atomicAdd(out, n);
    if (n > 0) odd<<<1, 32>>>(out, n - 1);
}

__global__ void odd(int* out, int n) {
    if (threadIdx.x < n) even<<<2, 32>>>(out, n - threadIdx.x);
}

int main() {
    even<<<1, 32>>>(nullptr, 3);
}
"#;
    rewrite("aggregate-block", text).has(&[
        "struct odd_args {",
        "void even_body(
    gridfuse::Aggregator<gridfuse::PerBlock, odd_aggregated>& odds,",
        "void odd_body(
    gridfuse::Aggregator<gridfuse::PerBlock, even_aggregated>& evens,",
        "odds(batch.arena(), out",
        "evens(batch.arena(), out",
    ]);
}

fn with_function(function: &str, call: &str) -> String {
    format!(
        r#"__global__ void child(int* out, int begin, int count) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd(&out[begin + i], 1);
}}

{function}
__global__ void parent(int* out, const int* row, int n) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    {call}
}}

int main() {{
    parent<<<4, 128>>>(nullptr, nullptr, 512);
}}
"#
    )
}

#[test]
fn a_device_function_that_launches() {
    let visit = r#"__device__ void visit(int* out, int begin, int count) {
    if (count > 0) child<<<(count + 31) / 32, 32>>>(out, begin, count);
}
"#;
    let result = rewrite(
        "aggregate-block",
        &with_function(visit, "visit(out, row[v], row[v + 1] - row[v]);"),
    );
    result.has(&[
        r#"__device__ void visit(gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated>& children,
                      int* out, int begin, int count) {"#,
        "if (count > 0) children.launch((count + 31) / 32, 32, {begin, count});",
        "gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated> children(arena, out);\n",
        "visit(children, out, row[v], row[v + 1] - row[v]);",
        "gridfuse::arena_for(4, 128)",
    ]);
    assert!(
        !result.assumes.iter().any(|a| a.contains("several calls")),
        "{:?}",
        result.assumes
    );
    // Through another function, in a loop, and with an argument that isn't the same in both calls.
    let walk = format!(
        r#"{visit}
__device__ void walk(const int* row, int* out, int v) {{
    visit(out, row[v], 1);
}}
"#
    );
    let result = rewrite(
        "aggregate-warp",
        &with_function(
            &walk,
            r#"walk(row, out, v);
    for (int k = 0; k < 3; ++k) visit(out + k, v, k);"#,
        ),
    );
    result.has(&[
        r#"walk(gridfuse::Aggregator<gridfuse::PerWarp, child_aggregated>& children,
                     const int* row, int* out, int v) {
    visit(children, out,"#,
        "walk(children, row, out, v);",
        "visit(children, out + k, v, k);",
        "children(arena);",
        "{out, begin, count}",
    ]);
    assert!(
        result.assumes.iter().any(|a| a.contains("several calls of `visit`")),
        "{:?}",
        result.assumes
    );
}

#[test]
fn a_function_template_that_launches() {
    let visit = r#"template <class T>
__device__ void visit(T* out, T begin) {
    if (begin > 0) child<<<1, 32>>>(out, begin, 7);
}
"#;
    rewrite("aggregate-block", &with_function(visit, "visit<int>(out, row[v]);")).has(&[
        r#"template <class T, class Children>
__device__ void visit(Children& children, T* out, T begin) {"#,
        "visit<int>(children, out, row[v]);",
        "children(arena, 7);",
    ]);
}

#[test]
fn functions_that_are_not_only_called() {
    let visit = r#"__device__ void visit(int* out, int begin, int count) {
    if (count > 0) child<<<1, 32>>>(out, begin, count);
}
"#;
    let refuse =
        |function: &str, call: &str, reason: &str| refuses("aggregate-block", &with_function(function, call), reason);
    refuse(
        visit,
        "auto f = &visit; f(out, v, 1);",
        "is mentioned where it isn't called",
    );
    refuse(
        &format!("{visit}#define VISIT(v) visit(out, v, 1)\n"),
        "VISIT(v); visit(out, v, 2);",
        "is mentioned where it isn't called",
    );
    refuse(
        &visit.replace("__device__", "__host__ __device__"),
        "visit(out, v, 1);",
        "a function of the host, too",
    );
    refuse(
        &format!(
            r#"__device__ void visit(int* out, int begin, int count);
{visit}"#
        ),
        "visit(out, v, 1);",
        "is declared apart from its definition",
    );
    refuse(visit, "[&] { visit(out, v, 1); }();", "called in a lambda");
    refuse(visit, "", "no kernel in sight calls `visit`");
    let overloaded = format!("{visit}__device__ void visit(int* out) {{ out[0] = 1; }}\n");
    refuse(&overloaded, "visit(out, v, 1);", "several definitions");
    let tail = format!(
        r#"{visit}__global__ void other(int* out) {{
    visit(out, 0, 1);
    child<<<1, 1, 0, cudaStreamTailLaunch>>>(out, 0, 1);
}}
"#
    );
    refuse(&tail, "visit(out, v, 1);", "a tail launch");
}

#[test]
fn a_child_that_is_defined_behind_its_parent() {
    let text = r#"__global__ void child(int* out, int begin, int count);

__global__ void parent(int* out, int n) {
    child<<<1, 32>>>(out, threadIdx.x, n);
}

__global__ void child(int* out, int begin, int count) {
    if (threadIdx.x < count) out[begin] += 1;
}

int main() {
    parent<<<1, 32>>>(nullptr, 5);
}
"#;
    let result = rewrite_files("aggregate-block", &[("a.cu", text)], &[]).unwrap_or_else(|r| panic!("{r:?}"));
    result.has(&[r#"struct child_args { int begin; };

__global__ void child_aggregated(gridfuse::Batch<child_args> batch, int* out, int count);

__global__ void parent(int* out, int n, gridfuse::Arena arena) {"#]);
    assert_eq!(result.text().matches("struct child_args").count(), 1);
}

#[test]
fn another_meaning_of_the_namespace() {
    for other in ["namespace lib {}\nnamespace gridfuse = lib;\n", "int gridfuse;\n"] {
        refuses(
            "aggregate-block",
            &format!("{other}{QUICKSORT}"),
            "isn't the runtime header's namespace",
        );
    }
    let function = r#"namespace n {
__device__ void visit(int* out, int begin) {
    child<<<1, 32>>>(out, begin, 1);
}
}
"#;
    refuses(
        "aggregate-block",
        &with_function(function, "n::visit(out, v);"),
        "stand in different namespaces",
    );
}

/// What several rewrites have against a launch reads the same in all of them.
#[test]
fn one_cause_has_one_phrase() {
    let waits = "\
__global__ void sort(int* a, int n) {
    if (n < 2) return;
    sort<<<1, 1>>>(a, n / 2);
    cudaDeviceSynchronize();
}
";
    let recursive = "\
__global__ void sweep(int* a, int n) {
    if (threadIdx.x == 0 && n > 0) sweep<<<gridDim.x, blockDim.x, 0, cudaStreamTailLaunch>>>(a, n - 1);
}
__global__ void driver(int* a, int steps) {
    for (int s = 0; s < steps; ++s) $0sweep<<<steps, 256>>>(a, 0);
}
";
    for (program, part, phrase) in [
        (
            waits,
            "cudaDeviceSynchronize",
            "`sort` waits for its children with cudaDeviceSynchronize()",
        ),
        (recursive, "recursive", "`sweep` is recursive"),
    ] {
        let refused = of_launches().filter_map(|rewrite| rewrite_files(rewrite.id, &[("a.cu", program)], &[]).err());
        let all: Vec<String> = refused.flatten().collect();
        let mut found: Vec<&String> = all.iter().filter(|reason| reason.contains(part)).collect();
        assert!(found.len() > 1, "{all:#?}");
        found.sort();
        found.dedup();
        assert_eq!(found, [phrase]);
        for other in ["launches grids itself", "launches itself or its parent"] {
            assert!(!all.iter().any(|reason| reason.contains(other)), "{all:#?}");
        }
    }
}
