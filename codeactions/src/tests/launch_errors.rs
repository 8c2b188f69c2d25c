//! Kernels that ask for errors of their launches: what becomes of a launch takes for granted that none fails.

use super::{program, refuses, rewrite, with_child};

const LAUNCH: &str = "child<<<(count + 31) / 32, 32>>>(out, begin, count);";
const TEXT: &str = "no CUDA call fails in";

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

#[test]
fn grids_that_would_be_refused_are_named() {
    let assumed = |id: &str, launch: &str, bounds: &str| -> Vec<String> {
        let text = program(launch).replace("__global__ void child", &format!("__global__ void {bounds} child"));
        let all = rewrite(id, &text).assumes;
        all.into_iter().filter(|a| a.contains("CUDA accepts")).collect()
    };
    let shared = |bytes: &str| format!("child<<<(count + 31) / 32, 32, {bytes}>>>(out, begin, count);");
    for id in ["threshold", "serialize"] {
        for bytes in ["count * 8192", "64 * 1024"] {
            let found = assumed(id, &shared(bytes), "");
            assert!(
                found.len() == 1 && found[0].contains(&format!("`{bytes}` bytes")),
                "{id} {bytes}: {found:?}"
            );
        }
        for bytes in ["0", "4096", "48 * 1024", "32 * sizeof(int)"] {
            assert!(assumed(id, &shared(bytes), "").is_empty(), "{id} {bytes}");
        }
        let launch = "child<<<1, count>>>(out, begin, count);";
        let found = assumed(id, launch, "__launch_bounds__(64)");
        assert!(
            found.len() == 1 && found[0].contains("__launch_bounds__"),
            "{id}: {found:?}"
        );
        assert!(assumed(id, launch, "").is_empty(), "{id}");
        let launch = "child<<<count, 64>>>(out, begin, count);";
        assert!(assumed(id, launch, "__launch_bounds__(64)").is_empty(), "{id}");
        assert_eq!(assumed(id, launch, "__launch_bounds__(32)").len(), 1, "{id}");
        assert_eq!(assumed(id, launch, "__launch_bounds__(LIMIT)").len(), 1, "{id}");
    }
    // It stays a launch, and CUDA refuses it as before.
    for id in ["coarsen", "aggregate-block"] {
        assert!(assumed(id, &shared("64 * 1024"), "").is_empty(), "{id}");
    }
}
