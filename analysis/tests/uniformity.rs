//! Levels of marked expressions (`$Level(expr)$`) and divergence of marked statements (`~~Level~~ stmt`) in the last
//! function of small sources.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::too_many_lines, reason = "tables of programs")]

use std::path::Path;
use std::sync::Arc;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::diagnostics::diagnostics;
use gridfuse_analysis::facts::uniformity::{FunctionUniformity, Level, assumed_uniformity, uniformity};
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::{ExprId, StmtId, body};
use gridfuse_analysis::host::Host;

struct Mark {
    level: String,
    start: usize,
    end: Option<usize>,
}

fn strip(source: &str) -> (String, Vec<Mark>) {
    let mut text = String::new();
    let mut marks: Vec<Mark> = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['$', '~', ')']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(tail) = rest.strip_prefix(")$") {
            let end = text.len();
            marks.iter_mut().rev().find(|m| m.end == Some(0)).unwrap().end = Some(end);
            rest = tail;
        } else if let Some(tail) = rest.strip_prefix('$') {
            let (level, tail) = tail.split_once('(').unwrap();
            let level = level.to_owned();
            marks.push(Mark {
                level,
                start: text.len(),
                end: Some(0),
            });
            rest = tail;
        } else if let Some(tail) = rest.strip_prefix("~~") {
            let (level, tail) = tail.split_once("~~").unwrap();
            let tail = tail.trim_start();
            let level = level.to_owned();
            marks.push(Mark {
                level,
                start: text.len(),
                end: None,
            });
            rest = tail;
        } else {
            text.push_str(&rest[..1]);
            rest = &rest[1..];
        }
    }
    text.push_str(rest);
    (text, marks)
}

/// What is wrong with a case; empty when it's as marked.
fn check(source: &str) -> Vec<String> {
    check_by(source, uniformity)
}

/// The same by other standards.
fn check_by(
    source: &str,
    levels: for<'db> fn(&'db dyn Db, FunctionItem<'db>) -> Arc<FunctionUniformity>,
) -> Vec<String> {
    let (text, marks) = strip(source);
    let mut host = Host::new();
    let file = host.set_file(Path::new("/w/a.cu"), text.clone());
    let db = host.db();
    let function = *items(db, file).functions.last().unwrap();
    let (body, levels) = (body(db, function), levels(db, function));
    let start = function.start(db) as usize;
    let mut wrong = Vec::new();
    for mark in &marks {
        let from = (mark.start - start) as u32;
        let (found, what) = match mark.end {
            Some(end) => {
                let at = (0..body.exprs.len() as u32).map(ExprId).filter(|e| {
                    let span = body.expr(*e).span;
                    span.start == from && span.end as usize == end - start
                });
                let what = &text[mark.start..end];
                (
                    at.max()
                        .map(|e| levels.exprs.get(&e).cloned().unwrap_or_default_varying()),
                    what,
                )
            }
            None => {
                let at = (0..body.stmts.len() as u32)
                    .map(StmtId)
                    .filter(|s| body.stmt(*s).span.start == from);
                let largest = at.max_by_key(|s| body.stmt(*s).span.end);
                let line = text[mark.start..].lines().next().unwrap_or("");
                (
                    largest.map(|s| levels.divergence.get(&s).cloned().unwrap_or_default_varying()),
                    line,
                )
            }
        };
        match found {
            None => wrong.push(format!("`{what}`: not found")),
            Some(u) if format!("{:?}", u.level) != mark.level => {
                wrong.push(format!(
                    "`{what}`: {:?}, not {}, because {:?}",
                    u.level, mark.level, u.why
                ));
            }
            Some(u) if u.level != gridfuse_analysis::facts::uniformity::Level::Constant && u.why.is_none() => {
                wrong.push(format!("`{what}`: {:?} without a cause", u.level));
            }
            Some(_) => {}
        }
    }
    if marks.is_empty() {
        wrong.push("no marks".into());
    }
    wrong
}

trait OrVarying {
    fn unwrap_or_default_varying(self) -> gridfuse_analysis::facts::uniformity::Uniformity;
}

impl OrVarying for Option<gridfuse_analysis::facts::uniformity::Uniformity> {
    fn unwrap_or_default_varying(self) -> gridfuse_analysis::facts::uniformity::Uniformity {
        self.unwrap_or(gridfuse_analysis::facts::uniformity::Uniformity {
            level: gridfuse_analysis::facts::uniformity::Level::Varying,
            why: None,
            assumes: vec![],
        })
    }
}

fn all(cases: &[(&str, &str)]) {
    let mut failures = Vec::new();
    for (name, source) in cases {
        for wrong in check(source) {
            failures.push(format!("{name}: {wrong}"));
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[path = "uniformity/cases.rs"]
mod cases;

/// A kernel with variables that are each made from the next, in loops within each other.
fn chained(variables: usize, loops: usize) -> String {
    let declared: String = (0..=variables).map(|k| format!("int v{k} = 0;\n")).collect();
    let open: String = (0..loops)
        .map(|k| format!("for (int k{k} = 0; k{k} < v{k}; k{k}++) {{\n"))
        .collect();
    let changed: String = (0..variables).map(|k| format!("v{k} = v{} + 1;\n", k + 1)).collect();
    format!(
        r#"__global__ void k(int *p, int n) {{
{declared}{open}{changed}v{variables} = threadIdx.x;
{}
if (v0 < n) {{ __syncthreads(); }}
}}
"#,
        "}".repeat(loops)
    )
}

#[test]
fn what_takes_too_many_steps_is_unknown_and_says_so() {
    for (variables, loops, large) in [(50, 5, false), (1_000, 40, true)] {
        let mut host = Host::new();
        let file = host.set_file(Path::new("/w/a.cu"), chained(variables, loops));
        let db = host.db();
        let function = items(db, file).functions[0];
        let levels = uniformity(db, function);
        assert_eq!(levels.too_large, large);
        if large {
            let known = levels.exprs.values().chain(levels.divergence.values());
            assert!(known.into_iter().all(|u| u.level == Level::Varying));
        }
        let said: Vec<&str> = diagnostics(db, file).iter().map(|d| d.id).collect();
        assert_eq!(said.contains(&"too-large"), large, "{said:?}");
        // What isn't known is no proof of an error.
        assert!(!large || !said.contains(&"divergent-barrier"), "{said:?}");
    }
}

#[test]
fn warps_that_wrap_around_rows() {
    let level = |launches: &str| {
        let source = format!(
            r#"void run(int* p, int n) {{ {launches} }}
__global__ void k(int* p) {{ int w = threadIdx.x / 32; p[w] = w; }}
"#
        );
        let mut host = Host::new();
        let file = host.set_file(Path::new("/a.cu"), source);
        let db = host.db();
        let function = *items(db, file).functions.iter().find(|f| f.name(db) == "k").unwrap();
        let body = body(db, function);
        let found = uniformity(db, function);
        let text = function.text(db);
        let at = (0..body.exprs.len() as u32).map(ExprId);
        let mut at = at.filter(|e| body.expr(*e).span.text(&text) == "threadIdx.x / 32");
        found.exprs[&at.next().unwrap()].level
    };
    for wraps in [
        "k<<<1, dim3(48, 4)>>>(p);",
        "dim3 b(16, 16); k<<<1, b>>>(p);",
        "const int x = 24; k<<<1, dim3(x, 1, 2)>>>(p);",
        "k<<<1, 64>>>(p); k<<<1, dim3(8, 8)>>>(p);",
    ] {
        assert_eq!(level(wraps), Level::Varying, "{wraps}");
    }
    for fits in [
        "",
        "k<<<1, 48>>>(p);",
        "k<<<1, dim3(64, 4)>>>(p);",
        "k<<<1, dim3(48, 1)>>>(p);",
        "k<<<1, dim3(n, 4)>>>(p);",
    ] {
        assert_eq!(level(fits), Level::Warp, "{fits}");
    }
}

#[test]
fn which_member_function_runs() {
    let ball = "struct Ball : Shape { __device__ int cost() const OVER { return threadIdx.x + 1; } };";
    let virtual_one = "struct Shape { __device__ virtual int cost() const { return 0; } };";
    let declared = r#"struct Shape { __device__ virtual int cost() const; };
__device__ int Shape::cost() const { return 0; }"#;
    let plain = "struct Shape { __device__ int cost() const { return 0; } };";
    for (shape, over, statements) in [
        (
            virtual_one,
            "override",
            "const Shape* s = &b; int x = $Varying(s->cost())$;",
        ),
        (virtual_one, "", "const Shape* s = &b; int x = $Varying(s->cost())$;"),
        (
            virtual_one,
            "override",
            "const Shape& s = b; int x = $Varying(s.cost())$;",
        ),
        (
            virtual_one,
            "override",
            "const Shape* s = &b; int x = $Varying((*s).cost())$;",
        ),
        (
            declared,
            "override",
            "const Shape* s = &b; int x = $Varying(s->cost())$;",
        ),
        // The object is the variable's own, or nothing is virtual.
        (virtual_one, "override", "Shape s; int x = $Constant(s.cost())$;"),
        (plain, "", "const Shape* s = &b; int x = $Constant(s->cost())$;"),
    ] {
        let ball = ball.replace("OVER", over);
        let source = format!(
            r#"{shape}
{ball}
__global__ void k() {{ Ball b; {statements} }}"#
        );
        assert_eq!(check_by(&source, assumed_uniformity), Vec::<String>::new(), "{source}");
    }
}

#[test]
fn objects_that_look_at_the_thread() {
    let of = |members: &str, value: &str| {
        let source = format!("struct Th {{ int v; {members} }};\n__global__ void k() {{ int x = {value}; }}");
        check_by(&source, assumed_uniformity)
    };
    let none = Vec::<String>::new();
    let own = "__device__ Th() : v(threadIdx.x) {}";
    assert_eq!(of(own, "$Varying(Th().v)$"), none);
    assert_eq!(of(own, "$Varying(Th{}.v)$"), none);
    let converts = format!("{own} __device__ operator int() const {{ return v; }}");
    assert_eq!(of(&converts, "$Varying(Th())$"), none);
    let of_thread = "__device__ operator int() const { return threadIdx.x; }";
    assert_eq!(of(of_thread, "$Varying(Th{1})$"), none);
    assert_eq!(of("__device__ Th(int n) : v(n) {}", "$Constant(Th(1).v)$"), none);
}
