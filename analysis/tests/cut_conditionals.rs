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
            r#"{before}
{CHILD}__global__ void parent(const int* row, int* out, int n) {{
 int b = row[0], c = n;
{statements}
}}
int main() {{ parent<<<8, 64>>>(nullptr, nullptr, 1); }}
"#
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
    r#"#ifdef X
 if (c > 3) {
#else
 if (b > 3) {
#endif
 L }"#,
    r#"#ifdef X
 if (threadIdx.x == 0) {
#else
 {
#endif
 L }"#,
    r#"#ifdef X
 if (threadIdx.x == 0)
#endif
 L"#,
    r#"if (c > 0
#ifdef X
 && threadIdx.x == 0
#endif
 ) L"#,
    r#"if (c > 3) {
 L
#ifdef X
 }
 if (b > 2) {
#endif
 out[0] = 3; }"#,
    r#"if (c > 9) { out[0] = 1; }
#ifdef X
 else if (c > 5) { out[1] = 1; }
#endif
 else { L }"#,
    r#"if (c > 9) { L }
#ifdef X
 else
#endif
 L"#,
    r#"#ifdef X
 for (int i = 0; i < 4; ++i)
#endif
 { L }"#,
    r#"#ifdef X
 if (threadIdx.x)
#endif
 return;
 L"#,
    r#"child<<<1, 32>>>(out,
#ifdef X
 b,
#else
 b + 1,
#endif
 c);"#,
    r#"child<<<
#ifdef X
 1, 32
#else
 2, 64
#endif
 >>>(out, b, c);"#,
    r#"int k = c
#ifdef X
 + threadIdx.x
#endif
 ;
 L"#,
    r#"#ifdef X
 int
#else
 unsigned
#endif
 k = c;
 L"#,
    r#"int k =
#ifdef X
 threadIdx.x;
#else
 7;
#endif
 L"#,
    r#"int k = 1;
#ifdef X
 if (threadIdx.x & 1)
#endif
 k = 2;
 L"#,
    r#"if (threadIdx.x == 0)
#ifdef X
 out[0] = 1;
#else
 L
#endif
 L"#,
    r#"if (threadIdx.x == 0)
#ifdef X
 out[0] = 1;
#endif
 L"#,
    r#"if (c) out[0] = 1; else
#ifdef X
 out[0] = 2;
#else
 L
#endif
 L"#,
    r#"for (int i = 0; i < 4; i++)
#ifdef X
 { L }
#endif
 L"#,
    r#"auto f = [&](int q) { return
#ifdef X
 q + 1;
#else
 q;
#endif
 };
 L"#,
    r#"#if defined(X)
 while (c > 3) {
#elif defined(Y)
 if (c > 3) {
#else
 {
#endif
 L c -= 4; }"#,
    r#"#ifdef X
#ifdef Y
 if (c > 3) {
#else
 {
#endif
#else
 if (b) {
#endif
 L }"#,
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
        &format!(
            r#"#ifdef X
 OPEN(threadIdx.x == 0);
#endif
 {LAUNCH}
#ifdef X
 CLOSE;
#endif"#
        ),
    );
    assert!(program.body().cut);
}

#[test]
fn whole_branches_are_no_cut() {
    for statements in [
        r#"#ifdef X
 L
#else
 out[0] = 1;
#endif"#,
        r#"switch (c) {
#ifdef X
 case 1: out[0] = 1;
#endif
 case 2: L
#ifdef X
 break;
#endif
 default: out[1] = 2; }"#,
        r#"if (c) { L }
#ifdef X
 out[0] = 1;
#endif"#,
        r#"do { L } while (0);
#ifdef X
 out[0] = 1;
#endif"#,
        r#"for (int i = 0; i < 3; ++i) {
#ifdef X
 L
#endif
 }"#,
        r#"f(c, [&] { return 1; });
#ifdef X
 L
#endif
 L"#,
        r#"out[0]++;
#ifdef X
 L
#endif
 L"#,
    ] {
        let program = Program::new("", &statements.replace('L', LAUNCH));
        assert!(!program.body().cut, "{statements}");
        assert!(!launches(program.host.db(), program.parent()).is_empty());
    }
}

#[test]
fn recursion_that_may_end() {
    let text = r#"__global__ void k(int n) {
#ifdef X
 {
#else
 if (n > 1) {
#endif
 k<<<1, 32>>>(n - 1);
 }
}
"#;
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
        r#"#ifdef X
__global__ void k(int* p) {
#else
__global__ void __launch_bounds__(64) k(int* p) {
#endif
 p[0] = 1;
}
"#,
        r#"#ifdef X
__global__
#endif
void k(int* p) { p[0] = 1; }
"#,
        r#"__global__ void k(int* p,
#ifdef X
 int n
#else
 long n
#endif
) { p[0] = 1; }
"#,
    ] {
        let mut host = Host::new();
        let file = host.set_file("/w/main.cu".as_ref(), text);
        let db = host.db();
        let kernel = items(db, file).functions.iter().find(|f| f.has_body(db)).unwrap();
        assert!(body(db, *kernel).cut, "{text}");
    }
}
