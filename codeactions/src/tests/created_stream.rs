//! Streams that the launching function creates, and looks whether it could.

use super::{program, refuses, rewrite, rewrite_files};

const ID: &str = "aggregate-block";

/// A launch into a stream that is created in the condition of an `if`.
fn created(condition: &str, otherwise: &str) -> String {
    program(&format!(
        r#"if (count > 0) {{
        cudaStream_t s;
        if ({condition}) {otherwise}
        child<<<(count + 31) / 32, 32, 0, s>>>(out, begin, count);
        cudaStreamDestroy(s);
    }}"#
    ))
}

const CREATE: &str = "cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking)";

#[test]
fn what_is_done_where_there_is_no_stream_goes_with_it() {
    for condition in [
        format!("{CREATE} != cudaSuccess"),
        format!("cudaSuccess != ({CREATE})"),
        CREATE.to_owned(),
    ] {
        for otherwise in [
            "return;",
            "{\n            out[0] = -1;\n            return;\n        }",
            "{ printf(\"no stream for %d\\n\", v); return; }",
        ] {
            let result = rewrite(ID, &created(&condition, otherwise));
            let text = result.text();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let gone = ["cudaStream", "-1", "no stream", "return;\n        }"];
            assert!(
                !code.clone().any(|line| gone.iter().any(|word| line.contains(word))),
                "{text}"
            );
            result.has(&["        children.launch((count + 31) / 32, 32, {begin, count});\n"]);
        }
    }
}

#[test]
fn what_else_an_if_may_ask() {
    // Some are no creation that is seen.
    let refuse = |text: &str| match text.contains("s = 0") || text.contains("cudaError_t e") {
        true => refuses(ID, text, ""),
        false => refuses(ID, text, "is used for more than this launch"),
    };
    for condition in [
        format!("{CREATE} == cudaSuccess"),
        format!("{CREATE} != cudaErrorInvalidValue"),
        format!("{CREATE} != cudaSuccess || v == 3"),
        format!("v == 3 || {CREATE}"),
        format!("!{CREATE}"),
        format!("{CREATE} == cudaSuccess && v != 3"),
        format!("cudaError_t e = {CREATE}"),
        // In a kernel no other flag is allowed: the call fails.
        "cudaStreamCreateWithFlags(&s, 0) != cudaSuccess".to_owned(),
        "cudaStreamCreateWithFlags(&s, cudaStreamDefault) != cudaSuccess".to_owned(),
    ] {
        refuse(&created(&condition, "return;"));
    }
    let failed = format!("{CREATE} != cudaSuccess");
    for otherwise in [
        "return; else out[1] = 1;",
        "s = 0;",
        "{ cudaStreamDestroy(s); return; }",
        "child<<<1, 1, 0, s>>>(out, begin, 1);",
        "\n#if 1\n{\n#endif\n return; }",
    ] {
        refuse(&created(&failed, otherwise));
    }
    // Somebody jumps into it.
    let jumped = created(&failed, "{ again: out[1] = 1; return; }")
        .replace("if (count > 0) {", "if (v == 5) goto again;\n    if (count > 0) {");
    refuse(&jumped);
    // A success may be another number.
    refuse(&format!("#define cudaSuccess 3\n{}", created(&failed, "return;")));
}

/// A program whose threads launch into one of several streams; `code` stands in front of the launch, `operand` is its stream.
fn among_several(code: &str, operand: &str, behind: &str) -> String {
    program(&format!(
        r#"cudaStream_t s[4];
    for (int i = 0; i < 4; ++i) {{
        cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking);
        // one for each of four
    }}
    {code}
    if (count > 0) child<<<(count + 31) / 32, 32, 0, {operand}>>>(out, begin, count);
    {behind}"#
    ))
}

const DESTROY: &str = "for (int i = 0; i < 4; i++) cudaStreamDestroy(s[i]);";

#[test]
fn one_of_several_streams() {
    for operand in ["s[threadIdx.x % 4]", "s[v & 3]", "s[0]"] {
        for behind in ["", DESTROY] {
            let result = rewrite(ID, &among_several("", operand, behind));
            let text = result.text();
            let mut code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            assert!(
                !code.any(|line| line.contains("cudaStream") || line.contains("for (int i = 0; i < 4")),
                "{text}"
            );
            result.has(&["children.launch((count + 31) / 32, 32, {begin, count});"]);
        }
    }
}

#[test]
fn what_else_is_done_with_several_streams() {
    for (code, operand) in [
        ("cudaStream_t* t = s;", "s[0]"),
        ("cudaStream_t& t = s[1];", "s[0]"),
        ("s[1] = 0;", "s[1]"),
        ("s[1] = s[0];", "s[1]"),
        ("cudaStream_t* t = &s[1];", "s[0]"),
        ("auto with = [&] { return s[0]; };", "s[0]"),
        ("cudaMemsetAsync(out, 0, 4, s[1]);", "s[0]"),
        ("child<<<1, 32, 0, s[1]>>>(out, begin, count);", "s[1]"),
        ("int streams = sizeof(s) / sizeof(s[0]);", "s[0]"),
        ("decltype(s[0]) other;", "s[0]"),
        ("int k = 0;", "s[k++]"),
        ("", "s[atomicAdd(out, 1)]"),
    ] {
        refuses(ID, &among_several(code, operand, DESTROY), "");
    }
}

/// The stream that is created may be another one than that into which something is launched.
#[test]
fn several_streams_that_are_created_in_turn() {
    let text = program(
        r#"cudaStream_t s[4];
    for (int k = 0; k < 4; ++k) {
        cudaStreamCreateWithFlags(&s[k], cudaStreamNonBlocking);
        child<<<(count + 31) / 32, 32, 0, s[k / 2 * 2]>>>(out, begin, count);
    }"#,
    );
    match rewrite_files(ID, &[("a.cu", &text)], &[]) {
        Ok(result) => assert!(
            result.assumes.iter().any(|a| a.contains("one thread launches")),
            "{:?}",
            result.assumes
        ),
        Err(reasons) => assert!(reasons.iter().any(|r| r.contains("one thread launches")), "{reasons:?}"),
    }
}
