//! `skip-silent-stores`

use super::{program, refuses, rewrite, with_child};

const ID: &str = "skip-silent-stores";

const LAUNCH: &str = "if (count > 0) child<<<(count + 31) / 32, 32>>>(out, begin, count);";

const NONE: &str = "`child` has no store whose address and value depend on its arguments alone";

/// The program with a child of these parameters and with this code, behind the thread's number.
fn with(parameters: &str, code: &str) -> String {
    let child = format!(
        r#"struct Pair {{ int x, y; }};
typedef volatile int watched;
__device__ int total;

__global__ void child({parameters}) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {code}
}}
"#
    );
    with_child(&child, LAUNCH)
}

const PLAIN: &str = "int* out, int begin, int count";

#[test]
fn one_number_on_one_place() {
    for (parameters, code, looks) in [
        (
            PLAIN,
            "if (i < count) out[begin] = 1;",
            "if (i < count) if (out[begin] != 1) out[begin] = 1;  // only what changes\n",
        ),
        (
            PLAIN,
            "*out = begin + 1;",
            "if (*out != begin + 1) *out = begin + 1;  // only what changes\n",
        ),
        (
            PLAIN,
            "out[2 * (begin + 1)] = -count;   // the last one",
            "if (out[2 * (begin + 1)] != -count) out[2 * (begin + 1)] = -count; /* only what changes */   // the last one\n",
        ),
        (
            "bool* out, int begin, int count",
            "if (out[i]) { *out = true; }",
            "if (out[i]) { if (*out != true) *out = true; /* only what changes */ }",
        ),
        (
            "unsigned char* out, int begin, int count",
            "(*out) = 1;",
            "if ((*out) != 1) (*out) = 1;  // only what changes\n",
        ),
        (
            "unsigned* out, unsigned begin, int count",
            "for (int k = 0; k < i; ++k) out[count] = begin;",
            "for (int k = 0; k < i; ++k) if (out[count] != begin) out[count] = begin;  // only what changes\n",
        ),
        // Over two lines.
        (
            PLAIN,
            "out[begin]\n        = 1;",
            "if (out[begin] != 1) out[begin]\n        = 1;  // only what changes\n",
        ),
        (
            PLAIN,
            "if (i < count)\n        out[begin] = 1;\n    else {\n        out[count] = 2;\n    }",
            "    else {\n        if (out[count] != 2) out[count] = 2;  // only what changes\n    }",
        ),
    ] {
        let result = rewrite(ID, &with(parameters, code));
        result.has(&[looks]);
        assert!(result.assumes.is_empty(), "{code}: {:?}", result.assumes);
    }
}

#[test]
fn others_are_left() {
    for (parameters, code) in [
        // Another place or another number for each thread.
        (PLAIN, "out[i] = 1;"),
        (PLAIN, "out[begin] = i;"),
        (PLAIN, "out[begin] = out[count];"),
        (PLAIN, "begin = i; out[begin] = 1;"),
        (PLAIN, "out = out + i; *out = 1;"),
        // What it is compared with would be another number: 0.0 and -0.0 are equal.
        ("float* out, int begin, int count", "*out = 0;"),
        ("double* out, int begin, int count", "*out = begin;"),
        ("int* out, float begin, int count", "*out = begin;"),
        ("int* out, int begin, int count", "*out = 0.5f;"),
        // Compilers warn of such comparisons.
        ("unsigned* out, int begin, int count", "*out = begin;"),
        ("bool* out, int begin, int count", "*out = 2;"),
        // Each access counts.
        ("volatile int* out, int begin, int count", "*out = 1;"),
        ("watched* out, int begin, int count", "*out = 1;"),
        // Somebody looks already.
        (PLAIN, "if (*out != 1) *out = 1;"),
        (PLAIN, "if (1 != out[begin]) { out[begin] = 1; }"),
        // One thread.
        (PLAIN, "if (threadIdx.x == 0) *out = 1;"),
        (PLAIN, "if (i == 0) *out = 1;"),
        // The `else` would belong to the look.
        (PLAIN, "if (i < count) *out = 1; else out[i] = 2;"),
        (
            PLAIN,
            "if (i < count) for (int k = 0; k < i; ++k) *out = 1; else out[i] = 2;",
        ),
        // Of a class, a global variable, an update.
        ("Pair* out, int begin, int count", "out->x = 1;"),
        (PLAIN, "total = 1;"),
        (PLAIN, "*out += 1;"),
        (PLAIN, "int old = *out = 1;"),
        // In the head of a loop or a branch.
        (PLAIN, "for (*out = 1; i < count; i += 64) out[begin + i] = 2;"),
        (PLAIN, "if (*out = 1; i < count) out[begin + i] = 2;"),
        (PLAIN, "while (*out = 1) break;"),
        // Of an `if` whose `else` may be compiled or not.
        (
            PLAIN,
            "if (i < count) *out = 1;\n#ifdef SOMETIMES\n    else out[i] = 2;\n#endif",
        ),
    ] {
        refuses(ID, &with(parameters, code), NONE);
    }
    let by_macro = with(PLAIN, "MARK(1);").replace("__device__ int total;", "#define MARK(n) *out = n");
    refuses(ID, &by_macro, NONE);
}

/// Others may expect behind the store what was written before it, and a look is none.
#[test]
fn fences_are_refused() {
    for (code, why) in [
        (
            "if (i < count) { out[begin + i] = 1; __threadfence(); out[begin] = 1; }",
            "`child` has a fence",
        ),
        (
            "asm volatile(\"membar.gl;\" ::: \"memory\"); out[begin] = 1;",
            "may be a fence",
        ),
        ("unseen(out); out[begin] = 1;", "uses what may be a fence"),
    ] {
        let text = with(PLAIN, code).replace("__device__ int total;", "__device__ void unseen(int*);");
        refuses(ID, &text, why);
    }
}

/// A look is no read: what others write it finds, or stores itself.
#[test]
fn a_look_is_no_obstacle() {
    for code in [
        "if (i < count) { out[begin + i] = 1; if (*out != count) *out = count; }",
        "if (i < count) { out[begin + i] = 1; if (count != *out) { *out = count; } }",
    ] {
        let looks = rewrite("aggregate-block", &with(PLAIN, code));
        let plain = rewrite(
            "aggregate-block",
            &with(
                PLAIN,
                &code
                    .replace("if (*out != count) ", "")
                    .replace("if (count != *out) ", ""),
            ),
        );
        assert_eq!(looks.assumes.len(), plain.assumes.len(), "{code}: {:?}", looks.assumes);
    }
    // One that isn't followed by that store is one.
    for code in [
        "if (out[0] != count) out[0] = count + 1;",
        "if (out[0] != count) out[0] = n;",
        "if (out[0] != count) { out[0] = count; out[1] = out[0]; }",
    ] {
        let parent = with(PLAIN, code)
            .replace("(out, begin, count);", "(out, v, n + v);")
            .replace("= n;", "= begin;");
        refuses("aggregate-block", &parent, "aren't independent of each other");
    }
}

#[test]
fn optimize_looks_first() {
    let text = program(LAUNCH).replace("out[begin + i] = count;", "{ out[begin + i] = count; *out = n; }");
    let text = text.replace("*out = n;", "*out = 1;");
    rewrite("optimize", &text).has(&["if (*out != 1) *out = 1; /* only what changes */"]);
}
