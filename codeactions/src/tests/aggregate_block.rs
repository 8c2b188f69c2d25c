//! `aggregate-block`

use super::{program, refuses, refuses_files, rewrite, rewrite_files, with_child};

const ID: &str = "aggregate-block";

/// A macro that is a number, and the same one everywhere, may be a template argument.
#[test]
fn macros_as_template_arguments() {
    let program = |defined: &str, behind: &str| {
        format!(
            r#"{defined}
template <int B> __global__ void child(int* out, int n) {{
    int i = blockIdx.x * B + threadIdx.x;
    if (i < n) out[i] += 1;
}}
__global__ void parent(int* out, const int* row, int n) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) $0child<BLOCK><<<(row[v] + BLOCK - 1) / BLOCK, BLOCK>>>(out + v, row[v]);
}}
{behind}
void run(int* out, const int* row, int n) {{ parent<<<n, 32>>>(out, row, n); }}
"#
        )
    };
    for defined in ["#define BLOCK 128", "#define BLOCK (64 * 2)"] {
        rewrite(ID, &program(defined, "")).has(&["child_aggregated<BLOCK>"]);
    }
    // What runs the launches stands at the child, which may not see the macro.
    let launch = "child<<<(row[v] + BLOCK - 1) / BLOCK, BLOCK>>>(out + v, row[v]);";
    let above = with_child(
        "#define BLOCK 64\n__global__ void child(int* out, int n) { out[threadIdx.x] += n; }\n",
        launch,
    );
    let below = with_child(
        "__global__ void child(int* out, int n) { out[threadIdx.x] += n; }\n#define BLOCK 64\n",
        launch,
    );
    rewrite("aggregate-grid-stream", &above).has(&["StreamBatch<child_args, BLOCK>"]);
    rewrite("aggregate-grid-stream", &below).has(&["StreamBatch<child_args, 64>"]);
    let unclear = "the template argument `BLOCK` is not understood";
    refuses(ID, &program("#define BLOCK 128", "#undef BLOCK"), unclear);
    refuses(ID, &program("#define BLOCK size_of_block()", ""), unclear);
    refuses(
        ID,
        &program("#ifdef SMALL\n#define BLOCK 64\n#else\n#define BLOCK 128\n#endif", ""),
        unclear,
    );
}

#[test]
fn any_control_flow() {
    rewrite(
        ID,
        &program(
            r#"if (count > 0)
        child<<<(count + 31) / 32, 32>>>(out, begin, count);
    else
        out[v] = 0;"#,
        ),
    )
    .has(&[r#"    if (count > 0)
        children.launch((count + 31) / 32, 32, {begin, count});
    else
        out[v] = 0;
"#]);
    let result = rewrite(
        ID,
        &program(
            r#"for (int k = 0; k < count; ++k)
        child<<<k + 1, 32>>>(out, begin + k, k);
    return;"#,
        ),
    );
    result.has(&["children.launch(k + 1, 32, {begin + k, k});"]);
    assert!(result.assumes.iter().any(|a| a.contains("successive iterations")));
    rewrite(
        ID,
        &program(
            r#"#pragma unroll
    for (int k = 0; k < 2; ++k) {
        if (k == begin) break;
        child<<<k + 1, 32>>>(out, k, k);
    }"#,
        ),
    );
}

#[test]
fn what_is_uniform_is_passed_once() {
    let child = r#"constexpr int kScale = 3;
__constant__ int table[4];
__device__ int counter;
__global__ void child(int* out, int a, int b, unsigned c, int d, float e) {
    out[a + b] = c + d + int(e);
}
"#;
    let launch = |args: &str| with_child(child, &format!("child<<<1, 32>>>({args});"));
    rewrite(ID, &launch("out, kScale, n * 2 + 1, blockIdx.x, counter, 1.5f")).has(&[
        "struct child_args { int d; };",
        r#"(
        arena, out, static_cast<int>(kScale), n * 2 + 1, blockIdx.x, 1.5f);"#,
        "children.launch(1, 32, {static_cast<int>(counter)});",
        "child_body(blockIdx, gridDim, blockDim, out, a, b, c, args.d, e);",
    ]);
    // Narrowing conversions are written out, harmless ones aren't.
    rewrite(ID, &launch("out + begin, count, v, v, begin * 2, count")).has(&["children.launch(
        1, 32,
        {out + begin, count, v, static_cast<unsigned>(v), begin * 2, static_cast<float>(count)});"]);
    // A parameter that changes is none.
    rewrite(
        ID,
        &with_child(
            child,
            r#"n += 1;
    child<<<1, 32>>>(out, n, n / begin, 1, -7, 0.5);"#,
        ),
    )
    .has(&[
        "struct child_args { int a; int b; };",
        "children(arena, out, 1, -7, 0.5);",
        "children.launch(1, 32, {n, n / begin});",
    ]);
    rewrite(
        ID,
        &with_child(child, "out += n;\n    child<<<1, 32>>>(out, 1, 2, 3, 4, 5);"),
    )
    .has(&["struct child_args { int* out; };"]);
    rewrite(ID, &launch("out, 1, 2, 3, 4, 5")).has(&["struct child_args {};", "children.launch(1, 32, {});"]);
}

#[test]
fn pointers_and_structs() {
    let child = r#"struct Range { int begin, end; };
__global__ void child(const int* const __restrict__ in, int *__restrict__ out, const Range r) {
    out[r.begin] = in[r.end];
}
"#;
    rewrite(
        ID,
        &with_child(
            child,
            r#"Range r{begin, count};
    child<<<1, 32>>>(row + v, out, r);"#,
        ),
    )
    .has(&[
        "struct child_args { const int* in; Range r; };",
        "gridfuse::Batch<child_args> batch, int *__restrict__ out)",
        "children.launch(1, 32, {row + v, r});",
    ]);
}

#[test]
fn shared_memory_and_streams() {
    let child = r#"__global__ void child(int* out, int begin, int count) {
    extern __shared__ int s[];
    s[threadIdx.x] = begin;
    __syncthreads();
    out[begin] = s[count];
}
"#;
    rewrite(
        ID,
        &with_child(child, "child<<<1, 32, count * sizeof(int)>>>(out, begin, count);"),
    )
    .has(&["children.launch(1, 32, count * sizeof(int), {begin, count});"]);
    let result = rewrite(
        ID,
        &with_child(
            child,
            "child<<<1, 32, 0, cudaStreamFireAndForget>>>(out, begin, count);",
        ),
    );
    assert!(result.assumes.is_empty());
    result.has(&["children.launch(1, 32, {begin, count});"]);
    let own = r#"cudaStream_t s;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    child<<<1, 32, 0, s>>>(out, begin, count);
    cudaStreamDestroy(s);"#;
    let result = rewrite(ID, &with_child(child, own));
    assert!(result.assumes.is_empty());
    result.has(&[r#"int begin = row[v], count = row[v + 1] - begin;
    // was: cudaStream_t s;
    // was: cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    // was: child<<<1, 32, 0, s>>>(out, begin, count)
    children.launch(1, 32, {begin, count});
    // was: cudaStreamDestroy(s);
}
"#]);
    // Declared together: what the other one is for stays.
    let two = r#"cudaStream_t s, t;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    child<<<1, 32, 0, s>>>(out, begin, count);
    cudaStreamDestroy(s);
    cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);"#;
    let result = rewrite(
        ID,
        &with_child(
            child,
            &format!("{two}\n    child<<<1, 32, 0, t>>>(out, begin + 1, count);"),
        ),
    );
    result.has(&[
        "// was: cudaStream_t s, t;",
        "children.launch(1, 32, {begin + 1, count});",
    ]);
    assert!(!result.text().contains("    cudaStream_t s, t;"), "{}", result.text());
    let result = rewrite(ID, &with_child(child, two));
    result.has(&["    cudaStream_t s, t;\n    // was: cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);"]);
    // An `#if` that the launch stands under, too.
    let result = rewrite(
        ID,
        &with_child(
            child,
            &format!("#ifdef STREAMS\n    {own}\n#else\n    child<<<1, 32>>>(out, begin, count);\n#endif"),
        ),
    );
    result.has(&["#ifdef STREAMS\n    // was: cudaStream_t s;\n"]);
    let parent = with_child(
        child,
        r#"__shared__ float tile[32][32];
    child<<<1, 32>>>(out, begin, count);"#,
    );
    assert_eq!(rewrite(ID, &parent).assumes.len(), 1);
    let parent = parent.replace("tile[32][32]", "tile[12256]");
    assert!(rewrite(ID, &parent).assumes.iter().any(|a| a.contains("shared memory")));
}

#[test]
fn a_created_stream_that_several_launches_share() {
    let create = "cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);";
    let launch = "child<<<1, 32, 0, s>>>(out, begin, count);";
    let assumes = |body: String| rewrite(ID, &program(&body)).assumes.len();
    let each_time = format!(
        r#"for (int i = 0; i < 3; ++i) {{
        cudaStream_t s;
        {create}
        {launch}
    }}"#
    );
    assert_eq!(assumes(each_time), 0);
    let before = format!(
        r#"cudaStream_t s;
    {create}
    for (int i = 0; i < 3; ++i) {{
        {launch}
    }}"#
    );
    assert_eq!(assumes(before), 1);
    let once = format!(
        r#"cudaStream_t s;
    for (int i = 0; i < 3; ++i) {{
        if (i == 0) {{
            {create}
        }}
        {launch}
    }}"#
    );
    assert_eq!(assumes(once), 1);
    let jump = format!(
        r#"cudaStream_t s;
    {create}
again:
    {launch}
    if (--count > 0) goto again;"#
    );
    assert_eq!(assumes(jump), 1);
}

#[test]
fn three_dimensions() {
    let child = r#"__global__ void child(float* out, int3 at) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
    out[(z * gridDim.y + y) * 64 + x] = at.x;
}
"#;
    let text = format!(
        r#"{child}
__global__ void parent(float* out, const int3* size) {{
    int3 at = size[threadIdx.x];
    dim3 grid(at.x, at.y, at.z), block(8, 4, 2);
    child<<<grid, block>>>(out, at);
}}

void run(float* out, const int3* size) {{
    dim3 g(2, 3), b(32);
    parent<<<g, b>>>(out, size);
}}
"#
    );
    rewrite(ID, &text).has(&[
        "children.launch(grid, block, {at});",
        "parent<<<g, b>>>(out, size, gridfuse::arena_for(g, b));",
    ]);
    let varying = text.replace("block(8, 4, 2)", "block(at.x, at.y)");
    rewrite(ID, &varying).has(&[
        "gridfuse::ShapedBatch<child_args> batch",
        "[&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim,",
        "children.launch(grid, block, {at});",
    ]);
}

#[test]
fn templates() {
    let text = r#"template <typename T, int N>
__global__ void child(T* out, T value, int count) {
    out[count] = value + N;
}

template <typename U>
__global__ void parent(U* out, int n) {
    U value = out[threadIdx.x];
    child<U, 3><<<1, 32>>>(out, value, threadIdx.x);
}

void run(float* out) {
    parent<float><<<1, 32>>>(out, 5);
    parent<<<2, 64>>>(out, 5);
}
"#;
    rewrite(ID, text).has(&[
        r#"template <typename T, int N>
struct child_args { T value; int count; };"#,
        r#"template <typename T, int N>
__global__ void child_aggregated(gridfuse::Batch<child_args<T, N>> batch, T* out) {"#,
        "child_body<T, N>(blockIdx, gridDim, blockDim, out, args.value, args.count);",
        "gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated<U, 3>> children(arena, out);",
        "children.launch(1, 32, {value, static_cast<int>(threadIdx.x)});",
        "parent<float><<<1, 32>>>(out, 5,
                             gridfuse::arena_for(1, 32, /*stream=*/0, /*bytes_per_thread=*/100));",
        "parent<<<2, 64>>>(out, 5, gridfuse::arena_for(2, 64, /*stream=*/0, /*bytes_per_thread=*/100));",
    ]);
    refuses(ID, &text.replace("child<U, 3><<<", "child<<<"), "are deduced");
    refuses(
        ID,
        &text.replace("child<U, 3><<<", "child<U><<<"),
        "not all template arguments",
    );
    let local = text.replace("child<U, 3><<<", "constexpr int k = 3;\n    child<U, k><<<");
    rewrite(ID, &local)
        .has(&["gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated<U, /*k=*/3>> children(arena, out);"]);
    refuses(
        ID,
        &local.replace("child<U, k>", "child<U, k + 1>"),
        "the template argument `k` is not understood",
    );
}

#[test]
fn several_files() {
    let header = r#"#pragma once
#include <cuda_runtime.h>

__global__ void parent(int* out, int n);
"#;
    let kernels = r#"#include "kernels.cuh"

__global__ void child(int* out, int count) {
    out[threadIdx.x] = count;
}

__global__ void parent(int* out, int n) {
    child<<<1, 32>>>(out, threadIdx.x + 1);
}
"#;
    let main = r#"#include "../src/kernels.cuh"

int main() {
    int* out = nullptr;
    dim3 grid(4);
    cudaStream_t s = 0;
    parent<<<grid, 64, 0, s>>>(out, 3);
    parent<<<1, 32>>>(out, /* n */ 4 /* four */);
}
"#;
    let files = [
        ("src/a.cu", kernels),
        ("src/kernels.cuh", header),
        ("app/main.cu", main),
    ];
    let result = rewrite_files(ID, &files, &[]).unwrap_or_else(|r| panic!("{r:#?}"));
    let text = |name: &str| result.files.get(name).cloned().unwrap_or_default();
    assert!(result.files.contains_key("src/gridfuse.cuh"));
    assert!(text("src/kernels.cuh").ends_with(
        r#"#include <cuda_runtime.h>
#include "gridfuse.cuh"

__global__ void parent(int* out, int n, gridfuse::Arena arena);
"#
    ));
    assert!(text("src/a.cu").contains("parent(int* out, int n, gridfuse::Arena arena) {"));
    let main = text("app/main.cu");
    assert!(
        main.starts_with("#include \"../src/kernels.cuh\"\n#include \"../src/gridfuse.cuh\"\n\n"),
        "{main}"
    );
    assert!(
        main.contains("parent<<<grid, 64, 0, s>>>(out, 3, gridfuse::arena_for(grid, 64, s));"),
        "{main}"
    );
    assert!(
        main.contains("(out, /* n */ 4, gridfuse::arena_for(1, 32) /* four */);"),
        "{main}"
    );
}

#[test]
fn formatting_is_kept() {
    let text = program(
        r#"child<<<(count + 31) / 32, 32>>>(out, // all
        begin, /* first */
        count); /* go */ ++v;"#,
    )
    .replace("    ", "\t")
    .replace('\n', "\r\n");
    let result = rewrite(ID, &text);
    assert!(!result.text().replace("\r\n", "").contains('\n'));
    result.has(&[
        "\t// was: child<<<(count + 31) / 32, 32>>>(out, // all\r\n\t//    : \t\tbegin, /* first */\r\n\t//    : \t\tcount)\r\n",
        "\tchildren.launch((count + 31) / 32, 32, {begin, count}); /* go */ ++v;\r\n",
    ]);
    let one_line = r#"__global__ void child(int* out) { out[0] = 1; }
__global__ void parent() { child<<<1, 32>>>(nullptr); }
void run() { parent<<<1, 32>>>(); }
"#;
    rewrite(ID, one_line).has(&[
        r#"__global__ void parent(gridfuse::Arena arena) {
    gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated> children(arena, nullptr);
    children.launch(1, 32, {}); }"#,
        "parent<<<1, 32>>>(gridfuse::arena_for(1, 32)); }",
    ]);
    let comment = program("child<< <1, 32> >>(out, begin, count);")
        .replace("int n) {\n    int v", "int n) { // the parent\n    int v");
    rewrite(ID, &comment).has(&["arena) { // the parent\n    gridfuse::Aggregator<"]);
}

#[test]
fn the_arena_has_room_for_what_a_thread_launches() {
    let arena = |launches: &str| match launches {
        "" => "gridfuse::arena_for((n + 127) / 128, 128, /*stream=*/0, gridfuse::room_for<child_args>())".to_owned(),
        _ => format!("gridfuse::room_for<child_args>(/*launches_per_thread=*/{launches})));"),
    };
    let counted = program("for (int i = 0; i < 3; ++i) child<<<1, 32>>>(out, begin + i, count);");
    rewrite(ID, &counted).has(&[arena("3").as_str()]);
    let endless = program("for (int i = 0; i < count; ++i) child<<<1, 32>>>(out, begin + i, count);");
    rewrite(ID, &endless).has(&[arena("4").as_str()]);
    // One thread, as often as it likes.
    let alone = endless.replace("<<<(n + 127) / 128, 128>>>", "<<<1, 1>>>");
    assert_ne!(alone, endless);
    rewrite(ID, &alone).has(&["gridfuse::room_for<child_args>(/*launches_per_thread=*/16384)));"]);
    let alone = counted
        .replace("<<<(n + 127) / 128, 128>>>", "<<<1, 1>>>")
        .replace("i < 3", "i < 300");
    rewrite(ID, &alone).has(&["gridfuse::room_for<child_args>(/*launches_per_thread=*/300))"]);
    // 20 bytes and 48 for the arguments.
    let child = "__global__ void child(int* out, double4 a, double b, int begin, int count) { out[begin] = count + a.x + b; }\n";
    let launch = r#"double b = out[v];
    child<<<1, 32>>>(out, make_double4(b, b, b, b), b, begin, count);"#;
    rewrite(ID, &with_child(child, launch)).has(&[arena("").as_str()]);
    rewrite(ID, &program("child<<<1, 32>>>(out, begin, count);")).has(&["gridfuse::arena_for((n + 127) / 128, 128))"]);
}

#[test]
fn names_in_use_are_avoided() {
    let text = program("int arena = 0;\n    child<<<1, 32>>>(out, begin, arena);");
    let text = format!(
        r#"#define children 1
struct child_body {{}};
int child_args, child_aggregated;
{text}"#
    );
    rewrite(ID, &text).has(&[
        "void child_body2(",
        "struct child_args2 {",
        "void child_aggregated2(gridfuse::Batch<child_args2>",
        "gridfuse::Arena arena2) {",
        "child_aggregated2> children2(arena2, out);",
    ]);
    let child = "__global__ void child(int* args, int batch, int count) { args[batch] = count; }\n";
    rewrite(ID, &with_child(child, "child<<<1, 32>>>(out, begin, count);")).has(&[
        "Batch<child_args> launch_batch, int* args)",
        "const child_args& launch_args)",
        "args, launch_args.batch, launch_args.count)",
    ]);
}

#[test]
fn default_arguments_of_the_parent() {
    let text =
        program("child<<<1, 32>>>(out, begin, count);").replace("int n) {\n    int v", "int n = 3) {\n    int v");
    rewrite(ID, &text).has(&["int n = 3,
                       gridfuse::Arena arena = gridfuse::Arena()) {"]);
    refuses(
        ID,
        &text.replace("(out, row, n);", "(out, row);"),
        "leaves out arguments that have default values",
    );
}

#[test]
fn refusals_because_of_the_host() {
    let text = program("child<<<1, 32>>>(out, begin, count);");
    let refuse = |from: &str, to: &str, reason: &str| refuses(ID, &text.replace(from, to), reason);
    refuse(
        "parent<<<(n + 127) / 128, 128>>>(out, row, n);",
        "",
        "no launch of `parent` by the host was found",
    );
    refuse(
        "parent<<<(n + 127) / 128",
        "parent<<<next_size()",
        "the grid size of this host launch calls or changes something",
    );
    refuse(
        "128>>>(out",
        "128, 0, pool.stream()>>>(out",
        "the stream of this host launch",
    );
    refuse(
        "void run",
        r#"#define GO(n) parent<<<n, 32>>>(out, row, n)
void go(int* out, int* row) { GO(3); }
void run"#,
        "`parent`",
    );
    refuse(
        "void run",
        r#"void attributes() { cudaFuncSetAttribute(parent, a, 1); }
void run"#,
        "is mentioned where it isn't launched",
    );
    refuse(
        "void run",
        r#"__global__ void other(int* out, int* row) { parent<<<1, 1>>>(out, row, 1); }
void run"#,
        "no launch of `other` by the host was found",
    );
    refuse(
        "void run",
        r#"__global__ void parent(float* out, const int* row, int n) {}
void run"#,
        "several",
    );
}

#[test]
fn refusals_because_of_the_launch() {
    let refuse = |launch: &str, reason: &str| refuses(ID, &program(launch), reason);
    refuse(
        "child<<<1, 32, 0, cudaStreamTailLaunch>>>(out, begin, count);",
        "a tail launch",
    );
    refuse(
        "child<<<1, 32, 0, cudaStreamPerThread>>>(out, begin, count);",
        "cudaStreamPerThread",
    );
    refuse("child<<<1, 32, 0, streams[v]>>>(out, begin, count);", "isn't known");
    let stream = r#"cudaStream_t s;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    child<<<1, 32, 0, s>>>(out, begin, count);
    "#;
    refuse(
        &format!("{stream}child<<<1, 32, 0, s>>>(out, begin, count);"),
        "is used for more than this launch",
    );
    refuse(
        &format!("{stream}if (v) cudaStreamDestroy(s);"),
        "can't be removed cleanly",
    );
    // Compiled without the launch, or the launch without them.
    for (before, behind) in [
        (
            "#ifdef A\n    cudaStreamCreate(&s);\n#else\n    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);\n#endif",
            "",
        ),
        ("cudaStreamCreate(&s);", "#ifdef A\n    cudaStreamDestroy(s);\n#endif"),
    ] {
        refuse(
            &format!("cudaStream_t s;\n    {before}\n    child<<<1, 32, 0, s>>>(out, begin, count);\n    {behind}\n"),
            "can't be removed cleanly",
        );
    }
    refuse(
        "cudaStream_t s = begin ? 0 : cudaStreamFireAndForget, t;\n    cudaStreamCreate(&s);\n    child<<<1, 32, 0, s>>>(out, begin, count);",
        "can't be removed cleanly",
    );
    refuse(
        r#"child<<<1, 32>>>(out, begin, count);
    cudaDeviceSynchronize();"#,
        "cudaDeviceSynchronize()",
    );
    refuse(
        "(void)(count && (child<<<1, 32>>>(out, begin, count), 1));",
        "part of a larger expression",
    );
    refuse(
        r#"auto go = [&] { child<<<1, 32>>>(out, begin, count); };
    go();"#,
        "lambda",
    );
    refuse(
        "child<<<1, 32>>>(out, begin, [&] { return count; }());",
        "not understood",
    );
    refuse(
        "asm(\"exit;\");\n    child<<<1, 32>>>(out, begin, count);",
        "may leave by inline assembly",
    );
}

#[test]
fn threads_that_leave_by_inline_assembly() {
    const LAUNCH: &str = "child<<<1, 32>>>(out, begin, count);";
    let before = |definitions: &str, code: &str| {
        program(&format!("{code}\n    $0{LAUNCH}")).replace(
            "\n__global__ void parent",
            &format!("\n{definitions}\n__global__ void parent"),
        )
    };
    for (definitions, code) in [
        (
            "",
            "asm(\"{ .reg .pred p; setp.ne.s32 p, %0, 0; @p exit; }\" :: \"r\"(v));",
        ),
        ("", "asm volatile (\"ret;\");"),
        ("", "asm(\"mov.u32 %0, 1; ret.uni;\" : \"=r\"(v));"),
        ("", "asm(\"ex\" \"it;\");"),
        ("", "asm(\"// it;\\n@!p ex\" /* it; */\n        \"it;\");"),
        ("", "__asm__ __volatile__(R\"(mov.u32 %0, 1; exit;)\" : \"=r\"(v));"),
        ("#define LEAVE asm(\"bar.arrive 1, 64; exit;\")", "if (v) LEAVE;"),
        ("#define NAME \"it\"", "asm(\"ex\" NAME \";\");"),
        ("#define DO(x) asm(#x \";\")", "DO(exit);"),
        ("__device__ void leave() { asm(\"mov.u32 %r, 1; exit;\"); }", "leave();"),
    ] {
        for id in ["aggregate-warp", "aggregate-block", "aggregate-grid"] {
            refuses(id, &before(definitions, code), "may leave by inline assembly");
        }
    }
    for (definitions, code) in [
        ("", "asm(\"mov.u32 %0, %%laneid; add.u32 %0, %0, 1;\" : \"=r\"(v));"),
        ("", "asm(\"/* no exit; */ mov.u32 %0, 1; // ret\" : \"=r\"(v));"),
        ("#define LANE(x) asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(x))", "LANE(v);"),
    ] {
        rewrite(ID, &before(definitions, code));
    }
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
    refuse("asm(\"mov.u32 %0, %%ctaid.x;\" : \"=r\"(count));", "inline assembly");
    refuse("cg::grid_group g = cg::this_grid(); g.sync();", "cg::this_grid");
    refuse(
        "other<<<1, 1, 0, cudaStreamTailLaunch>>>(out);",
        "a stream that depends on which grid launches",
    );
    refuse("while (atomicExch(out, 1)) {}", "may wait for another thread");
    refuse("printf(\"%s\", __func__);", "uses __func__");
    let child = r#"__device__ int id() { return blockIdx.x; }
__global__ void child(int* out, int begin, int count) {
    out[id()] = 1;
}
"#;
    rewrite(ID, &with_child(child, "child<<<1, 32>>>(out, begin, count);")).has(&["out[id_at(blockIdx)] = 1;"]);
    let fine = child.replace("blockIdx.x", "threadIdx.x");
    rewrite(ID, &with_child(&fine, "child<<<1, 32>>>(out, begin, count);"));
    refuses_files(
        ID,
        &[
            (
                "a.cu",
                r#"#include "b.cuh"
__global__ void parent(int* out) { child<<<1, 32>>>(out); }
void run(int* o) { parent<<<1, 1>>>(o); }
"#,
            ),
            ("b.cuh", "__global__ void child(int* out);\n"),
            (
                "b.cu",
                r#"#include "b.cuh"
__global__ void child(int* out) { out[0] = 1; }
"#,
            ),
        ],
        "which this file doesn't include",
    );
}

#[test]
fn aliases_namespaces_and_dim3_variables() {
    let text = r#"typedef unsigned int index_t;
namespace graph {
__global__ void work(int* out, index_t at, float scale) {
    out[at] = scale;
}
}
__device__ int twice(dim3 block) { return block.x * 2; }
__global__ void parent(int* out, int n) {
    int v = threadIdx.x;
    dim3 grid(v), block(v + 1);
    if (twice(block) > n) graph::work<<<grid, block>>>(out, v, 2);
}
void run(int* out) { parent<<<1, 32>>>(out, 5); }
"#;
    rewrite(ID, text).has(&[
        "PerBlock, graph::work_aggregated> works(arena, out, 2);",
        "works.launch(grid, block, {static_cast<unsigned int>(v)});",
    ]);
}

#[test]
fn a_null_pointer_that_is_a_number_is_no_constructor_argument() {
    let child = "__global__ void child(int* out, const int* more, int count) { if (more) out[count] = *more; }\n";
    rewrite(ID, &with_child(child, "child<<<1, 32>>>(out, 0, count);")).has(&["(arena, out);", "{0, count}"]);
    rewrite(ID, &with_child(child, "child<<<1, 32>>>(out, NULL, count);")).has(&["(arena, out);", "{NULL, count}"]);
}

#[test]
fn a_using_declaration_brings_the_child_alone() {
    let text = r#"__global__ void child(int* out, int n) { out[n] = 1; }
namespace u {
using ::child;
__global__ void parent(int* out) {
    int v = threadIdx.x;
    u::child<<<1, 32>>>(out, v);
}
}
void run(int* out) { u::parent<<<1, 32>>>(out); }
"#;
    rewrite(ID, text).has(&["gridfuse::PerBlock, child_aggregated>"]);
}

#[test]
fn a_child_that_waits_in_any_loop() {
    let child = r#"__global__ void child(int* out, int begin, int count) {
    if (threadIdx.x == 31) atomicExch(out, 1);
    again: if (!atomicAdd(out, 0)) goto again;
}
"#;
    refuses(
        ID,
        &with_child(child, "$0child<<<1, 32>>>(out, begin, count);"),
        "may wait for another thread",
    );
}

#[test]
fn the_name_may_mean_something_else_elsewhere() {
    let main = r#"
int main() {
    run(nullptr, nullptr, 0);
}
"#;
    let text = program("child<<<1, 32>>>(out, begin, count);") + main;
    let with = |other: &str| rewrite_files(ID, &[("a.cu", text.as_str()), ("b.cu", other)], &[]);
    for fine in [
        r#"void f(int* parent) {
    parent[0] = 1;
}
"#,
        r#"struct Node { Node* parent; };
int f(Node* n) { int parent = n->parent != nullptr; return parent; }
"#,
        // Another program.
        r#"__global__ void parent(int* out, const int* row, int n);
int main() {
    parent<<<1, 1>>>(nullptr, nullptr, 0);
}
"#,
        r#"__global__ void parent(int*, const int*, int);
void* p = (void*)parent;
int main() {}
"#,
    ] {
        assert!(with(fine).is_ok(), "{fine}: {:?}", with(fine));
    }
    for (other, reason) in [
        (
            r#"__global__ void parent(int*, const int*, int);
void* p = (void*)parent;
"#,
            "is mentioned where",
        ),
        (
            r#"__global__ void parent(int*, const int*, int);
void f() {
    { int parent = 1; (void)parent; }
    g((void*)parent);
}
"#,
            "is mentioned where",
        ),
        (
            "#define LAUNCH parent<<<1, 1>>>(nullptr, nullptr, 0)\n",
            "is mentioned where",
        ),
    ] {
        let refused = with(other).err().unwrap_or_default();
        assert!(refused.iter().any(|r| r.contains(reason)), "{other}: {refused:?}");
    }
}

#[test]
fn comparisons_that_look_like_template_arguments_vary() {
    let program = |arg: &str| {
        format!(
            r#"__global__ void child(int* out, int x) {{ out[threadIdx.x] = x; }}
__global__ void parent(int* out, int n) {{
    int v = threadIdx.x;
    child<<<1, 32>>>(out, {arg});
}}
int main() {{ parent<<<1, 32>>>(nullptr, 5); }}
"#
        )
    };
    for arg in [
        "(float)(n < 2 && v < n ? 1 >> 3 : v >> 1)",
        "n < 2 && v < n ? 1 >> 3 : v >> 1",
    ] {
        let result = rewrite_files("aggregate-block", &[("a.cu", &program(arg))], &[]);
        // Refused, as things are: it must not be taken for the parameter n.
        let reasons = result.err().unwrap_or_default();
        assert_eq!(reasons, ["an operand of the launch is not understood"], "{arg}");
    }
}

/// A parent whose blocks a function that it calls asks for.
fn asking(launches: &str) -> String {
    format!(
        r#"__device__ int threads() {{ return blockDim.x * blockDim.y; }}
__global__ void child(int* out, int n) {{ out[threadIdx.x] = threads(); }}
__global__ void parent(int* out, int n) {{
    {launches}
}}
void run(int* out) {{ parent<<<4, dim3(16, 4)>>>(out, 7); }}
"#
    )
}

#[test]
fn callees_may_ask_for_a_block_that_is_as_launched() {
    const ASKS: &str = "out[threadIdx.x] = threads_at(blockDim);";
    for fine in [
        "child<<<1, 64>>>(out, n);",
        r#"child<<<n, dim3(8, 8)>>>(out, n);
    child<<<1, dim3(8, 8)>>>(out, 2);"#,
        "child<<<n, blockDim>>>(out, n);",
        r#"child<<<n, blockDim.x>>>(out, n);
    child<<<2, blockDim.x>>>(out, n);"#,
        r#"dim3 block(blockDim.x, blockDim.y);
    if (n > 3) child<<<n, block>>>(out, n);"#,
    ] {
        rewrite(ID, &asking(fine)).has(&["out[threadIdx.x] = threads();"]);
        rewrite("aggregate-grid", &asking(fine)).has(&["out[threadIdx.x] = threads();"]);
    }
    for varies in [
        "child<<<1, threadIdx.x + 1>>>(out, n);",
        // The same for all threads here, but the launches of another grid may be collected with these.
        "child<<<1, n>>>(out, n);",
        "child<<<1, 64>>>(out, n);\n    child<<<1, 32>>>(out, n);",
        r#"child<<<1, blockDim.x>>>(out, n);
    child<<<1, 64>>>(out, n);"#,
        r#"child<<<1, blockDim.x>>>(out, n);
    child<<<1, blockDim>>>(out, n);"#,
        "child<<<1, dim3(blockDim.y, blockDim.x)>>>(out, n);",
        "child<<<1, blockDim.x / 2>>>(out, n);",
    ] {
        rewrite(ID, &asking(varies)).has(&[ASKS]);
    }
    // The host launches what follows before it knows of any block, and a thread by itself has none.
    rewrite("aggregate-grid-stream", &asking("child<<<1, 64>>>(out, n);")).has(&[ASKS]);
    rewrite("threshold", &asking("child<<<1, 64>>>(out, n);")).has(&[ASKS]);
    // Other built-in variables are those of another grid.
    let grid = asking("child<<<1, 64>>>(out, n);").replace("return blockDim.x * blockDim.y", "return gridDim.x");
    rewrite(ID, &grid).has(&[
        "threads_at(gridDim)",
        "int threads_at(dim3 gridDim) { return gridDim.x; }",
    ]);
}

#[test]
fn a_block_that_is_handed_on_is_the_first_kernels() {
    let recursive = |block: &str| {
        format!(
            r#"__device__ int threads() {{ return blockDim.x; }}
__global__ void walk(int* out, int n) {{
    out[threadIdx.x] = threads();
    if (threadIdx.x == 0 && n > 1) walk<<<2, {block}>>>(out, n / 2);
}}
void run(int* out) {{ walk<<<4, 96>>>(out, 7); }}
"#
        )
    };
    rewrite(ID, &recursive("blockDim")).has(&[r#"struct walk_args {};

__global__ void walk_aggregated("#]);
    rewrite("aggregate-grid", &recursive("dim3(blockDim.x)"));
    // What doesn't fit into a line goes on with the indentation of the kernel's body.
    let long = recursive("blockDim").replace("out", "the_numbers_of_all_vertices_that_somebody_has_come_to");
    rewrite(ID, &long).has(&["walks(\n        arena, the_numbers"]);
    rewrite(ID, &recursive("blockDim.x / 2")).has(&["out[threadIdx.x] = threads_at(blockDim);"]);
    // A child with blocks of different sizes hands them on: threads that were not asked for would be counted.
    let through = r#"__device__ int threads() { return blockDim.x; }
__global__ void last(int* out) { out[threadIdx.x] = threads(); }
__global__ void middle(int* out, int n) {
    if (threadIdx.x == 0) last<<<1, blockDim>>>(out);
    if (threadIdx.x == 0 && n > 1) middle<<<1, SIZE>>>(out, n - 1);
}
void run(int* out) { middle<<<4, 96>>>(out, 7); }
"#;
    rewrite(ID, &through.replace("SIZE", "n * 32")).has(&["out[threadIdx.x] = threads_at(blockDim);"]);
    rewrite(ID, &through.replace("SIZE", "blockDim")).has(&["out[threadIdx.x] = threads();"]);
}
