//! What else takes its turn in the stream of a launch, for every rewrite that keeps no order among grids.

use super::{refuses, rewrite, rewrite_files};

/// Rewrites of a launch into the NULL stream that give its grid no turn there.
const UNORDERED: &[&str] = &[
    "fire-and-forget",
    "serialize",
    "threshold",
    "aggregate-warp",
    "aggregate-block",
    "aggregate-grid",
    "aggregate-multiblock",
    "aggregate-grid-host",
    "aggregate-grid-stream",
];

/// A parent of which one thread a block does `launch`, with what stands in front of it and other parameters.
fn program(head: &str, params: &str, launch: &str) -> String {
    format!(
        r#"__global__ void child(int* p, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] += n;
}}

{head}__global__ void parent(int* p, int n{params}) {{
    if (threadIdx.x != 0) return;
    int* own = p + 32 * blockIdx.x;
    {launch}
}}

void run(int* p, int* q, int n) {{
    parent<<<4, 64>>>(p, n{});
}}
"#,
        if params.is_empty() { "" } else { ", q" }
    )
}

#[test]
fn memory_that_is_set_in_the_stream_of_a_launch() {
    for before in [
        "cudaMemsetAsync(own, 0, 4 * n);",
        "cudaMemsetAsync(own, 0, 4 * n, 0);",
        "cudaMemsetAsync(own, 0, 4 * n, nullptr);",
        "::cudaMemsetAsync(own, 0, 4 * n, (cudaStream_t)0);",
        "cudaMemset2DAsync(own, 4, 0, 4, n, 0);",
        "cudaMemcpy2DAsync(own, 4, own + 8, 4, 4, n, cudaMemcpyDeviceToDevice, 0);",
        "cudaStream_t s = 0;\n    cudaMemsetAsync(own, 0, 4 * n, s);",
        "if (cudaMemsetAsync(own, 0, 4 * n, 0) != cudaSuccess) return;",
        "cudaMemset3DAsync(make_cudaPitchedPtr(own, 4, 4, 4), 0, make_cudaExtent(4, 4, 4), 0);",
    ] {
        let text = program("", "", &format!("{before}\n    child<<<(n + 31) / 32, 32>>>(own, n);"));
        for id in UNORDERED {
            refuses(id, &text, "in the order in which they are put there");
        }
    }
    // Behind the launch, by a function, by a macro, by whoever calls the launching function.
    let after = program(
        "",
        "",
        r#"child<<<(n + 31) / 32, 32>>>(own, n);
    cudaMemcpyAsync(p + 512, own, 4 * n, cudaMemcpyDeviceToDevice);"#,
    );
    let clear = "__device__ void clear(int* p, int n) { cudaMemsetAsync(p, 0, 4 * n, 0); }\n";
    let called = program(clear, "", "clear(own, n);\n    child<<<(n + 31) / 32, 32>>>(own, n);");
    let macros = program(
        "#define CLEAR cudaMemsetAsync(own, 0, 4 * n)\n",
        "",
        "CLEAR;\n    child<<<(n + 31) / 32, 32>>>(own, n);",
    );
    let go = "__device__ void go(int* p, int n) { $0child<<<(n + 31) / 32, 32>>>(p, n); }\n";
    let caller = program(go, "", "cudaMemsetAsync(own, 0, 4 * n, 0);\n    go(own, n);");
    for text in [after, called, macros, caller] {
        for id in ["fire-and-forget", "serialize", "aggregate-block", "aggregate-grid"] {
            refuses(id, &text, "in the order in which they are put there");
        }
    }
}

#[test]
fn memory_that_is_set_elsewhere() {
    for (params, other, assumed) in [
        // Another stream, or none that keeps an order.
        ("", "cudaMemsetAsync(own, 0, 4 * n, cudaStreamFireAndForget);", false),
        (
            "",
            r#"cudaStream_t s;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    cudaMemsetAsync(own, 0, 4 * n, s);
    cudaStreamDestroy(s);"#,
            false,
        ),
        // Both only read it.
        (", int* q", "cudaMemsetAsync(q, 0, 4 * n, 0);", true),
    ] {
        let text = program(
            "",
            params,
            &format!("{other}\n    child<<<(n + 31) / 32, 32>>>(own, n);"),
        );
        for id in ["fire-and-forget", "serialize", "aggregate-block"] {
            let said = rewrite(id, &text).assumes;
            let of_operation = said
                .iter()
                .any(|a| a.contains("which `parent` puts into the same stream"));
            assert_eq!(of_operation, assumed, "{id}: {other}: {said:?}");
        }
    }
    // Nothing else names that memory.
    let text = program(
        "__device__ int done[4];\n",
        "",
        r#"cudaMemsetAsync(done, 0, 16, 0);
    child<<<(n + 31) / 32, 32>>>(own, n);"#,
    );
    let said = rewrite("fire-and-forget", &text).assumes;
    assert!(said.iter().all(|a| a.contains("cudaMemsetAsync()")), "{said:?}");
}

#[test]
fn a_stream_of_its_own_has_an_order_too() {
    let text = program(
        "",
        "",
        r#"cudaStream_t s;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    cudaMemsetAsync(own, 0, 4 * n, s);
    child<<<(n + 31) / 32, 32, 0, s>>>(own, n);
    cudaStreamDestroy(s);"#,
    );
    for id in ["serialize", "threshold"] {
        refuses(id, &text, "in the order in which they are put there");
    }
}

#[test]
fn a_child_that_sets_memory_in_a_stream() {
    let child = |stream: &str| {
        format!(
            r#"__global__ void child(int* p, int n) {{
    if (threadIdx.x == 0) cudaMemsetAsync(p, 0, 4 * n, {stream});
}}

__global__ void parent(int* p, int n) {{
    if (threadIdx.x == 0) child<<<1, 32>>>(p + 32 * blockIdx.x, n);
}}

void run(int* p, int n) {{ parent<<<4, 64>>>(p, n); }}
"#
        )
    };
    refuses("serialize", &child("0"), "sets or copies memory in a stream");
    refuses(
        "aggregate-block",
        &child("cudaStreamTailLaunch"),
        "depends on which grid it is",
    );
    assert!(rewrite_files("aggregate-block", &[("a.cu", &child("0"))], &[]).is_ok());
    assert!(rewrite_files("fire-and-forget", &[("a.cu", &child("0"))], &[]).is_ok());
}

#[test]
fn iterations_wait_for_what_is_in_a_stream() {
    let text = r#"__global__ void march(int* p, int k, int n) {
    p[blockIdx.x * blockDim.x + threadIdx.x] += k;
    if (blockIdx.x == 0 && threadIdx.x == 0 && k < n) {
        cudaMemsetAsync(p, 0, 4, 0);
        march<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(p, k + 1, n);
    }
}

void run(int* p, int n) { march<<<8, 64>>>(p, 0, n); }
"#;
    refuses(
        "persistent-loop",
        text,
        "the next iteration waits for `cudaMemsetAsync()`",
    );
    let chain = r#"__global__ void link(int* p, int k, int n) {
    p[threadIdx.x] += k;
    if (threadIdx.x == 0 && k < n) {
        cudaMemsetAsync(p + 512, 0, 4, 0);
        link<<<1, blockDim.x>>>(p, k + 1, n);
    }
}

void run(int* p, int n) { link<<<1, 64>>>(p, 0, n); }
"#;
    for id in ["promote", "promote-overlap"] {
        refuses(id, chain, "uses cudaMemsetAsync()");
    }
}
