//! Masking, items and lowered bodies of nasty sources.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gridfuse_analysis::base::mask::mask;
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::hir::{Body, ExprId, ExprKind, Literal, Name, StmtId, StmtKind, Storage, body};
use gridfuse_analysis::host::Host;

fn lowered(source: &str, name: &str) -> (std::sync::Arc<Body>, String) {
    let mut host = Host::new();
    let file = host.set_file("/w/a.cu".as_ref(), source);
    let db = host.db();
    let function = *items(db, file)
        .functions
        .iter()
        .find(|f| f.name(db) == name)
        .expect("the function");
    (body(db, function), function.text(db).to_string())
}

/// A compact picture of the control structure.
fn shape(body: &Body, text: &str, stmt: StmtId) -> String {
    let s = |id: &StmtId| shape(body, text, *id);
    let e = |id: &gridfuse_analysis::hir::ExprId| body.expr(*id).span.text(text).to_owned();
    match &body.stmt(stmt).kind {
        StmtKind::Block(stmts) => format!("{{{}}}", stmts.iter().map(s).collect::<Vec<_>>().join(" ")),
        StmtKind::Expr(x) => format!("{};", e(x)),
        StmtKind::Decl(decls) => {
            let all: Vec<_> = decls.iter().map(|d| body.binding(d.binding).name.clone()).collect();
            format!("decl {};", all.join(","))
        }
        StmtKind::If {
            cond, then, otherwise, ..
        } => {
            let cond = cond.as_ref().map(e).unwrap_or_default();
            let otherwise = otherwise
                .as_ref()
                .map(|o| format!(" else {}", s(o)))
                .unwrap_or_default();
            format!("if({cond}){}{otherwise}", s(then))
        }
        StmtKind::While { body: b, .. } => format!("while{}", s(b)),
        StmtKind::DoWhile { body: b, .. } => format!("do{}", s(b)),
        StmtKind::For { body: b, .. } | StmtKind::RangeFor { body: b, .. } => format!("for{}", s(b)),
        StmtKind::Switch { body: b, .. } => format!("switch{}", s(b)),
        StmtKind::Case { value, stmts } => {
            let label = value.as_ref().map(e).unwrap_or("default".into());
            format!("[{label}: {}]", stmts.iter().map(s).collect::<Vec<_>>().join(" "))
        }
        StmtKind::Break => "break;".into(),
        StmtKind::Continue => "continue;".into(),
        StmtKind::Return(_) => "return;".into(),
        StmtKind::Goto(l) => format!("goto {l};"),
        StmtKind::Label(l, inner) => format!("{l}: {}", inner.as_ref().map(s).unwrap_or_default()),
        StmtKind::Preprocessor { branches } => {
            let all: Vec<_> = branches
                .iter()
                .map(|b| b.iter().map(s).collect::<Vec<_>>().join(" "))
                .collect();
            format!("#({})", all.join("|"))
        }
        StmtKind::Asm { .. } => "asm;".into(),
        StmtKind::Empty => ";".into(),
        StmtKind::Unknown { .. } => "?".into(),
    }
}

fn structure(statements: &str) -> String {
    let source = format!(
        r#"#define CHECK(x) if (x) return
#define SQ(x) ((x) * (x))
__global__ void k(int a, int b, int* p) {{
{statements}
}}"#
    );
    let (body, text) = lowered(&source, "k");
    shape(&body, &text, body.root.unwrap())
}

#[test]
fn control_structure() {
    let is =
        |statements: &str, expected: &str| assert_eq!(structure(statements), format!("{{{expected}}}"), "{statements}");
    is(
        "if (a) b = 1; else if (b) a = 1; else { return; }",
        "if(a)b = 1; else if(b)a = 1; else {return;}",
    );
    is("for (;;) if (a) break; else continue;", "forif(a)break; else continue;");
    // A pragma in front of a loop must not become the body of the `if`.
    is(
        r#"if (a)
#pragma unroll
 for (int i = 0; i < 3; ++i) b += i;"#,
        "if(a)forb += i;",
    );
    is(
        "switch (a) { case 1: b = 1; case 2: break; default: b = 2; }",
        "switch{[1: b = 1;] [2: break;] [default: b = 2;]}",
    );
    is("do { a--; } while (a); end: return;", "do{a--;} end: return;");
    is(
        r#"#if X
 a = 1;
#elif Y
 a = 2;
#else
 a = 3;
#endif"#,
        "#(a = 1;|a = 2;|a = 3;)",
    );
    is(
        r#"#ifdef X
 a = 1;
#endif
 b = 2;"#,
        "#(a = 1;|) b = 2;",
    );
    is(
        r#"#if 0
 a = 1;
#endif
 b = 2;"#,
        "b = 2;",
    );
    // A macro that hides control flow is the control flow.
    is("CHECK(a); b = SQ(a);", "if(a)return; b = SQ(a);");
    is("[[likely]] return;", "return;");
    is(
        "int x = a, y(b), z{1}; auto f = [&](int q) { return q; };",
        "decl x,y,z; decl f;",
    );
}

#[test]
fn conditionals_that_cut_are_reduced_and_noted() {
    let source = r#"__global__ void k(int a, int b) {
#if X
  if (a) {
#else
  if (b) {
#endif
    a = 1;
  }
}
__global__ void after(int c) { c = 1; }
"#;
    let (body, text) = lowered(source, "k");
    assert_eq!(shape(&body, &text, body.root.unwrap()), "{if(a){a = 1;}}");
    assert_eq!(body.problems.len(), 1, "{:?}", body.problems);
    assert!(lowered(source, "after").0.problems.is_empty());
    for statements in [
        r#"f(a,
#if X
 b
#else
 a
#endif
 );"#,
        r#"if (a) b = 1;
#if X
 else b = 2;
#endif"#,
        r#"#if X
 if (a)
#endif
 b = 1;"#,
        r#"#if X
 if (a) b = 1;
#endif
 else b = 2;"#,
    ] {
        let source = format!(
            r#"__global__ void k(int a, int b) {{
{statements}
}}"#
        );
        let (body, _) = lowered(&source, "k");
        assert!(!body.problems.is_empty(), "{statements}");
    }
}

#[test]
fn masking_keeps_every_offset() {
    for text in [
        "__global__ void __launch_bounds__(128, 2, 1) k() {}",
        "struct __align__(8) S { int a; };",
        "#pragma unroll \\\n 4\nint é = '\"'; // __align__(3)",
        "auto f = [=] __host__ __device__ (int x) { return \"__align__(1)\"; };",
        "#define KERNEL __global__ void\r\nKERNEL k() {}\r\n",
        "R\"(__align__(3) \" )\" __align__(4)",
    ] {
        let masked = mask(text, &[]).text;
        assert_eq!(masked.len(), text.len());
        let newlines = |t: &str| {
            t.bytes()
                .enumerate()
                .filter(|(_, b)| *b == b'\n')
                .map(|(i, _)| i)
                .collect::<Vec<_>>()
        };
        assert_eq!(newlines(&masked), newlines(text));
        assert!(!masked.contains("__launch_bounds__(128, 2, 1)") && !masked.contains("S __align__"));
    }
    assert!(mask("char c = \"__align__(8)\"[0];", &[]).text.contains("__align__(8)"));
    assert!(
        mask("__launch_bounds__(128, 2) void f();", &[])
            .text
            .contains("__launch_bounds__")
    );
}

#[test]
fn macros_that_stand_for_execution_spaces() {
    let source = r#"#define KERNEL __global__ void
#define DEV __device__ __forceinline__
KERNEL k(int* p) { p[0] = 1; }
DEV int f() { return 1; }
"#;
    let mut host = Host::new();
    let file = host.set_file("/w/a.cu".as_ref(), source);
    let db = host.db();
    let functions = &items(db, file).functions;
    assert_eq!(functions.iter().map(|f| f.name(db)).collect::<Vec<_>>(), ["k", "f"]);
    assert!(functions[0].signature(db).kernel && functions[1].signature(db).device);
    assert!(functions.iter().all(|f| body(db, *f).problems.is_empty()));
}

#[test]
fn names_and_storage() {
    let source = r#"#define N 4
#define ID (blockIdx.x * blockDim.x + threadIdx.x)
__device__ void f(uint3 blockIdx, int* p) {
extern __shared__ int dyn[]; __shared__ float tile[N]; static int s; { int p = 3; p = 4; } p[0] = blockIdx.x + threadIdx.x + N + ID; }"#;
    let (body, text) = lowered(source, "f");
    assert!(body.problems.is_empty());
    let storage: Vec<_> = body.bindings.iter().map(|b| (b.name.as_str(), b.storage)).collect();
    use Storage::*;
    assert_eq!(
        storage,
        [
            ("blockIdx", Param),
            ("p", Param),
            ("dyn", ExternShared),
            ("tile", Shared),
            ("s", Static),
            ("p", Local)
        ]
    );
    let locals = |name: &str| {
        let of = |e: &&gridfuse_analysis::hir::Expr| matches!(&e.kind, ExprKind::Name(Name::Local(b)) if body.binding(*b).name == name);
        body.exprs.iter().filter(of).count()
    };
    // The shadowed blockIdx is the parameter, also inside the macro.
    assert_eq!(locals("blockIdx"), 2);
    let macros: Vec<_> = body
        .exprs
        .iter()
        .filter(|e| e.from_macro)
        .map(|e| e.span.text(&text))
        .collect();
    assert!(
        macros.iter().all(|m| *m == "ID" || *m == "N") && macros.contains(&"ID"),
        "{macros:?}"
    );
}

#[test]
fn declarations_in_alternatives_are_one_variable() {
    let source = r#"__global__ void k(int* p) {
#if X
 int b = threadIdx.x;
#else
 int b = 1;
#endif
 p[b] = 1; }"#;
    let (body, _) = lowered(source, "k");
    assert_eq!(body.bindings.iter().filter(|b| b.name == "b").count(), 1);
}

#[test]
fn constructor_arguments_that_look_like_types() {
    let source = "__global__ void k(int n, int m) { dim3 g(n), h(n, m), i(n * m, 2); k<<<g, h>>>(n, m); }";
    let (body, text) = lowered(source, "k");
    let built: Vec<Vec<&str>> = body
        .exprs
        .iter()
        .filter_map(|e| match &e.kind {
            ExprKind::Construct { ty, args } if ty == "dim3" => {
                Some(args.iter().map(|a| body.expr(*a).span.text(&text)).collect())
            }
            _ => None,
        })
        .collect();
    assert_eq!(built, [vec!["n"], vec!["n", "m"], vec!["n * m", "2"]]);
    assert!(body.problems.is_empty());
}

#[test]
fn what_the_parser_skips_is_a_problem() {
    for statement in [
        "if ((x = tid, n)) return;",
        "out[v] = @ 3;",
        "int y = ;",
        "x = 3 n;",
        "f(x,, n);",
    ] {
        let source = format!(
            r#"__global__ void k(int* out, int v, int x, int n, int tid) {{
    {statement}
}}
"#
        );
        let (body, _) = lowered(&source, "k");
        assert!(!body.problems.is_empty(), "{statement}");
    }
}

#[test]
fn comparisons_that_look_like_template_arguments() {
    let source = r#"template <int N> __device__ int f(int x) { return x + N; }
__global__ void k(int n, int v, int m) {
    int a = n < 2 && v < m ? 3 >> 1 : m >> 1;
    int b = n < v && m > (a);
    int c = f<3>(v);
}
"#;
    let (body, text) = lowered(source, "k");
    assert!(body.problems.is_empty());
    for (kind, wanted) in body.exprs.iter().filter_map(|expr| match &expr.kind {
        ExprKind::Unknown { mentions, .. } => Some((expr.span.text(&text), mentions)),
        _ => None,
    }) {
        let names: Vec<&str> = wanted.iter().map(|b| body.binding(*b).name.as_str()).collect();
        assert!(names.contains(&"n") && names.contains(&"v"), "{kind}: {names:?}");
    }
    // Both are there, and no variable is called or read with its comparisons left out.
    let unknown = |text_of: &str| {
        body.exprs
            .iter()
            .any(|e| e.span.text(&text).starts_with(text_of) && matches!(e.kind, ExprKind::Unknown { .. }))
    };
    assert!(unknown("n < 2 && v < m ? 3"));
    assert!(unknown("n < v && m"));
    assert!(
        body.exprs
            .iter()
            .any(|e| matches!(&e.kind, ExprKind::Call { name: Some(n), .. } if n == "f"))
    );
    // What is inside counts as read.
    let reads = |name: &str| {
        body.exprs
            .iter()
            .any(|e| matches!(e.kind, ExprKind::Name(Name::Local(b)) if body.binding(b).name == name))
    };
    assert!(reads("v") && reads("m"));
}

/// `a < b && c >= d` is no assignment to `a<b && c>`.
#[test]
fn comparisons_that_look_like_assignments() {
    for value in [
        "(v.y * tid < 34 && 16 >= 16)",
        "(tid < 34 && n >= 16)",
        "(n < tid || m >= (n))",
        "f(tid < 34 && n >= 16)",
        "f(n, v.y * tid < m && n >= 16)",
        "n > 3 ? tid < m && n >= 16 : tid < 3",
    ] {
        let source = format!("__global__ void k(int2 v, int n, int m, int tid) {{\n    bool b = {value};\n}}\n");
        let (body, text) = lowered(&source, "k");
        let assigns = |kind: &ExprKind| matches!(kind, ExprKind::Assign { .. });
        let found: Vec<_> = body
            .exprs
            .iter()
            .filter(|e| assigns(&e.kind))
            .map(|e| e.span.text(&text))
            .collect();
        assert!(found.is_empty(), "{value}: {found:?}");
    }
}

/// A compact picture of an expression.
fn reading(body: &Body, e: ExprId) -> String {
    let r = |e: &ExprId| reading(body, *e);
    let all = |list: &[ExprId]| list.iter().map(r).collect::<Vec<_>>().join(", ");
    match &body.expr(e).kind {
        ExprKind::Literal(Literal::Int(n)) => n.to_string(),
        ExprKind::Name(Name::Local(b)) => body.binding(*b).name.clone(),
        ExprKind::Name(Name::Other(name)) => format!("::{name}"),
        ExprKind::Name(Name::Builtin(b)) => format!("{b:?}"),
        ExprKind::Paren(e) => format!("({})", r(e)),
        ExprKind::Unary(op, e) => format!("{op:?}[{}]", r(e)),
        ExprKind::Deref(e) => format!("Deref[{}]", r(e)),
        ExprKind::AddrOf(e) => format!("AddrOf[{}]", r(e)),
        ExprKind::Binary(op, a, b) => format!("{op:?}[{}, {}]", r(a), r(b)),
        ExprKind::Logical { and, lhs, rhs } => format!("{}[{}, {}]", if *and { "And" } else { "Or" }, r(lhs), r(rhs)),
        ExprKind::Cast { ty, operand, .. } => format!("<{ty}>{}", r(operand)),
        ExprKind::IncDec { place, prefix, .. } => format!("{}[{}]", if *prefix { "Pre" } else { "Post" }, r(place)),
        ExprKind::Field { base, field, .. } => format!("{}.{field}", r(base)),
        ExprKind::Index { base, index } => format!("{}@{}", r(base), r(index)),
        ExprKind::Call { callee, args, .. } => format!("call {}({})", r(callee), all(args)),
        ExprKind::Assign { place, value, .. } => format!("{} = {}", r(place), r(value)),
        ExprKind::Construct { ty, args } => format!("{ty}({})", all(args)),
        ExprKind::SizeOf => "sizeof".into(),
        ExprKind::Unknown { parts, .. } => format!("?{{{}}}", all(parts)),
        other => format!("{other:?}"),
    }
}

/// Declarations that the statements of [`read`] may use.
const DECLARED: &str = r#"typedef unsigned int vid_t;
using num = float;
typedef float* fptr;
struct Pair { int a, b; static const int SIZE = 2; };
enum Color { RED, GREEN };
namespace my { typedef long T; int count; }
int scale;
__device__ float gain(float);
template <class U> struct Box { U u; };
#define REAL float
#define DIVUP(a, b) (((a) + (b) - 1) / (b))
#define AS(T, x) (T)*x
"#;

/// What the initialiser of `auto r = …;` is read as.
fn read(expression: &str) -> String {
    read_behind("", expression)
}

fn read_behind(statements: &str, expression: &str) -> String {
    let source = format!(
        r#"{DECLARED}template <typename E, int N> __device__ void f(int n, int* p, Pair* q, unsigned x, int** pp, E e) {{
{statements}
    auto r = {expression};
}}
"#
    );
    let (body, text) = lowered(&source, "f");
    assert!(body.problems.is_empty(), "{expression}: {:?}", body.problems);
    let init = body.stmts.iter().rev().find_map(|s| match &s.kind {
        StmtKind::Decl(decls) if body.binding(decls[0].binding).name == "r" => decls[0].init,
        _ => None,
    });
    let init = init.unwrap();
    let span = body.expr(init).span.text(&text);
    assert!(
        expression.starts_with(span) || expression.contains("REAL"),
        "{expression}: {span}"
    );
    reading(&body, init)
}

#[test]
fn casts_to_a_named_type_that_look_like_arithmetic() {
    let is = |expression: &str, expected: &str| assert_eq!(read(expression), expected, "{expression}");
    is("(vid_t)*p", "<vid_t>Deref[p]");
    is("(num)*p", "<num>Deref[p]");
    is("(E)*p", "<E>Deref[p]");
    is("(Pair)*q", "Pair(Deref[q])");
    is("(my::T)*p", "<my::T>Deref[p]");
    is("(Box<int>)*p", "Box<int>(Deref[p])");
    is("(REAL)*p", "<float>Deref[p]");
    is("AS(vid_t, p)", "<vid_t>Deref[p]");
    is("(fptr)&x", "<fptr>AddrOf[x]");
    is("(vid_t)-x", "<vid_t>Neg[x]");
    is("(vid_t)+x", "<vid_t>Plus[x]");
    is("(vid_t)-1", "<vid_t>Neg[1]");
    is("(float4)*p", "<float4>Deref[p]");
    // The operand is what a cast takes, and the rest is joined by its precedence.
    is("(vid_t)*p + 1", "Add[<vid_t>Deref[p], 1]");
    is("(vid_t)*p * 2", "Mul[<vid_t>Deref[p], 2]");
    is("n + (vid_t)*p", "Add[n, <vid_t>Deref[p]]");
    is("n * (vid_t)*p", "Mul[n, <vid_t>Deref[p]]");
    is("n / (vid_t)-x * 3", "Mul[Div[n, <vid_t>Neg[x]], 3]");
    is("n - (vid_t)-x", "Sub[n, <vid_t>Neg[x]]");
    is("n == (vid_t)&x", "Eq[n, <vid_t>AddrOf[x]]");
    is("(vid_t)*p++", "<vid_t>Deref[Post[p]]");
    is("(vid_t)*++p", "<vid_t>Deref[Pre[p]]");
    is("(vid_t)*q->pp[3]", "<vid_t>Deref[q.pp@3]");
    is("(fptr)&x == p", "Eq[<fptr>AddrOf[x], p]");
    is("(vid_t)-x*n", "Mul[<vid_t>Neg[x], n]");
    is("(vid_t)-x << 2 | 1", "BitOr[Shl[<vid_t>Neg[x], 2], 1]");
    is("(vid_t)&x & 3", "BitAnd[<vid_t>AddrOf[x], 3]");
    is(
        "(vid_t)&x + 1 < 3 + n * 2",
        "Lt[Add[<vid_t>AddrOf[x], 1], Add[3, Mul[n, 2]]]",
    );
    is("(float)(num)*p", "?{<float>(::num), Deref[p]}");
    is("-(vid_t)-x * 3", "Mul[Neg[<vid_t>Neg[x]], 3]");
    is("(num)*(vid_t)*pp", "<num>Deref[<vid_t>Deref[pp]]");
    is("(vid_t)**pp", "<vid_t>Deref[Deref[pp]]");
    is("(vid_t)*p && (num)*p", "And[<vid_t>Deref[p], <num>Deref[p]]");
    is("(vid_t)*p > 0 || n", "Or[Gt[<vid_t>Deref[p], 0], n]");
    is("sizeof(vid_t) * n", "Mul[sizeof, n]");
    // A type of the function's own.
    assert_eq!(read_behind("typedef int own;", "(own)*p"), "<own>Deref[p]");
    assert_eq!(read_behind("using own = int;", "(own)-x"), "<own>Neg[x]");
    assert_eq!(read_behind("typedef Pair own;", "(own)*q"), "own(Deref[q])");
    assert_eq!(read_behind("struct own { int a; };", "(own)*p"), "own(Deref[p])");
}

#[test]
fn casts_that_look_like_calls() {
    let is = |expression: &str, expected: &str| assert_eq!(read(expression), expected, "{expression}");
    is("(vid_t)(x + 1)", "<vid_t>(Add[x, 1])");
    is("(my::T)(x)", "<my::T>(x)");
    is("(E)(x) * 2", "Mul[<E>(x), 2]");
    is("n + (num)(x)", "Add[n, <num>(x)]");
    is("-(num)(x)", "Neg[<num>(x)]");
    is("(Pair)(n)", "Pair((n))");
    is("(num)(vid_t)(x)", "<num>call (::vid_t)(x)");
    // What follows belongs to the operand.
    is("(vid_t)(p)[3]", "<vid_t>(p)@3");
    is("(vid_t)(*q).a", "<vid_t>(Deref[q]).a");
    is("(vid_t)(q)->a + 1", "Add[<vid_t>(q).a, 1]");
    is("(vid_t)(p)++", "<vid_t>Post[(p)]");
    is("(vid_t)(gain)(x)", "<vid_t>call (::gain)(x)");
    // Two operands: not what it looks like.
    is("(vid_t)(x, n)", "?{x, n}");
    // Functions, variables and what isn't in sight.
    is("(gain)(x)", "call (::gain)(x)");
    is("(p)(x)", "call (p)(x)");
    is("(some)(x)", "call (::some)(x)");
    assert_eq!(read_behind("int (*vid_t)(int) = 0;", "(vid_t)(x)"), "call (vid_t)(x)");
}

#[test]
fn parenthesised_values_are_no_casts() {
    let is = |expression: &str, expected: &str| assert_eq!(read(expression), expected, "{expression}");
    is("(n)*x", "Mul[(n), x]");
    is("(n)&x", "BitAnd[(n), x]");
    is("(n)-1", "Sub[(n), 1]");
    is("(scale)*x", "Mul[(::scale), x]");
    is("(my::count)*x", "Mul[(::my::count), x]");
    is("(RED)*x", "Mul[(::RED), x]");
    is("(Color::GREEN)&x", "BitAnd[(::Color::GREEN), x]");
    is("(Pair::SIZE)*x", "Mul[(::Pair::SIZE), x]");
    is("(N)*x", "Mul[(::N), x]");
    is("(E::width)*x", "Mul[(::E::width), x]");
    is("(warpSize)*x", "Mul[(WarpSize), x]");
    is("(INT_MAX)-x", "Sub[(::INT_MAX), x]");
    // The parser takes these for casts.
    is("(n)-x * 3", "Sub[(n), Mul[x, 3]]");
    is("(n)&x == 3", "BitAnd[(n), Eq[x, 3]]");
    is("(n)&x + 3 << 1", "BitAnd[(n), Shl[Add[x, 3], 1]]");
    is("(n)-(n)-x * 3", "Sub[Sub[(n), (n)], Mul[x, 3]]");
    is("-(n)-x * 3", "Sub[Neg[(n)], Mul[x, 3]]");
    is("!(n)&x == 3", "BitAnd[Not[(n)], Eq[x, 3]]");
    is("(float)(n)-x * 3", "Sub[<float>(n), Mul[x, 3]]");
    is("(float)(n)-x", "Sub[<float>(n), x]");
    is("-(n)-x", "Sub[Neg[(n)], x]");
    is("x * (n)-x * 3", "Sub[Mul[x, (n)], Mul[x, 3]]");
    is("DIVUP(n, x)", "(Div[(Sub[Add[(n), (x)], 1]), (x)])");
    // A variable hides the type.
    assert_eq!(read_behind("int vid_t = 3;", "(vid_t)*x"), "Mul[(vid_t), x]");
    // A field, in a member function.
    let source = "struct S { int width; __device__ int at(int y) { return (width)*y; } };";
    let (body, _) = lowered(source, "S::at");
    assert!(body.exprs.iter().any(|e| matches!(e.kind, ExprKind::Binary(..))));
}

#[test]
fn names_of_which_nothing_is_in_sight() {
    let is = |expression: &str, expected: &str| assert_eq!(read(expression), expected, "{expression}");
    // What follows says what it is.
    is("(real)*p", "<real>Deref[p]");
    is("(BLOCK)*x", "Mul[(::BLOCK), x]");
    is("(BLOCK)*4", "Mul[(::BLOCK), 4]");
    is("(BLOCK)*blockDim.x", "Mul[(::BLOCK), BlockDim.x]");
    is("(MASK)&15", "BitAnd[(::MASK), 15]");
    is("(MASK)&threadIdx.x", "BitAnd[(::MASK), ThreadIdx.x]");
    is("(ptr)&p", "<ptr>AddrOf[p]");
    // It makes no difference.
    is("(BLOCK)-1", "Sub[(::BLOCK), 1]");
    is("DIVUP(n, BLOCK)", "(Div[(Sub[Add[(n), (::BLOCK)], 1]), (::BLOCK)])");
    // What both readings do: the address and the load are there.
    is("(some)&x", "?{AddrOf[x]}");
    is("(some)*e", "?{Deref[e]}");
    is("(some)*gain(x)", "?{Deref[call ::gain(x)]}");
    is("(some)&x == n + 1", "?{AddrOf[x], n, 1}");
    is("(some)*(other)*e", "?{Deref[e]}");
    is("(some)&p[n]", "?{AddrOf[p@n]}");
    is("!(vid_t)*p", "?{Not[(::vid_t)], Deref[p]}");
    is("n + -(some)*p * 2", "?{n, Neg[(::some)], Deref[p], 2}");
}

#[test]
fn member_initialisers_are_assignments() {
    let read = |class: &str| {
        let source = format!(
            r#"typedef float real; struct Base {{ int b; }}; struct Inner {{ int i; Inner(int n); }}; int shared_name;
{class}"#
        );
        let (body, _) = lowered(&source, "Box::Box");
        let assigned: Vec<String> = (0..body.exprs.len() as u32)
            .map(ExprId)
            .filter(|e| matches!(body.expr(*e).kind, ExprKind::Assign { .. }))
            .map(|e| reading(&body, e))
            .collect();
        let root = &body.stmt(body.root.unwrap()).kind;
        let StmtKind::Block(stmts) = root else {
            panic!("{root:?}")
        };
        let outside = stmts
            .iter()
            .filter(|s| matches!(body.stmt(**s).kind, StmtKind::Expr(_)))
            .count();
        (assigned.join("; "), outside, body.problems.is_empty())
    };
    let is = |class: &str, expected: &str, outside: usize| {
        assert_eq!(read(class), (expected.to_owned(), outside, true), "{class}");
    };
    is(
        "struct Box { float lo, hi; __device__ Box(float a, float b) : lo(a), hi{b + 1} { lo = hi; } };",
        "::lo = a; ::hi = Add[b, 1]; ::lo = ::hi",
        2,
    );
    // The field, and the parameter of its name.
    is(
        "struct Box { real lo; int* p; Box(real lo, int* q) : lo(lo), p(q) {} };",
        "::lo = lo; ::p = q",
        2,
    );
    is("struct Box { int n; Box(int m) : n(m++) {} };", "::n = Post[m]", 1);
    for class in [
        "struct Box : Base { int n; Box(int m) : Base(), n(m) {} };",
        "struct Box : Base { int n; Box(int m) : Base{m}, n(m) {} };",
        "struct Box { int n; Box(int m, int k) : Box(m + k) {} };",
        "struct Box { Inner n; Box(int m) : n(m) {} };",
        "struct Box { int& n; Box(int& m) : n(m) {} };",
        "struct Box { int n[2]; Box(int m) : n{m, m} {} };",
        "struct Box { int n[2]; Box(int m) : n{m} {} };",
        "struct Box { int n; Box(int m) : n() {} };",
        "struct Box { unknown n; Box(int m) : n(m) {} };",
        "struct Box { int shared_name; Box(int m) : shared_name(m) {} };",
        "template <class... T> struct Box : T... { Box(int m) : T(m)... {} };",
    ] {
        assert!(!read(class).2, "{class}");
    }
}
