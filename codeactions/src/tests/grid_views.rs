//! Children that ask cooperative groups which thread, which block, and how many there are.

use super::fixes::fix;
use super::{refuses, rewrite, with_child};

const BY_BLOCKS: [&str; 4] = ["aggregate-block", "aggregate-grid", "aggregate-grid-host", "coarsen"];

/// A program whose child has this body.
fn program(body: &str) -> String {
    let child = format!(
        r#"#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ unsigned long long rank_of(cg::grid_group grid) {{ return grid.thread_rank(); }}
__global__ void child(int* out, int begin, int count) {{
{body}
}}
"#
    );
    with_child(&child, "if (count > 0) $0child<<<4, 32>>>(out, begin, count);")
}

#[test]
fn the_grid_says_who_a_thread_is() {
    for (body, expected) in [
        (
            "    auto grid = cg::this_grid();\n    for (auto i = grid.thread_rank(); i < count; i += grid.size()) out[begin + i] = 1;",
            "auto grid = gridfuse::view_of(cg::this_grid(), threadIdx, blockIdx, gridDim, blockDim);",
        ),
        (
            "    cg::grid_group grid = cg::this_grid();\n    if (grid.block_rank() == 0) out[begin] = grid.num_blocks();",
            "if (gridfuse::view_of(grid, threadIdx, blockIdx, gridDim, blockDim).block_rank() == 0)",
        ),
        (
            "    const int i = cg::this_grid().thread_rank();\n    out[begin + i] = i;",
            "const int i = gridfuse::view_of(cg::this_grid(), threadIdx, blockIdx, gridDim, blockDim).thread_rank();",
        ),
        (
            "    auto block = cg::this_thread_block();\n    out[begin + block.group_index().x] = block.thread_rank();\n    block.sync();",
            "out[begin + gridfuse::view_of(block, threadIdx, blockIdx, gridDim, blockDim).group_index().x] = block.thread_rank();",
        ),
    ] {
        let text = program(body);
        for id in BY_BLOCKS {
            let result = rewrite(id, &text);
            let flat = result.text().split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains(expected), "{id}: {}", result.text());
            let back = fix("revert", &marked(result.text()), &[]).unwrap_or_else(|reasons| panic!("{id}: {reasons:?}"));
            assert_eq!(back.0, text.replace("$0", ""), "{id}");
        }
    }
}

/// The text with a place of the rewritten launch marked.
fn marked(text: &str) -> String {
    let at = [".launch(", "child_coarsened<<<", "child<<<"]
        .iter()
        .find_map(|launch| text.rfind(launch))
        .unwrap_or_default();
    format!("{}$0{}", &text[..at], &text[at..])
}

#[test]
fn what_else_a_grid_is_used_for() {
    for body in [
        "    auto grid = cg::this_grid();\n    grid.sync();\n    out[begin] = grid.thread_rank();",
        "    auto grid = cg::this_grid();\n    out[begin] = rank_of(grid) + grid.thread_rank();",
        "    auto grid = cg::this_grid();\n    auto other = grid;\n    out[begin] = other.thread_rank();",
        "    auto grid = cg::this_grid();\n    out[begin] = grid.is_valid();",
        "    auto grid = cg::this_grid();\n    static_assert(sizeof(grid) <= 16);\n    out[begin] = grid.thread_rank();",
        "    auto& grid = *new cg::grid_group(cg::this_grid());\n    out[begin] = grid.thread_rank();",
        "    cg::grid_group grid = cg::this_grid();\n    auto rank = [&] { return grid.thread_rank(); };\n    out[begin] = rank();",
        "    struct Local { int of(cg::grid_group grid) { return grid.thread_rank(); } };\n    auto grid = cg::this_grid();\n    out[begin] = Local().of(grid);",
        "#define RANK(g) g.thread_rank()\n    cg::grid_group grid = cg::this_grid();\n    out[begin] = RANK(grid);",
    ] {
        refuses("aggregate-block", &program(body), "`");
    }
}
