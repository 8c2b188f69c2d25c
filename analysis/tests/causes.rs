//! The causes that diagnostics name, with their places.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gridfuse_analysis::diagnostics::diagnostics;
use gridfuse_analysis::host::Host;

const HEAD: &str = "__global__ void child(int* out, int n) { if (threadIdx.x < n) out[threadIdx.x] = n; }\n";

/// The causes of the first finding of this kind: `source: message`.
#[track_caller]
fn causes(id: &str, source: &str) -> Vec<String> {
    let source = format!("{HEAD}{source}");
    let mut host = Host::new();
    let file = host.set_file("/a.cu".as_ref(), source.as_str());
    let all = diagnostics(host.db(), file);
    let found = all.iter().find(|d| d.id == id);
    let found = found.unwrap_or_else(|| panic!("no {id} among {:?}", all.iter().map(|d| d.id).collect::<Vec<_>>()));
    let text = |start: u32, end: u32| &source[start as usize..end as usize];
    let line = |r: &gridfuse_analysis::diagnostics::diagnostic::Related| {
        format!("{}: {}", text(r.place.range.start, r.place.range.end), r.message)
    };
    found.related.iter().map(line).collect()
}

#[track_caller]
fn are(id: &str, source: &str, expected: &[&str]) {
    assert_eq!(causes(id, source), expected, "{source}");
}

#[test]
fn an_empty_grid_comes_from_where_its_size_does() {
    are(
        "empty-grid",
        "__global__ void parent(const int* row, int* out) {
             int begin = row[blockIdx.x], end = row[blockIdx.x + 1];
             int count = end - begin;
             dim3 grid((count + 127) / 128);
             if (threadIdx.x == 0) child<<<grid, 128>>>(out, 1);
         }",
        &[
            "((count + 127) / 128): `grid` is set here",
            "end - begin: `count` is set here",
            "row[blockIdx.x + 1]: `end` is loaded here",
            "row[blockIdx.x]: `begin` is loaded here",
        ],
    );
    are(
        "empty-grid",
        "__global__ void parent(int* out) { if (threadIdx.x == 0) child<<<0, 128>>>(out, 1); }",
        &[],
    );
}

#[test]
fn a_block_size_comes_from_a_variable() {
    let parent = |size: &str| {
        format!(
            "__global__ void parent(int* out, int n) {{ {size} if (threadIdx.x == 0) child<<<n, block>>>(out, n); }}"
        )
    };
    are(
        "partial-warp",
        &parent("const int side = 10; dim3 block(side, side);"),
        &["(side, side): `block` is set here", "10: `side` is set here"],
    );
    are(
        "oversized-block",
        &parent("int block = 2048;"),
        &["2048: `block` is set here"],
    );
    assert!(
        causes(
            "partial-warp",
            "__global__ void parent(int* out) { if (threadIdx.x == 0) child<<<4, 100>>>(out, 1); }"
        )
        .is_empty()
    );
}

#[test]
fn launches_that_nobody_checks_are_all_named() {
    are(
        "unchecked-launch",
        "__global__ void parent(int* out) {
             if (out[threadIdx.x]) child<<<2, 32, 0, cudaStreamFireAndForget>>>(out, 1);
             else child<<<2, 64, 0, cudaStreamFireAndForget>>>(out, 2);
         }",
        &["child<<<2, 64, 0, cudaStreamFireAndForget>>>(out, 2): nor is this one"],
    );
}

#[test]
fn an_endless_recursion_begins_somewhere() {
    are(
        "endless-recursion",
        "__global__ void again(int* out, int n) {
             if (threadIdx.x == 0 && blockIdx.x == 0) again<<<1, 32>>>(out, n + 1);
         }
         int main() { again<<<8, 32>>>(nullptr, 0); }",
        &[
            "threadIdx.x == 0 && blockIdx.x == 0: this picks threads of the grid, but doesn't end the recursion",
            "again<<<8, 32>>>(nullptr, 0): the first one is launched here",
        ],
    );
}

#[test]
fn streams_are_lost_and_forgotten() {
    are(
        "leaked-stream",
        "__global__ void parent(int* out, int n) {
             if (threadIdx.x != 0) return;
             cudaStream_t stream;
             cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
             child<<<1, 64, 0, stream>>>(out, 1);
             child<<<1, 64, 0, stream>>>(out, 2);
             if (n) return;
             out[0] = 1;
         }",
        &[
            "child<<<1, 64, 0, stream>>>(out, 2): the last use of it",
            "return;: returns without destroying it",
        ],
    );
    are(
        "unused-stream",
        "__global__ void parent(int* out) {
             if (threadIdx.x != 0) return;
             cudaStream_t stream;
             cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
             child<<<1, 64>>>(out, 1);
             cudaStreamDestroy(stream);
         }",
        &["child<<<1, 64>>>(out, 1): this launch names no stream"],
    );
}

#[test]
fn memory_is_allocated_in_a_loop() {
    are(
        "device-malloc",
        "__global__ void parent(int** out, int n) { for (int i = 0; i < n; ++i) out[i] = (int*)malloc(n); }",
        &["for (int i = 0; i < n; ++i) : again in every iteration of this loop"],
    );
}

#[test]
fn what_follows_a_synchronization_depends_on_the_child() {
    are(
        "device-sync",
        "__global__ void parent(int* out, int* sum, int n) {
             if (threadIdx.x != 0) return;
             child<<<1, 64>>>(out, n);
             cudaDeviceSynchronize();
             sum[0] = n;
             sum[1] = out[0];
             for (int i = 0; i < 64; ++i) sum[1] += out[i];
         }",
        &[
            "out[0]: reads what `child` writes",
            "out[i]: perhaps reads what `child` writes",
        ],
    );
}
