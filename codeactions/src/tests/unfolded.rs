//! Launches that come out of macros.

use super::fixes::fix;
use super::{program, refuses, rewrite};

const OUT_OF_A_MACRO: &str = "the launch comes out of a macro";

const SPREAD: &str = r#"#define SPREAD(kernel, count, ...)                   \
    do {                                             \
        dim3 threads_(64), blocks_(((count) + 63) / 64); \
        kernel<<<blocks_, threads_>>>(__VA_ARGS__);  \
        if (cudaPeekAtLastError() != cudaSuccess) __trap(); \
    } while (0)
"#;

/// A program with a macro in front of it.
fn with(defined: &str, launch: &str) -> String {
    format!("{defined}{}", program(launch))
}

/// The text with a place in the kernel `parent` marked.
fn in_parent(text: &str) -> String {
    text.replacen("if (v >= n) return;", "if (v >= n) $0return;", 1)
}

#[track_caller]
fn comes_back(id: &str, text: &str) {
    let there = rewrite(id, text);
    let (back, _) = fix("revert", &in_parent(there.text()), &[])
        .unwrap_or_else(|reasons| panic!("{id}: {reasons:?}\n{}", there.text()));
    assert_eq!(back, text, "{id}\n{}", there.text());
}

#[test]
fn statements_take_the_place_of_a_use() {
    rewrite(
        "aggregate-block",
        &with(SPREAD, "if (count > 0) SPREAD(child, count, out, begin, count);"),
    )
    .has(&[r#"    // was: if (count > 0) SPREAD(child, count, out, begin, count);
    if (count > 0) {
        dim3 threads_(64), blocks_((count + 63) / 64);
        childs.launch(blocks_, threads_, {begin, count});
        if (cudaPeekAtLastError() != cudaSuccess) __trap();
    }
"#]);
    rewrite(
        "threshold",
        &with(SPREAD, "if (count > 0) {\n        SPREAD(child, count, out, begin, count);\n    }"),
    )
    .has(&[
        "        // was: SPREAD(child, count, out, begin, count);\n        dim3 threads_(64), blocks_((count + 63) / 64);\n",
        "child_serial(blocks_, threads_, out, begin, count);",
        "child<<<blocks_, threads_>>>(out, begin, count);",
    ]);
}

#[test]
fn parts_of_statements() {
    let defined = "#define ON(count) <<<((count) + 31) / 32, 32>>>\n#define START(kernel, count) kernel ON(count)\n";
    rewrite(
        "aggregate-block",
        &with(defined, "START(child, count)(out, begin, count);"),
    )
    .has(&[
        "    // was: START(child, count)(out, begin, count);\n",
        "childs.launch((count + 31) / 32, 32, {begin, count});",
    ]);
    let object = "#define GO child<<<1, 32>>>(out, begin, count)\n";
    rewrite("aggregate-block", &with(object, "GO;")).has(&["// was: GO;", "childs.launch(1, 32, {begin, count});"]);
}

#[test]
fn uses_come_back() {
    for launch in [
        "if (count > 0) SPREAD(child, count, out, begin, count);",
        "if (count > 0) {\n        SPREAD(child, count, out, begin, count);\n    }",
        "if (count > 0) SPREAD(child, count, out, begin, count);   // Some.\n    else out[begin] = 1;",
        "switch (count) {\n    case 1: SPREAD(child, count, out, begin, count); break;\n    default: SPREAD(child, 7, out, begin, 7); break;\n    }",
        "{ SPREAD(child,\n             count, out,\n             begin, count); }",
    ] {
        for id in ["aggregate-block", "threshold", "serialize", "aggregate-grid"] {
            comes_back(id, &with(SPREAD, launch));
        }
    }
    let defined = "#define START(kernel, count) kernel<<<(count + 31) / 32, 32>>>\n";
    comes_back(
        "aggregate-block",
        &with(defined, "if (count > 0) START(child, count)(out, begin, count);"),
    );
}

#[test]
fn what_would_mean_something_else_stays() {
    for (defined, launch) in [
        // Its name or its arguments are spelled.
        (
            "#define GO(k) do { printf(#k); k<<<1, 32>>>(out, begin, count); } while (0)\n",
            "GO(child);",
        ),
        ("#define GO(k) k##ren<<<1, 32>>>(out, begin, count)\n", "GO(child);"),
        // It leaves its own loop.
        (
            "#define GO do { if (count < 9) break; child<<<1, 32>>>(out, begin, count); } while (0)\n",
            "GO;",
        ),
        // More than one statement, of which an `if` would take the first.
        ("#define GO dim3 g(1); child<<<g, 32>>>(out, begin, count)\n", "GO;"),
        // The loop goes on.
        (
            "#define GO do { child<<<1, 32>>>(out, begin, count); } while (--n)\n",
            "GO;",
        ),
        // Two launches.
        (
            "#define GO { child<<<1, 32>>>(out, begin, 1); child<<<1, 32>>>(out, begin, 2); }\n",
            "GO",
        ),
    ] {
        let text = with(defined, launch);
        refuses("aggregate-block", &text, "");
        refuses("threshold", &text, "");
    }
    let twice = with(
        SPREAD,
        "SPREAD(child, 3, out, begin, 3); SPREAD(child, 4, out, begin, 4);",
    );
    refuses("aggregate-block", &twice, OUT_OF_A_MACRO);
}

#[test]
fn parentheses_that_mean_something_stay() {
    let defined = "#define GO(a, b) child<<<(a) + 1, sizeof(b)>>>((int*)(out), (begin), (a) * 2)\n";
    rewrite("threshold", &with(defined, "GO(count - 1, count);"))
        .has(&["child<<<(count - 1) + 1, sizeof(count)>>>((int*)(out), (begin), (count - 1) * 2);"]);
}

#[test]
fn names_of_parameters_keep_their_meaning() {
    // In the function's own braces, a variable can't have a parameter's name.
    let text = r#"#define GO(n) do { int out_ = n; dim3 out(1); child<<<out, 32>>>(p, out_); } while (0)
__global__ void child(int* p, int k) { if (threadIdx.x < k) p[threadIdx.x] = k; }
__global__ void parent(int* p, int out) {
    GO(out);
}
void run(int* p) { parent<<<1, 32>>>(p, 3); }
"#;
    rewrite("serialize", text).has(&["    // was: GO(out);\n    {\n        int out_ = out;\n        dim3 out(1);\n"]);
}
