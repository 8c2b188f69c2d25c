//! `#if` groups that aren't decided and cut through a construct: nothing is concluded from the branch that is shown.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::diagnostics::diagnostics;
use gridfuse_analysis::facts::launch::{
    Amount, Bound, LaunchId, Launchers, Recursion, launch_counts, launches, who_launches,
};
use gridfuse_analysis::facts::uniformity::Level;
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::{Body, body};
use gridfuse_analysis::host::Host;

const CHILD: &str = "__global__ void child(int* out, int b, int c) { out[b + threadIdx.x] = c; }\n";

struct Program {
    host: Host,
    file: SourceFile,
}

impl Program {
    fn new(before: &str, statements: &str) -> Program {
        let text = format!(
            "{before}\n{CHILD}__global__ void parent(const int* row, int* out, int n) {{\n int b = row[0], c = n;\n{statements}\n}}\n\
             int main() {{ parent<<<8, 64>>>(nullptr, nullptr, 1); }}\n"
        );
        let mut host = Host::new();
        let file = host.set_file("/w/main.cu".as_ref(), text);
        Program { host, file }
    }

    fn parent(&self) -> FunctionItem<'_> {
        let db = self.host.db();
        *items(db, self.file)
            .functions
            .iter()
            .find(|f| f.name(db) == "parent")
            .expect("the parent")
    }

    fn body(&self) -> Arc<Body> {
        body(self.host.db(), self.parent())
    }
}

const LAUNCH: &str = "child<<<1, 32>>>(out, b, c);";

/// Statements whose `#if` cuts; `L` stands for the launch.
const CUTS: &[&str] = &[
    "#ifdef X\n if (c > 3) {\n#else\n if (b > 3) {\n#endif\n L }",
    "#ifdef X\n if (threadIdx.x == 0) {\n#else\n {\n#endif\n L }",
    "#ifdef X\n if (threadIdx.x == 0)\n#endif\n L",
    "if (c > 0\n#ifdef X\n && threadIdx.x == 0\n#endif\n ) L",
    "if (c > 3) {\n L\n#ifdef X\n }\n if (b > 2) {\n#endif\n out[0] = 3; }",
    "if (c > 9) { out[0] = 1; }\n#ifdef X\n else if (c > 5) { out[1] = 1; }\n#endif\n else { L }",
    "if (c > 9) { L }\n#ifdef X\n else\n#endif\n L",
    "#ifdef X\n for (int i = 0; i < 4; ++i)\n#endif\n { L }",
    "#ifdef X\n if (threadIdx.x)\n#endif\n return;\n L",
    "child<<<1, 32>>>(out,\n#ifdef X\n b,\n#else\n b + 1,\n#endif\n c);",
    "child<<<\n#ifdef X\n 1, 32\n#else\n 2, 64\n#endif\n >>>(out, b, c);",
    "int k = c\n#ifdef X\n + threadIdx.x\n#endif\n ;\n L",
    "#ifdef X\n int\n#else\n unsigned\n#endif\n k = c;\n L",
    "int k =\n#ifdef X\n threadIdx.x;\n#else\n 7;\n#endif\n L",
    "int k = 1;\n#ifdef X\n if (threadIdx.x & 1)\n#endif\n k = 2;\n L",
    "if (threadIdx.x == 0)\n#ifdef X\n out[0] = 1;\n#else\n L\n#endif\n L",
    "if (threadIdx.x == 0)\n#ifdef X\n out[0] = 1;\n#endif\n L",
    "if (c) out[0] = 1; else\n#ifdef X\n out[0] = 2;\n#else\n L\n#endif\n L",
    "for (int i = 0; i < 4; i++)\n#ifdef X\n { L }\n#endif\n L",
    "auto f = [&](int q) { return\n#ifdef X\n q + 1;\n#else\n q;\n#endif\n };\n L",
    "#if defined(X)\n while (c > 3) {\n#elif defined(Y)\n if (c > 3) {\n#else\n {\n#endif\n L c -= 4; }",
    "#ifdef X\n#ifdef Y\n if (c > 3) {\n#else\n {\n#endif\n#else\n if (b) {\n#endif\n L }",
];

#[test]
fn nothing_is_concluded() {
    for statements in CUTS {
        let program = Program::new("", &statements.replace('L', LAUNCH));
        let db = program.host.db();
        let lowered = program.body();
        assert!(lowered.cut, "{statements}");
        assert!(
            lowered.problems.iter().any(|(_, why)| why.contains("an #if cuts")),
            "{statements}: {:?}",
            lowered.problems
        );
        let all = launches(db, program.parent());
        assert!(!all.is_empty(), "{statements}");
        for (index, facts) in all.iter().enumerate() {
            let id = LaunchId {
                function: program.parent(),
                index: index as u32,
            };
            assert_eq!(who_launches(db, id), Launchers::ManyThreads, "{statements}");
            assert_eq!(facts.args[0].uniformity.level, Level::Varying, "{statements}");
            let count = &launch_counts(db, program.parent())[index];
            assert_eq!(count.per_thread, Amount::up_to(Bound::Unbounded), "{statements}");
        }
        diagnostics(db, program.file);
    }
}

#[test]
fn the_place_is_that_of_the_group() {
    let program = Program::new("", &CUTS[0].replace('L', LAUNCH));
    let db = program.host.db();
    let (span, _) = program.body().problems[0].clone();
    let text = program.file.text(db);
    let place = span.shift(program.parent().start(db)).text(&text).to_owned();
    assert!(place.starts_with("#ifdef X") && place.ends_with("#endif"), "{place}");
}

#[test]
fn macros_may_hide_the_cut() {
    let before = "#define OPEN(c) if (c) {\n#define CLOSE }";
    let program = Program::new(
        before,
        &format!("#ifdef X\n OPEN(threadIdx.x == 0);\n#endif\n {LAUNCH}\n#ifdef X\n CLOSE;\n#endif"),
    );
    assert!(program.body().cut);
}

#[test]
fn whole_branches_are_no_cut() {
    for statements in [
        "#ifdef X\n L\n#else\n out[0] = 1;\n#endif",
        "switch (c) {\n#ifdef X\n case 1: out[0] = 1;\n#endif\n case 2: L\n#ifdef X\n break;\n#endif\n default: out[1] = 2; }",
        "if (c) { L }\n#ifdef X\n out[0] = 1;\n#endif",
        "do { L } while (0);\n#ifdef X\n out[0] = 1;\n#endif",
        "for (int i = 0; i < 3; ++i) {\n#ifdef X\n L\n#endif\n }",
        "f(c, [&] { return 1; });\n#ifdef X\n L\n#endif\n L",
        "out[0]++;\n#ifdef X\n L\n#endif\n L",
    ] {
        let program = Program::new("", &statements.replace('L', LAUNCH));
        assert!(!program.body().cut, "{statements}");
        assert!(!launches(program.host.db(), program.parent()).is_empty());
    }
}

#[test]
fn recursion_that_may_end() {
    let text = "__global__ void k(int n) {\n#ifdef X\n {\n#else\n if (n > 1) {\n#endif\n k<<<1, 32>>>(n - 1);\n }\n}\n";
    let mut host = Host::new();
    let file = host.set_file("/w/main.cu".as_ref(), text);
    let db = host.db();
    let kernel = items(db, file).functions[0];
    assert_ne!(launch_counts(db, kernel)[0].recursion, Recursion::Endless);
    assert!(diagnostics(db, file).iter().all(|d| d.id != "endless-recursion"));
}

#[test]
fn heads_that_are_cut() {
    for text in [
        "#ifdef X\n__global__ void k(int* p) {\n#else\n__global__ void __launch_bounds__(64) k(int* p) {\n#endif\n p[0] = 1;\n}\n",
        "#ifdef X\n__global__\n#endif\nvoid k(int* p) { p[0] = 1; }\n",
        "__global__ void k(int* p,\n#ifdef X\n int n\n#else\n long n\n#endif\n) { p[0] = 1; }\n",
    ] {
        let mut host = Host::new();
        let file = host.set_file("/w/main.cu".as_ref(), text);
        let db = host.db();
        let kernel = items(db, file).functions.iter().find(|f| f.has_body(db)).unwrap();
        assert!(body(db, *kernel).cut, "{text}");
    }
}
