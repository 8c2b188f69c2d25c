//! Who gets to a launch in a device function: only what calls it where all of its calls are found.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gridfuse_analysis::base::budget::FUNCTION_BYTES;
use gridfuse_analysis::facts::launch::{LaunchId, Launchers, StreamKind, stream_kind, who_launches};
use gridfuse_analysis::facts::uniformity::{Level, assumed_uniformity};
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::host::Host;

const CHILD: &str = "__global__ void child(int *p) { p[threadIdx.x] += 1; }\n";

/// Statements that no limit allows.
fn too_much() -> String {
    "p[1] = p[2];\n".repeat(FUNCTION_BYTES / 10)
}

/// Who executes the only launch of `function`, its stream, and how uniform the size of its grid is.
fn launch(source: &str, function: &str) -> (Launchers, StreamKind, Level) {
    let mut host = Host::new();
    let file = host.set_file("/w/a.cu".as_ref(), source);
    let db = host.db();
    let named = items(db, file)
        .functions
        .iter()
        .find(|f| f.name(db) == function && f.has_body(db));
    let function = *named.expect(function);
    let facts = gridfuse_analysis::facts::launch::launches(db, function);
    assert_eq!(facts.len(), 1);
    let id = LaunchId { function, index: 0 };
    let level = assumed_uniformity(db, function).exprs[&facts[0].grid.operand.expr].level;
    (who_launches(db, id), stream_kind(db, id), level)
}

/// A device function that launches, one that calls it from one thread of a grid, and `more`.
fn called(more: &str) -> (Launchers, StreamKind, Level) {
    let source = format!(
        r#"{CHILD}__device__ void start(int *p, int n, cudaStream_t s) {{ child<<<n, 32, 0, s>>>(p); }}
__global__ void parent(int *p, int n) {{
  if (blockIdx.x == 0 && threadIdx.x == 0) start(p, n, 0);
}}
{more}
int main() {{ parent<<<8, 32>>>(nullptr, 3); }}
"#
    );
    launch(&source, "start")
}

#[test]
fn calls_that_are_found_decide() {
    let known = (Launchers::OnePerGrid, StreamKind::Null, Level::Grid);
    assert_eq!(called(""), known);
    // Declarations, members and variables of the same name, and calls of an overload, are no other calls.
    for more in [
        "__device__ void start(int *p, int n, cudaStream_t s);",
        "struct S { int start; }; int f(S s) { return s.start; }",
        "int f(int n) { int start = n; return start + 1; }",
        "// start\nconst char *s = \"start\";",
    ] {
        assert_eq!(called(more), known, "{more}");
    }
}

#[test]
fn what_else_mentions_it_may_call_it() {
    let large = format!(
        r#"__global__ void large(int *p) {{
{}start(p, threadIdx.x, cudaStreamTailLaunch);
}}"#,
        too_much()
    );
    let broken = "__global__ void broken(int *p) { if ( ; start(p, threadIdx.x, cudaStreamTailLaunch); }";
    for more in [
        large.as_str(),
        broken,
        "__device__ void (*table[])(int *, int, cudaStream_t) = { start };",
        "__global__ void other(int *p) { auto f = start; f(p, threadIdx.x, cudaStreamTailLaunch); }",
        r#"template <class F> __device__ void apply(F f, int *p) { f(p, threadIdx.x, cudaStreamTailLaunch); }
__global__ void other(int *p) { apply(start, p); }"#,
        r#"template <void F(int *, int, cudaStream_t)> __device__ void apply(int *p) { F(p, threadIdx.x, cudaStreamTailLaunch); }
__global__ void other(int *p) { apply<start>(p); }"#,
        r#"#define START(p) start(p, threadIdx.x, cudaStreamTailLaunch)
__global__ void other(int *p) { START(p); }"#,
    ] {
        assert_eq!(
            called(more),
            (Launchers::ManyThreads, StreamKind::Other, Level::Varying),
            "{more:.200}"
        );
    }
}

#[test]
fn members_may_be_called_on_any_object() {
    let source = format!(
        r#"{CHILD}struct S {{
  __device__ void start(int *p, int n) {{ child<<<n, 32>>>(p); }}
  __device__ void first(int *p) {{ if (blockIdx.x == 0 && threadIdx.x == 0) start(p, 1); }}
}};
__global__ void parent(int *p) {{ S s; s.start(p, threadIdx.x); }}
"#
    );
    let (who, _, level) = launch(&source, "S::start");
    assert_eq!((who, level), (Launchers::ManyThreads, Level::Varying));
}

#[test]
fn a_kernel_may_be_launched_where_nothing_is_known() {
    let program = |rest: &str| {
        format!(
            r#"{CHILD}__global__ void parent(int *p) {{ child<<<1, 32>>>(p); }}
void small() {{ parent<<<1, 1>>>(nullptr); }}
{rest}
"#
        )
    };
    assert_eq!(launch(&program(""), "parent").0, Launchers::OnePerGrid);
    let large = format!(
        r#"void large(int *p) {{
{}parent<<<8, 256>>>(p);
}}"#,
        too_much()
    );
    assert_eq!(launch(&program(&large), "parent").0, Launchers::ManyThreads);
    let pointer = "void other(void **a) { cudaLaunchKernel((void *)parent, dim3(8), dim3(256), a, 0, 0); }";
    assert_eq!(launch(&program(pointer), "parent").0, Launchers::ManyThreads);
}
