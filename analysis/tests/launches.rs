//! Launch facts of small programs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::launch::{Child, LaunchFacts, LaunchId, Launchers, Stream, launches, takes_flat_blocks};
use gridfuse_analysis::hir::body;
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::host::Host;

/// The text of a recovered thread count, and the form.
type Threads = Option<(String, &'static str)>;

fn each(files: &[(&str, &str)], in_function: &str, check: impl Fn(&Host, &LaunchFacts<'_>, &str)) {
    let mut host = Host::new();
    for (path, text) in files {
        host.set_file(path.as_ref(), *text);
    }
    let db = host.db();
    let mut seen = 0;
    for (path, _) in files {
        let file = host.file(path.as_ref()).unwrap();
        for function in items(db, file)
            .functions
            .iter()
            .filter(|f| f.has_body(db) && f.name(db) == in_function)
        {
            assert!(
                body(db, *function).problems.is_empty(),
                "{:?}",
                body(db, *function).problems
            );
            let text = function.text(db);
            for facts in launches(db, *function) {
                seen += 1;
                check(&host, facts, &text);
            }
        }
    }
    assert_ne!(seen, 0, "no launch in {in_function}");
}

fn parent(statements: &str) -> String {
    format!(
        r#"#define DIVUP(a, b) (((a) + (b) - 1) / (b))
constexpr int kBlock = 128;
__host__ __device__ inline int div_up(int n, int b) {{ return (n + b - 1) / b; }}
__host__ __device__ inline int blocks_for(int per_block, int n) {{ return 1 + (n - 1) / per_block; }}
__global__ void child(int* out, int n) {{ out[n] = 1; }}
__global__ void parent(int* out, int n, int m, const int* row) {{
{statements}
}}
"#
    )
}

fn threads(statements: &str) -> Threads {
    let source = parent(statements);
    let found = std::cell::RefCell::new(None);
    each(&[("/w/a.cu", &source)], "parent", |_, facts, text| {
        *found.borrow_mut() = facts.threads.as_ref().map(|t| (t.span.text(text).to_owned(), t.form));
    });
    found.into_inner()
}

#[test]
fn ceiling_divisions_give_the_number_of_threads() {
    let is = |statements: &str, n: &str| {
        let found = threads(statements);
        assert_eq!(found.as_ref().map(|t| t.0.as_str()), Some(n), "{statements}");
    };
    is("child<<<(n + 127) / 128, 128>>>(out, n);", "n");
    is("child<<<(n + m - 1) / m, m>>>(out, n);", "n");
    is("child<<<(m - 1 + n) / m, m>>>(out, n);", "n");
    is("child<<<(n + (m - 1)) / m, m>>>(out, n);", "n");
    is("child<<<(n - 1) / m + 1, m>>>(out, n);", "n");
    is("child<<<n / m + (n % m != 0), m>>>(out, n);", "n");
    is("child<<<n / m + (n % m ? 1 : 0), m>>>(out, n);", "n");
    is("child<<<ceil(n / (float)m), m>>>(out, n);", "n");
    is("child<<<(int)ceilf((float)n / m), m>>>(out, n);", "n");
    is("child<<<div_up(n, 64), 64>>>(out, n);", "n");
    is("child<<<(n + kBlock - 1) / kBlock, kBlock>>>(out, n);", "n");
    is(
        "const int b = 128; int g = (n + b - 1) / b; child<<<g, b>>>(out, n);",
        "n",
    );
    is(
        "dim3 b(128); dim3 g((n + b.x - 1) / 128); child<<<(n + 127) / 128, b>>>(out, n);",
        "n",
    );
    is(
        "int k = row[n + 1] - row[n]; child<<<dim3((k + 127) / 128), dim3(128, 1, 1)>>>(out, n);",
        "k",
    );
    is(
        "child<<<(row[n + 1] - row[n] + 127) / 128, 128>>>(out, n);",
        "row[n + 1] - row[n]",
    );
}

#[test]
fn other_grids_do_not() {
    let none = |statements: &str| assert_eq!(threads(statements), None, "{statements}");
    none("child<<<n, 128>>>(out, n);");
    none("child<<<(n + 127) / 128, 64>>>(out, n);");
    none("child<<<(n + 128) / 128, 128>>>(out, n);");
    none("child<<<n / 128, 128>>>(out, n);");
    none("child<<<n / 128 + 1, 128>>>(out, n);");
    none("child<<<ceil(n / m), m>>>(out, n);");
    none("child<<<dim3((n + 127) / 128, 2), 128>>>(out, n);");
    none("child<<<(n + 127) / 128, dim3(128, 2)>>>(out, n);");
    // The variable changes between the division and the launch.
    none("int g = (n + 127) / 128; g = g * 2; child<<<g, 128>>>(out, n);");
    none("int g = (n + 127) / 128; int* p = &g; *p = 3; child<<<g, 128>>>(out, n);");
    // The divisor's meaning changes.
    none("int b = 128; int g = (n + b - 1) / b; b = 64; child<<<g, b>>>(out, n);");
    none("int g = (n + 127) / 128; n = 5; child<<<g, 128>>>(out, n);");
    // A macro's expansion has no text of its own to repeat.
    none("child<<<DIVUP(n, 128), 128>>>(out, n);");
    none("child<<<blocks_for(n, 64), 64>>>(out, n);");
}

fn launcher(statements: &str) -> Launchers {
    let source = parent(statements);
    let found = std::cell::Cell::new(Launchers::Host);
    each(&[("/w/a.cu", &source)], "parent", |_, facts, _| {
        found.set(facts.launchers)
    });
    found.get()
}

#[test]
fn who_launches() {
    use Launchers::*;
    let cases = [
        ("child<<<1, 1>>>(out, n);", ManyThreads),
        ("if (threadIdx.x < 7) child<<<1, 1>>>(out, n);", ManyThreads),
        ("if (threadIdx.x == 0) child<<<1, 1>>>(out, n);", OnePerBlock),
        ("if (!threadIdx.x && n > 3) { child<<<1, 1>>>(out, n); }", OnePerBlock),
        ("int t = threadIdx.x; if (n == t) child<<<1, 1>>>(out, n);", OnePerBlock),
        ("if (threadIdx.x != 0) return; child<<<1, 1>>>(out, n);", OnePerBlock),
        ("if (threadIdx.x) return; { child<<<1, 1>>>(out, n); }", OnePerBlock),
        ("if (threadIdx.x == 0 || n) child<<<1, 1>>>(out, n);", ManyThreads),
        (
            "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i == 0) child<<<1, 1>>>(out, n);",
            OnePerGrid,
        ),
        (
            "int i = threadIdx.x + blockDim.x * blockIdx.x; if (i > 0) return; child<<<1, 1>>>(out, n);",
            OnePerGrid,
        ),
        (
            "if (threadIdx.x == 0 && blockIdx.x == 0) child<<<1, 1>>>(out, n);",
            OnePerGrid,
        ),
        ("if ((threadIdx.x & 31) == 0) child<<<1, 1>>>(out, n);", OnePerWarp),
        (
            "int lane = threadIdx.x % warpSize; if (lane == 0) child<<<1, 1>>>(out, n);",
            OnePerWarp,
        ),
        (
            "if (threadIdx.x == row[threadIdx.x]) child<<<1, 1>>>(out, n);",
            ManyThreads,
        ),
        (
            "if (threadIdx.x == 0) n = 1; else child<<<1, 1>>>(out, n);",
            ManyThreads,
        ),
        (
            "if (threadIdx.x == 0 && threadIdx.y < 3) child<<<1, 1>>>(out, n);",
            ManyThreads,
        ),
    ];
    for (statements, expected) in cases {
        assert_eq!(launcher(statements), expected, "{statements}");
    }
}

/// A number that several threads have when it is converted, scaled or drawn leaves several of them.
#[test]
fn numbers_that_several_threads_have() {
    use Launchers::*;
    let launch = "child<<<1, 1>>>(out, n);";
    let is = |before: &str, cond: &str, expected: Launchers| {
        let statements = format!("{before} if ({cond}) {launch}");
        assert_eq!(launcher(&statements), expected, "{statements}");
    };
    let word = "int i = blockIdx.x * blockDim.x + threadIdx.x;";
    for (before, cond) in [
        ("unsigned char t = threadIdx.x;", "t == 0"),
        ("const uint8_t t = threadIdx.x;", "t == 0"),
        ("short t = blockIdx.x; int u = t;", "threadIdx.x == 0 && t == 0"),
        ("unsigned short t = blockIdx.x * blockDim.x + threadIdx.x;", "t == 0"),
        ("float t = threadIdx.x;", "t == 0"),
        ("int bin = threadIdx.x * 0.1f;", "bin == 0"),
        ("float bin = threadIdx.x * 0.1f; int b = bin;", "b == 0"),
        ("", "(int)(threadIdx.x * 0.25f) == 0"),
        ("", "(char)threadIdx.x == 0"),
        ("", "(bool)threadIdx.x == true"),
        ("bool some = threadIdx.x;", "some"),
        ("", "threadIdx.x * n == 0"),
        ("", "threadIdx.x * 134217728u == 0"),
        ("", "threadIdx.x * 0x40000000u == 0"),
        ("", "threadIdx.x * 4198500 == 0"),
        (word, "i * 0x40000000u == 0"),
        ("", "threadIdx.x + blockIdx.x * 0x40000000u == 0"),
        ("short i = blockIdx.x * 64 + threadIdx.x;", "i == 0"),
        (
            "unsigned char size = blockDim.x;",
            "threadIdx.y * size + threadIdx.x == 0",
        ),
        ("", "threadIdx.x * 4000000u + threadIdx.y * 4000000u == 0"),
    ] {
        let expected = if before.contains("blockIdx") && cond.contains("&&") {
            OnePerBlock
        } else {
            ManyThreads
        };
        is(before, cond, expected);
    }
    for (before, cond, expected) in [
        ("unsigned short t = threadIdx.x;", "t == 0", OnePerBlock),
        ("short t = threadIdx.x;", "t == 3", OnePerBlock),
        ("unsigned char lane = threadIdx.x & 31;", "lane == 0", OnePerWarp),
        ("bool some = threadIdx.x;", "!some", OnePerBlock),
        ("", "(bool)threadIdx.x == false", OnePerBlock),
        ("auto t = threadIdx.x;", "t == 0", OnePerBlock),
        ("size_t t = threadIdx.x;", "t == 0", OnePerBlock),
        ("", "(int)threadIdx.x == 0", OnePerBlock),
        ("", "threadIdx.x * 4 == 0", OnePerBlock),
        (
            "const unsigned size = blockDim.x;",
            "blockIdx.x * size + threadIdx.x == 0",
            OnePerGrid,
        ),
        ("const int k = 64;", "blockIdx.x * k + threadIdx.x == 0", OnePerGrid),
        ("int i = blockIdx.x * 256 + threadIdx.x;", "i == 0", OnePerGrid),
        ("", "threadIdx.y * blockDim.x + threadIdx.x == 0", OnePerBlock),
        ("", "threadIdx.y * 2 + threadIdx.x == 0", OnePerBlock),
    ] {
        is(before, cond, expected);
    }
}

#[test]
fn counters_that_give_a_number_twice() {
    use Launchers::*;
    let head = r#"__device__ unsigned count; __device__ float sum; __device__ unsigned counts[64];
__global__ void child(int* out, int n);
"#;
    // Where it isn't in sight what the host passes, `out` may lead to the counter, too.
    let host = r#"void run(int blocks, int threads, int n) {
    int* out; unsigned* at;
    cudaMalloc(&out, 256); cudaMalloc(&at, 256);
    parent<<<blocks, threads>>>(out, at, n);
}
"#;
    let with = |host: &str, statements: &str, expected: Launchers| {
        let source = format!("{head}__global__ void parent(int* out, unsigned* at, int n) {{ {statements} }}\n{host}");
        each(&[("/w/a.cu", &source)], "parent", |_, facts, _| {
            assert_eq!(facts.launchers, expected, "{statements}");
        });
    };
    let is = |statements: &str, expected: Launchers| with(host, statements, expected);
    let go = "child<<<1, 1>>>(out, n);";
    let last = |reset: &str| {
        format!(
            "__shared__ bool last; if (threadIdx.x == 0) last = atomicAdd(&count, 1) == gridDim.x - 1; __syncthreads(); \
             if (last && threadIdx.x == 0) {{ {go} {reset} }}"
        )
    };
    for statements in [
        format!("if (atomicInc(&count, 3) == 0) {go}"),
        format!("if (atomicInc(at, n) == 0) {go}"),
        format!("if (atomicInc(&count, 3) == 3) {go}"),
        format!("if (atomicAdd(&count, 0x40000000u) == 0) {go}"),
        format!("if (atomicAdd(&sum, 1) == 0) {go}"),
        format!("unsigned char t = atomicAdd(&count, 1); if (t == 0) {go}"),
        // All threads of a block draw.
        format!("if (atomicInc(&count, gridDim.x - 1) == 0) {go}"),
        // Who has drawn it sets the counter back, before others draw.
        format!("if (atomicAdd(&count, 1) == 0) {{ {go} count = 0; }}"),
        format!("if (atomicAdd(at, 1) == 3) {{ {go} *at = 0; }}"),
        format!("if (atomicAdd(&counts[n], 1) == 3) {{ {go} atomicExch(&counts[n], 0u); }}"),
        format!("if (threadIdx.x == 0) count = 0; if (atomicAdd(&count, 1) == 0) {go}"),
        format!("if (atomicAdd(&count, 1) == gridDim.x - 1) {{ {go} count = 0; }}"),
        format!(
            "__shared__ unsigned turn; for (int k = 0; k < n; ++k) {{ if (threadIdx.x == 0) turn = 0; __syncthreads(); \
             if (atomicAdd(&turn, 1) == 0) {go} __syncthreads(); }}"
        ),
    ] {
        is(&statements, ManyThreads);
    }
    for (statements, expected) in [
        (format!("if (atomicAdd(&count, 1) == 0) {go}"), OnePerGrid),
        (format!("unsigned t = atomicAdd(at, 1); if (t == n) {go}"), OnePerGrid),
        (format!("if (atomicInc(&count, 0xffffffffu) == 0) {go}"), OnePerGrid),
        (
            format!(
                "if (threadIdx.x == 0) {{ unsigned t = atomicInc(&count, gridDim.x); if (t == gridDim.x - 1) {go} }}"
            ),
            OnePerGrid,
        ),
        // In the next iteration, another block draws it.
        (
            format!(
                "for (int k = 0; k < n; ++k) if (threadIdx.x == 0) if (atomicInc(&count, gridDim.x - 1) == 0) {go}"
            ),
            OnePerBlock,
        ),
        // Others may not have drawn when the counter is set back.
        (format!("{} if (threadIdx.x == 0) count = 0;", last("")), OnePerBlock),
        (last(""), OnePerGrid),
        (last("count = 0;"), OnePerGrid),
        (last("atomicExch(&count, 0u);"), OnePerGrid),
        (
            format!(
                "__shared__ unsigned turn; if (threadIdx.x == 0) turn = 0; __syncthreads(); if (atomicAdd(&turn, 1) == 0) {go}"
            ),
            OnePerBlock,
        ),
    ] {
        is(&statements, expected);
    }
    with(
        "",
        &format!("unsigned t = atomicAdd(at, 1); if (t == n) {go}"),
        ManyThreads,
    );
}

#[test]
fn streams() {
    let stream = |statements: &str| {
        let source = parent(statements);
        let found = std::cell::RefCell::new(Stream::Other);
        each(&[("/w/a.cu", &source)], "parent", |_, facts, _| {
            *found.borrow_mut() = facts.stream.clone()
        });
        found.into_inner()
    };
    assert_eq!(stream("child<<<1, 1>>>(out, n);"), Stream::Null);
    assert_eq!(stream("child<<<1, 1, 0, 0>>>(out, n);"), Stream::Null);
    assert_eq!(stream("child<<<1, 1, 0, (cudaStream_t)0>>>(out, n);"), Stream::Null);
    assert_eq!(
        stream("child<<<1, 1, 0, cudaStreamFireAndForget>>>(out, n);"),
        Stream::FireAndForget
    );
    assert_eq!(
        stream("cudaStream_t s = cudaStreamTailLaunch; child<<<1, 1, 0, s>>>(out, n);"),
        Stream::TailLaunch
    );
    assert!(matches!(
        stream("cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); child<<<1, 1, 0, s>>>(out, n);"),
        Stream::Created(_)
    ));
    assert_eq!(
        stream("cudaStream_t s = pick(n); child<<<1, 1, 0, s>>>(out, n);"),
        Stream::Other
    );
}

#[test]
fn child_loops_and_places() {
    let source = parent(
        r#"for (int i = 0; i < n; ++i)
  while (m) {
#if DEBUG
 child<<<1, 32, 16>>>(out, i);
#endif
 }"#,
    );
    each(&[("/w/a.cu", &source)], "parent", |host, facts, text| {
        assert!(matches!(facts.child, Child::Kernel(k) if k.name(host.db()) == "child"));
        let heads: Vec<&str> = facts.loops.iter().map(|l| l.span.text(text).trim()).collect();
        assert_eq!(heads, ["while (m)", "for (int i = 0; i < n; ++i)"]);
        assert!(facts.conditional);
        assert_eq!(facts.block.constant, Some([32, 1, 1]));
        assert_eq!(
            facts
                .args
                .iter()
                .map(|a| a.parameter.clone().unwrap())
                .collect::<Vec<_>>(),
            ["out", "n"]
        );
        assert!(!facts.recursive);
        assert!(facts.statement.is_some());
    });
}

#[test]
fn kernels_across_files() {
    let header = "#pragma once\n__global__ void child(int n);\n";
    let kernel = r#"#include "inc/child.cuh"
__global__ void child(int n) { if (n) child<<<1, 1>>>(n - 1); }
"#;
    let main = r#"#include "inc/child.cuh"
int main() { child<<<2, 3>>>(4); }
"#;
    let other = r#"__global__ void child(int n) { }
void other() { child<<<1, 1>>>(1); }
"#;
    let files = [
        ("/w/inc/child.cuh", header),
        ("/w/child.cu", kernel),
        ("/w/main.cu", main),
        ("/w/x/other.cu", other),
    ];
    let in_file = |host: &Host, facts: &LaunchFacts<'_>| match facts.child {
        Child::Kernel(k) => k.file(host.db()).path(host.db()).display().to_string(),
        _ => String::new(),
    };
    // The declaration has two definitions of its name in the workspace: which one is linked isn't known.
    each(&files, "main", |_, facts, _| {
        assert!(matches!(&facts.child, Child::Ambiguous(c) if c.len() == 2))
    });
    each(&files[..3], "main", |host, facts, _| {
        assert_eq!(in_file(host, facts), "/w/child.cu")
    });
    each(&files, "other", |host, facts, _| {
        assert_eq!(in_file(host, facts), "/w/x/other.cu")
    });
    each(&files[..3], "child", |_, facts, _| assert!(facts.recursive));
}

#[test]
fn shapes_of_launches() {
    let source = r#"template <int N, class T> __global__ void child(T* p) {}
namespace ns { __global__ void k(int) {} }
__global__ void parent(float* p) {
  child<3, float><< <1, 2>> >(p);
  ns::k<<<1, /* b, */ 2>>>(3 /* , */);
  (ns::k)<<<1, 1>>>(1);
}
"#;
    let names = std::cell::RefCell::new(Vec::new());
    each(&[("/w/a.cu", source)], "parent", |_, facts, text| {
        assert!(matches!(facts.child, Child::Kernel(_)), "{:?}", facts.kernel_name);
        names.borrow_mut().push((
            facts.kernel_name.clone().unwrap(),
            facts.args.len(),
            facts.span.text(text).to_owned(),
        ));
    });
    let names = names.into_inner();
    assert_eq!(names[0], ("child".into(), 1, "child<3, float><< <1, 2>> >(p)".into()));
    assert_eq!(names[1].0, "ns::k");
    assert_eq!(names[1].1, 1);
    assert_eq!(names[2].2, "(ns::k)<<<1, 1>>>(1)");
}

#[test]
fn launches_in_macros_and_lambdas_are_marked() {
    let source = r#"#define GO(n) child<<<1, n>>>(n)
__global__ void child(int n) {}
void host() { GO(3); auto f = [&] { child<<<1, 1>>>(2); }; f(); }
"#;
    let marks = std::cell::RefCell::new(Vec::new());
    each(&[("/w/a.cu", source)], "host", |_, facts, _| {
        marks.borrow_mut().push((facts.from_macro, facts.in_lambda))
    });
    assert_eq!(marks.into_inner(), [(true, false), (false, true)]);
    let _ = Span::new(0, 0);
}

/// Who launches by a parent with these statements that `host` launches, and whether flat blocks are taken for granted.
fn launched(statements: &str, rest: &str) -> (Launchers, bool) {
    let source = format!("{}{rest}\n", parent(statements));
    let mut host = Host::new();
    let file = host.set_file("/w/a.cu".as_ref(), source.as_str());
    let db = host.db();
    let function = *items(db, file)
        .functions
        .iter()
        .find(|f| f.has_body(db) && !launches(db, **f).is_empty() && f.name(db) != "host")
        .unwrap();
    let id = LaunchId { function, index: 0 };
    (launches(db, function)[0].launchers, takes_flat_blocks(db, id))
}

#[test]
fn blocks_of_more_dimensions_than_the_body_mentions() {
    use Launchers::*;
    let first = "if (threadIdx.x == 0) child<<<1, 1>>>(out, n);";
    let host = |size: &str| format!("void host(int* o, int n, dim3 unknown) {{ parent<<<{size}>>>(o, 1, 2, o); }}");
    let is = |statements: &str, rest: &str, expected: (Launchers, bool)| {
        assert_eq!(launched(statements, rest), expected, "{statements} {rest}");
    };
    is(first, &host("4, 32"), (OnePerBlock, false));
    is(first, &host("4, n"), (OnePerBlock, false));
    is(first, &host("4, dim3(n)"), (OnePerBlock, false));
    is(first, &host("4, dim3(n, 1, 1)"), (OnePerBlock, false));
    is(first, &host("dim3(4, 4), 32"), (OnePerBlock, false));
    // Several threads have number 0 in x.
    is(first, &host("1, dim3(8, 4)"), (ManyThreads, false));
    is(first, &host("1, dim3(8, 1, 4)"), (ManyThreads, false));
    is(first, &host("1, dim3(8, n)"), (ManyThreads, false));
    // A `dim3`, a `uint3` or an object that becomes one: nothing is known of its other dimensions.
    let kinds = r#"struct Config { int threads; dim3 block; dim3 size() const { return block; } };
struct Shape { int n; operator dim3() const { return dim3(n, n); } };
dim3 block_of(int n) { return dim3(n, n); }
uint3 shape_of(int n) { return make_uint3(n, n, 1); }
auto some_of(int n) { return dim3(n, n); }
typedef dim3 extent;
extent extent_of(int n) { return dim3(n, n); }
dim3 operator*(dim3 a, int b) { return dim3(a.x * b, a.y * b); }
int number_of(int n) { return n; }
enum Size { Few = 8 };
"#;
    let made = |size: &str| {
        format!(
            "{kinds}void host(int* o, int n, Config cfg, Config* at, dim3 d, uint3 u, Shape shape, int* sizes) {{ dim3 b({size}); \
             parent<<<4, b>>>(o, 1, 2, o); }}"
        )
    };
    for several in [
        "block_of(8)",
        "shape_of(8)",
        "some_of(8)",
        "extent_of(8)",
        "cfg.block",
        "at->block",
        "cfg.size()",
        "u",
        "d",
        "make_uint3(8, 8, 1)",
        "n > 3 ? d : block_of(2)",
        "d * 2",
        "shape",
        "Shape{8}",
        "unseen(8)",
    ] {
        assert_ne!(launched(first, &made(several)), (OnePerBlock, false), "{several}");
    }
    for one in [
        "n",
        "n * 2",
        "number_of(8)",
        "cfg.threads",
        "at->threads",
        "sizes[n]",
        "*sizes",
        "Few",
        "d.x",
        "u.x * 2",
        "n > 3 ? 32 : cfg.threads",
        "(unsigned)n",
        "min(n, 32)",
    ] {
        is(first, &made(one), (OnePerBlock, false));
    }
    // One of several launches.
    let two = format!(
        "{} void other(int* o) {{ parent<<<1, dim3(8, 4)>>>(o, 1, 2, o); }}",
        host("4, 32")
    );
    is(first, &two, (ManyThreads, false));
    // No launch, not all, or one of which nothing is known: taken for granted.
    is(first, &host("1, unknown"), (OnePerBlock, true));
    is(first, "", (OnePerBlock, true));
    let pointer = format!("{} auto any = &parent;", host("4, 32"));
    is(first, &pointer, (OnePerBlock, true));
    // All dimensions are asked for: nothing is taken for granted.
    let all = "if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) child<<<1, 1>>>(out, n);";
    is(all, "", (OnePerBlock, false));
    is(all, &host("1, dim3(8, 4)"), (OnePerBlock, false));
    is("child<<<1, 1>>>(out, n);", "", (ManyThreads, false));
    // The grid.
    let grid = "if (threadIdx.x == 0 && blockIdx.x == 0) child<<<1, 1>>>(out, n);";
    is(grid, &host("4, 32"), (OnePerGrid, false));
    is(grid, &host("dim3(4, 4), 32"), (OnePerBlock, false));
    is(grid, "", (OnePerGrid, true));
    // A kernel that launches itself as it was launched.
    let own = "if (threadIdx.x == 0) parent<<<gridDim, blockDim>>>(out, n, m, row);";
    is(own, &host("4, 32"), (OnePerBlock, false));
    is(own, &host("4, dim3(8, 4)"), (ManyThreads, false));
    // A device function in the blocks of its callers.
    let called = |size: &str| {
        let calls = r#"__device__ void go(int* out, int n) { if (threadIdx.x == 0) grandchild<<<1, 1>>>(out, n); }
__global__ void parent2(int* out, int n) { go(out, n); }
"#;
        format!(
            r#"__global__ void grandchild(int* out, int n) {{ out[n] = 1; }}
{calls}void host(int* o) {{ parent2<<<{size}>>>(o, 1); }}"#
        )
    };
    is("", &called("4, 32"), (OnePerBlock, true));
    is("", &called("4, dim3(8, 4)"), (ManyThreads, false));
}

#[test]
fn who_gets_to_a_launch_is_told_in_full() {
    let said = |statements: &str| {
        let source = parent(&format!("int r = row[threadIdx.x]; {statements}"));
        let found = std::cell::RefCell::new(String::new());
        each(&[("/w/a.cu", &source)], "parent", |_, facts, _| {
            let why = facts.divergence.why.as_ref().map(|cause| cause.text.clone());
            *found.borrow_mut() = why.unwrap_or_default();
        });
        found.into_inner()
    };
    let launch = "child<<<1, 32>>>(out, r);";
    for (before, expected) in [
        ("if (r > 3)", "only threads with `r > 3` get here"),
        ("if (r)", "only threads with `r != 0` get here"),
        ("if (r & 3)", "only threads with `(r & 3) != 0` get here"),
        ("if (!r)", "only threads with `!r` get here"),
        ("if (r) return;", "threads with `r != 0` don't get here"),
        ("switch (r & 3) { case 2:", "only threads with `(r & 3) == 2` get here"),
        (
            "switch (r) { case 7: switch (m) { case 1: ++m; } break; case 8:",
            "only threads with `r == 8` get here",
        ),
        // Two cases lead there.
        (
            "switch (r) { case 1: case 2:",
            "only threads with certain values of `r` get here",
        ),
        (
            "switch (r) { case 1: break; default:",
            "only threads with certain values of `r` get here",
        ),
    ] {
        let end = if before.contains('{') { "}" } else { "" };
        assert_eq!(said(&format!("{before} {launch} {end}")), expected, "{before}");
    }
}
