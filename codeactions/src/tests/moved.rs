//! Names that mean something else where a rewrite would write them down: at the top of the kernel, in front of a function, at the host's
//! launch. What has such a name is passed for each launch, or the rewrite is refused.

use super::{refuses, rewrite};

const CHILD: &str = r#"__global__ void child(int* out, int k, int base) {
    atomicAdd(&out[base + threadIdx.x], k);
}
"#;
const BASE: &str = "int base = (blockIdx.x * 32 + threadIdx.x) * 32;";

/// A device function that launches with this argument, and a kernel that calls it.
fn called(before: &str, go: &str, between: &str, parent: &str) -> String {
    format!(
        r#"{before}
{CHILD}
{go}
{between}
{parent}
void run(int* out) {{ parent<<<2, 32>>>(out, 5); }}
"#,
    )
}

/// A kernel with these statements before the launch.
fn local(before: &str, statements: &str, argument: &str) -> String {
    format!(
        r#"{before}
{CHILD}
__global__ void parent(int* out, int n) {{
    {BASE}
{statements}
    child<<<1, 32>>>(out, {argument}, base);
}}
void run(int* out) {{ parent<<<2, 32>>>(out, 5); }}
"#
    )
}

fn go(argument: &str) -> String {
    format!(
        r#"__device__ void go(int* out, int base) {{
    child<<<1, 32>>>(out, {argument}, base);
}}"#
    )
}

const CALLS: &str = "go(out, (blockIdx.x * 32 + threadIdx.x) * 32);";

fn parent(name: &str) -> String {
    format!(
        r#"__global__ void parent(int* out, int {name}) {{
    {CALLS}
    if ({name} < 0) out[0] = 1;
}}"#
    )
}

/// What the declaration of the aggregator says.
fn declaration(text: &str) -> &str {
    let at = text.find("> children(").unwrap_or(0);
    text[at..].split(';').next().unwrap_or("")
}

#[test]
fn values_that_are_others_at_the_top() {
    let template = |head: &str, argument: &str| go(argument).replace("__device__", &format!("{head} __device__"));
    let calls = |what: &str, parent: String| parent.replace("go(", &format!("go<{what}>("));
    for (name, text) in [
        (
            "K",
            called("", &template("template <int K>", "K + 1"), "", &calls("3", parent("K"))),
        ),
        (
            "T",
            called(
                "",
                &template("template <class T>", "(int)sizeof(T) + 1"),
                "typedef double T;",
                &calls("char", parent("n")),
            ),
        ),
        (
            "T",
            called(
                "",
                &template("template <class T>", "sizeof(T)"),
                "",
                &calls("char", format!("template <class T> {}", parent("n"))),
            )
            .replace("parent<<<", "parent<double><<<"),
        ),
        (
            "width",
            called("constexpr int width = 4;", &go("width"), "", &parent("width")),
        ),
        (
            "width",
            called("__constant__ int width = 4;", &go("width"), "", &parent("width")),
        ),
        (
            "kWide",
            called("enum { kWide = 4 };", &go("kWide"), "", &parent("kWide")),
        ),
        (
            "WIDTH",
            called(
                "constexpr int width = 4;\n#define WIDTH (width * 2)",
                &go("WIDTH"),
                "",
                &parent("width"),
            ),
        ),
        (
            "W",
            called("#define W 4", &go("W"), "#undef W\n#define W 8", &parent("n")),
        ),
        (
            "W",
            called(
                "#define V 1\n#define W (V + 1)",
                &go("W"),
                "#undef V\n#define V 8",
                &parent("n"),
            ),
        ),
        ("W", local("#define W 4", "#undef W\n#define W 8", "W")),
        (
            "Rec",
            local("struct Rec { int a; };", "struct Rec { int a[8]; };", "sizeof(Rec)"),
        ),
        (
            "Real",
            local("using Real = float;", "using Real = double;", "sizeof(Real)"),
        ),
        (
            "Real",
            local("using Real = float;", "typedef double Real;", "(int)sizeof(Real) * 2"),
        ),
        (
            "kFast",
            local("enum Mode { kFast = 1 };", "enum { kFast = 7 };", "kFast"),
        ),
        (
            "Wide",
            local(
                "namespace cfg { constexpr int Wide = 6; }",
                "using namespace cfg;",
                "Wide",
            ),
        ),
        (
            "Wide",
            local(
                r#"namespace cfg { constexpr int Wide = 6; }
constexpr int Wide = 2;"#,
                "using cfg::Wide;",
                "Wide",
            ),
        ),
        (
            "q",
            local("namespace a { constexpr int Wide = 6; }", "namespace q = a;", "q::Wide"),
        ),
        ("N", local("constexpr int N = 2;", "constexpr int N = 5;", "N")),
        (
            "+ K",
            local(
                "struct Pair { int K; };\nenum { K = 1 };",
                "enum { K = 5 };\n    Pair p = {3};",
                "p.K + K",
            ),
        ),
        (
            "+ K",
            called(
                r#"struct Pair { int K; };
enum { K = 1 };
__constant__ Pair p;"#,
                &go("p.K + K"),
                "",
                &parent("K"),
            ),
        ),
    ] {
        for id in [
            "aggregate-warp",
            "aggregate-block",
            "aggregate-grid",
            "aggregate-grid-stream",
        ] {
            let result = rewrite(id, &text);
            let said = declaration(result.text());
            assert!(!said.contains(name), "{id} {name}: {said}\n{text}");
            let host = result.text().rsplit("void run").next().unwrap_or("");
            assert!(!host.contains(&format!(", {name}")), "{id} {name}: {host}");
        }
    }
}

#[test]
fn values_that_are_the_same_at_the_top() {
    for (value, text) in [
        (
            "width",
            called("constexpr int width = 4;", &go("width"), "", &parent("n")),
        ),
        ("W", called("#define W 4", &go("W"), "#define V 8", &parent("n"))),
        ("width", local("constexpr int width = 4;", "", "width")),
        ("sizeof(Rec)", local("struct Rec { int a; };", "", "sizeof(Rec)")),
        ("sizeof(n)", local("", "", "sizeof(n)")),
        ("n", local("struct S { int n; };", "", "n")),
        (
            "cfg::Wide",
            local("namespace cfg { constexpr int Wide = 6; }", "", "cfg::Wide"),
        ),
    ] {
        let result = rewrite("aggregate-block", &text);
        let said = declaration(result.text());
        assert!(said.contains(value), "{value}: {said}\n{}", result.text());
    }
}

#[test]
fn kernels_that_are_others_at_the_top() {
    let kernel = r#"template <class T> __global__ void child(int* out, int base) {
    atomicAdd(&out[base + threadIdx.x], (int)sizeof(T));
}
"#;
    let with = |statement: &str, argument: &str| {
        format!(
            r#"typedef float Real;
{kernel}__global__ void parent(int* out) {{
    {BASE}
    {statement}
    child<{argument}><<<1, 32>>>(out, base);
}}
void run(int* out) {{ parent<<<2, 32>>>(out); }}
"#
        )
    };
    for id in [
        "aggregate-warp",
        "aggregate-block",
        "aggregate-grid",
        "aggregate-grid-stream",
    ] {
        for statement in [
            "typedef double Real;",
            "using Real = double;",
            "struct Real { double a; };",
        ] {
            refuses(
                id,
                &with(statement, "Real"),
                "`Real`, which this launch of `child` names",
            );
        }
        rewrite(id, &with("", "Real"));
        rewrite(id, &with("using Other = double;", "Real"));
    }
}

#[test]
fn types_that_are_others_at_the_launch() {
    let text = format!(
        r#"typedef long long Big;
__global__ void child(int* out, Big k, int base) {{
    atomicAdd(&out[base + threadIdx.x], (int)(k >> 33));
}}
__global__ void parent(int* out, int n) {{
    {BASE}
    typedef int Big;
    double wide = 8589934592.0 * (Big)threadIdx.x;
    child<<<1, 32>>>(out, wide, base);
}}
void run(int* out) {{ parent<<<2, 32>>>(out, 5); }}
"#
    );
    refuses("aggregate-block", &text, "can't be named");
    rewrite(
        "aggregate-block",
        &text.replace("typedef int Big;", "").replace("(Big)", ""),
    );
}
