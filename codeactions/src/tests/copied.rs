//! Functions that a child calls and that read the built-in variables: copies of them, and what can't be copied.

use super::{refuses, refuses_files, rewrite, rewrite_files};

const BLOCK: &str = "aggregate-block";

/// A program whose child writes to `out[INDEX]`, behind some helpers.
fn program(helpers: &str, index: &str) -> String {
    format!(
        r#"{helpers}
__global__ void child(int* out, int begin, int count) {{
    int i = {index};
    if (i < count) out[begin + i] = 1;
}}
__global__ void parent(const int* row, int* out, int n) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) child<<<(row[v] + 31) / 32, 32>>>(out, row[v], row[v + 1] - row[v]);
}}
void run(const int* row, int* out, int n) {{ parent<<<4, 64>>>(row, out, n); }}
"#
    )
}

const ID: &str = "__device__ int id() { return blockIdx.x * blockDim.x + threadIdx.x; }";

#[test]
fn free_functions() {
    rewrite(BLOCK, &program(ID, "id()")).has(&[
        "__device__ int id() { return blockIdx.x * blockDim.x + threadIdx.x; }\n",
        "__device__ int id_at(uint3 blockIdx, dim3 blockDim) {\n    return blockIdx.x * blockDim.x + threadIdx.x;\n}",
        "int i = id_at(blockIdx, blockDim);",
    ]);
    rewrite("threshold", &program(ID, "id()")).has(&[
        "__device__ int id_at(uint3 threadIdx, uint3 blockIdx, dim3 blockDim) {",
        "int i = id_at(threadIdx, blockIdx, blockDim);",
    ]);
    // Its block is as it was launched: only another grid is one.
    rewrite("coarsen", &program(ID, "id()")).has(&["int i = id_at(blockIdx, blockDim);"]);
    // With arguments, and with `void` in place of them.
    let scaled = "__device__ int at(int by) { return by * (blockIdx.x * blockDim.x + threadIdx.x); }";
    rewrite(BLOCK, &program(scaled, "at( 2 )")).has(&[
        "int at_at(uint3 blockIdx, dim3 blockDim, int by)",
        "at_at(blockIdx, blockDim,  2 )",
    ]);
    let empty = ID.replace("id()", "id(void)");
    rewrite(BLOCK, &program(&empty, "id()")).has(&[
        "int id_at(uint3 blockIdx, dim3 blockDim) {",
        "int i = id_at(blockIdx, blockDim);",
    ]);
    // The name is taken.
    let taken = format!("{ID}\nint id_at;");
    rewrite(BLOCK, &program(&taken, "id()")).has(&["int i = id_at2(blockIdx, blockDim);"]);
    // A local variable of that name is no call.
    let local = "__device__ int id() { int id = threadIdx.x; return id < 4 ? id : blockIdx.x; }";
    rewrite(BLOCK, &program(local, "id()"))
        .has(&["int id_at(uint3 blockIdx) { int id = threadIdx.x; return id < 4 ? id : blockIdx.x; }"]);
}

#[test]
fn chains_templates_and_namespaces() {
    let chain = r#"__device__ int first() { return blockIdx.x * blockDim.x; }
__device__ int id() { return first() + threadIdx.x; }
__device__ int twice(int n) { return n * 2; }"#;
    rewrite(BLOCK, &program(chain, "twice(id())")).has(&[
        "__device__ int id_at(uint3 blockIdx, dim3 blockDim) {\n    return first_at(blockIdx, blockDim) + threadIdx.x;\n}",
        "int i = twice(id_at(blockIdx, blockDim));",
    ]);
    let template = "template <class T> __device__ T id() { return T(blockIdx.x * blockDim.x + threadIdx.x); }";
    rewrite(BLOCK, &program(template, "id<int>()")).has(&[
        "template <class T> __device__ T id_at(uint3 blockIdx, dim3 blockDim) {",
        "int i = id_at<int>(blockIdx, blockDim);",
    ]);
    let scoped = format!("namespace grid {{\n{ID}\n}}");
    rewrite(BLOCK, &program(&scoped, "grid::id()")).has(&["int i = grid::id_at(blockIdx, blockDim);"]);
    // It is found where the name is that a using-declaration brings.
    let brought = format!("namespace grid {{\n{ID}\n}}\nusing grid::id;");
    rewrite(BLOCK, &program(&brought, "id()")).has(&["int i = grid::id_at(blockIdx, blockDim);"]);
}

#[test]
fn member_functions() {
    let class = "struct Range {\n    int n;\n    \
                 __device__ int first() const { return blockIdx.x * blockDim.x + threadIdx.x; }\n    \
                 __device__ bool has() const { return first() < n; }\n};";
    rewrite(BLOCK, &program(class, "0; Range range{count}; if (range.has()) i = range.first()")).has(&[
        "    __device__ int first_at(uint3 blockIdx, dim3 blockDim) const {\n        return blockIdx.x * blockDim.x + threadIdx.x;\n    }",
        "__device__ bool has_at(uint3 blockIdx, dim3 blockDim) const {\n        return first_at(blockIdx, blockDim) < n;\n    }",
        "if (range.has_at(blockIdx, blockDim)) i = range.first_at(blockIdx, blockDim)",
    ]);
    let fixed = "struct Grid { __device__ static int id() { return blockIdx.x; } };";
    rewrite(BLOCK, &program(fixed, "Grid::id()")).has(&["int i = Grid::id_at(blockIdx);"]);
    let two = format!("{class}\nstruct Other {{ __device__ int first() const {{ return 1; }} }};");
    refuses(
        BLOCK,
        &program(&two, "Range{count}.first()"),
        "reads `blockIdx` itself, and has several definitions",
    );
    let outside =
        "struct Range { __device__ int first() const; };\n__device__ int Range::first() const { return blockIdx.x; }";
    refuses(
        BLOCK,
        &program(outside, "0; Range range; i = range.first()"),
        "`blockIdx` itself",
    );
    refuses(
        BLOCK,
        &program(class, "0; Range ranges[2]; i = ranges[0].first()"),
        "for an object that is no variable",
    );
}

#[test]
fn a_copy_serves_several_children() {
    let text = format!(
        r#"{ID}
__global__ void a(int* out) {{ out[id()] = 1; }}
__global__ void b(int* out) {{ out[id() + 64] = 2; }}
__global__ void parent(int* out, int n) {{
    if (threadIdx.x < n) {{
        a<<<1, 32>>>(out);
        b<<<1, 32>>>(out + n);
    }}
}}
void run(int* out) {{ parent<<<1, 32>>>(out, 3); }}
"#
    );
    let rewritten = rewrite(BLOCK, &text);
    rewritten.has(&[
        "out[id_at(blockIdx, blockDim)] = 1;",
        "out[id_at(blockIdx, blockDim) + 64] = 2;",
    ]);
    assert_eq!(
        rewritten.text().matches("int id_at(").count(),
        1,
        "{}",
        rewritten.text()
    );
}

#[test]
fn in_a_header() {
    let main = format!("#include \"grid.cuh\"\n{}", program("", "id()"));
    let header = format!("#pragma once\ninline {ID}\n");
    let rewritten = rewrite_files(BLOCK, &[("a.cu", &main), ("grid.cuh", &header)], &[]).expect("a result");
    rewritten.has(&["int i = id_at(blockIdx, blockDim);"]);
    assert!(rewritten.files["grid.cuh"].contains("inline __device__ int id_at(uint3 blockIdx, dim3 blockDim)"));
}

/// Which block it is, a group of CUDA's tells itself: no parameter of a copy reaches it.
#[test]
fn groups_read_the_built_in_variables_themselves() {
    let of = |statement: &str| program(&format!("__device__ int id() {{ {statement} }}"), "id()");
    let grid = "return cooperative_groups::this_grid().thread_rank();";
    refuses(BLOCK, &of(grid), "this_grid`, which reads `blockIdx` itself");
    let block = "auto b = cooperative_groups::this_thread_block(); return b.group_index().x;";
    refuses(BLOCK, &of(block), "`group_index`, which reads `blockIdx` itself");
}

#[test]
fn what_cannot_be_copied() {
    let refuse = |helpers: &str, index: &str, reason: &str| refuses(BLOCK, &program(helpers, index), reason);
    let of = |why: &str| format!("`child` calls `id`, which reads `blockIdx` itself, and {why}");
    refuse(
        &format!("{ID}\n__device__ int id(int n) {{ return n; }}"),
        "id()",
        &of("has several definitions"),
    );
    refuse(
        &format!("{ID}\n#define INDEX id()"),
        "INDEX",
        &of("is called by a macro"),
    );
    refuse(&format!("{ID}\n#define CALL(f) f()"), "CALL(id)", "`blockIdx` itself");
    refuse(ID, "[&] { return id(); }()", "itself");
    refuse(ID, "0; int (*f)() = id; i = f()", "itself");
    refuse(
        &ID.replace("{ return", "{ static int calls; calls++; return"),
        "id()",
        &of("has a static variable"),
    );
    refuse(
        &ID.replace("id()", "id(int k = blockIdx.x)"),
        "id()",
        &of("has a default argument"),
    );
    refuse(&format!("#ifdef A\n{ID}\n#else\n{ID}\n#endif"), "id()", "itself");
    refuse(
        &ID.replace("{ return", "{ auto own = [] { return blockIdx.x; }; return own() +"),
        "id()",
        "itself",
    );
    let circle = r#"__device__ int b(int n);
__device__ int a(int n) { return n ? b(n - 1) : blockIdx.x; }
__device__ int b(int n) { return n ? a(n - 1) : 0; }"#;
    refuse(circle, "a(3)", "is defined below its caller");
    let behind = format!("__device__ int id();\n{}{ID}\n", program("", "id()"));
    refuses(BLOCK, &behind, &of("is defined below its caller"));
    let main = format!("#include \"grid.cuh\"\n{}", program("", "id()"));
    refuses_files(
        BLOCK,
        &[("a.cu", &main), ("grid.cuh", "__device__ int id();\n")],
        "`id`, of which no definition is in sight",
    );
}

/// A program with a child that says what it does with the built-in variables.
fn child_that(helpers: &str, code: &str) -> String {
    program(helpers, "0").replace("    int i = 0;\n", &format!("    int i = blockIdx.x;\n    {code}\n"))
}

/// The built-in variables are constants, and where that may make a difference so are the parameters that stand for them.
#[test]
fn built_in_variables_stay_constants() {
    const OVERLOADS: &str = r#"__device__ int f(uint3&);
__device__ int f(const uint3&);
__device__ int g(unsigned&);
__device__ int g(const unsigned&);
template <class T> __device__ int h(T& t) { return 1; }
__device__ int v(unsigned n) { return n; }
#define OF(x) h(x)
#define FIRST blockIdx.x"#;
    for code in [
        "i += h(blockIdx);",
        "decltype(blockIdx) b = blockIdx; i += b.x;",
        "auto& b = blockIdx; i += b.x;",
        "auto& b = blockIdx.x; i += h(b);",
        "i += h(blockIdx.x);",
        "i += OF(blockIdx);",
        "i += h(FIRST);",
        "uint3 b = blockIdx; i += b.x;",
        "i += h(i ? blockIdx.x : blockIdx.y);",
        "auto p = &blockIdx.x; i += h(*p);",
    ] {
        let text = child_that(OVERLOADS, code);
        rewrite(BLOCK, &text).has(&["child_body(const uint3 blockIdx, dim3 gridDim, dim3 blockDim,"]);
    }
    for code in [
        "i += blockIdx.y * 2 + blockIdx.z;",
        "if (blockIdx.x) i += v(blockIdx.x) + v(1);",
        "i += min(blockIdx.x, 3u) + int(blockIdx.x);",
        "int2 p = make_int2(blockIdx.x, 3); i += p.x;",
        "i = i & blockIdx.x; i = i && blockIdx.x;",
        "out[blockIdx.x] = 1; int b = blockIdx.x; i += b;",
    ] {
        let text = child_that(OVERLOADS, code);
        rewrite(BLOCK, &text).has(&["child_body(uint3 blockIdx, dim3 gridDim, dim3 blockDim,"]);
    }
    // The same for a copy, in a loop over the threads, and between barriers.
    let copy = "template <class T> __device__ int h(T& t) { return 1; }\n__device__ int k() { return h(gridDim) + blockIdx.x; }";
    rewrite(BLOCK, &child_that(copy, "i += k();")).has(&["int k_at(uint3 blockIdx, const dim3 gridDim)"]);
    let threads = child_that(OVERLOADS, "i += h(threadIdx);");
    rewrite("threshold", &threads).has(&["child_thread(const uint3 threadIdx, uint3 blockIdx, dim3 gridDim,"]);
    let barrier = child_that(OVERLOADS, "i += h(threadIdx) + h(gridDim); __syncthreads();");
    rewrite("threshold", &barrier).has(&[
        "[&](uint3 blockIdx, const dim3 gridDim, dim3 blockDim) {",
        "[&](const uint3 threadIdx, unsigned thread) {",
    ]);
}

#[test]
fn references_to_built_in_variables_and_friends() {
    let reference = |head: &str| format!("__device__ {head} {{ return blockIdx; }}");
    for head in ["const uint3& at()", "auto at() -> const uint3&", "decltype(auto) at()"] {
        refuses(
            BLOCK,
            &program(&reference(head), "at().x"),
            "and returns a reference to it, which leads nowhere",
        );
    }
    rewrite(BLOCK, &program(&reference("uint3 at()"), "at().x")).has(&["uint3 at_at(const uint3 blockIdx)"]);
    let element = "__device__ int& at(int* a) { return a[blockIdx.x]; }";
    rewrite(BLOCK, &program(element, "0; at(out) = 1")).has(&["at_at(blockIdx, out)"]);
    let class = "class Secret { int n; friend __device__ int id(const Secret&); friend __global__ void child(int*, int, int); };";
    let callee = format!(
        "{}\n__device__ int id(const Secret& s) {{ return s.n + blockIdx.x; }}",
        class.replace("friend __global__ void child(int*, int, int); ", "")
    );
    refuses(BLOCK, &program(&callee, "id(Secret())"), "and is a friend of a class");
    for id in [BLOCK, "threshold", "coarsen"] {
        refuses(id, &program(class, "blockIdx.x"), "`child` is a friend of a class");
    }
    let other = "class Secret { int n; friend class child_of; friend void run(int child); };";
    rewrite(BLOCK, &program(other, "blockIdx.x"));
}
