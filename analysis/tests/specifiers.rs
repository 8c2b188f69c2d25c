//! Kernels whose `__global__` comes out of a macro.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::parse::parse;
use gridfuse_analysis::facts::launch::{Child, launches};
use gridfuse_analysis::hir::body;
use gridfuse_analysis::hir::items::{FunctionItem, Signature, items};
use gridfuse_analysis::host::Host;

struct Program {
    host: Host,
    file: SourceFile,
}

impl Program {
    /// A kernel `child` whose head is given, launched by another one.
    fn new(defines: &str, head: &str, headers: &[(&str, &str)]) -> Program {
        let mut host = Host::new();
        for (path, text) in headers {
            host.set_file(path.as_ref(), *text);
        }
        let text = format!(
            r#"{defines}
{head} {{ out[n] = 1; }}
int between;
__global__ void parent(int* out, int n) {{ child<<<1, 32>>>(out, n); }}
"#
        );
        let file = host.set_file("/w/main.cu".as_ref(), text);
        Program { host, file }
    }

    fn find(&self, name: &str) -> Option<FunctionItem<'_>> {
        let db = self.host.db();
        let all = &items(db, self.file).functions;
        all.iter().copied().find(|f| f.name(db) == name && f.has_body(db))
    }

    fn child(&self) -> &Signature {
        self.find("child").expect("the child").signature(self.host.db())
    }

    /// The launch's kernel is the child.
    fn is_known(&self) -> bool {
        let db = self.host.db();
        let parent = self.find("parent").expect("the parent");
        let all = launches(db, parent);
        assert_eq!(all.len(), 1);
        matches!(all[0].child, Child::Kernel(child) if Some(child) == self.find("child"))
    }
}

const PARAMETERS: &str = "child(int* out, int n)";

#[test]
fn macros_that_make_kernels() {
    for (defines, head) in [
        ("#define KERNEL __global__ void", "KERNEL child(int* out, int n)"),
        ("#define KERNEL __global__", "KERNEL void child(int* out, int n)"),
        ("#define KERNEL __global__", "void KERNEL child(int* out, int n)"),
        ("#define K __global__ void", "K child(int* out, int n)"),
        (
            "#define KERNEL \\\n  __global__ \\\n  void",
            "KERNEL\nchild(int* out, int n)",
        ),
        (
            "#define KERNEL /* a */ __global__ void // b",
            "KERNEL child(int* out, int n)",
        ),
        ("#  define\tKERNEL\t__global__ void", "KERNEL child(int* out, int n)"),
        (
            "#define A __global__\n#define B A void\n#define KERNEL B",
            "KERNEL child(int* out, int n)",
        ),
        // In the other order: what a macro's text means is asked where it is used.
        (
            "#define KERNEL B\n#define B A void\n#define A __global__",
            "KERNEL child(int* out, int n)",
        ),
        (
            r#"#define HIDDEN __attribute__((visibility("hidden")))
#define CUB_DETAIL_KERNEL_ATTRIBUTES HIDDEN __global__"#,
            "CUB_DETAIL_KERNEL_ATTRIBUTES void child(int* out, int n)",
        ),
        (
            r#"#define KERNEL __global__ void
#define BOUNDS(n) __launch_bounds__(n, 2)"#,
            "KERNEL BOUNDS(256) child(int* out, int n)",
        ),
        (
            "#define KERNEL(n) __global__ void __launch_bounds__(n)",
            "KERNEL(256) child(int* out, int n)",
        ),
        (
            "#define KERNEL extern \"C\" __global__ void",
            "KERNEL child(int* out, int n)",
        ),
        (
            "#define KERNEL __global__ void",
            "extern \"C\" KERNEL child(int* out, int n)",
        ),
        (
            "#define KERNEL __global__ void",
            "static inline KERNEL child(int* out, int n)",
        ),
        (
            "#define KERNEL static __global__ void",
            "KERNEL __launch_bounds__(128, 2, 1) child(int* out, int n)",
        ),
        (
            "#define KERNEL __global__ void",
            "template <class T> KERNEL child(T* out, int n)",
        ),
        (
            "#define KERNEL __global__ void",
            "[[maybe_unused]] KERNEL child(int* out, int n)",
        ),
        (
            "#define KERNEL [[maybe_unused]] __global__",
            "KERNEL void child(int* out, int n)",
        ),
        (
            "#define KERNEL __global__ void",
            "__attribute__((used)) KERNEL child(int* out, int n)",
        ),
        (
            "#define DEFINE(name) __global__ void name",
            "DEFINE(child)(int* out, int n)",
        ),
        ("#define K(name) __global__ void name", "K(child)(int* out, int n)"),
        (
            "#define SIGNATURE(x) __global__ void x",
            "SIGNATURE(child(int* out, int n))",
        ),
    ] {
        let program = Program::new(defines, head, &[]);
        let signature = program.child();
        assert!(signature.kernel && !signature.host, "{defines}\n{head}");
        assert_eq!(signature.uncertain, None, "{defines}\n{head}");
        assert!(program.is_known(), "{defines}\n{head}");
        let db = program.host.db();
        let text = program.file.text(db);
        let child = program.find("child").unwrap();
        let name = signature.name_span.shift(child.start(db));
        assert_eq!(name.text(&text), "child", "{defines}\n{head}");
        let params = signature.params_span.shift(child.start(db)).text(&text).to_owned();
        assert!(params.ends_with("out, int n)"), "{params}");
        assert!(body(db, child).problems.is_empty(), "{defines}\n{head}");
        assert_eq!(body(db, child).params.len(), 2);
        assert_eq!(parse(db, program.file).masked().text.len(), text.len());
    }
}

#[test]
fn what_else_the_macro_says() {
    let of = |defines: &str, head: &str| {
        let program = Program::new(defines, head, &[]);
        let signature = program.child();
        (
            signature.extern_c,
            signature.is_static,
            signature.launch_bounds.is_some(),
        )
    };
    let kernel = format!("KERNEL {PARAMETERS}");
    assert_eq!(
        of("#define KERNEL extern \"C\" __global__ void", &kernel),
        (true, false, false)
    );
    assert_eq!(
        of("#define KERNEL static __global__ void", &kernel),
        (false, true, false)
    );
    assert_eq!(
        of("#define KERNEL __global__ void __launch_bounds__(64)", &kernel),
        (false, false, true)
    );
    assert_eq!(of("#define KERNEL __global__ void", &kernel), (false, false, false));
}

#[test]
fn macros_of_headers() {
    let headers = [
        ("/w/config.h", "#pragma once\n#define GLOBAL __global__\n"),
        (
            "/w/kernels.h",
            "#pragma once\n#include \"config.h\"\n#define KERNEL GLOBAL void\n",
        ),
    ];
    let program = Program::new("#include \"kernels.h\"", "KERNEL child(int* out, int n)", &headers);
    assert!(program.is_known());
    assert_eq!(program.child().uncertain, None);
    // Before it is included it means nothing.
    let early = format!("KERNEL {PARAMETERS} {{ out[n] = 2; }}\n#include \"kernels.h\"");
    let program = Program::new(&early, "__global__ void other(int* out, int n)", &headers);
    assert!(!program.is_known());
    // A header that relies on its includer: known, but not for certain.
    let mut host = Host::new();
    let text = format!("KERNEL {PARAMETERS} {{ out[n] = 1; }}\n");
    let header = host.set_file("/w/child.cuh".as_ref(), text);
    host.set_file(
        "/w/main.cu".as_ref(),
        "#define KERNEL __global__ void\n#include \"child.cuh\"\n",
    );
    let db = host.db();
    let child = items(db, header).functions[0].signature(db);
    assert!(child.kernel && child.uncertain.is_some());
}

#[test]
fn what_depends_on_the_compiler() {
    for defines in [
        r#"#ifdef TUNED
#define KERNEL __global__ void __launch_bounds__(128)
#else
#define KERNEL __global__ void
#endif"#,
        "#ifdef GPU\n#define KERNEL __global__ void\n#else\n#define KERNEL void\n#endif",
        r#"#ifdef _MSC_VER
#define HIDDEN
#else
#define HIDDEN __attribute__((visibility("hidden")))
#endif
#define KERNEL HIDDEN __global__ void"#,
    ] {
        let program = Program::new(defines, "KERNEL child(int* out, int n)", &[]);
        assert!(program.child().kernel, "{defines}");
        assert!(program.child().uncertain.is_some(), "{defines}");
        assert!(program.is_known(), "{defines}");
    }
    // What the program gives a name counts.
    let default = "#ifndef KERNEL\n#define KERNEL __global__ void\n#endif";
    let program = Program::new(default, "KERNEL child(int* out, int n)", &[]);
    assert!(program.child().kernel && program.child().uncertain.is_none());
    // nvcc compiles it, so this is decided.
    let decided = "#ifdef __CUDACC__\n#define KERNEL __global__ void\n#else\n#define KERNEL void\n#endif";
    let program = Program::new(decided, "KERNEL child(int* out, int n)", &[]);
    assert!(program.child().kernel && program.child().uncertain.is_none());
}

#[test]
fn what_is_no_kernel() {
    for (defines, head) in [
        ("", "KERNEL child(int* out, int n)"),
        ("", "KERNEL void child(int* out, int n)"),
        ("#define KERNEL void", "KERNEL child(int* out, int n)"),
        (
            "#define KERNEL __global__ void\n#undef KERNEL",
            "KERNEL child(int* out, int n)",
        ),
        ("#define KERNEL __device__ void", "KERNEL child(int* out, int n)"),
        ("#define KERNEL KERNEL", "KERNEL child(int* out, int n)"),
        ("#define KERNEL A\n#define A KERNEL", "KERNEL child(int* out, int n)"),
        ("#define KERNEL \"__global__\"", "KERNEL child(int* out, int n)"),
        ("// #define KERNEL __global__ void", "KERNEL child(int* out, int n)"),
        (
            "#if 0\n#define KERNEL __global__ void\n#endif",
            "KERNEL child(int* out, int n)",
        ),
        ("#define OTHER __global__ void", "void child(int* out, int n)"),
    ] {
        let program = Program::new(defines, head, &[]);
        assert!(!program.is_known(), "{defines}\n{head}");
        if let Some(child) = program.find("child") {
            assert!(!child.signature(program.host.db()).kernel, "{defines}\n{head}");
        }
    }
}

#[test]
fn odd_macros() {
    for (defines, head) in [
        ("#define KERNEL(", "KERNEL(child(int* out, int n)"),
        (
            "#define KERNEL(a, b) __global__ void a b",
            "KERNEL(child, (int* out, int n))",
        ),
        ("#define KERNEL(a) __global__ void a", "KERNEL(child"),
        ("#define KERNEL __global__ void (", "KERNEL child(int* out, int n)"),
        (
            "#define KERNEL template <class T> __global__ void",
            "KERNEL child(T* out, int n)",
        ),
        ("#define KERNEL __global__ void k() {}", "KERNEL child(int* out, int n)"),
        ("#define KERNEL __global__ ## void", "KERNEL child(int* out, int n)"),
        (
            "#define KERNEL(...) __global__ __VA_ARGS__",
            "KERNEL(void child(int* out, int n))",
        ),
        (
            "#define KERNEL(x) x __global__ x",
            "KERNEL(void) child(int* out, int n)",
        ),
        ("#define é __global__ void", "é child(int* out, int n)"),
        (
            "#define KERNEL __global__ void\n#define child KERNEL",
            "child child(int* out, int n)",
        ),
    ] {
        let program = Program::new(defines, head, &[]);
        let db = program.host.db();
        for function in &items(db, program.file).functions {
            let _ = (body(db, *function), launches(db, *function));
        }
        let text = program.file.text(db);
        let masked = parse(db, program.file).masked().text.clone();
        assert_eq!(masked.len(), text.len());
        assert!(
            program.find("parent").is_some() || !head.ends_with(')'),
            "{defines}\n{head}"
        );
    }
}

#[test]
fn variables_and_attributes() {
    let text = r#"#define GPU_VARIABLE __device__
#define HD __host__ __device__
GPU_VARIABLE int counter;
[[nodiscard]] __device__ __host__ int f() { return 1; }
__global__ void k(int* p) { auto g = [=] HD (int i) { return i; }; p[0] = g(f()); }
"#;
    let mut host = Host::new();
    let file = host.set_file("/w/a.cu".as_ref(), text);
    let db = host.db();
    let all = items(db, file);
    assert!(all.globals.iter().any(|g| g.name == "counter" && g.device));
    let f = all.functions.iter().find(|f| f.name(db) == "f").unwrap().signature(db);
    assert!(f.device && f.host);
    let k = all.functions.iter().find(|f| f.name(db) == "k").unwrap();
    assert!(body(db, *k).problems.is_empty());
}

#[test]
fn an_edit_of_the_macro_is_noticed() {
    let mut program = Program::new("#define KERNEL __global__ void", "KERNEL child(int* out, int n)", &[]);
    assert!(program.is_known());
    let edit = |program: &mut Program, from: &str, to: &str| {
        let text = program.file.text(program.host.db());
        let at = text.find(from).unwrap() as u32;
        let range = gridfuse_analysis::base::span::TextRange::new(at, at + from.len() as u32);
        program.host.edit_file("/w/main.cu".as_ref(), range, to);
    };
    edit(&mut program, "__global__", "__device__");
    assert!(!program.is_known());
    edit(&mut program, "__device__", "__global__");
    assert!(program.is_known());
}

#[test]
fn macros_without_a_semicolon_in_front() {
    let define = "#define CONSTANT(name) __constant__ int name;\nCONSTANT(k)";
    for head in [
        "__global__ void",
        "static __global__ void",
        "__global__ __launch_bounds__(64) void",
    ] {
        let program = Program::new(define, &format!("{head} {PARAMETERS}"), &[]);
        let child = program.child();
        assert!(child.kernel && !child.host, "{head}");
        assert!(program.is_known(), "{head}");
    }
    let program = Program::new(define, &format!("__device__ void {PARAMETERS}"), &[]);
    assert!(program.child().device && !program.child().kernel);
}
