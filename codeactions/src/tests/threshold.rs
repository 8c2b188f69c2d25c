//! `threshold`

use super::{program, refuses, refuses_files, rewrite, rewrite_files, with_child};

const ID: &str = "threshold";

/// What is left to launch is large.
#[test]
fn once_is_enough() {
    let once = rewrite(ID, &program("child<<<(count + 31) / 32, 32>>>(out, begin, count);"));
    let again = once.text().replacen("    child<<<", "    $0child<<<", 1);
    let header = (crate::runtime::HEADER_NAME, &**crate::runtime::HEADER);
    refuses_files(
        ID,
        &[("a.cu", &again), header],
        "small grids of `child` run in the launching thread already",
    );
}

#[test]
fn unbraced_branches_get_braces() {
    rewrite(
        ID,
        &program(
            r#"if (count > 0)
        child<<<(count + 31) / 32, 32>>>(out, begin, count);
    else
        out[v] = 0;"#,
        ),
    )
    .has(&[r#"    if (count > 0) {
        if (count < kChildThreshold)
            child_serial((count + 31) / 32, 32, out, begin, count);
        else
            child<<<(count + 31) / 32, 32>>>(out, begin, count);
    }
    else
        out[v] = 0;
"#]);
    rewrite(
        ID,
        &program(
            r#"if (count < 0) out[v] = 0;
    else child<<<(count + 31) / 32, 32>>>(out, begin, count);"#,
        ),
    )
    .has(&[r#"    else {
        if (count < kChildThreshold)
            child_serial("#]);
    rewrite(
        ID,
        &program("if (begin) if (count > 0) $0child<<<(count + 31) / 32, 32>>>(out, begin, count); else out[v] = 1;"),
    )
    .has(&[
        r#"    if (begin) if (count > 0) {
        if (count < kChildThreshold)"#,
        "\n    } else out[v] = 1;",
    ]);
    rewrite(
        ID,
        &program(
            r#"for (int k = 0; k < 3; ++k) // three
        child<<<(count + 31) / 32, 32>>>(out, begin, count); // go"#,
        ),
    )
    .has(&[
        r#"// three
        {
            if (count < kChildThreshold)"#,
        "        } // go\n",
    ]);
}

#[test]
fn without_a_known_count_the_whole_grid_is_compared() {
    let whole = &[
        "gridfuse::below_threshold(",
        "gridfuse::for_each_thread(grid, block,
                              [&](uint3 threadIdx",
    ];
    rewrite(ID, &program("child<<<count, 32>>>(out, begin, count);")).has(whole);
    // Another value than the guard's.
    rewrite(ID, &program("child<<<(count + 31) / 32, 32>>>(out, begin, begin);")).has(whole);
    // A block size that CUDA may refuse.
    rewrite(ID, &program("child<<<(count + v - 1) / v, v>>>(out, begin, count);")).has(whole);
    rewrite(
        ID,
        &program("child<<<(count + 2047) / 2048, 2048>>>(out, begin, count);"),
    )
    .has(whole);
    // Types between which the comparison would change.
    rewrite(
        ID,
        &program(
            r#"long long c = count;
    child<<<(c + 31) / 32, 32>>>(out, begin, c);"#,
        ),
    )
    .has(whole);
    // Something is done outside of the guard.
    let child = r#"__global__ void child(int* out, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[begin + i] = count;
    else out[0] = 1;
}
"#;
    rewrite(
        ID,
        &with_child(child, "child<<<(count + 31) / 32, 32>>>(out, begin, count);"),
    )
    .has(whole);
    let unsigned = r#"__global__ void child(int* out, int begin, int count) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[begin + i] = count;
}
"#;
    rewrite(
        ID,
        &with_child(unsigned, "child<<<(count + 31) / 32, 32>>>(out, begin, count);"),
    )
    .has(whole);
}

#[test]
fn an_early_return_is_a_guard() {
    let child = r#"__global__ void child(int* out, int begin, int count) {
    const int i = threadIdx.x + blockDim.x * blockIdx.x;
    if (count <= i) { return; }
    out[begin + i] = count;
}
"#;
    rewrite(
        ID,
        &with_child(child, "child<<<(count + 31) / 32, 32>>>(out, begin, count);"),
    )
    .has(&[
        "if (count < kChildThreshold)",
        "gridfuse::for_each_thread(grid, block, count,
                              [&]",
    ]);
}

#[test]
fn a_guard_may_have_further_conditions() {
    let with = |guarded: &str| {
        let child = format!(
            r#"__global__ void child(int* out, int begin, int count) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {guarded}
}}
"#
        );
        rewrite(
            ID,
            &with_child(&child, "child<<<(count + 31) / 32, 32>>>(out, begin, count);"),
        )
    };
    let counted = &[
        "if (count < kChildThreshold)",
        "gridfuse::for_each_thread(grid, block, count,
                              [&]",
    ];
    let whole = &["gridfuse::below_threshold("];
    with("if (i < count && out[i] > 0 && begin) out[begin + i] = count;").has(counted);
    with("if ((count > i && begin) && out[i]) out[begin + i] = count;").has(counted);
    with(
        r#"if (i >= count || out[i] > 0 || begin) return;
    out[begin + i] = count;"#,
    )
    .has(counted);
    // What stands first, or decides by itself, is evaluated by every thread.
    with("if ((out[i] = 2) > 0 && i < count) out[begin + i] = count;").has(whole);
    with("if (i < count || begin) out[begin + i] = count;").has(whole);
    with("if (i < count && begin || out[0]) out[begin + i] = count;").has(whole);
    with("if ((i < count || begin) && out[0]) out[begin + i] = count;").has(whole);
    with(
        r#"if (i >= count && begin) return;
    out[begin + i] = count;"#,
    )
    .has(whole);
    with(
        r#"if (i < count && begin) out[begin + i] = count;
    else out[0] = 1;"#,
    )
    .has(whole);
}

#[test]
fn dim3_variables_and_three_dimensions() {
    rewrite(
        ID,
        &program(
            r#"dim3 grid((count + 31) / 32);
    dim3 block(32);
    child<<<grid, block>>>(out, begin, count);"#,
        ),
    )
    .has(&["child_serial(grid, block, out, begin, count);"]);
    let child = r#"__global__ void child(float* out, int3 size) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    if (x < size.x && y < size.y) out[(z * size.y + y) * size.x + x] = 1;
}
"#;
    let text = format!(
        r#"{child}
__global__ void parent(float* out, int3 size) {{
    dim3 grid(size.x / 8, size.y / 8, size.z);
    child<<<grid, dim3(8, 8)>>>(out, size);
}}
"#
    );
    rewrite(ID, &text).has(&[
        "gridfuse::below_threshold(grid, dim3(8, 8), kChildThreshold)",
        "child_serial(grid, dim3(8, 8), out, size);",
    ]);
}

#[test]
fn templates() {
    let text = r#"template <class T, int N = 4>
__global__ void child(T* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] += N;
}

template <class T>
__global__ void parent(T* out, int count) {
    child<T, 8><<<(count + 31) / 32, 32>>>(out, count);
}

void run(float* out) { parent<float><<<1, 1>>>(out, 5); }
"#;
    rewrite(ID, text).has(&[
        "template <class T, int N = 4>\n__device__ __forceinline__ void child_thread(uint3 threadIdx",
        r#"template <class T, int N = 4>
__global__ void child(T* out, int count) {
    child_thread<T, N>(threadIdx, blockIdx"#,
        r#"template <class T, int N = 4>
__device__ inline void child_serial(dim3 grid, dim3 block, T* out, int count) {"#,
        "child_serial<T, 8>((count + 31) / 32, 32, out, count);",
    ]);
    // Deduced template arguments are deduced again.
    rewrite(ID, &text.replace("child<T, 8><<<", "child<<<")).has(&["child_serial((count + 31) / 32, 32, out, count);"]);
}

#[test]
fn names_in_use_are_avoided() {
    let text = program("child<<<(count + 31) / 32, 32>>>(out, begin, count);");
    let text = format!(
        r#"#define kChildThreshold 3
int child_thread, child_serial;
{text}"#
    );
    rewrite(ID, &text).has(&[
        "constexpr int kChildThreshold2 = 64;",
        "void child_thread2(",
        "void child_serial2(",
    ]);
    let child = r#"__global__ void child(int* grid, int block, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) grid[block + i] += 1;
}
"#;
    rewrite(
        ID,
        &with_child(child, "child<<<(count + 31) / 32, 32>>>(out, begin, count);"),
    )
    .has(
        &["child_serial(dim3 launch_grid, dim3 launch_block, int* grid, int block,
                                    int count)"],
    );
}

#[test]
fn formatting_is_kept() {
    let text = "#include <cstdio>\r\n\r\n/* The child. */\r\n__global__ void child(int *out, // where\r\n\t\t\t\t\t  int count)\r\n{\r\n\
                \tint i = blockIdx.x * blockDim.x + threadIdx.x;\r\n\tif (i < count)\r\n\t\tout[i] = 1; // done\r\n}\r\n\r\n\
                __global__ void parent(int *out, int count)\r\n{\r\n\tif (count > 0)\r\n\t{\r\n\t\tchild<<<(count + 31) / 32, 32>>>(out, /* how many */ count);\r\n\t}\r\n}\r\n";
    let result = rewrite(ID, text);
    assert!(!result.text().replace("\r\n", "").contains('\n'));
    result.has(&[
        "#include <cstdio>\r\n#include \"gridfuse.cuh\"\r\n\r\n",
        "constexpr int kChildThreshold = 64;\r\n\r\n/* The child. */\r\n// The body of child,",
        "int *out, // where\r\n",
        "\r\n{\r\n\tint i = blockIdx.x * blockDim.x + threadIdx.x;\r\n\tif (i < count)\r\n\t\tout[i] = 1; // done\r\n}\r\n",
        "\t\tif (count < kChildThreshold)\r\n\t\t{\r\n\t\t\tchild_serial((count + 31) / 32, 32, out, count);\r\n\t\t}\r\n\
         \t\telse\r\n\t\t{\r\n\t\t\tchild<<<(count + 31) / 32, 32>>>(out, /* how many */ count);\r\n\t\t}\r\n\t}\r\n",
    ]);
}

#[test]
fn unnamed_and_defaulted_parameters() {
    let child = r#"__global__ void child(int* out, int, const float*, int count = 3) {
    out[threadIdx.x] = count;
}
"#;
    rewrite(ID, &with_child(child, "child<<<1, 32>>>(out, begin, nullptr, count);")).has(&[
        "const float* arg3,\n                                             int count) {\n    out[threadIdx.x]",
        r#"__global__ void child(int* out, int arg2, const float* arg3, int count = 3) {
    child_thread(threadIdx, blockIdx, gridDim, blockDim, out, arg2, arg3, count);"#,
    ]);
    refuses(
        ID,
        &with_child(child, "child<<<1, 32>>>(out, begin, nullptr);"),
        "leaves out arguments",
    );
}

#[test]
fn heads() {
    let child = r#"static __global__ void __launch_bounds__(128, 2) child(int* out, int begin, int count) {
    out[begin + threadIdx.x] = count;
}
"#;
    rewrite(ID, &with_child(child, "child<<<1, 32>>>(out, begin, count);")).has(&[
        "static __device__ __forceinline__ void child_thread(",
        "static __global__ void __launch_bounds__(128, 2) child(int* out",
        "static __device__ inline void child_serial(",
    ]);
    let child = r#"extern "C" __global__ void child(int* out, int begin, int count) {
    out[begin + threadIdx.x] = count;
}
"#;
    let result = rewrite(ID, &with_child(child, "child<<<1, 32>>>(out, begin, count);"));
    result.has(&[
        "\nextern \"C\" __global__ void child(int* out",
        "\n__device__ __forceinline__ void child_thread(",
    ]);
    assert_eq!(result.text().matches("extern \"C\"").count(), 1);
    let child = r#"#define KERNEL __global__ void
KERNEL child(int* out, int begin, int count) {
    out[begin + threadIdx.x] = count;
}
"#;
    rewrite(ID, &with_child(child, "child<<<1, 32>>>(out, begin, count);"))
        .has(&["\nKERNEL child(int* out, int begin, int count) {\n    child_thread("]);
}

#[test]
fn macros_expand_in_place() {
    let child = r#"#define GLOBAL_ID (blockIdx.x * blockDim.x + threadIdx.x)
#define ADD(p, n) atomicAdd(p, n)
__global__ void child(int* out, int begin, int count) {
    if (GLOBAL_ID < count) ADD(&out[begin], 1);
}
"#;
    rewrite(ID, &with_child(child, "child<<<1, 32>>>(out, begin, count);"));
    refuses(
        ID,
        &with_child(
            &child.replace("atomicAdd(p, n)", "(__syncthreads(), atomicAdd(p, n))"),
            "child<<<1, 32>>>(out, begin, count);",
        ),
        "waits at a barrier",
    );
}

#[test]
fn two_files_and_namespaces() {
    let header = r#"#pragma once
namespace ops {
__global__ void child(int* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = 1;
}
}
"#;
    let main = r#"#include "sub/ops.cuh"
__global__ void parent(int* out, int count) {
    ops::child<<<(count + 31) / 32, 32>>>(out, count);
}
"#;
    let result = rewrite_files(ID, &[("a.cu", main), ("sub/ops.cuh", header)], &[]);
    let result = result.unwrap_or_else(|r| panic!("{r:#?}"));
    result.has(&[
        "if (count < ops::kChildThreshold)",
        "ops::child_serial((count + 31) / 32, 32, out, count);",
    ]);
    let header = result.files.get("sub/ops.cuh").map_or("", String::as_str);
    assert!(
        header.starts_with("#pragma once\n\n#include \"../gridfuse.cuh\"\nnamespace ops {\n"),
        "{header}"
    );
    refuses_files(
        ID,
        &[
            (
                "a.cu",
                r#"__global__ void child(int* out, int count);
__global__ void parent(int* out, int n) { child<<<1, 32>>>(out, n); }
"#,
            ),
            (
                "b.cu",
                "__global__ void child(int* out, int count) { out[0] = count; }\n",
            ),
        ],
        "is defined in b.cu, which this file doesn't include",
    );
    refuses(
        ID,
        r#"__global__ void child(int* out);
__global__ void parent(int* out) { child<<<1, 32>>>(out); }
__global__ void child(int* out) { out[0] = 1; }
"#,
        "is defined below `parent`",
    );
}

#[test]
fn streams() {
    let own = r#"cudaStream_t s;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    child<<<1, 32, 0, s>>>(out, begin, count);
    cudaStreamDestroy(s);"#;
    assert!(rewrite(ID, &program(own)).assumes.is_empty());
    let shared = own.replace("child<<<", "for (int k = 0; k < 3; ++k) child<<<");
    assert_eq!(rewrite(ID, &program(&shared)).assumes.len(), 1);
    assert!(
        rewrite(
            ID,
            &program("child<<<1, 32, 0, cudaStreamFireAndForget>>>(out, begin, count);")
        )
        .assumes
        .is_empty()
    );
}

#[test]
fn refusals_because_of_the_child() {
    let refuse = |body: &str, reason: &str| {
        let child = format!(
            r#"__global__ void child(int* out, int begin, int count) {{
    {body}
}}
"#
        );
        refuses(
            ID,
            &with_child(&child, "$0child<<<1, 32>>>(out, begin, count);"),
            reason,
        );
    };
    refuse(
        "out[0] = __shfl_down_sync(~0u, count, 1);",
        "works together with its warp",
    );
    refuse("parent2<<<1, 1>>>(out);", "launches grids itself");
    refuse("asm volatile(\"exit;\");", "inline assembly");
    refuse(
        "while (atomicCAS(out, 0, 1) != 0) {}\n    out[0] = 0;",
        "may wait for another thread",
    );
    refuse(
        r#"volatile int* p = out;
    while (*p == 0) {}
    out[1] = 0;"#,
        "may wait for another thread",
    );
    refuse(
        "auto g = cooperative_groups::this_grid();\n    out[0] = g.cluster_rank();",
        "cooperative_groups::this_grid",
    );
    refuse(
        "cub::BlockReduce<int, 32>(out).Sum(count);",
        "of which no definition is in sight",
    );
    refuse("mystery(out, count);", "`mystery`, of which no definition is in sight");
    refuse(
        "int blockIdx = 3;\n    out[blockIdx] = 1;",
        "has a variable named `blockIdx`",
    );
    refuse("out[0] = @;", "isn't understood completely");
}

#[test]
fn refusals_because_of_callees() {
    let refuse = |helper: &str, reason: &str| {
        let child = format!(
            r#"{helper}
__global__ void child(int* out, int begin, int count) {{
    out[0] = help(count);
}}
"#
        );
        refuses(ID, &with_child(&child, "child<<<1, 32>>>(out, begin, count);"), reason);
    };
    refuse(
        "__device__ int help(int n) { static int calls; return n + threadIdx.x + calls++; }",
        "calls `help`, which reads `threadIdx` itself, and has a static variable",
    );
    refuse(
        "__device__ int help(int n) { return n < 2 ? 1 : n * help(n - 1); }",
        "is recursive",
    );
    refuse(
        "__device__ int help(int n) { __syncwarp(); return n; }",
        "works together with its warp",
    );
    refuse("__device__ int help(int n);", "no definition is in sight");
    refuse(
        r#"__device__ int inner(int n) { return n < 2 ? gridDim.x : inner(n - 1); }
__device__ int help(int n) { return inner(n); }"#,
        "calls `inner`, which reads `gridDim`",
    );
    refuse(
        "#define help(n) (blockId() + n)",
        "`blockId`, of which no definition is in sight",
    );
    refuse(
        r#"struct S { __device__ virtual int get() const { return blockIdx.x; } };
__device__ int help(int n) { S s; return s.get(); }"#,
        "which reads `blockIdx`",
    );
}

#[test]
fn refusals_because_of_the_launch() {
    let refuse = |launch: &str, reason: &str| refuses(ID, &program(launch), reason);
    refuse(
        "child<<<++begin, 32>>>(out, begin, count);",
        "the grid size calls or changes something",
    );
    refuse(
        "child<<<atomicAdd(out, 1), 32>>>(out, begin, count);",
        "the grid size calls or changes something",
    );
    refuse(
        "child<<<1, 32>>>(out, begin++, count);",
        "an argument of the launch changes a variable",
    );
    refuse(
        "child<<<1, 32, 0, cudaStreamTailLaunch>>>(out, begin, count);",
        "a tail launch",
    );
    refuse("child<<<1, 32, 0, streams[v]>>>(out, begin, count);", "isn't known");
    refuse(
        "count > 0 ? child<<<1, 32>>>(out, begin, count) : (void)0;",
        "part of a larger expression",
    );
    refuse(
        "nobody<<<1, 32>>>(out, begin, count);",
        "the definition of `nobody` isn't in the workspace",
    );
    refuse(
        r#"child<<<1, 32>>>(out, begin, count);
    cudaDeviceSynchronize();"#,
        "cudaDeviceSynchronize()",
    );
    refuses(
        ID,
        &program("").replace("parent<<<", "$0parent<<<"),
        "the host launches it",
    );
    let twice = r#"#ifdef A
__global__ void child(int* out, int begin, int count) { out[0] = 1; }
#else
__global__ void child(int* out, int begin, int count) { out[0] = 2; }
#endif
"#;
    refuses(
        ID,
        &with_child(twice, "child<<<1, 32>>>(out, begin, count);"),
        "several",
    );
}

#[test]
fn refusals_because_of_parameters() {
    let refuse = |params: &str, before: &str, reason: &str| {
        let child = format!(
            r#"{before}__global__ void child(int* out, {params}) {{
    out[0] = 1;
}}
"#
        );
        refuses(ID, &with_child(&child, "child<<<1, 32>>>(out, begin, count);"), reason);
    };
    refuse("const int& begin, int count", "", "is a reference");
    refuse(
        "Unseen begin, int count",
        "",
        "has the type `Unseen`, which isn't known",
    );
    refuse(
        "S begin, int count",
        "struct S { int x; S(int); S(const S&); };\n",
        "whose copying may run code",
    );
    refuse(
        "Pair<S> begin, int count",
        "struct S { int x; S(int); S(const S&); };\ntemplate <class T> struct Pair { T first, second; };\n",
        "which holds `S`, whose copying may run code",
    );
    // What a class declares besides its fields says nothing about copying; what code may run says the class.
    let declares = |members: &str| format!("struct Own {{ int x; }};\nstruct S {{ int x; Own own; {members} }};\n");
    for members in [
        "__device__ void step(int by);",
        "__device__ S next(int by) const; void show() const;",
        "static void all(int); void (*hook)(int);",
    ] {
        let text = format!(
            "{}__global__ void child(int* out, S begin, int count) {{ out[begin.x] = count; }}\n",
            declares(members)
        );
        rewrite(ID, &with_child(&text, "S s;\n    child<<<1, 32>>>(out, s, count);"));
    }
    for members in [
        "virtual void step(int by);",
        "void step(int); S(const S&);",
        "void operator=(const S&);",
    ] {
        refuse("S begin, int count", &declares(members), "whose copying may run code");
    }
    refuse(
        "S begin, int count",
        "struct Own { int x; Own(int); Own(const Own&); };\nstruct S { Own own; void step(int); };\n",
        "whose field `own` isn't known to be plain",
    );
    refuse("int (*begin)(int), int count", "", "not understood");
    refuse(
        "const __grid_constant__ int begin, int count",
        "",
        "is __grid_constant__",
    );
    refuses(
        ID,
        &with_child(
            "__cluster_dims__(2) __global__ void child(int* out, int begin, int count) { out[0] = 1; }\n",
            "child<<<2, 32>>>(out, begin, count);",
        ),
        "`__cluster_dims__(2)` in front of `child`",
    );
}

#[test]
fn a_launch_in_the_head_of_a_loop_stays() {
    refuses(
        ID,
        &program("for (child<<<1, 32>>>(out, begin, count); count > 0; --count) ;"),
        "in the head of a loop",
    );
}

#[test]
fn read_only_loads_are_assumed_to_miss_nothing() {
    let child = r#"__global__ void child(int* out, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd(&out[0], __ldg(&out[begin + i]));
}
"#;
    let result = rewrite(
        ID,
        &with_child(child, "child<<<(count + 31) / 32, 32>>>(out, begin, count);"),
    );
    assert!(result.assumes.iter().any(|a| a.contains("__ldg()")));
}

#[test]
fn implicit_reads_of_the_built_in_variables() {
    let body = r#"__global__ void child(int* out, int begin, int count) {
    out[begin] = twice[3];
}
"#;
    for class in [
        "__device__ struct Twice { __device__ int operator[](int i) const { return blockIdx.x + i; } } twice;\n",
        r#"struct Twice { int k = blockIdx.x; __device__ int operator[](int i) const { return k; } };
__device__ int twice[4];
"#,
        r#"struct Twice { int k; __device__ operator int() const { return blockIdx.x; } };
__device__ int twice[4];
"#,
    ] {
        refuses(
            ID,
            &with_child(&format!("{class}{body}"), "$0child<<<1, 32>>>(out, begin, count);"),
            "reads the built-in variables",
        );
    }
    let macros = "#define ID \\\n    (blockIdx.x * blockDim.x + threadIdx.x)\n";
    let body = r#"__global__ void child(int* out, int begin, int count) {
    out[ID] = begin;
}
"#;
    rewrite(
        ID,
        &with_child(&format!("{macros}{body}"), "$0child<<<1, 32>>>(out, begin, count);"),
    );
}

#[test]
fn launches_of_a_device_function() {
    let with = |functions: &str, kernels: &str| {
        let text = format!(
            r#"__global__ void child(int* x, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&x[i], 1);
}}

{functions}
__device__ void go(int* x, int n) {{
    $0child<<<(n + 31) / 32, 32>>>(x, n);
}}

{kernels}"#
        );
        let mut assumes = Vec::new();
        for id in ["threshold", "fire-and-forget", "serialize"] {
            let rewritten = rewrite(id, &text).assumes;
            let has = |what: &str| rewritten.iter().any(|reason| reason.contains(what));
            assumes.push((
                has("in several calls of `go`"),
                has("other grids that kernels which call `go` launch"),
            ));
        }
        assert_eq!(assumes[0], assumes[1]);
        // A thread that runs its grids itself runs them in order.
        assert_eq!(assumes[2], (false, assumes[0].1));
        assumes[0]
    };
    let kernel = |code: &str| {
        format!(
            r#"__global__ void parent(int* x, int n) {{
    if (threadIdx.x == 0) {{ {code} }}
}}
"#
        )
    };
    let other = r#"__global__ void other(int* x) { x[0] = 2; }
__device__ void twice(int* x) { other<<<1, 1>>>(x); }
"#;
    assert_eq!(with("", &kernel("go(x, n);")), (false, false));
    assert_eq!(with("", &kernel("go(x, 1000); go(x, 10);")), (true, false));
    assert_eq!(
        with("", &kernel("for (int k = 0; k < n; ++k) go(x, k);")),
        (true, false)
    );
    assert_eq!(with(other, &kernel("go(x, n); twice(x);")), (false, true));
    assert_eq!(with(other, &kernel("other<<<1, 1>>>(x); go(x, n);")), (false, true));
    let between = format!(
        "__device__ void between(int* x, int n) {{ go(x, n); }}\n{}",
        kernel("go(x, n); between(x, n);")
    );
    assert_eq!(with("", &between), (true, false));
    // Threads of different kernels.
    let second = format!(
        "{}__global__ void second(int* x, int n) {{ go(x, n); }}\n",
        kernel("go(x, n);")
    );
    assert_eq!(with("", &second), (false, false));
    // Who calls it isn't in sight.
    assert_eq!(with("", ""), (true, true));
}

#[test]
fn calls_that_change_the_same_elements() {
    let with = |go: &str, kernel: &str| {
        format!(
            r#"__global__ void child(int* x, int n, int k) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * 3 + k;
}}
__device__ void go(int* x, int n, int k) {{
    {go} $0child<<<(n + 31) / 32, 32>>>(x, n, k);
}}
__global__ void parent(int* x, int* y, int n) {{
    {kernel}
}}
void run(int* x, int* y, int n) {{ parent<<<1, 32>>>(x, y, n); }}
"#
        )
    };
    let by_turns = "go(x, n, 0); __syncthreads(); go(x, n, 3);";
    for id in ["threshold", "fire-and-forget", "aggregate-block"] {
        refuses(
            id,
            &with("if (threadIdx.x == k)", by_turns),
            "they go over the same elements",
        );
        refuses(
            id,
            &with("", "if (threadIdx.x == 0) for (int k = 0; k < n; ++k) go(x, n, k);"),
            "they go over the same elements",
        );
    }
    // Memory of each thread's own, or of each call's own.
    rewrite(ID, &with("", "go(x + threadIdx.x * n, n, 0);"));
    rewrite(ID, &with("", "if (threadIdx.x == 0) { go(x, n, 0); go(y, n, 1); }"));
}

#[test]
fn a_number_of_blocks_that_an_operator_changes_is_no_count() {
    let with = |change: &str| {
        let before = r#"struct Reader { int n; };
__device__ Reader& operator>>(Reader& r, int& x) { x = ++r.n; return r; }

"#;
        let launch = format!(
            r#"int per = (count + 31) / 32;
    Reader reader = {{v}};
    {change}
    int blocks = per;
    child<<<blocks, 32>>>(out, begin, count);"#
        );
        rewrite(ID, &format!("{before}{}", program(&launch)))
    };
    with("reader >> per;").has(&["if (gridfuse::below_threshold(blocks, 32, kChildThreshold))"]);
    with("reader.n += per;").has(&["if (count < kChildThreshold)"]);
}

#[test]
fn names_of_numbers_that_the_program_gives_to_others() {
    let text = program("child<<<(count + 31) / 32, 32>>>(out, begin, count);");
    let redefined = |type_name: &str| refuses("threshold", type_name, "call it otherwise");
    redefined(&format!("using uint = unsigned char;\n{text}"));
    redefined(&format!("typedef long int32_t;\n{text}"));
    redefined(&text.replace("int n) {", "int n) {\n    typedef unsigned char ushort;"));
    rewrite(
        "threshold",
        &format!("typedef unsigned int uint;\nusing int32_t = int;\n{text}"),
    );
}
