//! What isn't analysed may do anything: what is too large or too deep, declared and not defined, included in the middle of a function,
//! or elsewhere than where its name is looked up.

use gridfuse_analysis::base::budget::{BRACKETS, GROUPS, SCOPES};

use super::fixes::fix;
use super::{rewrite, rewrite_files};

/// A parent whose children are independent, as far as `rest` says nothing else; the child begins with `first`.
fn program(definitions: &str, first: &str) -> String {
    format!(
        r#"{definitions}
__global__ void child(int *data, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  {first}
  if (i < n) data[i] = i;
}}
__global__ void parent(int *data, int n) {{
  int i = threadIdx.x;
  child<<<1, 64>>>(data + i * 64, 64);
}}
int main() {{ parent<<<1, 64>>>(nullptr, 64); }}
"#
    )
}

fn in_scopes(text: &str) -> String {
    format!(
        "{}{text}{}",
        "namespace {\n".repeat(SCOPES + 1),
        "}\n".repeat(SCOPES + 1)
    )
}

fn in_groups(text: &str) -> String {
    let open: String = (0..=GROUPS).map(|i| format!("#ifndef GROUP_{i}\n")).collect();
    format!("{open}{text}\n{}", "#endif\n".repeat(GROUPS + 1))
}

fn deep() -> String {
    format!("{}0{}", "(".repeat(BRACKETS + 1), ")".repeat(BRACKETS + 1))
}

const HELPER: &str = "__device__ void helper(const int *data, int i) { }\n";

#[test]
fn what_is_known_is_used() {
    for (definitions, first) in [
        ("", ""),
        (HELPER, "helper(data, i);"),
        (
            r#"__device__ void helper(const int *d, int);
__device__ void helper(const int *data, int i) { }"#,
            "helper(data, i);",
        ),
        (
            r#"__device__ void helper(unsigned n);
__device__ void helper(unsigned int n) { }"#,
            "helper(3u);",
        ),
    ] {
        let assumes = rewrite("fire-and-forget", &program(definitions, first)).assumes;
        assert!(assumes.is_empty(), "{definitions}: {assumes:?}");
    }
}

#[test]
fn what_is_not_known_may_write() {
    let overload = "__device__ void helper(int *data, int i) { data[i + 1] = 5; }";
    let class = |member: &str| {
        format!(
            r#"struct Log {{
  int *p;
  {member}
}};"#
        )
    };
    let destructor = "__device__ ~Log() { *p = 1; }";
    for (definitions, first) in [
        // Another overload, of which only the declaration is in sight, or not even that.
        (
            format!("{HELPER}__device__ void helper(int *data, int i);"),
            "helper(data, i);",
        ),
        (format!("{HELPER}{}", in_scopes(overload)), "helper(data, i);"),
        (format!("{HELPER}{}", in_groups(overload)), "helper(data, i);"),
        (
            format!(
                "{HELPER}__device__ void helper(int *data, int i, int k = {}) {{ data[1] = i; }}",
                deep()
            ),
            "helper(data, i);",
        ),
        (
            format!(
                "__device__ void helper(int *data, int i) {{ data[i + 1] = {}; }}",
                deep()
            ),
            "helper(data, i);",
        ),
        // Operators, and members of classes.
        (
            in_scopes(
                r#"struct Log { int *p; };
__device__ int operator+(Log log, int i) { return log.p[i] = 1; }"#,
            ),
            "Log log{data}; log + i;",
        ),
        (
            format!(
                "struct Log {{ int *p; }};\n{}",
                in_scopes("__device__ int operator+(Log log, int i) { return log.p[i] = 1; }")
            ),
            "Log log{data}; int k = log + i;",
        ),
        (in_scopes(&class(destructor)), "Log log{data};"),
        (class(&in_groups(destructor)), "Log log{data};"),
        (
            class(&format!("__device__ ~Log() {{ *p = {}; }}", deep())),
            "Log log{data};",
        ),
        (class("\n#include \"log.inc\"\n"), "Log log{data};"),
        // Statements.
        (String::new(), &in_groups("data[i + 1] = 5;")),
        (String::new(), "\n#include \"statements.inc\"\n"),
    ] {
        let source = program(&definitions, first);
        let assumes = rewrite("fire-and-forget", &source).assumes;
        assert!(!assumes.is_empty(), "{first:.200}\n{definitions:.300}");
    }
}

#[test]
fn what_a_namespace_has_is_not_what_the_file_has() {
    let program = |definitions: &str| {
        let source = program(definitions, "").replace("child<<<1, 64>>>", "child<<<1, q::N>>>");
        source.replace("if (i < n) ", "")
    };
    let known = "namespace q { const int N = 64; }";
    assert!(rewrite("fire-and-forget", &program(known)).assumes.is_empty());
    let elsewhere = in_scopes("namespace q { const int N = 128; }");
    for definitions in [
        "const int N = 64;",
        &format!("const int N = 64;\n{elsewhere}"),
        &elsewhere,
    ] {
        assert!(
            !rewrite("fire-and-forget", &program(definitions)).assumes.is_empty(),
            "{definitions:.100}"
        );
    }
}

#[test]
fn a_kernel_that_others_may_launch_has_no_known_size() {
    let program = |rest: &str| {
        format!(
            r#"__global__ void child(int *data, int n) {{ if (threadIdx.x < n) data[threadIdx.x] = threadIdx.x; }}
__global__ void parent(int *data, int n) {{
  if (threadIdx.x == 0) {{
    child<<<4, 64>>>(data + blockIdx.x * 64, n);
    $0cudaDeviceSynchronize();
    data[blockIdx.x] = data[blockIdx.x * 64] + gridDim.x;
  }}
}}
{rest}
int main() {{ int *d; cudaMalloc(&d, 400); parent<<<1, 1>>>(d, 4); cudaDeviceSynchronize(); }}
"#
        )
    };
    // What follows the wait runs in a grid of one thread, where the kernel's grids have one.
    let one_thread = |source: &str| match fix("replace-device-sync", source, &[]) {
        Ok((text, _)) => text.contains("<<<1, 1, 0, cudaStreamTailLaunch>>>"),
        Err(_) => false,
    };
    assert!(
        one_thread(&program("")),
        "{:?}",
        fix("replace-device-sync", &program(""), &[])
    );
    for rest in [
        "void other(int *d) { auto f = parent; f<<<7, 64>>>(d, 3); }",
        &format!("void other(int *d) {{ int k = {}; parent<<<7, 64>>>(d, k); }}", deep()),
    ] {
        assert!(!one_thread(&program(rest)), "{rest:.100}");
    }
}

#[test]
fn a_header_that_many_include() {
    let parent = r#"__global__ void child(int *data, int n) { if (threadIdx.x < n) data[threadIdx.x] = threadIdx.x; }
__global__ void parent(int *data, int n) { child<<<1, 64>>>(data + 64 * blockIdx.x, n); }
"#;
    let main = r#"#include "parent.cuh"
int main() { parent<<<64, 1>>>(nullptr, 64); }
"#;
    let assumed = |includers: usize| {
        let mut files = vec![
            ("parent.cuh".to_owned(), parent.to_owned()),
            ("main.cu".to_owned(), main.to_owned()),
            // What includes it launches it without naming it where it is declared.
            (
                "start.cuh".to_owned(),
                "inline void start(int *data) { parent<<<64, 64>>>(data, 64); }\n".to_owned(),
            ),
        ];
        for i in 0..includers {
            files.push((format!("a{i:03}.cu"), "#include \"parent.cuh\"\n".to_owned()));
        }
        files.push((
            "z.cu".to_owned(),
            "#include \"parent.cuh\"\n#include \"start.cuh\"\n".to_owned(),
        ));
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        rewrite_files("fire-and-forget", &files, &[])
            .unwrap_or_else(|e| panic!("{e:?}"))
            .assumes
    };
    assert!(!assumed(2).is_empty());
    assert_eq!(assumed(100), assumed(2));
}
