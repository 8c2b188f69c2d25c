#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

fn translated(text: &str) -> String {
    let translation = separate(&Program::new("a.cu", text)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(translation.units, ["0_a.cu.cpp"]);
    let text = translation.files[0].1.clone();
    let prefix = "#include \"gridfuse_emulator.hpp\"\n#line 1 \"a.cu\"\n";
    text.strip_prefix(prefix).expect("the first lines").to_owned()
}

/// Translates what stands in a function.
fn in_function(text: &str) -> String {
    let whole = translated(&format!("void f() {{ {text} }}"));
    whole["void f() { ".len()..whole.len() - " }".len()].to_owned()
}

fn refused(text: &str) -> String {
    separate(&Program::new("a.cu", text)).unwrap_err().to_string()
}

const NULLARY: &str = "::emu::Launch(\"a.cu\", 1, 1, 2).of(k)()";

#[test]
fn launches() {
    assert_eq!(in_function("k<<<1, 2>>>();"), format!("{NULLARY};"));
    assert_eq!(
        in_function("if (x) k<<<1, 2>>>(); else k<<<1, 2>>>();"),
        format!("if (x) {NULLARY}; else {NULLARY};")
    );
    assert_eq!(in_function("return k<<<1, 2>>>();"), format!("return {NULLARY};"));
    assert_eq!(
        in_function("x ? k<<<1, 2>>>() : void();"),
        format!("x ? {NULLARY} : void();")
    );
    assert_eq!(
        in_function("k<<<dim3(1, 2), f(a, b), 4 * n, s>>>(p, {q, r});"),
        "::emu::Launch(\"a.cu\", 1, dim3(1, 2), f(a, b), 4 * n, s).of(k)(p, {q, r});"
    );
    assert_eq!(
        in_function("k<<<{1, 2}, 3>>>();"),
        "::emu::Launch(\"a.cu\", 1, {1, 2}, 3).of(k)();"
    );
}

#[test]
fn split_chevrons_and_lines() {
    assert_eq!(
        in_function("k << <1, 2 >> > ();"),
        "::emu::Launch(\"a.cu\", 1, 1, 2 ).of(k) ();"
    );
    let text = "void f() {\n    k<<<\n        1,   // one\n        2\n    >>>(\n        x);\n}\n";
    let expected =
        "void f() {\n    ::emu::Launch(\"a.cu\", 2, \n        1,   // one\n        2\n    ).of(k)(\n        x);\n}\n";
    assert_eq!(translated(text), expected);
    let moved = translated("void f() {\nns::\n  k<<<1, 2>>>(); g(); }");
    assert_eq!(moved.matches('\n').count(), 2);
    assert!(moved.contains(".of(ns:: k)()"), "{moved}");
}

#[test]
fn what_is_launched() {
    for kernel in [
        "ns::k",
        "::k",
        "table[i]",
        "a.b->k",
        "(*pointer)",
        "k<int, 3>",
        "ns::C<T>::template k<U>",
        "this->k",
        "choose(n)",
    ] {
        let expected = format!("x = y; ::emu::Launch(\"a.cu\", 1, 1, 2).of({kernel})(n);");
        assert_eq!(in_function(&format!("x = y; {kernel}<<<1, 2>>>(n);")), expected);
    }
    assert_eq!(
        in_function("else ::k<<<1, 2>>>();"),
        "else ::emu::Launch(\"a.cu\", 1, 1, 2).of(::k)();"
    );
}

#[test]
fn angle_brackets() {
    let cases = [
        ("k<A<B<int>>><<<1, 2>>>()", ", 1, 2).of(k<A<B<int>>>)()"),
        ("k<<<A<B<1>>::value, 2>>>()", ", A<B<1>>::value, 2).of(k)()"),
        ("k<<<1, A<B<1>>>>>()", ", 1, A<B<1>>).of(k)()"),
        ("k<<<1, f(A<B<C>>>(x))>>>()", ", 1, f(A<B<C>>>(x))).of(k)()"),
        ("k<<<n >> 5, n << 1>>>()", ", n >> 5, n << 1).of(k)()"),
        ("k<<<i < n, 2>>>()", ", i < n, 2).of(k)()"),
        ("k<<<p->x, 2>>>()", ", p->x, 2).of(k)()"),
        ("k<<<std::max<int>(a, b), 2>>>()", ", std::max<int>(a, b), 2).of(k)()"),
    ];
    for (launch, expected) in cases {
        let expected = format!("::emu::Launch(\"a.cu\", 1{expected};");
        assert_eq!(in_function(&format!("{launch};")), expected, "{launch}");
    }
}

#[test]
fn no_launches() {
    for text in [
        "// k<<<1, 2>>>();\n",
        "/* k<<<1, 2>>>(); */",
        "const char* s = \"k<<<1, 2>>>()\";",
        "auto s = R\"x(k<<<1, 2>>>())\" k<<<)x\";",
        "operator<<<int>(s, x);",
        "a << b >> c;",
    ] {
        assert_eq!(in_function(text), text);
    }
}

#[test]
fn launches_in_macros() {
    let text =
        "#define RUN(k, ...) \\\n    k<<<1, 2>>>(__VA_ARGS__)\nvoid f() { RUN(k, 1); TWICE(k<<<1, 2>>>(), 3); }\n";
    let expected = format!(
        r#"#define RUN(k, ...) \
    ::emu::Launch(__FILE__, __LINE__, 1, 2).of(k)(__VA_ARGS__)
void f() {{ RUN(k, 1); TWICE({}, 3); }}
"#,
        NULLARY.replace(", 1, 1, 2", ", 3, 1, 2")
    );
    assert_eq!(translated(text), expected);
    assert_eq!(
        translated("#define RUN(a, b) a ## b##_<<<1, 2>>>(3)\n"),
        "#define RUN(a, b) ::emu::Launch(__FILE__, __LINE__, 1, 2).of(a ## b##_)(3)\n"
    );
    let two_lines = translated("#define RUN k<<<\\\n1, 2>>>()\nint x;\n");
    assert_eq!(
        two_lines,
        "#define RUN ::emu::Launch(__FILE__, __LINE__, \\\n1, 2).of(k)()\nint x;\n"
    );
}

fn called(kernel: &str) -> String {
    format!(".deduced([=](auto... emu_args) {{ {kernel}(emu_args...); }}, \"{kernel}\")(")
}

#[test]
fn templates() {
    let scale = "template <typename T, int N = 1>\n__global__ void scale(T* data, T factor) {}\n";
    for (kernel, deduced) in [
        ("scale", true),
        ("scale<float>", false),
        ("scale<float, 2>", false),
        ("ns::scale", true),
    ] {
        let text = translated(&format!("{scale}void f() {{ {kernel}<<<1, 2>>>(p, 2.0f); }}"));
        let address = format!(".of({kernel})(");
        assert_eq!(text.contains(&called(kernel)), deduced, "{text}");
        assert_eq!(text.contains(&address), !deduced, "{text}");
    }
    let pack = "template <class... T> __global__ void all(T... values);\nvoid f() { all<<<1, 2>>>(1, 2); }";
    assert!(translated(pack).contains(&called("all")));
    let several = "template <class T, class U> __global__ void two(T, U) {}\nvoid f() { two<int><<<1, 2>>>(1, 2); }";
    assert!(translated(several).contains(&called("two<int>")));
    let special = "template <class T> __global__ void s(T) {}\ntemplate <> __global__ void s<int>(int) {}\nvoid f() { s<int><<<1, 2>>>(1); }";
    assert!(translated(special).contains(".of(s<int>)("));
    let bounds = "template <class T> __global__ void __launch_bounds__(64, 2) b(T) {}\nvoid f() { b<<<1, 2>>>(1); }";
    assert!(translated(bounds).contains(&called("b")));
}

#[test]
fn defaults_and_overloads() {
    let defaults = "__global__ void k(int a, int b = 2);\n__global__ void k(int a, int b) {}\n";
    assert!(translated(&format!("{defaults}void f() {{ k<<<1, 2>>>(1); }}")).contains(&called("k")));
    assert!(translated(&format!("{defaults}void f() {{ k<<<1, 2>>>(1, 2); }}")).contains(".of(k)("));
    let overloads = "__global__ void k(int* p) {}\n__global__ void k(float* p) {}\n";
    assert!(translated(&format!("{overloads}void f() {{ k<<<1, 2>>>(p); }}")).contains(&called("k")));
    // A braced argument has no type that could be deduced.
    assert!(translated(&format!("{overloads}void f() {{ k<<<1, 2>>>({{}}); }}")).contains(".of(k)("));
    let namespaces = "namespace a { __global__ void k(int* p) {} }\nnamespace b { __global__ void k(float* p) {} }\n";
    assert!(translated(&format!("{namespaces}void f() {{ a::k<<<1, 2>>>(p); }}")).contains(".of(a::k)("));
    let empty = "__global__ void k(void) {}\nvoid f() { k<<<1, 2>>>(); }";
    assert!(translated(empty).contains(".of(k)("));
    let macros = "__global__ void k(int a, int b = 2);\n#define RUN(...) k<<<1, 2>>>(__VA_ARGS__)\n";
    assert!(translated(macros).contains(".of(k)("));
}

#[test]
fn kernels_of_included_files_are_known() {
    let program = Program::new("src/a.cu", "#include \"k.cuh\"\nvoid f() { k<<<1, 2>>>(1); }\n").with_file(
        "src/k.cuh",
        "#pragma once\ntemplate <class T> __global__ void k(T) {}\n",
    );
    let translation = separate(&program).unwrap();
    let names: Vec<&str> = translation.files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["0_a.cu.cpp", "1_k.cuh.hpp"]);
    let text = &translation.files[0].1;
    assert!(
        text.starts_with("#include \"gridfuse_emulator.hpp\"\n#line 1 \"src/a.cu\"\n#include \"1_k.cuh.hpp\"\n"),
        "{text}"
    );
    assert!(text.contains(&called("k")), "{text}");
    assert_eq!(
        translation.files[1].1,
        "#line 1 \"src/k.cuh\"\n#pragma once\ntemplate <class T> __global__ void k(T) {}\n"
    );
}

#[test]
fn refused_launches() {
    assert_eq!(
        refused("\nvoid f() { k<<<1>>>(); }"),
        "a.cu:2: the emulator doesn't support a launch without grid and block size"
    );
    assert_eq!(
        refused("void f() { k<<<1, 2; }"),
        "a.cu:1: the emulator doesn't support `<<<` without `>>>(`"
    );
}

fn key(number: usize, name: &str, of: &str) -> String {
    format!("static const ::emu::SharedKey emu_key_{number}{{}}; auto& {name} = ::emu::shared<{of}>(emu_key_{number});")
}

#[test]
fn shared_variables() {
    let cases = [
        ("__shared__ int x;", key(1, "x", "int")),
        ("__shared__ T a[N][M + 1];", key(1, "a", "T [N][M + 1]")),
        (
            "__shared__ int a[N], *b, c;",
            [key(1, "a", "int [N]"), key(2, "b", "int *"), key(3, "c", "int")].join(" "),
        ),
        (
            "static __shared__ volatile unsigned long long v[4];",
            key(1, "v", "volatile unsigned long long [4]"),
        ),
        ("volatile __shared__ int v;", key(1, "v", "volatile int")),
        (
            "__shared__ const char* names[2];",
            key(1, "names", "const char *names[2]").replacen("char *names[2]>", "char * [2]>", 1),
        ),
        ("__shared__ std::array<int, 4> a;", key(1, "a", "std::array<int, 4>")),
        (
            "__shared__ typename A<B<T>>::type a;",
            key(1, "a", "typename A<B<T>>::type"),
        ),
        ("__shared__ int (*rows)[4];", key(1, "rows", "int (* )[4]")),
        ("__shared__ alignas(16) float f[4];", key(1, "f", "float [4]")),
        ("__shared__ __align__(8) char c[64];", key(1, "c", "char [64]")),
        ("[[maybe_unused]] __shared__ int x;", key(1, "x", "int")),
        (
            "__shared__ unsigned a, b[2];",
            [key(1, "a", "unsigned"), key(2, "b", "unsigned [2]")].join(" "),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(in_function(text), expected, "{text}");
    }
    let class = in_function("__shared__ struct { int a, b; } s;");
    assert_eq!(
        class,
        format!(
            "using emu_type_1 = struct {{ int a, b; }}; {}",
            key(2, "s", "emu_type_1")
        )
    );
}

#[test]
fn shared_variables_keep_lines() {
    let text = translated("void f() {\n__shared__ int\n  a[2],   // a\n  b;\nx(); }");
    assert_eq!(text.matches('\n').count(), 4);
    assert!(text.ends_with("\nx(); }"), "{text}");
    let in_macro = translated("#define BUFFER(n) \\\n  __shared__ int n; \\\n  n = 0\n");
    assert_eq!(
        in_macro,
        format!("#define BUFFER(n) \\\n  {} \\\n  n = 0\n", key(1, "n", "int"))
    );
}

#[test]
fn dynamic_shared_memory() {
    assert_eq!(
        in_function("extern __shared__ int s[];"),
        "auto* const s = ::emu::dynamic_shared<int>();"
    );
    assert_eq!(
        in_function("extern volatile __shared__ __align__(16) unsigned char s[];"),
        "auto* const s = ::emu::dynamic_shared<volatile unsigned char>();"
    );
    assert_eq!(
        in_function("extern __shared__ float s[][32];"),
        "auto* const s = ::emu::dynamic_shared<float [32]>();"
    );
    assert!(refused("extern __shared__ int s[];").contains("outside of functions"));
    assert!(refused("void f() { extern __shared__ int s[4]; }").contains("with a size"));
    assert!(refused("void f() { __shared__ int s = 4; }").contains("initialiser"));
    assert!(refused("struct S { __shared__ int s; };").contains("member"));
}

#[test]
fn lambdas_capture_shared_variables() {
    let shared = "__shared__ int a, b;";
    let cases = [
        ("g([] { a = b; });", "g([&a, &b] { a = b; });"),
        ("g([=] { a = 1; });", "g([=, &a] { a = 1; });"),
        ("g([&] { a = 1; });", "g([&] { a = 1; });"),
        (
            "g([x](int i) mutable -> int { return x + a; });",
            "g([x, &a](int i) mutable -> int { return x + a; });",
        ),
        ("g([](int a) { return a; });", "g([](int a) { return a; });"),
        ("g([] { return p.a; });", "g([] { return p.a; });"),
        ("x[a] = y[b];", "x[a] = y[b];"),
        ("g([] __device__ { a = 1; });", "g([&a] __device__ { a = 1; });"),
    ];
    for (text, expected) in cases {
        let found = in_function(&format!("{shared} {text}"));
        assert!(found.ends_with(&format!("; {expected}")), "{found}");
    }
    let dynamic = in_function("extern __shared__ int s[]; g([] { s[0] = 1; }); g([=] { s[0] = 1; });");
    assert!(
        dynamic.ends_with("; g([s] { s[0] = 1; }); g([=] { s[0] = 1; });"),
        "{dynamic}"
    );
    // Another function's variable of the same name.
    let other = translated("void f() { __shared__ int a; }\nvoid h() { g([] { a(); }); }");
    assert!(other.ends_with("{ g([] { a(); }); }"), "{other}");
}

fn registered(number: usize, name: &str, space: &str) -> String {
    format!(
        " static const ::emu::RegisterGlobal emu_reg_{number}{{&{name}, sizeof {name}, \"{name}\", ::emu::Space::{space}}};"
    )
}

#[test]
fn global_variables() {
    let section = " __attribute__((section(\"emu_globals\")))";
    let cases = [
        (
            "__device__ int x;",
            format!("__device__ int x{section};{}", registered(1, "x", "Device")),
        ),
        (
            "static __device__ unsigned a[2][3] = {{1}}, *b;",
            format!(
                "static __device__ unsigned a[2][3]{section} = {{{{1}}}}, *b{section};{}{}",
                registered(1, "a", "Device"),
                registered(2, "b", "Device")
            ),
        ),
        (
            "__constant__ float c[4];",
            format!("__constant__ float c[4]{section};{}", registered(1, "c", "Constant")),
        ),
        (
            "__device__ __managed__ int m = f(1, 2);",
            format!(
                "__device__ __managed__ int m{section} = f(1, 2);{}",
                registered(1, "m", "Managed")
            ),
        ),
        (
            "__device__ int C::total;",
            format!(
                "__device__ int C::total{section};{}",
                registered(1, "C::total", "Device")
            ),
        ),
        (
            "namespace n { __device__ int x{3}; }",
            format!(
                "namespace n {{ __device__ int x{section}{{3}};{} }}",
                registered(1, "x", "Device")
            ),
        ),
        // Constants don't go where variables are.
        (
            "__device__ const int t[] = {1};",
            format!("__device__ const int t[] = {{1}};{}", registered(1, "t", "Device")),
        ),
        (
            "__device__ const int* p;",
            format!("__device__ const int* p{section};{}", registered(1, "p", "Device")),
        ),
        (
            "__device__ void (*callback)(int);",
            format!(
                "__device__ void (*callback)(int){section};{}",
                registered(1, "callback", "Device")
            ),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(translated(text), expected, "{text}");
    }
}

#[test]
fn global_variables_without_a_plain_declaration() {
    let cases = [
        (
            "__device__ int x; __device__ int& y = x;",
            format!(
                "__device__ int x __attribute__((section(\"emu_globals\")));{} __device__ int& y = x;",
                registered(1, "x", "Device")
            ),
        ),
        (
            "struct S { static inline __device__ int x = 1; };",
            format!(
                "struct S {{ static inline __device__ int x = 1;{} }};",
                registered(1, "x", "Device").replace("static const", "static inline const")
            ),
        ),
        (
            "static __device__ union { int a, b[2]; float c; };",
            format!(
                "static __device__ union {{ int a, b[2]; float c; }};{}{}{}",
                registered(1, "a", "Device"),
                registered(2, "b", "Device"),
                registered(3, "c", "Device")
            ),
        ),
        (
            "#define V __constant__ int x;\n",
            format!("#define V __constant__ int x;{}\n", registered(1, "x", "Constant")),
        ),
        (
            "#define V(type, name) __device__ type name\nV(int, x);",
            "#define V(type, name) __device__ type name; static const ::emu::RegisterGlobal emu_reg_1_##name{&name, \
             sizeof name, #name, ::emu::Space::Device}\nV(int, x);"
                .to_owned(),
        ),
        (
            "template <class T, int N = 1> __device__ T x = 3;",
            "template <class T, int N = 1> __device__ T x = (::emu::RegisterGlobal{&x<T, N>, sizeof x<T, N>, \"x\", \
             ::emu::Space::Device}, 3);"
                .to_owned(),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(translated(text), expected, "{text}");
    }
}

#[test]
fn what_is_no_global_variable() {
    for text in [
        "__device__ int f(int x);",
        "static __device__ int f() { return 1; }",
        "template <class T> __device__ T f(T x) { return x; }",
        "extern __device__ int x;",
        "__device__ constexpr int x = 3;",
        "struct S { static __device__ int x; __device__ S() : y{1} {} __device__ operator int() const { return 1; } };",
        "#define HD __host__ __device__\nHD int f();",
        "void f() { auto g = [=] __device__ (int x) { return x; }; }",
        "__device__ std::pair<int, int> f();",
        "#define F(type, name) static __device__ type name\nF(int, f)(int x) { return x; }",
        "#define API(type) static __device__ inline type\nAPI(int) f(int x) { return x; }",
    ] {
        assert_eq!(translated(text), text);
    }
    assert!(refused("template <class T> __device__ T S<T>::x;").contains("a variable template"));
    assert!(refused("__device__ union { struct { int a; }; int b; };").contains("an anonymous union"));
    assert!(refused("void f() { static __device__ int x; }").contains("a local variable in device memory"));
}

#[test]
fn static_variables_of_device_code() {
    for text in [
        "__device__ int f() { static int calls; return ++calls; }",
        "template <class T> __global__ void k() { { static T last = 1; } }",
        "struct S { __host__ __device__ void f() { static unsigned a[4]; } };",
    ] {
        assert!(refused(text).contains("a static variable in device code"), "{text}");
    }
    for text in [
        "int f() { static int calls; return ++calls; }",
        "__device__ int f() { static constexpr int sizes[] = {1, 2}; static const int one = 1; return sizes[0]; }",
        "struct S { static __device__ int f() { return 1; } static int x; };",
        "__device__ int f() { struct L { static int g() { return 1; } }; return L::g(); }",
    ] {
        assert_eq!(translated(text), text);
    }
}

#[test]
fn macros_that_stand_for_qualifiers() {
    let text =
        "#define KERNEL extern \"C\" __global__\n#define DEVICE static __device__\n#define BOTH __host__ __device__\n";
    let launch = format!("{text}template <class T> KERNEL void k(T) {{}}\nvoid f() {{ k<<<1, 2>>>(1); }}");
    assert!(translated(&launch).contains(&called("k")));
    let global = translated(&format!("{text}DEVICE int x;\nBOTH int f(int x);\n"));
    assert!(global.contains(&registered(1, "x", "Device")), "{global}");
    assert!(refused(&format!("{text}DEVICE void f() {{ static int x; }}")).contains("a static variable"));
}

#[test]
fn inline_assembly() {
    let cases = [
        (
            "asm(\"mov.u32 %0, %%lanemask_lt;\" : \"=r\"(mask));",
            "(mask) = ::emu::ptx::lanemask_lt();",
        ),
        (
            "asm volatile(\"mov.u32 %0, %laneid;\" : \"=r\"(x[i]));",
            "(x[i]) = ::emu::ptx::laneid();",
        ),
        (
            "asm volatile(\"mov.u64 %0, %%globaltimer;\" : \"=l\"(t) :: \"memory\");",
            "(t) = ::emu::ptx::globaltimer();",
        ),
        ("asm volatile(\"membar.gl;\" ::: \"memory\");", "__threadfence();"),
        ("asm(\"ex\" \"it;\");", "::emu::ptx::exit_if(true);"),
        (
            r#"asm volatile("{\n.reg .pred q;\n\tsetp.ne.u32 q, %0, 0;\n\t@q exit;\n}" :: "r"(x > 3));"#,
            "::emu::ptx::exit_if((x > 3) != 0);",
        ),
        (
            "asm volatile(\"\" ::: \"memory\");",
            "asm volatile(\"\" ::: \"memory\");",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(in_function(text), expected);
    }
    assert_eq!(
        refused("void f() {\n  asm(\"add.u32 %0, %1, 1;\" : \"=r\"(x) : \"r\"(y));\n}"),
        "a.cu:2: the emulator doesn't support the inline assembly `add.u32 %0, %1, 1`"
    );
}

#[test]
fn words() {
    let cases = [
        ("__device__ __forceinline__ int f();", "__device__ inline int f();"),
        (
            "inline __device__ __forceinline__ int f();",
            "inline __device__  int f();",
        ),
        (
            "__forceinline__ __device__ inline int f();",
            " __device__ inline int f();",
        ),
        (
            "static __noinline__ int f();",
            "static __attribute__((noinline)) int f();",
        ),
        (
            "__attribute__((__noinline__)) int f();",
            "__attribute__((__noinline__)) int f();",
        ),
        (
            "__global__ void __launch_bounds__(256,\n2) k();",
            "__global__ void \n k();",
        ),
        (
            "__global__ __cluster_dims__(2, 1, 1) void k();",
            "__global__  void k();",
        ),
        ("void* malloc(size_t);", "void* malloc(size_t);"),
    ];
    for (text, expected) in cases {
        assert_eq!(translated(text), expected);
    }
    let calls = [
        ("p = malloc(4);", "p = ::emu::device_malloc(4);"),
        ("return ::memcpy(a, b, 4);", "return ::emu::device_memcpy(a, b, 4);"),
        ("std::memset(a, 0, 4);", "::emu::device_memset(a, 0, 4);"),
        ("(int*)malloc(4);", "(int*)::emu::device_malloc(4);"),
        (
            "pool.free(p); pool->malloc(3); Pool::free(p);",
            "pool.free(p); pool->malloc(3); Pool::free(p);",
        ),
    ];
    for (text, expected) in calls {
        assert_eq!(in_function(text), expected);
    }
}

#[test]
fn conditional_branches() {
    let text = "#if A\nvoid f(int x) {\n#else\nvoid f(long x) {\n#endif\n  __shared__ int a;\n}\n__device__ int x;\n";
    let found = translated(text);
    assert!(found.contains(&key(1, "a", "int")), "{found}");
    assert!(found.contains(&registered(2, "x", "Device")), "{found}");
}

#[test]
fn included_macros_are_refused() {
    assert_eq!(
        refused("\n#include NAME\n"),
        "a.cu:2: the emulator doesn't support an `#include` of a macro"
    );
}

#[test]
fn programs_together() {
    let one = Program::new(
        "a.cu",
        "#include <cstdio>\n#include \"h.cuh\"\n#include \"h.cuh\"\n#define N 1\nint main() { }\n",
    )
    .with_file("h.cuh", "#pragma once\n#include <vector>\nint h;\n");
    let two = Program::new(
        "b.cu",
        "#include <vector>\nint main(int argc, char** argv) { return argc; }\n",
    );
    let translation = together(&[&one, &two]).unwrap().unwrap();
    let text = &translation.files[0].1;
    assert!(text.starts_with("#include \"gridfuse_emulator.hpp\"\n"), "{text}");
    assert!(
        text.contains(
            r#"namespace emu_program_0 {
#line 1 "a.cu"

#line 1 "h.cuh"


int h;

#line 2 "a.cu"


#line 3 "a.cu"

#define N 1
int emu_main() { return 0; }

}
#undef N
namespace emu_program_1 {
"#
        ),
        "{text}"
    );
    assert_eq!(text.matches("#include <vector>").count(), 1);
    for alone in [
        "extern \"C\" int f();\nint main() {}",
        "int g() { return ::g(); }\nint main() {}",
        "int no_main;",
        "namespace std {}\nint main() {}",
    ] {
        assert_eq!(together(&[&Program::new("a.cu", alone)]), Ok(None), "{alone}");
    }
}

#[test]
fn the_runtime_header_is_shared() {
    let text = "#include \"gridfuse.cuh\"\nint main() { }\n";
    let header = gridfuse_codeactions::runtime::HEADER.clone();
    let one = Program::new("a.cu", text).with_file("gridfuse.cuh", header.clone());
    let translation = together(&[&one, &one]).unwrap().unwrap();
    let text = &translation.files[0].1;
    assert_eq!(text.matches("class ArenaOwner {").count(), 1);
    let (before, _) = text.split_once("namespace emu_program_0").unwrap();
    assert!(before.contains("class ArenaOwner {"));
    assert!(before.contains("#undef GRIDFUSE_AGGREGATE_CUH"));
    // Another version of it is a file like others.
    let other = one
        .clone()
        .with_file("gridfuse.cuh", header.replace("kMaxBlockZ = 64", "kMaxBlockZ = 1"));
    let translation = together(&[&one, &other]).unwrap().unwrap();
    assert_eq!(translation.files[0].1.matches("class ArenaOwner {").count(), 2);
}

#[test]
fn odd_text() {
    for text in [
        "<<<",
        "k<<<",
        "k<<<>>>",
        "k<<<1,2>>>",
        "k<<<1,2>>>(",
        ">>>(",
        "<<<1,2>>>()",
        "__shared__",
        "__device__",
        "void f() { __shared__",
        "asm",
        "asm(",
        "#",
        "#define",
        "#define A(",
        "#include",
        "#include \"",
        "template <",
        "__global__",
        "}{)(][",
        "[](",
        "::",
        "[[",
        "__device__ int",
        "__launch_bounds__(",
        "#if\n{\n#else\n}\n#endif\n}",
        "main(",
        "malloc(",
        "__device__ struct {",
    ] {
        // Refused or not, but no panic.
        let _ = separate(&Program::new("a.cu", text));
        let _ = separate(&Program::new("a.cu", format!("void f() {{ {text}")));
        let _ = together(&[&Program::new("a.cu", format!("int main() {{}} {text}"))]);
    }
}
