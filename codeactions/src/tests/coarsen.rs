//! `coarsen`

use super::{program, refuses, rewrite, rewrite_files, with_child};

const ID: &str = "coarsen";

/// A child with the body `code` and the usual launch.
fn of_body(code: &str) -> String {
    with_child(
        &format!(
            "__global__ void child(int* out, int begin, int count) {{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    {code}\n}}\n"
        ),
        "child<<<(count + 31) / 32, 32>>>(out, begin, count);",
    )
}

#[test]
fn one_block_is_as_few_as_can_be() {
    for grid in ["1", "dim3(1, 8)"] {
        refuses(
            ID,
            &program(&format!("child<<<{grid}, 32>>>(out, begin, count);")),
            "a grid of `child` has one block in x",
        );
    }
}

#[test]
fn the_original_grid_is_an_argument() {
    let result = rewrite(ID, &program("child<<<(count + 31) / 32, 32>>>(out, begin, count);"));
    assert!(result.assumes.is_empty(), "{:?}", result.assumes);
    result.has(&[
        "constexpr int kChildCoarsening = 4;\n",
        "__device__ __forceinline__ void child_body(uint3 blockIdx, dim3 gridDim,",
        "__global__ void child_coarsened(dim3 grid, int* out, int begin, int count) {\n    \
         for (unsigned block = blockIdx.x; block < grid.x; block += gridDim.x)\n        \
         child_body(make_uint3(block, blockIdx.y, blockIdx.z), grid, blockDim, out, begin, count);\n}",
        "child_coarsened<<<gridfuse::coarsened((count + 31) / 32, kChildCoarsening), 32>>>(\n        (count + 31) / 32, out, begin, count);",
    ]);
}

#[test]
fn a_number_of_blocks_in_place_of_a_factor() {
    let text = program("child<<<(count + 31) / 32, 32>>>(out, begin, count);");
    let with = |options: &[(&str, &str)]| rewrite_files(ID, &[("a.cu", &text)], options);
    let result = with(&[("blocks", "16")]);
    assert!(result.is_ok_and(|r| {
        r.text().contains("constexpr int kChildBlocks = 16;")
            && r.text()
                .contains("<<<gridfuse::coarsened_to((count + 31) / 32, kChildBlocks), 32>>>")
    }));
    assert!(with(&[("factor", "8")]).is_ok_and(|r| r.text().contains("kChildCoarsening = 8;")));
    for options in [
        &[("factor", "0")][..],
        &[("blocks", "x")],
        &[("blocks", "2"), ("factor", "2")],
    ] {
        assert!(with(options).is_err());
    }
}

#[test]
fn every_stream_and_three_dimensions() {
    for launch in [
        "child<<<dim3(count, 2, 3), 32, 0, cudaStreamTailLaunch>>>(out, begin, count);",
        "child<<<dim3(count, 2, 3), 32, 0, cudaStreamFireAndForget>>>(out, begin, count);",
        "child<<<dim3(count, 2, 3), 32, 256>>>(out, begin, count);",
    ] {
        let result = rewrite(ID, &program(launch));
        assert!(result.assumes.is_empty());
        result.has(&["gridfuse::coarsened(dim3(count, 2, 3), kChildCoarsening), 32"]);
    }
}

#[test]
fn names_of_parameters_are_left_alone() {
    let text = with_child(
        "__global__ void child(int* grid, int block) { grid[blockIdx.x] += block; }\n",
        "child<<<count, 32>>>(out, begin);",
    );
    rewrite(ID, &text).has(&[
        "child_coarsened(dim3 launch_grid, int* grid, int block)",
        "for (unsigned launch_block = blockIdx.x; launch_block < launch_grid.x; launch_block += gridDim.x)",
    ]);
}

#[test]
fn lambdas_and_classes_do_not_see_parameters() {
    let (lambda, class) = (
        "a lambda that reads `blockIdx`: capture with `[=]`",
        "a class that reads `blockIdx`",
    );
    for (code, reason) in [
        (
            "auto g = [](int x) { return x + (int)blockIdx.x; };\n    out[i] = g(count);",
            lambda,
        ),
        (
            "auto g = [count](int x) { return x + (int)blockIdx.x + count; };\n    out[i] = g(1);",
            lambda,
        ),
        (
            "auto g = [&count] { return count + (int)blockIdx.x; };\n    out[i] = g();",
            lambda,
        ),
        (
            "auto g = [=](int x, int b = blockIdx.x) { return x + b; };\n    out[i] = g(count);",
            lambda,
        ),
        (
            "auto g = [=] { return [count] { return count + (int)blockIdx.x; }(); };\n    out[i] = g();",
            lambda,
        ),
        (
            "auto g = [count](int x) { return x + BID + count; };\n    out[i] = g(1);",
            lambda,
        ),
        ("struct Here { int b = blockIdx.x; } here;\n    out[i] = here.b;", class),
        (
            "struct Here { int of(int x) const { return x + BID; } } here;\n    out[i] = here.of(1);",
            class,
        ),
        ("COUNTER(Here) here;\n    out[i] = here.b;", class),
    ] {
        let macros = "#define BID (int)blockIdx.x\n#define COUNTER(name) struct name { int b = BID; }\n";
        let text = format!("{macros}{}", of_body(code));
        refuses(ID, &text, reason);
        refuses("aggregate-grid", &text, reason);
        refuses("serialize", &text, reason);
    }
    let thread = of_body("auto g = [count] { return count + (int)threadIdx.x; };\n    out[i] = g();");
    refuses("serialize", &thread, "a lambda that reads `threadIdx`");
    for code in [
        "auto g = [=](int x) { return x + (int)blockIdx.x; };\n    out[i] = g(count);",
        "auto g = [&, count] { return count + (int)blockIdx.x; };\n    out[i] = g();",
        "auto g = [count, b = blockIdx.x] { return count + (int)b; };\n    out[i] = g();",
        "auto g = [count] { return count + (int)threadIdx.x; };\n    out[i] = g();",
        "int a[2] = {count, 1};\n    out[i] = a[blockIdx.x] + a[0];",
        "struct Here { int b; } here = {(int)blockIdx.x};\n    out[i] = here.b;",
    ] {
        rewrite(ID, &of_body(code));
    }
}

#[test]
fn shared_memory_is_not_used_again_too_soon() {
    let text = of_body(
        "__shared__ int sum;\n    if (threadIdx.x == 0) sum = 0;\n    __syncthreads();\n    if (i < count) atomicAdd(&sum, i);\n    __syncthreads();\n    if (threadIdx.x == 0) atomicAdd(&out[begin], sum);",
    );
    rewrite(ID, &text).has(&[
        "block += gridDim.x) {\n        child_body(",
        "        __syncthreads();   // the next one uses the shared memory again\n    }\n}",
    ]);
}

#[test]
fn barriers_that_some_threads_do_not_reach() {
    for body in [
        "if (i >= count) return;\n    __syncthreads();\n    out[begin + i] = i;",
        "if (i < count) { __syncthreads(); out[begin + i] = i; }",
        "if (i < count) out[begin + i] = __shfl_sync(0xffffffff, i, 0);",
        "for (int k = threadIdx.x; k < count; k += 32) __syncwarp();",
        "if (i < count && __syncthreads_or(i)) out[begin + i] = i;",
        "while (__syncthreads_or(i < count)) i += 32;",
    ] {
        refuses(ID, &of_body(body), "a block can't go on to the next block's work");
    }
    for body in [
        "if (count > 5) { __syncthreads(); if (i < count) out[begin + i] = i; }",
        "for (int k = 0; k < count; ++k) { __syncthreads(); if (i == k) out[begin + i] = i; }",
        "int first = __shfl_sync(0xffffffff, i, 0);\n    if (i < count) out[begin + i] = first;",
    ] {
        rewrite(ID, &of_body(body));
    }
    let helper = |body: &str| {
        of_body("wait(i, count);").replacen(
            "__global__",
            &format!("__device__ void wait(int i, int n) {{ {body} }}\n__global__"),
            1,
        )
    };
    rewrite(ID, &helper("__syncthreads();"));
    refuses(
        ID,
        &helper("if (i < n) __syncthreads();"),
        "a block can't go on to the next block's work",
    );
    refuses(
        ID,
        &format!(
            "#define WAIT(x) if (x) __syncthreads()\n{}",
            of_body("WAIT(i < count);")
        ),
        "a block can't go on to the next block's work",
    );
}

#[test]
fn blocks_that_wait_for_each_other() {
    refuses(
        ID,
        &of_body("if (i == 0) while (atomicAdd(&out[0], 0) < count) {}\n    atomicAdd(&out[0], 1);"),
        "may wait for another thread",
    );
    refuses(
        ID,
        &of_body("cooperative_groups::this_grid().sync();\n    out[begin + i] = i;"),
        "sync(), which waits for threads that aren't followed",
    );
}

#[test]
fn a_grid_size_that_changes_something() {
    refuses(
        ID,
        &program("child<<<atomicAdd(out, 1), 32>>>(out, begin, count);"),
        "can't be evaluated twice",
    );
}

#[test]
fn a_grid_stride_loop_stays_as_it_is() {
    for head in [
        "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x)",
        "int stride = gridDim.x * blockDim.x;\n    for (int i = threadIdx.x + blockDim.x * blockIdx.x; count > i; i = i + stride)",
        "int t = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;\n    for (int i = t; i < count; i += stride)",
    ] {
        let child = format!(
            "__global__ void child(int* out, int begin, int count) {{\n    {head} {{\n        int next = begin + i;\n        atomicAdd(&out[next], 1);\n    }}\n}}\n"
        );
        let result = rewrite(
            ID,
            &with_child(&child, "child<<<(count + 31) / 32, 32>>>(out, begin, count);"),
        );
        result.has(&[
            "child<<<gridfuse::coarsened((count + 31) / 32, kChildCoarsening), 32>>>(out, begin, count);",
            &child,
        ]);
        assert!(!result.text().contains("_body"));
    }
}

#[test]
fn loops_that_depend_on_the_grid_get_a_kernel() {
    let head = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x)";
    for body in [
        // What is left over at the end.
        format!("int sum = 0;\n    {head} sum += out[i];\n    atomicAdd(&out[begin], sum);"),
        format!("int sum = 0;\n    {head} out[i] = ++sum;"),
        // One round ends the others.
        format!("{head} {{ if (out[i] < 0) break; out[i] = begin; }}"),
        format!("{head} {{ if (out[i] < 0) return; out[i] = begin; }}"),
        // The size of the grid.
        format!("{head} out[i] = gridDim.x;"),
        format!("{head} {{ out[i] = begin; i += 2; }}"),
        format!("{head} out[i] = begin++;"),
        "for (int i = threadIdx.x; i < count; i += blockDim.x * gridDim.x) out[i] = 1;".to_owned(),
        "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x) out[i] = 1;".to_owned(),
        // Where a thread begins, and by how much it goes on.
        format!("int t = blockIdx.x * blockDim.x + threadIdx.x;\n    {head} out[t] += i;"),
        format!("int stride = gridDim.x * blockDim.x;\n    {head} out[i] = stride;"),
        "int stride = gridDim.x * blockDim.x;\n    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count - stride; i += stride) out[i] = 1;".to_owned(),
        "int i = blockIdx.x * blockDim.x + threadIdx.x;\n    int first = i;\n    for (; i < count; i += blockDim.x * gridDim.x) out[i] = first;".to_owned(),
        "short stride = gridDim.x * blockDim.x;\n    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) out[i] = 1;".to_owned(),
    ] {
        let child = format!("__global__ void child(int* out, int begin, int count) {{\n    {body}\n}}\n");
        rewrite(
            ID,
            &with_child(&child, "child<<<(count + 31) / 32, 32>>>(out, begin, count);"),
        )
        .has(&["child_body(make_uint3(block, blockIdx.y, blockIdx.z), grid, blockDim, out, begin, count);"]);
    }
}

#[test]
fn loops_that_carry_something_in_memory_get_a_kernel() {
    let head = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x)";
    let stays = |body: &str| {
        let child = format!("__global__ void child(int* out, int begin, int count) {{\n    {head} {body}\n}}\n");
        let text = with_child(&child, "child<<<(count + 31) / 32, 32>>>(out, begin, count);");
        !rewrite(ID, &text).text().contains("child_body(")
    };
    for body in [
        "out[i] += begin;",
        "atomicAdd(&out[i % begin], 1);",
        "{ int k = 2 * i; out[k] = out[k + 1]; }",
    ] {
        assert!(stays(body), "{body}");
    }
    for body in [
        // A sum of each thread.
        "out[i % begin] += count;",
        "out[i % 160] += count;",
        // From the round before.
        "if (i >= begin) out[i] += out[i - begin];",
        "out[i] = out[i + 1];",
    ] {
        assert!(!stays(body), "{body}");
    }
}

#[test]
fn loops_whose_index_something_changes_get_a_kernel() {
    for (before, body) in [
        (
            "__device__ void swap(int& a, int& b);",
            "int k = 5000;\n        if (i < 64) swap(i, k);",
        ),
        ("", "int k = 5000;\n        if (i < 64) std::swap(i, k);"),
        (
            "struct Jump { __device__ void operator<<(int& i) { i += 5000; } };",
            "Jump j;\n        if (i < 64) j << i;",
        ),
        (
            "struct Jump { __device__ Jump(int& i) { i += 5000; } };",
            "if (i < 64) Jump{i};",
        ),
    ] {
        let child = format!(
            "{before}\n__global__ void child(int* out, int begin, int count) {{\n    \
             for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x) {{\n        out[i] = 1;\n        {body}\n    }}\n}}\n"
        );
        let text = with_child(&child, "child<<<(count + 31) / 32, 32>>>(out, begin, count);");
        // It is refused, or the loop runs as every block of the grid.
        if let Ok(result) = rewrite_files(ID, &[("a.cu", &text)], &[]) {
            result.has(&["child_body(make_uint3(block, blockIdx.y, blockIdx.z), grid, blockDim, out, begin, count);"]);
        }
    }
}

#[test]
fn classes_in_front_of_a_loop_may_count_threads() {
    let with = |before: &str| {
        let child = format!(
            r#"struct Tally {{ int n; __device__ Tally(int n) : n(n) {{ atomicAdd(&threads, 1); }} }};
struct Sum {{ int n; __device__ int operator+(int k) {{ atomicAdd(&threads, 1); return n + k; }} }};
__global__ void child(int* out, Sum sum, int begin, int count) {{
    {before}
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x) out[i] = 1;
}}
"#
        );
        let text = with_child(&child, "child<<<(count + 31) / 32, 32>>>(out, Sum{1}, begin, count);");
        let text = format!("__device__ int threads;\n{text}");
        rewrite_files(ID, &[("a.cu", &text)], &[]).is_ok_and(|r| !r.text().contains("child_body("))
    };
    assert!(with("int n = sum.n + count;"));
    assert!(!with("Tally tally = count;"));
    assert!(!with("int n = sum + count;"));
}

#[test]
fn operators_and_constructors_in_a_loop_may_read_the_grid() {
    for (class, body) in [
        (
            "struct S { int v; __device__ S& operator+=(int k) { v += k * gridDim.x; return *this; } };",
            "S s{0};\n        s += 1;\n        out[i] = s.v;",
        ),
        (
            "struct W { int v; __device__ W(int) : v(gridDim.x) {} };",
            "W w = i;\n        out[i] = w.v;",
        ),
    ] {
        let child = format!(
            "{class}\n__global__ void child(int* out, int begin, int count) {{\n    \
             for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x) {{\n        {body}\n    }}\n}}\n"
        );
        let text = with_child(&child, "child<<<(count + 31) / 32, 32>>>(out, begin, count);");
        refuses(ID, &text, "may run an operator, a constructor or an initialiser");
    }
}

#[test]
fn templates_and_namespaces() {
    let text = r#"namespace ns {
template <class T, int N = 4>
__global__ void __launch_bounds__(64) child(T* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] += N;
}
}

__global__ void parent(float* out, int count) {
    ns::child<float, 8><<<(count + 31) / 32, 32>>>(out, count);
}
"#;
    rewrite(ID, text).has(&[
        "template <class T, int N = 4>\n__global__ void __launch_bounds__(64) child_coarsened(dim3 grid, T* out, int count) {",
        "child_body<T, N>(make_uint3(block, blockIdx.y, blockIdx.z), grid, blockDim, out, count);",
        "ns::child_coarsened<float, 8><<<gridfuse::coarsened((count + 31) / 32, ns::kChildCoarsening),\n                                    32>>>(\n        (count + 31) / 32, out, count);",
    ]);
}

#[test]
fn large_blocks_get_launch_bounds() {
    let with = |block: &str| program(&format!("child<<<(count + 31) / 32, {block}>>>(out, begin, count);"));
    for (block, bounds) in [
        ("512", "__launch_bounds__(512) "),
        ("dim3(32, 32)", "__launch_bounds__(1024) "),
        ("256", ""),
        ("count", ""),
        ("2048", ""),
    ] {
        rewrite(ID, &with(block)).has(&[&format!("__global__ void {bounds}child_coarsened(")]);
    }
    // A kernel for smaller blocks can't take larger ones.
    let first = rewrite(ID, &with("512"));
    let call = "child_coarsened<<<";
    let text = first.text().replacen(
        "    child_coarsened<<<",
        "    $0child<<<8, 1024>>>(out, begin, count);\n    child_coarsened<<<",
        1,
    );
    assert!(text.contains("$0") && text.contains(call));
    let header = (crate::runtime::HEADER_NAME, &**crate::runtime::HEADER);
    let second = rewrite_files(ID, &[("a.cu", &text), header], &[]);
    let Ok(second) = second else { panic!("{second:?}") };
    second.has(&[
        "__global__ void __launch_bounds__(512) child_coarsened(",
        "__global__ void __launch_bounds__(1024) child_coarsened2(",
    ]);
}

#[test]
fn comments_in_a_launch_stay() {
    rewrite(
        ID,
        &program("child<<<(count + 31) / 32, 32>>>(out,   // where\n                                     begin, count /* how many */);"),
    )
    .has(&[
        "    // was: child<<<(count + 31) / 32, 32>>>(out,   // where\n",
        "    //    :                                      begin, count /* how many */)\n",
    ]);
}

#[test]
fn callees_may_ask_for_the_block() {
    let asking = |what: &str| {
        with_child(
            &format!(
                r#"__device__ int asked() {{ return {what}; }}
__global__ void child(int* out, int begin, int count) {{
    int i = blockIdx.x * asked() + threadIdx.x;
    if (i < count) out[begin + i] = 1;
}}
"#
            ),
            "child<<<(count + 31) / 32, 32>>>(out, begin, count);",
        )
    };
    rewrite(ID, &asking("blockDim.x"));
    rewrite(ID, &asking("gridDim.x")).has(&["blockIdx.x * asked_at(gridDim) + threadIdx.x"]);
}

#[test]
fn a_constant_of_another_scope_is_another_one() {
    let usual = program("child<<<(count + 31) / 32, 32>>>(out, begin, count);");
    let known = "constexpr int kChildCoarsening = 4;\n";
    let constants = |text: &str| rewrite(ID, text).text().matches("constexpr int kChild").count();
    assert_eq!(constants(&format!("{known}{usual}")), 1);
    assert_eq!(constants(&format!("namespace other {{\n{known}}}\n{usual}")), 2);
}
