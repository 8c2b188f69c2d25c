//! `aggregate-grid-stream`: what differs from `aggregate-grid` is that the host launches after the parent, without waiting.

use super::nesting::{NEST, QUICKSORT};
use super::{program, refuses, rewrite, rewrite_files, with_child};
use crate::runtime::{HEADER, HEADER_NAME};

const ID: &str = "aggregate-grid-stream";

const LAUNCH: &str = "if (count > 0) child<<<(count + 31) / 32, 32>>>(out, begin, count);";

/// The program with other parameters of the parent, and other arguments for it.
fn passed(parameters: &str, arguments: &str, launch: &str) -> String {
    let child = "__global__ void child(int* out, float scale, int begin, int count) {\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    \
                 if (i < count) out[begin + i] += scale;\n}\n";
    with_child(child, launch)
        .replace("int n) {\n    int v", &format!("int n, {parameters}) {{\n    int v"))
        .replace("(out, row, n);", &format!("(out, row, n, {arguments});"))
        .replace(
            "void run(int* out,",
            "int next();\nvoid run(double factor, int steps, int* out,",
        )
}

#[test]
fn the_host_passes_what_all_launches_share() {
    let result = rewrite(ID, &program(LAUNCH));
    result.has(&[
        "gridfuse::Aggregator<gridfuse::PerGridInStream, child_aggregated> children(arena);",
        "void child_aggregated(gridfuse::StreamBatch<child_args, kChildBlock> batch, int* out) {",
        "const int* row, int n, gridfuse::StreamArena arena) {",
        "gridfuse::followed_by<child_aggregated>((n + 127) / 128, 128, /*stream=*/0, out)",
        "children.launch((count + kChildBlock - 1) / kChildBlock, kChildBlock,",
    ]);
    assert!(!result.text().contains("arena_for"), "{}", result.text());
    let assumed = |text: &str| result.assumes.iter().any(|a| a.contains(text));
    assert!(
        assumed("no other thread of the host launches into the stream between `parent` and what follows it")
            && assumed("there is memory for all that the threads of `parent` may launch"),
        "{:?}",
        result.assumes
    );
}

#[test]
fn arguments_are_converted_as_the_parent_converts_them() {
    let launch = "if (count > 0) child<<<1, 32>>>(out, scale, begin, count);";
    // To float.
    rewrite(ID, &passed("float scale", "factor * 2", launch)).has(&[
        "struct child_args { int begin; int count; __device__ int threads() const { return count; } };",
        "followed_by<child_aggregated>((n + 127) / 128, 128, /*stream=*/0, out,
                                                factor * 2)",
    ]);
    // To int, and then to float.
    rewrite(ID, &passed("int scale", "factor * 2", launch)).has(&[
        "followed_by<child_aggregated>((n + 127) / 128, 128, /*stream=*/0, out,",
        "static_cast<int>(factor * 2))",
    ]);
}

#[test]
fn what_the_host_cannot_write_twice_is_written_down() {
    let launch = "if (count > 0) child<<<1, 32>>>(out, scale, begin, count);";
    for arguments in ["next()", "steps++"] {
        rewrite(ID, &passed("float scale", arguments, launch)).has(&[
            "struct child_args {
    float scale;
    int begin;
    int count;
    __device__ int threads() const { return count; }
};",
            "followed_by<child_aggregated>((n + 127) / 128, 128, /*stream=*/0, out)",
            "children.launch(1, kChildBlock, {scale, begin, count});",
        ]);
    }
    // Another argument changes it.
    let text = passed("float scale, int step", "steps, steps++", launch);
    rewrite(ID, &text).has(&["struct child_args {
    float scale;
    int begin;
    int count;
    __device__ int threads() const { return count; }
};"]);
    // An int for the parent, a float for the child.
    let text = passed("T scale", "factor", launch)
        .replace("__global__ void parent", "template <class T>\n__global__ void parent")
        .replace("    parent<<<", "    parent<int><<<");
    rewrite(ID, &text).has(&["struct child_args {
    float scale;
    int begin;
    int count;
    __device__ int threads() const { return count; }
};"]);
    // Computed from parameters, and a constant.
    for value in ["n * 2.0f", "3"] {
        let launch = format!("if (count > 0) child<<<1, 32>>>(out, {value}, begin, count);");
        rewrite(ID, &passed("float scale", "1", &launch)).has(&[
            "struct child_args {
    float scale;
    int begin;
    int count;
    __device__ int threads() const { return count; }
};",
            "followed_by<child_aggregated>((n + 127) / 128, 128, /*stream=*/0, out)",
        ]);
    }
    // One of two launches of the parent.
    let two = passed("float scale", "factor", launch).replace(
        "    parent<<<",
        "    parent<<<1, 64>>>(out, row, n, next());\n    parent<<<",
    );
    rewrite(ID, &two).has(&[
        "gridfuse::followed_by<child_aggregated>(1, 64, /*stream=*/0, out)",
        "gridfuse::followed_by<child_aggregated>((n + 127) / 128, 128, /*stream=*/0, out)",
    ]);
}

#[test]
fn static_children_of_several_files_may_have_one_name() {
    let launch = "if (count > 0) child<<<(count + 31) / 32, 32>>>(out, begin, count);";
    let text = program(launch).replace("__global__ void child(", "static __global__ void child(");
    rewrite(ID, &text).has(&["__device__ __forceinline__ int threads() const { return count; }"]);
    rewrite(ID, &program(launch)).has(&["__device__ int threads() const { return count; }"]);
}

#[test]
fn blocks_and_streams() {
    let launch = "if (count > 0) child<<<1, dim3(8, 4)>>>(out, begin, count);";
    rewrite(ID, &program(launch)).has(&[
        "// The threads of a block of child in x, for its launches and for what runs them.\nconstexpr int kChildBlockX = 8;\n",
        "// The threads of a block of child in y, for its launches and for what runs them.\nconstexpr int kChildBlockY = 4;\n",
        "gridfuse::StreamBatch<child_args, kChildBlockX, kChildBlockY> batch",
        "children.launch(1, dim3(kChildBlockX, kChildBlockY), {",
    ]);
    let launch = "dim3 block(8, 1, 2), grid((count + 7) / 8, 1, (count + 1) / 2);\n    child<<<grid, block>>>(out, begin, count);";
    rewrite(ID, &program(launch)).has(&[
        "gridfuse::StreamBatch<child_args, kChildBlockX, 1, kChildBlockZ> batch",
        "dim3 block(kChildBlockX, 1, kChildBlockZ)",
        "grid((count + kChildBlockX - 1) / kChildBlockX, 1, (count + kChildBlockZ - 1) / kChildBlockZ)",
    ]);
    // Constants in sight, and what is computed from them; but not where a parameter of the child's template has the name.
    let constants = "constexpr int TILE = 8;\n#define ROWS 2\nenum { DEPTH = 3 };\n\n__global__ void child(";
    let launch = "if (count > 0) child<<<1, dim3(TILE * 2, ROWS, DEPTH)>>>(out, begin, count);";
    let named = program(launch).replace("__global__ void child(", constants);
    rewrite(ID, &named).has(&[
        "gridfuse::StreamBatch<child_args, TILE * 2, ROWS, DEPTH> batch",
        "children.launch(1, dim3(TILE * 2, ROWS, DEPTH), {",
    ]);
    let launch = "if (count > 0) child<4><<<1, dim3(TILE, ROWS)>>>(out, begin, count);";
    let hidden = constants.replace("__global__", "template <int TILE>\n__global__");
    let hidden = program(launch).replace("__global__ void child(", &hidden);
    rewrite(ID, &hidden).has(&["gridfuse::StreamBatch<child_args, 8, 2> batch"]);
    let stream = program(LAUNCH)
        .replace("void run(", "void run(cudaStream_t stream, ")
        .replace("128, 128>>>", "128, 128, 0, stream>>>");
    rewrite(ID, &stream).has(&["gridfuse::followed_by<child_aggregated>((n + 127) / 128, 128, stream, out)"]);
    // It may not take too many registers for that.
    let launch = "if (count > 0) child<<<1, 1024>>>(out, begin, count);";
    rewrite(ID, &program(launch)).has(&["__global__ void __launch_bounds__(1024) child_aggregated("]);
    for block in ["1025", "dim3(64, 32)", "dim3(1, 1, 65)", "0"] {
        let launch = format!("if (count > 0) child<<<1, {block}>>>(out, begin, count);");
        refuses(ID, &program(&launch), "CUDA refuses such a block");
    }
    refuses(
        ID,
        &program("if (count > 0) child<<<1, count>>>(out, begin, count);"),
        "the host can't know the child's block size",
    );
    refuses(
        ID,
        &program("if (count > 0) child<<<1, 32, 4 * count>>>(out, begin, count);"),
        "the child has dynamic shared memory",
    );
    rewrite(ID, &program("if (count > 0) child<<<1, 32, 0>>>(out, begin, count);"));
}

#[test]
fn launches_of_a_thread_are_counted() {
    rewrite(ID, &program(&format!("{LAUNCH}\n    else {LAUNCH}")))
        .has(&["gridfuse::followed_by<child_aggregated, 2>((n + 127) / 128, 128, /*stream=*/0, out)"]);
    rewrite(
        ID,
        &program("for (int k = 0; k < 3; ++k) child<<<1, 32>>>(out, begin + k, count);"),
    )
    .has(&["gridfuse::followed_by<child_aggregated, 3>("]);
    for launch in [
        "for (int k = 0; k < count; ++k) child<<<1, 32>>>(out, begin + k, count);",
        "for (int k = 0; k < 1000; ++k) child<<<1, 32>>>(out, begin + k, count);",
        "int k = 0;\n    again: child<<<1, 32>>>(out, begin + k, count);\n    if (--count > 0) goto again;",
    ] {
        let result = rewrite(ID, &program(launch));
        result.has(&[
            "gridfuse::followed_by<child_aggregated, gridfuse::kNotKnown>(
            (n + 127) / 128, 128, /*stream=*/0, out)",
            "children.launch(1, kChildBlock, {begin + k, count},\n        \
             [&](dim3 grid, dim3 block, const child_args& args) {\n            \
             child_serial(grid, block, out, args.begin, args.count);\n        });",
            "__device__ inline void child_serial(dim3 grid, dim3 block, int* out, int begin, int count) {\n    \
             gridfuse::for_each_thread(grid, block,\n                              \
             [&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim) {\n        \
             child_thread(threadIdx, blockIdx, gridDim, blockDim, out, begin, count);",
        ]);
        assert!(
            !result.assumes.iter().any(|a| a.contains("there is memory")),
            "{:?}",
            result.assumes
        );
    }
    let helper = |calls: &str| {
        program(calls).replace(
            "__global__ void parent",
            "__device__ void more(int* out, int begin, int count) {\n    $0child<<<1, 32>>>(out, begin, count);\n}\n\n__global__ void parent",
        )
    };
    rewrite(ID, &helper("if (count > 0) more(out, begin, count);")).has(&[
        "void more(gridfuse::Aggregator<gridfuse::PerGridInStream, child_aggregated>& children,",
        "more(children, out, begin, count);",
    ]);
    for calls in [
        "for (int k = 0; k < count; ++k) more(out, begin, count);",
        "more(out, begin, count);\n    more(out, begin, 1);",
    ] {
        rewrite(ID, &helper(calls)).has(&["gridfuse::kNotKnown", "child_serial(grid, block, out, args.begin"]);
    }
    // A child that can't run in the launching thread; one launch of it is enough.
    let looping = "if (count > 0) child<<<1, 32>>>(out, begin, count);\n    for (int k = 0; k < count; ++k) $0child<<<1, 32>>>(out, begin + k, count);";
    for (code, why) in [
        (
            "__syncthreads();\n    out[begin] = count;",
            "the threads of a block of `child` work together",
        ),
        (
            "out[begin] += __shfl_sync(~0u, count, 0);",
            "the threads of a block of `child` work together",
        ),
        ("asm(\"\");\n    out[begin] = count;", "`child` holds inline assembly"),
    ] {
        let child = format!("__global__ void child(int* out, int begin, int count) {{\n    {code}\n}}\n");
        let text = with_child(&child, looping);
        refuses(ID, &text, "a thread may launch any number of grids");
        refuses(ID, &text, why);
    }
}

#[test]
fn names_of_what_finds_no_room() {
    let launch = "for (int k = 0; k < block; ++k) child<<<1, 32>>>(args, grid + k, n);";
    let text = program(launch)
        .replace(
            "int* out, const int* row, int n) {\n    int v",
            "int* args, const int* row, int block) {\n    int n = block;\n    int v",
        )
        .replace("int begin = row[v]", "int grid = row[v]")
        .replace("row[v + 1] - begin", "row[v + 1] - grid");
    rewrite(ID, &text).has(&[
        "[&](dim3 grid, dim3 block, const child_args& launch_args) {\n            \
         child_serial(grid, block, args, launch_args.begin, launch_args.count);",
    ]);
}

#[test]
fn warps_that_have_something_to_do() {
    const BY_WARPS: &str = "batch.for_each_thread([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim,
                              const child_args& args) {";
    const BY_BLOCKS: &str =
        "batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const child_args& args) {";
    let with = |parameters: &str, code: &str| {
        let child = format!("__global__ void child({parameters}) {{\n    {code}\n}}\n");
        with_child(&child, LAUNCH)
    };
    let plain = "int* out, int begin, int count";
    let index = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n    ";
    for (parameters, code) in [
        (plain, format!("{index}if (i < count) out[begin + i] = i;")),
        (
            plain,
            format!("{index}if (i >= count) return;\n    out[begin + i] = i;"),
        ),
        (
            plain,
            format!("{index}if (i < count && out[begin + i] > 3) out[begin + i] = i;"),
        ),
        (
            "int* out, int begin, const int count",
            format!("{index}if (count > i) out[begin + i] = i;"),
        ),
        (
            "int* out, int begin, unsigned count",
            format!("unsigned {}if (i < count) out[begin + i] = i;", &index[4..]),
        ),
    ] {
        rewrite(ID, &with(parameters, &code)).has(&[
            BY_WARPS,
            "child_thread(threadIdx, blockIdx, gridDim, blockDim, out, args.begin, args.count);",
        ]);
    }
    for (parameters, code) in [
        // No guard, or one of something else.
        (plain, format!("{index}out[begin + i] = count;")),
        (
            plain,
            format!("{index}if (i < count) out[begin + i] = i;\n    else out[begin] = 0;"),
        ),
        (
            plain,
            format!("{index}if (i < count || begin == 0) out[begin + i] = i;"),
        ),
        (plain, format!("{index}if (i <= count) out[begin + i] = i;")),
        (
            plain,
            format!("{index}if (i < count) out[begin + i] = i;\n    out[begin] = 0;"),
        ),
        (
            plain,
            format!("out[begin] = 0;\n    {index}if (i < count) out[begin + i] = i;"),
        ),
        (
            plain,
            format!("{index}count -= 2;\n    if (i < count) out[begin + i] = i;"),
        ),
        (
            plain,
            format!("{index}if (i < count) {{\n        out[begin + i] = i;\n        count = 0;\n    }}"),
        ),
        (
            plain,
            "int i = blockIdx.x * blockDim.x + threadIdx.x + 1;\n    if (i < count) out[begin + i] = i;".to_owned(),
        ),
        (
            plain,
            "int i = threadIdx.x;\n    if (i < count) out[begin + i] = i;".to_owned(),
        ),
        // Compared in another type, in which it may be another number.
        (
            plain,
            format!("unsigned {}if (i < count) out[begin + i] = i;", &index[4..]),
        ),
        (
            "int* out, int begin, short count",
            format!("{index}if (i < count) out[begin + i] = i;"),
        ),
        (
            "int* out, int begin, unsigned long long count",
            format!("{index}if (i < count) out[begin + i] = i;"),
        ),
    ] {
        rewrite(ID, &with(parameters, &code)).has(&[BY_BLOCKS]);
    }
    // The blocks are no whole warps, or the grid has more than one dimension.
    let child = format!("__global__ void child({plain}) {{\n    {index}if (i < count) out[begin + i] = i;\n}}\n");
    for config in ["1, 48", "1, dim3(32, 2)", "dim3(2, 2), 32", "0, 16"] {
        let launch = format!("if (count > 0) child<<<{config}>>>(out, begin, count);");
        rewrite(ID, &with_child(&child, &launch)).has(&[BY_BLOCKS]);
    }
    rewrite(
        ID,
        &with_child(
            &child,
            "if (count > 0) child<<<dim3(count), dim3(64)>>>(out, begin, count);",
        ),
    )
    .has(&[BY_WARPS]);
    // The same for all launches: what the host passes.
    let launch = "if (count > 0) child<<<1, 32>>>(out, begin, n);";
    rewrite(ID, &with_child(&child, launch)).has(&["struct child_args { int begin; };", BY_BLOCKS]);
    // There is something of that name.
    let named = child.replace("count", "threads");
    rewrite(ID, &with_child(&named, LAUNCH)).has(&["struct child_args { int begin; int threads; };", BY_BLOCKS]);
    // Behind a threshold, which has moved the body.
    let small = rewrite("threshold", &with_child(&child, LAUNCH))
        .text()
        .replace("child<<<", "$0child<<<");
    rewrite(ID, &small).has(&[
        BY_WARPS,
        "child_thread(threadIdx, blockIdx, gridDim, blockDim, out, args.begin, args.count);",
    ]);
}

#[test]
fn blocks_of_the_child_run_one_after_the_other() {
    let child = |code: &str| {
        let child = format!(
            "__global__ void child(int* out, int begin, int count) {{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    {code}\n}}\n"
        );
        with_child(&child, LAUNCH)
    };
    let shared = "__shared__ int sum;\n    if (threadIdx.x == 0) sum = 0;\n    __syncthreads();\n    if (i < count) atomicAdd(&sum, i);\n    __syncthreads();\n    if (threadIdx.x == 0) atomicAdd(&out[begin], sum);";
    rewrite(ID, &child(shared)).has(&[
        "child_body(blockIdx, gridDim, blockDim, out, args.begin, args.count);\n        \
         __syncthreads();   // the next one uses the shared memory again\n    });",
    ]);
    let gone = child("if (i >= count) return;\n    __syncthreads();\n    out[begin + i] = i;");
    refuses(ID, &gone, "not all threads of a block of `child` reach this");
    rewrite("aggregate-grid", &gone);
    refuses(
        ID,
        &child("while (atomicAdd(&out[begin], 0) < i) {}"),
        "`child` may wait for another thread",
    );
}

#[test]
fn no_launches_in_their_turn() {
    refuses(ID, QUICKSORT, "`sort` is recursive");
    // The leaves go on being launched by the device; with the rewrite on their launch, both would be collected.
    let outer = rewrite(ID, &NEST.replace("child<<<", "$0child<<<"));
    outer.has(&[
        "leaf<<<(row",
        "gridfuse::followed_by<child_aggregated>(4, 128, /*stream=*/0, nullptr, nullptr)",
    ]);
    refuses(
        ID,
        &NEST.replace("leaf<<<", "$0leaf<<<"),
        "`child` launches grids itself",
    );
    let inner = outer.text().replace("leaf<<<", "$0leaf<<<");
    for id in [ID, "aggregate-grid", "aggregate-block"] {
        assert!(rewrite_files(id, &[("a.cu", &inner)], &[]).is_err(), "{id}");
    }
}

#[test]
fn several_kernels_follow() {
    let other =
        "__global__ void other(int* out, int begin) {\n    out[begin] = blockIdx.x;\n}\n\n__global__ void parent";
    let two =
        program(&format!("{LAUNCH}\n    else other<<<1, 32>>>(out, begin);")).replace("__global__ void parent", other);
    rewrite(ID, &two.replace("child<<<", "$0child<<<")).has(&[
        "int n,\n                       gridfuse::StreamArena child_arena,\n                       gridfuse::StreamArena other_arena) {",
        "gridfuse::Aggregator<gridfuse::PerGridInStream, child_aggregated> children(child_arena);",
        "gridfuse::Aggregator<gridfuse::PerGridInStream, other_aggregated> others(other_arena);",
        "gridfuse::followed_by<child_aggregated>((n + 127) / 128, 128, /*stream=*/0, out),",
        "gridfuse::followed_by<other_aggregated>((n + 127) / 128, 128, /*stream=*/0, out));",
    ]);
    // One kernel with two sizes of blocks.
    let blocks = program(&format!("{LAUNCH}\n    else child<<<1, 64>>>(out, begin, count);"));
    rewrite(ID, &blocks.replace("child<<<1,", "$0child<<<1,")).has(&[
        "gridfuse::StreamBatch<child_args, kChildBlock> batch",
        "gridfuse::StreamBatch<child_args, kChildBlock2> batch",
        "child_aggregated> children(child_arena);",
        "child_aggregated2> children2(child_arena2);",
    ]);
    // One template with two instances.
    let instances = program(&format!("{LAUNCH}\n    else child<64><<<1, 32>>>(out, begin, count);"))
        .replace("__global__ void child(", "template <int N>\n__global__ void child(")
        .replace("child<<<", "child<32><<<");
    let result = rewrite(ID, &instances.replacen("child<32><<<", "$0child<32><<<", 1));
    result.has(&[
        "child_aggregated<32>> children(child_arena);",
        "child_aggregated<64>> children2(child_arena2);",
    ]);
    for once in [
        "struct child_args",
        "constexpr int kChildBlock",
        "__global__ void child_aggregated",
    ] {
        assert_eq!(result.text().matches(once).count(), 1, "{once}");
    }

    let collected = rewrite(ID, &program(LAUNCH)).text().replace(
        "    if (v >= n) return;",
        "    if (v >= n) return;\n    if (v == 0) $0child<<<1, 32>>>(out, 0, n);",
    );
    refuses(ID, &collected, "`parent` has an arena for other launches");
}

#[test]
fn the_launch_of_the_parent_is_a_statement_that_sees_the_kernel() {
    let with = |main: &str| {
        let text = program(LAUNCH);
        let at = text.find("    parent<<<").unwrap_or_default();
        let end = at + text[at..].find(";\n").unwrap_or_default() + 1;
        format!("{}{main}{}", &text[..at], &text[end..])
    };
    let launch = "parent<<<4, 128>>>(nullptr, nullptr, 512)";
    rewrite(ID, &with(&format!("    {launch};")))
        .has(&["followed_by<child_aggregated>(4, 128, /*stream=*/0, nullptr)"]);
    refuses(
        ID,
        &with(&format!("    {launch}, cudaDeviceSynchronize();")),
        "part of a larger expression",
    );
    let parent = "__global__ void parent(int* out, int n);\n";
    let main = "int main() {\n    parent<<<1, 32>>>(nullptr, 5);\n}\n";
    let kernels = r#"__global__ void child(int* out, int begin, int n) {
    if (threadIdx.x < n) out[begin] += 1;
}

__global__ void parent(int* out, int n) {
    child<<<1, 32>>>(out, threadIdx.x, n);
}
"#;
    refuses(
        ID,
        &format!("{parent}\n{main}\n{kernels}"),
        "`child_aggregated`, which the host is to launch, isn't declared before",
    );
    let child =
        "template <class T>\n__global__ void child(T* out, int begin, int count) {\n    out[begin] += T(count);\n}\n";
    rewrite(ID, &with_child(child, "child<int><<<1, 32>>>(out, begin, count);"))
        .has(&["gridfuse::followed_by<child_aggregated<int>>("]);
}

#[test]
fn a_function_of_the_user_may_be_called_as_a_member_of_the_header() {
    let own = program(LAUNCH).replace(
        "void run(",
        "int resident_blocks(int n) {\n    return (n + 127) / 128;\n}\n\nvoid run(",
    );
    let own = own.replace("parent<<<(n + 127) / 128,", "parent<<<resident_blocks(n),");
    // The header that an earlier rewrite has put there.
    let own = format!("#include \"{HEADER_NAME}\"\n{own}");
    let files = [("a.cu", own.as_str()), (HEADER_NAME, &HEADER)];
    let found = rewrite_files("aggregate-grid", &files, &[]).unwrap_or_else(|reasons| panic!("{reasons:?}"));
    found.has(&["gridfuse::arena_for(resident_blocks(n), 128)"]);
}

#[test]
fn a_variable_begins_with_the_constant_of_one_kernel() {
    let launch = "const int threads = 32;\n    if (count > 0) child<<<(count + threads - 1) / threads, threads>>>(out, begin, count);";
    let one = program(launch);
    rewrite(ID, &one).has(&[
        "constexpr int kChildBlock = 32;",
        "const int threads = kChildBlock;",
        "children.launch((count + threads - 1) / threads, threads, {begin, count});",
    ]);
    let other =
        "__global__ void other(int* out, int begin, int count) { out[begin] = count; }\n\n__global__ void parent";
    let two = program(&format!(
        "{launch}\n    if (count > 9) other<<<1, threads>>>(out, begin, count);"
    ));
    rewrite(ID, &two.replace("__global__ void parent", other)).has(&[
        "const int threads = 32;",
        "gridfuse::StreamBatch<child_args, 32> batch",
        "gridfuse::StreamBatch<other_args, 32> batch",
    ]);
}

/// A child that counts on its blocks being of one size: the threads with work are known where they are.
#[test]
fn thread_numbers_with_a_constant_block() {
    let child = "#define BLOCK 32\n__global__ void child(int* out, int begin, int count) {\n    int i = blockIdx.x * BLOCK + threadIdx.x;\n    \
                 if (i < count) out[begin + i] = count;\n}\n";
    let threads = "__device__ int threads() const { return count; }";
    rewrite(ID, &with_child(child, LAUNCH)).has(&[threads]);
    let wider = with_child(child, &LAUNCH.replace("31) / 32, 32", "63) / 64, 64"));
    let result = rewrite(ID, &wider);
    assert!(!result.text().contains(threads), "{}", result.text());
}

/// The block size has one name, wherever it stands.
#[test]
fn the_block_size_in_sight_is_named() {
    let child = "__global__ void child(int* out, int begin, int count) {\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    \
                 if (i < count) out[begin + i] = count;\n}\n";
    let launch = "int last = begin + count - 1;\n    child<<<(last - begin + 64) / 64, 64>>>(out, begin, count);";
    rewrite(ID, &with_child(child, launch))
        .has(&["children.launch((last - begin + kChildBlock) / kChildBlock, kChildBlock,"]);
    let launch = "dim3 block(BLOCK);\n    child<<<(count + BLOCK - 1) / BLOCK, block>>>(out, begin, count);";
    rewrite(ID, &with_child(&format!("#define BLOCK 64\n{child}"), launch)).has(&["StreamBatch<child_args, BLOCK>"]);
    let launch = "child<<<(count + kBlock - 1) / kBlock, kBlock>>>(out, begin, count);";
    let all = with_child(&format!("constexpr int kBlock = 128;\n{child}"), launch);
    let all = all.replacen("constexpr", "namespace text {\nconstexpr", 1);
    let all = all
        .replace("\nvoid run", "}\nvoid run")
        .replace("    parent<<<", "    text::parent<<<");
    rewrite(ID, &all).has(&["StreamBatch<child_args, kBlock>"]);
    // Another namespace's isn't seen at the child.
    let other = format!("namespace a {{ constexpr int kBlock = 64; }}\nusing a::kBlock;\n{child}");
    rewrite(ID, &with_child(&other, launch)).has(&["StreamBatch<child_args, 64>"]);
}

#[test]
fn a_constant_of_the_parent_as_template_argument() {
    let child = "template <int B> __global__ void child(int* out, int begin, int count) {\n    int i = blockIdx.x * B + threadIdx.x;\n    \
                 if (i < count) out[begin + i] = count;\n}\n";
    let launch = "constexpr int BS = 64;\n    child<BS><<<(count + BS - 1) / BS, BS>>>(out, begin, count);";
    rewrite("aggregate-grid", &with_child(child, launch)).has(&["child_aggregated</*BS=*/64>> children(arena, out);"]);
    let unclear = launch.replace("child<BS>", "child<BS / 2>");
    refuses(
        "aggregate-grid",
        &with_child(child, &unclear),
        "the template argument `BS` is not understood",
    );
}
