//! Members of classes that run without being called by their names, however their heads are written.

use super::fixes::fix;
use super::promote::{refused, with};

/// What stands in front of a member.
const HEADS: [&str; 9] = [
    "__device__",
    "__host__ __device__",
    "__device__ __forceinline__",
    "__device__ inline",
    "constexpr __device__",
    "HD",
    "HD inline",
    "UNSEEN",
    "UNSEEN __device__",
];

/// A wait is needed where a member reads, behind it, what the child writes.
#[test]
fn a_wait_in_front_of_what_a_member_reads() {
    let stays = |class: &str, before: &str, behind: &str| {
        let text = format!(
            r#"#define HD __host__ __device__
{class}
__global__ void child(int* a, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = a[i] * 3 + i;
}}
__global__ void parent(int* a, int* b, int n) {{
    {before}
    child<<<2, 32>>>(a, n);
    $0cudaDeviceSynchronize();
    {behind}
}}
void run(int* a, int* b, int n) {{ parent<<<1, 1>>>(a, b, n); }}
"#
        );
        let rewritten = fix("replace-device-sync", &text, &[]);
        // What follows comes behind the child all the same.
        rewritten.map_or(true, |(text, _)| text.contains("_after_"))
    };
    assert!(!stays("struct View { int v; };", "View v{n};", "int k = v.v;"));
    for head in HEADS {
        let converts = format!("struct View {{ int* p; {head} operator int() const {{ return *p; }} }};");
        assert!(stays(&converts, "View v{a + 5};", "int k = v;"), "{converts}");
        let template =
            format!("struct View {{ int* p; template <class T> {head} operator T() const {{ return *p; }} }};");
        assert!(stays(&template, "View v{a + 5};", "int k = v;"), "{template}");
        let constructs = format!("struct View {{ int v; {head} View(const int* p) : v(*p) {{}} }};");
        assert!(stays(&constructs, "", "View v = a + 5;"), "{constructs}");
        let destroys = format!("struct View {{ int* p; {head} ~View() {{ p[1] = p[0]; }} }};");
        assert!(stays(&destroys, "View v{a};", ""), "{destroys}");
    }
    // Comments are no part of a name.
    for comment in ["/* the number */", "// the number\n", "/**/ \\\n"] {
        let converts = format!("struct View {{ int* p; __device__ operator {comment} int() const {{ return *p; }} }};");
        assert!(stays(&converts, "View v{a + 5};", "int k = v;"), "{converts}");
        let shifts = format!(
            "struct View {{ int* p; }};\n__device__ int operator {comment} << (const View& v, int k) {{ return *v.p << k; }}"
        );
        assert!(stays(&shifts, "View v{a + 5};", "int k = v << 1;"), "{shifts}");
    }
    // Objects of the file have no name of a class where they are used.
    let view = "struct View { int* p; __device__ operator int() const { return *p; } };\nstruct Config { View view; };\nusing Other = View;";
    for memory in ["__constant__", "__device__", "__managed__", "extern __constant__"] {
        for (object, reads) in [
            ("View seen;", "int k = seen;"),
            ("View seen;", "int k = -seen;"),
            ("View seen[2];", "int k = seen[1];"),
            ("Other seen;", "int k = 1 + seen;"),
            ("Config seen;", "int k = seen.view;"),
            ("View seen;", "if (n) { int seen = 3; b[1] = seen; } int k = seen;"),
        ] {
            let front = format!("{view}\n{memory} {object}");
            assert!(stays(&front, "", reads), "{front} {reads}");
        }
    }
    let copies =
        "struct View { int v; View() = default; __host__ __device__ View(const View& o) : v(*(const int*)o.v) {} };";
    for copy in [
        "auto k = seen;",
        "decltype(seen) k = seen;",
        "auto k = n ? seen : seen;",
    ] {
        assert!(stays(&format!("{copies}\n__constant__ View seen;"), "", copy), "{copy}");
    }
    let own = format!("{view}\n__constant__ View seen;");
    assert!(!stays(&own, "int seen = n;", "int k = seen;"));
}

/// A cast may take a conversion that an argument doesn't take.
#[test]
fn explicit_conversions() {
    let class = "struct Number {\n    int v;\n    __device__ operator int() const { return v; }\n    __device__ explicit operator long() const { return v * 2; }\n};\n";
    let passes = |class: &str, value: &str| {
        let text = with("before + total)", value).replace("int before)", "long before)");
        format!("{class}{text}")
    };
    let sums = |class: &str| passes(class, "Number{before + total})");
    refused(&["promote"], &sums(class), "may use an explicit conversion");
    let by_macro = format!(
        "#define DEV_EXPLICIT __host__ \\\n    __device__ explicit\n{}",
        class.replace("__device__ explicit", "DEV_EXPLICIT")
    );
    refused(&["promote"], &sums(&by_macro), "may use an explicit conversion");
    super::rewrite(
        "promote",
        &sums(
            &class
                .replace("explicit ", "")
                .replace("operator long", "operator float"),
        ),
    );
    super::rewrite("promote", &passes(class, "before + total)"));
    // What the runtime header converts is none of the program's.
    let again = class
        .replace("explicit ", "")
        .replace("operator long", "operator float");
    let header: &str = &crate::runtime::HEADER;
    let text = format!("#include \"gridfuse.cuh\"\n{}", sums(&again));
    let rewritten = super::rewrite_files(
        "promote",
        &[("a.cu", &text), (crate::runtime::HEADER_NAME, header)],
        &[],
    );
    assert!(rewritten.is_ok(), "{:?}", rewritten.err());
    let other = [
        ("a.cu", &*text.replace("gridfuse.cuh", "other.cuh")),
        ("other.cuh", header),
    ];
    super::refuses_files("promote", &other, "may use an explicit conversion");
}
