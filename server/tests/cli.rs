//! The command line as a user meets it: exit codes, messages, files.

#![allow(clippy::expect_used, reason = "a test that cannot start has failed")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const PROGRAM: &str = "\
__global__ void child(int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = i;
}

__global__ void parent(int* out, const int* row, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int count = row[v + 1] - row[v];
    if (count > 0)
        child<<<(count + 127) / 128, 128>>>(out + row[v], count);
}

int main() { parent<<<1, 32>>>(nullptr, nullptr, 3); }
";

fn gridfuse(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gridfuse"))
        .current_dir(directory)
        .args(arguments)
        .output()
        .expect("gridfuse starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("the output is JSON")
}

fn directory(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, content) in files {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, content).expect("a file");
    }
    directory
}

#[test]
fn clean_file_and_summary() {
    let dir = directory(&[("a.cu", b"__global__ void k(int* a) { a[threadIdx.x] = 1; }\n")]);
    let output = gridfuse(dir.path(), &["check", "a.cu"]);
    assert_eq!(output.status.code(), Some(0));
    let expected = "0 device-side launches in 0 functions, 0 findings in 1 file: 0 errors, 0 warnings, 0 infos\n";
    assert_eq!(stdout(&output), expected);
    assert_eq!(stderr(&output), "");
}

#[test]
fn deny_decides_the_exit_code() {
    let dir = directory(&[("a.cu", PROGRAM.as_bytes())]);
    let check = |deny: &[&str]| gridfuse(dir.path(), &[&["check", "a.cu"], deny].concat());
    let output = check(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(
        stdout(&output).contains("warning[serialized-launches]"),
        "{}",
        stdout(&output)
    );
    assert!(stdout(&output).contains("--> a.cu:11:9"), "{}", stdout(&output));
    assert!(!stdout(&output).contains('\u{1b}'), "no colour in a pipe");
    assert_eq!(check(&["--deny", "warning"]).status.code(), Some(1));
    assert_eq!(check(&["--deny", "info"]).status.code(), Some(1));
}

#[test]
fn the_manifest_decides_severities_and_include_directories() {
    let head = PROGRAM.find("__global__ void parent").expect("the parent");
    let (child, parent) = PROGRAM.split_at(head);
    let parent = format!("#include \"child.cuh\"\n{parent}");
    let manifest = "include-dirs = ['inc']\n[severity]\nserialized-launches = 'error'\n";
    let dir = directory(&[
        ("gridfuse.toml", manifest.as_bytes()),
        ("inc/child.cuh", child.as_bytes()),
        ("src/a.cu", parent.as_bytes()),
    ]);
    let output = gridfuse(dir.path(), &["check", "src/a.cu", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let finding = &json(&output)["findings"][0];
    assert_eq!(
        (&finding["id"], &finding["severity"]),
        (&"serialized-launches".into(), &"error".into())
    );
    let explained = json(&gridfuse(dir.path(), &["explain", "src/a.cu:7", "--format", "json"]));
    assert_eq!(explained["launches"][0]["child"]["status"], "known");
    let wrong = "[severity]\nserialized-launches = 'loud'\n";
    std::fs::write(dir.path().join("gridfuse.toml"), wrong).expect("the manifest");
    let output = gridfuse(dir.path(), &["check", "src/a.cu"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("gridfuse.toml:2:23: `loud` is no severity"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_nearest_manifest_counts_for_each_file() {
    let dir = directory(&[
        (
            "gridfuse.toml",
            b"[severity]\nserialized-launches = 'error'\nempty-grid = 'error'\n",
        ),
        ("a.cu", PROGRAM.as_bytes()),
        ("sub/gridfuse.toml", b"[severity]\nserialized-launches = 'off'\n"),
        ("sub/deep/b.cu", PROGRAM.as_bytes()),
    ]);
    let severities = |arguments: &[&str]| {
        let report = json(&gridfuse(dir.path(), arguments));
        let findings = report["findings"].as_array().cloned().unwrap_or_default();
        let line = |f: &Value| format!("{} {} {}", f["place"]["path"], f["id"], f["severity"]).replace('"', "");
        findings.iter().map(line).collect::<Vec<_>>()
    };
    let both = severities(&["check", ".", "--format", "json"]);
    assert!(both.contains(&"a.cu serialized-launches error".to_owned()), "{both:?}");
    assert!(
        !both
            .iter()
            .any(|f| f.starts_with("sub/") && f.contains("serialized-launches")),
        "{both:?}"
    );
    assert_eq!(
        severities(&["check", "sub/deep/b.cu", "--format", "json"]),
        both.iter()
            .filter(|f| f.starts_with("sub/"))
            .cloned()
            .collect::<Vec<_>>()
    );
    // One that doesn't count for what is asked is told of, and stops nothing.
    std::fs::write(dir.path().join("sub/gridfuse.toml"), "arch = 90\n").expect("the manifest");
    let output = gridfuse(dir.path(), &["check", "a.cu"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("gridfuse.toml:1:8: "), "{}", stderr(&output));
    for asked in ["sub/deep/b.cu", "."] {
        let output = gridfuse(dir.path(), &["check", asked]);
        assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
        assert!(
            stderr(&output).contains("sub/gridfuse.toml:1:8: "),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn check_as_json() {
    let dir = directory(&[("a.cu", PROGRAM.replace('\n', "\r\n").as_bytes())]);
    let report = json(&gridfuse(dir.path(), &["check", ".", "--format", "json"]));
    assert_eq!(report["schema"], 1);
    assert_eq!(report["summary"]["launches"], 1);
    assert_eq!(report["summary"]["kernels"], 2);
    let place = &report["findings"][0]["place"];
    assert_eq!(place["path"], "a.cu");
    assert_eq!(place["start"]["line"], 11);
    assert_eq!(place["start"]["column"], 9);
    let offset = PROGRAM.find("child<<<").expect("the launch") + 10;
    assert_eq!(place["start"]["offset"], offset);
}

#[test]
fn check_for_other_programs() {
    let program = PROGRAM
        .replace("if (count > 0)", "if (/* ü😀 */ count > 0)")
        .replace(")\n        child", ") child");
    let dir = directory(&[("a b.cu", program.as_bytes())]);
    let sarif = json(&gridfuse(dir.path(), &["check", "a b.cu", "--format", "sarif"]));
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    assert_eq!(
        (&run["tool"]["driver"]["name"], &run["columnKind"]),
        (&"gridfuse".into(), &"unicodeCodePoints".into())
    );
    let result = &run["results"][0];
    assert_eq!(
        (&result["ruleId"], &result["level"]),
        (&"serialized-launches".into(), &"warning".into())
    );
    let rule = result["ruleIndex"].as_u64().expect("an index") as usize;
    assert_eq!(run["tool"]["driver"]["rules"][rule]["id"], "serialized-launches");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "a%20b.cu");
    let line = program.lines().nth(9).expect("the launch's line");
    let column = line.chars().count() - "child<<<(count + 127) / 128, 128>>>(out + row[v], count);".len() + 1;
    assert_eq!(place["region"]["startLine"], 10);
    assert_eq!(place["region"]["startColumn"], column);
    assert!(result["relatedLocations"][0]["message"]["text"].is_string(), "{result}");
    let github = gridfuse(dir.path(), &["check", "a b.cu", "--format", "github"]);
    let expected = format!("::warning file=a b.cu,line=10,endLine=10,col={column},endColumn=");
    assert!(stdout(&github).starts_with(&expected), "{}", stdout(&github));
    assert!(
        stdout(&github).contains(",title=gridfuse serialized-launches::child grids"),
        "{}",
        stdout(&github)
    );
}

#[test]
fn the_launch_graph_is_drawn() {
    let program = format!("{PROGRAM}__device__ void helper() {{ unknown<<<1, 32>>>(); }}\n");
    let dir = directory(&[("a.cu", program.as_bytes())]);
    let dot = stdout(&gridfuse(dir.path(), &["graph", "a.cu"]));
    for part in [
        "digraph launches {",
        "n0 [label=\"parent\\n1 warning\", shape=box, color=\"#9a6700\", penwidth=2];",
        "n1 [label=\"child\", shape=box];",
        "n0 -> n1 [label=\"up to 32 per grid\"];",
        "[label=\"main\", shape=ellipse];",
        "[label=\"unknown\", shape=box, style=dashed];",
    ] {
        assert!(dot.contains(part), "{part}: {dot}");
    }
    let mermaid = stdout(&gridfuse(dir.path(), &["graph", "a.cu", "--format", "mermaid"]));
    assert!(
        mermaid.starts_with("flowchart TD\n  n0[\"parent\"]:::warning\n"),
        "{mermaid}"
    );
    assert!(mermaid.contains("\n  classDef warning fill:"), "{mermaid}");
    assert!(mermaid.contains("n0 -->|\"up to 32 per grid\"| n1"), "{mermaid}");
    let svg = stdout(&gridfuse(dir.path(), &["graph", "a.cu", "--format", "svg"]));
    assert!(
        svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
    for part in [
        ">parent</text>",
        ">up to 32 per grid</text>",
        "<ellipse class=\"host\"",
        "prefers-color-scheme: dark",
    ] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    assert!(
        !svg.contains("href") && !svg.contains("@import"),
        "it needs nothing from elsewhere: {svg}"
    );
}

#[test]
fn the_launch_graph_has_the_calls_that_lead_to_launches() {
    let helpers = r#"__global__ void leaf(int* p) { p[threadIdx.x] = 1; }
__device__ void help(int* p) { leaf<<<1, 32>>>(p); }
__device__ void far(int* p) { help(p); help(p); }
__device__ int pure(int i) { return i + 1; }
"#;
    let kernels = r#"#include "help.cuh"
__device__ void again(int* p, int n) { if (n > 0) again(p, n - pure(1)); else help(p); }
__global__ void a(int* p) { if (threadIdx.x == 0) far(p); }
__global__ void b(int* p) { p[0] = pure(p[1]); }
__global__ void c(int* p) { again(p, pure(2)); }
struct S { int* p; __device__ void go() const { leaf<<<1, 32>>>(p); } };
__global__ void d(S s) { s.go(); s.stop(); }
void host(int* p) { a<<<1, 32>>>(p); b<<<1, 32>>>(p); c<<<1, 32>>>(p); }
"#;
    let dir = directory(&[("help.cuh", helpers.as_bytes()), ("x.cu", kernels.as_bytes())]);
    let edges = |arguments: &[&str]| {
        let dot = stdout(&gridfuse(dir.path(), &[&["graph"], arguments].concat()));
        let mut names = std::collections::BTreeMap::new();
        let mut edges = Vec::new();
        for line in dot.lines().map(str::trim) {
            let (head, attributes) = line.split_once(" [label=\"").unwrap_or((line, ""));
            let (label, style) = attributes.split_once('"').unwrap_or_default();
            match head.split_once(" -> ") {
                Some((from, to)) => edges.push((
                    from.to_owned(),
                    to.to_owned(),
                    label.to_owned(),
                    style.contains("dashed"),
                )),
                None => {
                    // What is found stands on the second line.
                    let name = label.split("\\n").next().unwrap_or(label);
                    names.insert(head.to_owned(), name.to_owned());
                }
            }
        }
        let named = |(from, to, label, dashed): (String, String, String, bool)| {
            let dashed = if dashed { " - " } else { " = " };
            format!("{}{dashed}{label}> {}", names[&from], names[&to])
        };
        let mut edges: Vec<String> = edges.into_iter().map(named).collect();
        edges.sort();
        edges
    };
    // The header's functions are there, whether or not one asks for it; each edge is there once.
    let expected = [
        "a - calls> far",
        "again - calls> again",
        "again - calls> help",
        "c - calls> again",
        "d - may call> S::go",
        "far - calls> help",
    ];
    for arguments in [&["x.cu"][..], &["."]] {
        let edges = edges(arguments);
        let calls: Vec<&String> = edges.iter().filter(|edge| edge.contains("call")).collect();
        assert_eq!(calls, expected, "{edges:#?}");
        assert_eq!(
            edges.iter().filter(|edge| edge.starts_with("help = ")).count(),
            1,
            "{edges:#?}"
        );
        assert!(!edges.iter().any(|edge| edge.contains("pure")), "{edges:#?}");
    }
    let mermaid = stdout(&gridfuse(dir.path(), &["graph", "x.cu", "--format", "mermaid"]));
    assert_eq!(
        mermaid.matches(" -.->|\"calls\"| ").count(),
        expected.len() - 1,
        "{mermaid}"
    );
    let svg = stdout(&gridfuse(dir.path(), &["graph", "x.cu", "--format", "svg"]));
    assert!(
        svg.contains(">calls</text>") && svg.contains("class=\"launch dashed\""),
        "{svg}"
    );
}

/// The threads of all child grids are so many where it is certain how many grids there are, else at most.
#[test]
fn a_bound_is_told_as_one() {
    let program = "__global__ void child(int* a) { a[threadIdx.x] = 1; }\n\
        __global__ void parent(int* a) {\n    if (a[threadIdx.x] > 0) child<<<1, 64>>>(a);\n    \
        if (threadIdx.x == 0) child<<<1, 32>>>(a);\n}\n\
        void run(int* a) { parent<<<2, 32>>>(a); }\n";
    let dir = directory(&[("x.cu", program.as_bytes())]);
    let grid = |place: &str| {
        let told = stdout(&gridfuse(dir.path(), &["explain", place]));
        let line = told.lines().find(|line| line.trim_start().starts_with("child grid"));
        line.unwrap_or_default().trim().to_owned()
    };
    assert_eq!(grid("x.cu:3"), "child grid  64 threads; up to 4096 in all");
    assert_eq!(grid("x.cu:4"), "child grid  32 threads; 64 in all");
}

#[test]
fn wrong_use_and_missing_files_are_2() {
    let dir = directory(&[("a.cu", PROGRAM.as_bytes()), ("latin.cu", b"// M\xfcller\n")]);
    let fails = |arguments: &[&str], message: &str| {
        let output = gridfuse(dir.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(message), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{arguments:?}");
    };
    fails(&["check"], "<PATH[:LINE]>");
    fails(&["frobnicate"], "unrecognized subcommand");
    fails(&["check", "b.cu"], "cannot read b.cu: no such file or directory");
    fails(&["check", "latin.cu"], "not UTF-8 text (byte 4 is invalid)");
    fails(&["check", "a.cu", "-I", "nowhere"], "no such directory: -I nowhere");
    fails(
        &["explain", "a.cu:2"],
        "no kernel launch at a.cu:2; there are launches at a.cu:11:9 and a.cu:14:14",
    );
    fails(&["explain", "."], "name one file");
    fails(
        &["rewrite", "a.cu", "--at", "11", "--apply", "no-such"],
        "no rewrite is called `no-such`",
    );
    fails(
        &["rewrite", "a.cu", "--at", "x", "--apply", "a"],
        "expected LINE or LINE:COL",
    );
    fails(
        &["rewrite", "a.cu", "--at", "11", "--apply", "a", "--set", "b"],
        "expected NAME=VALUE",
    );
    fails(
        &["rewrite", "a.cu", "--at", "11", "--apply", "a", "--diff", "--in-place"],
        "cannot be used with",
    );
}

#[test]
fn odd_files_are_survived() {
    let files: &[(&str, &[u8])] = &[
        ("binary.cu", b"\x7fELF\0\0\xff"),
        ("empty.cu", b""),
        (
            "broken.cu",
            b"__global__ void k( {{{ <<< }}} ) k<<<,>>>(((\n#if\n\"\n/*",
        ),
        ("bom.cu", b"\xef\xbb\xbf__global__ void k() {\tk<<<1,\t1>>>(); }\r\n"),
        (
            "umlaut.cu",
            "__global__ void k() { /* ü😀 */ k<<<1, 1>>>(); }".as_bytes(),
        ),
    ];
    let dir = directory(files);
    let output = gridfuse(dir.path(), &["check", "."]);
    // Two of the kernels launch themselves in every run.
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("skipped binary.cu: not UTF-8 text"),
        "{}",
        stderr(&output)
    );
    assert!(stdout(&output).contains("in 4 files"), "{}", stdout(&output));
    for (name, _) in &files[1..] {
        assert_eq!(
            gridfuse(dir.path(), &["explain", name]).status.code(),
            Some(0),
            "{name}"
        );
    }
}

#[test]
fn kernels_are_found_in_other_files() {
    let (child, parent) = PROGRAM.split_at(PROGRAM.find("__global__ void parent").expect("the parent"));
    let parent = format!("#include <child.cuh>\n{parent}");
    let files: &[(&str, &[u8])] = &[
        ("src/parent.cu", parent.as_bytes()),
        ("include/child.cuh", child.as_bytes()),
        ("gridfuse.toml", b""),
    ];
    let dir = directory(files);
    let arguments = ["explain", "src/parent.cu:7", "--format", "json", "-I", "include"];
    let report = json(&gridfuse(dir.path(), &arguments));
    let launch = &report["launches"][0];
    assert_eq!(launch["child"]["status"], "known", "{launch:#}");
    assert_eq!(launch["child"]["definitions"][0]["place"]["path"], "include/child.cuh");
    assert_eq!(launch["args"][1]["parameter"], "n");
    assert_eq!(launch["parent"]["name"], "parent");
    assert_eq!(launch["threads"]["text"], "count");
}

#[test]
fn findings_are_of_the_named_files_only() {
    let dir = directory(&[("a.cu", PROGRAM.as_bytes()), ("b.cu", b"__global__ void k() {}\n")]);
    let report = json(&gridfuse(dir.path(), &["check", "b.cu", "--format", "json"]));
    assert_eq!(report["summary"]["files"], 1);
    assert_eq!(report["findings"], Value::Array(Vec::new()));
}

#[test]
fn explain_shows_the_launch() {
    let dir = directory(&[("a.cu", PROGRAM.as_bytes())]);
    let text = stdout(&gridfuse(dir.path(), &["explain", "a.cu"]));
    assert!(
        text.starts_with("a.cu:11:9: child<<<(count + 127) / 128, 128>>>"),
        "{text}"
    );
    assert!(text.contains("kernel parent (a.cu:6:17)"), "{text}");
    assert!(text.contains("1 launch by host code not shown"), "{text}");
    // What the children of different threads write is told apart by no analysis: `row` decides.
    assert!(
        text.contains("children of different threads") && text.contains("writes `out[i]` (line 3)"),
        "{text}"
    );
    let report = json(&gridfuse(dir.path(), &["explain", "a.cu", "--format", "json"]));
    let dependences = &report["launches"][0]["dependences"];
    assert_eq!(dependences["behind"]["verdict"], "none", "{report:#}");
    assert_eq!(dependences["threads"]["verdict"], "unknown", "{report:#}");
    assert_eq!(
        dependences["threads"]["places"][0]["place"]["start"]["line"], 3,
        "{report:#}"
    );
    assert!(report["launches"][1]["dependences"].is_null(), "{report:#}");
    let text = stdout(&gridfuse(dir.path(), &["explain", "a.cu:14"]));
    assert!(text.contains("launched by host code"), "{text}");
}

#[test]
fn explain_says_a_thing_once() {
    // Two uses in one line, and a type for which threshold is tried and refused on two ways.
    let program = PROGRAM
        .replace(
            "{\n    int i",
            r#"{
    int s, t; asm("mov.u32 %0, %%ctaid.x;" : "=r"(s)); asm("mov.u32 %0, %%ctaid.y;" : "=r"(t));
    int i"#,
        )
        .replace("if (i < n) out[i] = i;", "if (i < n) out[i] = i * s * t;");
    let class = "class P { float* x; public: __host__ __device__ P() : x(nullptr) {} \
                 __device__ float get(int i) const { return x[i]; } };\n";
    let copied = format!("{class}{PROGRAM}")
        .replace("void child(int* out", "void child(P p, int* out")
        .replace("void parent(int* out", "void parent(P p, int* out")
        .replace(">>>(out + row", ">>>(p, out + row")
        .replace("(nullptr, nullptr, 3)", "(P(), nullptr, nullptr, 3)");
    let dir = directory(&[("a.cu", program.as_bytes()), ("b.cu", copied.as_bytes())]);
    let text = stdout(&gridfuse(dir.path(), &["explain", "a.cu"]));
    let uses = json(&gridfuse(dir.path(), &["explain", "a.cu", "--format", "json"]));
    let reasons = uses["launches"][0]["rewrites"][1]["reasons"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let both = reasons
        .iter()
        .filter(|r| r["text"].as_str().is_some_and(|t| t.contains("holds inline assembly")));
    assert_eq!(both.count(), 2, "{uses:#}");
    let number = text
        .lines()
        .find(|line| line.contains(") `child` holds inline assembly"))
        .unwrap_or_default();
    let number = number.split_whitespace().next().unwrap_or("none");
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with('│') && line.contains(number))
        .collect();
    assert!(
        !rows.is_empty() && rows.iter().all(|row| row.matches(number).count() == 1),
        "{text}"
    );
    let plan = json(&gridfuse(dir.path(), &["explain", "b.cu", "--format", "json"]));
    let without = plan["launches"][0]["rewrites"][0]["plan"]["without"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let refused = without.iter().filter(|step| step["rewrite"] == "threshold");
    assert_eq!(refused.count(), 1, "{plan:#}");
}

#[test]
fn explain_fits_the_terminal() {
    // Each statement is a reason of its own, and each rewrite names them all.
    let asm: String = (0..30)
        .map(|n| format!("    int s{n}; asm(\"mov.u32 %0, %%ctaid.x;\" : \"=r\"(s{n}));\n    helper{n}(out);\n"))
        .collect();
    let program = PROGRAM.replace("{\n    int i", &format!("{{\n{asm}    int i"));
    let dir = directory(&[("a.cu", program.as_bytes())]);
    let output = Command::new(env!("CARGO_BIN_EXE_gridfuse"))
        .current_dir(dir.path())
        .env("COLUMNS", "80")
        .args(["explain", "a.cu"])
        .output()
        .expect("gridfuse starts");
    let text = stdout(&output);
    let tables: Vec<&str> = text.split('┌').skip(1).collect();
    assert_eq!(tables.len(), 3, "{text}");
    for table in tables {
        let (table, below) = table.split_once('┘').unwrap_or_default();
        for row in table.lines() {
            // The corners were split off.
            assert!(row.chars().count() <= 80, "{row}\n{text}");
            // A row that goes on has nothing in its first column.
            assert!(!row.starts_with("│  ") || row.contains("value"), "{row}\n{text}");
        }
        let reasons = below
            .lines()
            .filter(|line| line.starts_with("  (") || line.starts_with("  …"));
        assert!(reasons.count() <= 16, "{text}");
    }
    let json = json(&gridfuse(dir.path(), &["explain", "a.cu", "--format", "json"]));
    let all = json["launches"][0]["rewrites"][1]["reasons"]
        .as_array()
        .map_or(0, Vec::len);
    assert!(all > 20, "{json:#}");
}

#[test]
fn check_says_once_what_is_assumed() {
    let program = PROGRAM.replace(
        "        child<<<(count + 127) / 128, 128>>>(out + row[v], count);",
        "        for (int i = 0; i < count; ++i) { child<<<8, 128>>>(out + row[i], n); child<<<4, 128>>>(out + row[v], i); }",
    );
    let dir = directory(&[("a.cu", program.as_bytes())]);
    let text = stdout(&gridfuse(dir.path(), &["check", "a.cu"]));
    // Each finding by itself: one may read only that.
    let findings: Vec<&str> = text.split("\n\n").filter(|part| part.contains("assumes")).collect();
    assert!(findings.len() >= 2, "{text}");
    for finding in &findings {
        let told = finding
            .lines()
            .filter(|line| line.contains("grids of `child` are independent"));
        let mut told: Vec<&str> = told.map(str::trim).collect();
        let all = told.len();
        told.sort_unstable();
        told.dedup();
        assert!(all >= 2 && told.len() == all, "{text}");
        for number in 1..=3 {
            let used = finding
                .lines()
                .any(|line| line.contains("assumes (") && line.contains(&format!("({number})")));
            let (alone, first) = (format!("      ({number}) "), format!("note: ({number}) "));
            let told = finding
                .lines()
                .any(|line| line.starts_with(&alone) || line.starts_with(&first));
            assert_eq!(used, told, "({number}): {finding}");
        }
    }
    assert!(
        text.contains("            assumes (1) (2) (3)\n") && text.contains("\nnote: (1) grids of"),
        "{text}"
    );
    // Programs get all of it.
    let report = json(&gridfuse(dir.path(), &["check", "a.cu", "--format", "json"]));
    let findings = report["findings"].as_array().cloned().unwrap_or_default();
    let fixes: Vec<&Value> = findings
        .iter()
        .flat_map(|f| f["fixes"].as_array().into_iter().flatten())
        .collect();
    assert!(fixes.len() >= 4, "{report:#}");
    for fix in fixes {
        let texts = fix["assumptions"].as_array().cloned().unwrap_or_default();
        assert!(!texts.is_empty(), "{fix:#}");
        assert!(
            texts.iter().all(|t| t["text"]
                .as_str()
                .is_some_and(|t| t.starts_with("grids of") || t.starts_with("no other thread"))),
            "{fix:#}"
        );
    }
}

const ROUNDS: &str = "\
__global__ void work(const float* v, float* s, int n) { int i = threadIdx.x; if (i < n) atomicAdd(s, v[i]); }
__global__ void finish(float* s, float* out) { *out = *s; *s = 0; }
__global__ void rounds(const float* v, float* s, float* out, int n, int m) {
    if (threadIdx.x == 0)
        for (int i = 0; i < m; i++) {
            work<<<8, 256>>>(v, s, n);
            finish<<<1, 64>>>(s, out + i);
        }
}
void host(const float* v, float* s, float* out, int n, int m) { rounds<<<1, 32>>>(v, s, out, n, m); }
";

#[test]
fn what_is_known_to_be_wrong_is_not_offered() {
    let offers = |program: &str| {
        let dir = directory(&[("a.cu", program.as_bytes())]);
        let report = json(&gridfuse(dir.path(), &["check", "a.cu", "--format", "json"]));
        let findings = report["findings"].as_array().cloned().unwrap_or_default();
        assert!(!findings.is_empty(), "{report:#}");
        let fixes = findings
            .iter()
            .flat_map(|f| f["fixes"].as_array().cloned().unwrap_or_default());
        fixes
            .map(|fix| fix["rewrite"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    let text = |program: &str| {
        let dir = directory(&[("a.cu", program.as_bytes())]);
        (
            stdout(&gridfuse(dir.path(), &["check", "a.cu"])),
            stdout(&gridfuse(dir.path(), &["explain", "a.cu"])),
        )
    };
    // `finish` reads what `work` has added up, and sets it back.
    assert!(offers(ROUNDS).is_empty(), "{:?}", offers(ROUNDS));
    let (check, explain) = text(ROUNDS);
    assert!(!check.contains("--apply") && !check.contains("assumes"), "{check}");
    assert!(
        explain.contains("│ aggregate-grid        ┆ ineligible")
            && explain.contains("aren't independent of other grids"),
        "{explain}"
    );
    // Sums alone come out the same but for rounding, and the last of several writes may be any of them.
    let sums = ROUNDS.replace("            finish<<<1, 64>>>(s, out + i);\n", "");
    assert!(
        offers(&sums).contains(&"aggregate-grid".to_owned()),
        "{:?}",
        offers(&sums)
    );
    assert!(
        text(&sums).0.contains("; check it: line 1 updates atomically"),
        "{}",
        text(&sums).0
    );
    let writes = sums.replace("atomicAdd(s, v[i])", "*s = v[i]");
    assert!(
        offers(&writes).contains(&"aggregate-grid".to_owned()),
        "{:?}",
        offers(&writes)
    );
    // A sum by hand is lost when two do it at a time.
    let lost = sums.replace("atomicAdd(s, v[i])", "*s += v[i]");
    assert!(offers(&lost).is_empty(), "{:?}", offers(&lost));
    // What nothing is known of is offered, and what is told apart needs nothing.
    let unknown = ROUNDS.replace("*out = *s; *s = 0;", "other(s, out);");
    let explain = text(&unknown).1;
    assert!(explain.contains("│ fire-and-forget       ┆ assumes"), "{explain}");
    // It leaves as many launches in the loop.
    assert!(offers(&unknown).is_empty(), "{:?}", offers(&unknown));
}

#[test]
fn list_names_every_diagnostic() {
    let dir = directory(&[]);
    let report = json(&gridfuse(dir.path(), &["list", "--format", "json"]));
    let kinds = report["diagnostics"].as_array().expect("a list");
    assert!(kinds.iter().any(|kind| kind["id"] == "launch-in-loop"), "{report:#}");
    let text = stdout(&gridfuse(dir.path(), &["list"]));
    for id in ["diagnostics", "rewrites"]
        .iter()
        .flat_map(|list| report[list].as_array().into_iter().flatten())
    {
        let id = id["id"].as_str().expect("an id");
        let lines = text.lines().filter(|line| line.split_whitespace().next() == Some(id));
        assert_eq!(lines.count(), 1, "{id}: {text}");
    }
    // A line each, and what they are called.
    assert!(text.lines().count() < 80, "{text}");
    assert!(!text.contains("## ") && !text.contains("```"), "{text}");
    let line = |id: &str| {
        let mut lines = text.lines();
        lines
            .find(|line| line.split_whitespace().next() == Some(id))
            .unwrap_or_default()
    };
    assert!(
        line("launch-in-loop").ends_with("warning  A device-side launch in a loop"),
        "{text}"
    );
    assert!(line("coarsen").ends_with("--set factor=4 --set blocks=none"), "{text}");
}

#[test]
fn list_prints_pages() {
    let dir = directory(&[]);
    let text = stdout(&gridfuse(dir.path(), &["list", "coarsen", "launch-in-loop"]));
    assert!(
        text.starts_with("# Diagnostics\n\n## launch-in-loop (warning)\n"),
        "{text}"
    );
    assert!(
        text.contains("# Rewrites\n\n## coarsen: ") && text.contains("- `--set factor=4`: "),
        "{text}"
    );
    assert_eq!(text.matches("\n## ").count(), 2, "{text}");
    let report = json(&gridfuse(dir.path(), &["list", "coarsen", "--format", "json"]));
    assert_eq!(report["rewrites"].as_array().map(Vec::len), Some(1), "{report:#}");
    assert_eq!(report["diagnostics"].as_array().map(Vec::len), Some(0), "{report:#}");
    let assumption = stdout(&gridfuse(dir.path(), &["list", "pending-launches"]));
    assert!(
        assumption
            .starts_with("# Assumptions\n\n## pending-launches: Few enough launches are pending\n\nCUDA keeps a slot"),
        "{assumption}"
    );
    let all = stdout(&gridfuse(dir.path(), &["list", "--all"]));
    assert!(
        all.contains("## tiny-child-grid (warning)") && all.contains("## revert: "),
        "{all}"
    );
    let unknown = gridfuse(dir.path(), &["list", "coarsen", "coarse"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("is called `coarse`; did you mean `coarsen`?"));
    assert!(stdout(&unknown).is_empty());
    assert_eq!(
        gridfuse(dir.path(), &["list", "coarsen", "--all"]).status.code(),
        Some(2)
    );
}

const NULL_STREAM: &str = "serialized-launches";

#[test]
fn compile_commands_are_honoured() {
    let source = PROGRAM.replace("__global__ void child", "#include <shared.cuh>\n__global__ void child");
    let entry = |flags: &str| {
        format!(
            r#"[{{"directory": ".", "file": "../src/a.cu", "command": "nvcc -rdc=true -I../inc {flags} -c ../src/a.cu"}}]"#
        )
    };
    let check = |commands: &str| {
        let dir = directory(&[
            ("src/a.cu", source.as_bytes()),
            ("inc/shared.cuh", b"#define SHARED 1\n"),
            ("build-x/compile_commands.json", commands.as_bytes()),
        ]);
        let output = gridfuse(dir.path(), &["check", "src/a.cu"]);
        (stdout(&output), stderr(&output))
    };
    let (out, err) = check(&entry(""));
    assert!(out.contains(NULL_STREAM) && err.is_empty(), "{out}{err}");
    let (out, err) = check(&entry("--default-stream per-thread"));
    assert!(!out.contains(NULL_STREAM) && err.is_empty(), "{out}{err}");
    let (out, err) = check(&entry("--default-stream=nonsense"));
    assert!(out.contains(NULL_STREAM), "{out}");
    assert!(
        err.contains("compile_commands.json:1:2: ../src/a.cu: there is no default stream `nonsense`"),
        "{err}"
    );
    let (out, err) = check("[{]");
    assert!(out.contains(NULL_STREAM), "{out}");
    assert!(err.contains("compile_commands.json:1:3: "), "{err}");
}

#[test]
fn gridfuse_toml_names_the_compile_commands() {
    let commands = r#"[{"directory": "..", "file": "a.cu", "arguments": ["nvcc", "-default-stream", "per-thread", "-rdc", "true"]}]"#;
    let dir = directory(&[
        ("a.cu", PROGRAM.as_bytes()),
        ("out/compile_commands.json", commands.as_bytes()),
        ("gridfuse.toml", b"compile-commands = 'out'\n"),
    ]);
    let output = gridfuse(dir.path(), &["check", "a.cu"]);
    assert!(!stdout(&output).contains(NULL_STREAM), "{}", stdout(&output));
    assert_eq!(stderr(&output), "");
}

/// A launch over several lines whose loop is allowed on the last of them, and two suppressions that keep nothing quiet.
const SUPPRESSED: &str = "\
__global__ void child(int* out, int n) { out[threadIdx.x] = n; }\r
__global__ void parent(int* out, int n) {\r
    if (threadIdx.x == 0) {\r
        for (int i = 0; i < n; ++i)\r
            child<<<1, 64>>>(\r
                out,\r
                i);  // gridfuse: allow(launch-in-loop) few\r
        // gridfuse: allow(device-sync) was there once\r
        child<<<1, 64>>>(out, n); // gridfuse: allow(tiny-child-grid, unused-suppression)\r
        child<<<1, 64>>>(out, 0); /* gridfuse: allow(partial-warp, empty-grid) */\r
    }\r
}\r
";

#[test]
fn fixes_are_applied_shown_and_come_to_an_end() {
    let quiet = "[severity]\nunchecked-launch = 'off'\n";
    let dir = directory(&[("a.cu", SUPPRESSED.as_bytes()), ("gridfuse.toml", quiet.as_bytes())]);
    let read = || std::fs::read_to_string(dir.path().join("a.cu")).expect("the file");
    let ids = |report: &Value| -> Vec<String> {
        let findings = report["findings"].as_array().expect("findings");
        findings
            .iter()
            .map(|f| f["id"].as_str().unwrap_or_default().to_string())
            .collect()
    };
    let before = json(&gridfuse(dir.path(), &["check", "a.cu", "--format", "json"]));
    assert_eq!(ids(&before), ["unused-suppression"; 3], "{before:#}");
    assert_eq!(before["fixed"], serde_json::json!([]));

    let shown = gridfuse(dir.path(), &["check", "a.cu", "--fix", "--diff"]);
    assert_eq!(shown.status.code(), Some(1));
    let diff = stdout(&shown);
    assert!(diff.starts_with("--- a/a.cu\n+++ b/a.cu\n"), "{diff}");
    assert!(
        diff.contains("-        // gridfuse: allow(device-sync) was there once\r\n"),
        "{diff}"
    );
    assert!(
        stderr(&shown).contains("3 fixes would be applied"),
        "{}",
        stderr(&shown)
    );
    assert_eq!(read(), SUPPRESSED);

    let fixed = gridfuse(dir.path(), &["check", "a.cu", "--fix"]);
    assert_eq!(fixed.status.code(), Some(0), "{}", stderr(&fixed));
    let text = stdout(&fixed);
    assert!(
        text.starts_with("fixed a.cu:8:28: unused-suppression: Remove this suppression\n"),
        "{text}"
    );
    assert!(
        text.contains("0 findings in 1 file: 0 errors, 0 warnings, 0 infos; 3 fixed\n"),
        "{text}"
    );
    let wanted = SUPPRESSED
        .replace("        // gridfuse: allow(device-sync) was there once\r\n", "")
        .replace(" /* gridfuse: allow(partial-warp, empty-grid) */", "");
    assert_eq!(read(), wanted);

    let again = gridfuse(dir.path(), &["check", "a.cu", "--fix", "--format", "json"]);
    assert_eq!(json(&again)["fixed"], serde_json::json!([]));
    assert_eq!(read(), wanted);
    let nothing = gridfuse(dir.path(), &["check", "a.cu", "--fix", "--diff"]);
    assert_eq!((nothing.status.code(), stdout(&nothing)), (Some(0), String::new()));
    assert_eq!(
        gridfuse(dir.path(), &["check", "a.cu", "--diff"]).status.code(),
        Some(2)
    );
}

#[test]
fn wrong_values_of_options_are_2() {
    let dir = directory(&[("a.cu", PROGRAM.as_bytes())]);
    for value in ["0", "many", "-3", "99999999999"] {
        let set = format!("threshold={value}");
        let output = gridfuse(
            dir.path(),
            &["rewrite", "a.cu", "--at", "11", "--apply", "threshold", "--set", &set],
        );
        assert_eq!(output.status.code(), Some(2), "{value}: {}", stderr(&output));
        assert!(
            stderr(&output).contains("`threshold` must be a number from 1"),
            "{}",
            stderr(&output)
        );
    }
}

/// What is rewritten into a directory shares the header there, whichever came first; a header that somebody has changed stays.
#[test]
fn a_directory_of_rewritten_files_has_one_header() {
    let dir = directory(&[("a.cu", PROGRAM.as_bytes()), ("b.cu", PROGRAM.as_bytes())]);
    let rewrite = |file: &str, id: &str| {
        let words = ["rewrite", file, "--at", "11", "--apply", id, "--output", "out"];
        gridfuse(dir.path(), &words)
    };
    let header = || std::fs::read_to_string(dir.path().join("out/gridfuse.cuh")).expect("the header");
    assert_eq!(rewrite("a.cu", "aggregate-block").status.code(), Some(0));
    let first = header();
    assert_eq!(rewrite("b.cu", "threshold").status.code(), Some(0));
    let both = header();
    assert!(!first.contains("GRIDFUSE_SERIAL_CUH"), "{first}");
    for part in ["GRIDFUSE_SERIAL_CUH", "class Aggregator"] {
        assert!(both.contains(part), "{part}");
    }
    // Once more, and what is there already stays as it is.
    assert_eq!(rewrite("a.cu", "aggregate-block").status.code(), Some(0));
    assert_eq!(header(), both);
    let mine = both.replace("class Aggregator", "class  Aggregator");
    std::fs::write(dir.path().join("out/gridfuse.cuh"), &mine).expect("a file");
    let refused = rewrite("b.cu", "threshold");
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("exists with other content"),
        "{}",
        stderr(&refused)
    );
    assert_eq!(header(), mine);
}
