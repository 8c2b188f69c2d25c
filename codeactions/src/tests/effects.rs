//! What a function does, looked up in tokens: how far that goes.

use std::path::Path;
use std::sync::Arc;

use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::host::Host;

use crate::facts::effects::{Effects, effects};

/// The effects of the function `parent` of a program.
fn of_parent(text: &str) -> Arc<Effects> {
    let mut host = Host::new();
    let path = Path::new("/p/a.cu");
    host.set_file(path, text.to_owned());
    let file = host.file(path).unwrap();
    let db = host.db();
    let functions = &items(db, file).functions;
    let parent = functions.iter().find(|f| f.name(db) == "parent").unwrap();
    effects(db, *parent)
}

/// A parent that uses the last of macros, each of which uses the one before twice.
fn doubling(count: usize) -> String {
    let macros: String = (0..count).map(|k| format!("#define M{} M{k} M{k}\n", k + 1)).collect();
    format!(
        r#"__global__ void child();
#define M0 child<<<1, 32>>>();
{macros}__global__ void parent() {{ M{count} }}
"#
    )
}

#[test]
fn macros_count_as_often_as_they_are_used() {
    let found = of_parent(&doubling(5));
    assert_eq!(found.launches.len(), 32);
    assert!(found.unknown.iter().all(|f| !f.what.contains("macro")), "{found:?}");
}

#[test]
fn macros_that_stand_for_too_much_are_unknown() {
    for text in [
        doubling(40),
        // Twice as much as is followed, at once.
        format!(
            "#define M {}\n__global__ void parent() {{ M }}\n",
            "; ".repeat(256 << 10)
        ),
        // Deeper than is followed.
        format!(
            r#"#define M0 __syncthreads();
{}__global__ void parent() {{ M100 }}
"#,
            (0..100)
                .map(|k| format!("#define M{} M{k}\n", k + 1))
                .collect::<String>()
        ),
    ] {
        let found = of_parent(&text);
        let said = found
            .unknown
            .iter()
            .filter(|f| f.what.contains("too large to be followed"));
        assert_eq!(said.count(), 1, "{:?}", found.unknown);
    }
}

#[test]
fn cooperative_groups() {
    let of = |statements: &str| of_parent(&format!("__global__ void parent(int* out, int x) {{ {statements} }}\n"));
    let builtins = |found: &Effects| -> Vec<&'static str> {
        let mut names: Vec<_> = found.builtins_in_callees.iter().map(|(name, ..)| *name).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    for statements in [
        "auto block = cooperative_groups::this_thread_block(); block.sync();",
        "cg::thread_block block = cg::this_thread_block(); block.sync(); out[block.thread_rank()] = 1;",
        "cg::this_thread_block().sync();",
        "using namespace cooperative_groups; thread_block block = this_thread_block(); block.sync();",
    ] {
        let found = of(statements);
        assert_eq!(found.unknown, [], "{statements}");
        assert_eq!(found.barriers.len(), 1, "{statements}");
        assert_eq!(builtins(&found), ["blockDim", "threadIdx"], "{statements}");
    }
    for statements in [
        "auto tile = cg::tiled_partition<32>(cg::this_thread_block()); x += tile.shfl_down(x, 1); tile.sync();",
        "cg::thread_block_tile<16> tile = cg::tiled_partition<16>(cg::this_thread_block()); x += tile.shfl_xor(x, 1); tile.sync();",
        "auto active = cg::coalesced_threads(); active.sync();",
    ] {
        let found = of(statements);
        assert_eq!(found.unknown, [], "{statements}");
        assert_eq!((found.barriers.len(), found.warp.len()), (0, 2), "{statements}");
    }
    for statements in [
        "cg::this_grid().sync();",
        "auto tile = cg::tiled_partition<64>(cg::this_thread_block()); tile.sync();",
        "auto tile = cg::tiled_partition(cg::this_thread_block(), x); tile.sync();",
        "auto block = cg::this_thread_block(); block.barrier_wait(block.barrier_arrive());",
        "auto block = mine::this_thread_block(); block.sync();",
        "auto block = cg::this_thread_block(); cg::reduce(block, x, cg::plus<int>());",
        "mystery.sync();",
    ] {
        assert!(!of(statements).unknown.is_empty(), "{statements}");
    }
    let found = of("auto grid = cg::this_grid(); out[grid.thread_rank()] = 1;");
    assert_eq!(builtins(&found), ["blockDim", "blockIdx", "gridDim", "threadIdx"]);
    let found = of("auto block = cg::this_thread_block(); out[block.group_index().x] = 1;");
    assert_eq!(builtins(&found), ["blockDim", "blockIdx", "threadIdx"]);
}

#[test]
fn functions_of_the_library() {
    let of = |statement: &str| {
        of_parent(&format!(
            "__global__ void parent(float* out, float x) {{ {statement} }}\n"
        ))
    };
    for plain in [
        "out[0] = erfcf(x) + __half2float(__float2half(x));",
        "sincosf(x, out, out + 1);",
        "curand_init(1, 2, 3, (curandState*)out);",
        "std::swap(out[0], out[1]);",
        "assert(x > 0);",
    ] {
        assert_eq!(*of(plain), Effects::default(), "{plain}");
    }
    // Memory of one thread may stand for shared memory.
    for beyond in [
        "__pipeline_memcpy_async(out, out + 1, 4, 0);",
        "int a = __cvta_generic_to_shared(out);",
        "__barrier_sync_count(1, 32);",
        "cudaLaunchDevice(out, 0);",
        "__read_tid2(x);",
    ] {
        assert!(!of(beyond).unknown.is_empty(), "{beyond}");
    }
    assert_eq!(of("out[0] = __ldg(out);").read_only.len(), 1);
    assert_eq!(of("__threadfence_cluster();").fences.len(), 1);
    assert_eq!(of("__reduce_add_sync(~0u, 1);").warp.len(), 1);
    assert_eq!(of("__syncthreads_count(1);").barriers.len(), 1);
}
