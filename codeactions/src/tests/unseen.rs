//! What a header that isn't found defines may do anything: classes, macros, operators, as functions.

use super::{refuses, rewrite, rewrite_files};

/// A child with these includes and definitions before it, and this code in it.
fn program(before: &str, code: &str) -> String {
    format!(
        r#"{before}
__global__ void child(int* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {code}
    if (i < n) out[i] += i;
}}
__global__ void parent(int* out, int n) {{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    child<<<2, 32>>>(out + 64 * t, n);
}}
void run(int* out) {{ parent<<<2, 32>>>(out, 64); }}
"#
    )
}

const REWRITES: [&str; 5] = [
    "aggregate-block",
    "aggregate-grid-stream",
    "threshold",
    "serialize",
    "coarsen",
];

#[test]
fn what_is_not_seen_is_not_moved() {
    let guard = "#include \"guard.h\"";
    for (before, code, name) in [
        (guard, "Guard guard;", "Guard"),
        (guard, "Guard guard(out);", "Guard"),
        (guard, "Guard guard{out};", "Guard"),
        (guard, "const Guard guard = out;", "Guard"),
        (guard, "Guard<int> guard(out);", "Guard"),
        (guard, "util::Guard guard(out);", "util::Guard"),
        (guard, "Guard guards[4];", "Guard"),
        (guard, "Guard{out};", "Guard"),
        (guard, "Guard(out);", "Guard"),
        (guard, "auto guard = Guard{out};", "Guard"),
        (guard, "i = (int)Guard(out);", "Guard"),
        (guard, "static_cast<Guard>(out);", "Guard"),
        (guard, "BARRIER;", "BARRIER"),
        (guard, "if (n > 3) BARRIER;", "BARRIER"),
        ("", "BARRIER;", "BARRIER"),
        (guard, "BARRIER();", "BARRIER"),
        (guard, "Guard& g = *(Guard*)out; g += 3;", "Guard"),
        (guard, "Guard* g = (Guard*)out; g[i] = g[i + 1];", "Guard"),
        (
            "#include \"guard.h\"\nstruct Mine { Guard g; int x; };",
            "Mine m;",
            "Mine",
        ),
        (
            "#include \"guard.h\"\nstruct Mine : public Guard { int x; };",
            "Mine m;",
            "Mine",
        ),
        ("#include \"guard.h\"\nusing Mine = Guard;", "Mine m;", "Mine"),
        ("#include <lib/guard.h>", "Guard guard;", "Guard"),
        (
            r#"#include "guard.h"
__device__ int index() { return GLOBAL_ID; }"#,
            "i = index();",
            "GLOBAL_ID",
        ),
        (
            r#"#include "guard.h"
__device__ int index(int i) { Guard g; return i; }"#,
            "i = index(i);",
            "Guard",
        ),
    ] {
        for id in REWRITES {
            refuses(id, &program(before, code), &format!("`{name}"));
        }
        let assumes = rewrite("fire-and-forget", &program(before, code)).assumes;
        let value = name == "GLOBAL_ID";
        assert!(value || !assumes.is_empty(), "{code}: {assumes:?}");
    }
}

#[test]
fn what_is_harmless_is_moved() {
    for (before, code) in [
        ("#include \"sizes.h\"", "if (i >= BLOCK_SIZE * 4) return;"),
        (
            "#include \"sizes.h\"",
            "float f = FLT_MAX; if (f < i || INT_MAX < i) return;",
        ),
        (
            "#include <vector>\n#include <cuda_runtime.h>\n#include <cub/cub.cuh>\n#include <cstdint>",
            "size_t big = SIZE_MAX; uint32_t f = 3; if (i > big || f < 0) return;",
        ),
        (
            "#include \"node.h\"",
            "Node* p = (Node*)out; if (p->next == nullptr) return;",
        ),
        (
            r#"#include "vec.h"
struct Pair { int a, b; };
enum Kind { kOne, kTwo };
using Number = unsigned;"#,
            "Pair p{1, 2}; Kind k = kOne; const Number m = 3; float4 f = make_float4(0, 0, 0, 0); if (p.a + m < k + f.x) return;",
        ),
        (
            "#include \"vec.h\"\nclass Timer { Clock clock; };",
            "struct Local { int x; }; Local l{3}; typedef int Mine; Mine m = l.x; if (m < i) return;",
        ),
    ] {
        for id in REWRITES {
            rewrite(id, &program(before, code));
        }
    }
}

/// A workspace holds many programs, as a collection of samples does: what has a `main` of its own is no part of this one.
#[test]
fn names_of_other_programs() {
    let program = r#"__global__ void build(int* out, int n) { if (threadIdx.x < n) out[threadIdx.x] = n; }
__global__ void parent(int* out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    $0build<<<1, 32>>>(out + 32 * t, n);
}
int main() { int* out; cudaMalloc(&out, 8192); parent<<<2, 32>>>(out, 64); cudaDeviceSynchronize(); }
"#;
    let other = |head: &str| {
        format!(
            "{head} {{ int nb = 9; std::vector<int> build(nb), probe(3); auto next = [&] {{ return 3; }}; for (auto& k : build) k = next(); }}\n"
        )
    };
    let rewritten = rewrite_files(
        "aggregate-block",
        &[("a.cu", program), ("b.cu", &other("int main()"))],
        &[],
    );
    assert!(rewritten.is_ok(), "{:?}", rewritten.err());
    // What has none may be a part of it, and may declare the kernel: `std::vector<int> build(T)`.
    let rewritten = rewrite_files(
        "aggregate-block",
        &[("a.cu", program), ("b.cu", &other("void fill()"))],
        &[],
    );
    assert!(rewritten.is_err());
}
