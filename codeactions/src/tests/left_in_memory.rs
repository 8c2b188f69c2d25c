//! `replace-device-sync` where the kernel may have what another grid can't use: addresses of its own memory, streams, references, its name.

use super::checked_waits::{becomes, program, refused};

/// One thread runs `before`, launches, waits and runs `behind`; `front` stands before all.
fn one(front: &str, before: &str, behind: &str) -> String {
    let body = format!("    {before}\n    child<<<1, 32>>>(data, n);\n    $0cudaDeviceSynchronize();\n    {behind}");
    format!("{front}\n{}", program(&body, "1, 1"))
}

/// The same in a loop with this head.
fn looped(front: &str, head: &str, before: &str, behind: &str) -> String {
    let body = format!(
        "    {head} {{\n        {before}\n        child<<<1, 32>>>(data, n);\n        $0cudaDeviceSynchronize();\n        {behind}\n    }}\n    out[1] = data[1];"
    );
    format!("{front}\n{}", program(&body, "1, 1"))
}

const LEFT: &str = "leaves no address of local or shared memory, and no stream, in memory";

#[test]
fn addresses_that_may_be_left() {
    let front = "__device__ int* pick(int* p) { return p; }\n__device__ int* slot;\n\
                 struct Cell { int* p; __device__ void put(int* q) { p = q; } };\n\
                 __device__ unsigned long long number(int& v) { return (unsigned long long)&v; }";
    for (before, behind) in [
        ("int own = n; *box = pick(&own);", "out[2] = **box;"),
        ("int own = n; slot = pick(&own);", "out[2] = *slot;"),
        ("int own = n; int* p = &own; memcpy(box, &p, 8);", "out[2] = **box;"),
        (
            "int own = n; atomicExch((unsigned long long*)box, (unsigned long long)&own);",
            "out[2] = *box[0];",
        ),
        (
            "int own = n; *(unsigned long long*)box = number(own);",
            "out[2] = *(int*)*(unsigned long long*)box;",
        ),
        ("int own = n; ((Cell*)box)->put(&own);", "out[2] = *((Cell*)box)->p;"),
    ] {
        let text = one(front, before, behind);
        let assumes = becomes(&text, &["parent_after_child"]);
        assert!(assumes.iter().any(|a| a.contains(LEFT)), "{before} {assumes:?}");
    }
    // Nobody reads an address, or nothing has one.
    for (before, behind) in [
        ("int own = n; slot = pick(&own);", "out[2] = data[2];"),
        ("int own[2] = {n, n}; out[3] = own[n & 1];", "out[2] = **box;"),
        ("int own = n; atomicAdd(&own, 1); out[3] = own;", "out[2] = **box;"),
    ] {
        let assumes = becomes(&one(front, before, behind), &["parent_after_child"]);
        assert!(!assumes.iter().any(|a| a.contains(LEFT)), "{before} {assumes:?}");
    }
}

#[test]
fn streams_that_may_be_left() {
    let front = "struct Context { cudaStream_t stream; };\n__device__ cudaStream_t shared_stream;";
    let create = |place: &str| format!("cudaStreamCreateWithFlags(&{place}, cudaStreamNonBlocking);");
    for place in ["shared_stream", "((Context*)box)->stream", "((cudaStream_t*)box)[0]"] {
        let behind = format!("child<<<1, 32, 0, {place}>>>(data, 2);");
        let assumes = becomes(&one(front, &create(place), &behind), &["parent_after_child"]);
        assert!(assumes.iter().any(|a| a.contains(LEFT)), "{place} {assumes:?}");
    }
    // It is created in a branch, and what follows that branch launches into it.
    let body = "    cudaStream_t s;\n    if (n > 0) {\n        cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);\n        \
                child<<<1, 32, 0, s>>>(data, n);\n        $0cudaDeviceSynchronize();\n    }\n    out[1] = data[1];\n    \
                if (n > 0) child<<<1, 32, 0, s>>>(data, 2);";
    refused(&program(body, "1, 1"), "`s` can't be handed to another kernel");
}

#[test]
fn references_and_objects_that_keep_addresses() {
    let front = "struct Ref { int& v; };\nstruct Cursor { int* p; __device__ void bind(int& x) { p = &x; } };\n\
                 struct Self { int v; int* p; __device__ void init(int k) { v = k; p = &v; } __device__ int* operator+() { return &v; } };";
    for (before, behind, why) in [
        ("int own = n; Ref r{own};", "out[2] = r.v;", "may hold a reference"),
        (
            "int own = n; Ref* r = new Ref{own};",
            "out[2] = r->v;",
            "may hold a reference",
        ),
        (
            "int own = n; Cursor c; c.bind(own);",
            "out[2] = *c.p;",
            "may point at shared or local memory",
        ),
        (
            "Self s; s.init(n);",
            "out[2] = *s.p;",
            "may point at shared or local memory",
        ),
        (
            "Self s; s.v = n; int* p = +s;",
            "out[2] = *p;",
            "may point at shared or local memory",
        ),
    ] {
        refused(&one(front, before, behind), why);
    }
}

#[test]
fn names_and_threads_that_another_kernel_has_not() {
    let len = "__device__ int length(const char* s) { return s[0]; }";
    for name in ["__func__", "__FUNCTION__", "__PRETTY_FUNCTION__"] {
        refused(
            &one(len, "", &format!("out[2] = length({name});")),
            "another name in another kernel",
        );
    }
    let caller = "__device__ int caller(const char* s = __builtin_FUNCTION()) { return s[0]; }";
    refused(&one(caller, "", "out[2] = caller();"), "another name in another kernel");
    refused(
        &one("", "if (n > 5) asm volatile(\"exit;\");", "out[2] = data[2];"),
        "may leave `parent` by inline assembly",
    );
    refused(
        &one(
            "__device__ int one() { return 1; }",
            "int (*f)() = one;",
            "out[2] = f();",
        ),
        "`f`",
    );
    refused(
        &one(
            "",
            "const char* const* v = (const char* const*)box;",
            "out[2] = v[1] == nullptr;",
        ),
        "`v` can't be handed",
    );
}

/// What a loop's head, or what is launched before a variable's declaration, says is said again.
#[test]
fn loops_that_go_on() {
    let macros = "#define LESS(i, n) i < n\n#define LESSP(i, n) ((i) < (n))\n#define ADD(i, k) i += k\n#define ROUNDS 3\n\
                  __device__ int buf[6];\ntemplate <int K> __device__ int times(int v) { return K * v; }\nconstexpr int K = 3;";
    for head in [
        "for (int i = 0; LESS(i, n); ++i)",
        "for (int i = 0; i < n; ADD(i, 2))",
        "while (LESS(data[0], 9))",
    ] {
        refused(&looped(macros, head, "", "out[2] += data[1];"), "is not understood");
    }
    for head in [
        "for (int i = 0; LESSP(i, n); ++i)",
        "for (int i = 0; i < ROUNDS; i += 2)",
        "while (data[0] < 9)",
    ] {
        becomes(
            &looped(macros, head, "", "out[2] += data[1];"),
            &["bool resumed = true"],
        );
    }
    for (before, behind) in [
        ("out[3] = sizeof(buf); char buf = data[40];", "out[2] += buf;"),
        (
            "decltype(buf[0]) z = 300; out[3] = z; char buf = data[40];",
            "out[2] += buf;",
        ),
        ("out[3] = times<K>(n); int K = data[40];", "out[2] += K;"),
    ] {
        refused(
            &looped(macros, "for (int i = 0; i < 3; ++i)", before, behind),
            "several variables are named",
        );
    }
}

/// What asks for errors by another name, or shows the wait's text.
#[test]
fn errors_that_are_asked_for_elsewhere() {
    let status = "struct Status { __device__ bool operator()() const { return cudaGetLastError() == cudaSuccess; } };\n\
                  __device__ void note(const char* s, int e) {}\n#define TRACE(x) do { int e = (int)(x); note(#x, e); } while (0)";
    for behind in [
        "if (!Status()()) out[3] = 1; out[2] = data[2];",
        "auto f = cudaGetLastError; if (f() != cudaSuccess) out[3] = 1;",
    ] {
        let assumes = becomes(&one(status, "", behind), &["parent_after_child"]);
        assert!(
            assumes.iter().any(|a| a.contains("no CUDA call fails in `parent`")),
            "{behind} {assumes:?}"
        );
    }
    let removed = |wait: &str| program(&format!("    child<<<1, 32>>>(data, n);\n    {wait}"), "1, 1");
    let assumes = becomes(
        &removed("int e = (int)$0cudaDeviceSynchronize();"),
        &["(int)cudaPeekAtLastError()"],
    );
    assert!(
        assumes
            .iter()
            .any(|a| a.contains("no CUDA call of `parent` fails before the wait")),
        "{assumes:?}"
    );
    let traced = removed("TRACE($0cudaDeviceSynchronize());");
    let assumes = becomes(&format!("{status}\n{traced}"), &["TRACE(cudaPeekAtLastError())"]);
    assert!(
        assumes.iter().any(|a| a.contains("`TRACE` shows the wait's text")),
        "{assumes:?}"
    );
}
