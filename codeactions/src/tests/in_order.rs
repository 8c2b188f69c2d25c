//! Two launches of a thread whose order counts, collected so that it is kept.

use super::fixes::fix;
use super::{refuses, rewrite};

const BY_DEVICE: [&str; 4] = [
    "aggregate-warp",
    "aggregate-block",
    "aggregate-multiblock",
    "aggregate-grid",
];

/// A kernel whose threads each launch `make` and `use`, which reads what `make` has written. `launches`: in its body.
fn program(before: &str, launches: &str) -> String {
    format!(
        r#"__global__ void make(const int* in, int* d, int first, int count) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) d[first + i] = in[first + i] + count;
}}
__global__ void use(const int* d, int first, int count, int* sum) {{
    for (int i = threadIdx.x; i < count; i += blockDim.x) atomicAdd(sum, d[first + i]);
}}
__global__ void other(int* d, int first) {{ d[first + threadIdx.x] += 1; }}
{before}
__global__ void parent(const int* row, const int* in, int* d, int* sums, int n, int rounds) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int first = row[v], count = row[v + 1] - first;
{launches}
}}
void run(const int* row, const int* in, int* d, int* sums, int n) {{
    parent<<<(n + 127) / 128, 128>>>(row, in, d, sums, n, 3);
}}
"#
    )
}

const MAKE: &str = "    $0make<<<(count + 31) / 32, 32>>>(in, d, first, count);\n";
const USE: &str = "    use<<<1, 32>>>(d, first, count, sums + v);\n";

#[test]
fn a_grid_that_reads_what_the_one_before_has_written() {
    for id in BY_DEVICE {
        let result = rewrite(id, &program("", &format!("{MAKE}{USE}")));
        result.has(&[
            "make_aggregated> makes(arena, in, d);",
            "use_aggregated> uses(arena, d);",
            "gridfuse::InOrder in_order(makes, uses);",
            "makes.launch(",
            "uses.launch(",
        ]);
        assert!(
            result
                .assumes
                .iter()
                .all(|a| !a.contains("other grids") && !a.contains("`use` that")),
            "{:?}",
            result.assumes
        );
    }
    // Whichever of the two is asked about.
    let second = program("", &format!("{MAKE}{USE}"))
        .replace("$0", "")
        .replace("    use<<<", "    $0use<<<");
    rewrite("aggregate-block", &second).has(&["gridfuse::InOrder in_order(makes, uses);"]);
    // Several launches of either, below conditions.
    let several = format!(
        "    if (count > 9)\n    {MAKE}    else make<<<1, 32>>>(in, d, first, 3);\n    if (n > 5)\n    {USE}{USE}"
    );
    rewrite("aggregate-grid", &program("", &several)).has(&["gridfuse::InOrder in_order(makes, uses);"]);
    // Names that are taken.
    let taken = format!("    int in_order = n;\n{MAKE}{USE}    sums[v] = in_order;\n");
    let taken = rewrite("aggregate-block", &program("", &taken));
    assert!(taken.text().contains("gridfuse::InOrder in_order"), "{}", taken.text());
    assert!(
        !taken.text().contains("gridfuse::InOrder in_order("),
        "{}",
        taken.text()
    );
}

/// Where nothing says that the order counts, the grids may run side by side as before.
#[test]
fn grids_that_have_nothing_to_do_with_each_other() {
    let apart = format!("{MAKE}    use<<<1, 32>>>(in, first, count, sums + v);\n");
    let result = rewrite("aggregate-block", &program("", &apart));
    assert!(!result.text().contains("InOrder"), "{}", result.text());
}

#[test]
fn launches_in_a_stream_of_the_thread() {
    let create = "    cudaStream_t s;\n    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);\n";
    let destroy = "    cudaStreamDestroy(s);\n";
    let (make, take) = (
        MAKE.replace("32>>>", "32, 0, s>>>"),
        USE.replace("32>>>", "32, 0, s>>>"),
    );
    let result = rewrite(
        "aggregate-block",
        &program("", &format!("{create}{make}{take}{destroy}")),
    );
    result.has(&[
        "gridfuse::InOrder in_order(makes, uses);",
        "// was: cudaStreamDestroy(s);",
    ]);
    assert_eq!(
        result.text().matches("was: cudaStreamDestroy").count(),
        1,
        "{}",
        result.text()
    );
    assert!(result.assumes.is_empty(), "{:?}", result.assumes);
    // Each iteration has memory of its own, as far as its arguments say.
    let body = format!("{make}{take}").replace("first", "at");
    let looped = format!(
        "{create}    for (int k = 0; k < rounds; ++k) {{\n    int at = first + k * n;\n{body}    }}\n{destroy}"
    );
    let result = rewrite("aggregate-block", &program("", &looped));
    result.has(&["gridfuse::InOrder in_order(makes, uses);"]);
    let said = "grids of `make` are independent of those of `use` that are launched in other iterations";
    assert!(result.assumes.iter().any(|a| a.contains(said)), "{:?}", result.assumes);
    // Something else goes into it.
    let more = format!("{create}{make}    cudaMemsetAsync(sums + v, 0, 4, s);\n{take}{destroy}");
    refuses("aggregate-block", &program("", &more), "the stream");
    // Two streams have no order that counts, and each launch has one of its own.
    let two = format!("{create}    cudaStream_t t;\n    cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);\n");
    let two = format!(
        "{two}{make}{}{destroy}    cudaStreamDestroy(t);\n",
        take.replace(", s>>>", ", t>>>")
    );
    let result = rewrite("aggregate-block", &program("", &two));
    assert!(!result.text().contains("InOrder"), "{}", result.text());
}

#[test]
fn iterations_that_work_on_the_same_memory() {
    let looped = format!("    for (int k = 0; k < rounds; ++k) {{\n{MAKE}{USE}    }}\n");
    refuses("aggregate-block", &program("", &looped), "aren't independent");
    let stream = "    cudaStream_t s;\n    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);\n";
    let looped = format!("{stream}{looped}    cudaStreamDestroy(s);\n").replace("32>>>", "32, 0, s>>>");
    refuses("aggregate-block", &program("", &looped), "aren't independent");
}

#[test]
fn what_keeps_no_order() {
    let both = format!("{MAKE}{USE}");
    let wrong = "aren't independent of other grids";
    // Nobody waits for what follows in the host's stream, and grids in no stream have no order.
    for id in [
        "fire-and-forget",
        "aggregate-grid-host",
        "aggregate-grid-stream",
        "reuse-threads",
    ] {
        refuses(id, &program("", &both), wrong);
    }
    for launches in [
        // The one that reads comes first in the text, and again.
        format!("{MAKE}{USE}    make<<<1, 32>>>(in, d, first, count);\n"),
        // Three kernels.
        format!("{MAKE}{USE}    other<<<1, 32>>>(d, first);\n"),
        // Back to a label.
        format!("again:\n{MAKE}{USE}    if (--count > 0) goto again;\n"),
    ] {
        refuses("aggregate-block", &program("", &launches), "aren't independent");
    }
    // A function launches, too: what it launches isn't followed, and named.
    let before =
        "__device__ void finish(int* d, int first, int count, int* sum) { use<<<1, 32>>>(d, first, count, sum); }";
    let called = rewrite(
        "aggregate-block",
        &program(before, &format!("{MAKE}    finish(d, first, count, sums + v);\n")),
    );
    assert!(!called.text().contains("InOrder"), "{}", called.text());
    let said = "grids of `make` are independent of other grids";
    assert!(called.assumes.iter().any(|a| a.contains(said)), "{:?}", called.assumes);
    // A child that launches in turn: its launches are collected by the grid that runs it.
    let before = "__global__ void leaf(int* d) { d[threadIdx.x] = 1; }\n__global__ void nest(int* d, int first) { leaf<<<1, 32>>>(d + first); }";
    let nested = rewrite(
        "aggregate-block",
        &program(before, "    $0nest<<<1, 32>>>(d, first);\n"),
    );
    assert!(!nested.text().contains("InOrder"), "{}", nested.text());
}

/// One aggregator for each kernel, or none.
#[test]
fn launches_that_one_aggregator_does_not_collect() {
    let before = "template <int N> __global__ void total(const int* d, int first, int* sum) { for (int i = 0; i < N; ++i) atomicAdd(sum, d[first + i]); }";
    let several = format!(
        "{MAKE}    if (n > 4) total<2><<<1, 32>>>(d, first, sums); else total<3><<<1, 32>>>(d, first, sums);\n"
    );
    refuses(
        "aggregate-block",
        &program(before, &several),
        "has to come after the grids",
    );
    let one = format!("{MAKE}    total<2><<<1, 32>>>(d, first, sums);\n");
    rewrite("aggregate-block", &program(before, &one)).has(&["gridfuse::InOrder in_order(makes, totals);"]);
}

#[test]
fn taken_back() {
    let text = program("", &format!("{MAKE}{USE}"));
    for id in BY_DEVICE {
        let there = rewrite(id, &text).text().to_owned();
        let marked = there.replacen("makes.launch(", "$0makes.launch(", 1);
        let (back, _) = fix("revert", &marked, &[]).unwrap_or_else(|reasons| panic!("{id}: {reasons:?}\n{there}"));
        assert_eq!(back, text.replace("$0", ""), "{id}");
    }
}

/// What the inner loop counts comes again in the next round of the outer one.
#[test]
fn rounds_of_an_outer_loop() {
    let body = format!("{MAKE}{USE}").replace("first", "at");
    let both = |at: &str| {
        format!(
            "    for (int r = 0; r < rounds; ++r)\n    for (int k = 0; k < n; ++k) {{\n    int at = {at};\n{body}    }}\n"
        )
    };
    refuses(
        "aggregate-block",
        &program("", &both("first + k * count")),
        "aren't independent",
    );
    let apart = rewrite("aggregate-block", &program("", &both("first + (r * n + k) * count")));
    apart.has(&["gridfuse::InOrder in_order(makes, uses);"]);
}

/// Who leaves the loop at the launch that stands first comes to it last.
#[test]
fn loops_that_are_left_at_the_first_launch() {
    let (make, take) = (MAKE.trim_start(), USE.trim_start());
    for leave in ["break;", "return;"] {
        let body = format!(
            "    int k = 0;\n    while (true) {{\n        if (k++ == rounds) {{ {make} {leave} }}\n        {take}    }}\n"
        );
        refuses("aggregate-block", &program("", &body), "aren't independent");
        let stream = "    cudaStream_t s;\n    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);\n";
        let body = format!("{stream}{body}    cudaStreamDestroy(s);\n").replace("32>>>", "32, 0, s>>>");
        refuses("aggregate-block", &program("", &body), "s");
    }
    // Left there now and then.
    let body = format!(
        "    for (int k = 0; k < rounds; ++k) {{\n        if (k % 2 == 1) {{ {make} if (n == 7) break; }}\n        {take}    }}\n"
    );
    refuses("aggregate-block", &program("", &body), "aren't independent");
}

/// A thread may know that another one has launched, and the second launch of that one comes before the first one of this one then.
#[test]
fn threads_that_meet_between_launches() {
    let said = "grids of `make` are independent of those of `use` that other threads of a block launch";
    let named = |body: &str| {
        let result = rewrite("aggregate-block", &program("", body));
        result.assumes.iter().any(|a| a.contains(said))
    };
    assert!(!named(&format!("{MAKE}{USE}")));
    assert!(named(&format!("{MAKE}{USE}    __syncthreads();\n")));
    assert!(named(&format!("    if (v % 2) __syncthreads();\n{MAKE}{USE}")));
    assert!(named(&format!("{MAKE}{USE}    atomicAdd(&sums[0], 1);\n")));
}

/// Two launches of one kernel that differ in a number go over the same elements in order; those that look up where they write needn't.
#[test]
fn one_kernel_twice() {
    let before = "__global__ void pass(int* d, int first, int count, int k) { int i = threadIdx.x; if (i < count) d[first + i] = d[first + i] * 3 + k; }\n\
                  __global__ void scatter(int* d, const int* list, int count) { int i = threadIdx.x; if (i < count) d[list[i]] = d[list[i]] * 3; }";
    let twice = "    $0pass<<<1, 32>>>(d, first, count, 1);\n    pass<<<1, 32>>>(d, first, count, 2);\n";
    let wrong = "aren't independent of other grids";
    for id in ["aggregate-block", "aggregate-grid", "fire-and-forget"] {
        refuses(id, &program(before, twice), wrong);
    }
    let halves = "    $0pass<<<1, 32>>>(d, first, n, 1);\n    pass<<<1, 32>>>(d, first + n, count, 1);\n";
    rewrite("fire-and-forget", &program(before, halves));
    let lists = "    $0scatter<<<1, 32>>>(d, row, n);\n    scatter<<<1, 32>>>(d, in, count);\n";
    rewrite("fire-and-forget", &program(before, lists));
}
