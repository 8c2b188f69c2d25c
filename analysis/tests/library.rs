//! What calls of library functions mean: what the program has by their names comes first.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use gridfuse_analysis::facts::effects::summary;
use gridfuse_analysis::facts::launch::launches;
use gridfuse_analysis::facts::uniformity::{Level, changes_around};
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::hir::{StmtId, StmtKind, body};
use gridfuse_analysis::host::Host;

/// How uniform the argument of a launch is, behind `statements` of the parent and `definitions` before it.
fn level(definitions: &str, statements: &str, argument: &str) -> Level {
    let mut host = Host::new();
    let source = format!(
        r#"{definitions}
__global__ void child(float x) {{}}
__global__ void parent(float* p, float s, int n, int lane) {{ {statements} child<<<1, 32>>>({argument}); }}
"#
    );
    let file = host.set_file(Path::new("/w/a.cu"), source);
    let db = host.db();
    let functions = &items(db, file).functions;
    let parent = functions.iter().find(|f| f.name(db) == "parent").unwrap();
    launches(db, *parent)[0].args[0].uniformity.level
}

#[test]
fn results_of_what_the_table_has() {
    for uniform in [
        "erff(s)",
        "erfcf(s)",
        "std::erfc(s)",
        "::normcdff(s)",
        "cuda::std::min(n, 4)",
        "__half2float(__hadd2_sat(__float2half2_rn(s), __float2half2_rn(s)))",
        "__vadd2(n, 3)",
        "__double2float_rz(s)",
        "__nv_bswap32(n)",
    ] {
        assert!(level("", "", uniform) <= Level::Grid, "{uniform}");
    }
    for varying in [
        "erfcf(threadIdx.x)",
        "clock()",
        "__nanosleep(n)",
        "norm(n, p)",
        "curand_uniform(&state)",
        "__read_tid2(n)",
        "float2double_rn(n)",
        "mine::sinf(s)",
        "std::__syncthreads_or(n)",
        "std::swap(s, s)",
        "cudaGetParameterBuffer(4, 4)",
        "tex1Dfetch<float>(n, n)",
    ] {
        assert_eq!(level("", "", varying), Level::Varying, "{varying}");
    }
    assert_eq!(level("", "", "__shfl_sync(0xffffffff, threadIdx.x, 0)"), Level::Warp);
    assert_eq!(
        level("", "", "__shfl_sync(0xffffffff, threadIdx.x, threadIdx.x)"),
        Level::Varying
    );
    assert_eq!(
        level("", "", "__shfl_down_sync(0xffffffff, threadIdx.x, 1)"),
        Level::Varying
    );
    assert_eq!(level("", "", "__syncthreads_or(threadIdx.x)"), Level::Block);
    assert!(level("", "if (threadIdx.x & 1) return;", "__activemask()") == Level::Varying);
}

#[test]
fn results_that_come_out_through_pointers() {
    for (statements, argument) in [
        ("float a = 0, b = 0; sincosf(threadIdx.x, &a, &b);", "a"),
        ("float a = 0, b = 0; sincosf(threadIdx.x, &a, &b);", "b"),
        ("int e = 0; frexp(threadIdx.x, &e);", "e"),
        ("int q = 0; std::remquo(threadIdx.x, s, &q);", "q"),
        ("float i = 0; modff(threadIdx.x, &i);", "i"),
        ("int all = 0; __match_all_sync(~0u, threadIdx.x, &all);", "all"),
        ("bool less = false; __vibmin_s32(threadIdx.x, n, &less);", "less"),
        ("sincosf(threadIdx.x, p, p + 1);", "p[0]"),
        ("frexpf(threadIdx.x, (int*)p);", "p[0]"),
        ("memcpy(p, &lane, 4);", "p[0]"),
    ] {
        assert_eq!(level("", statements, argument), Level::Varying, "{statements}");
    }
    let writes = |statement: &str| {
        let mut host = Host::new();
        let source = format!("__device__ void f(float* p, float x, int* i) {{ {statement} }}");
        let file = host.set_file(Path::new("/w/a.cu"), source);
        let db = host.db();
        let summary = summary(db, *items(db, file).functions.last().unwrap());
        assert!(summary.unknown_calls.is_empty(), "{statement}");
        summary.writes_params.iter().copied().collect::<Vec<u32>>()
    };
    assert_eq!(writes("sincosf(x, p, p + 1);"), [0]);
    assert_eq!(writes("x = frexpf(x, i);"), [2]);
    assert_eq!(writes("x = sinf(x) + *i;"), Vec::<u32>::new());
    assert_eq!(writes("cudaGetDevice(i);"), [2]);
}

#[test]
fn what_a_program_has_by_these_names() {
    let reads = "{ return threadIdx.x; }";
    for definitions in [
        format!("__device__ float erfcf(float x) {reads}"),
        format!("template <class T> __device__ T erfcf(T x) {reads}"),
        "#define erfcf(x) threadIdx.x".to_owned(),
        "#define erfcf(x) mystery(x)".to_owned(),
        "__device__ float erfcf(float x);".to_owned(),
        format!("namespace {{ __device__ float erfcf(float x) {reads} }}"),
    ] {
        assert_eq!(level(&definitions, "", "erfcf(s)"), Level::Varying, "{definitions}");
    }
    let mine = format!("namespace mine {{ __device__ float erfcf(float x) {reads} }}");
    assert_eq!(level(&mine, "", "mine::erfcf(s)"), Level::Varying);
    assert!(level(&mine, "", "std::erfc(s)") <= Level::Grid);
    let member = format!("struct Mine {{ __device__ float erfcf(float x) {reads} }};");
    assert_eq!(level(&member, "Mine mine;", "mine.erfcf(s)"), Level::Varying);
    assert_eq!(
        level("", "auto erfcf = [&](float x) { return threadIdx.x; };", "erfcf(s)"),
        Level::Varying
    );
    // The one of the library may be meant.
    let overload = "struct Vector { float x; };\n__device__ float fabsf(Vector v) { return 0.0f; }";
    assert_eq!(level(overload, "", "fabsf(threadIdx.x - 3.0f)"), Level::Varying);
    let overload = "struct Vector { float x; };\n__device__ int atomicAdd(Vector* v, int n) { return 0; }";
    assert_eq!(
        level(overload, "p[0] = 0; atomicAdd(p, threadIdx.x);", "p[0]"),
        Level::Varying
    );
    // Members of what only looks like a cooperative group.
    let group = format!("struct thread_block {{ __device__ int size() {reads} __device__ void sync() {{}} }};");
    assert_eq!(level(&group, "thread_block block;", "block.size()"), Level::Varying);
}

#[test]
fn loops_with_functions_of_these_names() {
    let changes = |definitions: &str, statements: &str| {
        let mut host = Host::new();
        let source = format!(
            "{definitions}\n__global__ void child(int x) {{}}\n__global__ void parent(int n, int g) {{ {statements} }}\n"
        );
        let file = host.set_file(Path::new("/w/a.cu"), source);
        let db = host.db();
        let function = *items(db, file).functions.last().unwrap();
        let body = body(db, function);
        let mut stmts = (0..body.stmts.len() as u32).map(StmtId);
        let around = stmts
            .find(|s| matches!(body.stmt(*s).kind, StmtKind::For { .. }))
            .unwrap();
        let launch = &launches(db, function)[0];
        changes_around(db, function, &body, launch.args[0].expr, around)
    };
    let launch = "for (int i = 0; i < n; i++) child<<<1, 32>>>(llmin(g, 3));";
    assert!(!changes("", launch));
    assert!(changes(
        "__device__ int drawn;\n__device__ int llmin(int a, int b) { return drawn++; }",
        launch
    ));
    let given = "for (int i = 0; i < n; i++) { child<<<1, 32>>>(g); saturate(g); }";
    assert!(!changes("", given));
    assert!(changes("__device__ void saturate(int& x) { x++; }", given));
    assert!(changes("#define saturate(x) x++", given));
}
