//! `serialize`

use super::{program, refuses, rewrite, with_child};

const ID: &str = "serialize";

#[test]
fn no_launch_is_left() {
    let result = rewrite(
        ID,
        &program("if (count > 0) child<<<(count + 31) / 32, 32>>>(out, begin, count);"),
    );
    result.has(&[
        "    if (count > 0) child_serial((count + 31) / 32, 32, out, begin, count);\n",
        "gridfuse::for_each_thread(grid, block, count,
                              [&](uint3 threadIdx",
    ]);
    let text = result.text();
    assert!(!text.contains("child<<<") && !text.contains("constexpr") && !text.contains("is_launchable"));
}

#[test]
fn what_cuda_refuses_does_not_run() {
    rewrite(ID, &program("child<<<count, 32>>>(out, begin, count);")).has(&[
        r#"if (!gridfuse::is_launchable(grid, block)) return;
    gridfuse::for_each_thread(grid, block,
                              [&](uint3 threadIdx"#,
    ]);
}

#[test]
fn two_launches_share_a_function() {
    let both = program(
        r#"child<<<count, 32>>>(out, begin, count);
    child<<<2, 64>>>(out + v, 0, count);"#,
    );
    let first = rewrite(ID, &both);
    let second = rewrite(ID, &first.text().replacen("child<<<", "$0child<<<", 1));
    second.has(&[r#"child_serial(count, 32, out, begin, count);
    child_serial(2, 64, out + v, 0, count);"#]);
    assert_eq!(second.text().matches("void child_serial").count(), 1);
    // What a threshold has made runs grids that CUDA refuses, as it asks for that elsewhere.
    let small = rewrite("threshold", &both);
    let marked = small.text().replacen("child<<<2", "$0child<<<2", 1);
    rewrite(ID, &marked).has(&["child_serial2(2, 64, out + v, 0, count);", "is_launchable"]);
}

#[test]
fn barriers() {
    let child = r#"__global__ void child(int* out, int begin, int count) {
    __shared__ int all;
    if (threadIdx.x == 0) all = count;
    __syncthreads();
    out[begin + threadIdx.x] = all;
}
"#;
    rewrite(ID, &with_child(child, "child<<<count, 512>>>(out, begin, count);")).has(&[
        r#"    if (!gridfuse::is_launchable(grid, block)) return;
    gridfuse::for_each_block(grid, block, "#,
        "    child_serial(count, 512, out, begin, count);",
    ]);
    // No thread keeps anything for itself.
    rewrite(ID, &with_child(child, "child<<<count, n>>>(out, begin, count);")).has(&["child_serial(count, n, out,"]);
    let keeps = child.replace("out[begin + threadIdx.x] = all", "out[begin + own] = all");
    let keeps = keeps.replace(
        "__shared__ int all;",
        "__shared__ int all;\n    int own = out[threadIdx.x];",
    );
    refuses(
        ID,
        &with_child(&keeps, "child<<<count, n>>>(out, begin, count);"),
        "how many threads a block has isn't known",
    );
}

#[test]
fn what_a_thread_cannot_do_alone() {
    let child = r#"__global__ void child(int* out, int begin, int count) {
    out[begin] = __shfl_sync(~0u, count, 0);
}
"#;
    refuses(
        ID,
        &with_child(child, "child<<<count, 32>>>(out, begin, count);"),
        "works together with its warp",
    );
}

#[test]
fn parents_of_large_blocks_get_launch_bounds() {
    let with = |block: &str, bounds: &str| {
        program("for (int k = 0; k < count; ++k) child<<<1, 32>>>(out, begin + k, count);")
            .replace("<<<(n + 127) / 128, 128>>>", &format!("<<<(n + 127) / 128, {block}>>>"))
            .replace("void parent(", &format!("void {bounds}parent("))
    };
    for id in [ID, "threshold", "aggregate-grid-stream"] {
        for block in ["512", "dim3(32, 32)"] {
            // Whoever else launches it may do so with any block.
            rewrite(id, &with(block, "")).has(&["__global__ void __launch_bounds__(1024) parent("]);
        }
        for (block, bounds) in [("256", ""), ("n", ""), ("512", "__launch_bounds__(640) ")] {
            let result = rewrite(id, &with(block, bounds));
            assert_eq!(
                result.text().matches("__launch_bounds__").count(),
                usize::from(!bounds.is_empty())
            );
        }
    }
}

/// The program with a child of these statements, behind the thread's number.
fn with_code(code: &str) -> String {
    let child = format!(
        r#"struct Pair {{ int first; const int* second; }};
__device__ int operator+(Pair pair, int n) {{ return *pair.second + n; }}
__device__ int total;
struct Logged {{ __device__ ~Logged() {{ ++total; }} }};

__global__ void child(int* out, int begin, int count) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {code}
}}
"#
    );
    with_child(
        &child,
        "if (count > 0) child<<<(count + 31) / 32, 32>>>(out, begin, count);",
    )
}

#[test]
fn what_goes_to_one_place_is_collected() {
    let result = rewrite(
        ID,
        &with_code("if (i < count && out[i] > 3) atomicMin(&out[begin], out[begin + i]);"),
    );
    result.has(&[
        r#"// Runs a grid of child in one thread, with a single atomic; `gridfuse revert` takes it back.
__device__ inline void child_serial(dim3 grid, dim3 block, int* out, int begin, int count) {
    gridfuse::MinimumAt least(&out[begin]);
    gridfuse::for_each_thread<8>(grid, block, count,
                                 [&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < count && out[i] > 3) least.take(out[begin + i]);
    });
}"#,
        "child_serial((count + 31) / 32, 32, out, begin, count);",
    ]);
    assert!(!result.text().contains("child_thread"), "the child stays as it is");
    for (code, collected) in [
        (
            r#"if (i >= count) return;
    int sum = out[i];
    atomicAdd(&out[begin], sum);
    atomicAdd(&out[begin + 1], 1);"#,
            "sum2.take(sum);\n        sum3.take(1);",
        ),
        (
            r#"if (i < count) {
        if (out[i] > 0) atomicMax(&out[begin], out[i]);
        else atomicAdd(&out[begin], i);
    }"#,
            r#"if (out[i] > 0) most.take(out[i]);
            else sum.take(i);"#,
        ),
    ] {
        rewrite(ID, &with_code(code)).has(&[collected]);
    }
    // Combined by the warp as long as it is launched.
    let together = rewrite(
        "aggregate-atomics",
        &with_code("if (i < count) atomicAdd(&out[begin], i);"),
    );
    rewrite(ID, &together.text().replace("child<<<", "$0child<<<")).has(&["if (i < count) sum.take(i);"]);
}

#[test]
fn what_may_be_looked_at_again_is_not_collected() {
    for code in [
        // Something is read, or written, behind it.
        "atomicAdd(&out[begin], i);\n    out[i] = 1;",
        r#"atomicAdd(&out[begin], i);
    atomicAdd(&out[begin + 1], out[i]);"#,
        r#"if (i < count) atomicAdd(&out[begin], i);
    if (out[begin] > 5) out[i] = 1;"#,
        "for (int k = 0; k < out[k]; ++k) atomicAdd(&out[begin], k);",
        "atomicAdd(&out[begin], i);\n    __threadfence();",
        // A global variable and a reference may be read from memory.
        r#"atomicAdd(&out[begin], i);
    atomicAdd(&out[begin + 1], total);"#,
        r#"int& first = out[i];
    atomicAdd(&out[begin], i);
    atomicAdd(&out[begin + 1], first);"#,
        // Perhaps it isn't evaluated at all.
        "if (count != 0) atomicAdd(&out[begin / count], i);",
        "out[i] = atomicAdd(&out[begin], i);",
        "atomicAdd(&out[begin + i], i);",
        "atomicOr(&out[begin], i);",
        // Each thread begins with the arguments.
        "count -= 1;\n    if (i < count) atomicAdd(&out[begin], i);",
        r#"const int* in = out;
    out += 4;
    atomicAdd(&out[begin], in[i]);"#,
        // There is one of it for all kernels and functions.
        r#"static int calls;
    if (i < count) atomicAdd(&out[begin], ++calls);"#,
        // A type and a comment that end with the line, or with the body.
        r#"typedef unsigned mine;
    if (i < count) atomicAdd((mine*)&out[begin], 1u);"#,
        "atomicAdd(&out[begin // there\n        + 1], i);",
        r#"#if 1
    atomicAdd(&out[begin], i);
#endif"#,
    ] {
        let result = rewrite(ID, &with_code(code));
        assert!(!result.text().contains(".take("), "{code}");
        result.has(&["child_thread(threadIdx"]);
    }
    // With a threshold the other grids are launched, and the code is one for both.
    let text = with_code("if (i < count) atomicAdd(&out[begin], i);");
    assert!(!rewrite("threshold", &text).text().contains(".take("));
}

#[test]
fn what_runs_without_being_called_by_its_name() {
    let refuse = |code: &str, reason: &str| refuses(ID, &with_code(code).replace("child<<<", "$0child<<<"), reason);
    refuse(
        "Pair pair = {i, out};\n    out[i] = pair + 1;",
        "operator+, which isn't called by its name",
    );
    refuse("Logged logged;\n    out[i] = 1;", "the destructor of Logged");
    rewrite(ID, &with_code("Pair pair = {i, out};\n    out[i] = pair.first + 1;"));
}

#[test]
fn different_operations_are_done_in_the_order_of_the_text() {
    let collected = |code: &str| {
        let result = rewrite(ID, &with_code(code));
        let text = result.text().to_owned();
        let at = |name: &str| {
            text.find(&format!(" {name}(&out["))
                .unwrap_or_else(|| panic!("no {name} in\n{text}"))
        };
        [at("sum"), at(if code.contains("Max") { "most" } else { "sum2" })]
    };
    // What is declared last is done first.
    let [sum, most] = collected(
        r#"if (i < count) {
        atomicAdd(&out[begin], i);
        atomicMax(&out[begin], 3);
    }"#,
    );
    assert!(most < sum);
    let [first, second] = collected(
        r#"atomicAdd(&out[begin], i);
    atomicAdd(&out[begin + 1], 1);"#,
    );
    assert!(first < second);
}

#[test]
fn only_plain_pointers_are_collected_at() {
    let with = |ty: &str, place: &str| {
        let child = format!(
            r#"struct Table {{
    int* p;
    __device__ int& operator[](int i) const {{ return p[i]; }}
    __device__ operator int*() const {{ return p; }}
}};

__global__ void child({ty} out, int begin, int count) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd({place}, i);
}}
"#
        );
        let launch = match ty {
            "Table" => "child<<<1, 32>>>(Table{out}, begin, count);",
            _ => "child<<<1, 32>>>(out, begin, count);",
        };
        with_child(&child, launch)
    };
    // An operator would run though no thread comes there, and what it gives doesn't say its type.
    for place in ["&out[begin]", "out", "out + begin"] {
        let text = with("Table", place);
        assert!(!rewrite(ID, &text).text().contains(".take("), "{place}");
        refuses("aggregate-atomics", &text, "no atomic statement");
    }
    for place in ["&out[begin]", "out", "out + (begin + 1)", "(int*)&out[begin * 2]"] {
        assert!(rewrite(ID, &with("int*", place)).text().contains(".take("), "{place}");
    }
}

#[test]
fn names_that_macros_use_stay_what_they_are() {
    let child = r#"__device__ dim3 grid;
__device__ int sum;
#define CELLS (grid.x * LAST)
#define LAST sum
#define block 32

__global__ void child(int* out, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < CELLS) atomicAdd(&out[begin], i);
}
"#;
    rewrite(ID, &with_child(child, "child<<<count, 32>>>(out, begin, count);")).has(&[
        "void child_serial(dim3 launch_grid, dim3 launch_block, int* out",
        "gridfuse::SumAt sum2(&out[begin]);",
    ]);
}

#[test]
fn the_same_function_is_made_once() {
    let text = with_code("if (i < count) atomicAdd(&out[begin], i);").replace(
        "child<<<(count + 31) / 32, 32>>>(out, begin, count);",
        r#"{
        child<<<(count + 31) / 32, 32>>>(out, begin, count);
        child<<<(n + 31) / 32, 32>>>(out, 0, n);
    }"#,
    );
    let first = rewrite(ID, &text);
    let second = rewrite(ID, &first.text().replacen("child<<<", "$0child<<<", 1));
    assert_eq!(second.text().matches("void child_serial").count(), 1);
    second.has(&["child_serial((n + 31) / 32, 32, out, 0, n);"]);
}

/// The parent writes `out`, and its child reads through a pointer of another name.
fn with_restrict(child: &str, parent: &str) -> String {
    format!(
        r#"__global__ void child({child} in, int* to) {{
    to[threadIdx.x] = in[threadIdx.x];
}}

__global__ void parent({parent} out, const int* view, int* to) {{
    out[threadIdx.x] = 1;
    if (threadIdx.x == 0) child<<<1, 32>>>(view, to);
}}

void run(int* out, int* to) {{ parent<<<1, 32>>>(out, out, to); }}
"#
    )
}

#[test]
fn a_child_that_becomes_part_of_its_parent_is_not_restrict() {
    for id in [ID, "threshold"] {
        let result = rewrite(id, &with_restrict("const int* __restrict__", "int*"));
        result.has(&[
            "dim3 blockDim, const int* in, int* to)",
            "dim3 block, const int* in, int* to)",
        ]);
        result.has(&["__global__ void child(const int* __restrict__ in, int* to) {"]);
        assert!(!result.assumes.iter().any(|reason| reason.contains("__restrict__")));
        let restricted = rewrite(id, &with_restrict("const int*", "int* __restrict__"));
        assert!(restricted.assumes.iter().any(|reason| {
            reason.contains("`parent` writes nothing that `child` reads through another pointer: `out` is __restrict__")
        }));
    }
}

/// A triangular solve by levels: each level gathers what the ones before have written. Collected, they would run side by side; a thread
/// that runs its grids itself runs them in order.
#[test]
fn a_thread_keeps_the_order_of_its_grids() {
    let solve = r#"__global__ void level(const int* col, double* x, const int* order, int begin, int end) {
    int t = blockIdx.x * blockDim.x + threadIdx.x + begin;
    if (t >= end) return;
    int r = order[t];
    x[r] = x[r] - x[col[r]];
}
__global__ void solve(const int* col, double* x, const int* order, const int* first, int levels) {
    if (threadIdx.x == 0 && blockIdx.x == 0)
        for (int l = 0; l < levels; ++l)
            $0level<<<(first[l + 1] - first[l] + 127) / 128, 128>>>(col, x, order, first[l], first[l + 1]);
}
void run(const int* col, double* x, const int* order, const int* first, int levels) {
    solve<<<1, 32>>>(col, x, order, first, levels);
}
"#;
    let about = |id: &str| {
        let assumed = rewrite(id, solve).assumes.into_iter();
        assumed
            .filter(|reason| reason.contains("successive iterations"))
            .collect::<Vec<_>>()
    };
    assert!(about(ID).is_empty());
    for id in ["aggregate-grid", "fire-and-forget"] {
        let found = about(id);
        let gathers = "the code contradicts it: line 5 reads `x[col[r]]`, and line 5 writes `x[r]`";
        assert!(found.iter().any(|reason| reason.contains(gathers)), "{id}: {found:?}");
    }
}

/// Two kernels that a thread launches one after the other, of which the second goes on with what the first has written.
fn in_order(launches: &str) -> String {
    format!(
        r#"__global__ void blur(const float* in, float* tmp, int begin) {{
    tmp[begin + threadIdx.x] = in[begin + threadIdx.x] / 2;
}}
__global__ void sharpen(const float* in, const float* tmp, float* out, int begin) {{
    out[begin + threadIdx.x] = in[begin + threadIdx.x] - tmp[begin + threadIdx.x];
}}
__global__ void tiles(const float* in, float* tmp, float* out, const int* first, int n) {{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    int begin = first[t];
    {launches}
}}
void run(const float* in, float* tmp, float* out, const int* first, int n) {{
    tiles<<<(n + 127) / 128, 128>>>(in, tmp, out, first, n);
}}
"#
    )
}

#[test]
fn the_first_of_two_kernels_that_are_in_order_is_run_at_once() {
    let both = "$0blur<<<1, 64>>>(in, tmp, begin);\n    sharpen<<<1, 64>>>(in, tmp, out, begin);";
    let of_others = "grids of `blur` are independent of those of `sharpen` that other threads of a block launch";
    for id in [ID, "threshold"] {
        let result = rewrite(id, &in_order(both));
        assert!(
            result.assumes.iter().any(|reason| reason.starts_with(of_others)),
            "{id}"
        );
    }
    // Launched elsewhere, it would come too late.
    for id in ["aggregate-grid-host", "aggregate-grid-stream", "fire-and-forget"] {
        refuses(
            id,
            &in_order(both),
            "apply `serialize` to the launch of `blur` first, or let one block do what `blur` and `sharpen` do",
        );
    }
    // The second one has to wait until the first one is done.
    let second = both.replace("$0", "").replace("sharpen<<<", "$0sharpen<<<");
    for id in [ID, "threshold"] {
        refuses(
            id,
            &in_order(&second),
            "apply `serialize` to the launch of `blur` first",
        );
    }
    let first_is_done = rewrite(ID, &in_order(both))
        .text()
        .replace("sharpen<<<", "$0sharpen<<<");
    for id in [ID, "threshold", "aggregate-grid"] {
        let result = rewrite(id, &first_is_done);
        assert!(!result.assumes.iter().any(|reason| reason.contains("`blur`")), "{id}");
    }
}

#[test]
fn what_comes_again_is_not_first() {
    let both = "$0blur<<<1, 64>>>(in, tmp, begin);\n    sharpen<<<1, 64>>>(in, tmp, out, begin);";
    let reason = "grids of `blur` aren't independent of other grids that `tiles` launches into the NULL stream";
    // Each `blur` but the first one follows a `sharpen`.
    for (around, end) in [
        ("for (int k = 0; k < 2; ++k) {", "}"),
        ("again:", "if (n-- > 7) goto again;"),
    ] {
        refuses(ID, &in_order(&format!("{around} {both} {end}")), reason);
    }
    // So it does where a thread comes to the function twice.
    let twice = in_order(both)
        .replace("__global__ void tiles", "__device__ void tiles")
        .replace(
            "void run(",
            "__global__ void all(const float* in, float* tmp, float* out, const int* first, int n) {\n    \
             tiles(in, tmp, out, first, n);\n    tiles(in, tmp, out, first, n);\n}\nvoid run(",
        )
        .replace("tiles<<<", "all<<<");
    refuses(ID, &twice, reason);
}

#[test]
fn one_thread_that_launches_both_has_no_others_beside_it() {
    let alone = "if (t == 0) {\n        $0blur<<<1, 64>>>(in, tmp, begin);\n        sharpen<<<1, 64>>>(in, tmp, out, begin);\n    }";
    let result = rewrite(ID, &in_order(alone));
    assert!(
        result.assumes.iter().all(|reason| !reason.contains("sharpen")),
        "{:?}",
        result.assumes
    );
    // Another thread launches the second one, in an order that nobody knows, but not at the same time.
    let apart =
        "if (t == 0) $0blur<<<1, 64>>>(in, tmp, begin);\n    if (t == 1) sharpen<<<1, 64>>>(in, tmp, out, begin);";
    let result = rewrite(ID, &in_order(apart));
    assert!(
        result
            .assumes
            .iter()
            .any(|reason| reason.contains("those of `sharpen` that other threads"))
    );
}

/// What a function launches that is the host's as well, the host may launch: no rewrite of a launch by the device fits there.
#[test]
fn functions_of_the_host_as_well() {
    let program = |head: &str, launch: &str| {
        format!(
            r#"__global__ void child(int* b, int n) {{ if (threadIdx.x < n) b[threadIdx.x] = n; }}
{head} void run(int* b, int n) {{
    {launch}
}}
__global__ void parent(int* b, int n) {{ run(b + 32 * threadIdx.x, n); }}
void host(int* b, int n) {{ parent<<<1, 32>>>(b, n); }}
"#
        )
    };
    for id in ["serialize", "threshold", "coarsen", "fire-and-forget"] {
        refuses(
            id,
            &program("__host__ __device__", "$0child<<<2, 32>>>(b, n);"),
            "`run` is a function of the host, too",
        );
    }
    let for_device = "\n#ifdef __CUDA_ARCH__\n    $0child<<<2, 32>>>(b, n);\n#endif\n";
    rewrite("serialize", &program("__host__ __device__", for_device));
    rewrite("serialize", &program("__device__", "$0child<<<2, 32>>>(b, n);"));
}
