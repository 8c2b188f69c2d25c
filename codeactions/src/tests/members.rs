//! Member functions that launch.

use super::{refuses, rewrite};

/// A program with these classes, and what the parent does.
fn program(classes: &str, parent: &str) -> String {
    format!(
        r#"__global__ void child(int* out, int begin, int count) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd(&out[begin + i], 1);
}}
{classes}
__global__ void parent(int* out, const int* row, int n) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    {parent}
}}
void run(int* out, const int* row, int n) {{ parent<<<(n + 127) / 128, 128>>>(out, row, n); }}
"#
    )
}

const LAUNCH: &str =
    "int count = row[v + 1] - row[v]; if (count > 0) child<<<(count + 31) / 32, 32>>>(out, row[v], count);";

fn rows(more: &str) -> String {
    format!(
        "struct Rows {{\n    int* out;\n    const int* row;\n    __device__ void go(int v) const {{ {LAUNCH} }}\n{more}}};\n"
    )
}

#[test]
fn a_member_function_gets_the_aggregator() {
    rewrite(
        "aggregate-block",
        &program(&rows(""), "Rows rows{out, row};\n    rows.go(v);"),
    )
    .has(&[
        "__device__ void go(gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated>& childs",
        "rows.go(childs, v);",
    ]);
    let nested = rows("    __device__ void both(int v) { go(v); this->go(v + 1); (*this).go(v + 2); }\n");
    rewrite(
        "aggregate-grid",
        &program(&nested, "Rows rows{out, row};\n    Rows* p = &rows;\n    p->both(v);"),
    )
    .has(&[
        "go(childs, v);",
        "this->go(childs, v + 1);",
        "(*this).go(childs, v + 2);",
        "p->both(childs, v);",
    ]);
    let spaces = format!("namespace a {{\n{}}}\nusing namespace a;\n", rows(""));
    refuses(
        "aggregate-block",
        &program(&spaces, "a::Rows rows{out, row};\n    rows.go(v);"),
        "different namespaces",
    );
}

#[test]
fn others_of_the_name_are_left_alone() {
    let other = format!(
        "{}struct Log {{ int n; __device__ void go(int k) {{ n += k; }} }};\n__device__ void go(int*) {{}}\n",
        rows("")
    );
    let text = program(
        &other,
        "Rows rows{out, row};\n    Log log{0};\n    log.go(2);\n    go(out);\n    if (log.n) rows.go(v);",
    );
    rewrite("aggregate-block", &text).has(&["log.go(2);", "    go(out);", "rows.go(childs, v);", "void go(int*) {}"]);
}

#[test]
fn what_may_be_called_otherwise_is_refused() {
    let object = "Rows rows{out, row};\n    rows.go(v);";
    for (classes, parent, reason) in [
        (
            rows("").replace("__device__ void go", "virtual __device__ void go"),
            object,
            "with a base",
        ),
        (format!("{}struct More : Rows {{}};\n", rows("")), object, "with a base"),
        (
            rows("").replace("go(int v)", "operator()(int v)"),
            "Rows rows{out, row};\n    rows(v);",
            "an operator",
        ),
        (
            format!(
                "{}template <class F> __device__ void call(F f, int v) {{ f.go(v); }}\n",
                rows("")
            ),
            "Rows rows{out, row};\n    call(rows, v);",
            "mentioned where it isn't called",
        ),
        (
            rows(""),
            "Rows rows{out, row};\n    void (Rows::*f)(int) const = &Rows::go;\n    (rows.*f)(v);\n    rows.go(v);",
            "",
        ),
        (
            rows("").replace("struct Rows", "template <class T> struct Rows"),
            "Rows<int> rows{out, row};\n    rows.go(v);",
            "",
        ),
        (
            format!("{}using Lines = Rows;\n", rows("")),
            "Lines rows{out, row};\n    rows.go(v);",
            "mentioned where it isn't called",
        ),
    ] {
        refuses("aggregate-block", &program(&classes, parent), reason);
    }
}
