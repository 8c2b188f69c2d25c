//! `replace-device-sync` where the error of the wait is looked at, where the thread has streams of its own, and where what follows
//! needs addresses.

use super::fixes::fix;

const ID: &str = "replace-device-sync";

/// A child that changes its row, and a kernel with this body that one thread runs, or as many as `shape` says.
pub(super) fn program(body: &str, shape: &str) -> String {
    format!(
        r#"__global__ void child(int* d, int k) {{ d[threadIdx.x] += k; }}

__global__ void parent(int* data, int* out, int** box, int n) {{
{body}
}}

void run(int* data, int* out, int** box, int n) {{ parent<<<{shape}>>>(data, out, box, n); }}
"#
    )
}

#[track_caller]
pub(super) fn becomes(text: &str, pieces: &[&str]) -> Vec<String> {
    let (new, assumes) = fix(ID, text, &[]).unwrap_or_else(|reasons| panic!("refused: {reasons:#?}"));
    for piece in pieces {
        assert!(new.contains(piece), "no\n{piece}\nin\n{new}");
    }
    assumes
}

#[track_caller]
pub(super) fn refused(text: &str, reason: &str) {
    match fix(ID, text, &[]) {
        Ok((new, _)) => panic!("not refused:\n{new}"),
        Err(reasons) => assert!(reasons.iter().any(|r| r.contains(reason)), "{reasons:#?}"),
    }
}

fn checked(check: &str) -> String {
    program(
        &format!("    child<<<1, 32>>>(data, n);\n    {check}\n    out[1] = data[1];"),
        "1, 1",
    )
}

#[test]
fn the_look_at_the_error_stays() {
    for (check, stays) in [
        (
            "if ($0cudaDeviceSynchronize() != cudaSuccess) return;",
            "    if (cudaPeekAtLastError() != cudaSuccess) return;\n    parent_after_child<<<",
        ),
        (
            "cudaError_t e = $0cudaDeviceSynchronize(); if (e) { out[0] = -1; return; }",
            "    cudaError_t e = cudaPeekAtLastError(); if (e) { out[0] = -1; return; }\n    parent_after_child<<<",
        ),
        (
            "if (cudaSuccess != $0cudaDeviceSynchronize()) { out[0] = -1; }",
            "    if (cudaSuccess != cudaPeekAtLastError()) { out[0] = -1; }\n    parent_after_child<<<",
        ),
    ] {
        let assumes = becomes(&checked(check), &[stays]);
        assert!(
            assumes.iter().any(|a| a.contains("no CUDA call of `parent` fails")),
            "{assumes:?}"
        );
    }
}

#[test]
fn a_loop_looks_at_the_error_in_both_kernels() {
    let text = program(
        r#"    for (int k = 0; k < n; ++k) {
        child<<<1, 32>>>(data, k);
        if ($0cudaDeviceSynchronize() != cudaSuccess) break;
        out[k] = data[k];
    }"#,
        "1, 1",
    );
    let check = "if (cudaPeekAtLastError() != cudaSuccess) break;";
    let (new, _) = fix(ID, &text, &[]).unwrap_or_else(|reasons| panic!("refused: {reasons:#?}"));
    assert_eq!(new.matches(check).count(), 2, "{new}");
    assert!(!new.contains("cudaDeviceSynchronize"), "{new}");
}

#[test]
fn what_is_no_look_at_the_error() {
    let no = "looks at its error and does nothing where there is none";
    refused(
        &checked("if ($0cudaDeviceSynchronize() == cudaSuccess) out[0] = data[2];"),
        no,
    );
    refused(
        &checked("if ($0cudaDeviceSynchronize() != cudaErrorNotReady) out[0] = 1;"),
        no,
    );
    refused(
        &checked("if ($0cudaDeviceSynchronize() != cudaSuccess) out[0] = 1; else out[0] = data[2];"),
        no,
    );
    refused(
        &checked("if (n || $0cudaDeviceSynchronize() != cudaSuccess) out[0] = 1;"),
        no,
    );
    // The words mean something else.
    let own = |before: &str| {
        format!(
            "{before}\n{}",
            checked("if ($0cudaDeviceSynchronize() != cudaSuccess) return;")
        )
    };
    refused(&own("constexpr cudaError_t cudaSuccess = cudaErrorUnknown;"), no);
    refused(&own("__device__ int cudaPeekAtLastError() { return 1; }"), no);
    refused(&own("#define cudaPeekAtLastError() 0"), no);
    refused(&own("__device__ bool operator!=(cudaError_t a, cudaError_t b);"), no);
}

#[test]
fn a_launch_that_fails_in_sight() {
    for launch in ["child<<<1, 2048>>>(data, n);", "child<<<0, 32>>>(data, n);"] {
        let check = format!("{launch} if ($0cudaDeviceSynchronize() != cudaSuccess) return;");
        refused(&checked(&check), "asks for errors");
    }
}

#[test]
fn questions_for_errors_behind_the_wait() {
    let text = checked("$0cudaDeviceSynchronize(); out[3] = cudaGetLastError() != cudaSuccess;");
    let assumes = becomes(&text, &["    out[3] = cudaGetLastError() != cudaSuccess;"]);
    assert!(
        assumes.iter().any(|a| a.contains("checks cudaGetLastError")),
        "{assumes:?}"
    );
}

fn streamed(create: &str, rest: &str) -> String {
    program(
        &format!(
            "    cudaStream_t s;\n    {create}\n    child<<<1, 32, 0, s>>>(data, n);\n    $0cudaDeviceSynchronize();\n{rest}"
        ),
        "1, 1",
    )
}

const CREATE: &str = "cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);";

#[test]
fn streams_are_created_again() {
    becomes(
        &streamed(
            CREATE,
            "    child<<<1, 32, 0, s>>>(out, data[1]);\n    cudaStreamDestroy(s);",
        ),
        &[
            r#"    cudaStream_t s;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    child<<<1, 32, 0, s>>>(out, data[1]);
    cudaStreamDestroy(s);
}
"#,
            r#"    child<<<1, 32, 0, s>>>(data, n);
    cudaStreamDestroy(s);
    parent_after_child<<<1, 1, 0, cudaStreamTailLaunch>>>("#,
        ],
    );
    // What follows has no use for it.
    becomes(
        &streamed(CREATE, "    out[1] = data[1];\n    cudaStreamDestroy(s);"),
        &["{\n    out[1] = data[1];\n}\n"],
    );
}

#[test]
fn streams_that_stay() {
    let rest = "    child<<<1, 32, 0, s>>>(out, data[1]);\n    cudaStreamDestroy(s);";
    let no = "`s` can't be handed to another kernel";
    refused(&streamed(&format!("if (n > 3) {CREATE}"), rest), no);
    refused(&streamed(&format!("{CREATE} cudaStream_t t = s;"), rest), no);
    refused(
        &streamed(&format!("{CREATE} cudaStream_t* p = &s;"), rest),
        "tail of the grid",
    );
    refused(&streamed(CREATE, "    if (data[1]) cudaStreamDestroy(s);"), no);
    refused(
        &streamed(
            CREATE,
            "    cudaStream_t t = s;\n    child<<<1, 32, 0, t>>>(out, data[1]);",
        ),
        no,
    );
    // An element of an array may be any stream where others get at it.
    let array = |create: &str| {
        program(
            &format!(
                "    cudaStream_t s[2];\n    {create}\n    child<<<1, 32, 0, s[n]>>>(data, n);\n    $0cudaDeviceSynchronize();\n    \
                 out[1] = data[1];\n    cudaStreamDestroy(s[0]);\n    cudaStreamDestroy(s[1]);"
            ),
            "1, 1",
        )
    };
    let both = "for (int k = 0; k < 2; ++k) cudaStreamCreateWithFlags(&s[k], cudaStreamNonBlocking);";
    becomes(
        &array(both),
        &["    cudaStreamDestroy(s[1]);\n    parent_after_child<<<"],
    );
    refused(
        &array(&format!("{both} s[1] = cudaStreamTailLaunch;")),
        "tail of the grid",
    );
    refused(&array(&format!("{both} cudaStream_t* p = s;")), "tail of the grid");
}

#[test]
fn addresses() {
    let with = |before: &str, rest: &str| {
        program(
            &format!("    {before}\n    child<<<1, 32>>>(data, n);\n    $0cudaDeviceSynchronize();\n    {rest}"),
            "1, 1",
        )
    };
    becomes(
        &with("int* p = (int*)malloc(8); *p = n;", "out[1] = *p + data[1]; free(p);"),
        &["int* p)"],
    );
    let own = "may point at shared or local memory";
    refused(
        &with(
            "int a[2] = {1, 2}; int* p = (int*)malloc(8); p = a;",
            "out[1] = *p + data[1];",
        ),
        own,
    );
    refused(
        &with(
            "int a[2] = {1, 2}; int* p = (int*)malloc(8); int** q = &p; *q = a;",
            "out[1] = *p + data[1];",
        ),
        own,
    );
    let left = "may leave the address of shared or local memory";
    refused(&with("int own = n; *box = &own;", "out[1] = **box + data[1];"), left);
    refused(
        &with("int own[3] = {n, n, n}; box[n] = own + 1;", "out[1] = **box + data[1];"),
        left,
    );
    refused(
        &with("int own = n; int* p = &own; *box = p;", "out[1] = **box + data[1];"),
        left,
    );
    let by_function = |leave: &str, call: &str| {
        let before = format!("int own = n; {call}");
        let text = with(&before, "out[1] = **box + data[1];");
        format!(
            "__device__ int* left;\n__device__ void next(int* p) {{ left = p; }}\n__device__ void leave({leave}\n{text}"
        )
    };
    refused(&by_function("int* p) { left = p; }", "leave(&own);"), left);
    refused(&by_function("int& x) { left = &x; }", "leave(own);"), left);
    refused(&by_function("int* p) { next(p + 1); }", "leave(&own);"), left);
    becomes(&by_function("int* p) { *p = 4; }", "leave(&own);"), &["leave(&own);"]);
    becomes(&with("*box = &data[3];", "out[1] = **box + data[1];"), &["**box"]);
}

#[test]
fn a_loop_of_one_thread_among_others() {
    let alone = |others: &str| {
        program(
            &format!(
                r#"    if (threadIdx.x == 0 && blockIdx.x == 0) {{
        do {{
            child<<<1, 32>>>(data, n);
            $0cudaDeviceSynchronize();
        }} while (*(volatile int*)data < n);
        out[1] = data[1];
    }}{others}"#
            ),
            "1, 64",
        )
    };
    becomes(&alone(""), &["resumed || (*(volatile int*)data < n)"]);
    refused(&alone(" else { data[0] = n; }"), "may wait for other threads");
    refused(
        &alone("\n    if (threadIdx.x == 1) atomicAdd(data, n);"),
        "if one thread of the grid runs it",
    );
}
