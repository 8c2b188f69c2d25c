//! Kernels that ask for errors of their launches: what becomes of a launch takes for granted that none fails.

use super::{program, refuses, rewrite, with_child};

const LAUNCH: &str = "child<<<(count + 31) / 32, 32>>>(out, begin, count);";
const TEXT: &str = "no launch and no other call of CUDA's runtime fails in";

fn assumed(id: &str, text: &str) -> Vec<String> {
    let all = rewrite(id, text).assumes;
    all.into_iter().filter(|a| a.contains(TEXT)).collect()
}

#[test]
fn that_none_fails_is_taken_for_granted() {
    let asks = program(&format!(
        r#"{LAUNCH}
    if (cudaGetLastError() != cudaSuccess) out[v] = -1;"#
    ));
    let checked = program(&format!("{LAUNCH}\n    check();")).replace(
        "__global__ void parent",
        r#"__device__ void check() { if (cudaPeekAtLastError()) __trap(); }
__global__ void parent"#,
    );
    let all = [
        "aggregate-warp",
        "aggregate-block",
        "aggregate-multiblock",
        "aggregate-grid",
        "aggregate-grid-host",
        "aggregate-grid-stream",
        "coarsen",
        "threshold",
        "serialize",
    ];
    for id in all {
        let found = assumed(id, &asks);
        assert_eq!(found.len(), 1, "{id}: {found:?}");
        assert!(
            found[0].contains("`parent`") && found[0].contains("cudaGetLastError()"),
            "{found:?}"
        );
        assert!(
            rewrite(id, &asks)
                .text()
                .contains("if (cudaGetLastError() != cudaSuccess) out[v] = -1;")
        );
        assert_eq!(assumed(id, &checked).len(), 1, "{id}");
        assert!(assumed(id, &program(LAUNCH)).is_empty(), "{id}");
    }
    // Each launch is one as before, and may fail as before.
    assert!(assumed("fire-and-forget", &asks).is_empty());
}

#[test]
fn children_that_ask() {
    let child = r#"__global__ void child(int* out, int begin, int count) {
    if (cudaGetLastError() == cudaSuccess) atomicAdd(&out[begin + threadIdx.x], 1);
}
"#;
    for id in ["aggregate-block", "coarsen", "threshold", "serialize"] {
        let found = assumed(id, &with_child(child, LAUNCH));
        assert_eq!(found.len(), 1, "{id}: {found:?}");
        assert!(found[0].contains("`child`"), "{id}: {found:?}");
    }
}

#[test]
fn recursion_that_asks_is_left_alone() {
    let kernel = r#"__global__ void kernel(int* out, int depth) {
    atomicAdd(&out[depth], 1);
    if (depth < 4 && threadIdx.x == 0) {
        $0kernel<<<1, 32>>>(out, depth + 1);
        if (cudaGetLastError() != cudaSuccess) out[0] = -1;
    }
}
int main() { int* out = nullptr; kernel<<<1, 32>>>(out, 0); return cudaDeviceSynchronize(); }
"#;
    refuses("flatten-recursion", kernel, "cudaGetLastError()");
}
