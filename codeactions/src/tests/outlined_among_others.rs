//! `outline-iteration`: what else of the program takes part in the loop, or in what is generated for it. Programs of which it once made
//! others, by class.

use super::fixes::fix_beside;
use super::outline_iteration::{around, around_beside, outlined, refused, with};

#[track_caller]
fn assumes(text: &str, what: &str, expected: bool) {
    let assumes = outlined(text, &[]);
    assert_eq!(
        assumes.iter().any(|a| a.contains(what)),
        expected,
        "{assumes:#?}\n{text}"
    );
}

/// A program with declarations in front of its loop.
fn behind(declared: &str, statements: &str) -> String {
    around_beside(
        "void keep_elsewhere(int* value);\nvoid read(int* value) { *value = 3; }",
        statements,
    )
    .replace("$0while", &format!("{declared}\n    $0while"))
}

/// Whoever has the address of a variable may change it while the loop runs.
#[test]
fn addresses_that_are_kept() {
    let stop = "if (stop) break;";
    for (declared, kept) in [
        ("int stop = 0;", false),
        ("int stop; read(&stop);", false),
        ("int stop; scanf(\"%d\", &stop);", false),
        ("int stop = 0; int* kept = &stop;", true),
        ("int stop = 0; keep_elsewhere(&stop);", true),
        ("int stop = 0; auto set = [&stop] { stop = 1; };", true),
        ("int stop = 0; auto get = [stop] { return stop; };", false),
    ] {
        assumes(&behind(declared, stop), "only the loop changes `stop`", kept);
    }
    let pins = "void pin(int* value) { cudaHostRegister(value, sizeof(int), 0); }";
    for (beside, kept) in [(pins, true), ("void pin(int* value) {}", false)] {
        let text = around_beside(beside, stop).replace("$0while", "int stop = 0; pin(&stop);\n    $0while");
        assumes(&text, "only the loop changes `stop`", kept);
    }
    let called = behind("int stop = 0; cudaLaunchHostFunc(stream, set, &stop);", stop);
    refused(&called, "is changed by a function that the stream calls");
    let mark = "__global__ void mark(int* where) { *where = 1; }\n";
    let given = around_beside(mark, "mark<<<1, 128>>>(place); if (stop) break;")
        .replace("$0while", "int stop = 0; int* place = &stop;\n    $0while");
    refused(&given, "is memory of the host's that a kernel gets");
}

/// Pragmas are about the code that they stand at.
#[test]
fn pragmas_of_the_host() {
    let in_loop = "in the loop is about code of the host";
    for directive in [
        "#pragma omp barrier",
        "#pragma unroll(n)",
        "_Pragma(\"omp barrier\")",
        "#undef SIZE",
        "#define SIZE 4",
    ] {
        refused(&around(&format!("\n{directive}\n")), in_loop);
    }
    let region = around("")
        .replace("$0while", "#pragma omp parallel\n    { $0while")
        .replace("return", "} return");
    refused(&region, "a pragma is about what stands around the loop");
    for pragma in ["#pragma omp declare simd", "# pragma GCC optimize(\"O2\")"] {
        let above = around("").replace("int search(", &format!("{pragma}\nint search("));
        outlined(&above, &[&format!("}}\n\n{pragma}\nint search(")]);
    }
    let once = format!(
        "#pragma once\n{}",
        around("").replace("#include <cstdio>\n#include <utility>\n", "")
    );
    assert!(outlined(&once, &["#pragma once\n"]).is_empty() || once.starts_with("#pragma once"));
}

/// Streams that nothing in sight creates.
#[test]
fn streams_out_of_sight() {
    let ends = "the loop ends without the work of other streams";
    let program = |beside: &str| {
        with(beside, "$0while (h) { relax<<<n, n>>>(next, dist, flag, level, n); level++; cudaMemcpy(&h, flag, 4, cudaMemcpyDeviceToHost); }")
            .replace(", cudaStream_t stream", "")
    };
    assumes(&program(""), ends, false);
    assumes(&program("inline void others() { CUstream s; }"), ends, true);
    assumes(&program("void others();"), ends, true);
    assumes(&program("void others();\nvoid others() {}"), ends, false);
    let elsewhere = fix_beside(
        &[("b.cu", "void others() {}")],
        "outline-iteration",
        &program("void others();"),
        &[],
    );
    assert!(elsewhere.is_ok_and(|(_, assumes)| assumes.iter().any(|a| a.contains(ends))));
}

/// A loop waits in each round only where there is a round, and only in calls that wait.
#[test]
fn waits_where_no_round_comes() {
    let may_wait = "the host may wait for the loop";
    let program = |declared: &str, head: &str, copy: &str| {
        with(
            "",
            &format!("{declared}\n    $0{head} {{ relax<<<n, n>>>(next, dist, flag, level, n); {copy} level++; }}"),
        )
    };
    let load = "cudaMemcpy(&h, flag, sizeof(int), cudaMemcpyDeviceToHost);";
    for (declared, head, certain) in [
        ("", "while (h)", true),
        ("h = 0;", "while (h)", false),
        ("h = n;", "while (h)", false),
        ("h = 1; read(&h);", "while (h)", false),
        ("if (n) h = 0;", "while (h)", false),
        ("unsigned char more = 256;", "while (more)", false),
        ("unsigned more = -1;", "while (more < 1)", false),
        ("unsigned more = 0;", "while (more > -1)", false),
        ("static int more = 1;", "while (more)", false),
        ("h = 1; again: level++;", "while (h)", false),
        ("bool more = 2;", "while (more == 2)", false),
        ("bool done = false;", "while (!done)", true),
        ("", "while (h && level < 8)", true),
        ("", "while (h && level > 8)", false),
        ("", "for (int r = 0; r < 4; ++r)", true),
        ("", "for (int r = 0; r < n; ++r)", false),
    ] {
        assumes(&program(declared, head, load), may_wait, !certain);
    }
    let left = format!("if (level == 3) {{ level++; continue; }} {load}");
    assumes(&program("", "for (int r = 0; r < 4; ++r)", &left), may_wait, true);
    let within = "cudaMemcpy(other, flag, sizeof(int), cudaMemcpyDeviceToDevice);";
    assumes(&program("", "for (int r = 0; r < 4; ++r)", within), may_wait, true);
}

/// CUDA's types, where the program means something else by their names.
#[test]
fn names_of_cudas_types() {
    for beside in [
        "namespace sim { struct uint3 { int a; }; }",
        "namespace sim { using dim3 = int; }",
        "namespace sim { enum Kinds { uint3, other }; }",
        "namespace sim { inline int uint3(int a) { return a; } }",
        "namespace sim { int dim3; }",
        "#define uint3 my_uint3",
    ] {
        refused(
            &around_beside(beside, ""),
            "of its own, and generated code needs CUDA's",
        );
    }
    let rounds = outlined(
        &around_beside("#define rounds 4", ""),
        &["gridfuse::Rounds<relax_state> grid_rounds,"],
    );
    assert!(!rounds.is_empty());
    outlined(
        &around_beside("inline uint3 first() { return uint3{1, 2, 3}; }", ""),
        &[],
    );
}

/// Sizes of blocks by variables of the program.
#[test]
fn sizes_by_variables_of_the_program() {
    let program = |beside: &str, size: &str| around_beside(beside, "").replace(", 128>>>", &format!(", {size}>>>"));
    for (beside, size) in [
        ("struct C { int& t; }; C cfg{g};", "cfg.t"),
        ("struct C { operator int() const; }; C cfg;", "32 * cfg"),
        ("int* cfg;", "*cfg"),
    ] {
        refused(&program(beside, size), "is read from memory in each round");
    }
    outlined(&program("struct C { int t; }; C cfg;", "cfg.t"), &[]);
    outlined(&program("int threads = 64;", "threads"), &[]);
    let reference = program("int& threads = other_threads;", "threads");
    assumes(&reference, "nothing in the loop changes `threads`", true);
}

/// Memory that the host and its kernels share: what a kernel gets it needn't use.
#[test]
fn pointers_that_kernels_get() {
    let text =
        around("if (level > *other) break;\n        relax<<<(n + 127) / 128, 128>>>(next, other, flag, level, n);");
    assumes(
        &text,
        "`other` points to memory that the host and the device can use",
        true,
    );
    let allocated =
        around("if (level > *own) break;\n        relax<<<(n + 127) / 128, 128>>>(next, own, flag, level, n);")
            .replace("$0while", "int* own; cudaMallocManaged(&own, 4);\n    $0while");
    assumes(
        &allocated,
        "points to memory that the host and the device can use",
        false,
    );
    let maybe = "__global__ void maybe(int* p) { if (p) *p = 1; }\n__global__ void sure(int* p) { *p = 1; }";
    for (kernel, asks) in [("maybe", true), ("sure", false)] {
        let text = around_beside(
            maybe,
            &format!("cudaMemset(other, 0, 4);\n        {kernel}<<<1, 128>>>(other);"),
        );
        assumes(&text, "`other` points to memory of the device", asks);
    }
}

/// `long double` is another type to the device, also of a constant; so is what only the device's compiler knows.
#[test]
fn constants_that_the_device_has_otherwise() {
    let text = around_beside("const long double kTol = 0.1L;", "if (level > kTol) break;");
    refused(&text, "`kTol`");
    let beside = "#ifdef __CUDA_ARCH_FEAT_SM90_ALL\nenum { kMost = 1 };\n#else\nenum { kMost = 3 };\n#endif";
    refused(&around_beside(beside, "if (level > kMost) break;"), "`kMost`");
}

/// A loop of another file may get a kernel of the same name.
#[test]
fn kernels_of_one_name_in_several_files() {
    let other = "namespace other { __global__ void relax(float* x) { x[0] = 1; } }";
    for (others, named) in [
        (vec![("b.cu", other)], "static __global__ void a_relax_rounds("),
        (vec![], "__global__ void relax_rounds("),
    ] {
        let Ok((new, _)) = fix_beside(&others, "outline-iteration", &around(""), &[]) else {
            panic!("refused");
        };
        assert!(new.lines().any(|line| line.starts_with(named)), "{new}");
    }
}
