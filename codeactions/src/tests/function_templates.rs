//! Launches in function templates whose template arguments depend on those of the function.

use super::fixes::fix;
use super::{refuses, rewrite};

/// A kernel and a function template that launches it; what a kernel's threads do; and what stands in front of that.
fn program(before: &str, does: &str) -> String {
    format!(
        r#"struct Add {{
    int by;
    __device__ void operator()(int* where) const {{ atomicAdd(where, by); }}
}};
struct Most {{
    int least;
    __device__ void operator()(int* where) const {{ atomicMax(where, least); }}
}};

template <class Op>
__global__ void child(int* out, int count, Op op) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) op(&out[i]);
}}

template <class T, int N>
__global__ void fill(T* out, int count) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = T(N);
}}

template <class Op>
__device__ void visit(int* out, int count, Op op) {{
    if (count > 0) $0child<<<(count + 31) / 32, 32>>>(out, count, op);
}}

{before}
__global__ void parent(int* out, float* weights, const int* row, int n) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    {does}
}}

int main() {{
    parent<<<4, 128>>>(nullptr, nullptr, nullptr, 512);
}}
"#
    )
}

const BOTH: &str = "if (v % 2) visit(out + v, row[v], Add{v});
    else visit(out + v, row[v], Most{v});";

#[test]
fn each_kernel_says_which_instances_it_collects() {
    let result = rewrite("aggregate-block", &program("", BOTH));
    result.has(&[
        "template <class Op>\nstruct child_args { int* out; int count; Op op; };",
        "template <class Op>\n__global__ void child_aggregated(gridfuse::Batch<child_args<Op>> batch) {",
        "template <class Op, class Children>\n__device__ void visit(Children& children, int* out, int count, Op op) {",
        "children.launch((count + 31) / 32, 32, {out, count, op});",
        "gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated<Add>> children(arena);",
        "gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated<Most>> children2(arena);",
        "visit(children, out + v, row[v], Add{v});",
        "visit(children2, out + v, row[v], Most{v});",
        "/*aggregators=*/2",
    ]);
}

#[test]
fn written_arguments_and_functions_between() {
    let before = r#"template <class T, int N>
__device__ void inner(T* out, int count) {
    fill<T, N><<<1, 32>>>(out, count);
}
template <class T>
__device__ void outer(T* out, int count) {
    inner<T, 3>(out, count);
    if (count > 7) inner<T, 4>(out, count);
}"#;
    let text = program(before, "outer(out + v, row[v]);\n    outer<float>(weights, row[v]);")
        .replace("$0child", "child")
        .replace("fill<T, N><<<", "$0fill<T, N><<<")
        .replace("child<<<(count + 31) / 32, 32>>>(out, count, op);", "op(out);");
    rewrite("aggregate-block", &text).has(&[
        "template <class T, int N, class Fills>\n__device__ void inner(Fills& fills, T* out, int count) {",
        "fills.launch(1, 32, {out, count});",
        "template <class T, class Fills2, class Fills2_2>",
        "inner<T, 3>(fills, out, count);",
        "inner<T, 4>(fills2, out, count);",
        "gridfuse::Aggregator<gridfuse::PerBlock, fill_aggregated<int, 3>> fills(arena);",
        "fill_aggregated<int, 4>> fills2(arena);",
        "fill_aggregated<float, 3>> fills3(arena);",
        "fill_aggregated<float, 4>> fills4(arena);",
        "outer(fills, fills2, out + v, row[v]);",
        "outer<float>(fills3, fills4, weights, row[v]);",
    ]);
}

/// The same with a kernel that gets an object of any type.
fn held(before: &str, does: &str) -> String {
    let hold = format!(
        "template <class T>\n__global__ void hold(int* out, T what) {{\n    out[threadIdx.x] = sizeof(what);\n}}\n\
         template <class T>\n__device__ void hold_on(int* out, T what) {{\n    $0hold<<<1, 32>>>(out, what);\n}}\n{before}"
    );
    program(&hold, does).replace("$0child<<<(count + 31) / 32, 32>>>(out, count, op);", "op(out);")
}

#[test]
fn what_has_no_name_where_it_is_collected() {
    let refuse = |does: &str, reason: &str| refuses("aggregate-block", &held("", does), reason);
    refuse(
        "auto op = [=](int* where) { *where = v; };\n    hold_on(out, op);",
        "`parent` gives it a lambda, whose type has no name where launches are collected",
    );
    refuse(
        "struct Own { int by; };\n    hold_on<Own>(out, Own{v});",
        "`Own`, on which the template arguments of this launch depend, isn't the same at the top of `parent`",
    );
    refuse("hold_on(out, row);", "what that is where `parent` calls it isn't known");
    rewrite("aggregate-block", &held("", "hold_on(out, v);\n    hold_on(out, out);")).has(&[
        "hold_aggregated<int>> holds(arena, out);",
        "hold_aggregated<int*>> holds2(arena, out);",
    ]);
}

#[test]
fn instances_that_may_be_the_same() {
    let reason = "are different ones in `parent` isn't known";
    refuses(
        "aggregate-block",
        &held(
            "using Other = Add;",
            "hold_on<Add>(out, Add{v});\n    hold_on<Other>(out, Add{v});",
        ),
        reason,
    );
    let sized = "template <int N>\n__device__ void sized(int* out, int count) {\n    fill<int, N><<<1, 32>>>(out, count);\n}\n\
                 enum { kThree = 3 };";
    let does = "sized<3>(out + v, row[v]);\n    sized<kThree>(out + v, row[v]);\n    hold_on(out, v);";
    refuses("aggregate-block", &held(sized, does), reason);
}

#[test]
fn only_the_device_has_several_instances() {
    for id in ["aggregate-grid-host", "aggregate-grid-stream"] {
        refuses(
            id,
            &program("", BOTH),
            "the template arguments of this launch depend on those of `visit`",
        );
    }
    for id in ["aggregate-warp", "aggregate-grid"] {
        rewrite(id, &program("", BOTH)).has(&["child_aggregated<Most>> children2(arena);"]);
    }
}

#[test]
fn types_that_are_computed_from_others() {
    let wide = |kernel: &str| {
        format!(
            "template <class T>\n__device__ void wide(T first, int count) {{\n    {kernel}<<<1, 32>>>(nullptr, count);\n}}"
        )
    };
    let does = "visit(out + v, row[v], Add{v});\n    wide<int*>(out, row[v]);";
    refuses(
        "aggregate-block",
        &program(&wide("fill<const T, 3>"), does),
        "are computed from those of `wide`",
    );
    let does = "visit(out + v, row[v], Add{v});\n    wide<int>(v, row[v]);";
    rewrite("aggregate-block", &program(&wide("fill<T*, 3>"), does))
        .has(&["fill_aggregated<int*, 3>> fills(arena, nullptr);"]);
}

#[test]
fn kernels_that_the_device_launches() {
    let before = "__global__ void between(int* out, const int* row, int v);";
    let text = program(before, "between<<<1, 32>>>(out, row, v);").replace(
        "int main()",
        "__global__ void between(int* out, const int* row, int v) {\n    visit(out + v, row[v], Add{v});\n}\n\nint main()",
    );
    refuses(
        "aggregate-block",
        &text,
        "`between`, which comes to it, is launched by the device itself",
    );
}

#[test]
fn arguments_by_reference() {
    let with = |param: &str| {
        program("", BOTH)
            .replace(
                "int count, Op op) {\n    if (count > 0)",
                &format!("int count, {param}) {{\n    if (count > 0)"),
            )
            .replace("Add{v}", "add")
            .replace("Most{v}", "most")
            .replace("if (v % 2)", "Add add{v};\n    Most most{v};\n    if (v % 2)")
    };
    refuses(
        "aggregate-block",
        &with("Op& op"),
        "what that is where `parent` calls it isn't known",
    );
    refuses(
        "aggregate-block",
        &with("Op&& op"),
        "what that is where `parent` calls it isn't known",
    );
    rewrite("aggregate-block", &with("const Op& op")).has(&["child_aggregated<Add>> children(arena);"]);
}

#[test]
fn constants_of_the_host_in_a_function_template() {
    let before = "const int kMany = 7;
template <class T>
__global__ void put(T* out, T what) { out[threadIdx.x] = what; }
template <class T>
__device__ void put_row(T* out) { put<T><<<1, 32>>>(out, kMany); }";
    let text = program(before, "put_row<int>(out + v);\n    visit(out, row[v], Add{v});");
    rewrite("aggregate-block", &text).has(&["put_aggregated<int>> puts(arena);"]);
}

#[test]
fn taken_back() {
    for does in [BOTH, "visit<Add>(out + v, row[v], Add{v});"] {
        let text = program("", does);
        let there = rewrite("aggregate-block", &text).text().to_owned();
        let marked = there.replace("children.launch(", "$0children.launch(");
        let (back, _) = fix("revert", &marked, &[]).unwrap_or_else(|reasons| panic!("{reasons:?}\n{there}"));
        assert_eq!(back, text.replace("$0", ""));
        // What the launch was says its note alone.
        let note = there.lines().find(|line| line.contains("child<<<")).unwrap_or_default();
        assert!(fix("revert", &marked.replace(note, ""), &[]).is_err(), "{there}");
    }
}

/// An instance that only looks like another one, or that another one would be called for.
#[test]
fn numbers_and_their_types() {
    let sized = |head: &str, argument: &str| {
        format!(
            "template <{head} N>\n__device__ void sized(int* out, int count) {{\n    fill<int, {argument}><<<1, 32>>>(out, count);\n}}\n"
        )
    };
    let twice = |a: &str, b: &str| {
        format!("sized<{a}>(out + v, row[v]);\n    sized<{b}>(out + v, row[v]);\n    hold_on(out, v);")
    };
    // The launch of `fill` is the one that is rewritten.
    let held = |before: &str, does: &str| {
        let text = held(before, does).replace("$0hold<<<", "hold<<<");
        text.replacen("    fill<int", "    $0fill<int", 1)
            .replacen(") fill<int", ") $0fill<int", 1)
    };
    let refuse = |before: &str, does: &str, reason: &str| refuses("aggregate-block", &held(before, does), reason);
    let twins = "are different ones in `parent` isn't known";
    refuse(&sized("int", "N"), &twice("8", "010"), twins);
    let class = "struct Eight { static constexpr int Threads = 8; };\nnamespace other { struct Threads {}; }\n";
    refuse(
        &(class.to_owned() + &sized("int", "N")),
        &twice("8", "Eight::Threads"),
        twins,
    );
    for head in ["unsigned", "short", "char", "unsigned long long", "auto"] {
        refuse(
            &sized(head, "N - 4"),
            "sized<3>(out + v, row[v]);",
            "can't be written there",
        );
        rewrite("aggregate-block", &held(&sized(head, "N"), &twice("3", "5")));
    }
    rewrite(
        "aggregate-block",
        &held(&sized("int", "N - 4"), "sized<3>(out + v, row[v]);"),
    );
    let chosen = "template <int N>\n__device__ void sized(int* out, int count) {\n    if constexpr (N > 3) fill<int, N><<<1, 32>>>(out, count);\n}\n";
    refuse(chosen, &twice("3", "5"), "`if constexpr` decides");
}
