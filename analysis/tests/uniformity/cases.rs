//! The tables.

use super::all;

/// A kernel with the usual parameters around a body.
macro_rules! k {
    ($body:literal) => {
        concat!(
            "__global__ void k(int n, int m, int* out, const int* __restrict__ ro, const int* row, float* f) {\n",
            "int tid = threadIdx.x; int v = blockIdx.x * blockDim.x + threadIdx.x;\n",
            $body,
            "\n}\n"
        )
    };
}

#[test]
fn sources_of_values() {
    all(&[
        ("literal", k!("int a = $Constant(3 + 4)$;")),
        ("parameter", k!("int a = $Grid(n + 1)$;")),
        ("blockDim", k!("int a = $Grid(blockDim.x)$ + $Grid(gridDim.y)$;")),
        ("warpSize", k!("int a = $Constant(warpSize)$;")),
        ("blockIdx", k!("int a = $Block(blockIdx.x * n)$;")),
        ("threadIdx", k!("int a = $Varying(threadIdx.x)$ + $Varying(v)$;")),
        (
            "warp index",
            k!("int a = $Warp(threadIdx.x / 32)$ + $Warp((threadIdx.x >> 5))$;"),
        ),
        (
            "lane",
            k!("int a = $Varying(threadIdx.x % 32)$ + $Varying(threadIdx.y / 32)$ + $Varying(v / 32)$;"),
        ),
        ("sizeof", k!("int a = $Constant(sizeof(int) * 2)$;")),
        ("device parameter", "__device__ int d(int n) { return $Varying(n)$; }"),
        (
            "template parameter",
            "template <int N> __global__ void k(int n) { int a = $Constant(N * 2)$; int b = $Grid(N + n)$; }",
        ),
        (
            "enumerator",
            "enum E { A, B };\n__global__ void k(int n) { int a = $Constant(A)$; }",
        ),
        (
            "macro",
            "#define BLOCK 128\n__global__ void k(int n) { int a = $Grid((n + BLOCK - 1) / BLOCK)$; }",
        ),
        (
            "constant global",
            "constexpr int C = 4;\n__global__ void k(int n) { int a = $Constant(C + 1)$; }",
        ),
        ("unknown name", k!("int a = $Varying(SOMETHING)$;")),
        (
            "shadowed blockIdx",
            "__device__ void d(uint3 blockIdx) { int a = $Varying(blockIdx.x)$; }",
        ),
        (
            "shadowed threadIdx",
            "__global__ void k(uint3 threadIdx) { int a = $Grid(threadIdx.x)$; }",
        ),
        (
            "shadowed local",
            k!("{ int n = tid; int a = $Varying(n)$; } int b = $Grid(n)$;"),
        ),
        (
            "cast",
            k!("int a = $Grid((long)n)$ + $Grid(static_cast<int>(n))$ + $Varying((float)v)$;"),
        ),
        (
            "pure calls",
            k!(
                "int a = $Grid(min(n, 3))$ + $Varying(max(n, v))$ + $Grid(__popc(n))$; float c = $Grid(ceilf(n / 2.0f))$;"
            ),
        ),
        (
            "impure calls",
            k!("int a = $Varying(atomicAdd(out, 1))$ + $Varying(clock())$ + $Varying(mystery(n))$;"),
        ),
        ("lambda", k!("auto g = [=]() { return n; }; int a = $Varying(g())$;")),
        ("new", k!("int* p = $Varying(new int[4])$; int a = $Varying(p[0])$;")),
        ("comma", k!("int a = ($Grid((v, n))$);")),
        ("string and null", k!("const int* p = $Constant(nullptr)$;")),
        ("volatile local", k!("volatile int x = n; int a = $Varying(x)$;")),
        ("static local", k!("static int x = 3; int a = $Varying(x)$;")),
    ]);
}

#[test]
fn variables() {
    all(&[
        (
            "strong update",
            k!("int x = tid; int y = $Varying(x)$; x = n; int a = $Grid(x)$;"),
        ),
        (
            "compound keeps the old",
            k!("int x = tid; x += n; int a = $Varying(x)$; int y = n; y *= blockIdx.x; int b = $Block(y)$;"),
        ),
        (
            "increment",
            k!("int x = n; x++; --x; int a = $Grid(x)$; tid++; int b = $Varying(tid)$;"),
        ),
        (
            "assignment as expression",
            k!("int x, y; x = y = tid; int a = $Varying(x)$; int b = $Varying(y)$;"),
        ),
        (
            "through a pointer",
            k!("int x = n; int* q = &x; *q = tid; int a = $Varying(x)$;"),
        ),
        (
            "through a reference",
            k!("int x = n; int& r = x; r = tid; int a = $Varying(x)$; int b = $Varying(r)$;"),
        ),
        (
            "auto reference",
            k!("int x = n; auto& r = x; r = tid; int a = $Varying(x)$;"),
        ),
        (
            "const reference is no escape",
            k!("int x = n; const int& r = x; int a = $Grid(x)$; int b = $Varying(r)$;"),
        ),
        (
            "through a typedef of a reference",
            "typedef int& Ref;\n__device__ void set(Ref x) { x = threadIdx.x; }\n__global__ void k(int n) { int x = n; set(x); int a = $Varying(x)$; }",
        ),
        (
            "through an alias of an alias of a reference",
            "using R = int&;\nusing Ref = R;\n__device__ void set(Ref x) { x = threadIdx.x; }\n__global__ void k(int n) { int x = n; set(x); int a = $Varying(x)$; }",
        ),
        (
            "through a template alias of a reference",
            "template <class T> using Ref = T&;\n__device__ void set(Ref<int> x) { x = threadIdx.x; }\n__global__ void k(int n) { int x = n; set(x); int a = $Varying(x)$; }",
        ),
        (
            "through a member type of a reference",
            "struct A { typedef int& reference; };\n__device__ void set(A::reference x) { x = threadIdx.x; }\n__global__ void k(int n) { int x = n; set(x); int a = $Varying(x)$; }",
        ),
        (
            "through a library's reference type",
            "template <class T> __device__ void set(typename T::reference x) { x = threadIdx.x; }\n__global__ void k(int n) { int x = n; set<V>(x); int a = $Varying(x)$; }",
        ),
        (
            "a template argument that is a reference",
            "template <class T> __device__ void set(T x) { x = threadIdx.x; }\n__global__ void k(int n) { int x = n; set<int&>(x); int a = $Varying(x)$; }",
        ),
        (
            "a template argument that hides a reference",
            "using Ref = int&;\ntemplate <class T> __device__ void set(T x) { x = threadIdx.x; }\n__global__ void k(int n) { int x = n; set<Ref>(x); int a = $Varying(x)$; }",
        ),
        (
            "a template argument that is a number",
            "using Number = int;\ntemplate <class T> __device__ void set(T x) { x = threadIdx.x; }\n__global__ void k(int n) { int x = n; set<Number>(x); int a = $Grid(x)$; }",
        ),
        (
            "decltype of an expression",
            k!("int x = n; decltype((x)) r = x; r = tid; int a = $Varying(x)$;"),
        ),
        (
            "a typedef of its own",
            k!("int x = n; typedef int& Ref; Ref r = x; r = tid; int a = $Varying(x)$;"),
        ),
        (
            "const taken away",
            k!("int x = n; const int& r = x; const_cast<int&>(r) = tid; int a = $Varying(x)$;"),
        ),
        (
            "const taken away by the function",
            "__device__ void set(const int& x) { (int&)x = threadIdx.x; }\n__global__ void k(int n) { int x = n; set(x); int a = $Varying(x)$; }",
        ),
        (
            "volatile by a typedef",
            "typedef volatile int vint;\n__global__ void k(int n) { vint x = n; int a = $Varying(x)$; }",
        ),
        (
            "one alias of two",
            "namespace a { typedef int T; }\nnamespace b { typedef int& T; __device__ void set(T x) { x = threadIdx.x; } }\n__global__ void k(int n) { int x = n; b::set(x); int a = $Varying(x)$; }",
        ),
        (
            "reference in parentheses",
            k!("int a = n; int& r(a); r = tid; int b = $Varying(a)$;"),
        ),
        (
            "reference in braces to a part",
            k!("dim3 a(n); unsigned& r{a.y}; r = tid; int b = $Varying(a.y)$;"),
        ),
        (
            "structured binding by reference",
            k!("dim3 a(n); auto& [x, y, z] = a; y = tid; int b = $Varying(a.y)$;"),
        ),
        (
            "reference to an object that a constructor makes",
            "struct L { int v; __device__ L(int x) : v(x + threadIdx.x) {} };\n__global__ void k(int n) { const L& a = L(n); int b = $Varying(a.v)$; const L& c(n); int d = $Varying(c.v)$; }",
        ),
        (
            "an operator that looks at the number of the thread",
            "struct V { int x; };\n__device__ V operator+(V a, V b) { V r; r.x = a.x + b.x + threadIdx.x; return r; }\n__global__ void k(V a, V b, int n) { V c = a + b; int x = $Varying(c.x)$; int y = $Grid(n + 1)$; }",
        ),
        (
            "an operator that calls what looks at it",
            "struct V { int x; };\n__device__ int self() { return threadIdx.x; }\n__device__ bool operator==(V a, int b) { return a.x == b + self(); }\n__global__ void k(V a, int n) { bool x = $Varying(a == n)$; bool y = $Grid(n == 1)$; }",
        ),
        (
            "an operator that assigns, and looks at it",
            "struct V { int x; };\n__device__ V& operator+=(V& a, int b) { a.x += b + threadIdx.x; return a; }\n__global__ void k(V a, int n) { V c = a; c += n; int x = $Varying(c.x)$; }",
        ),
        (
            "an operator of two values",
            "struct V { int x; };\n__device__ V operator+(V a, V b) { V r; r.x = a.x + b.x; return r; }\n__global__ void k(V a, V b, int n) { V c = a + b; int x = $Grid(c.x)$; }",
        ),
        (
            "a constant pointer of a function",
            "__device__ int f(const int* __restrict__ p, int* w) { *w = threadIdx.x; return *p; }\n__global__ void k(int* p, int n) { int x = $Varying(f(p, p))$; }",
        ),
        (
            "a constant pointer of a kernel",
            "__global__ void k(const int* __restrict__ p, int* w, int n) { w[threadIdx.x] = n; int x = $Grid(p[n])$; }",
        ),
        (
            "const in front of a hidden reference",
            "typedef int& Ref;\n__device__ void set(const Ref x) { x = threadIdx.x; }\n__global__ void k(int n) { int x = n; set(x); int a = $Varying(x)$; }",
        ),
        (
            "a name for two types, of which one hides a reference",
            "using R = int&;\nnamespace a { typedef int T; }\nnamespace b { typedef R T; __device__ void set(T x) { x = threadIdx.x; } }\n__global__ void k(int n) { int x = n; b::set(x); int a = $Varying(x)$; }",
        ),
        (
            "a reference to a constant in one of two",
            "namespace a { typedef const int& T; }\nnamespace b { typedef int& T; __device__ void set(T x) { x = threadIdx.x; } }\n__global__ void k(int n) { int x = n; b::set(x); int a = $Varying(x)$; }",
        ),
        (
            "a typedef in each of two blocks",
            "using R = int&;\n__global__ void k(int n) { int x = n; { typedef R T; } { typedef R T; T r = x; r = threadIdx.x; } int a = $Varying(x)$; }",
        ),
        (
            "by reference to a function",
            "__device__ void set(int& x) { x = threadIdx.x; }\n__global__ void k(int n) { int x = n; set(x); int a = $Varying(x)$; }",
        ),
        (
            "by value to a function",
            "__device__ void set(int x) { x = threadIdx.x; }\n__global__ void k(int n) { int x = n; set(x); int a = $Grid(x)$; }",
        ),
        (
            "template reference",
            "template <class T> __device__ void set(T&& x) { x = threadIdx.x; }\n__global__ void k(int n) { int x = n; set(x); int a = $Varying(x)$; }",
        ),
        (
            "to an unknown function",
            k!("int x = n; mystery(x); int a = $Varying(x)$;"),
        ),
        (
            "unknown macro-like call",
            k!("int x = n; SET(x); int a = $Varying(x)$;"),
        ),
        (
            "captured by a lambda",
            k!("int x = n; auto g = [&]() { x = threadIdx.x; }; g(); int a = $Varying(x)$;"),
        ),
        (
            "asm",
            k!("int x = n; asm(\"mov.u32 %0, %laneid;\" : \"=r\"(x)); int a = $Varying(x)$;"),
        ),
        (
            "conditional place",
            k!("int x = n, y = m; (n > 0 ? x : y) = tid; int a = $Varying(x)$; int b = $Varying(y)$;"),
        ),
        ("uninitialised", k!("int x; if (n) x = 1; int a = $Varying(x)$;")),
        (
            "initialised on both",
            k!("int x; if (n) x = 1; else x = m; int a = $Grid(x)$;"),
        ),
        (
            "member function",
            "struct S { int a; __device__ void set() { a = threadIdx.x; } };\n__global__ void k(S s) { s.set(); int x = $Varying(s.a)$; }",
        ),
        (
            "dim3 fields",
            k!(
                "dim3 g; g.x = tid; g.y = n; int a = $Varying(g.x)$; int b = $Grid(g.y)$; int c = $Constant(g.z)$; dim3 h = $Varying(g)$;"
            ),
        ),
        (
            "dim3 constructed",
            k!("dim3 g(n, tid); int a = $Grid(g.x)$; int b = $Varying(g.y)$; int c = $Constant(g.z)$;"),
        ),
        (
            "dim3 of one",
            k!("dim3 g((v + 127) / 128); int a = $Varying(g.x)$; int c = $Constant(g.y)$;"),
        ),
        (
            "dim3 expression",
            k!("dim3 h = $Grid(dim3(n, 1, 1))$; dim3 g = $Varying(dim3(v))$;"),
        ),
        (
            "dim3 overwritten",
            k!("dim3 g(tid); g = dim3(n, m); int a = $Grid(g.x)$;"),
        ),
        (
            "uint3 uninitialised",
            k!("uint3 g; g.x = n; int a = $Grid(g.x)$; int b = $Varying(g.y)$;"),
        ),
        (
            "union",
            "union U { int a; float b; };\n__global__ void k(int n) { U u; u.b = 1; u.a = threadIdx.x; float x = $Varying(u.b)$; }",
        ),
        (
            "struct fields",
            "struct P { int a; int b; };\n__global__ void k(int n) { P p; p.a = n; p.b = blockIdx.x; int x = $Block(p.b)$; P q = $Block(p)$; }",
        ),
        (
            "struct partly set",
            "struct P { int a; int b; };\n__global__ void k(int n) { P p; p.a = n; P q = $Varying(p)$; }",
        ),
        (
            "struct parameter",
            "struct P { int a; int b; };\n__global__ void k(P p) { int x = $Grid(p.a)$; p.a = threadIdx.x; int y = $Varying(p.a)$; }",
        ),
        (
            "array",
            k!(
                "int t[2] = {n, m}; int a = $Grid(t[1])$; int b = $Varying(t[tid])$; t[0] = tid; int c = $Varying(t[1])$;"
            ),
        ),
        (
            "array written at a varying index",
            k!("int t[2] = {1, 2}; t[tid & 1] = 5; int c = $Varying(t[1])$;"),
        ),
        (
            "array decays",
            k!("int t[2] = {1, 2}; int* p = t; p[0] = tid; int c = $Varying(t[1])$;"),
        ),
        (
            "array row decays",
            k!("int t[2][2] = {}; int* p = t[0]; p[0] = tid; int c = $Varying(t[0][0])$;"),
        ),
        (
            "unsequenced",
            k!("int x = n; int a = min(x, x = tid); int b = $Varying(x)$;"),
        ),
        (
            "class with constructor",
            "struct S { int a; __device__ S(int x) { a = threadIdx.x; } };\n__global__ void k(int n) { S s(n); int x = $Varying(s.a)$; }",
        ),
        (
            "structured binding",
            k!("int x = n; auto [p, q] = pair(x); int a = $Varying(p)$;"),
        ),
        (
            "range for",
            k!("int t[2] = {1, 2}; for (int x : t) { int a = $Varying(x)$; }"),
        ),
        (
            "pointer swap",
            k!("const int* p = ro; p = out; int a = $Varying(p[0])$; out[1] = tid;"),
        ),
    ]);
}

#[test]
fn control_flow() {
    all(&[
        ("divergent if", k!("int x = 0; if (tid) x = 1; int a = $Varying(x)$;")),
        ("uniform if", k!("int x = 0; if (n) x = 1; int a = $Grid(x)$;")),
        (
            "block if",
            k!("int x = 0; if (blockIdx.x == 0) x = 1; int a = $Block(x)$;"),
        ),
        (
            "warp if",
            k!("int x = 0; if (threadIdx.x / 32) x = 1; int a = $Warp(x)$;"),
        ),
        (
            "else if chain",
            k!("int x; if (n) x = 1; else if (m) x = 2; else if (tid) x = 3; else x = 4; int a = $Varying(x)$;"),
        ),
        (
            "untouched variable",
            k!("int x = n, y = 0; if (tid) y = 1; int a = $Grid(x)$;"),
        ),
        (
            "uniform inside divergent",
            k!("int x = 0; if (tid) { if (n) x = 1; else x = 2; int a = $Grid(x)$; } int b = $Varying(x)$;"),
        ),
        (
            "ternary",
            k!(
                "int a = $Varying(tid ? 1 : 2)$; int b = $Grid(n ? 1 : 2)$; int x = 0; int c = tid ? (x = 1) : 0; int d = $Varying(x)$;"
            ),
        ),
        (
            "short circuit side effect",
            k!(
                "int x = 0; bool b = tid > 3 && (x = 1); int a = $Varying(x)$; int y = 0; bool c = n > 3 || (y = m); int d = $Grid(y)$;"
            ),
        ),
        (
            "condition with comma",
            k!("int x = 0; if (x = tid, n) {} int a = $Varying(x)$;"),
        ),
        (
            "assignment in condition",
            k!("int x; if ((x = n) > 0) { int a = $Grid(x)$; } while ((x = tid) > 3) { break; } int b = $Varying(x)$;"),
        ),
        (
            "early return keeps values",
            k!("int x = n; if (v >= n) return; x = x + 1; int a = $Grid(x)$;"),
        ),
        (
            "early return and join",
            k!("int x = 0; if (n) { x = 1; if (tid) return; } int a = $Grid(x)$;"),
        ),
        (
            "switch fall through",
            k!(
                "int x = 0; switch (tid) { case 0: x = 1; case 1: x = 2; break; default: break; } int a = $Varying(x)$;"
            ),
        ),
        (
            "uniform switch",
            k!("int x = 0; switch (n) { case 0: x = 1; break; case 1: x = 2; } int a = $Grid(x)$;"),
        ),
        (
            "switch all the same",
            k!("int x = 0; switch (tid) { case 0: x = n; break; default: x = n; } int a = $Varying(x)$;"),
        ),
        (
            "preprocessor",
            k!("int x = 0;\n#if FOO\nx = 1;\n#else\nx = n;\n#endif\nint a = $Grid(x)$;"),
        ),
        (
            "preprocessor varying",
            k!("int x = 0;\n#if FOO\nx = tid;\n#endif\nint a = $Varying(x)$;"),
        ),
        (
            "if constexpr",
            "template <int N> __global__ void k(int n) { int x = 0; if constexpr (N > 2) x = 1; int a = $Constant(x)$; }",
        ),
        (
            "goto forward",
            k!("int x = 0; if (tid) goto done; x = 1; done: int a = $Varying(x)$;"),
        ),
        (
            "goto forward uniform",
            k!("int x = 0; if (n) goto done; x = 1; done: ; int a = $Grid(x)$;"),
        ),
        (
            "goto backward",
            k!("int i = 0; again: i++; if (i < tid) goto again; int a = $Varying(i)$;"),
        ),
        (
            "goto backward uniform",
            k!("int i = 0; again: i++; if (i < n) goto again; int a = $Grid(i)$;"),
        ),
        (
            "goto into a loop",
            k!("int i = 0; if (n) goto inside; while (i < n) { i += 2; inside: i++; } int a = $Varying(i)$;"),
        ),
        (
            "missing label",
            k!("int x = 0; if (tid) goto nowhere; x = 1; ~~Varying~~ x = 2;"),
        ),
        (
            "unreachable",
            k!("int x = n; if (n) { return; x = tid; } int a = $Grid(x)$;"),
        ),
    ]);
}

#[test]
fn loops() {
    all(&[
        (
            "uniform loop",
            k!("int s = 0; for (int i = 0; i < n; i++) { s += $Grid(i)$; } int a = $Grid(s)$;"),
        ),
        (
            "divergent bound",
            k!("int i; for (i = 0; i < tid; i++) { int b = $Grid(i)$; } int a = $Varying(i)$;"),
        ),
        (
            "accumulated in a divergent loop",
            k!("int s = 0; for (int i = 0; i < tid; i++) s += 2; int a = $Varying(s)$;"),
        ),
        (
            "divergent break",
            k!("int i = 0; while (i < n) { if (i == tid) break; i++; } int a = $Varying(i)$;"),
        ),
        (
            "break after a uniform condition",
            k!("int i = 0; while (true) { if (i == n) break; i++; } int a = $Grid(i)$;"),
        ),
        (
            "nested break condition",
            k!(
                "int i = 0; while (true) { i++; if (tid) { if (n < i) break; } if (i > 9) break; } int a = $Varying(i)$;"
            ),
        ),
        (
            "divergent return in a loop",
            k!("int i = 0; for (; i < n; i++) { if (i == tid) return; } int a = $Grid(i)$;"),
        ),
        (
            "value on the divergent way out",
            k!("for (int i = 0; i < n; i++) { if (i == tid) { out[0] = $Varying(i)$; return; } }"),
        ),
        (
            "continue",
            k!("int s = 0; for (int i = 0; i < n; i++) { if (tid) continue; s++; } int a = $Varying(s)$;"),
        ),
        (
            "uniform continue",
            k!("int s = 0; for (int i = 0; i < n; i++) { if (i & 1) continue; s++; } int a = $Grid(s)$;"),
        ),
        (
            "loop carried",
            k!("int p = 0, q = 0; for (int i = 0; i < n; i++) { p = q; q = tid; } int a = $Varying(p)$;"),
        ),
        (
            "long chain",
            k!("int p = 0, q = 0, r = 0, s = 0; while (n > s) { p = q; q = r; r = s; s = tid; } int a = $Varying(p)$;"),
        ),
        (
            "do while",
            k!("int i = 0; do { i++; } while (i < tid); int a = $Varying(i)$;"),
        ),
        (
            "do once",
            k!("int x = 0; do { if (tid) break; x = 1; } while (0); int a = $Varying(x)$;"),
        ),
        (
            "do once uniform",
            k!("int x = 0; do { if (n) break; x = 1; } while (0); int a = $Grid(x)$;"),
        ),
        (
            "nested divergent",
            k!(
                "int s = 0; for (int i = 0; i < n; i++) { for (int j = 0; j < tid; j++) { s++; } int a = $Varying(s)$; int b = $Grid(i)$; }"
            ),
        ),
        (
            "reset each time",
            k!(
                "int s = 0; for (int i = 0; i < n; i++) { s = 0; for (int j = 0; j < tid; j++) { s = s + 0; } } for (int i = 0; i < tid; i++) { int t = m; int b = $Grid(t)$; }"
            ),
        ),
        (
            "before and after",
            k!("int s = n; for (int i = 0; i < tid; i++) { out[i] = s; } int a = $Grid(s)$;"),
        ),
        (
            "defined before a divergent loop in it",
            k!("int s = 0; while (tid > s) { s = s + n; int b = $Grid(s)$; } int a = $Varying(s)$;"),
        ),
        (
            "outer exit through inner loop",
            k!(
                "int i = 0; for (; i < n; i++) { for (int j = 0; j < n; j++) { if (j == tid) goto out_; } } out_: int a = $Varying(i)$;"
            ),
        ),
        (
            "two ways out",
            k!("int i = 0; for (;; i++) { if (i == n) break; if (i == tid) break; } int a = $Varying(i)$;"),
        ),
        (
            "step in the head",
            k!("int i = 0; for (; i++ < tid; ) {} int a = $Varying(i)$;"),
        ),
        (
            "declaration in the condition",
            k!("int s = 0; while (int x = n - s) { s += $Grid(x)$; } int a = $Grid(s)$;"),
        ),
        (
            "infinite",
            k!("int i = 0; if (tid) { while (true) { i++; int b = $Grid(i)$; } } int a = $Constant(i)$;"),
        ),
        (
            "switch in a loop",
            k!(
                "int i = 0; while (i < n) { switch (tid) { case 0: i++; break; case 1: continue; } i++; } int a = $Varying(i)$;"
            ),
        ),
        (
            "break out of a switch only",
            k!("int i = 0; while (i < n) { switch (tid) { case 0: break; } i++; } int a = $Grid(i)$;"),
        ),
    ]);
}

#[test]
fn memory() {
    all(&[
        (
            "restrict",
            k!("out[v] = 1; int a = $Grid(ro[n])$; int b = $Varying(ro[v])$; int c = $Block(ro[blockIdx.x])$;"),
        ),
        (
            "restrict but moved",
            k!("out[v] = 1; ro = out; int a = $Varying(ro[n])$;"),
        ),
        (
            "ldg",
            k!("out[v] = 1; int a = $Grid(__ldg(&row[n]))$; int b = $Varying(__ldg(row + v))$;"),
        ),
        (
            "nothing written",
            "__global__ void k(const int* row, int n) { int a = $Grid(row[n])$; int b = $Grid(*row)$; int c = $Varying(row[threadIdx.x])$; }",
        ),
        ("written elsewhere", k!("out[v] = 1; int a = $Varying(row[n])$;")),
        ("other type written", k!("f[v] = 1; int a = $Grid(row[n])$;")),
        (
            "unsigned aliases int",
            "__global__ void k(unsigned* out, const int* row, int n) { out[0] = 1; int a = $Varying(row[n])$; }",
        ),
        (
            "char aliases all",
            "__global__ void k(char* out, const int* row, int n) { out[0] = 1; int a = $Varying(row[n])$; }",
        ),
        (
            "unknown type aliases all",
            "__global__ void k(Thing* out, const int* row, int n) { out[0] = n; int a = $Varying(row[n])$; }",
        ),
        (
            "typedef",
            "typedef unsigned vertex;\n__global__ void k(vertex* out, const float* w, const int* row, int n) { out[0] = n; float a = $Grid(w[n])$; int b = $Varying(row[n])$; }",
        ),
        (
            "cast pointer",
            "__global__ void k(float* f, const int* row, int n) { int* p = (int*)f; *p = 1; int b = $Varying(row[n])$; float c = $Varying(f[n])$; }",
        ),
        ("atomic writes", k!("atomicAdd(&out[0], 1); int a = $Varying(row[n])$;")),
        ("unknown call writes", k!("mystery(); int a = $Varying(row[n])$;")),
        (
            "printf doesn't write",
            "__global__ void k(const int* row, int n) { printf(\"x\"); int a = $Grid(row[n])$; }",
        ),
        (
            "callee writes",
            "__device__ void w(int* p) { p[0] = 1; }\n__global__ void k(int* out, const int* row, int n) { w(out); int a = $Varying(row[n])$; }",
        ),
        (
            "child writes",
            "__global__ void c(int* p) { p[0] = 1; }\n__global__ void k(int* out, const int* row, int n) { c<<<1, 1>>>(out); int a = $Varying(row[n])$; }",
        ),
        (
            "child writes floats",
            "__global__ void c(float* p) { p[0] = 1; }\n__global__ void k(float* out, const int* row, int n) { c<<<1, 1>>>(out); int a = $Grid(row[n])$; }",
        ),
        (
            "unknown child",
            "__global__ void k(int* out, const int* row, int n) { c<<<1, 1>>>(out); int a = $Varying(row[n])$; }",
        ),
        (
            "recursive child",
            "__global__ void k(float* out, const int* row, int n) { if (n) k<<<1, 1>>>(out, row, n - 1); int a = $Grid(row[n])$; }",
        ),
        (
            "volatile",
            "__global__ void k(volatile int* row, int n) { int a = $Varying(row[n])$; }",
        ),
        (
            "constant memory",
            "__constant__ int table[4];\n__global__ void k(int* out, int n) { out[0] = 1; int a = $Grid(table[n])$; int b = $Varying(table[threadIdx.x])$; }",
        ),
        (
            "constant pointer",
            "__constant__ int* table;\n__global__ void k(int* out, int n) { out[0] = 1; int a = $Varying(table[n])$; }",
        ),
        (
            "device global",
            "__device__ int g;\n__global__ void k(int* out, int n) { int a = $Grid(g)$; }",
        ),
        (
            "device global written",
            "__device__ int g;\n__global__ void k(int n) { g = threadIdx.x; int a = $Varying(g)$; }",
        ),
        (
            "struct pointer",
            "struct P { int a; float b; };\n__global__ void k(const P* p, float* out) { out[0] = 1; int x = $Grid(p->a)$; float y = $Varying(p->b)$; }",
        ),
        (
            "struct with pointers",
            "struct G { const int* row; int n; };\n__global__ void k(G g, float* out) { out[0] = 1; int x = $Grid(g.row[g.n])$; int y = $Varying(g.row[threadIdx.x])$; }",
        ),
        (
            "local pointer",
            "__global__ void k(const int* row, int n) { const int* p = row + n; int a = $Grid(p[1])$; p += threadIdx.x; int b = $Varying(*p)$; }",
        ),
        (
            "address of local",
            k!("int x = tid; int* q = &x; int a = $Varying(*q)$;"),
        ),
        (
            "address of local array element",
            k!("int t[2] = {tid, tid}; const int* q = &t[0]; int a = $Varying(*q)$;"),
        ),
        (
            "aliased const",
            "__global__ void k(const int* a, int* b, int n) { b[threadIdx.x] = 1; int x = $Varying(a[0])$; }",
        ),
        (
            "double pointer",
            "__global__ void k(int** rows, int n) { int x = $Grid(rows[n][0])$; int y = $Varying(rows[threadIdx.x][0])$; }",
        ),
        (
            "operator of a class",
            "__global__ void k(Vec v, int n) { int x = $Varying(v[n])$; }",
        ),
    ]);
}

#[test]
fn shared_memory() {
    all(&[
        (
            "behind a barrier",
            k!("__shared__ int s; if (tid == 0) s = 1; __syncthreads(); int a = $Block(s)$;"),
        ),
        (
            "no barrier",
            k!("__shared__ int s; if (tid == 0) s = 1; int a = $Varying(s)$;"),
        ),
        (
            "written again",
            k!("__shared__ int s; if (tid == 0) s = 1; __syncthreads(); int a = $Varying(s)$; if (tid == 1) s = 2;"),
        ),
        (
            "written in the other branch",
            k!("__shared__ int s; s = 0; __syncthreads(); if (tid) { int a = $Varying(s)$; } else { s = 1; }"),
        ),
        (
            "in a loop without second barrier",
            k!(
                "__shared__ int s; for (int i = 0; i < n; i++) { if (tid == 0) s = i; __syncthreads(); int a = $Varying(s)$; }"
            ),
        ),
        (
            "in a loop with both",
            k!(
                "__shared__ int s; for (int i = 0; i < n; i++) { if (tid == 0) s = i; __syncthreads(); int a = $Block(s)$; __syncthreads(); }"
            ),
        ),
        (
            "barrier on one path",
            k!("__shared__ int s; if (tid == 0) s = 1; if (n) __syncthreads(); int a = $Varying(s)$;"),
        ),
        (
            "array",
            k!("__shared__ int s[32]; s[tid] = v; __syncthreads(); int a = $Block(s[0])$; int b = $Varying(s[tid])$;"),
        ),
        (
            "atomic",
            k!(
                "__shared__ int s; if (tid == 0) s = 0; __syncthreads(); atomicAdd(&s, 1); __syncthreads(); int a = $Block(s)$;"
            ),
        ),
        (
            "atomic without barrier",
            k!("__shared__ int s; if (tid == 0) s = 0; __syncthreads(); atomicAdd(&s, 1); int a = $Varying(s)$;"),
        ),
        (
            "escaping",
            k!("__shared__ int s[2]; int* p = s; p[0] = tid; __syncthreads(); int a = $Varying(s[0])$; p[1] = tid;"),
        ),
        (
            "dynamic",
            k!("extern __shared__ int s[]; s[tid] = v; __syncthreads(); int a = $Block(s[0])$;"),
        ),
        (
            "dynamic overlap",
            k!(
                "extern __shared__ int s[]; extern __shared__ float t[]; s[tid] = v; __syncthreads(); int a = $Varying(s[0])$; t[0] = 1;"
            ),
        ),
        (
            "volatile",
            k!("volatile __shared__ int s; if (tid == 0) s = 1; __syncthreads(); int a = $Varying(s)$;"),
        ),
        (
            "in a device function",
            "__device__ int d() { __shared__ int s; if (threadIdx.x == 0) s = 1; __syncthreads(); return $Varying(s)$; }",
        ),
        (
            "syncwarp is no barrier",
            k!("__shared__ int s; if (tid == 0) s = 1; __syncwarp(); int a = $Varying(s)$;"),
        ),
        (
            "vote is a barrier",
            k!("__shared__ int s; if (tid == 0) s = 1; int c = $Block(__syncthreads_or(tid))$; int a = $Block(s)$;"),
        ),
    ]);
}

#[test]
fn warps() {
    all(&[
        (
            "votes",
            k!(
                "int a = $Warp(__any_sync(0xffffffff, tid))$; unsigned b = $Warp(__ballot_sync(0xffffffffu, tid > 3))$; int c = $Warp(__all_sync(~0u, 1))$;"
            ),
        ),
        (
            "vote with a varying mask",
            k!("unsigned m2 = tid; int a = $Varying(__any_sync(m2, tid))$;"),
        ),
        (
            "shuffle from a lane",
            k!(
                "int a = $Warp(__shfl_sync(0xffffffff, tid, 0))$; int b = $Varying(__shfl_sync(0xffffffff, tid, tid ^ 1))$;"
            ),
        ),
        (
            "shuffle in parts",
            k!("int a = $Varying(__shfl_sync(0xffffffff, tid, 0, 16))$;"),
        ),
        (
            "shuffle by",
            k!(
                "int a = $Varying(__shfl_down_sync(0xffffffff, tid, 1))$; int b = $Grid(__shfl_down_sync(0xffffffff, n, 1))$;"
            ),
        ),
        (
            "activemask",
            k!("unsigned a = $Warp(__activemask())$; if (tid) { unsigned b = $Varying(__activemask())$; }"),
        ),
        ("match", k!("unsigned a = $Varying(__match_any_sync(~0u, tid))$;")),
        (
            "shadowing a library function",
            "__device__ int min(int a, int b) { return threadIdx.x; }\n__global__ void k(int n) { int a = $Varying(min(n, 2))$; }",
        ),
    ]);
}

#[test]
fn calls() {
    all(&[
        (
            "parametric",
            "__device__ int f(int a, int b) { return a * 2; }\n__global__ void k(int n) { int x = $Grid(f(n, threadIdx.x))$; int y = $Varying(f(threadIdx.x, n))$; }",
        ),
        (
            "builtin inside",
            "__device__ int f() { return blockIdx.x * blockDim.x; }\n__global__ void k(int n) { int x = $Block(f())$; }",
        ),
        (
            "global id",
            "__device__ int id() { return blockIdx.x * blockDim.x + threadIdx.x; }\n__global__ void k(int n) { int x = $Varying(id())$; }",
        ),
        (
            "nested",
            "__device__ int g(int a) { return a + threadIdx.x; }\n__device__ int f(int a) { return g(a); }\n__global__ void k(int n) { int x = $Varying(f(n))$; }",
        ),
        (
            "control",
            "__device__ int f(int a) { if (a) return 1; return 2; }\n__global__ void k(int n) { int x = $Grid(f(n))$; int y = $Varying(f(threadIdx.x))$; }",
        ),
        (
            "loop control",
            "__device__ int f(int a) { int i = 0; while (i < a) i++; return i; }\n__global__ void k(int n) { int x = $Grid(f(n))$; int y = $Varying(f(threadIdx.x))$; }",
        ),
        (
            "return in a loop",
            "__device__ int f(int a) { for (int i = 0; i < 9; i++) { if (i == a) return i; } return 9; }\n__global__ void k(int n) { int x = $Grid(f(n))$; int y = $Varying(f(threadIdx.x))$; }",
        ),
        (
            "recursion",
            "__device__ int f(int a) { return a ? f(a - 1) : 0; }\n__global__ void k(int n) { int x = $Varying(f(n))$; }",
        ),
        (
            "overloads",
            "__device__ int f(int a) { return a; }\n__device__ int f(float a) { return threadIdx.x; }\n__global__ void k(int n) { int x = $Varying(f(n))$; }",
        ),
        (
            "declaration only",
            "__device__ int f(int a);\n__global__ void k(int n) { int x = $Varying(f(n))$; }",
        ),
        (
            "loads",
            "__device__ int f(const int* p, int i) { return p[i]; }\n__global__ void k(const int* p, int n) { int x = $Grid(f(p, n))$; int y = $Varying(f(p, threadIdx.x))$; }",
        ),
        (
            "loads what the caller writes",
            "__device__ int f(const int* p, int i) { return p[i]; }\n__global__ void k(int* p, int n) { p[threadIdx.x] = 1; int x = $Varying(f(p, n))$; }",
        ),
        (
            "const reference",
            "__device__ int f(const int& a, const int& b) { return a < b ? a : b; }\n__global__ void k(int n) { int x = $Grid(f(n, 3))$; int y = $Varying(f(n, threadIdx.x))$; }",
        ),
        (
            "reference result",
            "__device__ int& f(int* a) { return *a; }\n__global__ void k(int* p) { int x = $Varying(f(p))$; }",
        ),
        (
            "a reference that a macro hides",
            "#define R __device__ const int&\nR f(int a) { return a; }\n__global__ void k(int n) { int x = $Varying(f(n))$; }",
        ),
        (
            "a reference that an alias hides",
            "using R = const int&;\n__device__ R f(int a) { return a; }\n__global__ void k(int n) { int x = $Varying(f(n))$; }",
        ),
        (
            "default argument",
            "__device__ int f(int a, int b = 3) { return a + b; }\n__global__ void k(int n) { int x = $Grid(f(n))$; }",
        ),
        (
            "default argument varying",
            "__device__ int g() { return threadIdx.x; }\n__device__ int f(int a, int b = g()) { return a + b; }\n__global__ void k(int n) { int x = $Varying(f(n))$; }",
        ),
        (
            "template function",
            "template <class T> __device__ T sq(T a) { return a * a; }\n__global__ void k(int n) { int x = $Grid(sq(n))$; int y = $Varying(sq<int>(threadIdx.x))$; }",
        ),
        (
            "reads a global that changes",
            "__device__ int g;\n__device__ int f() { return g; }\n__global__ void k(int n) { g = threadIdx.x; int x = $Varying(f())$; }",
        ),
        (
            "static in callee",
            "__device__ int f() { static int c = 0; return c++; }\n__global__ void k(int n) { int x = $Varying(f())$; }",
        ),
        (
            "no return on some path",
            "__device__ int f(int a) { if (a) return 1; }\n__global__ void k(int n) { int x = $Varying(f(n))$; }",
        ),
        (
            "pointer to own local",
            "__device__ int* f(int a) { int x = a; return &x; }\n__global__ void k(int n) { int* x = $Varying(f(n))$; }",
        ),
    ]);
}

#[test]
fn divergence() {
    all(&[
        ("top", k!("~~Constant~~ out[0] = 1;")),
        (
            "if",
            k!("if (tid) { ~~Varying~~ out[0] = 1; } ~~Constant~~ out[1] = 1;"),
        ),
        (
            "unbraced",
            k!("if (n) ~~Grid~~ out[0] = 1; else ~~Grid~~ out[1] = 1; ~~Constant~~ out[2] = 2;"),
        ),
        (
            "nested",
            k!("if (n) { if (blockIdx.x) { ~~Block~~ out[0] = 1; } ~~Grid~~ out[1] = 1; }"),
        ),
        ("early return", k!("if (v >= n) return; ~~Varying~~ out[0] = 1;")),
        ("early uniform return", k!("if (n == 0) return; ~~Grid~~ out[0] = 1;")),
        (
            "loop",
            k!("for (int i = 0; i < tid; i++) { ~~Varying~~ out[0] = 1; } ~~Constant~~ out[1] = 1;"),
        ),
        (
            "uniform loop",
            k!("for (int i = 0; i < n; i++) { ~~Grid~~ out[0] = 1; }"),
        ),
        (
            "behind a divergent break",
            k!("for (int i = 0; i < n; i++) { if (i == tid) break; ~~Varying~~ out[0] = 1; } ~~Constant~~ out[1] = 1;"),
        ),
        (
            "before a divergent break",
            k!("for (int i = 0; i < n; i++) { ~~Varying~~ out[0] = 1; if (i == tid) break; }"),
        ),
        (
            "behind a divergent continue",
            k!("for (int i = 0; i < n; i++) { if (tid) continue; ~~Varying~~ out[0] = 1; }"),
        ),
        (
            "behind a divergent continue, where no other way leads out",
            k!(
                "int i = 0; for (;;) { ~~Varying~~ i++; if (tid) continue; ~~Varying~~ out[0] = 1; if (n > 4) break; } ~~Constant~~ out[1] = 1;"
            ),
        ),
        (
            "before a divergent continue",
            k!("for (int i = 0; i < n; i++) { ~~Grid~~ out[0] = 1; if (tid) continue; out[1] = 1; }"),
        ),
        (
            "divergent return in a uniform loop",
            k!("for (int i = 0; i < n; i++) { if (i == tid) return; } ~~Varying~~ out[1] = 1;"),
        ),
        (
            "do while",
            k!("do { ~~Varying~~ out[0] = 1; } while (tid > out[1]); ~~Constant~~ out[2] = 1;"),
        ),
        (
            "switch",
            k!(
                "switch (tid) { case 0: ~~Varying~~ out[0] = 1; break; default: ~~Varying~~ out[1] = 1; } ~~Constant~~ out[2] = 1;"
            ),
        ),
        (
            "switch fall through",
            k!("switch (n) { case 0: ~~Grid~~ out[0] = 1; case 1: ~~Grid~~ out[1] = 1; }"),
        ),
        (
            "preprocessor",
            k!("\n#if A\n~~Constant~~ out[0] = 1;\n#else\n~~Constant~~ out[1] = 1;\n#endif\n~~Constant~~ out[2] = 1;"),
        ),
        (
            "goto",
            k!("if (tid) goto end; ~~Varying~~ out[0] = 1; end: ; ~~Constant~~ out[1] = 1;"),
        ),
        (
            "declared condition",
            k!("if (int x = v - n) { ~~Varying~~ out[0] = x; }"),
        ),
        (
            "range for",
            k!("int t[2] = {1, 2}; for (int x : t) { ~~Varying~~ out[0] = x; }"),
        ),
        (
            "inside divergent, uniform",
            k!("if (tid) { if (n) { ~~Varying~~ out[0] = 1; } }"),
        ),
        (
            "infinite loop of some threads",
            k!("if (tid) { while (true) {} } ~~Varying~~ out[0] = 1;"),
        ),
    ]);
}

#[test]
fn nasty() {
    all(&[
        (
            "field named like a constant",
            "constexpr int N = 3;\nstruct S { int N; __device__ int get(); };\n__device__ int S::get() { return $Varying(N)$; }",
        ),
        (
            "array in a struct",
            "struct P { int a[2]; int b; };\n__global__ void k(P p, int n) { int x = $Grid(p.a[1])$; p.a[threadIdx.x & 1] = 3; int y = $Varying(p.a[0])$; }",
        ),
        (
            "array of a struct decays",
            "struct P { int a[2]; };\n__global__ void k(P p, int n) { int* q = p.a; q[0] = threadIdx.x; int y = $Varying(p.a[0])$; }",
        ),
        (
            "nested fields",
            "struct A { int x; int y; };\nstruct P { A a; int b; };\n__global__ void k(P p, int n) { p.a.x = threadIdx.x; int y = $Varying(p.a.x)$; int z = $Varying(p.a.y)$; }",
        ),
        (
            "swapped in a loop",
            k!("int a = n, b = tid; for (int i = 0; i < m; i++) { int c = a; a = b; b = c; } int x = $Varying(a)$;"),
        ),
        (
            "divergent only through a flag",
            k!("bool go = true; int s = 0; while (go) { s++; if (s > tid) go = false; } int x = $Varying(s)$;"),
        ),
        (
            "flag set in a short circuit",
            k!("bool go = true; int s = 0; while (go) { s++; s > tid && (go = false); } int x = $Varying(s)$;"),
        ),
        (
            "divergent through a call",
            "__device__ bool odd() { return threadIdx.x & 1; }\n__global__ void k(int n) { int x = 0; if (odd()) x = n; int a = $Varying(x)$; }",
        ),
        (
            "set in a loop under a condition",
            k!("int x = n; for (int i = 0; i < n; i++) { if (i > tid) { x = x + 1; } } int a = $Varying(x)$;"),
        ),
        (
            "exit by one branch of a switch",
            k!(
                "int i = 0; for (;;) { i++; switch (tid) { case 0: goto done; default: if (i > n) goto done; } } done: int a = $Varying(i)$;"
            ),
        ),
        (
            "return from inner loop",
            k!(
                "for (int i = 0; i < n; i++) { for (int j = 0; j < n; j++) { if (j == tid) return; } int a = $Grid(i)$; }"
            ),
        ),
        (
            "break of the inner loop only",
            k!(
                "int j; for (int i = 0; i < n; i++) { for (j = 0; j < n; j++) { if (j == tid) break; } int a = $Varying(j)$; } int b = $Varying(j)$;"
            ),
        ),
        (
            "loop after a divergent loop",
            k!("int i = 0; while (i < tid) i++; while (i < n) { i++; } int a = $Varying(i)$;"),
        ),
        (
            "while with side effect",
            k!("int c = n; while (c-- > tid) {} int a = $Varying(c)$;"),
        ),
        (
            "do with continue",
            k!("int c = 0; do { c++; if (tid) continue; c++; } while (c < n); int a = $Varying(c)$;"),
        ),
        (
            "reference to a conditional",
            k!("int x = n, y = m; int& r = tid ? x : y; r = 7; int a = $Varying(x)$;"),
        ),
        (
            "pointer chosen",
            k!("int x = n; const int* q = m ? &x : ro; int a = $Varying(*q)$;"),
        ),
        (
            "array element reference",
            k!("int t[2] = {1, 1}; int& r = t[0]; r = tid; int a = $Varying(t[0])$;"),
        ),
        (
            "reference in braces",
            "struct R { int& r; };\n__global__ void k(int n) { int x = n; R r{x}; r.r = threadIdx.x; int a = $Varying(x)$; }",
        ),
        (
            "member of unknown class",
            k!("Thing t(n); int a = $Varying(t.size())$; int b = $Varying(t.field)$;"),
        ),
        ("unknown class operator", k!("Thing t = n; int a = $Varying(t + 1)$;")),
        ("stream extraction", k!("int x = n; in >> x; int a = $Varying(x)$;")),
        (
            "swap",
            k!("int x = n; int y = tid; std::swap(x, y); int a = $Varying(x)$;"),
        ),
        (
            "aliased through double pointer",
            k!("int* p = out; int** pp = &p; *pp = out + tid; int a = $Varying(p[0])$; int* q = $Varying(p)$;"),
        ),
        (
            "cast to reference",
            k!("int x = n; (float&)x = 1.0f * tid; int a = $Varying(x)$;"),
        ),
        (
            "cut by the preprocessor",
            k!("int x = n; if (n) {\n#if A\n x = tid; } else {\n#endif\n x = 2; }\n int a = $Varying(x)$;"),
        ),
        (
            "macro that assigns",
            "#define SET(a) a = threadIdx.x\n__global__ void k(int n) { int x = n; SET(x); int a = $Varying(x)$; }",
        ),
        (
            "macro that hides an exit",
            "#define CHECK if (threadIdx.x) return\n__global__ void k(int n, int* out) { CHECK; ~~Varying~~ out[0] = n; }",
        ),
        (
            "macro with arguments that returns",
            "#define CHECK(c) if (c) return\n__global__ void k(int n, int* out) { CHECK(threadIdx.x > n); ~~Varying~~ out[0] = n; }",
        ),
        (
            "label twice",
            k!("int x = 0;\n#if A\nl: x = 1;\n#else\nl: x = tid;\n#endif\nint a = $Varying(x)$; if (m) goto l;"),
        ),
        (
            "global through a const pointer",
            "__device__ int g;\n__global__ void k(const int* p) { atomicAdd(&g, 1); int a = $Varying(p[0])$; int b = $Varying(g)$; }",
        ),
        (
            "child of a callee writes",
            "__global__ void c(int* p) { p[0] = 1; }\n__device__ void go(int* p) { c<<<1, 1>>>(p); }\n__global__ void k(int* p, const int* q) { go(p); int a = $Varying(q[0])$; }",
        ),
        (
            "shared through a generic pointer",
            k!("__shared__ int s[4]; int* p = n ? s : out; s[tid] = tid; __syncthreads(); int a = $Varying(p[0])$;"),
        ),
        (
            "float written as int",
            "__global__ void k(float* f, int n) { atomicMax((int*)f, threadIdx.x); float x = $Varying(f[n])$; }",
        ),
        (
            "vector store",
            "__global__ void k(float4* o, const float* f, int n) { o[threadIdx.x] = make_float4(1, 2, 3, 4); float x = $Varying(f[n])$; }",
        ),
        (
            "memcpy",
            "__global__ void k(float* o, const int* f, int n) { memcpy(o, f, n); int x = $Varying(f[n])$; }",
        ),
        (
            "placed after its use",
            k!("int x = n; for (int i = 0; i < n; i++) { int a = $Varying(x)$; x = tid; }"),
        ),
        (
            "ternary with launch",
            "__global__ void c(int* p) { *p = 1; }\n__global__ void k(int* p, const float* f) { float a = $Grid(f[0])$; threadIdx.x ? c<<<1, 1>>>(p) : (void)0; }",
        ),
        (
            "switch declared before cases",
            k!("switch (n) { int x; case 0: x = n; int a = $Grid(x)$; break; case 1: int b = $Varying(x)$; }"),
        ),
        (
            "post increment into itself",
            k!("int x = n; x = x++ + tid; int a = $Varying(x)$;"),
        ),
        (
            "read before write in order",
            k!("int x = n; int a = $Grid(x)$; x = tid;"),
        ),
        (
            "volatile cast",
            k!("int a = $Varying(*(volatile const int*)(row + n))$;"),
        ),
        (
            "pointer from a struct of pointers",
            "struct G { int* row; };\n__global__ void k(G g) { g.row[threadIdx.x] = 1; int x = $Varying(g.row[0])$; }",
        ),
        (
            "constexpr local",
            k!("constexpr int B = 32; int a = $Constant(B * 2)$; const int c = n; int b = $Grid(c)$;"),
        ),
        (
            "global changed by a callee",
            "__device__ int g;\n__device__ void up() { g++; }\n__global__ void k(const int* p) { up(); int a = $Varying(p[0])$; }",
        ),
        (
            "host function",
            "void host(int n) { int a = $Varying(n)$; int b = $Constant(3)$; }",
        ),
        (
            "kernel template",
            "template <typename T> __global__ void k(T n, T* p) { T x = $Grid(n)$; T y = $Varying(p[0])$; p[1] = n; }",
        ),
    ]);
}

/// What only the next iteration leads to isn't reached together.
#[test]
fn next_iterations() {
    all(&[
        (
            "left behind a divergent continue",
            k!("int i = 0; for (;;) { i++; if (tid > i) continue; if (n > 4) break; } int a = $Varying(i)$;"),
        ),
        (
            "set before a divergent continue",
            k!("int y = 0; for (;;) { int a = $Varying(y)$; if (row[tid]) { y = 1; continue; } if (n > 4) break; }"),
        ),
        (
            "kept by a divergent continue",
            k!(
                "int z = 0, i = 0; for (;;) { i++; int a = $Varying(z)$; if (row[tid]) continue; z = i; if (n > 4) break; }"
            ),
        ),
        (
            "returns behind a divergent continue",
            k!("int y = 0; while (true) { int a = $Varying(y)$; if (tid) { y++; continue; } if (n > 4) return; }"),
        ),
        (
            "an inner loop that some threads leave: the iterations of the outer one are counted alike",
            k!("int y = 0; for (;;) { int a = $Grid(y)$; while (true) { if (tid) break; if (n > 4) return; } y++; }"),
        ),
        (
            "a uniform continue",
            k!(
                "int y = 0, i = 0; for (;;) { i++; if (n > i) { y = 1; continue; } int a = $Grid(y)$; if (n > 4) break; } int b = $Grid(i)$;"
            ),
        ),
        (
            "threads meet before the next iteration",
            k!(
                "int y = 0, i = 0; for (;;) { i++; if (tid) out[0] = 1; else out[1] = 1; y = i; int a = $Grid(y)$; if (n > i) break; } int b = $Grid(i)$;"
            ),
        ),
    ]);
}
