//! What the code in sight contradicts isn't assumed: it is refused, with the place that says so.

use super::{refuses, rewrite, rewrite_files};

const REWRITES: [&str; 5] = [
    "fire-and-forget",
    "aggregate-block",
    "aggregate-grid",
    "threshold",
    "serialize",
];

/// A child that does this, launched by all threads of a parent with these arguments.
fn program(before: &str, params: &str, code: &str, args: &str) -> String {
    format!(
        r#"{before}
__global__ void child({params}) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {code}
}}
__global__ void parent(int* out, int n, cudaSurfaceObject_t s) {{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    child<<<2, 32>>>({args});
}}
void run(int* out, cudaSurfaceObject_t s) {{ parent<<<2, 32>>>(out, 64, s); }}
"#
    )
}

#[test]
fn children_that_accumulate() {
    let total = "__device__ int total;";
    for (before, code) in [
        ("", "if (i == 0) out[0] = out[0] * 3 + n;"),
        ("", "out[0] = out[0] * 3 + n;"),
        ("", "out[i] = out[i] * 3 + n;"),
        ("", "out[i] += n;"),
        ("", "++out[0];"),
        ("", "int old = out[i]; out[i] = old + n;"),
        ("", "*out = max(*out, n);"),
        (total, "total += n;"),
        (total, "if (i == 0) total = total + 1;"),
        (
            "__device__ void add(int* p, int n) { p[3] = p[3] * 2 + n; }",
            "add(out, n);",
        ),
        // What isn't known beside it makes it no better.
        ("__device__ int f(int i);", "out[0] = out[0] * 3 + n; f(i);"),
    ] {
        for id in REWRITES
            .iter()
            .filter(|id| !before.contains("f(int") || **id == "fire-and-forget")
        {
            refuses(
                id,
                &program(before, "int* out, int n", code, "out, t"),
                "aren't independent of each other",
            );
        }
    }
}

#[test]
fn children_that_may_accumulate() {
    for (before, code, args) in [
        ("", "out[0] = n;", "out, t"),
        ("", "if (i < n) out[0] = 1;", "out, t"),
        ("", "if (out[0] == 0) out[0] = 1;", "out, t"),
        ("", "atomicAdd(out, n);", "out, t"),
        ("", "out[i] += n;", "out + 64 * t, n"),
        ("", "out[n * 64 + i] += n;", "out, t"),
        ("", "out[out[i]] += n;", "out, t"),
        ("", "if (out[0] < n) atomicMax(&out[0], n);", "out, t"),
    ] {
        for id in REWRITES {
            rewrite(id, &program(before, "int* out, int n", code, args));
        }
    }
}

/// Rows: how many places a grid uses isn't in sight, and they may well end where the next row begins.
#[test]
fn rows_of_their_own() {
    for (code, args, contradicted) in [
        ("if (i < n) out[i] += 1;", "out + 40 * t, t % 40", false),
        ("if (i < n) out[i] += 1;", "out + 40 * t, n", false),
        ("if (i >= n) return; out[i] += 1;", "out + 40 * t, n", false),
        ("for (int k = i; k < n; k += 32) out[k] += 1;", "out + 40 * t, n", false),
        ("if (i < n) out[i] += 1;", "out + t, n", true),
        ("out[i] += 1;", "out + 40 * t, n", true),
        ("if (i < 48) out[i] += 1;", "out + 40 * t, n", true),
    ] {
        let code = program("", "int* out, int n", code, args);
        let found = rewrite("fire-and-forget", &code).assumes;
        let says = found.iter().any(|a| a.contains("the code contradicts it"));
        assert_eq!(says, contradicted, "{args}: {found:?}\n{code}");
    }
}

#[test]
fn launches_that_hand_on() {
    let program = |first: &str, second: &str| {
        format!(
            r#"__global__ void make(int* tmp, int n) {{ tmp[threadIdx.x] = {first}; }}
__global__ void use(const int* tmp, int* out) {{ out[threadIdx.x] = {second}; }}
__global__ void parent(int* tmp, int* out, int n) {{
    if (threadIdx.x != 0) return;
    $0make<<<1, 32>>>(tmp, n);
    use<<<1, 32>>>(tmp, out);
}}
void run(int* tmp, int* out) {{ parent<<<1, 32>>>(tmp, out, 3); }}
"#
        )
    };
    refuses(
        "fire-and-forget",
        &program("n", "tmp[threadIdx.x] + 1"),
        "aren't independent of other grids",
    );
    let assumes = rewrite("fire-and-forget", &program("n", "1")).assumes;
    assert!(
        assumes
            .iter()
            .all(|a| !a.contains("check it") && !a.contains("contradicts it")),
        "{assumes:?}"
    );
}

/// Buffers that change places from one launch to the next: the second grid reads what the first one has written.
#[test]
fn buffers_that_change_places() {
    let program = |store: &str, swap: &str| {
        format!(
            r#"namespace std {{ template <class T> __device__ void swap(T& a, T& b); }}
__global__ void sweep(float* u, float* v, const float* f, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {store}
}}
__global__ void parent(float* u, float* v, float* f, int n, int steps) {{
    if (threadIdx.x != 0) return;
    for (int s = 0; s < steps; ++s) {{
        $0sweep<<<n / 32, 32>>>(u, v, f, n);
        {swap}
    }}
}}
void run(float* u, float* v, float* f, int n) {{ parent<<<1, 32>>>(u, v, f, n, 8); }}
"#
        )
    };
    let store = "if (i < n) v[i] = u[i] + f[i];";
    for swap in [
        "float* t = u; u = v; v = t;",
        "float* t; t = v; v = u; u = t;",
        "std::swap(u, v);",
        "if (s % 2 == 0) { std::swap(v, u); }",
    ] {
        for id in ["fire-and-forget", "aggregate-block", "aggregate-grid"] {
            refuses(id, &program(store, swap), "change places in each iteration");
        }
    }
    // What is only read may change places, and what isn't given to the child.
    for (store, swap) in [
        ("if (i < n) f[i] += 1;", "float* t = u; u = v; v = t;"),
        (store, "float* t = u; t = v;"),
        (store, "v = v + n;"),
    ] {
        let store = store.replace("f[i] += 1", "const_cast<float*>(f)[i] = u[i]");
        let assumes = rewrite("fire-and-forget", &program(&store, swap)).assumes;
        assert!(assumes.iter().all(|a| !a.contains("change places")), "{assumes:?}");
    }
}

/// The second kernel gets memory of its own besides, and fewer numbers.
#[test]
fn launches_that_hand_on_beside_other_memory() {
    let program = |args: &str| {
        format!(
            r#"__global__ void dist(const float* pts, float* d, int n, int dim, int q) {{
    for (int i = threadIdx.x; i < n; i += blockDim.x) d[(size_t)q * n + i] = pts[i * dim] - pts[q * dim];
}}
__global__ void best(const float* d, int* idx, int n, int q) {{
    int b = 0;
    for (int i = 1; i < n; ++i) if (d[(size_t)q * n + i] < d[(size_t)q * n + b]) b = i;
    idx[q] = b;
}}
__global__ void parent(const float* pts, float* d, int* idx, int n, int dim, int half) {{
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    $0dist<<<n / 128, 128>>>(pts, d, n, dim, q);
    best<<<1, 1>>>({args});
}}
void run(const float* p, float* d, int* idx, int n) {{ parent<<<1, 32>>>(p, d, idx, n, 3, n / 2); }}
"#
        )
    };
    for id in ["fire-and-forget", "aggregate-grid-host", "aggregate-grid-stream"] {
        refuses(id, &program("d, idx, n, q"), "aren't independent of other grids");
    }
    for args in ["d + half, idx, n, q", "d, idx, n, q + half"] {
        rewrite("fire-and-forget", &program(args));
    }
}

/// Two kernels that begin at the same element work on the same ones, whatever else they are given; where they begin elsewhere, nothing is
/// known.
#[test]
fn kernels_that_begin_at_the_same_element() {
    let program = |write: &str, read: &str, first: &str, second: &str| {
        format!(
            r#"struct Job {{ int first, count; }};
__global__ void make(const int* in, int* d, Job job, int salt) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < job.count) d[{write}] = in[i] + salt;
}}
__global__ void use(const int* d, int n, int first, int* sum) {{
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(sum, d[{read}]);
}}
__global__ void parent(const Job* jobs, const int* in, int* d, int* sums, int n, int half) {{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= n) return;
    const Job job = jobs[j];
    int own = j * half;
    $0make<<<job.count / 32 + 1, 32>>>({first});
    {second};
}}
void run(const Job* jobs, const int* in, int* d, int* s, int n) {{ parent<<<1, 32>>>(jobs, in, d, s, n, n / 2); }}
"#
        )
    };
    let wrong = "aren't independent of other grids";
    for (write, read, first, second) in [
        (
            "job.first + i",
            "i",
            "in, d, job, 3",
            "use<<<1, 32>>>(d + job.first, job.count, 0, sums + j)",
        ),
        (
            "job.first + i",
            "i",
            "in, d, job, 3",
            "use<<<1, 32>>>(&d[job.first], job.count, 0, sums + j)",
        ),
        (
            "i",
            "first + i",
            "in, d + own, job, 3",
            "use<<<1, 32>>>(d, job.count, own, sums + j)",
        ),
        (
            "i",
            "i",
            "in, d + own, job, 3",
            "use<<<1, 32>>>(d + own, job.count / 2, 0, sums + j)",
        ),
        (
            "salt + i",
            "first + i",
            "in, d, job, own",
            "use<<<1, 32>>>(d, job.count, own, sums + j)",
        ),
    ] {
        for id in ["fire-and-forget", "aggregate-grid-host"] {
            refuses(id, &program(write, read, first, second), wrong);
        }
        // A thread that has run the first grid itself has done so before it launches the second one.
        rewrite("serialize", &program(write, read, first, second));
    }
    for (write, read, first, second) in [
        (
            "job.first + i",
            "i",
            "in, d, job, 3",
            "use<<<1, 32>>>(d + half, job.count, 0, sums + j)",
        ),
        (
            "i",
            "first + i",
            "in, d + own, job, 3",
            "use<<<1, 32>>>(d, job.count, half, sums + j)",
        ),
        (
            "i",
            "i",
            "in, d + own, job, 3",
            "use<<<1, 32>>>(d + own + job.count, 9, 0, sums + j)",
        ),
        (
            "job.first + i",
            "i",
            "in, d, job, 3",
            "use<<<1, 32>>>(d + job.count, job.count, 0, sums + j)",
        ),
    ] {
        let assumes = rewrite("fire-and-forget", &program(write, read, first, second)).assumes;
        assert!(
            assumes.iter().any(|a| a.contains("are independent of other grids")),
            "{assumes:?}"
        );
    }
    // The halves of a sort are given to one kernel.
    let halves = program("salt + i", "i", "in, d, job, own", "make<<<1, 32>>>(in, d, job, half)");
    rewrite("fire-and-forget", &halves);
}

/// No subscript is the same for sure, but both get the same memory and the same sizes.
#[test]
fn launches_that_hand_on_what_is_not_proven() {
    let program = |first: &str, second: &str| {
        format!(
            r#"struct Phase {{ int* pos; int* vel; int n; }};
__global__ void move(Phase p, int n) {{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < p.n; i += blockDim.x * gridDim.x) p.pos[i] += p.vel[i];
}}
__global__ void collide(Phase p, int n, const int* map, int parity) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (p.pos[map[i]] > p.pos[i]) p.vel[i] = 0;
}}
__global__ void parent(Phase p, int n, const int* map, int begin, int end) {{
    if (threadIdx.x != 0) return;
    {first}
    {second}
}}
void run(Phase p, const int* map, int n) {{ parent<<<1, 32>>>(p, n, map, 0, n); }}
"#
        )
    };
    let (one, other) = (
        "$0move<<<n / 32, 32>>>(p, n);",
        "collide<<<n / 32, 32>>>(p, n, map, 1);",
    );
    for id in ["fire-and-forget", "aggregate-grid-host"] {
        refuses(id, &program(one, other), "aren't independent of other grids");
    }
    // A thread that has run the first grid itself has done so before it launches the second one.
    let assumes = rewrite("serialize", &program(one, other)).assumes;
    assert!(
        assumes.iter().all(|reason| !reason.contains("`collide`")),
        "{assumes:?}"
    );
    let back = program(
        "collide<<<n / 32, 32>>>(p, n, map, 1);",
        "$0move<<<n / 32, 32>>>(p, n);",
    );
    refuses("fire-and-forget", &back, "aren't independent of other grids");
    // A thread that comes to one launch only orders nothing; a variable may have changed.
    for (first, second, open) in [
        (
            "if (n > 9) $0move<<<n / 32, 32>>>(p, n);",
            "else collide<<<n / 32, 32>>>(p, n, map, 1);",
            false,
        ),
        (
            "$0move<<<n / 32, 32>>>(p, n); p.pos += n;",
            "collide<<<n / 32, 32>>>(p, n, map, 1);",
            true,
        ),
    ] {
        let assumes = rewrite("fire-and-forget", &program(first, second)).assumes;
        let assumed = assumes.iter().any(|a| a.contains("independent of other grids"));
        assert_eq!(assumed, open, "{assumes:?}");
    }
}

#[test]
fn surfaces() {
    let child = |code: &str| program("", "cudaSurfaceObject_t s, int n", code, "s, t");
    for code in [
        "int v; surf2Dread(&v, s, i * 4, 0); surf2Dwrite(v * 2 + n, s, i * 4, 0);",
        "int v = surf2Dread<int>(s, threadIdx.x * 4, 1); surf2Dwrite<int>(v + n, s, threadIdx.x * 4, 1);",
        "int v = surf1Dread<int>(s, 0); surf1Dwrite(v + 1, s, 0);",
    ] {
        for id in ["fire-and-forget", "threshold"] {
            refuses(id, &child(code), "reads and writes the surface `s` at the same places");
        }
    }
    for code in [
        "surf2Dwrite(n, s, i * 4, 0);",
        "int v; surf2Dread(&v, s, i * 4, n); surf2Dwrite(v * 2 + n, s, i * 4, n);",
    ] {
        let assumes = rewrite("fire-and-forget", &child(code)).assumes;
        assert!(!assumes.is_empty());
    }
}

#[test]
fn streams_that_iterations_share() {
    let program = |code: &str| {
        format!(
            r#"__global__ void child(int* out, int n) {{
    int i = threadIdx.x;
    {code}
}}
__global__ void parent(int* out, int n) {{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    cudaStream_t s;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    for (int k = 0; k < n; ++k) child<<<1, 32, 0, s>>>(out + 32 * t, k);
    cudaStreamDestroy(s);
}}
void run(int* out) {{ parent<<<2, 32>>>(out, 64); }}
"#
        )
    };
    for id in ["aggregate-block", "threshold"] {
        refuses(
            id,
            &program("out[i] = out[i] * 3 + n;"),
            "aren't independent of each other",
        );
        rewrite(id, &program("out[i] = n;"));
    }
}

/// A parent whose threads make a stream of their own, and put these launches into it.
fn own_stream(child: &str, launches: &str) -> String {
    format!(
        r#"__global__ void make(int* to, int n) {{ to[threadIdx.x] = n; }}
__global__ void child(int* to, const int* from, int n) {{ {child} }}
__global__ void parent(int* out, int n) {{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    cudaStream_t s;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    {launches}
    cudaStreamDestroy(s);
}}
void run(int* out) {{ parent<<<2, 32>>>(out, 64); }}
"#
    )
}

#[test]
fn launches_that_hand_on_in_a_stream() {
    const ADDS: &str = "to[threadIdx.x] = to[threadIdx.x] * 3 + n;";
    const SUMS: &str = "int last = to[0]; to[threadIdx.x] = last + n;";
    const FIRST: &str = "if (threadIdx.x == 0) to[0] += n;";
    let two = "make<<<1, 32, 0, s>>>(out + 32 * t, n); $0child<<<1, 32, 0, s>>>(out + 32 * t, out, n);";
    let both = "for (int k = 0; k < n; ++k) { $0child<<<1, 32, 0, s>>>(out + 32 * t, out, k); make<<<1, 32, 0, s>>>(out, k); }";
    let one = "for (int k = 0; k < n; ++k) child<<<1, 32, 0, s>>>(out + 32 * t, out, k);";
    for child in [ADDS, SUMS, FIRST] {
        for id in ["aggregate-block", "aggregate-grid", "threshold", "serialize"] {
            refuses(id, &own_stream(child, one), "aren't independent of each other");
        }
        for (id, launches) in [
            ("threshold", two),
            ("threshold", both),
            ("serialize", two),
            ("serialize", both),
        ] {
            refuses(id, &own_stream(child, launches), "aren't independent of each other");
        }
    }
    // Nobody reads what another grid writes, or nothing tells.
    for child in ["to[threadIdx.x] = n;", "to[from[n]] += n;", "to[blockDim.x] = to[0];"] {
        rewrite("aggregate-block", &own_stream(child, one));
    }
    rewrite("threshold", &own_stream("to[threadIdx.x] = n;", two));
    // As in the NULL stream, what is given the same memory and the same sizes hands it on.
    refuses(
        "threshold",
        &own_stream("to[from[n]] += n;", two),
        "aren't independent of each other",
    );
}

/// A kernel of which one thread launches in a loop.
fn one_thread(child: &str, launches: &str) -> String {
    format!(
        r#"__global__ void child(float* to, const float* from, int k, int n) {{ {child} }}
__global__ void parent(float* u, float* v, const int* first, int n) {{
    if (threadIdx.x != 0) return;
    {launches}
}}
void run(float* u, float* v, const int* first) {{ parent<<<8, 32>>>(u, v, first, 64); }}
"#
    )
}

#[test]
fn pointers_that_take_turns() {
    const STEP: &str = "int i = threadIdx.x; to[i] = from[i] + from[i ^ 1];";
    for launches in [
        "for (int k = 0; k < n; ++k) { child<<<1, 32>>>(v, u, k, n); float* t = u; u = v; v = t; }",
        "for (int k = 0; k < n; ++k) child<<<1, 32>>>(k & 1 ? u : v, k & 1 ? v : u, k, n);",
        "float* both[] = {u, v}; for (int k = 0; k < n; ++k) child<<<1, 32>>>(both[(k + 1) % 2], both[k % 2], k, n);",
        "for (int k = 0; k < n; ++k) child<<<1, 32>>>(u + (k + 1) * n, u + k * n, k, n);",
        "float* at = u; for (int k = 0; k < n; ++k, at += n) child<<<1, 32>>>(at + n, at, k, n);",
    ] {
        refuses("aggregate-grid", &one_thread(STEP, launches), "aren't independent");
    }
    // Nothing comes back to what another iteration has had.
    for launches in [
        "for (int k = 0; k < n; ++k) child<<<1, 32>>>(u + k * n, v + k * n, k, n);",
        "for (int k = 0; k < n; ++k) { float *a = u + k * n, *b = v + k * n; if (n & 1) { float* t = a; a = b; b = t; } child<<<1, 32>>>(a, b, k, n); }",
        "float *a = u, *b = v; if (n & 1) { a = v; b = u; } for (int k = 0; k < n; ++k) child<<<1, 32>>>(a + k * n, b, k, n);",
    ] {
        rewrite("aggregate-grid", &one_thread(STEP, launches));
    }
}

#[test]
fn passes_over_the_same_elements() {
    let launches = "for (int k = 1; k < n; k *= 2) child<<<1, 32>>>(u, v, k, n);";
    for child in [
        "int i = threadIdx.x; to[i] += from[k];",
        "int i = (threadIdx.x / k) * 2 * k + threadIdx.x % k; float x = to[i]; to[i] = x + to[i + k];",
        "for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = to[i] * 2 + k;",
        "to[threadIdx.y * n + threadIdx.x] += k;",
    ] {
        refuses(
            "aggregate-grid",
            &one_thread(child, launches),
            "they go over the same elements",
        );
    }
    // A part of their own, or nobody knows.
    for child in [
        "for (int i = k + threadIdx.x; i < n; i += blockDim.x) to[i] = to[i] * 2;",
        "int i = k * n + threadIdx.x; to[i] += 1;",
        "int i = (threadIdx.x / 8) * n + k + threadIdx.x % 8; to[i] += 1;",
        "int i = int(from[threadIdx.x]); to[i] += k;",
        "for (int i = threadIdx.x; i < n; i += blockDim.x) if (i >= k && i < 2 * k) to[i] += 1;",
        "to[threadIdx.x] = from[threadIdx.x];",
    ] {
        rewrite("aggregate-grid", &one_thread(child, launches));
    }
}

#[test]
fn functions_called_again() {
    let program = |calls: &str| {
        format!(
            r#"__global__ void child(float* to, const float* from) {{ to[threadIdx.x] = from[threadIdx.x ^ 1]; }}
__device__ void step(float* to, const float* from) {{ child<<<1, 32>>>(to, from); }}
__global__ void parent(float* u, float* v, float* w) {{ if (threadIdx.x == 0) {{ {calls} }} }}
void run(float* u, float* v, float* w) {{ parent<<<8, 32>>>(u, v, w); }}
"#
        )
    };
    refuses(
        "aggregate-grid",
        &program("step(v, u); step(w, v);"),
        "lets a grid work on",
    );
    rewrite("aggregate-grid", &program("step(v, u); step(w, u);"));
}

#[test]
fn one_launch_of_a_block_needs_no_order() {
    let program = |launches: &str| {
        format!(
            r#"__global__ void a(float* u) {{ u[threadIdx.x] += 1; }}
__global__ void b(float* u, int n) {{ u[threadIdx.x + n] *= 2; }}
__global__ void parent(float* u, int n) {{ {launches} }}
void run(float* u) {{ parent<<<8, 32>>>(u, 64); }}
"#
        )
    };
    let independent = |code: &str| {
        let assumes = rewrite("fire-and-forget", &program(code)).assumes;
        !assumes.iter().any(|reason| reason.contains("independent"))
    };
    assert!(independent(
        "if (threadIdx.x == 0) { if (u[blockIdx.x] > 0) $0a<<<1, 32>>>(u); else b<<<1, 32>>>(u, n); }"
    ));
    assert!(independent(
        "if (threadIdx.x != 0) return; if (u[blockIdx.x] > 0) { a<<<1, 32>>>(u); return; } $0b<<<1, 32>>>(u, n);"
    ));
    // Two threads.
    for code in [
        "if (threadIdx.x == 0) { $0a<<<1, 32>>>(u); } else if (threadIdx.x == 1) { b<<<1, 32>>>(u, n); }",
        "if (threadIdx.x == u[0]) { a<<<1, 32>>>(u); return; } if (threadIdx.x == 0) $0b<<<1, 32>>>(u, n);",
    ] {
        let outcome = rewrite_files("fire-and-forget", &[("a.cu", &program(code))], &[]);
        assert!(outcome.is_err() || !independent(code), "{code}");
    }
}

/// A wavefront: each grid reads what the one before has written. Nothing proves it; nobody is talked into it.
#[test]
fn grids_that_read_beside_what_they_write() {
    let wavefront = |code: &str| {
        format!(
            r#"__global__ void step(int* h, int lo, int count) {{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= count) return;
    int i = lo + t;
    {code}
}}
__global__ void all(int* h, int n) {{
    for (int d = 2; d < 2 * n; ++d) {{
        int lo = max(1, d - n), hi = min(n, d - 1);
        $0step<<<(hi - lo + 64) / 64, 64>>>(h, lo, hi - lo + 1);
    }}
}}
void run(int* h, int n) {{ all<<<1, 1>>>(h, n); }}
"#
        )
    };
    let assumes = |code: &str| rewrite("aggregate-grid", &wavefront(code)).assumes.join("; ");
    let found = assumes("h[i] = h[i - 1] + 1;");
    assert!(
        found.contains("; the code contradicts it: line 5 reads `h[i - 1]`, and line 5 writes `h[i]`"),
        "{found}"
    );
    // The same elements, as a relaxation has.
    let found = assumes("if (h[i] > count) h[i] = count;");
    assert!(!found.contains("but"), "{found}");
}

/// What two grids have sorted is merged: the NULL stream orders them.
#[test]
fn halves_that_are_merged() {
    let sort = |second: &str, merge: &str| {
        format!(
            r#"__global__ void merge(int* a, int lo, int mid, int hi) {{
    for (int i = lo, j = mid; j < hi; ++j, ++i) a[i] = a[i] + a[j];
}}
__global__ void sort(int* a, int lo, int hi) {{
    if (hi - lo < 2) {{
        a[lo] += hi;
        return;
    }}
    int mid = (lo + hi) / 2;
    sort<<<1, 1>>>(a, lo, mid);
    {second}
    $0merge<<<1, 1>>>({merge});
}}
void run(int* a, int n) {{ sort<<<1, 1>>>(a, 0, n); }}
"#
        )
    };
    let wrong = "aren't independent of other grids that `sort` launches";
    refuses(
        "aggregate-block",
        &sort("sort<<<1, 1>>>(a, mid, hi);", "a, lo, mid, hi"),
        wrong,
    );
    // Another part.
    let found = rewrite("aggregate-block", &sort("", "a, hi, hi + 1, hi + 2"));
    assert!(
        found
            .assumes
            .iter()
            .any(|a| a.contains("are independent of other grids")),
        "{:?}",
        found.assumes
    );
}
