//! What a function does, looked up in tokens: how far that goes.

use std::path::Path;
use std::sync::Arc;

use gridfuse_analysis::facts::effects::{Effects, effects};
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::host::Host;

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
    ] {
        let found = of_parent(&text);
        let said = found
            .unknown
            .iter()
            .filter(|f| f.what.contains("too large to be followed"));
        assert_eq!(said.count(), 1, "{:?}", found.unknown);
    }
    // One in the other, however deep: lowered code has what they stand for in the end.
    let deep = format!(
        r#"#define M0 __syncthreads();
{}__global__ void parent() {{ M100 }}
"#,
        (0..100)
            .map(|k| format!("#define M{} M{k}\n", k + 1))
            .collect::<String>()
    );
    assert_eq!(of_parent(&deep).barriers.len(), 1);
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

#[test]
fn calls_by_something_else_than_a_name() {
    for (definitions, statements) in [
        ("", "int (*table[2])(int); out[0] = table[x](x);"),
        ("", "int (**f)(int); out[0] = (*f)(x);"),
        (
            "__device__ int other(int a) { __syncthreads(); return a; }",
            "int (*f)(int) = [](int a) { return a; }; f = pick(other); out[0] = f(x);",
        ),
    ] {
        let text = format!("{definitions}\n__global__ void parent(int* out, int x) {{ {statements} }}\n");
        assert!(!of_parent(&text).unknown.is_empty(), "{statements}");
    }
    let own = of_parent("__global__ void parent(int* out, int x) { auto f = [&](int a) { out[0] = a; }; f(x); }\n");
    assert_eq!(own, Arc::new(Effects::default()));
}

#[test]
fn overloads_without_a_definition() {
    let text = r#"__device__ int pick(int a);
__device__ int pick(float a) { return 1; }
__global__ void parent(int* out, int x) { out[0] = pick(x); }
"#;
    let found = of_parent(text);
    assert_eq!(found.unknown.len(), 1, "{:?}", found.unknown);
    assert!(of_parent(&text.replace("(int a);", "(float a);")).unknown.is_empty());
}

#[test]
fn loops_that_wait() {
    for code in [
        "while (atomicCAS(out, 0, 1)) {}",
        "while (*(volatile int*)out == 0) {}",
        "do { x = atomicExch(out, 1); } while (x);",
        "for (; atomicAdd(out, 0) != 3;) {}",
    ] {
        let own = of_parent(&format!("__global__ void parent(int* out, int x) {{ {code} }}\n"));
        assert_eq!(own.waits.len(), 1, "{code}");
        let called = format!(
            "__device__ void spin(int* out, int x) {{ {code} }}\n__global__ void parent(int* out, int x) {{ spin(out, x); }}\n"
        );
        assert_eq!(of_parent(&called).waits.len(), 1, "{code}");
    }
    assert!(
        of_parent("__global__ void parent(int* out, int x) { while (x > 0) --x; }\n")
            .waits
            .is_empty()
    );
}

/// What isn't lowered is seen all the same.
#[test]
fn code_that_is_not_lowered() {
    let with = |definitions: &str, code: &str| {
        let text = format!("{definitions}\n__global__ void parent(int* out, int x) {{ {code} }}\n");
        of_parent(&text)
    };
    // Classes that the function defines, with calls in their members.
    let found = with(
        "",
        "struct Own { __device__ void meet() { __syncthreads(); } }; Own own; own.meet();",
    );
    assert_eq!(found.barriers.len(), 1);
    let found = with(
        "",
        "struct Own { __device__ int f() { return mystery(1); } }; out[0] = sizeof(Own);",
    );
    assert!(found.unknown.iter().any(|f| f.what.contains("mystery")), "{found:?}");
    // A branch that isn't compiled for the device may be what a rewrite makes device code of.
    let found = with("", "\n#ifndef __CUDA_ARCH__\n__syncthreads();\n#endif\n");
    assert_eq!(found.barriers.len(), 1);
    // Template arguments, and what is read as one.
    let found = with(
        "template <int N> __device__ int times(int a) { return N * a; }\n__device__ constexpr int two() { return 2; }",
        "out[0] = times<two()>(x);",
    );
    assert_eq!(found.unknown, []);
    let found = with(
        "template <int N> __device__ int times(int a) { return N * a; }",
        "out[0] = times<mystery()>(x);",
    );
    assert!(found.unknown.iter().any(|f| f.what.contains("mystery")), "{found:?}");
}

#[test]
fn macros_in_lowered_code() {
    // What stands in a macro's text is what is done where it is used.
    let found = of_parent(
        r#"#define MEET __syncthreads()
#define BOTH(a) do { MEET; a; } while (0)
#define CODE "bar.sync 0;"
__global__ void child();
__global__ void parent(int* out) {
    BOTH((child<<<1, 32>>>()));
    asm volatile(CODE);
}
"#,
    );
    assert_eq!((found.barriers.len(), found.launches.len()), (1, 1), "{found:?}");
    assert_eq!(found.asm.len(), 1);
    assert_eq!(found.asm[0].text.as_deref(), Some("bar.sync 0;"));
    assert_eq!(found.unknown, []);
    // One that has its own name in it stands for that name.
    let found = of_parent(
        r#"__device__ void meet() { __syncthreads(); }
#define meet() meet()
__global__ void parent(int* out) { meet(); }
"#,
    );
    assert_eq!(found.barriers.len(), 1, "{found:?}");
}

#[test]
fn of_many_functions_as_many_are_looked_at_as_there_is_time_for() {
    // Each calls three others, so that all are reached in a few steps; the last ones hold barriers.
    let program = |count: usize| {
        let called = move |k: usize| (1..=3).map(move |c| 3 * k + c).filter(move |c| *c < count);
        let functions: String = (0..count)
            .rev()
            .map(|k| {
                let calls: String = called(k).map(|c| format!(" f{c}(x);")).collect();
                let barrier = if called(k).next().is_none() {
                    " __syncthreads();"
                } else {
                    ""
                };
                format!("__device__ void f{k}(int x) {{{calls}{barrier} }}\n")
            })
            .collect();
        format!("{functions}__global__ void parent(int x) {{ f0(x); }}\n")
    };
    let whole = of_parent(&program(200));
    assert_eq!((whole.barriers.len(), whole.unknown.len()), (133, 0));
    let cut = of_parent(&program(2_000));
    let said: Vec<&str> = cut.unknown.iter().map(|f| f.what.as_str()).collect();
    assert_eq!(said, ["more functions than are looked at"]);
    assert!(cut.barriers.len() < 256, "{}", cut.barriers.len());
}
