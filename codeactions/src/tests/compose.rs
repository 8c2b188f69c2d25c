//! Several rewrites one after the other.

use super::{Rewritten, program, refuses, rewrite, rewrite_files, with_child};

fn mark(text: &str, launch: &str) -> String {
    text.replacen(launch, &format!("$0{launch}"), 1)
}

fn again(id: &str, result: &Rewritten, launch: &str) -> Rewritten {
    rewrite(id, &mark(result.text(), launch))
}

#[test]
fn threshold_then_aggregate() {
    let first = rewrite(
        "threshold",
        &program("child<<<(count + 31) / 32, 32>>>(out, begin, count);"),
    );
    let both = again("aggregate-block", &first, "child<<<");
    both.has(&[
        r#"else
        children.launch((count + 31) / 32, 32, {begin, count});"#,
        "child_thread(threadIdx, blockIdx, gridDim, blockDim, out, args.begin, args.count);",
        "children(arena, out);",
    ]);
    assert_eq!(both.text().matches("out[begin + i] = count;").count(), 1);
    assert_eq!(both.text().matches("#include").count(), 1);
}

#[test]
fn atomics_of_the_header_are_not_those_of_the_program() {
    let text = program("child<<<(count + 31) / 32, 32>>>(out, begin, count);")
        .replace("out[begin + i] = count;", "atomicAdd(&out[begin + i], 1);");
    let first = rewrite("threshold", &text);
    let source = mark(first.text(), "child<<<");
    let Some(header) = first.files.get("gridfuse.cuh") else {
        panic!("{:?}", first.files.keys())
    };
    let files = [("a.cu", source.as_str()), ("gridfuse.cuh", header.as_str())];
    let second = rewrite_files("aggregate-grid", &files, &[]).unwrap_or_else(|reasons| panic!("refused: {reasons:#?}"));
    assert_eq!(second.assumes, rewrite("aggregate-grid", &text).assumes);
}

#[test]
fn threshold_then_fire_and_forget() {
    let first = rewrite(
        "threshold",
        &program("child<<<(count + 31) / 32, 32>>>(out, begin, count);"),
    );
    again("fire-and-forget", &first, "child<<<").has(&["child<<<(count + 31) / 32, 32, 0, cudaStreamFireAndForget>>>"]);
}

#[test]
fn a_launch_beside_an_aggregator() {
    let single = program("child<<<1, 32>>>(out, begin, count);");
    let first = rewrite("aggregate-block", &mark(&single, "child<<<1"));
    let launch = "children.launch(1, 32, {begin, count});";
    let added = first
        .text()
        .replace(launch, &format!("{launch}\n    child<<<2, 64>>>(out + v, 0, count);"));
    let both = rewrite("aggregate-block", &mark(&added, "child<<<2"));
    both.has(&[
        "children2(arena, 0);",
        "children2.launch(2, 64, {out + v, count});",
        "struct child_args2 { int* out; int count; };",
        "gridfuse::arena_for((n + 127) / 128, 128, /*stream=*/0, /*bytes_per_thread=*/64,
                            /*aggregators=*/2)",
    ]);
    assert_eq!(both.text().matches("out[begin + i] = count;").count(), 1);
    refuses("threshold", &mark(&added, "child<<<2"), "apply `threshold` first");
}

#[test]
fn launches_are_collected_all_or_none() {
    let text = program(
        r#"child<<<1, 32>>>(out, begin, count);
    child<<<2, 64>>>(out + v, 0, count);"#,
    );
    let result = rewrite("aggregate-block", &mark(&text, "child<<<2"));
    result.has(&[
        "struct child_args { int* out; int begin; int count; };",
        "children(arena);\n",
        r#"children.launch(1, 32, {out, begin, count});
    children.launch(2, 64, {out + v, 0, count});"#,
        "gridfuse::room_for<child_args>(/*launches_per_thread=*/2)));",
    ]);
    assert!(result.assumes.iter().any(|a| a.contains("independent of other grids")));
    let helper = program("helper(out);\n    child<<<1, 32>>>(out, begin, count);").replacen(
        "__global__ void parent",
        r#"__device__ void helper(int* out) { child<<<1, 1>>>(out, 0, 1); }
__global__ void parent"#,
        1,
    );
    rewrite("aggregate-block", &mark(&helper, "child<<<1, 32")).has(&[
        "children.launch(1, 1, {0, 1});",
        r#"helper(children, out);
    children.launch(1, 32, {begin, count});"#,
    ]);
    // One that can't be collected is in the way of the others.
    let tail = program(
        r#"child<<<1, 32>>>(out, begin, count);
    child<<<1, 32, 0, cudaStreamTailLaunch>>>(out, begin, count);"#,
    );
    refuses(
        "aggregate-block",
        &mark(&tail, "child<<<1, 32>>>"),
        "a tail launch can't be collected; launch `child` where `parent` is launched",
    );
}

#[test]
fn launches_of_different_children_and_shapes() {
    let children = r#"template <class T>
__global__ void child(T* out, int begin, int count) {
    atomicAdd(&out[begin], T(count));
}

__global__ void other(int* out, int scale) {
    atomicAdd(out + threadIdx.y, scale);
}
"#;
    let launches = r#"if (count > 9) child<int><<<1, 32>>>(out, n, count);
    else other<<<1, dim3(8, 4)>>>(out, n);
    child<int><<<count, 64>>>(out, n, begin);
    other<<<2, dim3(4, 8)>>>(out, n);
    child<unsigned><<<1, 32>>>((unsigned*)out, 0, count);"#;
    let result = rewrite("aggregate-grid", &with_child(children, launches));
    result.has(&[
        "gridfuse::Aggregator<gridfuse::PerGrid, child_aggregated<int>> children(arena, out, n);\n",
        "gridfuse::Aggregator<gridfuse::PerGrid, other_aggregated> others(arena, out, n);\n",
        "gridfuse::Aggregator<gridfuse::PerGrid, other_aggregated2> others2(arena, out, n);\n",
        "gridfuse::Aggregator<gridfuse::PerGrid, child_aggregated2<unsigned>> children2(arena, 0);\n",
        r#"if (count > 9) children.launch(1, 32, {count});
    else others.launch(1, dim3(8, 4), {});
    children.launch(count, 64, {begin});
    others2.launch(2, dim3(4, 8), {});
"#,
        "gridfuse::arena_for((n + 127) / 128, 128, /*stream=*/0, /*bytes_per_thread=*/64,
                            /*aggregators=*/4)",
    ]);
    assert_eq!(
        result.text().matches("_body(uint3 blockIdx").count(),
        2,
        "each child is outlined once"
    );
}

#[test]
fn two_thresholds_share_what_they_can() {
    let text = program(
        r#"child<<<begin, 32>>>(out, begin, count);
    child<<<v, 64>>>(out + v, 0, count);"#,
    );
    let first = rewrite("threshold", &mark(&text, "child<<<begin"));
    let both = again("threshold", &first, "child<<<v");
    assert_eq!(both.text().matches("constexpr int").count(), 1);
    assert_eq!(both.text().matches("void child_serial").count(), 1);
    both.has(&["child_serial(v, 64, out + v, 0, count);"]);
}

#[test]
fn coarsen_then_aggregate() {
    let text = program("child<<<(count + 31) / 32, 32>>>(out, begin, count);");
    let first = rewrite("coarsen", &text);
    for id in [
        "aggregate-grid",
        "aggregate-block",
        "aggregate-warp",
        "aggregate-multiblock",
    ] {
        let both = again(id, &first, "child_coarsened<<<");
        both.has(&[
            "struct child_coarsened_args { dim3 grid; int begin; int count; };",
            "children.launch(gridfuse::coarsened((count + 31) / 32, kChildCoarsening), 32,",
        ]);
        assert_eq!(both.text().matches("out[begin + i] = count;").count(), 1);
    }
    refuses(
        "threshold",
        &mark(first.text(), "child_coarsened<<<"),
        "apply `threshold` first",
    );
}

#[test]
fn threshold_then_coarsen_then_aggregate() {
    let text = program("child<<<(count + 31) / 32, 32>>>(out, begin, count);");
    let first = rewrite("threshold", &text);
    let second = again("coarsen", &first, "child<<<");
    second.has(&[
        "child_thread(threadIdx, make_uint3(block, blockIdx.y, blockIdx.z), grid, blockDim, out,
                     begin, count);",
    ]);
    let third = again("aggregate-grid", &second, "child_coarsened<<<");
    third.has(&["if (count < kChildThreshold)", "children.launch("]);
    assert_eq!(third.text().matches("out[begin + i] = count;").count(), 1);
}

#[test]
fn two_coarsened_launches_share_a_kernel() {
    let text = program(
        r#"child<<<begin, 32>>>(out, begin, count);
    child<<<v, 64>>>(out + v, 0, count);"#,
    );
    let first = rewrite("coarsen", &mark(&text, "child<<<begin"));
    let both = again("coarsen", &first, "child<<<v");
    assert_eq!(both.text().matches("constexpr int").count(), 1);
    assert_eq!(both.text().matches("void child_coarsened").count(), 1);
    both.has(&["child_coarsened<<<gridfuse::coarsened(v, kChildCoarsening), 64>>>(v, out + v, 0, count);"]);
}
