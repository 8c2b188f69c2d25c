//! Launches out of macros, which are written out before they are rewritten.

use super::{Rewritten, program, refuses, rewrite, rewrite_files};

/// The program that launches by what `define` says in its first line.
fn with(define: &str, launch: &str) -> String {
    format!("{define}\n{}", program(launch))
}

#[track_caller]
fn written(define: &str, launch: &str) -> Rewritten {
    rewrite("fire-and-forget", &with(define, launch))
}

const IN_NO_ORDER: &str = "0, cudaStreamFireAndForget>>>(out, begin, count);";

#[test]
fn a_launch_in_a_macro() {
    for (define, launch, wanted) in [
        ("#define GO child<<<1, 32>>>(out, begin, count)", "GO;", "1, 32"),
        ("#define GO child<<<1, 32>>>(out, begin, count);", "GO;", "1, 32"),
        (
            "#define RUN(kernel, n, ...) kernel<<<((n) + 31) / 32, 32>>>(__VA_ARGS__)",
            "RUN(child, count, out, begin, count);",
            "((count) + 31) / 32, 32",
        ),
        (
            "#define RUN(kernel, n, args...) \\\n    do { \\\n        kernel<<<((n) + 31) / 32, 32>>>(args); \\\n    } while (0)",
            "RUN(child, count, out, begin, count);",
            "((count) + 31) / 32, 32",
        ),
        (
            "#define BLOCKS(n) (((n) + 31) / 32)\n#define INNER(k, g, ...) k<<<g, 32>>>(__VA_ARGS__)\n#define RUN(k, n, ...) INNER(k, BLOCKS(n), __VA_ARGS__)",
            "RUN(child, count, out, begin, count);",
            "BLOCKS(count), 32",
        ),
        ("#define RUN(launch) launch", "RUN(CHILD(1));", "1, 32"),
    ] {
        let define = format!("#define CHILD(g) child<<<g, 32>>>(out, begin, count)\n{define}");
        written(&define, launch).has(&[&format!("child<<<{wanted}, {IN_NO_ORDER}")]);
    }
}

/// `do { … } while (0)` goes, and what stands in it stays one statement.
#[test]
fn statements_of_a_macro() {
    let define = "#define RUN(kernel, n, ...)                      \\\n    do {                                             \\\n        dim3 grid(((n) + 31) / 32);                  \\\n        kernel<<<grid, dim3(32)>>>(__VA_ARGS__);     \\\n    } while (0)";
    let own = written(define, "RUN(child, count, out, begin, count);");
    own.has(&["        dim3 grid(((count) + 31) / 32);\n        child<<<grid, dim3(32), 0, cudaStreamFireAndForget>>>(out, begin, count);"]);
    assert!(!own.text().contains("    RUN("), "{}", own.text());
    written(
        define,
        "if (count > 3) RUN(child, count, out, begin, count);\n    else out[v] = 1;",
    )
    .has(&[
        "if (count > 3) {\n",
        "        dim3 grid(((count) + 31) / 32);\n",
        "    }\n    else out[v] = 1;",
    ]);
    let braced = |more: &str| {
        let launch = format!("{more} {{ RUN(child, count, out, begin, count); }}");
        written(define, &launch).text().to_owned()
    };
    assert!(braced("if (count)").contains("if (count) { dim3 grid(((count) + 31) / 32);"));
    // A brace in a comment is none.
    let comment = written(
        define,
        "if (count) // {\n        RUN(child, count, out, begin, count);\n    // }",
    );
    comment.has(&["// {\n        {\n", "        }\n    // }"]);
    // A name of the loop's head can't be declared again in its block.
    let again = braced("for (int grid = 0; grid < 1; ++grid)");
    assert!(again.contains("++grid) { {\n"), "{again}");
    for head in ["for (int grid = 0; grid < 1; ++grid)", "if (int grid = count)"] {
        let below = written(define, &format!("{head} RUN(child, count, out, begin, count);"));
        below.has(&[&format!("{head} do {{ dim3 grid(")]);
    }
    let makes = define.replace("dim3 grid(", "enum { B = 3 }; dim3 grid(");
    let own = written(
        &makes,
        "for (int B = 0; B < 1; ++B) { RUN(child, count, out, begin, count); }",
    );
    own.has(&["++B) { {\n"]);
    let small = "#define RUN(n) do { if (n) child<<<1, 32>>>(out, begin, count); } while (0)";
    written(small, "if (v > 3) RUN(count);\n    else out[v] = 1;").has(&[
        "if (v > 3) {\n        if (count) child<<<1, 32, 0",
        "    }\n    else out[v] = 1;",
    ]);
    // What it declares ends with it.
    for declares in [
        "int ok = (child<<<1, 32>>>(out, begin, count), 1)",
        "int* ok = (child<<<1, 32>>>(out, begin, count), out)",
        "Timer ok((child<<<1, 32>>>(out, begin, count), 1))",
    ] {
        let define = format!("#define RUN() do {{ {declares}; }} while (0)");
        let text = with(&define, "RUN();");
        let own = rewrite_files("coarsen", &[("a.cu", &text)], &[])
            .or_else(|_| rewrite_files("fire-and-forget", &[("a.cu", &text)], &[]));
        let own = own.map(|own| own.text().to_owned());
        assert!(own.as_ref().map_or(true, |text| text.contains("    {\n")), "{own:?}");
    }
    // Only the launch that is asked about.
    let text = with(
        define,
        "$0RUN(child, count, out, begin, count);\n    RUN(child, begin, out, begin, count);",
    );
    let one = rewrite_files("threshold", &[("a.cu", &text)], &[]).expect("a rewrite");
    one.has(&["    RUN(child, begin, out, begin, count);"]);
    // All of them, where one arena serves all.
    rewrite("aggregate-block", &text.replace("$0", "")).has(&["dim3 grid(((begin) + 31) / 32);"]);
}

/// The host's launch gets an argument more.
#[test]
fn the_host_launches_in_a_macro() {
    let text = program("child<<<(count + 31) / 32, 32>>>(out, begin, count);");
    let at = text.find("parent<<<").expect("a launch");
    let end = at + text[at..].find(';').expect("its end");
    let launch = text[at..end].to_owned();
    let text = format!(
        "#define ALL(k) {}\n{}",
        launch.replacen("parent", "k", 1),
        text.replace(&launch, "ALL(parent)")
    );
    let own = rewrite("aggregate-block", &text);
    own.has(&["gridfuse::arena_for("]);
    assert!(!own.text().contains("ALL(parent)"), "{}", own.text());
}

#[test]
fn what_cannot_be_written_out() {
    for (define, launch) in [
        // What is pasted or quoted has no text of its own.
        (
            "#define RUN(k, n) chi##k<<<(n), 32>>>(out, begin, count)",
            "RUN(ld, 1);",
        ),
        (
            "#define RUN(k, n) k<<<(n), 32>>>(out, begin, count); printf(#k)",
            "RUN(child, 1);",
        ),
        // The macro would be expanded again.
        (
            "",
            "\n#define child child<<<1, 32>>>(out, begin, count)\n    ; child;\n#undef child",
        ),
        // One argument, which is two when the inner macro is reached.
        (
            "#define BOTH 1, 32\n#define INNER(g, b) child<<<g, b>>>(out, begin, count)\n#define RUN(both) INNER(both)",
            "RUN(BOTH);",
        ),
        // Which is which isn't known any more.
        (
            "#define RUN(n) child<<<(n), 32>>>(out, begin, count); child<<<(n), 64>>>(out, begin, count)",
            "RUN(1);",
        ),
        (
            "#define RUN(n) child<<<(n), 32>>>(out, begin, count)",
            "RUN(1 // one\n    );",
        ),
        (
            "#define RUN(n) child<<<(n), 32>>>(out, begin, count)",
            "RUN(1 /* one */);",
        ),
        (
            "#define RUN(n) do { child<<<(n), 32>>>(out, begin, count); } while (0)",
            "\n#pragma unroll\n    RUN(1);",
        ),
        (
            "#define RUN(n) do { child<<<(n), 32>>>(out, begin, count); } while (0)",
            "\n# pragma \\\n    unroll\n    RUN(1);",
        ),
        (
            "#define RUN(n) do { child<<<(n), 32>>>(out, begin, count); } while (0)",
            "_Pragma(\"unroll\") RUN(1);",
        ),
    ] {
        refuses(
            "fire-and-forget",
            &with(define, launch),
            "the launch comes out of a macro",
        );
    }
    for (define, launch) in [
        // Once, and each time.
        (
            "#define RUN(n) child<<<(n) - (n) + 1, 32>>>(out, begin, count)",
            "RUN(__COUNTER__);",
        ),
        (
            "#define RUN(n) do { int at = __LINE__; child<<<(n) + __LINE__ - at, 32>>>(out, begin, count); } while (0)",
            "RUN(1);",
        ),
        (
            "#define RUN(n) do { child<<<(n), 32>>>(out, begin, count); out[0] = __LINE__ * 2; } while (0)",
            "RUN(1);",
        ),
        (
            "#define PASTED(a, b) a##b\n#define PASTE(a, b) PASTED(a, b)\n#define OWN PASTE(n_, __LINE__)\n#define RUN(n) do { int OWN = n; child<<<OWN, 32>>>(out, begin, count); } while (0)",
            "RUN(1);",
        ),
        // A macro of the compiler's or of a header is expanded before it is quoted, and isn't where the inner macro is written.
        (
            "#include <climits>\n#define LENGTH(n) sizeof(#n)\n#define RUN(n) child<<<LENGTH(n), 32>>>(out, begin, count)",
            "RUN(CHAR_BIT);",
        ),
        (
            "#define QUOTE(n) #n\n#define LENGTH(n) sizeof(QUOTE(n))\n#define RUN(n) child<<<LENGTH(n), 32>>>(out, begin, count)",
            "RUN(CHAR_BIT);",
        ),
    ] {
        refuses(
            "fire-and-forget",
            &with(define, launch),
            "the launch comes out of a macro",
        );
    }
    let told =
        "#define RUN(n) do { child<<<(n), 32>>>(out, begin, count); if (v < 0) printf(\"%d\", __LINE__); } while (0)";
    written(told, "RUN(1);").has(&["        if (v < 0) printf(\"%d\", __LINE__);\n"]);
    // Another directive is none of the launch's, and macros that make a lot of each other are looked at once.
    written(
        "#define RUN(n) child<<<(n), 32>>>(out, begin, count)",
        "\n#undef OTHER\n    RUN(1);",
    );
    let twice = |n: u32| format!("#define M{n}(x) M{0}(x) + M{0}(x) * M{0}(x) - M{0}(x)\n", n - 1);
    let many: String = (1..40).map(twice).collect();
    let define = format!(
        "#define M0(x) x\n{many}#define RUN(n) do {{ if (v < 0) M39(v); child<<<(n), 32>>>(out, begin, count); }} while (0)"
    );
    let _ = rewrite_files("fire-and-forget", &[("a.cu", &with(&define, "RUN(1);"))], &[]);
    // Something leaves the loop that is none.
    let leaves = "#define RUN(n) do { if (count == 7) break; child<<<(n), 32>>>(out, begin, count); } while (0)";
    written(leaves, "RUN(1);").has(&["do { if (count == 7) break; child<<<(1), 32, 0", "} while (0);"]);
    let leaves = "#define STOP_IF(c) if (c) break\n#define RUN(n) do { STOP_IF(count == 7); child<<<(n), 32>>>(out, begin, count); } while (0)";
    written(leaves, "RUN(1);").has(&["do { STOP_IF(count == 7); child<<<(1), 32, 0", "} while (0);"]);
    // A macro of a header that isn't found may leave it.
    let unseen = "#include \"checks.h\"\n#define RUN(n) do { STOP_IF(count == 7); child<<<(n), 32>>>(out, begin, count); } while (0)";
    written(unseen, "RUN(1);").has(&["do { STOP_IF(count == 7); child<<<(1), 32, 0", "} while (0);"]);
}

/// How many elements a container of the standard library has can be asked for twice.
#[test]
fn the_size_of_a_container() {
    let text = program("child<<<(count + 31) / 32, 32>>>(out, begin, count);").replace(
        "const int* row, int n) {\n    parent<<<(n + 127)",
        "const int* row, const std::vector<int>& all) {\n    int n = 0;\n    parent<<<(all.size() + 127)",
    );
    assert!(text.contains("all.size() + 127"));
    rewrite("aggregate-block", &text).has(&["gridfuse::arena_for((all.size() + 127) / 128, 128"]);
    for (from, to) in [
        ("std::vector<int>&", "my::vector<int>&"),
        (
            "void run(",
            "namespace std { template <> struct vector<int> { int size() const; }; }\nvoid run(",
        ),
        (
            "void run(",
            "struct std { template <class T> struct vector { int size() const; }; };\nvoid run(",
        ),
        ("void run(", "namespace std = other;\nvoid run("),
        ("all.size()", "all.front()"),
    ] {
        refuses("aggregate-block", &text.replace(from, to), "calls or changes something");
    }
    rewrite("aggregate-block", &format!("using namespace std;\n{text}"));
}
