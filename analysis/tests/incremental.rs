//! What is computed again after an edit, by the database's event log.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use gridfuse_analysis::db::Host;
use gridfuse_analysis::diagnostics::diagnostics;
use gridfuse_analysis::hir::body;
use gridfuse_analysis::items::items;
use gridfuse_analysis::launch::launches;
use gridfuse_analysis::span::TextRange;

const PATH: &str = "/w/big.cu";

/// More than 10,000 lines: 500 parents with a child each, 20 lines a pair, and a driver.
fn big_file() -> String {
    let mut text = String::from("#define BLOCK 128\n");
    for i in 0..500 {
        text.push_str(&format!(
            "__global__ void child_{i}(int* out, int begin, int count) {{\n\
             \x20   int t = blockIdx.x * blockDim.x + threadIdx.x;\n\
             \x20   if (t >= count)\n        return;\n\
             \x20   out[begin + t] = {i};\n}}\n\n\
             // Parent number {i}.\n\
             __global__ void parent_{i}(const int* row, int* out, int n) {{\n\
             \x20   int v = blockIdx.x * blockDim.x + threadIdx.x;\n\
             \x20   if (v >= n) return;\n\
             \x20   int begin = row[v];\n\
             \x20   int count = row[v + 1] - begin;\n\
             \x20   if (count > 0) {{\n\
             \x20       child_{i}<<<(count + BLOCK - 1) / BLOCK, BLOCK>>>(\n            out,\n            begin,\n            count);\n\
             \x20   }}\n}}\n\n"
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
    edit(
        &mut host,
        "count = row[v + 1] - begin;\n    if (count > 0) {\n        child_250",
        "count = 3 * (row[v + 1] - begin);\n    if (count > 1) {\n        child_250",
    );
    host.record_executions();
    assert_eq!(all(&host), 500);
    let executed = host.take_executions();
    for query in PER_FUNCTION {
        assert_eq!(counts(&executed, query), 1, "{query}: {executed:?}");
    }
    // Once a function or once a file.
    assert!(executed.len() < 36, "{executed:?}");
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
        ("int main() {", "#if 0\nint broken( {\n#endif\nint main() {"),
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
