//! Macros and conditionals: what is decided, what is expanded, and what stays unknown.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gridfuse_analysis::base::command::CompileCommand;
use gridfuse_analysis::base::command::MacroFlag;
use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::parse::parse;
use gridfuse_analysis::base::preprocess::{Branch, preprocessed};
use gridfuse_analysis::base::settings::Settings;
use gridfuse_analysis::facts::launch::{LaunchFacts, launches};
use gridfuse_analysis::facts::uniformity::Level;
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::{Body, body};
use gridfuse_analysis::host::Host;

const CHILD: &str = "__global__ void child(int* out, int n) { out[n] = 1; }\n";

struct Program {
    host: Host,
    file: SourceFile,
}

impl Program {
    fn new(text: &str) -> Self {
        Program::with(text, &[], None)
    }

    fn with(text: &str, headers: &[(&str, &str)], flags: Option<&[&str]>) -> Self {
        let mut host = Host::observed();
        for (path, text) in headers {
            host.set_file(path.as_ref(), *text);
        }
        let file = host.set_file("/w/main.cu".as_ref(), text);
        if let Some(flags) = flags {
            let mut command = CompileCommand {
                relocatable: true,
                ..CompileCommand::default()
            };
            for flag in flags {
                match flag.split_at(2) {
                    ("-D", line) => command.macros.push(MacroFlag::Define(line.to_owned())),
                    ("-U", name) => command.macros.push(MacroFlag::Undefine(name.to_owned())),
                    ("-a", arch) => command.archs.push(arch.parse().unwrap()),
                    (_, version) => command.cuda = Some((version.parse().unwrap(), 0)),
                }
            }
            host.set_commands(BTreeMap::from([("/w/main.cu".into(), vec![Arc::new(command)])]));
        }
        Program { host, file }
    }

    fn function(&self, name: &str) -> FunctionItem<'_> {
        let db = self.host.db();
        let all = &items(db, self.file).functions;
        *all.iter()
            .rfind(|f| f.name(db) == name && f.has_body(db))
            .expect("the function")
    }

    fn body(&self, name: &str) -> Arc<Body> {
        body(self.host.db(), self.function(name))
    }

    fn launches(&self, name: &str) -> &[LaunchFacts<'_>] {
        launches(self.host.db(), self.function(name))
    }

    /// Block sizes of the launches, 0 where they aren't known.
    fn blocks(&self, name: &str) -> Vec<u64> {
        let known = self.launches(name).iter().map(|l| l.block.constant.map_or(0, |b| b[0]));
        known.collect()
    }

    fn text(&self, name: &str, launch: &LaunchFacts<'_>) -> String {
        launch.span.text(&self.function(name).text(self.host.db())).to_owned()
    }

    fn branches(&self) -> Vec<Branch> {
        preprocessed(self.host.db(), self.file).branches.clone()
    }
}

fn parent(before: &str, statements: &str) -> String {
    format!(
        r#"{before}
{CHILD}__global__ void parent(int* out, int n) {{
{statements}
}}
"#
    )
}

fn blocks(before: &str, statements: &str) -> Vec<u64> {
    Program::new(&parent(before, statements)).blocks("parent")
}

#[test]
fn conditions_decide_which_launch_is_compiled() {
    let launch = |condition: &str| {
        format!(
            r#"#if {condition}
    child<<<1, 32>>>(out, n);
#else
    child<<<1, 64>>>(out, n);
#endif"#
        )
    };
    for (before, condition, expected) in [
        ("", "0", vec![64]),
        ("", "1", vec![32]),
        ("#define X 1", "X", vec![32]),
        ("#define X 0", "X", vec![64]),
        ("#define X", "defined(X)", vec![32]),
        ("#define X 3\n#define Y (X * 2)", "Y == 6 && X > 2", vec![32]),
        ("#define MAX(a, b) ((a) > (b) ? (a) : (b))", "MAX(3, 4) == 4", vec![32]),
        ("#define X 1\n#undef X", "defined X", vec![64]),
        ("#undef X\n#define X 2", "X == 2", vec![32]),
        // Not known.
        ("", "X", vec![32, 64]),
        ("", "defined(X)", vec![32, 64]),
        ("#include <x.h>", "defined(__CUDA_ARCH_LIST__)", vec![32, 64]),
        ("", "__CUDA_ARCH__ >= 700", vec![32, 64]),
        (
            "#ifdef Y\n#define X 1\n#else\n#define X 2\n#endif",
            "X == 1",
            vec![32, 64],
        ),
        (
            "#ifdef Y\n#define X 1\n#else\n#define X 2\n#endif",
            "defined X",
            vec![32],
        ),
        ("#ifndef X\n#define X 1\n#endif", "X", vec![32]),
        ("#ifndef X\n#define X 1\n#endif", "defined(X)", vec![32]),
        ("#define X X + 1", "X", vec![32, 64]),
        // In code for devices alone it is defined, whatever its value.
        ("", "defined(__CUDA_ARCH__)", vec![32]),
        ("", "!defined(__CUDA_ARCH__)", vec![64]),
    ] {
        assert_eq!(blocks(before, &launch(condition)), expected, "{before} {condition}");
    }
}

#[test]
fn branches_are_told_apart() {
    let branches = |text: &str| Program::new(text).branches();
    use Branch::*;
    assert_eq!(branches("#if 0\n#elif 1\n#else\n#endif\n"), [Dead, Live, Dead, Maybe]);
    assert_eq!(branches("#if X\n#elif 1\n#else\n#endif\n"), [Maybe, Maybe, Dead, Maybe]);
    assert_eq!(branches("#if X\n#elif 0\n#endif\n"), [Maybe, Dead, Maybe]);
    assert_eq!(
        branches("#if X\n#else\n#error no\n#endif\n"),
        [Live, Dead, Maybe, Maybe]
    );
    assert_eq!(
        branches("#ifdef X\n#ifdef X\n#else\n#endif\n#endif\n"),
        [Maybe, Live, Dead, Maybe, Maybe]
    );
    assert_eq!(
        branches("#ifndef X\n#ifdef X\n#endif\n#endif\n"),
        [Maybe, Dead, Maybe, Maybe]
    );
    // An include guard is neither.
    assert_eq!(
        branches("#ifndef G\n#define G\n#if 1\n#endif\n#endif\n"),
        [Maybe, Maybe, Live, Maybe, Maybe]
    );
    assert_eq!(branches("#if 1\n#else\n"), [Live, Dead]);
    assert_eq!(branches("#endif\n#else\n#elif 1\n#if 0\n"), [Maybe, Maybe, Maybe, Dead]);
    // A text that only looks like directives.
    assert_eq!(
        branches(
            r#"/*
#if 0
*/ "\
#if 0" R"(
#if 0
)"
#if 1 // \
 x
#endif"#
        ),
        [Live, Maybe]
    );
}

#[test]
fn the_command_decides() {
    let text = parent(
        "",
        r#"#ifdef FAST
 child<<<1, FAST>>>(out, n);
#else
 child<<<1, 1>>>(out, n);
#endif
#if __CUDA_ARCH__ >= 900
 child<<<1, 90>>>(out, n);
#endif
#if CUDART_VERSION >= 12000
 child<<<1, 12>>>(out, n);
#endif
"#,
    );
    let blocks = |flags: &[&str]| Program::with(&text, &[], Some(flags)).blocks("parent");
    assert_eq!(blocks(&["-DFAST 64", "-a90", "-c13"]), [64, 90, 12]);
    assert_eq!(blocks(&["-UFAST", "-a80", "-c11"]), [1]);
    // Compiled for both.
    assert_eq!(blocks(&["-UFAST", "-a80", "-a90", "-c13"]), [1, 90, 12]);
    // The command says all.
    assert_eq!(blocks(&["-a90", "-c13"]), [1, 90, 12]);
    // Another file's command sets it, so this one leaves it out on purpose.
    let mut program = Program::with(&text, &[], None);
    let with = CompileCommand {
        macros: vec![MacroFlag::Define("FAST 8".into())],
        ..CompileCommand::default()
    };
    let without = CompileCommand::default();
    let set = |program: &mut Program, own: Vec<CompileCommand>| {
        let own = own.into_iter().map(Arc::new).collect();
        let other = vec![Arc::new(with.clone())];
        let all = BTreeMap::from([("/w/main.cu".into(), own), ("/w/other.cu".into(), other)]);
        program.host.set_commands(all);
    };
    set(&mut program, vec![without.clone()]);
    assert_eq!(program.blocks("parent"), [1, 90, 12]);
    // Part of two programs, of which one sets it.
    set(&mut program, vec![without, with.clone()]);
    assert_eq!(program.blocks("parent").len(), 4);
}

#[test]
fn headers_define_macros() {
    let headers = [
        (
            "/w/config.cuh",
            "#ifndef CONFIG\n#define CONFIG\n#include \"sizes.cuh\"\n#endif\n",
        ),
        (
            "/w/sizes.cuh",
            "#pragma once\n#include \"config.cuh\"\n#define BLOCK 96\n#define USE 1\n",
        ),
    ];
    let text = parent(
        "#include \"config.cuh\"\n#include \"config.cuh\"\n#include \"sizes.cuh\"",
        r#"#if USE
 child<<<1, BLOCK>>>(out, n);
#else
 child<<<1, 1>>>(out, n);
#endif"#,
    );
    assert_eq!(Program::with(&text, &headers, None).blocks("parent"), [96]);
    // Before the header is included it means nothing.
    let early = format!("#ifdef CONFIG\n{CHILD}#endif\n{text}");
    assert_eq!(Program::with(&early, &headers, None).branches()[0], Branch::Maybe);
}

#[test]
fn a_macro_means_what_it_means_at_its_place() {
    let text = format!(
        r#"{CHILD}#define B 32
__global__ void one(int* out) {{ child<<<1, B>>>(out, 1); }}
#undef B
#define B 64
__global__ void two(int* out) {{ child<<<1, B>>>(out, 1);
#undef B
#define B 128
 child<<<1, B>>>(out, 1); }}
#undef B
__global__ void three(int* out, int B) {{ child<<<1, B>>>(out, 1); }}
#define B 5
"#
    );
    let program = Program::new(&text);
    assert_eq!(program.blocks("one"), [32]);
    assert_eq!(program.blocks("two"), [64, 128]);
    assert_eq!(program.blocks("three"), [0]);
    // The macro that is defined behind the function isn't its parameter.
    let three = program.body("three");
    assert!(three.exprs.iter().all(|e| !e.from_macro));
}

#[test]
fn sizes_that_are_constant_though_not_known() {
    let source = parent(
        "#ifndef BLOCK\n#define BLOCK 128\n#endif",
        "child<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(out, n);",
    );
    let program = Program::new(&source);
    let facts = &program.launches("parent")[0];
    assert_eq!(facts.block.constant, Some([128, 1, 1]));
    let open = source.replacen("#ifndef BLOCK", "#include \"config.h\"\n#ifndef BLOCK", 1);
    let program = Program::new(&open);
    let facts = &program.launches("parent")[0];
    assert_eq!(facts.block.constant, None);
    assert_eq!(facts.block.operand.uniformity.level, Level::Constant);
    assert_eq!(
        Program::with(&source, &[], Some(&["-DBLOCK 64"])).blocks("parent"),
        [64]
    );
}

#[test]
fn launches_in_macros_are_reported_at_the_use() {
    for (define, statement, block, shown) in [
        (
            "#define GO(k, g, b) k<<<g, b>>>",
            "GO(child, 1, 32)(out, n);",
            32,
            "GO(child, 1, 32)(out, n)",
        ),
        (
            "#define GO(k, b, ...) k<<<1, b>>>(__VA_ARGS__)",
            "GO(child, 32, out, n);",
            32,
            "GO(child, 32, out, n)",
        ),
        (
            "#define GO(k, b, a...) do { k<<<1, b>>>(a); } while (0)",
            "GO(child, 32, out, n);",
            32,
            "GO(child, 32, out, n)",
        ),
        ("#define GO child<<<1, 32>>>", "GO(out, n);", 32, "GO(out, n)"),
        (
            "#define ARGS (out, n)",
            "child<<<1, 32>>> ARGS;",
            32,
            "child<<<1, 32>>> ARGS",
        ),
        (
            "#define CONFIG <<<1, 32>>>",
            "child CONFIG (out, n);",
            32,
            "child CONFIG (out, n)",
        ),
        (
            "#define CONFIG 1, 32",
            "child<<<CONFIG>>>(out, n);",
            32,
            "child<<<CONFIG>>>(out, n)",
        ),
        (
            r#"#define NAME(x) chi##x
#define GO(x) NAME(x)<<<1, 32>>>(out, n)"#,
            "GO(ld);",
            32,
            "GO(ld)",
        ),
        (
            "#define IF(c) if (c) {\n#define END(x) x; }",
            "IF(n) END((child<<<1, 32>>>(out, n)))",
            32,
            "child<<<1, 32>>>(out, n)",
        ),
        (
            "#define F G\n#define G(b) child<<<1, b>>>(out, n)",
            "F(32);",
            32,
            "F(32)",
        ),
        (
            "#define END ; }",
            "if (n) { child<<<1, 32>>>(out, n) END",
            32,
            "child<<<1, 32>>>(out, n)",
        ),
    ] {
        let program = Program::new(&parent(define, statement));
        let found = program.launches("parent");
        assert_eq!(
            found.len(),
            1,
            "{define}: {statement}: {:?}",
            program.body("parent").problems
        );
        assert_eq!(program.blocks("parent"), [block], "{define}");
        assert_eq!(program.text("parent", &found[0]), shown, "{define}");
        assert!(found[0].from_macro, "{define}");
        assert!(program.body("parent").problems.is_empty(), "{define}");
    }
    let program = Program::new(&parent("#define ID(x) x", "ID((child<<<1, 32>>>(out, n)));"));
    assert!(program.launches("parent")[0].from_macro);
    // The end of the statement is the macro's.
    let program = Program::new(&parent("#define DONE ; n = 1", "child<<<1, 32>>>(out, n) DONE;"));
    assert!(program.launches("parent")[0].from_macro);
    // Only its block size comes out of a macro.
    let program = Program::new(&parent("#define B 32", "child<<<1, B>>>(out, n);"));
    assert!(!program.launches("parent")[0].from_macro);
}

#[test]
fn macros_decide_levels() {
    let level = |define: &str, argument: &str| {
        let program = Program::new(&parent(define, &format!("child<<<1, 32>>>(out, {argument});")));
        program.launches("parent")[0].args[1].uniformity.level
    };
    assert_eq!(
        level("#define TID (blockIdx.x * blockDim.x + threadIdx.x)", "TID"),
        Level::Varying
    );
    assert_eq!(level("#define BID blockIdx.x", "BID + 1"), Level::Block);
    assert_eq!(level("#define TWICE(x) ((x) + (x))", "TWICE(n)"), Level::Grid);
    assert_eq!(level("#define CAT(a, b) a ## b", "CAT(block, Idx).x"), Level::Block);
    assert_eq!(level("#define N 3", "N"), Level::Constant);
    assert_eq!(level("#define SELF SELF", "SELF"), Level::Varying);
    assert_eq!(level("#define A B\n#define B A", "A"), Level::Varying);
    assert_eq!(
        level("#ifdef X\n#define T 1\n#else\n#define T threadIdx.x\n#endif", "T"),
        Level::Varying
    );
}

#[test]
fn checks_around_calls_are_followed() {
    let check = "#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf(\"%s:%d\\n\", __FILE__, __LINE__); return; } } while (0)";
    let program = Program::new(&parent(
        check,
        r#"cudaStream_t s;
 CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
 child<<<1, 32, 0, s>>>(out, n);"#,
    ));
    let facts = &program.launches("parent")[0];
    assert!(facts.loops.is_empty());
    assert!(program.body("parent").problems.is_empty());
    // A loop that is left stays a loop.
    let looped = Program::new(&parent("", "do { if (n) break; child<<<1, 32>>>(out, n); } while (0);"));
    assert_eq!(looped.launches("parent")[0].loops.len(), 1);
}

#[test]
fn conditionals_in_odd_places() {
    // Decided ones vanish, wherever they are.
    for (statements, expected) in [
        (
            r#"child<<<1,
#if ON
 32
#else
 64
#endif
>>>(out, n);"#,
            vec![32],
        ),
        (
            r#"#ifdef ON
 if (n)
#else
 while (n)
#endif
 child<<<1, 32>>>(out, n);"#,
            vec![32],
        ),
        (
            r#"#if OFF
 if (n) {
#endif
 child<<<1, 32>>>(out, n);
#if OFF
 }
#endif"#,
            vec![32],
        ),
        (
            r#"if (n) child<<<1, 32>>>(out, n);
#if ON
 else child<<<1, 64>>>(out, n);
#endif"#,
            vec![32, 64],
        ),
        (
            r#"#if OFF
 "unclosed
 don't {{{ <<<
#endif
 child<<<1, 32>>>(out, n);"#,
            vec![32],
        ),
    ] {
        let program = Program::new(&parent("#define ON 1\n#define OFF 0", statements));
        assert!(program.body("parent").problems.is_empty(), "{statements}");
        assert_eq!(program.blocks("parent"), expected, "{statements}");
    }
    let parameters = format!(
        r#"#define ON 1
{CHILD}__global__ void parent(int* out,
#if ON
 int n
#else
 long n
#endif
) {{ child<<<1, 32>>>(out, n); }}
"#
    );
    let program = Program::new(&parameters);
    assert_eq!(program.body("parent").params.len(), 2);
    let decided = program.function("parent").decided(program.host.db()).len();
    assert_eq!(decided, 1);
    // Undecided ones that cut are a problem, not a guess.
    let undecided = Program::new(&parent(
        "",
        r#"child<<<1,
#if ON
 32
#else
 64
#endif
>>>(out, n);"#,
    ));
    assert!(!undecided.body("parent").problems.is_empty());
}

#[test]
fn what_is_not_compiled_is_kept_in_mind() {
    let source = parent(
        "#define ON 1",
        r#"#if ON
 child<<<1, 32>>>(out, n);
#else
 child<<<2, 2>>>(out, n);
#endif"#,
    );
    let program = Program::new(&source);
    let parsed = parse(program.host.db(), program.file);
    let inactive = &parsed.masked().inactive;
    assert_eq!(inactive.len(), 1);
    assert!(inactive[0].text(&source).contains("child<<<2, 2>>>"));
    assert_eq!(parsed.masked().text.len(), source.len());
}

#[test]
fn broken_functions_hide_no_others() {
    for broken in [
        "int x = ;",
        "child<<<1, >>>(",
        "if (a { b(",
        "UNKNOWN x y z ( ;",
        "for (;;",
        "template <",
        "\"unclosed",
        "for (int i = 0; i < 3; ++i) {",
    ] {
        let text = format!(
            r#"{CHILD}__global__ void broken(int* out) {{
 {broken}
}}
struct S {{ int n; }};
__global__ void parent(int* out) {{ child<<<1, 32>>>(out, 1); }}
"#
        );
        let program = Program::new(&text);
        assert_eq!(program.blocks("parent"), [32], "{broken}");
        assert!(program.body("parent").problems.is_empty(), "{broken}");
        assert!(!program.body("broken").problems.is_empty(), "{broken}");
    }
}

#[test]
fn an_edit_of_one_macro_leaves_others_alone() {
    let text = format!(
        r#"#define A 1
#define B 2
{CHILD}__global__ void one(int* out) {{ child<<<A, 32>>>(out, 1); }}
__global__ void two(int* out) {{ child<<<B, 32>>>(out, 1); }}
"#
    );
    let mut program = Program::new(&text);
    let all = |program: &Program| (program.blocks("one"), program.blocks("two"));
    all(&program);
    let at = text.find("#define B 2").unwrap() as u32 + 10;
    let range = gridfuse_analysis::base::span::TextRange::new(at, at + 1);
    program.host.edit_file("/w/main.cu".as_ref(), range, "7");
    program.host.record_executions();
    all(&program);
    let executed = program.host.take_executions();
    let expanded = executed.iter().filter(|e| e.starts_with("function_macros")).count();
    assert!(expanded <= 3, "{executed:?}");
}

#[test]
fn what_the_program_gives_a_name_counts_where_no_command_is_known() {
    const DEFAULT: &str = "#ifndef SIZE\n#define SIZE 32\n#endif";
    let block = |before: &str| blocks(before, "    child<<<1, SIZE>>>(out, n);");
    assert_eq!(block(DEFAULT), [32]);
    assert_eq!(block(&format!("#define SIZE 64\n{DEFAULT}")), [64]);
    assert_eq!(
        block("#if !defined(SIZE)\n#define SIZE 96\n#define OTHER 1\n#endif"),
        [96]
    );
    // It is set where the other one isn't.
    assert_eq!(
        block("#ifdef FAST\n#define SIZE 64\n#endif\n#ifndef SIZE\n#define SIZE 32\n#endif"),
        [0]
    );
    // A header that isn't there may define it, but none of a library's.
    assert_eq!(block(&format!("#include \"config.h\"\n{DEFAULT}")), [0]);
    assert_eq!(block(&format!("#include <project/config.h>\n{DEFAULT}")), [0]);
    assert_eq!(
        block(&format!(
            "#include <cstdio>\n#include <cub/cub.cuh>\n#include \"cuda_runtime.h\"\n{DEFAULT}"
        )),
        [32]
    );
    // Names that libraries define.
    for name in ["M_SIZE", "INT_MAX", "__SIZE", "BLOCK_SIZE", "CUDA_SIZE"] {
        let text = DEFAULT.replace("SIZE", name);
        assert_eq!(
            blocks(&text, &format!("    child<<<1, {name}>>>(out, n);")),
            [0],
            "{name}"
        );
    }
    let defaulted = |program: &Program| preprocessed(program.host.db(), program.file).defaulted.clone();
    let text = parent(DEFAULT, "    child<<<1, SIZE>>>(out, n);");
    assert_eq!(defaulted(&Program::new(&text)), BTreeSet::from(["SIZE".to_owned()]));
    // A command line that is known says all.
    for (flags, size) in [(&["-DSIZE 64"][..], 64), (&[], 32), (&["-USIZE"], 32)] {
        let program = Program::with(&text, &[], Some(flags));
        assert_eq!(
            (program.blocks("parent"), defaulted(&program)),
            (vec![size], BTreeSet::new()),
            "{flags:?}"
        );
    }
    // A header by itself: who includes it may define the name before.
    let header = [("/w/sizes.cuh", DEFAULT)];
    let program = Program::with("#define SIZE 64\n#include \"sizes.cuh\"\n", &header, None);
    let db = program.host.db();
    let file = program.host.file("/w/sizes.cuh".as_ref()).expect("the header");
    assert!(preprocessed(db, file).defaulted.is_empty());
    let program = Program::with("#include \"sizes.cuh\"\n", &header, None);
    let file = program.host.file("/w/sizes.cuh".as_ref()).expect("the header");
    assert_eq!(preprocessed(program.host.db(), file).defaulted.len(), 1);
}

#[test]
fn settings_define_macros() {
    let text = parent(
        "#ifndef SIZE\n#define SIZE 32\n#endif",
        "    child<<<1, SIZE>>>(out, n);",
    );
    let mut program = Program::new(&text);
    let settings = Settings {
        defines: vec!["SIZE 128".to_owned()],
        ..Settings::default()
    };
    program
        .host
        .set_settings(BTreeMap::from([("/w".into(), Arc::new(settings))]));
    assert_eq!(program.blocks("parent"), [128]);
    assert!(preprocessed(program.host.db(), program.file).defaulted.is_empty());
}

#[test]
fn the_version_of_the_toolkit_is_a_current_one() {
    let launch = |condition: &str| {
        format!("#if {condition}\n    child<<<1, 32>>>(out, n);\n#else\n    child<<<1, 64>>>(out, n);\n#endif")
    };
    for (condition, expected) in [
        ("CUDART_VERSION >= 12000", vec![32]),
        ("__CUDACC_VER_MAJOR__ < 9", vec![64]),
        ("defined(CUDART_VERSION) && CUDART_VERSION < 11040", vec![64]),
        // Some current ones are older.
        ("CUDART_VERSION >= 12030", vec![32, 64]),
        ("__CUDACC_VER_MAJOR__ >= 13", vec![32, 64]),
    ] {
        assert_eq!(blocks("", &launch(condition)), expected, "{condition}");
    }
    assert_eq!(blocks("#define NEW (CUDART_VERSION >= 12000)", &launch("NEW")), [32]);
    // It is no number that a program could count on.
    assert_eq!(blocks("", "    child<<<1, CUDART_VERSION / 100>>>(out, n);"), [0]);
}

#[test]
fn directives_by_another_spelling_are_parsed() {
    for directive in [
        "%:undef A",
        "%:define A 8",
        " %: define A 8",
        "%:pragma once",
        "%:if 0\nint (;\n%:endif",
        "#\x0cundef A",
        " \x0b # \x0cdefine A 8",
        "#/**/undef A",
        "# /* again */ define A 8",
        "#/* over\n   two lines */ undef A",
        "/* first */ # /* ä */ undef A",
        "#\\\nundef A",
        "# \\\n define A 8",
        "%: /**/ undef A",
        "#/**/if 0\nint (;\n#\x0cendif",
    ] {
        let text = format!("#define A 1\n{directive}\nenum {{ kWide = 3 }};\n{CHILD}");
        let program = Program::new(&text);
        let db = program.host.db();
        assert!(!parse(db, program.file).tree().root_node().has_error(), "{directive}");
        assert_eq!(items(db, program.file).functions.len(), 1, "{directive}");
    }
}
