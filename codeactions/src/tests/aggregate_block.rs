//! `aggregate-block`

use super::{program, refuses, refuses_files, rewrite, rewrite_files, with_child};

const ID: &str = "aggregate-block";

#[test]
fn any_control_flow() {
    rewrite(ID, &program("if (count > 0)\n        child<<<(count + 31) / 32, 32>>>(out, begin, count);\n    else\n        out[v] = 0;"))
        .has(&["    if (count > 0)\n        children.launch((count + 31) / 32, 32, {begin, count});\n    else\n        out[v] = 0;\n"
            .replace("children", "childs")
            .as_str()]);
    let result = rewrite(
        ID,
        &program("for (int k = 0; k < count; ++k)\n        child<<<k + 1, 32>>>(out, begin + k, k);\n    return;"),
    );
    result.has(&["childs.launch(k + 1, 32, {begin + k, k});"]);
    assert!(result.assumes.iter().any(|a| a.contains("successive iterations")));
    rewrite(
        ID,
        &program(
            "#pragma unroll\n    for (int k = 0; k < 2; ++k) {\n        if (k == begin) break;\n        child<<<k + 1, 32>>>(out, k, k);\n    }",
        ),
    );
}

#[test]
fn what_is_uniform_is_passed_once() {
    let child = "constexpr int kScale = 3;\n__constant__ int table[4];\n__device__ int counter;\n\
                 __global__ void child(int* out, int a, int b, unsigned c, int d, float e) {\n    out[a + b] = c + d + int(e);\n}\n";
    let launch = |args: &str| with_child(child, &format!("child<<<1, 32>>>({args});"));
    rewrite(ID, &launch("out, kScale, n * 2 + 1, blockIdx.x, counter, 1.5f")).has(&[
        "struct child_args { int d; };",
        "(\n        arena, out, static_cast<int>(kScale), n * 2 + 1, blockIdx.x, 1.5f);",
        "childs.launch(1, 32, {static_cast<int>(counter)});",
        "child_body(blockIdx, gridDim, blockDim, out, a, b, c, args.d, e);",
    ]);
    // Narrowing conversions are written out, harmless ones aren't.
    rewrite(ID, &launch("out + begin, count, v, v, begin * 2, count")).has(&[
        "childs.launch(1, 32, {out + begin, count, v, static_cast<unsigned>(v), begin * 2, static_cast<float>(count)});",
    ]);
    // A parameter that changes is none.
    rewrite(
        ID,
        &with_child(child, "n += 1;\n    child<<<1, 32>>>(out, n, n / begin, 1, -7, 0.5);"),
    )
    .has(&[
        "struct child_args { int a; int b; };",
        "childs(arena, out, 1, -7, 0.5);",
        "childs.launch(1, 32, {n, n / begin});",
    ]);
    rewrite(
        ID,
        &with_child(child, "out += n;\n    child<<<1, 32>>>(out, 1, 2, 3, 4, 5);"),
    )
    .has(&["struct child_args { int* out; };"]);
    rewrite(ID, &launch("out, 1, 2, 3, 4, 5")).has(&["struct child_args {};", "childs.launch(1, 32, {});"]);
}

#[test]
fn pointers_and_structs() {
    let child = "struct Range { int begin, end; };\n\
                 __global__ void child(const int* const __restrict__ in, int *__restrict__ out, const Range r) {\n    out[r.begin] = in[r.end];\n}\n";
    rewrite(
        ID,
        &with_child(child, "Range r{begin, count};\n    child<<<1, 32>>>(row + v, out, r);"),
    )
    .has(&[
        "struct child_args { const int* in; Range r; };",
        "gridfuse::Batch<child_args> batch, int *__restrict__ out)",
        "childs.launch(1, 32, {row + v, r});",
    ]);
}

#[test]
fn shared_memory_and_streams() {
    let child = "__global__ void child(int* out, int begin, int count) {\n    extern __shared__ int s[];\n    s[threadIdx.x] = begin;\n    \
                 __syncthreads();\n    out[begin] = s[count];\n}\n";
    rewrite(
        ID,
        &with_child(child, "child<<<1, 32, count * sizeof(int)>>>(out, begin, count);"),
    )
    .has(&["childs.launch(1, 32, count * sizeof(int), {begin, count});"]);
    let result = rewrite(
        ID,
        &with_child(
            child,
            "child<<<1, 32, 0, cudaStreamFireAndForget>>>(out, begin, count);",
        ),
    );
    assert!(result.assumes.is_empty());
    result.has(&["childs.launch(1, 32, {begin, count});"]);
    let own = "cudaStream_t s;\n    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);\n    child<<<1, 32, 0, s>>>(out, begin, count);\n    cudaStreamDestroy(s);";
    let result = rewrite(ID, &with_child(child, own));
    assert!(result.assumes.is_empty());
    result.has(&["int begin = row[v], count = row[v + 1] - begin;\n    childs.launch(1, 32, {begin, count});\n}\n"]);
    let parent = with_child(
        child,
        "__shared__ float tile[32][32];\n    child<<<1, 32>>>(out, begin, count);",
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
    let each_time =
        format!("for (int i = 0; i < 3; ++i) {{\n        cudaStream_t s;\n        {create}\n        {launch}\n    }}");
    assert_eq!(assumes(each_time), 0);
    let before = format!("cudaStream_t s;\n    {create}\n    for (int i = 0; i < 3; ++i) {{\n        {launch}\n    }}");
    assert_eq!(assumes(before), 1);
    let once = format!(
        "cudaStream_t s;\n    for (int i = 0; i < 3; ++i) {{\n        if (i == 0) {{\n            {create}\n        }}\n        {launch}\n    }}"
    );
    assert_eq!(assumes(once), 1);
    let jump = format!("cudaStream_t s;\n    {create}\nagain:\n    {launch}\n    if (--count > 0) goto again;");
    assert_eq!(assumes(jump), 1);
}

#[test]
fn three_dimensions() {
    let child = "__global__ void child(float* out, int3 at) {\n    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;\n    \
                 out[(z * gridDim.y + y) * 64 + x] = at.x;\n}\n";
    let text = format!(
        "{child}\n__global__ void parent(float* out, const int3* size) {{\n    int3 at = size[threadIdx.x];\n    \
         dim3 grid(at.x, at.y, at.z), block(8, 4, 2);\n    child<<<grid, block>>>(out, at);\n}}\n\n\
         void run(float* out, const int3* size) {{\n    dim3 g(2, 3), b(32);\n    parent<<<g, b>>>(out, size);\n}}\n"
    );
    rewrite(ID, &text).has(&[
        "childs.launch(grid, block, {at});",
        "parent<<<g, b>>>(out, size, gridfuse::arena_for(g, b));",
    ]);
    let varying = text.replace("block(8, 4, 2)", "block(at.x, at.y)");
    refuses(ID, &varying, "may have several dimensions and differ");
}

#[test]
fn templates() {
    let text = "template <typename T, int N>\n__global__ void child(T* out, T value, int count) {\n    out[count] = value + N;\n}\n\n\
                template <typename U>\n__global__ void parent(U* out, int n) {\n    U value = out[threadIdx.x];\n    \
                child<U, 3><<<1, 32>>>(out, value, threadIdx.x);\n}\n\nvoid run(float* out) {\n    parent<float><<<1, 32>>>(out, 5);\n    \
                parent<<<2, 64>>>(out, 5);\n}\n";
    rewrite(ID, text).has(&[
        "template <typename T, int N>\nstruct child_args { T value; int count; };",
        "template <typename T, int N>\n__global__ void child_aggregated(gridfuse::Batch<child_args<T, N>> batch, T* out) {",
        "child_body<T, N>(blockIdx, gridDim, blockDim, out, args.value, args.count);",
        "gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated<U, 3>> childs(arena, out);",
        "childs.launch(1, 32, {value, static_cast<int>(threadIdx.x)});",
        "parent<float><<<1, 32>>>(out, 5, gridfuse::arena_for(1, 32, 0, 100));",
        "parent<<<2, 64>>>(out, 5, gridfuse::arena_for(2, 64, 0, 100));",
    ]);
    refuses(ID, &text.replace("child<U, 3><<<", "child<<<"), "are deduced");
    refuses(
        ID,
        &text.replace("child<U, 3><<<", "child<U><<<"),
        "not all template arguments",
    );
    refuses(
        ID,
        &text.replace("child<U, 3><<<", "constexpr int k = 3;\n    child<U, k><<<"),
        "the template argument `k` is not understood",
    );
}

#[test]
fn several_files() {
    let header = "#pragma once\n#include <cuda_runtime.h>\n\n__global__ void parent(int* out, int n);\n";
    let kernels = "#include \"kernels.cuh\"\n\n__global__ void child(int* out, int count) {\n    out[threadIdx.x] = count;\n}\n\n\
                   __global__ void parent(int* out, int n) {\n    child<<<1, 32>>>(out, threadIdx.x + 1);\n}\n";
    let main = "#include \"../src/kernels.cuh\"\n\nint main() {\n    int* out = nullptr;\n    dim3 grid(4);\n    cudaStream_t s = 0;\n    \
                parent<<<grid, 64, 0, s>>>(out, 3);\n    parent<<<1, 32>>>(out, /* n */ 4 /* four */);\n}\n";
    let files = [
        ("src/a.cu", kernels),
        ("src/kernels.cuh", header),
        ("app/main.cu", main),
    ];
    let result = rewrite_files(ID, &files, &[]).unwrap_or_else(|r| panic!("{r:#?}"));
    let text = |name: &str| result.files.get(name).cloned().unwrap_or_default();
    assert!(result.files.contains_key("src/gridfuse.cuh"));
    assert!(text("src/kernels.cuh").ends_with(
        "#include <cuda_runtime.h>\n#include \"gridfuse.cuh\"\n\n__global__ void parent(int* out, int n, gridfuse::Arena arena);\n"
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
        "child<<<(count + 31) / 32, 32>>>(out, // all\n        begin, /* first */\n        count); /* go */ ++v;",
    )
    .replace("    ", "\t")
    .replace('\n', "\r\n");
    let result = rewrite(ID, &text);
    assert!(!result.text().replace("\r\n", "").contains('\n'));
    result.has(&["\tchilds.launch((count + 31) / 32, 32, {begin, count}); /* all; first */ /* go */ ++v;\r\n"]);
    let one_line = "__global__ void child(int* out) { out[0] = 1; }\n__global__ void parent() { child<<<1, 32>>>(nullptr); }\n\
                    void run() { parent<<<1, 32>>>(); }\n";
    rewrite(ID, one_line).has(&[
        "__global__ void parent(gridfuse::Arena arena) {\n    gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated> childs(arena, nullptr);\n    childs.launch(1, 32, {}); }",
        "parent<<<1, 32>>>(gridfuse::arena_for(1, 32)); }",
    ]);
    let comment = program("child<< <1, 32> >>(out, begin, count);")
        .replace("int n) {\n    int v", "int n) { // the parent\n    int v");
    rewrite(ID, &comment).has(&["arena) { // the parent\n    gridfuse::Aggregator<"]);
}

#[test]
fn the_arena_has_room_for_what_a_thread_launches() {
    let arena = |launches: &str| {
        format!("gridfuse::arena_for((n + 127) / 128, 128, 0, gridfuse::room_for<child_args>({launches}))")
    };
    let counted = program("for (int i = 0; i < 3; ++i) child<<<1, 32>>>(out, begin + i, count);");
    rewrite(ID, &counted).has(&[arena("3").as_str()]);
    let endless = program("for (int i = 0; i < count; ++i) child<<<1, 32>>>(out, begin + i, count);");
    rewrite(ID, &endless).has(&[arena("4").as_str()]);
    // 20 bytes and 48 for the arguments.
    let child = "__global__ void child(int* out, double4 a, double b, int begin, int count) { out[begin] = count + a.x + b; }\n";
    let launch = "double b = out[v];\n    child<<<1, 32>>>(out, make_double4(b, b, b, b), b, begin, count);";
    rewrite(ID, &with_child(child, launch)).has(&[arena("").as_str()]);
    rewrite(ID, &program("child<<<1, 32>>>(out, begin, count);")).has(&["gridfuse::arena_for((n + 127) / 128, 128))"]);
}

#[test]
fn names_in_use_are_avoided() {
    let text = program("int arena = 0;\n    child<<<1, 32>>>(out, begin, arena);");
    let text = format!("#define childs 1\nstruct child_body {{}};\nint child_args, child_aggregated;\n{text}");
    rewrite(ID, &text).has(&[
        "void child_body2(",
        "struct child_args2 {",
        "void child_aggregated2(gridfuse::Batch<child_args2>",
        "gridfuse::Arena arena2) {",
        "child_aggregated2> childs2(arena2, out);",
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
    rewrite(ID, &text).has(&["int n = 3, gridfuse::Arena arena = {}) {"]);
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
        "#define GO(n) parent<<<n, 32>>>(out, row, n)\nvoid go(int* out, int* row) { GO(3); }\nvoid run",
        "`parent`",
    );
    refuse(
        "void run",
        "void attributes() { cudaFuncSetAttribute(parent, a, 1); }\nvoid run",
        "is mentioned where it isn't launched",
    );
    refuse(
        "void run",
        "__global__ void other(int* out, int* row) { parent<<<1, 1>>>(out, row, 1); }\nvoid run",
        "no launch of `other` by the host was found",
    );
    refuse(
        "void run",
        "__global__ void parent(float* out, const int* row, int n) {}\nvoid run",
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
    let stream = "cudaStream_t s;\n    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);\n    child<<<1, 32, 0, s>>>(out, begin, count);\n    ";
    refuse(
        &format!("{stream}child<<<1, 32, 0, s>>>(out, begin, count);"),
        "is used for more than this launch",
    );
    refuse(
        &format!("{stream}if (v) cudaStreamDestroy(s);"),
        "can't be removed cleanly",
    );
    refuse(
        "child<<<1, 32>>>(out, begin, count);\n    cudaDeviceSynchronize();",
        "cudaDeviceSynchronize()",
    );
    refuse(
        "#if FAST\n    child<<<1, 32>>>(out, begin, count);\n#else\n    child<<<2, 32>>>(out, begin, count);\n#endif",
        "under an #if",
    );
    refuse(
        "(void)(count && (child<<<1, 32>>>(out, begin, count), 1));",
        "part of a larger expression",
    );
    refuse(
        "auto go = [&] { child<<<1, 32>>>(out, begin, count); };\n    go();",
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
        let child = format!("__global__ void child(int* out, int begin, int count) {{\n    {body}\n}}\n");
        refuses(
            ID,
            &with_child(&child, "$0child<<<1, 32>>>(out, begin, count);"),
            reason,
        );
    };
    refuse("asm(\"mov.u32 %0, %%ctaid.x;\" : \"=r\"(count));", "inline assembly");
    refuse("cg::grid_group g = cg::this_grid();", "cg::this_grid");
    refuse(
        "other<<<1, 1, 0, cudaStreamTailLaunch>>>(out);",
        "a stream that depends on which grid launches",
    );
    refuse("while (atomicExch(out, 1)) {}", "may wait for another thread");
    refuse("printf(\"%s\", __func__);", "uses __func__");
    let child = "__device__ int id() { return blockIdx.x; }\n__global__ void child(int* out, int begin, int count) {\n    out[id()] = 1;\n}\n";
    rewrite(ID, &with_child(child, "child<<<1, 32>>>(out, begin, count);")).has(&["out[id_at(blockIdx)] = 1;"]);
    let fine = child.replace("blockIdx.x", "threadIdx.x");
    rewrite(ID, &with_child(&fine, "child<<<1, 32>>>(out, begin, count);"));
    refuses_files(
        ID,
        &[
            (
                "a.cu",
                "#include \"b.cuh\"\n__global__ void parent(int* out) { child<<<1, 32>>>(out); }\nvoid run(int* o) { parent<<<1, 1>>>(o); }\n",
            ),
            ("b.cuh", "__global__ void child(int* out);\n"),
            (
                "b.cu",
                "#include \"b.cuh\"\n__global__ void child(int* out) { out[0] = 1; }\n",
            ),
        ],
        "which this file doesn't include",
    );
}

#[test]
fn aliases_namespaces_and_dim3_variables() {
    let text = "typedef unsigned int index_t;\nnamespace graph {\n__global__ void work(int* out, index_t at, float scale) {\n    \
                out[at] = scale;\n}\n}\n__device__ int twice(dim3 block) { return block.x * 2; }\n\
                __global__ void parent(int* out, int n) {\n    int v = threadIdx.x;\n    dim3 grid(v), block(v + 1);\n    \
                if (twice(block) > n) graph::work<<<grid, block>>>(out, v, 2);\n}\n\
                void run(int* out) { parent<<<1, 32>>>(out, 5); }\n";
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
    let text = "__global__ void child(int* out, int n) { out[n] = 1; }\nnamespace u {\nusing ::child;\n\
                __global__ void parent(int* out) {\n    int v = threadIdx.x;\n    u::child<<<1, 32>>>(out, v);\n}\n}\n\
                void run(int* out) { u::parent<<<1, 32>>>(out); }\n";
    rewrite(ID, text).has(&["gridfuse::PerBlock, child_aggregated>"]);
}

#[test]
fn a_child_that_waits_in_any_loop() {
    let child = "__global__ void child(int* out, int begin, int count) {\n    if (threadIdx.x == 31) atomicExch(out, 1);\n    \
                 again: if (!atomicAdd(out, 0)) goto again;\n}\n";
    refuses(
        ID,
        &with_child(child, "$0child<<<1, 32>>>(out, begin, count);"),
        "may wait for another thread",
    );
}

#[test]
fn the_name_may_mean_something_else_elsewhere() {
    let main = "\nint main() {\n    run(nullptr, nullptr, 0);\n}\n";
    let text = program("child<<<1, 32>>>(out, begin, count);") + main;
    let with = |other: &str| rewrite_files(ID, &[("a.cu", text.as_str()), ("b.cu", other)], &[]);
    for fine in [
        "void f(int* parent) {\n    parent[0] = 1;\n}\n",
        "struct Node { Node* parent; };\nint f(Node* n) { int parent = n->parent != nullptr; return parent; }\n",
        // Another program.
        "__global__ void parent(int* out, const int* row, int n);\nint main() {\n    parent<<<1, 1>>>(nullptr, nullptr, 0);\n}\n",
        "__global__ void parent(int*, const int*, int);\nvoid* p = (void*)parent;\nint main() {}\n",
    ] {
        assert!(with(fine).is_ok(), "{fine}: {:?}", with(fine));
    }
    for (other, reason) in [
        (
            "__global__ void parent(int*, const int*, int);\nvoid* p = (void*)parent;\n",
            "is mentioned where",
        ),
        (
            "__global__ void parent(int*, const int*, int);\nvoid f() {\n    { int parent = 1; (void)parent; }\n    g((void*)parent);\n}\n",
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
            "__global__ void child(int* out, int x) {{ out[threadIdx.x] = x; }}\n\
             __global__ void parent(int* out, int n) {{\n    int v = threadIdx.x;\n    child<<<1, 32>>>(out, {arg});\n}}\n\
             int main() {{ parent<<<1, 32>>>(nullptr, 5); }}\n"
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
        "__device__ int threads() {{ return blockDim.x * blockDim.y; }}\n\
         __global__ void child(int* out, int n) {{ out[threadIdx.x] = threads(); }}\n\
         __global__ void parent(int* out, int n) {{\n    {launches}\n}}\n\
         void run(int* out) {{ parent<<<4, dim3(16, 4)>>>(out, 7); }}\n"
    )
}

#[test]
fn callees_may_ask_for_a_block_that_is_as_launched() {
    const ASKS: &str = "out[threadIdx.x] = threads_at(blockDim);";
    for fine in [
        "child<<<1, 64>>>(out, n);",
        "child<<<n, dim3(8, 8)>>>(out, n);\n    child<<<1, dim3(8, 8)>>>(out, 2);",
        "child<<<n, blockDim>>>(out, n);",
        "child<<<n, blockDim.x>>>(out, n);\n    child<<<2, blockDim.x>>>(out, n);",
        "dim3 block(blockDim.x, blockDim.y);\n    if (n > 3) child<<<n, block>>>(out, n);",
    ] {
        rewrite(ID, &asking(fine)).has(&["out[threadIdx.x] = threads();"]);
        rewrite("aggregate-grid", &asking(fine)).has(&["out[threadIdx.x] = threads();"]);
    }
    for varies in [
        "child<<<1, threadIdx.x + 1>>>(out, n);",
        // The same for all threads here, but the launches of another grid may be collected with these.
        "child<<<1, n>>>(out, n);",
        "child<<<1, 64>>>(out, n);\n    child<<<1, 32>>>(out, n);",
        "child<<<1, blockDim.x>>>(out, n);\n    child<<<1, 64>>>(out, n);",
        "child<<<1, blockDim.x>>>(out, n);\n    child<<<1, blockDim>>>(out, n);",
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
            "__device__ int threads() {{ return blockDim.x; }}\n\
             __global__ void walk(int* out, int n) {{\n    out[threadIdx.x] = threads();\n    \
             if (threadIdx.x == 0 && n > 1) walk<<<2, {block}>>>(out, n / 2);\n}}\n\
             void run(int* out) {{ walk<<<4, 96>>>(out, 7); }}\n"
        )
    };
    rewrite(ID, &recursive("blockDim")).has(&["struct walk_args {};\n\n__global__ void walk_aggregated("]);
    rewrite("aggregate-grid", &recursive("dim3(blockDim.x)"));
    // What doesn't fit into a line goes on with the indentation of the kernel's body.
    let long = recursive("blockDim").replace("out", "the_numbers_of_all_vertices_that_somebody_has_come_to");
    rewrite(ID, &long).has(&["walks(\n        arena, the_numbers"]);
    rewrite(ID, &recursive("blockDim.x / 2")).has(&["out[threadIdx.x] = threads_at(blockDim);"]);
    // A child with blocks of different sizes hands them on: threads that were not asked for would be counted.
    let through = "__device__ int threads() { return blockDim.x; }\n\
                   __global__ void last(int* out) { out[threadIdx.x] = threads(); }\n\
                   __global__ void middle(int* out, int n) {\n    \
                   if (threadIdx.x == 0) last<<<1, blockDim>>>(out);\n    \
                   if (threadIdx.x == 0 && n > 1) middle<<<1, SIZE>>>(out, n - 1);\n}\n\
                   void run(int* out) { middle<<<4, 96>>>(out, 7); }\n";
    rewrite(ID, &through.replace("SIZE", "n * 32")).has(&["out[threadIdx.x] = threads_at(blockDim);"]);
    rewrite(ID, &through.replace("SIZE", "blockDim")).has(&["out[threadIdx.x] = threads();"]);
}
