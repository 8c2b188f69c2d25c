//! `promote`, `promote-overlap`, `promote-lookback`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use gridfuse_analysis::base::command::CompileCommand;
use gridfuse_analysis::facts::launch::LaunchId;
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::host::Host;

use super::{Rewritten, refuses, rewrite, with_child};
use crate::api::rewrite::{Options, Verdict};
use crate::handlers::rewrite_by_id;

/// A kernel that sums up tile by tile; `BODY` and `LAUNCH` can be something else.
pub(super) const SUMS: &str = "\
__device__ int sum_of(int value);
__device__ int helper_of_block() { return blockIdx.x; }
__device__ int sum(const int* in, int i) {
    __shared__ int all;
    if (threadIdx.x == 0) all = 0;
    __syncthreads();
    atomicAdd(&all, in[i]);
    __syncthreads();
    return all;
}
__global__ void sums(const int* in, int* out, int n, int tile, int before) {
    int total = sum(in, tile * 128 + threadIdx.x);
    if (threadIdx.x == 0 && tile + 1 < n) sums<<<1, 128>>>(in, out, n, tile + 1, before + total);
    if (threadIdx.x == 0) out[tile] = before;
}
void run(const int* in, int* out, int n) { sums<<<1, 128>>>(in, out, n, 0, 0); }
";

pub(super) const ALL: [&str; 3] = ["promote", "promote-overlap", "promote-lookback"];

/// The program with `from` replaced, which must occur.
#[track_caller]
pub(super) fn with(from: &str, to: &str) -> String {
    assert!(SUMS.contains(from), "no {from}");
    SUMS.replace(from, to)
}

#[track_caller]
pub(super) fn refused(ids: &[&str], program: &str, reason: &str) {
    for id in ids {
        refuses(id, program, reason);
    }
}

#[test]
fn waits_for_the_launch() {
    rewrite("promote", SUMS).has(&[
        "struct sums_args { int tile; int before; };",
        "void sums_link(gridfuse::Chain<sums_args>& chain, const int* in,",
        "if (threadIdx.x == 0 && tile + 1 < n) chain.launch({tile + 1, before + total});",
        "while (chain.next()) {",
        "sums<<<gridfuse::chain_blocks<sums>(128), 128>>>(in, out, n, 0, 0,",
        "gridfuse::chain_for());",
    ]);
}

#[test]
fn runs_early_what_needs_nothing() {
    rewrite("promote-overlap", SUMS).has(&[
        "struct sums_args { int before; };",
        r#"    int total = sum(in, tile * 128 + threadIdx.x);
    int before = chain.wait_at_once().before;
    // was: sums<<<1, 128>>>(in, out, n, tile + 1, before + total)
    if (threadIdx.x == 0 && tile + 1 < n) chain.launch_at_once({before + total});"#,
        r#"bool sums_goes_on(int n, int tile) {
    return tile + 1 < n;
}"#,
        "return sums_goes_on(n, tile + static_cast<int>(link));",
        "sums_link(chain, in, out, n, tile + static_cast<int>(chain.number()));",
    ]);
}

#[test]
fn looks_back_for_a_running_sum() {
    rewrite("promote-lookback", SUMS).has(&[
        "gridfuse::DecoupledLookback<int, gridfuse::plus> chain(memory, before);",
        r#"    int before = chain.before(total);
    // was: sums<<<1, 128>>>(in, out, n, tile + 1, before + total)
    if (threadIdx.x == 0 && tile + 1 < n) chain.launch();"#,
    ]);
}

#[test]
fn the_corpus_is_promoted() {
    let programs = [
        include_str!("../../../tests/corpus/los.cu"),
        include_str!("../../../tests/corpus/pd.cu"),
        include_str!("../../../tests/corpus/pt.cu"),
        include_str!("../../../tests/corpus/sc.cu"),
        include_str!("../../../tests/corpus/unq.cu"),
        include_str!("../../../tests/corpus/upd.cu"),
    ];
    for program in programs {
        for id in ALL {
            let result = rewrite(id, program);
            assert!(
                result.assumes.iter().all(|a| a.contains("of shared memory to spare")),
                "{id}: {:?}",
                result.assumes
            );
        }
    }
}

#[test]
fn returns_of_all_threads_end_the_chain() {
    let program = with("    int total", "    if (tile >= n) return;\n    int total").replace(" && tile + 1 < n", "");
    rewrite("promote-overlap", &program).has(&["return !(tile >= n);"]);
    rewrite("promote-lookback", &program);
}

#[test]
fn variables_in_the_condition_are_computed_again() {
    let program = with(
        "    if (threadIdx.x == 0 && tile + 1 < n)",
        r#"    const int next = tile + 1;
    if (threadIdx.x == 0 && next < n)"#,
    );
    rewrite("promote-overlap", &program).has(&["return static_cast<int>(tile + 1) < n;"]);
}

#[test]
fn steps_of_any_size() {
    let program = with("tile + 1, before", "tile - n / 4, before").replace("tile + 1 < n", "tile > n");
    rewrite("promote-overlap", &program).has(&["tile - static_cast<int>(chain.number()) * (n / 4)"]);
}

#[test]
fn steps_that_are_no_integers() {
    let step = |before: &str, param: &str, add: &str| {
        let text = with("int tile, int before", &format!("{param}, int tile, int before"))
            .replace("n, tile + 1,", &format!("n, step, {add},"))
            .replace("(in, out, n, 0, 0)", "(in, out, n, {}, 0, 0)");
        format!("{before}\n{text}")
    };
    let unknown = "whether there is a next link is known only when this one has run";
    for (before, param, add) in [
        ("typedef float real;", "real step", "tile + step"),
        ("using real = double;", "real step", "tile + (real)1"),
        ("", "int step", "tile + step * 1.5L"),
        (
            "struct Step { int v; __device__ operator float() const { return v * 0.5f; } };",
            "Step step",
            "tile + step",
        ),
        (
            r#"struct Step { int v; };
__device__ int operator+(int a, Step s) { return a * 2 + s.v; }"#,
            "Step step",
            "tile + step",
        ),
        (
            r#"struct Step { int v; };
__device__ float operator-(Step s) { return s.v * 0.5f; }"#,
            "Step step",
            "tile + -step",
        ),
        (
            r#"enum Step { kOne = 1 };
__device__ int operator+(int a, Step s) { return a * 2; }"#,
            "Step step",
            "tile + step",
        ),
    ] {
        refused(&ALL[1..2], &step(before, param, add), unknown);
    }
    for (before, param, add) in [
        (
            "typedef unsigned index;\ntypedef index number;",
            "number step",
            "tile + step",
        ),
        ("", "short step", "tile + (step + 1) * 2"),
        ("", "size_t step", "tile + step"),
        ("constexpr int kStep = 2;", "long long step", "tile + kStep * step"),
    ] {
        let result = super::rewrite_files("promote-overlap", &[("a.cu", &step(before, param, add))], &[]);
        assert!(result.is_ok(), "{before} {param} {add}: {result:?}");
    }
}

#[test]
fn variables_in_macros_of_the_condition() {
    let cond = |macros: &str, cond: &str| {
        let text = with("    int total", "    int next = tile + 1;\n    int total").replace("tile + 1 < n", cond);
        format!("{macros}\n{text}")
    };
    let unknown = "whether there is a next link is known only when this one has run";
    refused(&ALL[1..], &cond("#define MORE (next < n)", "MORE"), unknown);
    refused(&ALL[1..], &cond("#define NEXT next", "NEXT < n"), unknown);
    rewrite("promote-overlap", &cond("#define LT(a, b) ((a) < (b))", "LT(next, n)"))
        .has(&["return LT(static_cast<int>(tile + 1), n);"]);
    rewrite("promote-overlap", &cond("#define MORE (tile + 1 < n)", "MORE")).has(&["sums_goes_on(int n, int tile)"]);
}

#[test]
fn names_where_nothing_is_evaluated() {
    let early = |statement: &str| with("    int total", &format!("    {statement}\n    int total"));
    for statement in [
        "int size = (int)sizeof(before);",
        "decltype(before) zero = 0;",
        "__shared__ char raw[32 * sizeof(before)];",
        "int size = sum_of(static_cast<decltype(before)>(n));",
        "int size = width<sizeof(before)>();",
        "alignas(decltype(before)) int zero = 0;",
        "int zero __attribute__((aligned(sizeof(before)))) = 0;",
        "__align__(sizeof(before)) int zero = 0;",
        "int size = SIZE;",
    ] {
        let text = format!(
            r#"#define SIZE (int)sizeof(before)
template <int N> __device__ int width() {{ return N; }}
{}"#,
            early(statement).replace("int sum_of(int value);", "int sum_of(int value) { return value; }")
        );
        refused(
            &ALL[1..2],
            &text,
            "nothing can run before the launch: this needs `before`",
        );
    }
    // What its scope hides is another one.
    rewrite(
        "promote-overlap",
        &early("{ int before = 2; int size = sizeof(before); }"),
    );
    let unknown = "whether there is a next link is known only when this one has run";
    refused(&ALL[1..2], &with("tile + 1 < n", "tile + sizeof(before) < n"), unknown);
    rewrite("promote-overlap", &with("tile + 1 < n", "tile + sizeof(tile) < n"))
        .has(&["sums_goes_on(int n, int tile)"]);
    rewrite("promote-overlap", &with("tile + 1 < n", "sizeof(tile) < n")).has(&["sums_goes_on(int n, int tile)"]);
}

#[test]
fn default_arguments_stand_once() {
    let (head, first) = (
        "__global__ void sums(const int* in, int* out, int n, int tile, int before",
        ", gridfuse::ChainMemory memory",
    );
    let own = format!("{head})");
    for (declared, defined) in [(" = 3", ""), ("", " = 3"), ("", "")] {
        let text = with(&own, &format!("{head}{declared});\n{head}{defined})"));
        let default = |has: &str| {
            if has.is_empty() {
                ""
            } else {
                " = gridfuse::ChainMemory()"
            }
        };
        for id in ALL {
            let result = rewrite(id, &text);
            let flat = result.text().split_whitespace().collect::<Vec<_>>().join(" ");
            for (has, end) in [(declared, ";"), (defined, " {")] {
                let wanted = format!("int before{has}{first}{}){end}", default(has));
                assert!(flat.contains(&wanted), "{id}: no {wanted} in\n{flat}");
            }
        }
    }
}

#[test]
fn parameters_with_the_name_of_a_type() {
    let named = |before: &str, ty: &str, other: &str| {
        let text = with(
            "int tile, int before",
            &format!("{ty} node, {other} more, int tile, int before"),
        )
        .replace("n, tile + 1,", "n, node, more, tile + 1,")
        .replace(
            "sums<<<1, 128>>>(in, out, n, node",
            r#"++node;
        ++more;
        sums<<<1, 128>>>(in, out, n, node"#,
        )
        .replace("tile + 1 < n)", "tile + 1 < n) {")
        .replace("before + total);", "before + total); }")
        .replace("(in, out, n, 0, 0)", "(in, out, n, 0, 0, 0, 0)");
        format!("{before}\n{text}")
    };
    let class = "struct node { int v; };";
    rewrite("promote", &named(class, "node*", "struct node*"))
        .has(&["struct sums_args { struct node* node; struct node* more;"]);
    rewrite("promote", &named(class, "const node*", "int*")).has(&["struct sums_args { const struct node* node;"]);
    rewrite("promote", &named("union node { int v; };", "node*", "int*")).has(&["{ union node* node;"]);
    rewrite(
        "promote",
        &named("namespace ns { struct node { int v; }; }", "ns::node*", "int*"),
    )
    .has(&["{ ns::node* node;"]);
    refuses(
        "promote",
        &named("typedef struct { int v; } node;", "node*", "int*"),
        "has a type with the name of a parameter",
    );
    let child = r#"struct node { int v; };
__global__ void child(int* out, node node, int count) {
    if (threadIdx.x < count) atomicAdd(&out[node.v], count);
}
"#;
    rewrite(
        "aggregate-grid",
        &with_child(child, "struct node x = {v};\n    child<<<1, 32>>>(out, x, count);"),
    )
    .has(&["struct node node;"]);
}

#[test]
fn what_is_not_a_chain() {
    refused(
        &ALL,
        &with(
            "sums<<<1, 128>>>(in, out, n, tile + 1",
            "sums<<<2, 128>>>(in, out, n, tile + 1",
        ),
        "isn't known to be one block",
    );
    refused(
        &ALL,
        &with(
            "void run(const int* in, int* out, int n) { sums<<<1,",
            "void run(const int* in, int* out, int n) { sums<<<n,",
        ),
        "isn't known to be one block",
    );
    refused(
        &ALL,
        &with("threadIdx.x == 0 && tile + 1 < n", "tile + 1 < n"),
        "more than one thread may launch",
    );
    refused(
        &ALL,
        &with(
            "sums<<<1, 128>>>(in, out, n, tile + 1",
            "sums<<<1, 64>>>(in, out, n, tile + 1",
        ),
        "block size of this one",
    );
    refused(
        &ALL,
        &with(
            "sums<<<1, 128>>>(in, out, n, tile + 1",
            "sums<<<1, 128, 64>>>(in, out, n, tile + 1",
        ),
        "dynamic shared memory",
    );
    refused(
        &ALL,
        &with(
            "sums<<<1, 128>>>(in, out, n, tile + 1",
            "sums<<<1, 128, 0, cudaStreamTailLaunch>>>(in, out, n, tile + 1",
        ),
        "cudaStreamTailLaunch",
    );
    refused(
        &ALL,
        &with("out[tile] = before", "out[tile] = before + blockIdx.x"),
        "reads `blockIdx`",
    );
    refused(
        &ALL,
        &with("out[tile] = before", "out[tile] = helper_of_block()"),
        "which reads `blockIdx`",
    );
    refused(
        &ALL,
        &with("out[tile] = before", "out[tile] = sum_of(before)"),
        "no definition is in sight",
    );
    refused(
        &ALL,
        &with("    int total", "    if (in[threadIdx.x] == 0) return;\n    int total"),
        "others wait for each other",
    );
    refused(
        &ALL,
        &with(
            "if (threadIdx.x == 0 && tile + 1 < n) sums",
            "for (int k = 0; k < n; ++k) if (threadIdx.x == 0 && tile + 1 < n) sums",
        ),
        "in a loop",
    );
    refused(
        &ALL,
        &with(
            "void run(const int* in, int* out, int n)",
            "__global__ void run(const int* in, int* out, int n)",
        ),
        "from the device",
    );
    refused(
        &ALL,
        &with(
            "{ sums<<<1, 128>>>(in, out, n, 0, 0); }",
            "{ void* k = (void*)sums; sums<<<1, 128>>>(in, out, n, 0, 0); }",
        ),
        "mentioned where it isn't launched",
    );
}

#[test]
fn the_launch_in_another_kernel() {
    let program = r#"__global__ void b(int n) {}
__global__ void a(int n) { if (threadIdx.x == 0) b<<<1, 32>>>(n); }
void run() { a<<<1, 32>>>(3); }
"#;
    refused(&ALL, program, "not itself");
}

#[test]
fn what_can_not_begin_early() {
    let early = &ALL[1..];
    // The condition is known late.
    refused(
        early,
        &with("tile + 1 < n", "before < n"),
        "known only when this one has run",
    );
    // The data is got by the link before.
    refused(
        early,
        &with("int total = sum(in, tile", "int total = sum(in, before"),
        "needs `before`",
    );
    // What is read early is written before the launch.
    refused(
        early,
        &with(
            "    if (threadIdx.x == 0 && tile",
            "    out[tile] = total;\n    if (threadIdx.x == 0 && tile",
        ),
        "writes memory before the launch",
    );
    // A changed parameter isn't a step.
    refused(
        early,
        &with("    int total", "    ++tile;\n    int total").replace("tile + 1, before", "tile, before"),
        "known only when this one has run",
    );
    // Nothing in front of the launch.
    refused(
        early,
        &with("    int total = sum(in, tile * 128 + threadIdx.x);\n", "").replace("before + total", "before + 1"),
        "nothing can run before the launch",
    );
}

#[test]
fn who_returns_does_not_launch() {
    let program = "\
__global__ void sums(const int* in, int* out, int n, int tile, int before) {
    int total = in[tile];
    if (threadIdx.x == 0) {
        if (total == 7) return;
        if (tile + 1 < n) sums<<<1, 128>>>(in, out, n, tile + 1, before + total);
    }
    out[tile] = before;
}
void run(const int* in, int* out, int n) { sums<<<1, 128>>>(in, out, n, 0, 0); }
";
    rewrite("promote", program);
    refused(&ALL[1..], program, "known only when this one has run");
}

#[test]
fn what_is_no_running_value() {
    let lookback = &ALL[2..];
    refused(
        lookback,
        &with("before + total", "before * total"),
        "isn't this one plus",
    );
    refused(
        lookback,
        &with("before + total", "before - total"),
        "isn't this one plus",
    );
    refused(
        lookback,
        &with("int tile, int before", "int tile, short before"),
        "isn't a sum of integers",
    );
    refused(
        lookback,
        &with("int tile, int before", "int tile, long long before").replace("before + total", "before + 0.5f * total"),
        "isn't a sum of integers",
    );
    refused(
        lookback,
        &with("int tile, int before", "int tile, long long before").replace("before + total", "max(before, total)"),
        "isn't a sum of integers",
    );
    refused(
        lookback,
        &with("int tile, int before", "int tile, float before").replace("before + total", "before + 0.5 * total"),
        "isn't a sum of integers",
    );
    refused(
        lookback,
        &with(
            "    if (threadIdx.x == 0 && tile",
            "    int late = before;\n    if (threadIdx.x == 0 && tile",
        ),
        "something stands between",
    );
    refused(
        lookback,
        &with("threadIdx.x == 0 && tile", "threadIdx.x == 127 && tile"),
        "known only when this one has run",
    );
    refused(
        lookback,
        &with("before + total", "before + in[tile]"),
        "other threads than the first",
    );
}

/// What is taken for granted beside room in shared memory, of which the chain takes some for itself.
fn besides_memory(result: &Rewritten) -> Vec<&String> {
    let assumes = result.assumes.iter();
    assumes
        .filter(|a| !a.ends_with("bytes of shared memory to spare"))
        .collect()
}

#[test]
fn running_values_of_all_types() {
    for ty in ["long long", "unsigned long long", "size_t", "std::int64_t", "unsigned"] {
        let program = with("int tile, int before", &format!("int tile, {ty} before"));
        let result = rewrite("promote-lookback", &program);
        result.has(&[&format!(
            "gridfuse::DecoupledLookback<{ty}, gridfuse::plus> chain(memory, before);"
        )]);
        assert_eq!(besides_memory(&result), Vec::<&String>::new());
    }
    for (ty, next, operation) in [
        ("double", "max(before, 0.5 * total)", "maximum"),
        ("double", "fmin(before, 0.5 * total)", "minimum"),
        ("float", "fmaxf(before, 0.5f * total)", "maximum"),
        ("float", "min(before, 0.5f * total)", "minimum"),
    ] {
        let program = with("int tile, int before", &format!("int tile, {ty} before")).replace("before + total", next);
        let result = rewrite("promote-lookback", &program);
        result.has(&[&format!("gridfuse::DecoupledLookback<{ty}, gridfuse::{operation}>")]);
        assert_eq!(besides_memory(&result), Vec::<&String>::new());
    }
}

#[test]
fn sums_of_floating_point_numbers_are_rounded_otherwise() {
    for (ty, own) in [
        ("float", "total"),
        ("float", "0.5f * total"),
        ("double", "0.5f * total"),
        ("double", "0.5 * total"),
    ] {
        let program = with("int tile, int before", &format!("int tile, {ty} before"))
            .replace("before + total", &format!("before + {own}"));
        let result = rewrite("promote-lookback", &program);
        assert!(
            result.assumes.iter().any(|a| a.contains("rounded otherwise")),
            "{:?}",
            result.assumes
        );
        assert_eq!(
            besides_memory(&rewrite("promote-overlap", &program)),
            Vec::<&String>::new()
        );
    }
}

#[test]
fn templates() {
    let program = with(
        "__global__ void sums",
        "template <class T, int N>\n__global__ void sums",
    )
    .replace(
        "int* out, int n, int tile, int before",
        "T* out, int n, int tile, T before",
    )
    .replace(
        "sums<<<1, 128>>>(in, out, n, tile + 1",
        "sums<T, N><<<1, 128>>>(in, out, n, tile + N",
    )
    .replace(
        "sums<<<1, 128>>>(in, out, n, 0",
        "sums<int, 1><<<1, 128>>>(in, out, n, 0",
    );
    rewrite("promote", &program).has(&[
        r#"template <class T, int N>
struct sums_args { int tile; T before; };"#,
        "template <class T, int N>\n__device__ __forceinline__ void sums_link(gridfuse::Chain<sums_args<T, N>>& chain,",
        "chain.launch({static_cast<int>(tile + N), static_cast<T>(before + total)});",
        r#"template <class T, int N>
__global__ void sums(const int* in, T* out, int n, int tile, T before,"#,
        "const sums_args<T, N> args = chain.args();",
        "sums_link<T, N>(chain, in, out, n, args.tile, args.before);",
        "sums<int, 1><<<gridfuse::chain_blocks<sums<int, 1>>(128), 128>>>(",
    ]);
    rewrite("promote-overlap", &program).has(&[
        "T before = chain.wait_at_once().before;",
        r#"template <class T, int N>
__device__ __forceinline__ bool sums_goes_on(int n, int tile) {"#,
        "return sums_goes_on<T, N>(n, tile + static_cast<int>(link) * N);",
    ]);
    refused(
        &ALL,
        &program.replace("sums<T, N><<<", "sums<T, N / 2><<<"),
        "another instance of the template",
    );
    refused(
        &ALL,
        &program.replace("sums<T, N><<<", "sums<<<"),
        "another instance of the template",
    );
    refused(
        &ALL,
        &program.replace("int N>", "int N = 1>"),
        "default template arguments",
    );
}

#[test]
fn deduced_template_arguments() {
    let program = with(
        "__global__ void sums(const int* in",
        "template <class T>\n__global__ void sums(const T* in",
    );
    rewrite("promote-overlap", &program).has(&[
        "struct sums_args { int before; };",
        "sums_link<T>(chain, in, out, n, tile + static_cast<int>(chain.number()));",
        "sums<int><<<gridfuse::chain_blocks<sums<int>>(128), 128>>>(in, out, n, 0, 0,",
    ]);
    let host = |to: &str| program.replace("void run(const int* in, int* out, int n) {", to);
    refused(
        &ALL,
        &host("struct Tile;\nvoid run(const Tile* in, int* out, int n) {"),
        "the template arguments of `sums` are deduced",
    );
    refused(
        &ALL,
        &host("void run(auto in, int* out, int n) {"),
        "the template arguments of `sums` are deduced",
    );
    let program = program.replace("(in, out, n, tile + 1", "(in + 1, out, n, tile + 1");
    refused(&ALL, &program, "another instance of the template");
}

/// A kernel whose first statement writes memory, as does the one that launches.
const MARKED: &str = "\
__global__ void walk(const int* in, int* sums, int* state, int n, int tile) {
    // gridfuse: independent (each link has a sum of its own)
    atomicAdd(&sums[tile], in[tile * 128 + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) {
        *state = *state * 31 + sums[tile];
        if (tile + 1 < n) walk<<<1, 128>>>(in, sums, state, n, tile + 1);
    }
}
void run(const int* in, int* sums, int* state, int n) { walk<<<1, 128>>>(in, sums, state, n, 0); }
";

#[test]
fn what_is_marked_runs_early() {
    let result = rewrite("promote-overlap", MARKED);
    result.has(&[r#"    __syncthreads();
    chain.wait();
    if (threadIdx.x == 0) {
"#]);
    assert_eq!(
        result.assumes,
        [
            "`atomicAdd(&sums[tile], in[tile * 128 + threadIdx.x]);` touches no memory that other links write, and writes none that they touch (line 2 says so)"
        ]
    );
    assert_eq!(rewrite("promote", MARKED).assumes, Vec::<String>::new());
    let overlap = &ALL[1..2];
    let unmarked = MARKED.replace("gridfuse: independent", "independent");
    refused(
        overlap,
        &unmarked,
        "nothing can run before the launch: this writes memory",
    );
    // What only reads has to be marked where something is written before the launch.
    let reads = MARKED.replace(
        "atomicAdd(&sums[tile], in[tile * 128 + threadIdx.x]);",
        "int own = in[tile];",
    );
    assert_eq!(rewrite("promote-overlap", &reads).assumes.len(), 1);
    refused(
        overlap,
        &reads.replace("gridfuse: independent", "independent"),
        "writes memory before the launch",
    );
    // And not where nothing is.
    let writes_nothing = reads.replace("*state = *state * 31 + sums[tile];", "");
    assert_eq!(
        rewrite("promote-overlap", &writes_nothing).assumes,
        Vec::<String>::new()
    );
}

#[test]
fn marks_that_do_not_hold() {
    let overlap = &ALL[1..2];
    let late = MARKED.replace("tile + 1);\n    }", "sums[tile]);\n    }");
    refused(
        overlap,
        &late,
        "marked as independent of the other links: this needs `tile`, which the link before has to say",
    );
    let state = MARKED.replace("in[tile * 128 + threadIdx.x]", "*state");
    refused(overlap, &state, "it reads what each of them writes: `*state`");
    let one = MARKED.replace("atomicAdd(&sums[tile],", "sums[0] += min(1,");
    refused(overlap, &one, "it changes what each of them changes");
    let leaves = MARKED.replace("    atomicAdd(&", "    if (in[0] == 3) return;\n    atomicAdd(&");
    refused(
        overlap,
        &leaves,
        "threads of `walk` may return here while others wait for each other",
    );
}

#[test]
fn marks_that_another_link_contradicts() {
    let marked = |own: &str, other: &str| {
        format!(
            r#"struct St {{ int v; int w; int h[4]; }};
__global__ void walk(const int* in, int* sums, int* state, St* st, int n, int tile) {{
    // gridfuse: independent
    {own}
    if (threadIdx.x == 0) {{
        {other}
        if (tile + 1 < n) walk<<<1, 128>>>(in, sums, state, st, n, tile + 1);
    }}
}}
void run(const int* in, int* sums, int* state, St* st, int n) {{ walk<<<1, 128>>>(in, sums, state, st, n, 0); }}
"#
        )
    };
    let sum = r#"int t = 0;
    // gridfuse: independent
    for (int i = 0; i < 4; ++i) t += state[i];"#;
    for (own, other) in [
        ("St s = *st;", "st->v = s.v * 31;"),
        ("int t = st->v;", "*st = St{};"),
        ("int t = sums[tile];", "sums[tile + 1] = t * 31;"),
        ("int t = sums[tile - 3];", "sums[tile] = t * 31;"),
        (sum, "for (int i = 0; i < 4; ++i) state[i] = t * 31;"),
        (sum, "for (int k = 3; k < 9; ++k) state[k] = t * 31;"),
        (sum, "state[2] = t;"),
        (
            r#"int t = 0;
    // gridfuse: independent
    for (int i = 0; i < 4; ++i) t += sums[tile + i];"#,
            "sums[tile] = t;",
        ),
    ] {
        refused(
            &ALL[1..2],
            &marked(own, other),
            "marked as independent of the other links, and it",
        );
    }
    for (own, other) in [
        ("int t = st->w;", "st->v = t * 31;"),
        ("int t = sums[2 * tile];", "sums[2 * tile + 1] = t;"),
        ("int t = sums[tile];", "sums[tile] = t * 31;"),
        (sum, "for (int k = 4; k < 9; ++k) state[k] = t * 31;"),
        (sum, "state[n] = t;"),
    ] {
        assert_eq!(
            rewrite("promote-overlap", &marked(own, other)).assumes.len(),
            1,
            "{own} {other}"
        );
    }
}

#[test]
fn arguments_that_write_do_so_before_the_launch() {
    let program = with("before + total", "atomicAdd(out, total)").replace("int total = ", "int total = out[5] + ");
    refused(&ALL[1..], &program, "writes memory before the launch");
}

#[test]
fn loops_that_wait_in_assembly() {
    let program = with(
        "    int total",
        r#"    int x;
    do { asm volatile("ld.acquire.gpu.s32 %0, [%1];" : "=r"(x) : "l"(out)); } while (x == 0);
    int total"#,
    );
    refused(&ALL, &program, "may wait in a loop for another thread");
}

#[test]
fn launches_of_other_kinds() {
    let again = with(
        "    if (threadIdx.x == 0) out",
        r#"    if (threadIdx.x == 0 && n > 99) sums<<<1, 128>>>(in, out, n, n, 0);
    if (threadIdx.x == 0) out"#,
    );
    refused(&ALL, &again, "launches elsewhere, too");
    let overload = format!("__global__ void sums(float* x) {{ x[0] = 1.0f; }}\n{SUMS}");
    refused(&ALL, &overload, "several definitions");
}

#[test]
fn loads_as_if_nobody_wrote() {
    let program = with(
        "const int* in, int* out, int n, int tile",
        "const int* __restrict__ in, int* out, int n, int tile",
    )
    .replace(
        "    if (threadIdx.x == 0 && tile",
        "    out[tile] = total;\n    if (threadIdx.x == 0 && tile",
    );
    refused(&["promote"], &program, "has a non-coherent load");
    let reads = |load: &str| {
        with("    int total = ", &format!("    {load}\n    int total = ")).replace(
            "    if (threadIdx.x == 0 && tile",
            "    out[tile] = total + x;\n    if (threadIdx.x == 0 && tile",
        )
    };
    for load in [
        "int x = __ldg(in + tile);",
        "int x; asm(\"ld.global.nc.s32 %0, [%1];\" : \"=r\"(x) : \"l\"(in));",
        "cudaSurfaceObject_t s = 0; int x; surf1Dread(&x, s, 4);",
        "cudaTextureObject_t t = 0; int x = tex1Dfetch<int>(t, 4);",
    ] {
        refused(&["promote"], &reads(load), "has a non-coherent load");
    }
    rewrite(
        "promote",
        &reads("int x; asm(\"ld.global.s32 %0, [%1];\" : \"=r\"(x) : \"l\"(in));"),
    );
}

#[test]
fn all_pointers_are_restrict() {
    let text = with(
        "    if (threadIdx.x == 0 && tile",
        "    out[tile] = total;\n    if (threadIdx.x == 0 && tile",
    );
    for restrict in [true, false] {
        let mut host = Host::new();
        let command = CompileCommand {
            restrict,
            ..CompileCommand::default()
        };
        host.set_commands(BTreeMap::from([("/p/a.cu".into(), vec![Arc::new(command)])]));
        let file = host.set_file(Path::new("/p/a.cu"), text.as_str());
        let db = host.db();
        let kernels = &items(db, file).functions;
        let function = *kernels
            .iter()
            .find(|f| f.name(db) == "sums" && f.has_body(db))
            .expect("sums");
        for id in ["promote", "flatten-recursion"] {
            let rewrite = rewrite_by_id(id).expect("the rewrite");
            match rewrite.verdict(db, LaunchId { function, index: 0 }, &Options::default()) {
                Verdict::Ineligible(reasons) => {
                    assert!(
                        restrict && reasons.iter().all(|r| r.text.contains("--restrict")),
                        "{reasons:?}"
                    );
                }
                _ => assert!(!restrict, "{id}"),
            }
        }
    }
}

#[test]
fn blocks_of_a_size_that_is_not_known_are_taken_for_flat() {
    let flat = |text: &str| {
        let assumes = rewrite("promote", text).assumes;
        assumes.iter().any(|a| a.contains("have one dimension"))
    };
    assert!(!flat(SUMS));
    let open = SUMS
        .replace(
            "tile + 1 < n) sums<<<1, 128>>>",
            "tile + 1 < n) $0sums<<<1, blockDim>>>",
        )
        .replace(
            "int* out, int n) { sums<<<1, 128>>>",
            "int* out, int n, dim3 block) { sums<<<1, block>>>",
        );
    assert!(flat(&open));
}
