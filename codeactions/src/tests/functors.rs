//! Objects that are called: who passes them is followed, and what isn't one function for sure is unknown.

use super::{refuses, rewrite};

const IDS: [&str; 4] = ["aggregate-block", "aggregate-grid", "threshold", "coarsen"];

const SQUARE: &str = "struct Op { __device__ int operator()(int x) const { return x * x; } };";

/// A child that calls what it is given; `object`: what is passed; `more`: what else stands in the program.
fn program(functor: &str, object: &str, more: &str) -> String {
    format!(
        r#"{functor}
template <class F> __global__ void child(int* out, int begin, int count, F f) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[begin + i] = f(i);
}}
__global__ void parent(int* out, const int* row, int n) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) $0child<<<(count + 127) / 128, 128>>>(out, begin, count, {object});
}}
{more}
void run(int* out, const int* row, int n) {{ parent<<<(n + 127) / 128, 128>>>(out, row, n); }}
"#
    )
}

#[test]
fn objects_of_classes() {
    for (functor, object) in [
        (SQUARE, "Op()"),
        (SQUARE, "Op{}"),
        (
            "struct Op { int k; __device__ int operator()(int x) const { return x * k; } };",
            "Op{n}",
        ),
        (
            "template <class T> struct Op { __device__ T operator()(T x) const { return x + 1; } };",
            "Op<int>()",
        ),
        (
            "struct Op { int* p; __device__ int operator()(int x) const { atomicAdd(p, x); return x; } };",
            "Op{out}",
        ),
        (
            "namespace ops { struct Op { __device__ int operator()(int x) const { return x; } }; }",
            "ops::Op()",
        ),
    ] {
        for id in IDS {
            rewrite(id, &program(functor, object, ""));
        }
    }
    let written = rewrite("aggregate-block", &program(SQUARE, "Op()", ""));
    written.has(&["child_aggregated<Op>", "children.launch("]);
}

#[test]
fn objects_that_are_handed_on() {
    let through = r#"struct Op { int k; __device__ int operator()(int x) const { return x * k; } };
template <class G> __device__ int apply(const G& g, int x) { return g(x); }
template <class F> __global__ void child(int* out, int begin, int count, F f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[begin + i] = apply(f, i);
}
template <class F> __global__ void parent(int* out, const int* row, int n, F f) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) $0child<<<(count + 127) / 128, 128>>>(out, begin, count, f);
}
void run(int* out, const int* row, int n) { parent<<<(n + 127) / 128, 128>>>(out, row, n, Op{2}); }
"#;
    for id in IDS {
        rewrite(id, through);
    }
    rewrite("aggregate-block", through).has(&["child_aggregated<F>"]);
}

#[test]
fn what_is_called_is_not_certain() {
    let refuse = |functor: &str, object: &str, more: &str| {
        for id in IDS {
            refuses(id, &program(functor, object, more), "a call of `f`");
        }
    };
    for functor in [
        // Overloads, templates, bases, conversions, state.
        "struct Op { __device__ int operator()(int x) const { return x; } __device__ int operator()(long x) const { return 1; } };",
        "struct Op { template <class T> __device__ int operator()(T x) const { return x; } };",
        "struct Op { __device__ int operator()(auto x) const { return x; } };",
        "struct Base { __device__ int operator()(int x) const { return x; } };\nstruct Op : Base {};",
        "struct Base {};\nstruct Op : Base { __device__ int operator()(int x) const { return x; } };",
        "struct Op { __device__ virtual int operator()(int x) const { return x; } };",
        "struct Op { int n; __device__ int operator()(int x) { return n += x; } };",
        "struct Op { mutable int n; __device__ int operator()(int x) const { return n += x; } };",
        "struct Op { int n; __device__ int operator()(int x) const { return const_cast<Op*>(this)->n += x; } };",
        "struct Op { int n; __device__ int operator()(int x) const { return ((Op*)this)->n += x; } };",
        "struct Op { int operator()(int x) const; };",
        "template <class T> struct Op { __device__ int operator()(int x) const { return x; } };\ntemplate <> struct Op<int> { __device__ int operator()(int x) const { return 2; } };",
        // Two classes of that name.
        "namespace a { struct Op { __device__ int operator()(int x) const { return x; } }; }\nstruct Op { __device__ int operator()(int x) const { return 2; } };",
        // It launches.
        "__global__ void other() {}\nstruct Op { __device__ int operator()(int x) const { other<<<1, 1>>>(); return x; } };",
        "__global__ void other() {}\n__device__ void go() { other<<<1, 1>>>(); }\nstruct Op { __device__ int operator()(int x) const { go(); return x; } };",
    ] {
        refuse(functor, "Op()", "");
    }
    let held = "struct Held { int* p; __device__ Held(const Held& h) { atomicAdd(h.p, 1); } };\nstruct Op { Held held; __device__ int operator()(int x) const { return x; } };";
    for id in IDS {
        refuses(id, &program(held, "Op()", ""), "a constructor of Held");
    }
    refuse("typedef int (*Op)(int);", "Op()", "");
    refuse("using Op = int (*)(int);", "(Op)0", "");
    // Somebody else passes something else.
    for more in [
        "void other(int* out, int (*g)(int)) { child<<<1, 1>>>(out, 0, 1, g); }",
        "void other(int* out) { child<<<1, 1>>>(out, 0, 1, [] __device__(auto x) { return x; }); }",
        "template <class T> void other(int* out, T t) { child<<<1, 1>>>(out, 0, 1, t); }",
        "auto pointer = &child<int (*)(int)>;",
        "template __global__ void child<int (*)(int)>(int*, int, int, int (*)(int));",
        "#define ANY(f) child<<<1, 1>>>(nullptr, 0, 1, f)\nvoid other(int (*g)(int)) { ANY(g); }",
        "void other(int* out) { child<int (*)(int)><<<1, 1>>>(out, 0, 1, nullptr); }",
    ] {
        refuse(SQUARE, "Op()", more);
    }
    // A class of the function's own.
    let local = program(SQUARE, "Op()", "").replace(
        "    int v = blockIdx",
        "    struct Op { __device__ int operator()(int x) const { __syncthreads(); return x; } };\n    int v = blockIdx",
    );
    for id in IDS {
        refuses(id, &local, "a call of `f`");
    }
}

#[test]
fn what_is_called_counts() {
    let refuse = |id: &str, body: &str, reason: &str| {
        let functor = format!("struct Op {{ __device__ int operator()(int x) const {{ {body} return x; }} }};");
        refuses(id, &program(&functor, "Op()", ""), reason);
    };
    for id in IDS {
        refuse(id, "x += blockIdx.x;", "reads `blockIdx`");
    }
    refuse("threshold", "x += threadIdx.x;", "reads `threadIdx`");
    refuse("threshold", "x = __shfl_sync(~0u, x, 0);", "__shfl_sync()");
    refuse("coarsen", "unseen(x);", "`unseen`, of which no definition is in sight");
}

#[test]
fn deduced_numbers() {
    let text = r#"template <class T> __global__ void child(T* out, int count, T value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = value;
}
template <class T> __global__ void parent(T* out, const int* row, int n, const T* values) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    T value = values[v];
    if (row[v] > 0) $0child<<<(row[v] + 127) / 128, 128>>>(out, row[v], value);
}
void run(float* out, const int* row, int n) { parent<float><<<(n + 127) / 128, 128>>>(out, row, n, out); }
"#;
    rewrite("aggregate-block", text).has(&["child_aggregated<T>", "child_args<T>"]);
    // A value has no qualifiers, whatever the type is that its variable is declared with.
    let value = text
        .replace("(T* out, int count, T value)", "(float* out, int count, T value)")
        .replace(
            "(T* out, const int* row, int n, const T* values)",
            "(float* out, const int* row, int n, T* values)",
        );
    rewrite("aggregate-block", &value).has(&["child_aggregated<T>"]);
    let constant = value.replace("parent<float>", "parent<const float>");
    rewrite("aggregate-block", &constant).has(&["child_aggregated<std::decay_t<T>>"]);
}

/// A kernel that launches itself with a block of a size that its template's argument says.
fn sized(settings: &str, host: &str) -> String {
    format!(
        r#"{settings}
template <class S> __global__ void kernel(int* out, int depth) {{
    atomicAdd(out, 1);
    if (threadIdx.x == 0 && depth > 0) $0kernel<S><<<2, S::THREADS>>>(out, depth - 1);
}}
{host}
"#
    )
}

#[test]
fn constants_of_template_arguments() {
    const SMALL: &str = "struct Small { static const int THREADS = 32; };";
    const HOST: &str = "void run(int* out) { kernel<Small><<<1, 32>>>(out, 3); }";
    rewrite("aggregate-block", &sized(SMALL, HOST));
    let two = format!("{SMALL}\nstruct Large {{ static constexpr unsigned THREADS = 64; }};");
    let both = "void run(int* out) { kernel<Small><<<1, 32>>>(out, 3); kernel<Large><<<1, 32>>>(out, 3); }";
    rewrite("aggregate-block", &sized(&two, both));
    let refuse = |settings: &str, host: &str| {
        refuses("aggregate-block", &sized(settings, host), "may have several dimensions");
    };
    let with = |other: &str| format!("{SMALL}\n{other}");
    let size =
        "struct Size { unsigned n; __host__ __device__ constexpr operator dim3() const { return dim3(n, 2); } };";
    // No number, or not in all of them, or who knows where.
    refuse("struct Small { static const dim3 THREADS; };", HOST);
    refuse(
        &format!("{size}\nstruct Small {{ static constexpr Size THREADS = {{32}}; }};"),
        HOST,
    );
    refuse(
        &with(&format!(
            "{size}\nstruct Large {{ static constexpr Size THREADS = {{32}}; }};"
        )),
        both,
    );
    refuse(
        &with("template <class T> struct Large { static const int THREADS = 1; };"),
        "template <class T> void run(int* out) { kernel<typename T::Inner><<<1, 32>>>(out, 3); }",
    );
    refuse(SMALL, "");
    refuse(
        SMALL,
        "namespace other { void run(int* out) { kernel<unseen::Small><<<1, 32>>>(out, 3); } }",
    );
    refuse(SMALL, "auto pointer = &kernel<Small>;");
}

/// Rewrites that name no type of what is called.
const IN_PLACE: [&str; 2] = ["threshold", "coarsen"];

#[test]
fn lambdas() {
    for lambda in [
        "[=](int x) { return x + n; }",
        "[n, out](int x) { atomicAdd(out, x); return x + n; }",
        "[&](int x) { int y = x; for (int k = 0; k < 3; ++k) y += k; return y; }",
        "[](int x) { return (unsigned(x) * 3u) ^ 1u; }",
    ] {
        for id in IN_PLACE {
            rewrite(id, &program("", lambda, ""));
        }
        refuses("aggregate-block", &program("", lambda, ""), "are deduced from a lambda");
    }
    // Of a variable, of the host, and one of several.
    let named = program("", "f", "").replace(
        "    if (count > 0)",
        "    auto f = [=](int x) { return x + begin; };\n    if (count > 0)",
    );
    let more = "void other(int* out) { child<<<1, 1>>>(out, 0, 1, [] __device__(int x) { return x; }); }";
    for id in IN_PLACE {
        rewrite(id, &named);
        rewrite(id, &program(SQUARE, "Op()", more));
    }
    // A helper's template parameter names the type.
    let helper = r#"template <class F> __global__ void child(int* out, int count, F f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = f(i);
}
template <class F> __device__ void each(int* out, int count, const F& f) {
    if (count > 0) $0child<<<(count + 127) / 128, 128>>>(out, count, f);
}
__global__ void parent(int* out, const int* row, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) each(out + row[v], row[v + 1] - row[v], [=](int i) { return i + v; });
}
void run(int* out, const int* row, int n) { parent<<<(n + 127) / 128, 128>>>(out, row, n); }
"#;
    for id in IN_PLACE {
        rewrite(id, helper);
    }
    let reads = helper.replace("return i + v;", "return i + v + int(threadIdx.x);");
    refuses(
        "threshold",
        &reads,
        "calls `a lambda of parent`, which reads `threadIdx`",
    );
    let own_shared = helper.replace(
        "    int v = blockIdx",
        "    __shared__ int s[128];\n    int v = blockIdx",
    );
    refuses(
        "threshold",
        &own_shared.replace("return i + v;", "return i + s[0];"),
        "a call of `f`",
    );
}

#[test]
fn lambdas_of_which_nothing_is_known() {
    let held = "struct Held { int* p; __device__ Held(int* q) : p(q) {} __device__ Held(const Held& h) : p(h.p) { atomicAdd(h.p, 1); } };";
    for (functor, lambda) in [
        ("", "[=](auto x) { return x; }"),
        ("", "[k = n](int x) mutable { return x + k++; }"),
        ("", "[k = v + 1](int x) { return x + k; }"),
        ("#define BODY { return blockIdx.x + x; }", "[=](int x) BODY"),
        ("#define HERE blockIdx.x", "[=](int x) { return x + HERE; }"),
        (
            "__global__ void other() {}",
            "[=](int x) { other<<<1, 1>>>(); return x; }",
        ),
        (
            "__global__ void other() {}\n__device__ void go() { other<<<1, 1>>>(); }",
            "[=](int x) { go(); return x; }",
        ),
        (held, "[h = Held(out)](int x) { return *h.p; }"),
    ] {
        for id in IN_PLACE {
            let refused = super::rewrite_files(id, &[("a.cu", &program(functor, lambda, ""))], &[]);
            assert!(refused.is_err(), "{id}: {lambda}");
        }
    }
    for id in IN_PLACE {
        refuses(
            id,
            &program("", "[=](int x) { return x + int(blockIdx.x); }", ""),
            "reads `blockIdx`",
        );
    }
    refuses(
        "threshold",
        &program("", "[=](int x) { return __shfl_sync(~0u, x, 0); }", ""),
        "__shfl_sync()",
    );
    refuses(
        "threshold",
        &program("", "[=](int x) { while (!*(volatile int*)out) {} return x; }", ""),
        "may wait for another thread",
    );
}

#[test]
fn a_member_of_a_class_template_makes_values_of_its_type() {
    let functor =
        "template <class T> struct Scale { T by; __device__ T operator()(T x) const { return by * x + T(1); } };";
    let text = program(functor, "Scale<int>{3}", "");
    rewrite("aggregate-block", &text);
    rewrite("coarsen", &text);
    // What it makes there may be an object that does more.
    let odd = "struct Odd { int x; __device__ Odd(int y) : x(y + blockIdx.x) {} __device__ operator int() const { return x; } };\n";
    let of_it = program(&format!("{odd}{functor}"), "Scale<Odd>{3}", "");
    refuses("aggregate-block", &of_it, "");
    // A name that isn't the class's own stays one of which nothing is known.
    let unseen = program(&functor.replace("T(1)", "U(1)"), "Scale<int>{3}", "");
    refuses("aggregate-block", &unseen, "`U`, of which no definition is in sight");
}
