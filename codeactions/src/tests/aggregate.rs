//! What differs between the granularities of aggregation.

use super::{program, refuses, rewrite, rewrite_files, with_child};

#[test]
fn each_granularity_has_its_type() {
    let text = program("if (count > 0) child<<<(count + 31) / 32, 32>>>(out, begin, count);");
    for (id, ty, noun) in [
        ("aggregate-warp", "PerWarp", "a warp"),
        ("aggregate-block", "PerBlock", "a block"),
        ("aggregate-multiblock", "PerMultiBlock<8>", "a group of blocks"),
        ("aggregate-grid", "PerGrid", "a grid"),
    ] {
        let result = rewrite(id, &text);
        result.has(&[
            &format!("gridfuse::Aggregator<gridfuse::{ty}, child_aggregated> childs(arena, out);"),
            &format!("// The arguments of child that differ within {noun} of parent.\n"),
        ]);
        assert!(
            result
                .assumes
                .iter()
                .any(|a| a.contains("different threads of a block"))
        );
    }
    let four = rewrite_files("aggregate-multiblock", &[("a.cu", &text)], &[("blocks", "4")]);
    assert!(four.is_ok_and(|r| r.text().contains("gridfuse::PerMultiBlock<4>")));
    for value in ["0", "-1", "x"] {
        let refused = rewrite_files("aggregate-multiblock", &[("a.cu", &text)], &[("blocks", value)]);
        assert!(refused.is_err_and(|r| r.iter().any(|r| r.contains("must be a number"))));
    }
}

/// Blocks that launch together differ in `blockIdx`, whatever it was that they computed from it.
#[test]
fn what_a_block_has_in_common_differs_between_blocks() {
    let launch = "int first = blockIdx.x * 7;\n    child<<<1 + begin, 32>>>(out, blockIdx.x, blockDim.x + gridDim.x);\n    (void)first;";
    for (id, varying, uniform) in [
        (
            "aggregate-warp",
            "child_args {}",
            "arena, out, blockIdx.x, blockDim.x + gridDim.x",
        ),
        (
            "aggregate-block",
            "child_args {}",
            "arena, out, blockIdx.x, blockDim.x + gridDim.x",
        ),
        (
            "aggregate-multiblock",
            "child_args { int begin; }",
            "arena, out, blockDim.x + gridDim.x",
        ),
        (
            "aggregate-grid",
            "child_args { int begin; }",
            "arena, out, blockDim.x + gridDim.x",
        ),
    ] {
        rewrite(id, &program(launch)).has(&[varying, uniform]);
    }
}

#[test]
fn shapes_that_a_block_has_in_common_differ_between_blocks() {
    let child =
        "__global__ void child(int* out, int begin) {\n    atomicAdd(&out[begin], blockDim.x * blockDim.y);\n}\n";
    let text = with_child(
        child,
        "child<<<1, dim3(1 + blockIdx.x % 4, 1 + blockIdx.x % 3)>>>(out, begin);",
    );
    for id in ["aggregate-warp", "aggregate-block"] {
        rewrite(id, &text);
    }
    for id in ["aggregate-multiblock", "aggregate-grid"] {
        refuses(id, &text, "may have several dimensions and differ");
    }
}
