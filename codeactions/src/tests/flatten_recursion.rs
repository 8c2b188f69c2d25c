//! `flatten-recursion`

use super::{refuses, rewrite};

const ID: &str = "flatten-recursion";

/// A program whose kernel contains `launches`, in its thread 0.
fn program(launches: &str) -> String {
    with_kernel(&format!(
        r#"__global__ void walk(const int* next, int* out, int node, int depth) {{
    if (threadIdx.x == 0) {{
        out[node] = depth;
        {launches}
    }}
}}
"#
    ))
}

/// A program with a kernel `walk`.
fn with_kernel(kernel: &str) -> String {
    format!(
        r#"__global__ void other(int* out) {{ out[0] = 1; }}

{kernel}
void run(const int* next, int* out, int threads, cudaStream_t stream) {{
    walk<<<1, threads, 0, stream>>>(next, out, 0, 0);
}}
"#
    )
}

const AGAIN: &str = "walk<<<2, blockDim.x, 0, cudaStreamFireAndForget>>>(next, out, next[node], depth + 1);";

#[test]
fn uniform_arguments_are_passed_once() {
    let result = rewrite(ID, &program(AGAIN));
    result.has(&[
        r#"struct walk_args { int node; int depth; };

__global__ void __launch_bounds__(1024) walk_flattened(
    gridfuse::Worklist<walk_args> worklist, const int* next, int* out);
"#,
        "void walk_body(gridfuse::Recursion<walk_flattened>& walks,\n",
        "walks.launch(2, blockDim.x, {next[node], depth + 1});",
        r#"gridfuse::Recursion<walk_flattened> walks({}, next, out);
    walk_body(walks, blockIdx, gridDim, blockDim, next, out, node, depth);"#,
        "gridfuse::Recursion<walk_flattened> walks(worklist, next, out);\n",
        "walk_body(walks, blockIdx, gridDim, blockDim, next, out, args.node, args.depth);",
        "gridfuse::launch_recursion<walk_flattened>(1, threads, 0, stream, {0, 0}, next, out);",
    ]);
    assert_eq!(result.assumes, Vec::<String>::new());
}

#[test]
fn arguments_that_change_are_written_down() {
    // Swapped, changed before the launch, or passed on by one launch only.
    let launches = r#"walk<<<1, 32, 0, cudaStreamFireAndForget>>>(next, out, node, 1);
        walk<<<1, 32, 0, cudaStreamFireAndForget>>>(out, out, node + 1, depth);"#;
    rewrite(ID, &program(launches)).has(&[
        "struct walk_args { const int* next; int node; int depth; };",
        r#"walks.launch(1, 32, {next, node, 1});
        // was: walk<<<1, 32, 0, cudaStreamFireAndForget>>>(out, out, node + 1, depth)
        walks.launch(1, 32, {out, node + 1, depth});"#,
        "walk_flattened>(1, threads, 0, stream, {next, 0, 0}, out);",
    ]);
    let launches = r#"out += 1;
        walk<<<1, 32, 0, cudaStreamFireAndForget>>>(next, out, node, depth);"#;
    rewrite(ID, &program(launches)).has(&["struct walk_args { int* out; };", "0, stream, {out}, next, 0, 0);"]);
}

#[test]
fn a_kernel_without_restrict_reads_what_it_has_written() {
    let kernel = r#"__global__ void walk(const int* __restrict__ next, int* __restrict__ out, int node, int depth) {
    walk<<<1, 32, 0, cudaStreamFireAndForget>>>(next, out, node + 1, depth);
}
"#;
    let result = rewrite(ID, &with_kernel(kernel));
    result.has(&["walk_flattened(\n    gridfuse::Worklist<walk_args> worklist, const int* next, int* out,"]);
    // The kernel that stays has its own pointers as they were, and the body none: nvcc inlines it.
    assert_eq!(result.text().matches("__restrict__").count(), 2, "{}", result.text());
    let callee = format!(
        r#"__device__ int at(const int* __restrict__ p, int i) {{ return p[i]; }}
{kernel}"#
    )
    .replace("node + 1", "at(next, node)");
    // A kernel that writes nothing misses nothing.
    assert_eq!(rewrite(ID, &with_kernel(&callee)).assumes, Vec::<String>::new());
    let writes = callee.replace("    walk<<<", "    out[node] = depth;\n    walk<<<");
    let result = rewrite(ID, &with_kernel(&writes));
    assert!(
        result
            .assumes
            .iter()
            .any(|a| a.contains("writes nothing that it reads by `p`, which is __restrict__")),
        "{:?}",
        result.assumes
    );
}

#[test]
fn streams_for_one_launch_are_removed() {
    let launches = r#"cudaStream_t s;
        cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
        walk<<<1, 32, 0, s>>>(next, out, next[node], depth + 1);
        cudaStreamDestroy(s);
        cudaStream_t t;
        cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
        walk<<<1, 32, 0, t>>>(next, out, node + 1, depth + 1);
        cudaStreamDestroy(t);"#;
    let result = rewrite(ID, &program(launches));
    result.has(&[r#"out[node] = depth;
        // was: cudaStream_t s;
        // was: cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
        // was: walk<<<1, 32, 0, s>>>(next, out, next[node], depth + 1)
        walks.launch(1, 32, {next[node], depth + 1});
        // was: cudaStreamDestroy(s);
        // was: cudaStream_t t;
        // was: cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
        // was: walk<<<1, 32, 0, t>>>(next, out, node + 1, depth + 1)
        walks.launch(1, 32, {node + 1, depth + 1});
        // was: cudaStreamDestroy(t);
    }"#]);
    assert_eq!(result.assumes, Vec::<String>::new());
}

#[test]
fn the_order_of_the_null_stream_is_assumed_away() {
    let twice = r#"walk<<<1, 32>>>(next, out, next[node], depth + 1);
        walk<<<1, 32>>>(next, out, node + 1, depth + 1);"#;
    let result = rewrite(ID, &program(twice));
    assert!(
        result
            .assumes
            .iter()
            .any(|a| a.contains("other grids that `walk` launches into the NULL stream")),
        "{:?}",
        result.assumes
    );
    let once = rewrite(ID, &program("walk<<<1, 32>>>(next, out, next[node], depth + 1);"));
    assert_eq!(once.assumes, Vec::<String>::new());
    refuses(
        ID,
        &program(
            r#"walk<<<1, 32>>>(next, out, node + 1, depth);
        other<<<1, 1>>>(out);"#,
        ),
        "the NULL stream runs this after a grid of `walk`",
    );
    let either = r#"if (node > 5) walk<<<1, 32>>>(next, out, node + 1, depth);
        else other<<<1, 1>>>(out);"#;
    rewrite(ID, &program(either)).has(&[r#"if (node > 5) walks.launch(1, 32, {node + 1});
        else other<<<1, 1>>>(out);"#]);
    // In a loop, a thread comes to both branches.
    let looped = format!(
        r#"for (int k = 0; k < 2; ++k) {{
        {either}
        }}"#
    );
    let looped = looped.replace("node > 5", "node > 5 && k == 0");
    refuses(
        ID,
        &program(&looped),
        "the NULL stream runs this after a grid of `walk`",
    );
    let inside = either.replace("walk<<<", "for (int k = 0; k < 2; ++k) walk<<<");
    rewrite(ID, &program(&inside)).has(&["else other<<<1, 1>>>(out);"]);
}

#[test]
fn templates() {
    let kernel = r#"template <class T, int N>
__global__ void walk(const int* next, T* out, T node, int depth) {
    walk<T, N><<<1, N, 0, cudaStreamFireAndForget>>>(next, out, node + 1, depth);
}
"#;
    let text = with_kernel(kernel).replace("walk<<<1, threads", "walk<int, 32><<<1, 32");
    rewrite(ID, &text).has(&[
        "template <class T, int N>\nstruct walk_args { T node; };",
        r#"template <class T, int N>
__global__ void walk_flattened(gridfuse::Worklist<walk_args<T, N>>"#,
        "template <class T, int N, class Launches>\n__device__ __forceinline__ void walk_body(Launches& walks,",
        "gridfuse::launch_recursion<walk_flattened<int, 32>>(1, 32, 0, stream, {0}, next, out, 0);",
    ]);
    let other = with_kernel(&kernel.replace("walk<T, N><<<", "walk<T, N / 2><<<"));
    refuses(ID, &other, "another instance");
    // Deduced here and there.
    let kernel = kernel
        .replace("class T, int N", "class T")
        .replace("walk<T, N><<<1, N", "walk<<<1, 32");
    rewrite(ID, &with_kernel(&kernel)).has(&[
        "template <class T>\nstruct walk_args { T node; };",
        "gridfuse::launch_recursion<walk_flattened<int>>(1, threads, 0, stream, {0}, next, out, 0);",
    ]);
    refuses(
        ID,
        &with_kernel(&kernel.replace("(next, out, node + 1", "(next, out + 1, node + 1")),
        "another instance",
    );
}

#[test]
fn types_of_template_parameters() {
    let kernel = |ty: &str| {
        with_kernel(&format!(
            r#"struct Pair {{ using type = int; }};
template <int N> struct Row {{ int first; }};

template <class T, int N>
__global__ void walk(const int* next, int* out, {ty} node, int depth) {{
    walk<T, N><<<1, 32, 0, cudaStreamFireAndForget>>>(next, out, node + 1, depth);
}}
"#
        ))
    };
    // The host names the type by what the parameter stands for.
    let text = kernel("typename T::type").replace("walk<<<1, threads", "walk<Pair, 2><<<1, 32");
    rewrite(ID, &text).has(&["{static_cast<typename Pair::type>(0)}, next, out, 0);"]);
    let text = kernel("Row<N * 2>").replace("walk<<<1, threads", "walk<Pair, 1 + 1><<<1, 32");
    refuses(ID, &text, "the type of parameter `node` can't be named in `run`");
}

#[test]
fn loads_as_if_nobody_wrote() {
    let kernel = |load: &str| {
        let kernel = format!(
            r#"__global__ void walk(const int* next, int* out, int node, int depth) {{
    out[node] = {load};
    {AGAIN}
}}
"#
        );
        with_kernel(&kernel)
    };
    let result = rewrite(ID, &kernel("__ldg(next + node)"));
    assert!(
        result.assumes.iter().any(|a| a.contains("reads by __ldg()")),
        "{:?}",
        result.assumes
    );
    refuses(ID, &kernel("__ldg(out + node - 1)"), "writes what it reads by __ldg()");
    let nothing = kernel("__ldg(next)").replace("out[node] = ", "int x = ");
    assert_eq!(rewrite(ID, &nothing).assumes, Vec::<String>::new());
}

#[test]
fn host_launches() {
    let again = "walk<<<1, 32, 0, cudaStreamFireAndForget>>>(next, out, node + 1, depth);";
    let text = program(again);
    let short = text.replace(
        "walk<<<1, threads, 0, stream>>>(next, out, 0, 0);",
        "walk<<<dim3(3, 2), 512>>>(next, out, threads, 0);",
    );
    rewrite(ID, &short).has(&[
        "gridfuse::launch_recursion<walk_flattened>(dim3(3, 2), 512, /*shared_memory=*/0, /*stream=*/0,
                                               {threads}, next, out, 0);",
        "__global__ void __launch_bounds__(512) walk_flattened(",
    ]);
    // What can't be changed stays; with nothing else there is nothing to gain.
    let both = format!("{text}__global__ void start(int* out) {{ walk<<<1, 32>>>(out, out, 5, 0); }}\n");
    rewrite(ID, &both).has(&[
        "launch_recursion<walk_flattened>(1, threads",
        "void start(int* out) { walk<<<1, 32>>>(out, out, 5, 0); }",
    ]);
    refuses(
        ID,
        text.split("void run").next().unwrap_or(""),
        "no launch of `walk` by the host was found",
    );
    let device = text.replace("void run(", "__global__ void run(");
    refuses(ID, &device, "launches `walk` from the device");
    let attribute = text.replace(
        "    walk<<<1, threads",
        r#"    cudaFuncSetAttribute(walk, cudaFuncAttributeMaxDynamicSharedMemorySize, 99);
    walk<<<1, threads"#,
    );
    refuses(ID, &attribute, "is mentioned where it isn't launched");
}

#[test]
fn what_would_change_its_meaning_is_refused() {
    let refused = |launches: &str, why: &str| refuses(ID, &program(launches), why);
    refused(
        "other<<<1, 1>>>(out);",
        "`walk` isn't a kernel that launches itself here",
    );
    refused(
        "walk<<<1, 32, 0, cudaStreamTailLaunch>>>(next, out, node + 1, depth);",
        "a tail launch runs after the launching grid",
    );
    refused(
        &format!(
            r#"{AGAIN}
        other<<<1, 1, 0, cudaStreamTailLaunch>>>(out);"#
        ),
        "a stream that depends on which grid launches",
    );
    refused(
        &format!(
            r#"{AGAIN}
        if (cudaGetLastError() != cudaSuccess) return;"#
        ),
        "cudaGetLastError",
    );
    refused(
        &format!("{AGAIN}\n        while (atomicAdd(out, 0) == 0) {{}}"),
        "may wait for another thread",
    );
    let barrier = r#"__global__ void walk(const int* next, int* out, int node, int depth) {
    __shared__ int sum;
    if (threadIdx.x > out[0]) return;
    sum = 0;
    __syncthreads();
    out[node] = sum;
    walk<<<1, 32, 0, cudaStreamFireAndForget>>>(next, out, node + 1, depth);
}
"#;
    refuses(
        ID,
        &with_kernel(barrier),
        "not all threads of a block of `walk` reach this",
    );
    let function = format!(
        r#"__global__ void walk(const int* next, int* out, int node, int depth);
__device__ void again(const int* next, int* out, int node, int depth) {{
    $0{AGAIN}
}}
__global__ void walk(const int* next, int* out, int node, int depth) {{
    again(next, out, node, depth);
}}
"#
    );
    refuses(
        ID,
        &with_kernel(&function),
        "`again` isn't a kernel that launches itself here",
    );
}

#[test]
fn conditions_on_memory_that_the_kernel_writes() {
    let kernel = r#"struct Node { int first, count; };
__device__ inline bool is_inner(const Node& node) { return node.count > 4; }
__global__ void walk(Node* next, int* out, int index, int depth) {
    __shared__ int sum;
    Node node = next[index + blockIdx.x];
    if (!is_inner(node)) return;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, threadIdx.x);
    __syncthreads();
    if (threadIdx.x != 0) return;
    next[node.first] = Node{node.first + 4, node.count - sum};
    walk<<<4, blockDim.x, 0, cudaStreamFireAndForget>>>(next, out, node.first, depth + 1);
}
"#;
    let program = with_kernel(kernel).replace("const int* next", "Node* next");
    let result = rewrite(ID, &program);
    let settled = |a: &String| a.starts_with("all threads of a block find the same in ");
    // `is_inner` reads through a reference.
    let expected = |a: &String| settled(a) || a == "nothing else writes `node` while the grid runs (is_inner)";
    assert!(
        result.assumes.iter().any(settled) && result.assumes.iter().all(expected),
        "{:?}",
        result.assumes
    );
    // What differs between the threads differs.
    refuses(
        ID,
        &program.replace("next[index + blockIdx.x]", "next[index + threadIdx.x]"),
        "not all threads of a block of `walk` reach this",
    );
}
