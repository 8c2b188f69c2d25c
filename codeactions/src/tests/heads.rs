//! Kernels whose heads are made by macros, and launches of what isn't known to be a kernel: edited rightly, or refused with the true
//! reason.

use super::{program, refuses, refuses_files, rewrite, rewrite_files, with_child};

const REST: &str = r#"child(int* out, int begin, int count) {
    out[begin + threadIdx.x] = count;
}
"#;
const LAUNCH: &str = "child<<<2, 32>>>(out, begin, count);";

#[test]
fn the_old_head_stays() {
    for (defines, head) in [
        ("#define KERNEL __global__ void", "KERNEL "),
        ("#define GLOBAL __global__\n#define KERNEL GLOBAL void", "KERNEL "),
        ("#define KERNEL extern \"C\" __global__ void", "KERNEL "),
        (
            "#define KERNEL __attribute__((visibility(\"hidden\"))) __global__ void",
            "KERNEL ",
        ),
    ] {
        let child = format!("{defines}\n{head}{REST}");
        let result = rewrite("aggregate-block", &with_child(&child, LAUNCH));
        result.has(&[
            "__device__ __forceinline__ void child_body(",
            &format!("\n{head}child(int* out, int begin, int count)"),
            "child_aggregated(",
        ]);
    }
}

/// What several sources may include they may do so still.
#[test]
fn kernels_that_are_inline() {
    for (defines, head) in [
        ("", "inline __global__ void "),
        ("", "__global__ inline void "),
        ("#define KERNEL inline __global__ void", "KERNEL "),
    ] {
        let child = format!("{defines}\n{head}{REST}");
        let text = with_child(&child, LAUNCH);
        rewrite("aggregate-block", &text).has(&["inline __global__ void child_aggregated("]);
        rewrite("coarsen", &text).has(&["inline __global__ void child_coarsened("]);
    }
    let child = format!("static inline __global__ void {REST}");
    rewrite("aggregate-block", &with_child(&child, LAUNCH)).has(&["static __global__ void child_aggregated("]);
}

#[test]
fn bounds_that_a_macro_gives() {
    for (defines, head) in [
        ("#define KERNEL __global__ void __launch_bounds__(64)", "KERNEL "),
        (
            r#"#define KERNEL __global__ void
#define BOUNDS(n) __launch_bounds__(n)"#,
            "KERNEL BOUNDS(64) ",
        ),
    ] {
        let child = format!("{defines}\n{head}{REST}");
        let result = rewrite("aggregate-block", &with_child(&child, LAUNCH));
        result.has(&["__launch_bounds__(64)", &format!("\n{head}child(int* out")]);
    }
}

#[test]
fn heads_that_cannot_be_taken_apart() {
    for (defines, head, reason) in [
        (
            r#"#ifdef TUNED
#define KERNEL __global__ void __launch_bounds__(64)
#else
#define KERNEL __global__ void
#endif"#,
            "KERNEL child",
            "what the macro `KERNEL` in front of `child` stands for is not certain",
        ),
        (
            "#define DEFINE(name) __global__ void name",
            "DEFINE(child)",
            "`DEFINE` in front of `child` is not understood",
        ),
        (
            "#define KERNEL __global__ void __cluster_dims__(2)",
            "KERNEL child",
            "`KERNEL` in front of `child` is not understood",
        ),
        (
            "",
            "KERNEL child",
            "`child` isn't known to be a kernel: `KERNEL` in front of it isn't defined in sight",
        ),
        ("", "void child", "`child` is not declared `__global__`"),
    ] {
        let rest = REST.trim_start_matches("child");
        let child = format!("{defines}\n{head}{rest}");
        refuses("aggregate-block", &with_child(&child, LAUNCH), reason);
    }
}

#[test]
fn a_parent_that_may_be_no_kernel() {
    let text = program(LAUNCH).replacen(
        "__global__ void parent(",
        r#"#ifdef HOST
#define KERNEL
#else
#define KERNEL __global__
#endif
KERNEL void parent("#,
        1,
    );
    refuses(
        "aggregate-block",
        &text,
        "what the macro `KERNEL` in front of `parent` stands for is not certain",
    );
    // A command line that isn't known may say otherwise: that's assumed.
    let text = program(LAUNCH).replacen(
        "__global__ void parent(",
        "#ifndef KERNEL\n#define KERNEL __global__\n#endif\nKERNEL void parent(",
        1,
    );
    let assumes = rewrite("aggregate-block", &text).assumes;
    let assumed = "no command line defines `KERNEL`: the value that the program gives it counts";
    assert!(assumes.iter().any(|a| a == assumed), "{assumes:#?}");
}

#[test]
fn macros_of_the_runtime_are_nothing_that_a_program_takes_for_granted() {
    // The second rewrite adds parts to the header that the first one has brought.
    let first = rewrite("aggregate-block", &program(LAUNCH));
    let header = first.files.get("gridfuse.cuh").map_or("", String::as_str);
    let files = [("a.cu", program(LAUNCH)), ("gridfuse.cuh", header.to_owned())];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    for id in ["aggregate-grid-stream", "reuse-threads"] {
        let second = rewrite_files(id, &files, &[]).expect(id);
        assert_ne!(second.files.get("gridfuse.cuh").map(String::as_str), Some(header));
        let of_macros = second.assumes.iter().filter(|a| a.contains("no command line")).count();
        assert_eq!(of_macros, 0, "{id}: {:#?}", second.assumes);
    }
}

#[test]
fn kernels_that_are_not_declared_here() {
    let other = format!("__global__ void {REST}");
    refuses_files(
        "aggregate-block",
        &[("a.cu", &with_child("", LAUNCH)), ("other.cu", &other)],
        "`child` is declared neither in this file nor in what it includes",
    );
}

#[test]
fn pointers_to_kernels() {
    let text = program(
        r#"void (*k)(int*, int, int) = child;
    k<<<1, 32>>>(out, begin, count);"#,
    );
    refuses("aggregate-block", &text, "which kernel `k` points to isn't known");
}

#[test]
fn launches_by_functions_of_the_runtime() {
    let text = program(&format!(
        r#"void* buffer = cudaGetParameterBufferV2((void*)child, dim3(1), dim3(32), 0);
    cudaLaunchDeviceV2(buffer, 0);
    {LAUNCH}"#
    ));
    refuses(
        "aggregate-block",
        &text,
        "`parent` launches with cudaLaunchDeviceV2() as well, and what that launches isn't known",
    );
}

#[test]
fn macros_that_stand_for_restrict() {
    let text = r#"#define RESTRICT __restrict__
#if defined(__CUDACC__)
#define GPU_RESTRICT RESTRICT
#else
#define GPU_RESTRICT
#endif
__global__ void child(const float* RESTRICT a, float* GPU_RESTRICT b, int n) {
    int i = threadIdx.x;
    if (i < n) b[i] = a[i];
}
__global__ void parent(const float* RESTRICT a, float* b, const int* row, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < n) child<<<1, 32>>>(a + row[r], b + row[r], row[r + 1] - row[r]);
}
void run(const float* a, float* b, const int* row, int n) { parent<<<(n + 31) / 32, 32>>>(a, b, row, n); }
"#;
    for id in ["aggregate-block", "threshold"] {
        let new = rewrite(id, text);
        assert!(
            new.text().contains("const float* RESTRICT a, float* GPU_RESTRICT b"),
            "{}",
            new.text()
        );
    }
    // In one grid, later iterations read what earlier ones have written.
    let loops = r#"#define RESTRICT __restrict__
__global__ void sweep(const float* RESTRICT from, float* RESTRICT to, int n, int left) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i] + 1;
    if (i == 0 && left > 0) $0sweep<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(to, from, n, left - 1);
}
void run(float* a, float* b, int n) { sweep<<<(n + 31) / 32, 32>>>(a, b, n, 9); }
"#;
    let new = rewrite("persistent-loop", &loops.replace("(to, from", "(to, (float*)from"));
    assert!(
        new.text().contains(
            "dim3 blockDim, const float* from,\n                                           float* to, int n, int left)"
        ),
        "{}",
        new.text()
    );
    let hidden = loops.replace("const float* RESTRICT from", "In from").replacen(
        "__global__",
        "using In = const float* RESTRICT;\n__global__",
        1,
    );
    refuses(
        "persistent-loop",
        &hidden,
        "parameter `from` of `sweep` has a type that hides `__restrict__`",
    );
}

/// What the members of a class promise is the same in a function with the child's body: only a type of its own that hides it is refused.
#[test]
fn members_that_are_restrict() {
    let list = "typedef struct { const int* __restrict__ ids; int* labels; } list_t;";
    let child = format!(
        "{list}\n__global__ void child(list_t list, int begin, int count) {{\n    list.labels[list.ids[begin + threadIdx.x]] = count;\n}}\n"
    );
    let text = with_child(&child, LAUNCH)
        .replace("(out, begin", "(list, begin")
        .replace("int* out, const int* row", "list_t list, const int* row")
        .replace("(out, row", "(list, row")
        .replace("run(int* out", "run(list_t list");
    for id in ["aggregate-block", "threshold"] {
        rewrite(id, &text);
    }
}
