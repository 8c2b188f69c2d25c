//! `serialize` and `threshold` of children whose threads keep addresses of their own objects across barriers, and of what else a cut at a
//! barrier would give another meaning.

use super::{Rewritten, refuses, rewrite, with_child};

const ID: &str = "threshold";
const LAUNCH: &str = "child<<<1, 32, 128>>>(out, begin, count);";

const BEFORE: &str = "\
struct Box { int a[4]; int n; };
struct Holder { int* at; };
struct Slot { int*& where_it_is; };
struct Reference { int& to; };
__device__ int* slots[40];
__device__ void keep_all(Reference r) { slots[0] = &r.to; }
__device__ void put(int* at[], int& x) { at[0] = &x; }
__device__ int* first(int& x) { return &x; }
__device__ const int* of_constant(const int& x) { return &x; }
__device__ const unsigned* of_number(const unsigned& x) { return &x; }
__device__ void keep(int& x) { slots[0] = &x; }
__device__ void keep_deeper(int* x) { keep(*x); }
__device__ void add_to(int& x, int by) { x += by; }
template <class T>
__device__ int is_const(T&) { return 0; }
template <class T>
__device__ int is_const(const T&) { return 1; }
__device__ int of_number_alone(int x) { return x + 1; }
template <class T>
struct Place { T is; };
union Bits { double number; long long bits; };
__device__ double as_number(int* x) { Bits b; b.bits = (long long)x; return b.number; }
enum class Address : unsigned long long {};
__device__ int sum(const int* x) { return x[0] + x[1]; }
";

fn program(before: &str, behind: &str) -> String {
    let child = format!(
        "{BEFORE}__global__ void child(int* out, int begin, int count) {{\n    {before}\n    __syncthreads();\n    {behind}\n}}\n"
    );
    with_child(&child, LAUNCH)
}

#[track_caller]
fn split(before: &str, behind: &str) -> Rewritten {
    rewrite(ID, &program(before, behind))
}

#[track_caller]
fn refused(before: &str, behind: &str, reason: &str) {
    refuses(ID, &program(before, behind), reason);
}

/// There is one object for each thread, which lives as long as what leads to it.
#[test]
fn one_object_for_each_thread() {
    for before in [
        "int x = 1, y = 2; int* p = &(count ? x : y);",
        "int x = 1; int* p = &++x;",
        "int x = 1; int* p = &(x = 2);",
        "int x = 1; int* p = &(begin, x);",
        "int x = 1; int& r = x; int* p = &r;",
        "int x = 1; int* q = &x; int* p = q;",
        "int x = 1; int* p; int** pp = &p; *pp = &x;",
        "int x = 1; int* q = &x; int* p; memcpy(&p, &q, 8);",
        "int x = 1; int* p = first(x);",
        "int x = 1; int* p = (int*)of_constant(x);",
    ] {
        split(before, "out[begin] = *p;").has(&["int x[32];", "int* p[32];"]);
    }
    for before in [
        "int x = 1; slots[threadIdx.x] = &x;",
        "int x = 1; keep(x);",
        "int x = 1; keep_deeper(&x);",
        "int x = 1; Holder h; h.at = &x; slots[0] = h.at;",
        "int x = 1; Holder h = {&x}; slots[0] = h.at;",
        "int x = 1; atomicExch((unsigned long long*)out, (unsigned long long)&x);",
        "__shared__ int* s[32]; int x = 1; s[0] = &x;",
    ] {
        split(before, "out[begin] = *slots[0];").has(&["int x[32];"]);
    }
    for (before, array) in [
        ("int x[3]; x[1] = 2; int* p = x + 1;", "int x[32][3];"),
        ("int x[2][3]; x[1][0] = 2; int* p = x[1];", "int x[32][2][3];"),
        ("int x[3]; x[1] = 2; int* p = &*(x + 1);", "int x[32][3];"),
    ] {
        split(before, "out[begin] = *p;").has(&[array]);
    }
    // Also of what could be computed again.
    for init in ["of_constant(i)", "of_constant(count ? i : j)"] {
        let before = format!("const int i = threadIdx.x, j = count; const int* p = {init};");
        split(&before, "out[begin] = *p + i;").has(&["int i[32];"]);
    }
}

/// An address goes on in whatever has room for a part of it, and as a reference that somebody returns.
#[test]
fn addresses_in_pieces() {
    for before in [
        "int x = 1; int* p = &x; char* from = (char*)&p; char* to = (char*)slots; for (int i = 0; i < 8; ++i) to[i] = from[i];",
        "int x = 1; unsigned low = (unsigned)(size_t)&x; out[begin] = (int)low;",
        "int x = 1; slots[0] = (int*)(size_t)as_number(&x);",
        "int x = 1; ((double*)slots)[0] = as_number(&x);",
        "int x = 1; ((Address*)slots)[0] = (Address)(size_t)&x;",
        "int x = 1; short* s = (short*)slots; s[0] = (short)((size_t)&x >> 16);",
        "int x = 1, y = 2; slots[0] = (int*)&std::max(x, y);",
        "int x[2]; x[1] = 1; slots[0] = &1[x];",
        "int x = 1; { Place<int*&> place{slots[0]}; place.is = &x; }",
        "int x = 1; slots[0] = x ? &x : nullptr;",
        "int x = 1; bool b = (slots[0] = &x) != nullptr; out[begin] = b;",
    ] {
        let array = if before.contains("x[2]") {
            "int x[32][2];"
        } else {
            "int x[32];"
        };
        split(before, "out[begin] = *slots[0];").has(&[array]);
    }
}

/// The class that a name of CUDA's stands for is the program's.
#[test]
fn classes_with_names_of_cuda() {
    let program = |class: &str, before: &str| {
        let child = format!(
            "{class}
__device__ int* kept[40];
__device__ void* slots;
__global__ void child(int* out, int begin, int count) {{
    int x = 1;
    {before}
    __syncthreads();
    out[begin] = *kept[threadIdx.x];
}}
"
        );
        with_child(&child, LAUNCH)
    };
    let before = "{ half h{x}; kept[threadIdx.x] = &h.at; }";
    rewrite(ID, &program("struct half { int& at; };", before)).has(&["int x[32];"]);
    refuses(
        ID,
        &program("struct half { int* at; };", "half h; h.at = &x; slots = &h;"),
        "has a type that can't be made an array",
    );
}

/// A name may stand for a type that an array can't have.
#[test]
fn aliases_that_say_more() {
    for alias in [
        "typedef const int Number;",
        "using Number = int const;",
        "typedef int Number __attribute__((aligned(16)));",
        "using Number [[gnu::aligned(16)]] = int;",
        "using Inner = const int; using Number = Inner;",
        "#define Number const int",
    ] {
        let child = format!(
            "{alias}\n__global__ void child(int* out, int begin, int count) {{\n    Number x = out[threadIdx.x];\n    out[begin] = 1;\n    __syncthreads();\n    out[begin] += x;\n}}\n"
        );
        let result = super::rewrite_files(ID, &[("a.cu", &with_child(&child, LAUNCH))], &[]);
        let text = result.as_ref().map(|r| r.text().to_owned()).unwrap_or_default();
        assert!(!text.contains("Number x["), "{alias}: {text}");
    }
    let child = "using Number = int;\nusing Constant = const Number;\n__global__ void child(int* out, int begin, int count) {\n    Number x = out[threadIdx.x];\n    out[begin] = 1;\n    __syncthreads();\n    out[begin] += x;\n}\n";
    rewrite(ID, &with_child(child, LAUNCH)).has(&["Number x[32];"]);
}

/// A directive needs a line of its own.
#[test]
fn directives_in_declarations() {
    refused(
        "int x =\n#if 1\n    out[threadIdx.x]\n#else\n    out[2]\n#endif\n    + 1; out[begin] = x;",
        "out[begin] = x;",
        "has an `#if` in its declaration",
    );
    refused(
        "const int x = 3 +\n#if 1\n    1\n#else\n    2\n#endif\n    + threadIdx.x; out[begin] = x;",
        "out[begin] = x;",
        "has an `#if` in its declaration",
    );
}

/// Of what no array is made.
#[test]
fn objects_that_are_kept() {
    for before in [
        "Box b; b.a[0] = 1; int* p = b.a;",
        "Box b; b.n = 1; int* p = &b.n;",
        "Box b; b.n = 1; int* p = first(b.n);",
        "Box b; int* p = b.a + 1;",
        "Box b[2]; int* p = b[1].a;",
        "int x[2] = {1, 2}; int* p = x;",
        "alignas(16) int x = 1; int* p = &x;",
    ] {
        refused(
            before,
            "out[begin] = *p;",
            "whose address may be kept across a barrier, ",
        );
    }
    for before in [
        "int x = 1; auto p = &x;",
        "int x = 1; auto p = first(x);",
        "int y = 1; int& p = y;",
        "int x[3]; auto p = x + 1;",
    ] {
        refused(before, "out[begin] = *&p[0];", "has a type that can't be made an array");
    }
    // Who is called stores it where the child's own pointer is.
    for (before, behind) in [
        ("int x = 1; int* at[1]; put(at, x);", "out[begin] = *at[0];"),
        (
            "int x = 1; int* at; Slot s{at}; s.where_it_is = &x;",
            "out[begin] = *at;",
        ),
        ("int x = 1; keep_all({x});", "out[begin] = *slots[0];"),
    ] {
        let result = super::rewrite_files(ID, &[("a.cu", &program(before, behind))], &[]);
        let text = result.as_ref().map(|r| r.text().to_owned()).unwrap_or_default();
        assert!(text.is_empty() || text.contains("int x[32];"), "{before}: {text}");
    }
    refused("int x = 1; Holder h{&x};", "out[begin] = *h.at;", "`h`");
    refused(
        "const unsigned* p = of_number(threadIdx.x);",
        "out[begin] = *p;",
        "may keep the address of a built-in variable",
    );
}

/// What nobody keeps stays where it is.
#[test]
fn addresses_that_nobody_keeps() {
    for before in [
        "int x = 1; add_to(x, 2); out[begin] = x;",
        "int x[2] = {1, 2}; out[begin] = sum(x);",
        "int x = 1; int* q = &x; *q = 3; out[begin] = x;",
        "float x = 1, s, c; sincosf(x, &s, &c); out[begin] = s + c;",
        "Box x; x.a[0] = 1; int* q = x.a; out[begin] = q[0];",
        "int x = 1; int& r = x; r += 2; out[begin] = x;",
        "int x = 1; int y = *first(x); out[begin] = y;",
    ] {
        let result = split(before, "out[begin] += slots[0] ? 1 : 0;");
        let text = result.text();
        assert!(!text.contains("[32]"), "{before}: {text}");
    }
}

/// A macro would mean something else where the code goes.
#[test]
fn macros_that_change_in_the_body() {
    for directive in [
        "#define N 3",
        "# undef N",
        "#pragma push_macro(\"N\")",
        "#pragma pop_macro(\"N\")",
        "_Pragma(\"push_macro(\\\"N\\\")\")",
        "%:define N 3",
    ] {
        refused(
            &format!("int x = 1;\n{directive}\n    out[begin] = x;"),
            "out[begin] = 1;",
            "which may change what macros stand for",
        );
    }
    split(
        "int x = 1;\n#pragma unroll\n    for (int i = 0; i < 3; ++i) out[begin] = x;",
        "out[begin] = 1;",
    );
    split(
        "// #define N 3\n    out[begin] = 1; /*\n#define N 3\n    */",
        "out[begin] = 1;",
    );
}

/// The elements of an array lie closer than what each is to be aligned to.
#[test]
fn aligned_variables() {
    for aligned in [
        "alignas(16) int x = out[threadIdx.x];",
        "__align__(16) int x = out[threadIdx.x];",
        "__attribute__((aligned(16))) int x = out[threadIdx.x];",
        "int x __attribute__((aligned(16))) = out[threadIdx.x];",
    ] {
        refused(aligned, "out[begin] = x;", "asks for an alignment");
        split(&format!("{aligned} out[begin] = x;"), "out[begin] = 1;");
    }
}

/// Code that runs once for the block names nothing of a thread's, in whatever way.
#[test]
fn names_that_are_not_lowered() {
    for behind in [
        "for (decltype(x) i = 0; i < 3; ++i) { __syncthreads(); out[begin] = 1; }",
        "for (int i = 0; i < (decltype(x))3; ++i) { __syncthreads(); out[begin] = 1; }",
        "if (count < (decltype(x))3) { __syncthreads(); out[begin] = 1; }",
    ] {
        refused(
            "float x = out[threadIdx.x]; out[begin] = x;",
            behind,
            "in code that runs once for the block",
        );
        split(
            "int y = 1; out[begin] = y;",
            &behind.replace("decltype(x)", "decltype(count)"),
        );
    }
    refused(
        "float x = out[threadIdx.x]; out[begin] = x; __shared__ int s[sizeof(x)]; s[0] = 1;",
        "out[begin] = s[0];",
        "in code that runs once for the block",
    );
    split("__shared__ int s[sizeof(int)]; s[0] = 1;", "out[begin] = s[0];");
    // Of what the block has in common the declaration is there.
    split(
        "int n = count; out[begin] = 1;",
        "for (decltype(n) i = 0; i < 3; ++i) { __syncthreads(); out[begin] = 1; }",
    )
    .has(&["int n = count;\n", "for (decltype(n) i = 0; i < 3; ++i) {"]);
}

/// What the compiler needs as a constant is none any more in an array.
#[test]
fn constants_that_the_compiler_needs() {
    let behind = "switch (count) { case K: out[begin] = 1; }";
    split("constexpr int K = 3; out[begin] = K;", behind);
    split("const int K = 3; out[begin] = K;", behind);
    split("const int K = 3, i = threadIdx.x; out[begin] = K + i;", behind);
    refused(
        "const int K = sizeof(int), i = threadIdx.x; out[begin] = K + i;",
        behind,
        "a constant that the compiler needs",
    );
    refused(
        "const int K = sizeof(int), i = threadIdx.x; out[begin] = K + i;",
        "int a[K]; a[0] = 1; out[begin] = a[0];",
        "a constant that the compiler needs",
    );
    // Also for a constant that is made of it.
    for behind in [
        "constexpr int l = K + 1; out[begin] = l;",
        "const int l = K + 1; switch (count) { case l: out[begin] = 1; }",
    ] {
        refused(
            "const int K = sizeof(int), i = threadIdx.x; out[begin] = K + i;",
            behind,
            "a constant that the compiler needs",
        );
    }
}

/// Whoever gets an element of an array doesn't see that the variable was `const`.
#[test]
fn functions_that_see_what_is_const() {
    let reason = "a function that it is passed to may see that";
    refused(
        "const int k = out[1]; out[begin] = k;",
        "out[begin] = is_const(k);",
        reason,
    );
    refused(
        "int* const p = out + out[1]; *p = 1;",
        "out[begin] = is_const(p);",
        reason,
    );
    split(
        "const int k = out[1]; out[begin] = k;",
        "out[begin] = min(k, 3) + of_number_alone(k);",
    );
}

#[test]
fn constant_pointers_and_attributes() {
    split("int x = out[1]; int* const p = &x;", "out[begin] = *p;").has(&["int* p[32];", "p[thread] = &x[thread];"]);
    split(
        "[[maybe_unused]] extern __shared__ int s[]; s[0] = 1;",
        "out[begin] = s[0];",
    )
    .has(&["[[maybe_unused]] /* extern __shared__ */ alignas(16) int s[32];"]);
    split(
        "extern __shared__ int s[] [[maybe_unused]]; s[0] = 1;",
        "out[begin] = s[0];",
    )
    .has(&["int s[32] [[maybe_unused]];"]);
    split("[[maybe_unused]] __shared__ int s[4]; s[0] = 1;", "out[begin] = s[0];")
        .has(&["[[maybe_unused]] /* __shared__ */ int s[4];"]);
}

/// What is computed of an object holds no address of it.
#[test]
fn numbers_that_are_computed_of_objects() {
    let child = "struct Contract { int kind; double spot, strike; };
__device__ double payoff(const Contract& c, double z) {
    double st = c.spot * exp(c.strike * sqrt(c.spot) * z) + sqrt(c.strike);
    double p = c.kind == 1 ? st - c.strike : c.strike - st;
    return p > 0 ? p : 0;
}
__global__ void child(int* out, int begin, int count) {
    const Contract c = ((const Contract*)out)[begin];
    double sum = 0;
    for (int i = threadIdx.x; i < c.kind; i += 32) sum += payoff(c, i) + fmax(c.spot, c.strike);
    out[begin] = (int)sum;
    __syncthreads();
    out[begin] = 1;
}
";
    rewrite(ID, &with_child(child, LAUNCH));
}

/// An `#if` that is decided stays whole in one section.
#[test]
fn conditionals_in_sections() {
    let either = "#if 2 > 3\n    int w = 5;\n    #else\n    int w = 6;\n    #endif";
    // In front of a barrier, where the variable crosses it, and in front of other statements.
    split(either, "out[begin] = 1;").has(&["#else", "#endif"]);
    split(&format!("{either}\n    out[begin] = w;"), "out[begin] = 1;").has(&["#endif\n"]);
    let crosses = either.replace("= 6", "= out[threadIdx.x]");
    refused(
        &format!("{crosses}\n    out[begin] = w;"),
        "out[begin] = w;",
        "is used in a way that is not understood",
    );
    // Several statements in one.
    let several = "#if 1\n    int a = out[threadIdx.x];\n    int b = 2;\n    out[begin] = a + b;\n#endif";
    split(several, "out[begin] = a;").has(&["#if 1\n", "#endif\n"]);
    split(
        "#if 1\n    __shared__ int s[4];\n#endif\n    s[0] = 1;",
        "out[begin] = s[0];",
    )
    .has(&["#if 1\n", "#endif\n"]);
    for torn in [
        "#if 1\n    out[begin] = 1;\n    __syncthreads();\n#endif\n    out[begin] = 2;",
        "#if 1\n    for (int i = 0; i < 3; ++i) { out[begin] = 1; __syncthreads(); }\n#endif",
        "for (int i = 0; i < 3; ++i) {\n#if 1\n    out[begin] = 1; __syncthreads();\n#endif\n    }",
    ] {
        refused(
            torn,
            "out[begin] = 1;",
            "has an `#if` around a barrier and other statements",
        );
    }
}

/// A template's parameter may be a reference, or a class that holds one.
#[test]
fn parameters_of_templates_that_refer() {
    let program = |front: &str, before: &str, argument: &str| {
        let child = format!(
            "__device__ int* slots[40];
{front}
template <class T>
__global__ void child(int* out, int begin, int count) {{
    int x = threadIdx.x;
    {before}
    __syncthreads();
    out[begin] = *slots[threadIdx.x];
}}
"
        );
        with_child(&child, &LAUNCH.replace("child", &format!("child<{argument}>")))
    };
    let class = "struct S { int& r; };";
    for (front, before, argument) in [
        ("", "slots[threadIdx.x] = &static_cast<T>(x);", "int&"),
        ("", "slots[threadIdx.x] = &(T)x;", "int&"),
        (
            "template <class T> __device__ T same(int& x) { return x; }",
            "slots[threadIdx.x] = &same<T>(x);",
            "int&",
        ),
        (
            "template <class T> struct W { static __device__ void set(T x, int k) { slots[k] = &x; } };",
            "W<T>::set(x, threadIdx.x);",
            "int&",
        ),
        (class, "slots[threadIdx.x] = &T{x}.r;", "S"),
        (
            "struct S { int& r; }; template <class T> __device__ void keep(T s, int k) { slots[k] = &s.r; }",
            "keep(T{x}, threadIdx.x);",
            "S",
        ),
        (
            "struct S { int& r; }; template <class T> __device__ int* at(int& x) { T s{x}; return &s.r; }",
            "slots[threadIdx.x] = at<S>(x);",
            "int",
        ),
        ("", "new (&slots[threadIdx.x]) int*(&x);", "int"),
    ] {
        let result = super::rewrite_files(ID, &[("a.cu", &program(front, before, argument))], &[]);
        let text = result.as_ref().map(|r| r.text().to_owned()).unwrap_or_default();
        assert!(text.is_empty() || text.contains("int x[32];"), "{before}: {text}");
    }
    rewrite(
        ID,
        &program("", "T y = x; T z = y; slots[threadIdx.x] = out + z;", "int"),
    );
}
