//! Function summaries, loop-changing expressions, and that large or odd input is handled in time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use gridfuse_analysis::facts::effects::{Summary, leads_too_far, memory_effects, summary};
use gridfuse_analysis::facts::uniformity::{changes_around, immutable_parameter, uniformity};
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::hir::{Builtin, ExprKind, StmtId, StmtKind, body};
use gridfuse_analysis::host::Host;

/// The summary of the last function of a source, and the text of that function.
fn summarize(source: &str) -> (Arc<Summary>, String) {
    let mut host = Host::new();
    let file = host.set_file(Path::new("/w/a.cu"), source);
    let db = host.db();
    let function = *items(db, file).functions.last().unwrap();
    (summary(db, function), function.text(db).to_string())
}

#[test]
fn builtins_through_callees() {
    let (s, _) = summarize(
        r#"__device__ int id() { return blockIdx.x * blockDim.x; }
__device__ int f() { return id(); }
__global__ void k(int* o) { o[threadIdx.x] = f(); }"#,
    );
    assert!(s.reads_builtin.contains(Builtin::BlockIdx) && s.reads_builtin.contains(Builtin::ThreadIdx));
    assert!(!s.reads_builtin.contains(Builtin::GridDim));
    assert!(!s.reads_builtin_directly.contains(Builtin::BlockIdx));
    assert!(s.reads_builtin_directly.contains(Builtin::ThreadIdx));
    assert!(s.unknown_calls.is_empty());
    let (s, _) = summarize("__global__ void k(int* o) { mystery(o); }");
    assert!(s.reads_builtin.contains(Builtin::GridDim));
    assert_eq!(s.unknown_calls[0].0, "mystery");
    assert!(s.writes_memory() && s.writes_params.contains(&0));
    let (s, _) = summarize("__device__ int f(uint3 blockIdx) { return blockIdx.x; }");
    assert!(s.reads_builtin.is_empty());
}

#[test]
fn recursion_keeps_facts() {
    let (s, _) = summarize(
        r#"__device__ int g(int n);
__device__ int f(int n) { return n ? g(n - 1) + blockIdx.x : 0; }
__device__ int g(int n) { __syncthreads(); return f(n); }"#,
    );
    assert!(s.reads_builtin.contains(Builtin::BlockIdx) && !s.reads_builtin.contains(Builtin::ThreadIdx));
    assert!(s.barriers.is_some() && s.unknown_calls.is_empty());
}

#[test]
fn synchronisation_and_memory() {
    let (s, text) = summarize(
        r#"__global__ void k(int* o, const int* i, int n) { __shared__ int t[4]; extern __shared__ float d[];
if (n) __syncthreads(); __syncwarp(); int a = __shfl_sync(~0u, n, 0); o[0] = i[a]; printf(""); }"#,
    );
    assert_eq!(s.barriers.unwrap().text(&text), "__syncthreads()");
    assert_eq!(s.warp_ops.len(), 1);
    assert_eq!((s.static_shared.len(), s.dynamic_shared.len()), (1, 1));
    assert_eq!(s.writes_params.iter().copied().collect::<Vec<_>>(), [0]);
    assert!(s.prints.is_some() && s.may_wait.is_none() && s.uses_asm.is_none() && s.launches.is_empty());
    let (s, text) = summarize("__global__ void k(int n) { asm(\"bar.sync 1, 64;\"); }");
    assert!(s.barriers.unwrap().text(&text).starts_with("asm"));
    assert!(s.uses_asm.is_some());
    let (s, _) = summarize("__global__ void k(const int* i, int n) { int x = i[n]; x += 2; dim3 g(x); }");
    assert!(!s.writes_memory() && s.writes_params.is_empty(), "{s:?}");
    let (s, _) = summarize("__global__ void k(int* o) { int* p = o; p[1] = 2; }");
    assert!(s.writes_params.contains(&0));
}

#[test]
fn waiting() {
    let waits = |loop_: &str| {
        let source = format!("__global__ void k(int* flag, volatile int* vf, int n) {{ {loop_} }}");
        summarize(&source).0.may_wait.is_some()
    };
    for loop_ in [
        "while (atomicCAS(flag, 0, 1)) {}",
        "while (flag[0] == 0);",
        "while (*vf == 0) { n++; }",
        "while (true) { int x = atomicAdd(flag, 0); if (x) break; }",
        "bool done = false; while (!done) { if (atomicCAS(flag, 0, 1) == 0) { done = true; } }",
        "again: if (atomicCAS(flag, 0, 1)) goto again;",
        "do { mystery(n); } while (mystery(n));",
        "while (*(volatile int*)flag) {}",
        "int t[4]; for (int i = 0; t[0] < 4; ++i) t[i] = *vf;",
        "int t[4]; for (int i = 0; i < 4; ++i) *(&i) = *vf;",
        "int i[4]; int k = 0; for (; i[0] < 4; ++k) k[i] = *vf;",
        "int* p = &n; for (int i = 0; p[0] < 4; ++i) p[i] = *vf;",
        "int x; do { asm volatile(\"ld.acquire.gpu.s32 %0, [%1];\" : \"=r\"(x) : \"l\"(flag)); } while (x == 0);",
        "for (;;) { int x; asm(\"{\\n\\tatom.global.exch.b32 %0, [%1], 1;}\" : \"=r\"(x) : \"l\"(flag)); if (!x) break; }",
    ] {
        assert!(waits(loop_), "{loop_}");
    }
    for loop_ in [
        "for (int i = 0; i < n; i++) atomicAdd(flag, 1);",
        "for (int i = flag[0]; i < flag[1]; i++) flag[i] = 0;",
        "while (n > 0) n /= 2;",
        "volatile int* w[4]; for (int i = 0; i < 4; ++i) w[i] = (volatile int*)&flag[i * 32];",
        "int t[4]; for (int i = 0; i < 4; ++i) t[i] = *vf;",
        "while (n > 0) { int x; asm(\"shr.b32 %0, %1, 1;\" : \"=r\"(x) : \"r\"(n)); n = x; }",
        "while (n > 0) { int x; asm(\"ld.global.s32 %0, [%1];\" : \"=r\"(x) : \"l\"(flag)); n /= 2; flag[0] = x; }",
    ] {
        assert!(!waits(loop_), "{loop_}");
    }
}

#[test]
fn waiting_by_what_is_no_assignment() {
    const HELPERS: &str = r#"
__device__ void get(int* f, int& s) { s = atomicAdd(f, 0); }
__device__ void get(int* f, int* s) { *s = atomicAdd(f, 0); }
struct State { int v; };
__device__ void get_field(int* f, State& s) { s.v = atomicAdd(f, 0); }
struct Poll { int* f; int v; __device__ void poll() { v = atomicAdd(f, 0); } __device__ bool done() const { return v; } };
template <class T> __device__ void exchange(T& a, T& b) { T c = a; a = b; b = c; }
__device__ void count(int* f) { atomicAdd(f, 1); }
__device__ void next(int& i) { ++i; }
__device__ float dot(const float* a, int n) { return a[n]; }
"#;
    let waits = |statements: &str| {
        let source = format!("{HELPERS}__global__ void k(int* flag, float* out, int n) {{ {statements} }}");
        summarize(&source).0.may_wait.is_some()
    };
    for statements in [
        "int s = 0; while (!s) get(flag, s);",
        "int s = 0; while (!s) get(flag, &s);",
        "for (;;) { int t; get(flag, t); if (t) break; }",
        "State s{0}; while (!s.v) get_field(flag, s);",
        "int s = 0; int& r = s; while (!s) r = atomicAdd(flag, 0);",
        "int s = 0; int* r = &s; while (!s) *r = atomicAdd(flag, 0);",
        "int s = 0; int* r = &s; int* q = r; while (!s) q[0] = atomicAdd(flag, 0);",
        "int s[2] = {0, 0}; int* r = s; while (!s[0]) r[0] = atomicAdd(flag, 0);",
        "Poll s{flag, 0}; while (!s.done()) s.poll();",
        "int s = 0; auto g = [&] { s = atomicAdd(flag, 0); }; while (!s) g();",
        "int s = 0; auto g = [](int* f, int& x) { x = atomicAdd(f, 0); }; while (!s) g(flag, s);",
        "int s = 0; while (!s) { int t = atomicAdd(flag, 0); exchange(s, t); }",
        "int s = 0; while (!s) { int t = atomicAdd(flag, 0); memcpy(&s, &t, 4); }",
        "int i = 0; while (i < 2) { if (atomicAdd(flag, 0)) next(i); }",
        "int s = 0; while (!s) std::tie(s) = mystery(flag);",
    ] {
        assert!(waits(statements), "{statements}");
    }
    for statements in [
        "int i = 0; while (i < n) { next(i); count(flag); }",
        "int i = 0; while (i < n) { next(i); out[i] = atomicAdd(flag, 1); }",
        "int i = 0; int* p = &i; while (i < n) { ++*p; count(flag); }",
        "int c = 0; auto add = [&](int k) { c += k; atomicAdd(flag, k); }; for (int i = 0; i < n; ++i) add(i);",
        "float a[4]; for (int i = 0; i < n; ++i) { a[i & 3] = dot(a, i); atomicAdd(flag, 1); }",
        "for (int i = 0; i < n; ++i) { int s; get(flag, s); out[i] = s; }",
        "Poll s{flag, 0}; for (int i = 0; i < n; ++i) s.poll();",
    ] {
        assert!(!waits(statements), "{statements}");
    }
}

#[test]
fn functions_that_call_themselves_may_wait() {
    let waits = |functions: &str| {
        let source = format!("{functions}\n__global__ void k(int* flag, int n) {{ f(flag, n); }}");
        summarize(&source).0.may_wait.is_some()
    };
    for functions in [
        "__device__ void f(int* flag, int n) { if (!atomicAdd(flag, 0)) f(flag, n); }",
        "__device__ int f(int* flag, int n) { int v = atomicAdd(flag, 0); return v ? v : f(flag, n); }",
        "__device__ void f(int* flag, int n);\n__device__ void g(int* flag, int n) { f(flag, n); }\n\
         __device__ void f(int* flag, int n) { if (!atomicAdd(flag, 0)) g(flag, n); }",
    ] {
        assert!(waits(functions), "{functions}");
    }
    for functions in [
        "__device__ void f(int* flag, int n) { if (n > 0) f(flag, n - 1); atomicAdd(flag, 1); }",
        "__device__ void f(int* flag, int n) { if (atomicAdd(flag, 0)) flag[n] = 1; }",
    ] {
        assert!(!waits(functions), "{functions}");
    }
}

#[test]
fn launches_write_what_children_write() {
    let mut host = Host::new();
    let text = r#"__global__ void c(float* p) { p[0] = 1; }
__global__ void k(float* o) { c<<<1, 1>>>(o); cudaDeviceSynchronize(); }"#;
    let file = host.set_file(Path::new("/w/a.cu"), text);
    let db = host.db();
    let k = *items(db, file).functions.last().unwrap();
    assert!(summary(db, k).writes.is_empty() && !summary(db, k).launches.is_empty());
    assert_eq!(summary(db, k).device_sync.len(), 1);
    assert_eq!(memory_effects(db, k).writes.len(), 1);
}

#[test]
fn changes_in_loops() {
    // The grid expression of the launch, asked about the first loop.
    let changes = |statements: &str| {
        let source = format!(
            r#"__global__ void c(int* p) {{ p[0] = 1; }}
__global__ void k(int n, int* out, const int* __restrict__ ro, const int* row) {{ {statements} }}"#
        );
        let mut host = Host::new();
        let file = host.set_file(Path::new("/w/a.cu"), source);
        let db = host.db();
        let function = *items(db, file).functions.last().unwrap();
        let body = body(db, function);
        let ExprKind::Launch(launch) = &body.expr(body.launches[0]).kind else {
            panic!("no launch")
        };
        let is_loop = |s: &StmtId| {
            matches!(
                body.stmt(*s).kind,
                StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::RangeFor { .. }
            )
        };
        let first = (0..body.stmts.len() as u32).map(StmtId).filter(is_loop);
        let first = first.min_by_key(|s| body.stmt(*s).span.start).unwrap();
        changes_around(db, function, &body, launch.config[0], first)
    };
    for statements in [
        "for (int i = 0; i < n; i++) c<<<i, 1>>>(out);",
        "int g = 1; while (g < n) { c<<<g, 1>>>(out); g *= 2; }",
        "for (int i = 0; i < n; i++) { int g = i + 1; c<<<g, 1>>>(out); }",
        "for (int i = 0; i < n; i++) c<<<row[0], 1>>>(out);",
        "for (int i = 0; i < n; i++) c<<<mystery(n), 1>>>(out);",
        "int g = 1; int* q = &g; for (int i = 0; i < n; i++) { c<<<g, 1>>>(out); *q += 1; }",
        "int g = 1; auto f = [&]() { g++; }; for (int i = 0; i < n; i++) { c<<<g, 1>>>(out); f(); }",
        "int g = 1; for (int i = 0; i < n; i++) { c<<<g, 1>>>(out); bump(g); }",
        "for (int i = 0; i < n; i++) c<<<n++, 1>>>(out);",
        "for (int i = 0; i < n; i++) { int g; c<<<g, 1>>>(out); }",
        "dim3 g(n); for (int i = 0; i < n; i++) { c<<<g, 1>>>(out); g.x--; }",
        "int t[2] = {1, 2}; for (int x : t) c<<<x, 1>>>(out);",
    ] {
        assert!(changes(statements), "{statements}");
    }
    for statements in [
        "for (int i = 0; i < n; i++) c<<<n, 1>>>(out);",
        "int g = row[0]; for (int i = 0; i < n; i++) c<<<(g + 1) / 2, 1>>>(out);",
        "for (int i = 0; i < n; i++) { int g = n * 2; c<<<g, 1>>>(out); }",
        "for (int i = 0; i < n; i++) c<<<ro[n], 1>>>(out);",
        "dim3 g(n, 2); for (int i = 0; i < n; i++) c<<<g, 1>>>(out);",
        "for (int i = 0, g = n; i < n; i++) c<<<g, 1>>>(out);",
        "for (int i = 0; i < n; i++) c<<<min(n, 4) + blockIdx.x, 1>>>(out);",
    ] {
        assert!(!changes(statements), "{statements}");
    }
}

#[test]
fn parameters_that_stay() {
    let stays = |statements: &str| {
        let mut host = Host::new();
        let source = format!("__global__ void k(int n, int* out) {{ {statements} }}");
        let file = host.set_file(Path::new("/w/a.cu"), source);
        let db = host.db();
        let function = *items(db, file).functions.last().unwrap();
        let body = body(db, function);
        immutable_parameter(db, function, &body, body.params[0])
    };
    for statements in [
        "out[n] = n;",
        "const int& r = n;",
        "int m = n; m++;",
        "out[min(n, 3)] = 1;",
    ] {
        assert!(stays(statements), "{statements}");
    }
    for statements in [
        "n = 1;",
        "n++;",
        "int* p = &n;",
        "int& r = n;",
        "auto f = [&]() { n = 1; };",
        "mystery(n);",
        "(out[0] ? n : out[0]) = 1;",
        "asm(\"\" : \"+r\"(n));",
    ] {
        assert!(!stays(statements), "{statements}");
    }
}

/// What this thread has taken of a processor: what else the machine does is no part of it.
fn processor_time() -> Duration {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = statistics.split(' ').next().and_then(|taken| taken.parse().ok());
    nanoseconds.map_or_else(|| BEGUN.elapsed(), Duration::from_nanos)
}

fn timed(name: &str, source: String) {
    let mut host = Host::new();
    let file = host.set_file(Path::new("/w/a.cu"), source);
    let db = host.db();
    let function = *items(db, file).functions.last().unwrap();
    let before = body(db, function);
    let start = processor_time();
    let found = uniformity(db, function);
    summary(db, function);
    let took = processor_time() - start;
    println!("{name}: {} expressions, {took:?}", before.exprs.len());
    assert!(!found.exprs.is_empty());
    assert!(took < Duration::from_secs(20), "{name} took {took:?}");
}

#[test]
fn large_functions() {
    let repeated = |line: &str, n: usize| {
        let lines: Vec<String> = (0..n).map(|i| line.replace('@', &i.to_string())).collect();
        format!(
            r#"__global__ void k(int n, int* out, const int* row) {{
int x = 0, t = threadIdx.x;
{}
}}"#,
            lines.join("\n")
        )
    };
    timed(
        "ifs",
        repeated("int a@ = row[t + @]; if (a@ > n) { x += a@; out[x] = 1; }", 1_500),
    );
    timed("returns", repeated("if (row[t] == @) return; x += @;", 2_500));
    timed("gotos", repeated("l@: x++; if (x == @) goto l@;", 200));
    timed(
        "loops",
        repeated("for (int i = 0; i < t; i++) { if (i == @) break; x += i; }", 1_500),
    );
    timed(
        "switch",
        format!(
            "__global__ void k(int n, int* out) {{ int x = 0; while (x < n) {{ switch (threadIdx.x) {{ {} }} }} }}",
            (0..3_000)
                .map(|i| format!("case {i}: x += {i}; break;"))
                .collect::<String>()
        ),
    );
    timed(
        "nesting",
        format!(
            "__global__ void k(int n) {{ int x = 0; {} x++; {} }}",
            "for (;x < n;) {".repeat(150),
            "}".repeat(150)
        ),
    );
    timed(
        "sum",
        format!("__global__ void k(int n) {{ int x = {} n; }}", "n + ".repeat(5_000)),
    );
}

#[test]
fn odd_input_does_not_panic() {
    for source in [
        "__global__ void k(int n) { break; continue; case 3: default: ; }",
        "__global__ void k(int n) { goto a; a: a: goto b; }",
        "__global__ void k(int n) { if (",
        "__global__ void k(int n) { for (;;) }",
        "__global__ void k(int n) { switch (n) case 1: { switch (n) { } } }",
        "__global__ void k( { }",
        "__global__ void k() { do while(1); while(0); }",
        "__global__ void k(int... n) { f(n...); [](auto x) { return x<<<1,1>>>(); }; }",
        "__global__ void k(int n) { while (true) { while (true) { if (n) goto x; } } x: ; }",
        "__global__ void k(int n) { x: if (n) goto y; goto x; y: if (n) goto x; }",
    ] {
        let mut host = Host::new();
        let file = host.set_file(Path::new("/w/a.cu"), source);
        let db = host.db();
        for function in &items(db, file).functions {
            uniformity(db, *function);
            summary(db, *function);
        }
    }
}

/// A function that calls `a`, and then `b`; each leads to 300 others.
fn wide() -> String {
    let mut text = String::new();
    for name in ["a", "b"] {
        for k in (0..300).rev() {
            let next = if k < 299 {
                format!("{name}{}(p);", k + 1)
            } else {
                String::new()
            };
            text += &format!("__device__ void {name}{k}(int* p) {{ {next} }}\n");
        }
    }
    text + "__device__ void f(int* p) { a0(p); b0(p); }\n"
}

#[test]
fn every_call_of_what_leads_too_far_is_unknown() {
    let (s, text) = summarize(&wide());
    let unknown: Vec<&str> = s.unknown_calls.iter().map(|(_, span)| span.text(&text)).collect();
    assert_eq!(unknown, ["a0(p)", "b0(p)"]);
    let mut host = Host::new();
    let file = host.set_file(Path::new("/w/a.cu"), wide());
    let db = host.db();
    let function = *items(db, file).functions.last().unwrap();
    assert!(leads_too_far(db, function));
    let effects = memory_effects(db, function);
    assert!(effects.opaque && effects.foreign_dynamic_shared);
    let writes: Vec<&str> = effects.writes.iter().map(|w| w.span.text(&text)).collect();
    assert_eq!(writes, ["a0(p)", "b0(p)"]);
    // Those near the end of a chain are followed.
    let near = items(db, file).functions.iter().find(|f| f.name(db) == "a100").unwrap();
    assert!(!leads_too_far(db, *near));
}
