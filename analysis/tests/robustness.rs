//! Any input gives an answer: broken, cut, binary, huge, deeply nested.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::diagnostics::diagnostics;
use gridfuse_analysis::facts::launch::{LaunchId, launches, who_launches};
use gridfuse_analysis::hir::body;
use gridfuse_analysis::hir::items::{items, places};
use gridfuse_analysis::hir::resolve::{declarations_of, launch_sites_of, other_mentions};
use gridfuse_analysis::host::Host;

const PROGRAM: &str = r#"
#include "gridfuse.cuh"
#define KERNEL __global__ void
#define DIVUP(a, b) (((a) + (b) - 1) / (b))
namespace graph {
template <int N, class T = float>
KERNEL __launch_bounds__(128, 2, 1) expand(const int* __restrict__ col, T (*fp)(int), int begin, unsigned count = 3) {
    extern __shared__ int dynamic[];
    __shared__ __align__(8) float tile[32][N + 1];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    #pragma unroll
    for (int k = 0; k < N; ++k) tile[k][i] = col[begin + i] ? 'x' : "é"[0];
    switch (i) { case 1: case 2: break; default: goto end; }
    auto f = [=] __device__ (int q) mutable { expand<N, T><< <1, q>> >(col, fp, q, q); };
end:
    f(1'000);
}
}
__global__ void parent(const int* row, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
#if DEBUG
    if (v < n) {
#else
    if (v + 1 < n) {
#endif
        while (int k = row[v]) graph::expand<3><<<DIVUP(k, 128), dim3(128, 1, 1), 0, cudaStreamFireAndForget>>>(row, nullptr, v, k);
    } else if (n) cudaDeviceSynchronize();
}
int main() { parent<<<1, 2>>>(0, 0); asm volatile("x" : "=r"(n) : "r"(m)); return 0; }
"#;

/// Runs every query on a text.
fn everything(host: &Host, path: &Path) -> usize {
    let db = host.db();
    let file = host.file(path).unwrap();
    let _ = places(db, file);
    for function in &items(db, file).functions {
        let _ = body(db, *function);
        for index in 0..launches(db, *function).len() {
            let _ = who_launches(
                db,
                LaunchId {
                    function: *function,
                    index: index as u32,
                },
            );
        }
        let _ = (
            launch_sites_of(db, *function),
            other_mentions(db, *function),
            declarations_of(db, *function),
        );
    }
    diagnostics(db, file).len()
}

fn analyse(text: &str) -> usize {
    let path = Path::new("/w/any.cu");
    let mut host = Host::new();
    host.set_file(path, text);
    everything(&host, path)
}

#[test]
fn the_program_is_understood() {
    assert_eq!(analyse(PROGRAM), 2);
}

#[test]
fn every_prefix_and_every_hole() {
    let path = Path::new("/w/any.cu");
    let mut host = Host::new();
    host.set_file(path, "");
    for end in (0..PROGRAM.len()).filter(|i| PROGRAM.is_char_boundary(*i)).step_by(7) {
        host.set_file(path, &PROGRAM[..end]);
        everything(&host, path);
    }
    // Incrementally: take each piece out and put it back.
    host.set_file(path, PROGRAM);
    everything(&host, path);
    for start in (0..PROGRAM.len() - 9).step_by(11) {
        let (mut from, mut to) = (start, start + 9);
        while !PROGRAM.is_char_boundary(from) {
            from -= 1;
        }
        while !PROGRAM.is_char_boundary(to) {
            to += 1;
        }
        host.edit_file(path, TextRange::new(from as u32, to as u32), "");
        everything(&host, path);
        host.edit_file(path, TextRange::empty(from as u32), &PROGRAM[from..to]);
    }
    assert_eq!(everything(&host, path), 2);
}

#[test]
fn odd_files() {
    assert_eq!(analyse(""), 0);
    assert_eq!(analyse("\u{feff}"), 0);
    assert_eq!(analyse("\0\u{1}\u{fffd}\u{fffd}\0"), 0);
    assert_eq!(analyse(&PROGRAM.replace('\n', "\r\n")), 2);
    assert_eq!(analyse(&PROGRAM.replace("    ", "\t")), 2);
    assert_eq!(analyse(&"/".repeat(1000)), 0);
    assert_eq!(analyse("#define"), 0);
    assert_eq!(analyse("#if\n#else\n#endif\n#endif\n#elif"), 0);
    assert_eq!(
        analyse(
            r#"#define A B
#define B A
__global__ void k(int* p) { p[A] = B; k<<<A, B>>>(p); }"#
        ),
        1
    );
    assert_eq!(
        analyse(
            r#"#define F(x) F(x) + F(x)
__global__ void k(int* p) { p[F(F(1))] = 0; }"#
        ),
        0
    );
    assert_eq!(
        analyse("__global__ void k() { auto x = x; dim3 g = g; k<<<g, x>>>(); }"),
        1
    );
}

#[test]
fn deep_nesting() {
    for (open, close) in [
        ("(", ")"),
        ("{", "}"),
        ("-", ""),
        ("[", "]"),
        ("if (x) ", ""),
        ("a<", ">"),
        ("f(", ")"),
    ] {
        let text = format!(
            "__global__ void k(int x) {{ x = {}1{}; }}",
            open.repeat(3_000),
            close.repeat(3_000)
        );
        analyse(&text);
    }
    analyse(&format!(
        "__global__ void k(int x) {{ {} }}",
        "if (x) { for (;;) ".repeat(2_000)
    ));
    analyse(&format!(
        "__global__ void k(int x) {{ x = 1{}; }}",
        " + 1".repeat(3_000)
    ));
    analyse(&format!(
        "__global__ void k(int x) {{ if (x) x = 1; {} }}",
        "else if (x == 2) x = 3; ".repeat(2_000)
    ));
    analyse(&"namespace a { ".repeat(2_000));
}

#[test]
fn five_megabytes() {
    let mut text = String::with_capacity(5 << 20);
    let mut i = 0;
    while text.len() < 5 << 20 {
        text.push_str(
            &PROGRAM
                .replace("graph", &format!("graph{i}"))
                .replace("parent", &format!("parent{i}"))
                .replace("expand", &format!("expand{i}"))
                .replace("main", &format!("main{i}")),
        );
        i += 1;
    }
    let path = Path::new("/w/any.cu");
    let mut host = Host::new();
    host.set_file(path, text);
    let db = host.db();
    let found = diagnostics(db, host.file(path).unwrap()).len();
    assert!(found >= 2 * i - 2, "{found} of {i}");
}
