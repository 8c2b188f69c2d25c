//! What another grid that goes on with a loop doesn't have: the parent's shared memory, its names, its place in front of other tails.

use super::fixes::fix;

fn program(top: &str, head: &str, body: &str) -> String {
    format!(
        r#"__global__ void step(int* d, int by) {{ d[threadIdx.x] += by; }}
__global__ void report(const int* d, int* out) {{ out[0] = d[0]; }}
{top}
{head}__global__ void parent(int* d, int* out, int n) {{
{body}
}}

void run(int* d, int* out, int n) {{ parent<<<1, 32>>>(d, out, n); }}
"#
    )
}

const WAIT: &str = "$0cudaDeviceSynchronize();";

fn looped(before: &str, rest: &str, behind: &str) -> String {
    format!(
        r#"    if (threadIdx.x == 0) {{
        for (int i = 0; i < n; ++i) {{
            {before}
            step<<<1, 32>>>(d, i);
            {WAIT}
            {rest}
        }}
    }}
    {behind}"#
    )
}

fn of(program: &str) -> Result<(String, Vec<String>), Vec<String>> {
    fix("replace-device-sync", program, &[])
}

#[track_caller]
fn refused(program: &str, reason: &str) {
    match of(program) {
        Ok((new, _)) => panic!("not refused:\n{new}"),
        Err(reasons) => assert!(reasons.iter().any(|r| r.contains(reason)), "{reasons:#?}"),
    }
}

#[test]
fn other_threads_fill_the_tail() {
    let tail = "report<<<1, 1, 0, cudaStreamTailLaunch>>>(d, out + 2);";
    let goes_into = "goes into the tail of the grid";
    for behind in [tail.to_owned(), format!("if (threadIdx.x == 7) {tail}")] {
        refused(&program("", "", &looped("", "out[1] += d[0];", &behind)), goes_into);
    }
    let memset = "cudaMemsetAsync(out, 0, 4, cudaStreamTailLaunch);";
    refused(&program("", "", &looped("", "out[1] += d[0];", memset)), goes_into);
    // The thread that waits does it behind the loop.
    let own =
        looped("", "out[1] += d[0];", "").replace("        }\n    }", &format!("        }}\n        {tail}\n    }}"));
    assert!(own.contains(tail));
    assert!(of(&program("", "", &own)).is_ok());
}

#[test]
fn what_outlives_an_iteration() {
    let lasting = "keeps its value from one iteration to the next";
    for variable in ["__shared__ int acc;", "static int acc;"] {
        let before = format!("{variable}\n            acc += i;");
        refused(&program("", "", &looped(&before, "out[1] += d[0];", "")), lasting);
        let rest = format!("{variable}\n            acc += d[0];\n            out[1] = acc;");
        refused(&program("", "", &looped("", &rest, "")), lasting);
    }
    // A function's may have been set by an earlier call.
    let slot = "__device__ int& slot() { __shared__ int kept; return kept; }\n__device__ int peek() { return slot(); }";
    let tail = format!(
        "    if (threadIdx.x == 0) {{\n        step<<<1, 32>>>(d, n);\n        {WAIT}\n        out[1] = d[0] + peek();\n    }}"
    );
    for body in [looped("", "out[1] += d[0] + peek();", ""), tail] {
        let (new, assumes) = of(&program(slot, "", &body)).unwrap_or_else(|reasons| panic!("{reasons:#?}"));
        assert!(
            assumes
                .iter()
                .any(|a| a.contains("is written before it is read in each call")),
            "{new}\n{assumes:?}"
        );
    }
}

#[test]
fn a_macro_names_a_variable_of_the_loop() {
    for global in ["", "__device__ int delta = 100;\n"] {
        let top = format!("{global}#define DELTA (delta * d[0])");
        let body = looped("int delta = i + 1;", "d[40] += DELTA;", "");
        match of(&program(&top, "", &body)) {
            Ok((new, _)) => assert!(new.contains("int delta, ") || new.contains(", int delta"), "{new}"),
            Err(reasons) => assert!(!reasons.is_empty()),
        }
    }
}

#[test]
fn a_variable_hides_a_type() {
    for (ty, behind) in [
        ("int", "Pair p = {1, 2, 3};\n        out[2] = p.b;"),
        ("long long", "out[3] = sizeof(Pair);"),
    ] {
        let body = format!(
            r#"    if (threadIdx.x == 0) {{
        {{
            {ty} Pair = 0;
            for (int i = 0; i < n; ++i) {{
                step<<<1, 32>>>(d, 1);
                {WAIT}
                Pair += d[0];
            }}
            out[1] = (int)Pair;
        }}
        {behind}
    }}"#
        );
        refused(
            &program("struct Pair { int a, b, c; };", "", &body),
            "several variables are named `Pair`",
        );
    }
}

#[test]
fn a_template_with_defaults_is_declared_once() {
    let head = "template <int K = 2>\n";
    let again = "out[1] += d[0] + K;\n            if (d[0] == 1) parent<K><<<1, 32>>>(d, out, n - 1);";
    let text = program("", head, &looped("", again, "")).replace("{ parent<<<", "{ parent<2><<<");
    refused(&text, "which can't be declared before");
}
