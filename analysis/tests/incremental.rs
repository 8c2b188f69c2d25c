//! What is computed again after an edit, by the database's event log.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::diagnostics::diagnostics;
use gridfuse_analysis::facts::launch::launches;
use gridfuse_analysis::hir::body;
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::host::Host;

const PATH: &str = "/w/big.cu";

/// More than 10,000 lines: 500 parents with a child each, 20 lines a pair, and a driver.
fn big_file() -> String {
    let mut text = String::from("#define BLOCK 128\n");
    for i in 0..500 {
        text.push_str(&format!(
            r#"__global__ void child_{i}(int* out, int begin, int count) {{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= count)
        return;
    out[begin + t] = {i};
}}

// Parent number {i}.
__global__ void parent_{i}(const int* row, int* out, int n) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v];
    int count = row[v + 1] - begin;
    if (count > 0) {{
        child_{i}<<<(count + BLOCK - 1) / BLOCK, BLOCK>>>(
            out,
            begin,
            count);
    }}
}}

"#
        ));
    }
    text.push_str("int main() {\n");
    for i in 0..500 {
        text.push_str(&format!("    parent_{i}<<<10, 256>>>(nullptr, nullptr, 10);\n"));
    }
    text.push_str("}\n");
    text
}

fn all(host: &Host) -> usize {
    let db = host.db();
    let file = host.file(Path::new(PATH)).unwrap();
    for function in &items(db, file).functions {
        body(db, *function);
        launches(db, *function);
    }
    diagnostics(db, file).len()
}

fn edit(host: &mut Host, from: &str, to: &str) {
    let file = host.file(Path::new(PATH)).unwrap();
    let text = file.text(host.db());
    let start = text.find(from).unwrap();
    host.edit_file(
        Path::new(PATH),
        TextRange::new(start as u32, (start + from.len()) as u32),
        to,
    );
}

/// How often each query ran.
fn counts(executed: &[String], query: &str) -> usize {
    executed.iter().filter(|e| e.split('(').next() == Some(query)).count()
}

const PER_FUNCTION: [&str; 4] = ["body", "uniformity", "launches", "findings"];

#[test]
fn an_edit_in_one_function_analyses_that_function_again() {
    let text = big_file();
    assert!(text.lines().count() > 10_000);
    let mut host = Host::observed();
    host.set_file(Path::new(PATH), text);
    host.record_executions();
    assert_eq!(all(&host), 500);
    let first = host.take_executions();
    assert!(counts(&first, "body") >= 1001, "{}", counts(&first, "body"));

    // Inside a parent in the middle, changing its length: everything behind it moves.
    host.record_executions();
    edit(
        &mut host,
        r#"count = row[v + 1] - begin;
    if (count > 0) {
        child_250"#,
        r#"count = 3 * (row[v + 1] - begin);
    if (count > 1) {
        child_250"#,
    );
    let settled = host.take_executions();
    host.record_executions();
    assert_eq!(all(&host), 500);
    let asked = host.take_executions();
    // Once a function or once a file.
    assert!(settled.len() < 24 && asked.len() < 36, "{settled:?} {asked:?}");
    let executed = [settled, asked].concat();
    for query in PER_FUNCTION {
        assert_eq!(counts(&executed, query), 1, "{query}: {executed:?}");
    }
}

#[test]
fn a_comment_at_the_top_analyses_nothing_again() {
    let mut host = Host::observed();
    host.set_file(Path::new(PATH), big_file());
    all(&host);
    edit(&mut host, "#define BLOCK", "// Added.\n#define BLOCK");
    host.record_executions();
    all(&host);
    let executed = host.take_executions();
    for query in PER_FUNCTION {
        assert_eq!(counts(&executed, query), 0, "{query}: {executed:?}");
    }
}

#[test]
fn a_macro_that_decides_is_noticed() {
    let mut host = Host::new();
    host.set_file(Path::new(PATH), big_file());
    let block = |host: &Host| {
        let db = host.db();
        let file = host.file(Path::new(PATH)).unwrap();
        let parent = items(db, file)
            .functions
            .iter()
            .copied()
            .find(|f| f.name(db) == "parent_3")
            .unwrap();
        launches(db, parent)[0].block.constant
    };
    assert_eq!(block(&host), Some([128, 1, 1]));
    edit(&mut host, "#define BLOCK 128", "#define BLOCK 64");
    assert_eq!(block(&host), Some([64, 1, 1]));
}

#[test]
fn incremental_parsing_gives_the_same_as_parsing_anew() {
    let mut host = Host::new();
    host.set_file(Path::new(PATH), big_file());
    all(&host);
    for (from, to) in [
        (
            "if (count > 0) {\n        child_7<<",
            "if (count > 0) /* { */ {\n        child_7<<",
        ),
        (
            "int main() {",
            r#"#if 0
int broken( {
#endif
int main() {"#,
        ),
        (
            "#define BLOCK 128",
            "#define BLOCK 128 // é\n#define KERNEL __global__ void",
        ),
        ("__global__ void child_9(", "KERNEL child_9("),
        ("// Parent number 12.", "/* Parent number 12."),
        ("// Parent number 13.", "*/"),
    ] {
        edit(&mut host, from, to);
        let incremental = all(&host);
        let text = host.file(Path::new(PATH)).unwrap().text(host.db());
        let mut fresh = Host::new();
        fresh.set_file(Path::new(PATH), text);
        assert_eq!(incremental, all(&fresh), "{to}");
        let places = |host: &Host| {
            let db = host.db();
            let file = host.file(Path::new(PATH)).unwrap();
            diagnostics(db, file)
                .iter()
                .map(|d| (d.place.range, d.message.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(places(&host), places(&fresh), "{to}");
    }
}

/// 60 programs with the same names, and 60 files that share a header.
fn workspace() -> Host {
    let mut files = vec![(
        "/w/shared.cuh".into(),
        "#define CALL(p) touch(p)\n__device__ int touch(int* p);\n".into(),
    )];
    for i in 0..60 {
        let pair = |n: &str| {
            format!(
                r#"__global__ void child{n}(int* out, int count) {{
    if (threadIdx.x < count) out[threadIdx.x] = 1;
}}
__global__ void parent{n}(int* out, int n) {{
    int v = threadIdx.x;
    if (v < n) child{n}<<<1, 32>>>(out, v);
}}
"#
            )
        };
        let program = format!("{}int main() {{ parent<<<1, 32>>>(nullptr, 4); }}\n", pair(""));
        files.push((format!("/w/program{i}.cu").into(), program.into()));
        let part = format!(
            r#"#include "shared.cuh"
{}void run{i}() {{ parent{i}<<<1, 32>>>(nullptr, 4); }}
"#,
            pair(&i.to_string())
        );
        files.push((format!("/w/part{i}.cu").into(), part.into()));
    }
    let mut host = Host::observed();
    host.set_files(files);
    host
}

#[test]
fn an_edit_leaves_other_files_alone() {
    for path in ["/w/program7.cu", "/w/part7.cu"] {
        let path = Path::new(path);
        let mut host = workspace();
        let file = host.file(path).unwrap();
        diagnostics(host.db(), file);
        for insert in [
            " ",
            "/* */",
            "#define X 1\n",
            "__device__ int added(int x) { return x; }\n",
        ] {
            // The first edit of a file tells the database that it is one that changes.
            host.edit_file(path, TextRange::empty(0), "\n");
            diagnostics(host.db(), file);
            let text = file.text(host.db());
            let at = text.find("__global__").unwrap() as u32;
            host.record_executions();
            host.edit_file(path, TextRange::empty(at), insert);
            diagnostics(host.db(), file);
            let executed = host.take_executions();
            for query in [
                "parse",
                "items",
                "preprocessed",
                "file_directives",
                "visible",
                "launches_by_name",
                "body",
            ] {
                let most = if query == "body" { 5 } else { 1 };
                assert!(
                    counts(&executed, query) <= most,
                    "{query} behind {insert:?}: {executed:?}"
                );
            }
            // A new function is a new name: which functions mention it is asked of each file, and not of each function.
            assert!(counts(&executed, "words_in") <= 5, "{executed:?}");
        }
    }
}

#[test]
fn an_include_that_comes_or_goes_is_noticed() {
    let mut host = workspace();
    let (path, header) = (Path::new("/w/program7.cu"), Path::new("/w/shared.cuh"));
    let file = host.file(path).unwrap();
    let sees = |host: &Host| {
        let seen = gridfuse_analysis::hir::included::included_files(host.db(), file);
        seen.contains(&host.file(header).unwrap())
    };
    diagnostics(host.db(), file);
    assert!(!sees(&host));
    let line = "#include \"shared.cuh\"\n";
    host.edit_file(path, TextRange::empty(0), line);
    diagnostics(host.db(), file);
    assert!(sees(&host));
    // Letter by letter, as one types.
    host.edit_file(path, TextRange::new(0, line.len() as u32), "");
    assert!(!sees(&host));
    for (at, letter) in line.char_indices() {
        host.edit_file(path, TextRange::empty(at as u32), letter.encode_utf8(&mut [0; 4]));
        diagnostics(host.db(), file);
    }
    assert!(sees(&host));
    host.edit_file(path, TextRange::new(0, 1), "//");
    diagnostics(host.db(), file);
    assert!(!sees(&host));
}

/// A file with `count` pairs of kernels, as it is when it was opened and analysed.
fn opened(count: usize) -> Host {
    let mut text = String::new();
    for i in 0..count {
        text.push_str(&format!(
            r#"__global__ void child_{i}(int* out, int n) {{ if (threadIdx.x < n) out[threadIdx.x] = {i}; }}
__global__ void parent_{i}(int* out, int n) {{
    int count_{i} = n;
    child_{i}<<<1, count_{i}>>>(out, n);
}}
void start_{i}() {{ parent_{i}<<<1, 32>>>(nullptr, {i}); }}
"#
        ));
    }
    let mut host = Host::observed();
    host.open_file(Path::new(PATH), text);
    all(&host);
    host
}

/// How much is looked at or computed again when somebody types in one function of many, and asks for everything.
fn looked_at(count: usize) -> usize {
    let mut host = opened(count);
    let typed = ["n", "n +", "n + 1", "n + 12", "n + 1 < 2"];
    let mut last = 0;
    for pair in typed.windows(2) {
        let before = host.validations();
        host.record_executions();
        edit(
            &mut host,
            &format!("count_7 = {};", pair[0]),
            &format!("count_7 = {};", pair[1]),
        );
        let file = host.file(Path::new(PATH)).unwrap();
        diagnostics(host.db(), file);
        last = host.validations() - before + host.take_executions().len();
    }
    last
}

#[test]
fn typing_looks_at_what_hangs_on_the_function() {
    let (few, many) = (looked_at(20), looked_at(400));
    assert!(few > 10, "{few}");
    // Of each function more, that its findings are what they were, and nothing below that.
    assert_eq!(many - few, 3 * (400 - 20));
}

#[test]
fn functions_that_are_edited_in_turn() {
    let mut host = opened(30);
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let file = host.file(Path::new(PATH)).unwrap();
    let pieces = [
        "n",
        "+ 1",
        "}",
        "{",
        "{}",
        "\n#define N 3\n",
        "\n#if N == 3\n",
        "\n#endif\n",
        " child_1<<<1, n>>>(out, N);",
        "/*",
        "*/",
        "\"",
        "__global__ void parent_3(int* out, int n) {}\n",
        "__constant__ int values[3];\n",
        "child_2",
        ";",
        "cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 3);",
    ];
    for round in 0..300 {
        let text = file.text(host.db());
        let at = random(text.len() + 1);
        let end = (at + [0, 0, 1, 7, 90][random(5)]).min(text.len());
        host.edit_file(
            Path::new(PATH),
            TextRange::new(at as u32, end as u32),
            pieces[random(pieces.len())],
        );
        if round % 5 == 0 {
            let text = file.text(host.db());
            let mut anew = Host::new();
            let same = anew.set_file(Path::new(PATH), text.clone());
            assert_eq!(diagnostics(host.db(), file), diagnostics(anew.db(), same), "{text}");
            let (ours, others) = (&items(host.db(), file).functions, &items(anew.db(), same).functions);
            assert_eq!(ours.len(), others.len());
            for (a, b) in ours.iter().zip(others) {
                assert_eq!(a.start(host.db()), b.start(anew.db()));
                assert_eq!(a.text(host.db()), b.text(anew.db()));
            }
        }
    }
}
