//! What differs between the granularities of aggregation.

use super::{program, refuses, rewrite, rewrite_files, with_child};

const ID: &str = "aggregate-block";

#[test]
fn each_granularity_has_its_type() {
    let text = program("if (count > 0) child<<<(count + 31) / 32, 32>>>(out, begin, count);");
    for (id, ty, noun) in [
        ("aggregate-warp", "PerWarp", "a warp"),
        ("aggregate-block", "PerBlock", "a block"),
        ("aggregate-multiblock", "PerMultiBlock<8>", "a group of blocks"),
        ("aggregate-grid", "PerGrid", "a grid"),
    ] {
        let result = rewrite(id, &text);
        result.has(&[
            &format!("gridfuse::Aggregator<gridfuse::{ty}, child_aggregated> children(arena, out);"),
            &format!("// The arguments of child that differ within {noun} of parent.\n"),
        ]);
        assert!(
            result
                .assumes
                .iter()
                .any(|a| a.contains("different threads of a block"))
        );
    }
    let four = rewrite_files("aggregate-multiblock", &[("a.cu", &text)], &[("blocks", "4")]);
    assert!(four.is_ok_and(|r| r.text().contains("gridfuse::PerMultiBlock<4>")));
    for value in ["0", "-1", "x"] {
        let refused = rewrite_files("aggregate-multiblock", &[("a.cu", &text)], &[("blocks", value)]);
        assert!(refused.is_err_and(|r| r.iter().any(|r| r.contains("must be a number"))));
    }
}

/// Blocks that launch together differ in `blockIdx`, whatever it was that they computed from it.
#[test]
fn what_a_block_has_in_common_differs_between_blocks() {
    let launch = r#"int first = blockIdx.x * 7;
    child<<<1 + begin, 32>>>(out, blockIdx.x, blockDim.x + gridDim.x);
    (void)first;"#;
    for (id, varying, uniform) in [
        (
            "aggregate-warp",
            "child_args {}",
            "arena, out, blockIdx.x, blockDim.x + gridDim.x",
        ),
        (
            "aggregate-block",
            "child_args {}",
            "arena, out, blockIdx.x, blockDim.x + gridDim.x",
        ),
        (
            "aggregate-multiblock",
            "child_args { int begin; }",
            "arena, out, blockDim.x + gridDim.x",
        ),
        (
            "aggregate-grid",
            "child_args { int begin; }",
            "arena, out, blockDim.x + gridDim.x",
        ),
    ] {
        rewrite(id, &program(launch)).has(&[varying, uniform]);
    }
}

#[test]
fn shapes_that_a_block_has_in_common_differ_between_blocks() {
    let child = r#"__global__ void child(int* out, int begin) {
    atomicAdd(&out[begin], blockDim.x * blockDim.y);
}
"#;
    let text = with_child(
        child,
        "child<<<1, dim3(1 + blockIdx.x % 4, 1 + blockIdx.x % 3)>>>(out, begin);",
    );
    for id in ["aggregate-warp", "aggregate-block"] {
        rewrite(id, &text);
    }
    for id in ["aggregate-multiblock", "aggregate-grid"] {
        rewrite(id, &text).has(&["gridfuse::ShapedBatch<child_args>"]);
    }
    refuses("aggregate-grid-host", &text, "may have several dimensions and differ");
}

#[test]
fn blocks_of_several_shapes_run_in_a_row() {
    let child = r#"__device__ int column() { return threadIdx.x; }
__global__ void child(int* out, int begin) {
    __shared__ int tile[256];
    int lane = threadIdx.y * blockDim.x + threadIdx.x;
    tile[lane] = column();
    __syncthreads();
    atomicAdd(&out[begin], tile[blockDim.x * blockDim.y - 1 - lane]);
}
"#;
    let launch = "dim3 block = count > 8 ? dim3(32, 4) : dim3(16, 8);
    $0child<<<2, block>>>(out, begin);";
    rewrite("aggregate-block", &with_child(child, launch)).has(&[
        "__device__ __forceinline__ void child_thread(",
        "__global__ void child_aggregated(gridfuse::ShapedBatch<child_args> batch",
        "batch.for_each_block([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim,",
        "child_thread(threadIdx, blockIdx, gridDim, blockDim,",
    ]);
    // Both are collected by one, and what is the same for all launches by another one.
    let two = "child<<<2, dim3(count % 8 + 1, 4)>>>(out, begin);\n    child<<<1, dim3(4, count % 8 + 1)>>>(out, begin);
    child<<<1, dim3(4, 8)>>>(out, begin);";
    let result = rewrite("aggregate-block", &with_child(child, two));
    result.has(&[
        "gridfuse::ShapedBatch<child_args> batch",
        "gridfuse::Batch<child_args> batch",
    ]);
    assert_eq!(result.text().matches("__global__ void child_aggregated").count(), 2);
    let asks = child.replace(
        "__shared__ int tile[256];",
        "__shared__ int tile[256];\n    unsigned own;\n    asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(own));",
    );
    refuses("aggregate-block", &with_child(&asks, launch), "holds inline assembly");
}

#[test]
fn kernels_that_nest_have_one_kind_of_batch() {
    let nest = r#"__global__ void leaf(int* out, int depth) { out[threadIdx.y * blockDim.x + threadIdx.x] = depth; }
__global__ void tree(int* out, int depth) {
    int v = threadIdx.x;
    if (depth > 3) return;
    tree<<<1, 32>>>(out, depth + 1);
    $0leaf<<<1, dim3(v % 4 + 1, 4)>>>(out, depth);
}
void run(int* out) { tree<<<1, 32>>>(out, 0); }
"#;
    refuses("aggregate-block", nest, "may have several dimensions and differ");
}

#[test]
fn a_block_that_is_a_template_argument_is_a_number() {
    let program = |argument: &str| {
        format!(
            r#"struct Policy {{ static constexpr unsigned threads = 64; }};
template <class T, unsigned Threads>
__global__ void child(T* out, int begin) {{
    __shared__ T tile[Threads];
    tile[threadIdx.x] = T(begin);
    __syncthreads();
    out[begin + threadIdx.x] = tile[Threads - 1 - threadIdx.x];
}}

template <class T, class P>
__global__ void parent(T* out, const int* row, int n) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n && row[v] > 0) $0child<T, {argument}><<<1, P::threads>>>(out, row[v]);
}}

int main() {{
    parent<float, Policy><<<4, 128>>>(nullptr, nullptr, 512);
}}
"#
        )
    };
    rewrite("aggregate-block", &program("P::threads")).has(&[
        "gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated<T, P::threads>> children(arena, out);",
        "children.launch(1, P::threads, {row[v]});",
    ]);
    // All threads launch blocks of one shape.
    rewrite("aggregate-block", &program("64")).has(&["gridfuse::Batch<child_args>"]);
}

#[test]
fn inline_assembly_that_only_computes() {
    let with = |asm: &str| {
        let child = format!(
            r#"__global__ void child(int* out, int begin, int count) {{
    unsigned x = 0;
    {asm}
    out[begin] = x + count;
}}
"#
        );
        with_child(&child, "$0child<<<1, 32>>>(out, begin, count);")
    };
    for fine in [
        "asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(x));",
        "asm volatile(\"add.u32 %0, %1, 1;\\n\\t\" \"popc.b32 %0, %0;\" : \"=r\"(x) : \"r\"(count));",
    ] {
        rewrite("aggregate-grid", &with(fine));
    }
    for odd in [
        "asm(\"mov.u32 %0, %%nctaid.x;\" : \"=r\"(x));",
        "asm(\"bar.sync 0;\");",
        "asm(\"exit;\");",
        "asm(\"{ .reg .u32 t; mov.u32 t, %tid.x; }\");",
    ] {
        refuses("aggregate-grid", &with(odd), "inline assembly");
    }
}

#[test]
fn arguments_left_to_plain_defaults() {
    let child = |default: &str| {
        let child = format!(
            r#"__global__ void child(int* out, int begin, long step = {default}, bool odd = false) {{
    out[begin * step] = odd;
}}
"#
        );
        with_child(&child, "child<<<1, 32>>>(out, begin);")
    };
    rewrite("aggregate-block", &child("-1"))
        .has(&["children.launch(1, 32, {begin, static_cast<long>(-1), static_cast<bool>(false)});"]);
    refuses("aggregate-block", &child("sizeof(int)"), "leaves out arguments");
}

/// A program whose parent has `bounds` in front of its name and is launched with blocks of `block` threads.
fn bounded(bounds: &str, block: &str) -> String {
    program("child<<<(count + 31) / 32, 32>>>(out, begin, count);")
        .replace("void parent(", &format!("void {bounds}parent("))
        .replace("parent<<<(n + 127) / 128, 128>>>", &format!("parent<<<n, {block}>>>"))
}

#[test]
fn large_blocks_get_launch_bounds() {
    for block in ["1024", "dim3(32, 32)"] {
        rewrite(ID, &bounded("", block)).has(&["__global__ void __launch_bounds__(1024) parent(int* out"]);
    }
    for block in ["512", "2048", "n"] {
        assert!(!rewrite(ID, &bounded("", block)).text().contains("__launch_bounds__"));
    }
    // All launches count.
    let text = bounded("", "768");
    let two = |other: &str| {
        text.replace(
            "    parent<<<",
            &format!("    parent<<<1, {other}>>>(out, row, n);\n    parent<<<"),
        )
    };
    rewrite(ID, &two("96")).has(&["__launch_bounds__(768) parent("]);
    assert!(!rewrite(ID, &two("n")).text().contains("__launch_bounds__"));
    // The user's stay.
    let kept = bounded("__launch_bounds__(1024) ", "1024");
    assert_eq!(rewrite(ID, &kept).text().matches("__launch_bounds__").count(), 1);
}

#[test]
fn the_header_goes_in_front_of_macros_with_its_names() {
    let text = program("child<<<1, 32>>>(out, begin, count);");
    let text = text.split_once('\n').map_or("", |(_, rest)| rest);
    let include = "#include \"gridfuse.cuh\"\n";
    let starts = |before: &str, wanted: &str| {
        let result = rewrite(ID, &format!("{before}{text}"));
        assert!(result.text().starts_with(wanted), "{}", &result.text()[..200]);
    };
    let macros = r#"#define X 64
#define T 128
#include <cstdio>
"#;
    starts(macros, &format!("{include}\n{macros}"));
    starts(
        &format!("// About.\n\n{macros}"),
        &format!("// About.\n\n{include}\n{macros}"),
    );
    starts(
        &format!("#pragma once\n{macros}"),
        &format!("#pragma once\n\n{include}{macros}"),
    );
    // Other names, or gone again.
    starts(
        "#define kSize 1\n#include <cstdio>\n",
        &format!(
            r#"#define kSize 1
#include <cstdio>
{include}"#
        ),
    );
    let gone = r#"#define X 1
#undef X
#include <cstdio>
"#;
    starts(gone, &format!("{gone}{include}"));
    starts(
        "#define GRIDFUSE_DEBUG\n#include <cstdio>\n",
        &format!(
            r#"#define GRIDFUSE_DEBUG
#include <cstdio>
{include}"#
        ),
    );
    // As the system's headers do.
    let system = r#"#define UINT_MAX 4294967295u
#define __device__ __attribute__((device))
#include <cstdio>
"#;
    starts(system, &format!("{system}{include}"));
    // Out of another file.
    let a = format!(
        r#"#include <cstdio>
#include "util.h"
{text}"#
    );
    let util = ("util.h", "#pragma once\n#define max(a, b) ((a) > (b) ? (a) : (b))\n");
    let Ok(result) = super::rewrite_files(ID, &[("a.cu", &a), util], &[]) else {
        panic!()
    };
    assert!(
        result.text().starts_with(&format!("{include}\n#include <cstdio>\n")),
        "{}",
        result.text()
    );
    // What the system's headers are to be like has to come first.
    refuses(
        ID,
        &format!(
            r#"#define _GNU_SOURCE
#define T 128
#include <cstdio>
{text}"#
        ),
        "gridfuse.cuh would be included after the macro `T`, a name that it uses itself",
    );
}

#[test]
fn arguments_of_the_host_that_change_its_configuration() {
    let text = program("child<<<1, 32>>>(out, begin, count);");
    let with = |args: &str| {
        text.replace(
            "void run(",
            r#"void change(int& n);
int next(int n);
int take(int* n);
#define B b
void run("#,
        )
        .replace(
            "parent<<<(n + 127) / 128, 128>>>(out, row, n);",
            &format!("int b = 5, c = 1;\n    parent<<<B, 128>>>({args});"),
        )
    };
    let why = "this argument of the host launch may change what its grid, block or stream is made of";
    for id in ["aggregate-block", "aggregate-grid-host", "aggregate-grid-stream"] {
        for args in [
            "out, row, b--",
            "out, row, (b = 7)",
            "out, row, c + b++",
            "out, row, take(&b)",
            "out, row, B--",
            "out, row, change(b)",
        ] {
            refuses(id, &with(args), why);
        }
        for args in [
            "out, row, b",
            "out, row, next(b)",
            "out, row, take(&c)",
            "out, row, 60 * b",
            "out, row, change(c)",
        ] {
            rewrite(id, &with(args));
        }
    }
}

#[test]
fn literals_that_braces_would_narrow_are_cast() {
    let child = |types: [&str; 2]| {
        let [a, b] = types;
        format!(
            r#"__global__ void child(int* out, {a} a, {b} b) {{
    out[threadIdx.x] = a + b;
}}
"#
        )
    };
    let launched = |types: [&str; 2], a: &str, b: &str| {
        let launch = format!("if (n > 2) child<<<1, 32>>>(out, {a}, {b}); else child<<<1, 32>>>(out, v, v);");
        rewrite("aggregate-grid", &with_child(&child(types), &launch))
    };
    for (types, a, b, wanted) in [
        (
            ["unsigned", "size_t"],
            "-1",
            "(-1)",
            "{static_cast<unsigned>(-1), static_cast<size_t>((-1))}",
        ),
        (
            ["unsigned short", "unsigned char"],
            "-1",
            "- 3",
            "{static_cast<unsigned short>(-1), static_cast<unsigned char>(- 3)}",
        ),
        (["int", "long"], "-1u", "-7", "{static_cast<int>(-1u), -7}"),
        (["short", "float"], "-32767", "-5", "{-32767, -5}"),
        (["short", "unsigned"], "-40000", "7", "{static_cast<short>(-40000), 7}"),
        (["unsigned", "unsigned long long"], "5", "0", "{5, 0}"),
    ] {
        launched(types, a, b).has(&[wanted]);
    }
}

#[test]
fn min_and_max_are_never_smaller_than_int() {
    let child = r#"__global__ void child(int* out, short a, unsigned char b, int c) {
    out[a] = b + c;
}
"#;
    let launch = r#"short s = v, t = 7;
    unsigned char e = v, d = 3;
    if (count > 0) child<<<1, 32>>>(out, min(s, t), max(e, d), min(s, t));"#;
    rewrite("aggregate-grid", &with_child(child, launch)).has(&[
        "{static_cast<short>(min(s, t)), static_cast<unsigned char>(max(e, d)),
                        min(s, t)}",
    ]);
}

#[test]
fn a_number_is_converted_to_what_the_child_calls_by_the_name() {
    // The grammar knows `size_t` as a type of the language's.
    for declared in ["typedef unsigned char size_t;", "using size_t = unsigned char;"] {
        let child = format!(
            "namespace own {{\n{declared}\n__global__ void child(int* out, size_t a) {{\n    out[a] = 1;\n}}\n}}\n"
        );
        let launch = "int s = v % 7;\n    if (count > 0) own::child<<<1, 32>>>(out, s);";
        rewrite("aggregate-grid", &with_child(&child, launch)).has(&["{static_cast<unsigned char>(s)}"]);
    }
}

#[test]
fn a_comment_behind_the_brace_swallows_nothing() {
    let text = program("child<<<1, 32>>>(out, begin, count);");
    let head = r#"int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if"#;
    let body = "int v = blockIdx.x * blockDim.x + threadIdx.x;\n    if";
    let aggregator = "    gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated> children(arena, out);\n";
    let with = |between: &str| {
        assert!(text.contains(head));
        rewrite(ID, &text.replace(head, &format!("int n) {{{between}{body}")))
    };
    for (between, wanted) in [
        (
            " /* what\n    it does */ ",
            format!("{{\n{aggregator}    /* what\n    it does */ {body}"),
        ),
        (
            " /* a */ /* what\n    it does */\n    ",
            format!("{{\n{aggregator}    /* a */ /* what\n    it does */\n    {body}"),
        ),
        (
            " // goes on \\\n    here\n    ",
            format!("{{\n{aggregator}    // goes on \\\n    here\n    {body}"),
        ),
        (
            " /* a */ // b\n    ",
            format!("{{ /* a */ // b\n{aggregator}    {body}"),
        ),
        ("\n    ", format!("{{\n{aggregator}    {body}")),
    ] {
        with(between).has(&[&wanted]);
    }
    let crlf = text
        .replace(head, &format!("int n) {{ // b\n    {body}"))
        .replace('\n', "\r\n");
    rewrite(ID, &crlf).has(&[&format!("{{ // b\r\n{}    int v", aggregator.replace('\n', "\r\n"))]);
}

#[test]
fn what_is_set_for_the_child_holds_for_no_other_kernel() {
    let text = program("child<<<(count + 31) / 32, 32>>>(out, begin, count);");
    let with = |code: &str| text.replace("    parent<<<", &format!("    {code}\n    parent<<<"));
    let all = [
        "aggregate-warp",
        "aggregate-block",
        "aggregate-multiblock",
        "aggregate-grid",
        "aggregate-grid-stream",
        "coarsen",
    ];
    let why = "`child` is mentioned where it isn't launched, and what is set for it there";
    for id in all {
        refuses(
            id,
            &with("cudaFuncSetAttribute(child, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);"),
            why,
        );
    }
    let set = with("cudaFuncSetAttribute(child, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);");
    let optimized = rewrite("optimize", &set);
    assert!(!optimized.text().contains("child_aggregated") && !optimized.text().contains("child_coarsened"));
    for code in [
        "CHECK(cudaFuncSetCacheConfig((const void*)child, cudaFuncCachePreferShared));",
        r#"void (*kernel)(int*, int, int) = child;
    prepare(kernel);"#,
    ] {
        refuses(ID, &with(code), why);
        refuses("coarsen", &with(code), why);
    }
    // In another file, and by a macro.
    let files = [
        ("a.cu", text.as_str()),
        (
            "b.cu",
            r#"__global__ void child(int* out, int begin, int count);
void prepare() { cudaFuncSetAttribute(child, a, 1); }
"#,
        ),
    ];
    super::refuses_files(ID, &files, why);
    refuses(
        ID,
        &format!("#define PREPARE() cudaFuncSetAttribute(child, a, 1)\n{text}"),
        why,
    );
    // These ask, or launch it by itself.
    for code in [
        r#"int blocks, threads;
    cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, child, 0, 0);"#,
        "cudaFuncAttributes a;\n    cudaFuncGetAttributes(&a, child);",
        "child<<<1, 32>>>(out, 0, n);",
        "// cudaFuncSetAttribute(child, a, 1);",
        "cudaFuncSetAttribute(other, a, 1);",
    ] {
        for id in [ID, "coarsen"] {
            rewrite(id, &with(code));
        }
    }
    // The child itself is launched, or none.
    for id in ["fire-and-forget", "threshold", "serialize"] {
        rewrite(id, &with("cudaFuncSetAttribute(child, a, 1);"));
    }
}

#[test]
fn aggregated_kernels_of_large_blocks_get_launch_bounds() {
    let all = [
        "aggregate-warp",
        "aggregate-block",
        "aggregate-multiblock",
        "aggregate-grid",
        "aggregate-grid-stream",
    ];
    let head = |bounds: &str| format!("__global__ void {bounds}child_aggregated(");
    for id in all {
        for (block, bounds) in [
            ("257", "__launch_bounds__(257) "),
            ("512", "__launch_bounds__(512) "),
            ("dim3(32, 16)", "__launch_bounds__(512) "),
            ("1024", "__launch_bounds__(1024) "),
            ("256", ""),
            ("dim3(16, 16)", ""),
        ] {
            rewrite(id, &program(&format!("child<<<1, {block}>>>(out, begin, count);"))).has(&[&head(bounds)]);
        }
        let text = program("child<<<1, 512>>>(out, begin, count);");
        let own = text.replace("void child(", "void __launch_bounds__(640, 1) child(");
        rewrite(id, &own).has(&[&head("__launch_bounds__(640, 1) ")]);
    }
    // One kernel for launches of several sizes.
    let two = |other: &str| {
        program(&format!(
            r#"child<<<1, 288>>>(out, begin, count);
    child<<<1, {other}>>>(out, begin, count);"#
        ))
    };
    rewrite(ID, &two("768")).has(&[&head("__launch_bounds__(768) ")]);
    rewrite(ID, &two("32")).has(&[&head("__launch_bounds__(288) ")]);
    rewrite(ID, &two("count")).has(&[&head("")]);
    // A block that there can't be.
    rewrite(ID, &program("child<<<1, 2048>>>(out, begin, count);")).has(&[&head("")]);
    // Where it is declared, too.
    let text = program("child<<<1, 512>>>(out, begin, count);");
    let at = text.find("__global__ void parent").unwrap_or(0);
    let (child, rest) = text.split_at(at);
    let behind = format!(
        r#"__global__ void child(int* out, int begin, int count);

{rest}
{child}"#
    );
    let result = rewrite(ID, &behind);
    assert_eq!(
        result.text().matches(&head("__launch_bounds__(512) ")).count(),
        2,
        "{}",
        result.text()
    );
}

#[test]
fn launch_bounds_that_leave_too_few_registers() {
    let narrow = "the launch bounds of `parent` leave 24 registers for a thread, and what launches needs up to 32";
    refuses(ID, &bounded("__launch_bounds__(256, 10) ", "256"), narrow);
    let constants = bounded("__launch_bounds__(kThreads, kBlocks) ", "256");
    refuses(
        ID,
        &format!("constexpr int kThreads = 256, kBlocks = 10;\n{constants}"),
        narrow,
    );
    refuses(ID, &bounded("__maxnreg__(24) ", "256"), narrow);
    let debugging =
        "`parent` isn't compiled for debugging (-G), where what launches needs up to 40 registers of a thread's 32";
    for bounds in ["__launch_bounds__(256, 8) ", "__maxnreg__(32) "] {
        let result = rewrite(ID, &bounded(bounds, "256"));
        assert!(result.assumes.iter().any(|a| a == debugging), "{:?}", result.assumes);
    }
    let enough = rewrite(ID, &bounded("__launch_bounds__(256, 4) ", "256"));
    assert!(!enough.assumes.iter().any(|a| a.contains("-G")), "{:?}", enough.assumes);
    let macros = format!(
        "#define BOUNDS(n) __launch_bounds__(n, 8)\n{}",
        bounded("BOUNDS(256) ", "256")
    );
    if let Ok(result) = rewrite_files(ID, &[("a.cu", &macros)], &[]) {
        let assumed = "the launch bounds of `parent` leave enough registers";
        assert!(
            result.assumes.iter().any(|a| a.contains(assumed)),
            "{:?}",
            result.assumes
        );
    }
    // Many arguments take many registers, where nothing is inlined.
    let parameters: Vec<String> = (0..16).map(|i| format!("double* p{i}")).collect();
    let arguments: Vec<String> = (0..16).map(|i| format!("p{i}")).collect();
    let (parameters, arguments) = (parameters.join(", "), arguments.join(", "));
    let many = |block: &str| {
        bounded("", block)
            .replace(
                "child(int* out, int begin, int count)",
                &format!("child(int* out, int begin, int count, {parameters})"),
            )
            .replace("(out, begin, count);", &format!("(out, begin, count, {arguments});"))
            .replace(
                "parent(int* out, const int* row, int n)",
                &format!("parent(int* out, const int* row, int n, {parameters})"),
            )
            .replace(
                "void run(int* out, const int* row, int n)",
                &format!("void run(int* out, const int* row, int n, {parameters})"),
            )
            .replace("(out, row, n);", &format!("(out, row, n, {arguments});"))
    };
    let result = rewrite(ID, &many("1024"));
    result.has(&["__launch_bounds__(1024) parent("]);
    let debugging = "needs up to 104 registers of a thread's 64";
    assert!(
        result.assumes.iter().any(|a| a.contains(debugging)),
        "{:?}",
        result.assumes
    );
    assert!(!rewrite(ID, &many("256")).assumes.iter().any(|a| a.contains("-G")));
}

/// The parent changes its last parameter by `code`, of type `ty`, before it launches, and hands it on.
fn changed_before_the_launch(types: &str, ty: &str, code: &str) -> String {
    format!(
        r#"{types}
__global__ void child(int* out, int count, {ty} what) {{
    if (threadIdx.x < count) out[threadIdx.x] = threadIdx.x + 1;
}}

__global__ void parent(int* out, const int* row, {ty} other, {ty} what) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    int count = row[v];
    {code}
    if (count > 0) child<<<(count + 31) / 32, 32>>>(out, count, what);
}}

void run(int* out, const int* row, {ty} other, {ty} what) {{ parent<<<1, 32>>>(out, row, other, what); }}
"#
    )
}

#[test]
fn what_changes_a_parameter_is_seen() {
    let arrays = r#"struct Config { int weight[4]; int grid[2][2]; int* out; int base; };
__device__ void set(int* at, int v) { *at = v; }
"#;
    let with_operators = "struct Vec { int d[3]; int n; __device__ int& operator[](int i) { return d[i]; } __device__ int& operator*() { return n; } \
                          __device__ int operator()() { return ++n; } };\n";
    let by_reference = r#"struct Ref { int& x; };
struct Reader { int n; };
__device__ Reader& operator>>(Reader& r, int& x) { x = ++r.n; return r; }
"#;
    let union = "union Bits { int whole; unsigned char bytes[4]; };\n";
    let seen = |types: &str, ty: &str, code: &str| {
        let text = changed_before_the_launch(types, ty, code);
        for id in ["aggregate-block", "aggregate-grid-stream"] {
            // Each launch has its own.
            let result = rewrite(id, &text);
            assert!(
                result.text().contains(&format!("{ty} what; }};")),
                "{id}, {code}:\n{}",
                result.text()
            );
        }
    };
    for code in [
        "what.weight[v % 4] = v;",
        "what.grid[v & 1][0] = v;",
        "int* w = what.weight;\n    w[0] = v;",
        "*what.weight = v;",
        "atomicAdd(what.weight, v);",
        "set(what.weight + 1, v);",
        "reinterpret_cast<int*>(what.weight)[1] = v;",
        "(count > 3 ? other : what).base = v;",
    ] {
        seen(arrays, "Config", code);
    }
    for code in ["what[v % 3] = v;", "*what = v;", "int drawn = what();"] {
        seen(with_operators, "Vec", code);
    }
    for code in [
        "Ref r = {what};\n    r.x = v;",
        "Ref r{what};\n    r.x = v;",
        "Reader reader = {v};\n    reader >> what;",
        "(count > 3 ? other : what) = v;",
        "(int&)what = v;",
    ] {
        seen(by_reference, "int", code);
    }
    seen(union, "Bits", "what.bytes[0] = v;");
    // What only reads it, or writes where it points.
    let kept = |types: &str, ty: &str, code: &str| {
        let result = rewrite("aggregate-block", &changed_before_the_launch(types, ty, code));
        assert!(!result.text().contains("what; };"), "{code}:\n{}", result.text());
    };
    for code in [
        "what.out[v] = v;",
        "*what.out = what.weight[v % 4] + what.grid[1][v & 1];",
        "count += what.base >> 1;",
        "other.weight[0] = what.weight[1];",
    ] {
        kept(arrays, "Config", code);
    }
    for code in [
        "count += what >> 1;",
        "Reader reader = {what};\n    reader >> count;",
        "Ref r = {other};\n    r.x = what;",
    ] {
        kept(by_reference, "int", code);
    }
}

#[test]
fn a_constant_that_an_operator_changes_is_none() {
    let text = |code: &str| {
        format!(
            r#"struct Reader {{ int n; }};
struct Ref {{ int& x; }};
__device__ Reader& operator>>(Reader& r, int& x) {{ x = ++r.n; return r; }}
__global__ void child(int* out) {{
    out[threadIdx.x] = threadIdx.x + 1;
}}

__global__ void parent(int* out, int other) {{
    int threads = 96;
    Reader reader = {{64}};
    {code}
    child<<<1, threads>>>(out);
}}

void run(int* out) {{ parent<<<1, 32>>>(out, 1); }}
"#
        )
    };
    for code in [
        "reader >> threads;",
        "Ref ref = {threads};\n    ref.x = 64;",
        "(other ? other : threads) = 64;",
    ] {
        super::refuses(
            "aggregate-grid-stream",
            &text(code),
            "the host can't know the child's block size",
        );
    }
    rewrite("aggregate-grid-stream", &text("other += threads >> 1;")).has(&["StreamBatch<child_args, kChildBlock>"]);
}
