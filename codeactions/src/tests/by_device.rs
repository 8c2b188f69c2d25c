//! Launches in functions of the host's that device code makes, too.

use super::{refuses, rewrite};

/// How a launch `LAUNCH` is made: by the host alone.
const BY_HOST: [&str; 4] = [
    "void run(int* out) { LAUNCH }",
    "void run(int* out);\nvoid run(int* out) { LAUNCH }",
    "struct Runner { __host__ void run(int* out); };\nvoid Runner::run(int* out) { LAUNCH }",
    "__attribute__((host)) void run(int* out) { LAUNCH }",
];

/// The same where device code may make it.
const BY_DEVICE: [&str; 8] = [
    "__host__ __device__ void run(int* out);\nvoid run(int* out) { LAUNCH }",
    "struct Runner { __host__ __device__ void run(int* out); };\nvoid Runner::run(int* out) { LAUNCH }",
    "#define HD __host__ __device__\nstruct Runner { HD void run(int* out); };\nvoid Runner::run(int* out) { LAUNCH }",
    "__attribute__((host)) __attribute__((device)) void run(int* out) { LAUNCH }",
    "__attribute__((host, device)) void run(int* out) { LAUNCH }",
    "template <class F> __global__ void apply(F f) { f(0); }\nvoid run(int* out) { apply<<<1, 1>>>([=] __device__ (int i) { LAUNCH }); }",
    "template <class F> __global__ void apply(F f) { f(0); }\nvoid run(int* out) { apply<<<1, 1>>>([=] __host__ __device__ (int i) { LAUNCH }); }",
    "#define GPU_LAMBDA [=] __host__ __device__\n#define HD __host__ __device__\ntemplate <class F> __global__ void apply(F f) { f(0); }\nvoid run(int* out) { auto f = [=] HD (int i) { LAUNCH }; apply<<<1, 1>>>(f); }",
];

/// The rewrites whose kernels the host gives memory, or which it launches in another way.
#[test]
fn launches_that_device_code_makes() {
    let walk = r#"__global__ void walk(int* out, int tile, int h) {
    __shared__ int total;
    if (threadIdx.x == 0) total = h + 1;
    __syncthreads();
    if (threadIdx.x == 0 && tile < 9) $0walk<<<1, 32>>>(out, tile + 1, total);
    out[tile] = h;
}
"#;
    let child = r#"__global__ void child(int* out, int n) { if (threadIdx.x < n) atomicAdd(&out[threadIdx.x], 1); }
__global__ void parent(int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) $0child<<<1, 32>>>(out, i);
}
"#;
    let tree = r#"__global__ void visit(int* out, int depth) {
    atomicAdd(&out[depth], 1);
    if (depth < 4 && threadIdx.x == 0) $0visit<<<2, 32>>>(out, depth + 1);
}
"#;
    let relax = r#"__global__ void relax(int* out, int n, int round) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] += round;
    if (i == 0 && round < 9) $0relax<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(out, n, round + 1);
}
"#;
    for (ids, kernels, launch) in [
        (&["promote"][..], walk, "walk<<<1, 32>>>(out, 0, 0);"),
        (
            &["aggregate-block", "aggregate-grid"],
            child,
            "parent<<<4, 32>>>(out, 100);",
        ),
        (&["flatten-recursion"], tree, "visit<<<1, 32>>>(out, 0);"),
        (&["persistent-loop"], relax, "relax<<<4, 32>>>(out, 100, 0);"),
    ] {
        for id in ids {
            for by in BY_HOST {
                rewrite(id, &format!("{kernels}{}\n", by.replace("LAUNCH", launch)));
            }
            for by in BY_DEVICE {
                let text = format!("{kernels}{}\n", by.replace("LAUNCH", launch));
                refuses(id, &text, "`run`");
            }
        }
    }
}
