//! Arguments that look the same for all threads, with operators and conversions that may not be.

use super::rewrite;

/// What is passed for the child's last parameter: whether it is passed once for all launches, or written down for each.
fn is_passed_once(front: &str, parameters: &str, before: &str, value: &str) -> bool {
    let text = format!(
        r#"__device__ int lane_id() {{ return threadIdx.x % 32; }}
{front}
__global__ void child(int* out, int i, int w) {{ if (threadIdx.x < 4) atomicAdd(&out[i], w * 10 + threadIdx.x); }}
__global__ void parent(int* out, int n{parameters}) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {before}
    if (i < n) $0child<<<1, 32>>>(out, i, {value});
}}
"#
    );
    let text = match parameters {
        "" => format!("{text}void run(int* out) {{ parent<<<3, 32>>>(out, 80); }}\n"),
        _ => format!("{text}template <class T> void run(int* out, T l) {{ parent<<<3, 32>>>(out, 80, l); }}\n"),
    };
    let result = rewrite("aggregate-block", &text);
    let record = result
        .text()
        .split("struct child_args {")
        .nth(1)
        .and_then(|rest| rest.split('}').next());
    !record
        .unwrap_or_else(|| panic!("no arguments in {}", result.text()))
        .contains(" w;")
}

#[test]
fn operators_that_look_at_the_thread() {
    let lane = "struct Lane { int v; };";
    for (operator, value) in [
        ("__device__ int operator+(Lane, int) { return lane_id(); }", "@ + 0"),
        ("__device__ int operator-(Lane) { return lane_id(); }", "-@"),
        ("__device__ int operator!(Lane) { return lane_id(); }", "!@"),
        ("__device__ int operator<(Lane, int) { return lane_id(); }", "@ < 3"),
        (
            "__device__ int operator&&(Lane, bool) { return lane_id(); }",
            "@ && true",
        ),
        (
            "__device__ int operator+(int, Lane) { return lane_id(); }",
            "n + (n ? 0 + @ : 1)",
        ),
    ] {
        let front = format!("{lane}\n{operator}");
        let first = value.replace('@', "Lane::first");
        let value = &value.replace('@', "l");
        assert!(!is_passed_once(&front, ", Lane l", "", value), "{operator}");
        assert!(
            !is_passed_once(&format!("{front}\n__constant__ Lane l;"), "", "", value),
            "{operator}"
        );
        assert!(
            !is_passed_once(&format!("{front}\nconstexpr __device__ Lane l{{}};"), "", "", value),
            "{operator}"
        );
        let kind = front.replace("struct Lane { int v; };", "enum class Lane { first };");
        assert!(!is_passed_once(&kind, ", Lane l", "", value), "{operator}");
        assert!(!is_passed_once(&kind, "", "", &first), "{operator}");
    }
    // Those of numbers, and of what only computes, are the same for all.
    for (front, parameters, value) in [
        ("", ", int l", "l + 3"),
        ("struct Pair { int v, w; };", ", Pair l", "l.v + l.w"),
        (
            "struct Pair { int v; };\n__device__ int operator+(Pair p, int n) { return p.v + n; }",
            ", Pair l",
            "l + 3",
        ),
        (
            "struct Pair { int v; __device__ operator int() const { return v; } };",
            ", Pair l",
            "l + 3",
        ),
        (
            "struct Pair { int v; };\n__device__ int operator-(Pair p, int n) { return lane_id(); }",
            ", int l",
            "l - 3",
        ),
    ] {
        assert!(is_passed_once(front, parameters, "", value), "{front} {value}");
    }
}

#[test]
fn conversions_that_look_at_the_thread_or_at_memory() {
    for class in [
        "struct Lane { __device__ operator int() const { return lane_id(); } };",
        "struct Lane { int* p; __device__ operator int() const { return *p; } };",
    ] {
        for value in ["l", "int(l)", "n ? l : 0", "l + 1"] {
            for object in ["constexpr __device__ Lane l{};", "__constant__ Lane l;"] {
                assert!(
                    !is_passed_once(&format!("{class}\n{object}"), "", "", value),
                    "{class} {value}"
                );
            }
        }
    }
    // What the operator reads may have been set before the launch.
    let cursor =
        "struct Cursor { int* pos; };\n__device__ int operator-(Cursor a, Cursor b) { return *a.pos - *b.pos; }";
    assert!(!is_passed_once(
        cursor,
        ", Cursor l",
        "if (i == 0) *l.pos = 20;",
        "l - Cursor{l}"
    ));
    assert!(!is_passed_once(
        cursor,
        ", Cursor l",
        "if (i == 0) *l.pos = 20;",
        "l - l"
    ));
}
