//! Code that runs without being called by its name, and writes that aren't seen as such: nothing is proven where there is some.

use super::fixes::fix;
use super::{program, refuses, rewrite, with_child};

/// A child with these definitions before it.
fn child(definitions: &str, code: &str) -> String {
    format!(
        r#"{definitions}
__global__ void child(int* out, int begin, int count) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {code}
}}
"#
    )
}

const ADDS: &str = r#"struct Log { int* p; };
__device__ Log& operator+=(Log& log, int n) { log.p[0] += n; return log; }"#;
const GUARD: &str = "struct Guard { __device__ ~Guard() { __syncthreads(); } };";

#[test]
fn references_that_functions_return() {
    let at = "__device__ int& at(int* p, int i) { return p[i]; }";
    for write in [
        "at(out, i) = at(out, i) * 2 + 1;",
        "at(out, i) += 1;",
        "++at(out, i);",
        "at(out, i)--;",
    ] {
        let text = with_child(
            &child(at, write),
            "for (int k = 0; k < 3; ++k) $0child<<<1, 32>>>(out, k, count);",
        );
        for id in ["fire-and-forget", "aggregate-block"] {
            let assumes = rewrite(id, &text).assumes;
            assert!(
                assumes.iter().any(|a| a.contains("successive iterations")),
                "{write} {id}: {assumes:?}"
            );
        }
    }
}

#[test]
fn operators_and_destructors_of_children() {
    for (definitions, code) in [
        (ADDS, "Log log{out};\n    log += i;"),
        (
            GUARD,
            r#"Guard guard;
    if (i >= count) return;
    out[i] = i;"#,
        ),
    ] {
        let text = with_child(&child(definitions, code), "$0child<<<4, 64>>>(out, begin, count);");
        for id in [
            "threshold",
            "serialize",
            "coarsen",
            "aggregate-block",
            "aggregate-grid-stream",
        ] {
            refuses(id, &text, "which isn't called by its name");
        }
        let assumes = rewrite("fire-and-forget", &text).assumes;
        assert!(assumes.iter().any(|a| a.contains("different threads")), "{assumes:?}");
    }
}

#[test]
fn waits_for_what_operators_do() {
    let wait = |definitions: &str, parent: &str| {
        let text = format!(
            r#"{definitions}
__global__ void child(int* out, int n) {{ if (threadIdx.x < n) out[threadIdx.x] = n; }}
__global__ void parent(int* out, int n) {{
{parent}
}}
void run(int* out, int n) {{ parent<<<1, 1>>>(out, n); }}
"#
        );
        fix("replace-device-sync", &text, &[])
    };
    let launch = r#"    child<<<1, 32>>>(out, n);
    $0cudaDeviceSynchronize();"#;
    // Without anything behind it the wait isn't needed.
    let result = wait(GUARD, &format!("    int k = n;\n{launch}"));
    assert!(result.is_ok_and(|(text, _)| !text.contains("_after_")));
    let result = wait(
        ADDS,
        &format!(
            r#"    Log log{{out}};
{launch}
    log += n;"#
        ),
    );
    assert!(!result.is_ok_and(|(text, _)| !text.contains("_after_")));
    let freed = r#"struct Buffer { int* p; __device__ Buffer(int n) { p = new int[n]; }
    __device__ ~Buffer() { delete[] p; } };"#;
    let result = wait(
        freed,
        r#"    Buffer buffer(n);
    child<<<1, 32>>>(buffer.p, n);
    $0cudaDeviceSynchronize();"#,
    );
    assert!(result.is_err_and(|reasons| reasons.iter().any(|r| r.contains("of Buffer"))));
}

#[test]
fn what_cannot_be_evaluated_twice() {
    let counter = "struct Counter { int v; __device__ int operator+(int k) { v += k; return v; } };";
    let next = "__device__ int next(int& g) { return ++g; }";
    let with = |definitions: &str, launch: &str| {
        with_child(&child(definitions, "if (i < count) out[begin + i] = count;"), launch)
    };
    refuses(
        "coarsen",
        &with(
            counter,
            r#"Counter c{8};
    $0child<<<c + 2, 32>>>(out, begin, count);"#,
        ),
        "evaluated twice",
    );
    for id in ["coarsen", "aggregate-grid", "threshold"] {
        let text = with(next, "int g = 8;\n    $0child<<<g, 32>>>(out, begin, next(g));");
        refuses(id, &text, "may change `g`, which its configuration depends on");
    }
    // It has nothing to do with the configuration.
    let text = with(next, "int g = 8;\n    $0child<<<4, 32>>>(out, begin, next(g));");
    rewrite("aggregate-grid", &text);
}

#[test]
fn functions_that_are_not_in_sight_may_launch() {
    let launch = "child<<<(count + 31) / 32, 32>>>(out, begin, count);";
    let elsewhere = program(&format!("go(out);\n    $0{launch}")).replace(
        "__global__ void parent",
        "__device__ void go(int* out);\n__global__ void parent",
    );
    for id in ["aggregate-grid", "threshold", "serialize", "fire-and-forget"] {
        let assumes = rewrite(id, &elsewhere).assumes;
        let other = assumes
            .iter()
            .any(|a| a.contains("launches into the NULL stream, if `go`"));
        assert!(other, "{id}: {assumes:?}");
    }
}

#[test]
fn conversions_that_change_a_parameter() {
    let text = r#"struct Next { mutable int n; __device__ operator int() const { return n++; } };
__global__ void k(Next next, int* out, int t) {
    int v = next;
    out[t] = v;
    if (threadIdx.x == 0 && t < 4) $0k<<<1, 32>>>(next, out, t + 1);
}
void run(Next next, int* out) { k<<<1, 32>>>(next, out, 0); }
"#;
    for id in ["promote", "flatten-recursion"] {
        refuses(id, text, "a conversion of Next");
    }
}

#[test]
fn default_arguments_of_callees() {
    let launch = "$0child<<<4, 64>>>(out, begin, count);";
    for definition in [
        "__device__ int blocks(int k = gridDim.x) { return k; }",
        r#"__device__ int blocks(int k = gridDim.x);
__device__ int blocks(int k) { return k; }"#,
    ] {
        let text = with_child(&child(definition, "if (i < count) out[i] = blocks();"), launch);
        for id in ["coarsen", "aggregate-block", "threshold", "serialize"] {
            refuses(id, &text, "`child` calls `blocks`, which reads `gridDim` itself");
        }
    }
    let plain = "__device__ int blocks(int k = 4) { return k; }";
    rewrite(
        "coarsen",
        &with_child(&child(plain, "if (i < count) out[i] = blocks();"), launch),
    );
}
