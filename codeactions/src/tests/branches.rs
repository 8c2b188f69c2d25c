//! Launches in a branch of an `#if` of which it is known that it is compiled.

use super::{program, refuses, rewrite};

const LAUNCH: &str = r#"
#if CUDART_VERSION >= 12000
    child<<<(count + 31) / 32, 32>>>(out, begin, count);
#else
    child<<<(count + 63) / 64, 64>>>(out, begin, count);
#endif
"#;

#[test]
fn a_launch_is_rewritten_in_its_branch() {
    for id in [
        "aggregate-block",
        "aggregate-grid-stream",
        "threshold",
        "serialize",
        "fire-and-forget",
        "coarsen",
    ] {
        let result = rewrite(id, &program(LAUNCH));
        result.has(&["#else\n    child<<<(count + 63) / 64, 64>>>(out, begin, count);\n#endif"]);
        assert_ne!(result.text(), program(LAUNCH));
        let assumed = "`#if CUDART_VERSION >= 12000` is decided as it is now";
        assert!(
            result.assumes.iter().any(|text| text.contains(assumed)),
            "{:?}",
            result.assumes
        );
    }
}

#[test]
fn what_stands_elsewhere_is_not_assumed() {
    let launch =
        "\n#if CUDART_VERSION >= 12000\n    ++begin;\n#endif\n    child<<<(count + 31) / 32, 32>>>(out, begin, count);";
    let result = rewrite("aggregate-block", &program(launch));
    assert!(
        !result.assumes.iter().any(|text| text.contains("is decided")),
        "{:?}",
        result.assumes
    );
}

#[test]
fn a_launch_of_which_a_branch_is_a_part_is_refused() {
    let launch = r#"child<<<(count + 31) / 32,
#if CUDART_VERSION >= 12000
        32
#else
        64
#endif
        >>>(out, begin, count);"#;
    refuses(
        "aggregate-block",
        &program(launch),
        "an #if decides what is compiled here",
    );
    let head = program("child<<<(count + 31) / 32, 32>>>(out, begin, count);").replace(
        "parent(int* out, const int* row, int n)",
        "parent(int* out, const int* row,\n#if CUDART_VERSION >= 12000\nint n\n#else\nlong n\n#endif\n)",
    );
    refuses("aggregate-block", &head, "an #if decides what is compiled here");
}
