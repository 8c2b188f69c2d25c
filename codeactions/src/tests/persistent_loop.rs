//! `persistent-loop`

use super::{refuses, rewrite};

const ID: &str = "persistent-loop";

/// A program with a kernel of several blocks that ends with `launch`.
fn grid(launch: &str) -> String {
    with_kernel(&format!(
        r#"__global__ void relax(const float* a, float* b, int n, int round) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = a[i] * 0.5f;
    {launch}
}}
"#
    ))
}

/// A program with a kernel `relax`.
fn with_kernel(kernel: &str) -> String {
    format!(
        r#"__global__ void other(float* b) {{ b[0] = 1; }}

{kernel}
void run(float* a, float* b, int n, cudaStream_t stream) {{
    relax<<<(n + 127) / 128, 128, 0, stream>>>(a, b, n, 0);
}}
"#
    )
}

const AGAIN: &str =
    "if (i == 0 && round < 9) relax<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(b, (float*)a, n, round + 1);";

/// The same with grids of one block.
fn block(kernel: &str) -> String {
    with_kernel(kernel).replace("(n + 127) / 128, 128", "1, 128")
}

#[test]
fn a_grid_that_stays() {
    let result = rewrite(ID, &grid(AGAIN));
    result.has(&[
        r#"struct relax_args { const float* a; float* b; int round; };

__global__ void relax_loop(gridfuse::Iterations<relax_args> iterations, int n);
"#,
        "void relax_body(gridfuse::Loop<relax_loop>& relaxes, uint3 blockIdx,\n                                           dim3 gridDim,",
        "if (i == 0 && round < 9) relaxes.launch(gridDim, blockDim, {b, (float*)a, round + 1});",
        r#"    // One iteration, which launches the next one by itself.
    gridfuse::Loop<relax_loop> relaxes({}, n);
    relax_body(relaxes, blockIdx, gridDim, blockDim, a, b, n, round);"#,
        "gridfuse::Loop<relax_loop> relaxes(iterations, n);\n",
        "relax_body(relaxes, blockIdx, gridDim, blockDim, args.a, args.b, n, args.round);",
        "gridfuse::launch_loop<relax_loop>((n + 127) / 128, 128, 0, stream, {a, b, 0}, n);",
    ]);
    assert_eq!(result.assumes, Vec::<String>::new());
}

#[test]
fn grids_of_other_sizes() {
    let smaller = AGAIN.replace("gridDim, blockDim", "(n / 2 + 127) / 128, 128");
    rewrite(ID, &grid(&smaller)).has(&[
        "relaxes.launch((n / 2 + 127) / 128, 128, {b, (float*)a, round + 1});",
        "gridfuse::launch_growing_loop<relax_loop>(",
    ]);
    let text = grid(&AGAIN.replace("gridDim, blockDim", "6, blockDim.x")).replace("(n + 127) / 128, 128", "6, 128");
    rewrite(ID, &text).has(&["gridfuse::launch_loop<relax_loop>(6, 128,"]);
}

#[test]
fn one_thread_of_several_dimensions_launches() {
    let in_two = |block: &str, also: &str| {
        let launch = AGAIN.replace("i == 0", &format!("i == 0{also}"));
        grid(&launch).replace("(n + 127) / 128, 128,", &format!("(n + 127) / 128, {block},"))
    };
    refuses(
        ID,
        &in_two("dim3(128, 4)", ""),
        "blocks of `relax` have 4 threads in y, and the launch isn't left to one of them by `threadIdx.y`",
    );
    refuses(
        ID,
        &grid(AGAIN).replace("(n + 127) / 128, 128,", "dim3(8, 2), 128,"),
        "grids of `relax` have 2 blocks in y, and the launch isn't left to one of them by `blockIdx.y`",
    );
    assert_eq!(
        rewrite(ID, &in_two("dim3(128, 4)", " && threadIdx.y == 0")).assumes,
        Vec::<String>::new()
    );
    let unknown = in_two("block", "").replace("cudaStream_t stream", "cudaStream_t stream, dim3 block");
    let wanted = ["y", "z"].map(|d| {
        format!("blocks of `relax` have one thread in {d}, as the launch isn't left to one by `threadIdx.{d}`")
    });
    assert_eq!(rewrite(ID, &unknown).assumes, wanted);
}

#[test]
fn one_block_needs_no_other_kernel() {
    let kernel = r#"__global__ void __launch_bounds__(256) relax(const float* __restrict__ a, float* __restrict__ b, int n, int round) {
    if (threadIdx.x < n) b[threadIdx.x] = a[threadIdx.x] * 0.5f;
    if (threadIdx.x != 0) return;
    if (round < 9) relax<<<1, blockDim, 0, cudaStreamTailLaunch>>>(b, (float*)a, n, round + 1);
}
"#;
    let result = rewrite(ID, &block(kernel));
    result.has(&[
        r#"// The arguments of relax that differ between its iterations.
struct relax_args { const float* a; float* b; int round; };

// The body of relax, for one of its iterations; `gridfuse revert` takes it back.
__device__ __forceinline__ void relax_body(gridfuse::BlockLoop<relax_args>& relaxes, const float* a,"#,
        "float* b, int n, int round) {\n",
        "if (round < 9) relaxes.launch({b, (float*)a, round + 1});",
        r#"__global__ void __launch_bounds__(256) relax(const float* a, float* b, int n, int round) {
    gridfuse::BlockLoop<relax_args> relaxes({a, b, round});
    while (relaxes.next()) {
        const relax_args args = relaxes.args();
        relax_body(relaxes, args.a, args.b, n, args.round);
    }
}
"#,
        "relax<<<1, 128, 0, stream>>>(a, b, n, 0);",
    ]);
    assert_eq!(result.assumes, Vec::<String>::new());
    // Who launches it needn't be the host, nor in sight of what the loop is.
    let device = block(kernel).replace("void run(", "__global__ void run(");
    rewrite(ID, &device).has(&["while (relaxes.next())"]);
    // Nothing that differs.
    let same = kernel
        .replace("(b, (float*)a, n, round + 1)", "(a, b, n, round)")
        .replace("round < 9", "b[0] < 9");
    rewrite(ID, &block(&same)).has(&[
        r#"gridfuse::BlockLoop<> relaxes;
    while (relaxes.next())
        relax_body(relaxes, a, b, n, round);
"#,
        "if (b[0] < 9) relaxes.launch();",
    ]);
}

#[test]
fn callees_may_read_the_built_in_variables_of_one_block() {
    let kernel = r#"__device__ int own() { return blockIdx.x * blockDim.x + threadIdx.x; }
__global__ void relax(const float* a, float* b, int n, int round) {
    int i = own();
    if (i < n) b[i] = a[i] * 0.5f;
    if (threadIdx.x == 0 && blockIdx.x == 0 && round < 9)
        relax<<<gridDim, 128, 0, cudaStreamTailLaunch>>>(b, (float*)a, n, round + 1);
}
"#;
    rewrite(ID, &block(kernel)).has(&["relaxes.launch({b, (float*)a, round + 1});"]);
    rewrite(ID, &with_kernel(kernel)).has(&["int i = own_at(blockIdx, blockDim);"]);
    // Blocks of many stay what they are, too, but for their place in the grid.
    let of_block = kernel.replace(
        "return blockIdx.x * blockDim.x + threadIdx.x",
        "return threadIdx.x % blockDim.x",
    );
    rewrite(ID, &with_kernel(&of_block));
}

#[test]
fn no_pointer_is_restrict_in_a_loop() {
    let text = grid(AGAIN).replace(
        "const float* a, float* b, int n, int round) {",
        "const float* __restrict__ a, float *__restrict b, int n, int round) {",
    );
    let result = rewrite(ID, &text);
    result.has(&["dim3 blockDim, const float* a, float *b,
                                           int n, int round) {"]);
    // The kernel that stays is what it was.
    result.has(&["__global__ void relax(const float* __restrict__ a, float *__restrict b, int n, int round) {"]);
}

#[test]
fn templates() {
    let kernel = r#"template <class T, int N>
__global__ void relax(const T* a, T* b, int n, int round) {
    if (blockIdx.x * N + threadIdx.x < n) b[threadIdx.x] = a[threadIdx.x];
    if (blockIdx.x == 0 && threadIdx.x == 0 && round < 9)
        relax<T, N><<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(a, b, n, round + 1);
}
"#;
    let text = with_kernel(kernel).replace("relax<<<(n", "relax<float, 128><<<(n");
    rewrite(ID, &text).has(&[
        "__global__ void relax_loop(gridfuse::Iterations<relax_args> iterations, const T* a,",
        "gridfuse::launch_loop<relax_loop<float, 128>>((n + 127) / 128, 128, 0, stream, {0}, a, b, n);",
    ]);
    refuses(
        ID,
        &text.replace("relax<T, N><<<", "relax<T, N / 2><<<"),
        "another instance",
    );
}

#[test]
fn what_would_change_its_meaning_is_refused() {
    let refused = |launch: &str, why: &str| refuses(ID, &grid(launch), why);
    refused("if (i == 0) other<<<1, 1>>>(b);", "launches `other`, not itself");
    refused(
        &AGAIN.replace(", 0, cudaStreamTailLaunch", ""),
        "it isn't a tail launch",
    );
    refused(
        &AGAIN.replace("i == 0 && ", ""),
        "more than one thread of the grid may launch",
    );
    refused(
        &AGAIN.replace("i == 0", "threadIdx.x == 0"),
        "more than one thread of the grid may launch",
    );
    refused(
        &AGAIN.replace("if (i == 0", "for (int k = 0; k < 2; ++k) if (i == 0"),
        "the launch stands in a loop",
    );
    refused(
        &format!("{AGAIN}\n    if (i == 1) other<<<1, 1>>>(b);"),
        "around all of its launches isn't seen",
    );
    refused(
        &AGAIN.replace("blockDim", "64"),
        "isn't known to have the block size of this one",
    );
    refused(
        &AGAIN.replace("blockDim, 0", "blockDim, 4 * n"),
        "as much dynamic shared memory",
    );
    refused(
        &format!("while (atomicAdd(&b[0], 0.f) == 0) {{}}\n    {AGAIN}"),
        "may wait for another thread",
    );
    refused(
        &format!("if (i < n) {{ __syncthreads(); }}\n    {AGAIN}"),
        "not all threads of a block of `relax` reach this",
    );
    let mentioned = grid(AGAIN).replace(
        "    relax<<<(n",
        r#"    cudaFuncSetAttribute(relax, cudaFuncAttributeMaxDynamicSharedMemorySize, 99);
    relax<<<(n"#,
    );
    refuses(ID, &mentioned, "is mentioned where it isn't launched");
    refuses(
        ID,
        grid(AGAIN).split("void run").next().unwrap_or(""),
        "no launch of `relax` by the host was found",
    );
    let device = grid(AGAIN).replace("void run(", "__global__ void run(");
    refuses(ID, &device, "launches `relax` from the device");
}

#[test]
fn who_asks_hears_of_no_error() {
    let asks = format!("{AGAIN}\n    if (cudaGetLastError() != cudaSuccess) printf(\"%s\", __func__);");
    let wanted = "no CUDA call fails in `relax`, and no launch has zero blocks: `relax` checks cudaGetLastError()";
    assert_eq!(rewrite(ID, &grid(&asks)).assumes, [wanted]);
    // Told in any case, or told by what no call of the runtime says.
    for asks in [
        "if (cudaGetLastError() != cudaSuccess) b[0] = 0;\n    printf(\"%s\", __func__);",
        "if (n != cudaSuccess) printf(\"%s\", __func__);",
        "cudaError_t e = cudaGetLastError(); e = cudaSuccess; if (e != cudaSuccess) printf(\"%s\", __func__);",
        "if (cudaGetLastError() != cudaSuccess) b[0] = 0; else printf(\"%s\", __func__);",
    ] {
        refuses(ID, &grid(&format!("{AGAIN}\n    {asks}")), "`relax` uses __func__");
    }
}

#[test]
fn loads_as_if_nobody_wrote() {
    let text = grid(AGAIN).replace("b[i] = a[i]", "b[i] = __ldg(&a[i])");
    refuses(
        ID,
        &text,
        "makes read-only loads by __ldg(), and an iteration may have written what the next one loads",
    );
    let asm = grid(AGAIN).replace(
        "if (i < n)",
        r#"float x; asm("ld.global.nc.f32 %0, [%1];" : "=f"(x) : "l"(a + i));
    if (i < n)"#,
    );
    refuses(ID, &asm, "makes read-only loads by ld.global.nc");
    let callee = text.replace("__ldg(&a[i])", "at(a, i)").replace(
        "__global__ void relax",
        r#"__device__ float at(const float* __restrict__ p, int i) { return p[i]; }

__global__ void relax"#,
    );
    refuses(ID, &callee, "makes read-only loads by `p`, which is __restrict__");
    // The same pointers in all iterations: it takes a kernel that reads what it writes.
    let same = text.replace("(b, (float*)a, n, round + 1)", "(a, b, n, round + 1)");
    let result = rewrite(ID, &same);
    assert!(
        result
            .assumes
            .iter()
            .any(|a| a.contains("writes nothing that it reads by __ldg()")),
        "{:?}",
        result.assumes
    );
}

/// Two kernels that launch each other.
const TURNS: &str = r#"#define N 96
__global__ void accept(int* value, int* proposal, int* moves, int round, int rounds);
__global__ void propose(int* value, int* proposal, int* moves, int round, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) proposal[i] = (value[i] * 5 + round) % 17;
    if (threadIdx.x == 0 && blockIdx.x == 0)
        accept<<<N / 32, 32, 0, cudaStreamTailLaunch>>>(value, proposal, moves, round, rounds);
}
__global__ void accept(int* value, int* proposal, int* moves, int round, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N && proposal[i] > value[i]) { value[i] = proposal[i]; atomicAdd(moves, 1); }
    if (threadIdx.x == 0 && blockIdx.x == 0 && round + 1 < rounds)
        propose<<<N / 32, 32, 0, cudaStreamTailLaunch>>>(value, proposal, moves, round + 1, rounds);
}
void run(int* value, int* proposal, int* moves) {
    propose<<<N / 32, 32>>>(value, proposal, moves, 0, 4);
}
"#;

#[test]
fn kernels_in_turn() {
    let result = rewrite(ID, TURNS);
    result.has(&[
        r#"// The arguments of propose and accept that differ between their launches.
// kernel: 0 for propose, 1 for accept.
struct propose_args { int kernel; int round; };

__global__ void propose_loop(gridfuse::Iterations<propose_args> iterations, int* value,
                             int* proposal, int* moves, int rounds);
"#,
        "loop.launch(N / 32, 32, {1, round});",
        "loop.launch(N / 32, 32, {0, round + 1});",
        r#"__global__ void accept(int* value, int* proposal, int* moves, int round, int rounds) {
    // One grid, which launches the next one by itself.
    gridfuse::Loop<propose_loop> loop({}, value, proposal, moves, rounds);
    accept_body(loop, blockIdx, gridDim, blockDim, value, proposal, moves, round, rounds);
}"#,
        r#"        if (args.kernel == 0)
            propose_body(loop, blockIdx, gridDim, blockDim, value, proposal, moves, args.round,
                         rounds);
        else
            accept_body(loop, blockIdx, gridDim, blockDim, value, proposal, moves, args.round,
                        rounds);
    });
}
"#,
        "gridfuse::launch_loop<propose_loop>(N / 32, 32, /*shared_memory=*/0, /*stream=*/0, {0, 0},
                                        value, proposal, moves, 4);",
    ]);
    assert_eq!(result.assumes, Vec::<String>::new());
}

#[test]
fn kernels_in_turn_with_other_parameters() {
    // `mark` gets what `step` hasn't, and the other way round; `n` isn't handed on by both.
    let text = r#"__global__ void mark(int* data, float scale, int count);
__global__ void step(int* data, int count, int* other) {
    data[blockIdx.x * blockDim.x + threadIdx.x] += count + other[0];
    if (blockIdx.x == 0 && threadIdx.x == 0) mark<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(data, 2.0f * count, count);
}
__device__ int others[4];
__global__ void mark(int* data, float scale, int count) {
    data[blockIdx.x * blockDim.x + threadIdx.x] *= scale;
    if (blockIdx.x == 0 && threadIdx.x == 0 && count > 0)
        step<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(data, count - 1, others + count % 4);
}
void run(int* data, int* other, int n) {
    step<<<n, 64>>>(data, 5, other);
}
"#;
    rewrite(ID, text).has(&[
        "struct step_args { int kernel; int count; int* other; float scale; };",
        "loop.launch(gridDim, blockDim,
                                                         {1, count, {}, 2.0f * count});",
        "loop.launch(gridDim, blockDim, {0, count - 1, others + count % 4, {}});",
        "gridfuse::launch_loop<step_loop>(n, 64, /*shared_memory=*/0, /*stream=*/0, {0, 5, other, {}},
                                     data);",
        "mark_body(loop, blockIdx, gridDim, blockDim, data, args.scale, args.count);",
    ]);
}

#[test]
fn three_kernels_in_turn() {
    let text = r#"__global__ void b(int* x, int n);
__global__ void c(int* x, int n);
__global__ void a(int* x, int n) {
    x[threadIdx.x] += 1;
    if (threadIdx.x == 0 && blockIdx.x == 0) b<<<2, 32, 0, cudaStreamTailLaunch>>>(x, n);
}
__global__ void b(int* x, int n) {
    x[threadIdx.x + 32 * blockIdx.x] += 2;
    if (threadIdx.x == 0 && blockIdx.x == 0) c<<<1, 32, 0, cudaStreamTailLaunch>>>(x, n);
}
__global__ void c(int* x, int n) {
    x[threadIdx.x] *= 3;
    if (threadIdx.x == 0 && n > 0) a<<<1, 32, 0, cudaStreamTailLaunch>>>(x, n - 1);
}
void run(int* x) { a<<<1, 32>>>(x, 3); }
"#;
    rewrite(ID, text).has(&[
        "// The arguments of a, b and c that differ between their launches.\n// kernel: 0 for a, 1 for b, 2 for c.",
        "loop.launch(1, 32, {2, n});",
        "        else if (args.kernel == 1)\n            b_body(",
        "gridfuse::launch_growing_loop<a_loop>(1, 32, /*shared_memory=*/0, /*stream=*/0,
                                                         {0, 3}, x);",
    ]);
}

#[test]
fn kernels_in_turn_that_are_left_alone() {
    refuses(
        ID,
        &TURNS.replace("accept<<<N / 32, 32,", "accept<<<N / 32, rounds,"),
        "the next `accept` isn't known to have the block size of this one",
    );
    refuses(
        ID,
        &TURNS.replace(
            "cudaStreamTailLaunch>>>(value, proposal, moves, round + 1",
            "cudaStreamFireAndForget>>>(value, proposal, moves, round + 1",
        ),
        "it isn't a tail launch: the next grid may start before this one ends",
    );
    refuses(
        ID,
        &TURNS.replace("if (threadIdx.x == 0 && blockIdx.x == 0)\n", "if (threadIdx.x == 0)\n"),
        "more than one thread of the grid may launch: `if (blockIdx.x == 0 && threadIdx.x == 0)` or the like around the launch isn't \
         seen",
    );
    refuses(
        ID,
        &TURNS.replace("void run(", "auto pointer = &accept;\nvoid run("),
        "`accept` is mentioned where it isn't launched: some launches may be unseen",
    );
    // Two sizes of blocks of one kernel.
    refuses(
        ID,
        &TURNS.replace("propose<<<N / 32, 32>>>(", "accept<<<1, 1>>>("),
        "the next `propose` isn't known to have the block size of this one",
    );
    // The threads that the smaller blocks don't have would be missed at the barrier.
    let barrier = TURNS.replace(
        "if (i < N && proposal[i]",
        "if (__syncthreads_or(i < 0)) moves = value;\n    if (i < N && proposal[i]",
    );
    refuses(
        ID,
        &barrier.replace("accept<<<N / 32, 32,", "accept<<<6, 16,"),
        "blocks of `accept` have 16 threads, and those of the loop 32, of which `accept` may wait for the others here",
    );
}

#[test]
fn kernels_in_turn_with_blocks_of_two_sizes() {
    let text = TURNS.replace("accept<<<N / 32, 32,", "accept<<<6, 16,");
    rewrite(ID, &text).has(&[
        "loop.launch(6, 32, {1, round});",
        r#"        if (args.kernel == 0) {
            propose_body(loop, blockIdx, gridDim, blockDim, value, proposal, moves, args.round,
                         rounds);
        } else {
            if (threadIdx.x < 16)
                accept_body(loop, blockIdx, gridDim, dim3(16), value, proposal, moves, args.round,
                            rounds);
        }
"#,
        "gridfuse::launch_growing_loop<propose_loop>(N / 32, 32, /*shared_memory=*/0, /*stream=*/0,",
    ]);
    // The host launches the one that decides.
    let text = r#"__global__ void work(int* x, int n);
__global__ void decide(int* x, int n) {
    if (x[0] < n) work<<<(n + 63) / 64, 64, 0, cudaStreamTailLaunch>>>(x, n);
}
__global__ void work(int* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += i + 1;
    if (i == 0) decide<<<1, 1, 0, cudaStreamTailLaunch>>>(x, n);
}
void run(int* x, int n) { decide<<<1, 1>>>(x, n); }
"#;
    rewrite(ID, text).has(&[
        "loop.launch(1, 64, {0});",
        "            if (threadIdx.x == 0)\n                decide_body(loop, blockIdx, gridDim, dim3(1), x, n);",
        "gridfuse::launch_growing_loop<decide_loop>(1, 64, /*shared_memory=*/0,
                                                                     /*stream=*/0, {0}, x, n);",
    ]);
}

#[test]
fn fields_hide_no_type_of_the_others() {
    let text = r#"struct kernel { float w[3]; };
struct level { int n; };
__global__ void fine(int* x, int n, level l, kernel k, int left);
__global__ void coarse(int* x, int n, level l, kernel k, int left) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += l.n;
    if (i == 0) $0fine<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(x, n, level{l.n + 1}, k, left);
}
__global__ void fine(int* x, int n, level l, kernel k, int left) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] ^= l.n;
    if (i == 0 && left) coarse<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(x, n, l, k, left - 1);
}
void run(int* x, int n, kernel k) { coarse<<<2, 64>>>(x, n, level{2}, k, 3); }
"#;
    let new = rewrite(ID, text);
    assert!(!new.text().contains("int kernel;"), "{}", new.text());
}

/// A kernel that launches work, and itself behind it.
fn driver(launches: &str) -> String {
    format!(
        r#"__global__ void sweep(const float* __restrict__ from, float* to, int n, int* moves) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {{ to[i] = from[i] * 0.5f; atomicAdd(moves, 1); }}
}}

__global__ void step(float* a, float* b, int n, int* moves, int round) {{
    if (round == 9) return;
{launches}
}}
void run(float* a, float* b, int n, int* moves) {{
    step<<<1, 1>>>(a, b, n, moves, 0);
}}
"#
    )
}

const WORK: &str = "    sweep<<<(n + 127) / 128, 128>>>(a, b, n, moves);";
const STEP: &str = "    step<<<1, 1, 0, cudaStreamTailLaunch>>>(b, a, n, moves, round + 1);";

#[test]
fn drivers() {
    let text = driver(&format!("{WORK}\n{STEP}"));
    let expected = [
        r#"// The arguments of step and sweep that differ between their launches.
// kernel: 0 for step, 1 for sweep.
struct step_args { int kernel; float* a; float* b; int round; const float* from; float* to; };

__global__ void step_loop(gridfuse::Iterations<step_args, 1, 1> iterations, int n, int* moves);
"#,
        "    loop.launch_child((n + 127) / 128, 128, {1, {}, {}, {}, a, b});\n",
        "    loop.launch(1, 128, {0, b, a, round + 1, {}, {}});\n",
        r#"__global__ void sweep(const float* __restrict__ from, float* to, int n, int* moves) {
    sweep_body(blockIdx, gridDim, blockDim, from, to, n, moves);
}"#,
        r#"        if (args.kernel == 0) {
            if (threadIdx.x == 0)
                step_body(loop, blockIdx, gridDim, dim3(1), args.a, args.b, n, moves, args.round);
        } else {
            sweep_body(blockIdx, gridDim, blockDim, args.from, args.to, n, moves);
        }
"#,
        "gridfuse::launch_growing_loop<step_loop>(1, 128, /*shared_memory=*/0, /*stream=*/0,",
    ];
    // Whichever of the launches it is asked for.
    for at in [WORK.trim(), STEP.trim()] {
        rewrite(ID, &text.replacen(at, &format!("$0{at}"), 1)).has(&expected);
    }
    let forgets = text.replace(
        "128>>>(a, b, n, moves)",
        "128, 0, cudaStreamFireAndForget>>>(a, b, n, moves)",
    );
    rewrite(ID, &forgets.replacen(STEP.trim(), &format!("$0{}", STEP.trim()), 1)).has(&expected[..2]);
}

#[test]
fn one_thread_drives() {
    let both = |first: &str, second: &str| {
        let launches = format!(
            "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n{first} {}\n{second} $0{}",
            WORK.trim(),
            STEP.trim()
        );
        driver(&launches).replace("step<<<1, 1", "step<<<4, 128")
    };
    for (first, second) in [
        ("if (i == 0)", "if (i == 0)"),
        ("if (i == 0)", "if (round < 5 && i == 0)"),
    ] {
        rewrite(ID, &both(first, second)).has(&["gridfuse::Iterations<step_args, 1, 1>", "loop.launch_child("]);
    }
    for (first, second) in [
        ("if (i == 0)", "if (i == 1)"),
        ("if (i == 0 && round < 5)", "if (i == 1 && round < 5)"),
        ("if (i == 0)", "i = i + 1; if (i == 0)"),
        ("if (i == 0)", ""),
    ] {
        refuses(
            ID,
            &both(first, second),
            "more than one thread of the grid may launch what `step` launches",
        );
    }
}

#[test]
fn what_a_driver_may_not_launch() {
    let refused = |launches: &str, why: &str| {
        let marked = launches.replacen("    step<<<", "    $0step<<<", 1);
        refuses(ID, &driver(&marked), why);
    };
    refused(
        &format!("{STEP}\n{}", WORK.replace("128>>>", "128, 0, cudaStreamTailLaunch>>>")),
        "isn't the last tail launch",
    );
    refused(
        &format!("{STEP}\n    if (round == 3) {}", STEP.trim()),
        "isn't the last tail launch",
    );
    rewrite(
        ID,
        &driver(&format!(
            "    if (round == 3) {{\n    $0{}\n{WORK}\n    }} else {}",
            STEP.trim(),
            STEP.trim()
        )),
    )
    .has(&["gridfuse::Iterations<step_args, 1, 2>"]);
    refused(
        &format!("{WORK}\n{}", STEP.replace(", 0, cudaStreamTailLaunch", "")),
        "it isn't a tail launch",
    );
    refused(
        &format!("    for (int k = 0; k < 3; ++k) {}\n{STEP}", WORK.trim()),
        "stands in a loop",
    );
    refused(
        &format!("    again:\n{WORK}\n    if (n == 0) goto again;\n{STEP}"),
        "may be done several times",
    );
    refused(
        &format!("{}\n{STEP}", WORK.replace(", 128>>>", ", n>>>")),
        "isn't known before it runs",
    );
    refused(
        &format!("{}\n{STEP}", WORK.replace(", 128>>>", ", 128, 4 * n>>>")),
        "has dynamic shared memory",
    );
    refused(
        &format!(
            "    cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);\n{}\n{STEP}",
            WORK.replace(", 128>>>", ", 128, 0, s>>>")
        ),
        "goes into a stream of its own",
    );
    let copies = driver(&format!("{WORK}\n$0{}", STEP.trim()));
    refuses(
        ID,
        &copies.replace(
            "{ to[i]",
            "{ cudaMemcpyAsync(to, from, 4, cudaMemcpyDeviceToDevice); to[i]",
        ),
        "which `sweep` puts into a stream",
    );
}

#[test]
fn smaller_blocks_with_barriers() {
    let text = |threads: u32, barrier: &str| {
        driver(&format!("{WORK}\n$0{}", STEP.trim()))
            .replace("step<<<1, 1", &format!("step<<<1, {threads}"))
            .replace(
                "    if (round == 9) return;",
                &format!("    {barrier};\n    if (round == 9 || threadIdx.x != 0) return;"),
            )
    };
    rewrite(ID, &text(32, "__syncthreads()")).has(&[
        "gridfuse::BlockBarrier __syncthreads,",
        "step_body(loop, gridfuse::BlockBarrier(), blockIdx, gridDim, blockDim,",
        "step_body(loop, gridfuse::BlockBarrier{32}, blockIdx, gridDim, dim3(32),",
    ]);
    rewrite(ID, &text(64, "int all = __any_sync(~0u, round)")).has(&["if (threadIdx.x < 64)"]);
    for text in [
        text(64, "__syncthreads()"),
        text(32, "::__syncthreads()"),
        text(32, "int all = __syncthreads_or(round)"),
        text(16, "int all = __any_sync(~0u, round)"),
    ] {
        refuses(ID, &text, "may wait for the others here");
    }
}

/// Two templates by turns, of which the host launches an instance.
const TEMPLATES: &str = r#"template <int Wide, class Value>
__global__ void smooth(Value* to, const Value* from, int round);
template <class Cell, int Threads>
__global__ void pour(const Cell* from, Cell* to, int round) {
    int i = blockIdx.x * Threads + threadIdx.x;
    to[i] = from[i] + Cell(round);
    if (i == 0) smooth<Threads, Cell><<<gridDim.x, Threads, 0, cudaStreamTailLaunch>>>(const_cast<Cell*>(from), to, round);
}
template <int Wide, class Value>
__global__ void smooth(Value* to, const Value* from, int round) {
    int i = blockIdx.x * Wide + threadIdx.x;
    to[i] = from[i] / 2;
    if (i == 0 && round < 9) pour<Value, Wide><<<gridDim.x, Wide, 0, cudaStreamTailLaunch>>>(to, const_cast<Value*>(from), round + 1);
}
void run(int* a, int* b, short* c, short* d) {
    constexpr int kLarge = 128;
    pour<int, kLarge><<<4, kLarge>>>(a, b, 0);
    pour<short, 64><<<2, 64>>>(c, d, 3);
}
"#;

#[test]
fn templates_in_turn() {
    let result = rewrite(ID, TEMPLATES);
    result.has(&[
        r#"// kernel: 0 for pour, 1 for smooth.
template <class Cell, int Threads>
struct pour_args {"#,
        r#"template <class Cell, int Threads>
__global__ void pour_loop(gridfuse::Iterations<pour_args<Cell, Threads>> iterations);"#,
        "template <int Wide, class Value, class Launches>\n__device__ __forceinline__ void smooth_body(Launches& loop,",
        "    gridfuse::Loop<pour_loop<Value, Wide>> loop({});\n    smooth_body<Wide, Value>(loop, ",
        "const pour_args<Cell, Threads>& args) {",
        "smooth_body<Threads, Cell>(loop, blockIdx, gridDim, blockDim, ",
        "gridfuse::launch_growing_loop<pour_loop<int, kLarge>>(",
    ]);
}

#[test]
fn instances_of_templates_that_are_left_alone() {
    refuses(
        ID,
        &TEMPLATES.replace("pour<Value, Wide><<<", "pour<Value, 2 * Wide><<<"),
        "two instances of `pour` come by turns, `pour<Cell, Threads>` and `pour<Cell, 2 * Threads>`: a loop runs one",
    );
    // A name that means a parameter of the first template where the loop is.
    let hidden = format!("constexpr int Threads = 64;\n{TEMPLATES}")
        .replace("template <class Cell, int Threads>", "template <class Cell, int N>");
    let hidden = hidden.replace("blockIdx.x * Threads", "blockIdx.x * N");
    refuses(ID, &hidden, "two instances of `pour` come by turns");
    // `Step` says nothing of the loop that `smooth` goes on with.
    let further = TEMPLATES.replace(
        "template <int Wide, class Value>",
        "template <int Wide, class Value, int Step>",
    );
    let further = further.replace("smooth<Threads, Cell>", "smooth<Threads, Cell, 3>");
    rewrite(ID, &further).has(&["smooth_body<Threads, Cell, 3>(loop,"]);
    // Where it says to what `smooth` goes on, another instance would go on with a loop that doesn't know it.
    let handed_on = further.replace("pour<Value, Wide><<<", "pour<Value, Wide + Step - Step><<<");
    refuses(ID, &handed_on, "two instances of `pour` come by turns");
}
