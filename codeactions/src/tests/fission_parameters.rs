//! `threshold` and `serialize` of children that change their parameters, call them, have shared memory of sizes that aren't numbers, or
//! cooperative groups.

use super::{Rewritten, refuses, rewrite, with_child};

const ID: &str = "threshold";

fn child(params: &str, body: &str) -> String {
    format!("__global__ void child(int* out, {params}) {{\n{body}}}\n")
}

#[track_caller]
fn split(params: &str, body: &str, launch: &str) -> Rewritten {
    rewrite(ID, &with_child(&child(params, body), launch))
}

#[track_caller]
fn refuse(params: &str, body: &str, reason: &str) {
    let launch = "child<<<1, 32>>>(out, begin, count);";
    refuses(ID, &with_child(&child(params, body), launch), reason);
}

const LAUNCH: &str = "child<<<1, 32>>>(out, begin, count);";

#[test]
fn a_parameter_that_all_threads_change_alike() {
    let body = "    __shared__ int s[32];
    s[threadIdx.x] = out[begin + threadIdx.x];
    __syncthreads();
    while (count > 1) {
        count /= 2;
        if (threadIdx.x < count) s[threadIdx.x] += s[threadIdx.x + count];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[begin] = s[0];
";
    split("int begin, int count", body, LAUNCH).has(&[
        "child_serial(dim3 grid, dim3 block, int* out, int begin, int count_given) {
    gridfuse::for_each_block(grid, block, [&](uint3 blockIdx, dim3 gridDim, dim3 blockDim) {
        int count = count_given;
        /* __shared__ */ int s[32];
",
        "        while (count > 1) {
            count /= 2;
            gridfuse::for_each_thread(blockDim, [&](uint3 threadIdx) {
                if (threadIdx.x < count) s[threadIdx.x] += s[threadIdx.x + count];
            });
",
    ]);
}

#[test]
fn a_parameter_that_each_thread_changes() {
    let body = "    count += threadIdx.x;
    __syncthreads();
    out[begin + count] = 1;
";
    split("int begin, int count", body, LAUNCH).has(&[
        "int begin, int count_given) {",
        "        int count[32];
        gridfuse::for_each_thread(blockDim, [&](uint3 threadIdx, unsigned thread) {
            count[thread] = count_given;
        });
",
        "            count[thread] += threadIdx.x;\n",
        "            out[begin + count[thread]] = 1;\n",
    ]);
    // Nothing in sight decides whether it changes.
    let body = "#if UNSEEN
    count /= 2;
#endif
    __syncthreads();
    out[begin + threadIdx.x] = count;
";
    split("int begin, int count", body, LAUNCH)
        .has(&["count[thread] /= 2;", "out[begin + threadIdx.x] = count[thread];"]);
    // A pointer, and what is computed from it before it changes.
    let body = "    int* first = out;
    out += threadIdx.x;
    __syncthreads();
    *out = first[count];
";
    split("int begin, int count", body, LAUNCH).has(&[
        "int* out_given,",
        "int* out[32];",
        "out[thread] = out_given;",
        "first[thread] = out[thread];",
        "*out[thread] = first[thread][count];",
    ]);
}

#[test]
fn a_parameter_that_one_part_changes() {
    let body = "    __shared__ int s[32];
    s[threadIdx.x] = begin;
    __syncthreads();
    for (; count > 0; --count) out[begin + threadIdx.x] += s[count % 32] * threadIdx.x;
";
    split("int begin, int count", body, LAUNCH).has(&[
        "        gridfuse::for_each_thread(blockDim, [&](uint3 threadIdx) {
            int count = count_given;
            for (; count > 0; --count)",
    ]);
    // In a loop around a barrier it goes on with what it was.
    let body = "    __shared__ int s[32];
    for (int round = 0; round < 3; ++round) {
        s[threadIdx.x] = count;
        count += threadIdx.x;
        __syncthreads();
    }
    out[begin] = s[0];
";
    split("int begin, int count", body, LAUNCH).has(&["int count[32];", "s[threadIdx.x] = count[thread];"]);
}

#[test]
fn what_cannot_be_copied() {
    refuse(
        "int begin, int count",
        "    int* p = &count;\n    __syncthreads();\n    *p += threadIdx.x;\n    out[begin] = count;\n",
        "may change its parameter `count`",
    );
    refuse(
        "int begin, int count",
        "    count += threadIdx.x;\n    __syncthreads();\n    out[begin] = count + sizeof(count);\n",
        "`count`, which `child` changes, is used in a way that is not understood",
    );
    // How often the threads wait depends on what each of them makes of it.
    refuse(
        "int begin, int count",
        "    count += threadIdx.x;\n    while (count > 0) {\n        __syncthreads();\n        --count;\n    }\n    out[begin] = 1;\n",
        "in a branch or loop of which it isn't certain",
    );
    // A class says itself what `+=` does.
    let program = with_child(
        "using number = int;\ntemplate <class number>\n__global__ void child(int* out, int begin, number count) {\n    count += threadIdx.x;\n    __syncthreads();\n    \
         out[begin] = count;\n}\n",
        LAUNCH,
    );
    refuses(ID, &program, "may change its parameter `count`");
}

/// A child that asks an object, whose class has these members.
fn asking(members: &str) -> String {
    let child = format!(
        "struct Image {{\n    int width;\n    int last[4];\n    {members}\n}};\n__global__ void child(int* out, int begin, Image image) {{\n    \
         __shared__ int s[32];\n    s[threadIdx.x] = image.at(threadIdx.x);\n    __syncthreads();\n    out[begin] += s[0] + \
         image.width;\n}}\n"
    );
    with_child(&child, "child<<<1, 32>>>(out, begin, Image{count});")
}

#[test]
fn an_object_that_is_asked() {
    let members = "__device__ int at(int i) const { return width * i + last[i % 4]; }";
    rewrite(ID, &asking(members)).has(&["Image image) {\n", "s[threadIdx.x] = image.at(threadIdx.x);"]);
    for members in [
        "__device__ int at(int i) { return width += i; }",
        "__device__ int at(int i) const { return const_cast<Image*>(this)->width += i; }",
        "mutable int asked; __device__ int at(int i) const { return ++asked; }",
        "__device__ int& at(int i) { return last[i]; }",
    ] {
        refuses(ID, &asking(members), "may change its parameter `image`");
    }
    // What a function in sight does behind the object's back.
    let behind = "friend __device__ int touch(const Image& i) { return ++const_cast<Image&>(i).width; }
    __device__ int at(int i) const { return touch(*this); }";
    refuses(ID, &asking(behind), "may change its parameter `image`");
}

#[test]
fn a_functor_that_is_called() {
    let program = |operator: &str| {
        format!(
            "struct Band {{\n    int band;\n    {operator}\n}};\ntemplate <class Fits>\n__global__ void child(int* out, int begin, Fits fits) {{\n    \
             __shared__ int s[32];\n    s[threadIdx.x] = out[threadIdx.x];\n    __syncthreads();\n    if (fits(s[0], s[1])) out[begin] \
             = 1;\n}}\n__global__ void parent(int* out, const int* row, int n, Band band) {{\n    int v = blockIdx.x * blockDim.x + threadIdx.x;\n    \
             if (v < n) child<<<1, 32>>>(out, v, band);\n}}\nvoid run(int* out, const int* row, int n) {{\n    parent<<<4, 128>>>(out, row, \
             n, Band{{3}});\n}}\n"
        )
    };
    rewrite(
        ID,
        &program("__device__ bool operator()(int a, int b) const { return a - b < band; }"),
    )
    .has(&["Fits fits)"]);
    refuses(
        ID,
        &program("__device__ bool operator()(int a, int b) { return a - b < ++band; }"),
        "a call of `fits`",
    );
    // Where it is, as a number.
    refuses(
        ID,
        &program(
            "__device__ unsigned long long operator()(int a, int b) const { return (unsigned long long)this + a - b; }",
        ),
        "a call of `fits`",
    );
}

/// A child that is a template with a shared array.
fn sized(array: &str, launch: &str) -> String {
    with_child(
        &format!(
            "template <class T> struct Tile {{ static constexpr int size = 32; }};\nconstexpr int twice(int n) {{ return 2 * n; }}\ntemplate \
             <class T, int N>\n__global__ void child(T* out, int begin, int count) {{\n    {array}\n    s[threadIdx.x] = out[begin];\n    \
             __syncthreads();\n    out[begin] += s[0] + count;\n}}\n"
        ),
        launch,
    )
}

#[test]
fn sizes_that_are_no_numbers() {
    let launch = "child<int, 64><<<1, 32>>>(out, begin, count);";
    // The launch says what the template arguments are.
    let numbers = rewrite(ID, &sized("__shared__ int s[N];", launch));
    numbers.has(&["/* __shared__ */ int s[N];"]);
    assert_eq!(sizes_assumed(&numbers), [""; 0]);
    assert_eq!(
        sizes_assumed(&rewrite(ID, &sized("__shared__ T s[N * 2];", launch))),
        [""; 0]
    );
    refuses(
        ID,
        &sized("__shared__ T s[N];", "child<int, 5000><<<1, 32>>>(out, begin, count);"),
        "needs 20000 bytes of local memory",
    );
    for array in [
        "__shared__ T s[Tile<T>::size];",
        "__shared__ int s[twice(N)];",
        "constexpr int size = twice(N) + Tile<T>::size; __shared__ T s[size];",
    ] {
        let assumed =
            "`s` of `child` takes no more than 4096 bytes, which become local memory of each launching thread";
        assert_eq!(sizes_assumed(&rewrite(ID, &sized(array, launch))), [assumed], "{array}");
    }
}

/// What is taken for granted of the size of shared arrays.
fn sizes_assumed(rewritten: &Rewritten) -> Vec<String> {
    let assumed = rewritten
        .assumes
        .iter()
        .filter(|reason| reason.contains("local memory"));
    assumed.cloned().collect()
}

#[test]
fn dynamic_memory_of_a_size_that_the_launch_computes() {
    let body = "    extern __shared__ double s[];
    s[threadIdx.x] = out[begin];
    __syncthreads();
    out[begin] = s[count % blockDim.x];
";
    let launch = "child<<<1, 32, count * sizeof(double)>>>(out, begin, count);";
    split("int begin, int count", body, launch).has(&[
        "/* extern __shared__ */ alignas(16) double s[kChildThreshold * gridfuse::kSharedPerThread / sizeof(double)];",
        "if (gridfuse::below_threshold(1, 32, count * sizeof(double), kChildThreshold))",
    ]);
    let program = with_child(&child("int begin, int count", body), launch);
    refuses("serialize", &program, "whose size isn't a constant at the launch");
    let launch = "child<<<1, 32, atomicAdd(out, 1)>>>(out, begin, count);";
    let program = with_child(&child("int begin, int count", body), launch);
    refuses(ID, &program, "the shared memory size calls or changes something");
}

#[test]
fn a_block_of_any_size_whose_threads_keep_nothing() {
    let body = "    __shared__ int s[1024];
    s[threadIdx.x] = out[begin];
    __syncthreads();
    out[begin] = s[0];
";
    let launch = "child<<<1, count>>>(out, begin, count);";
    let program = with_child(&child("int begin, int count", body), launch);
    rewrite("serialize", &program).has(&["/* __shared__ */ int s[1024];"]);
    let body = "    int own = out[begin + threadIdx.x];
    __syncthreads();
    out[begin] = own;
";
    let program = with_child(&child("int begin, int count", body), launch);
    refuses("serialize", &program, "how many threads a block has isn't known");
}

/// A child with cooperative groups.
fn grouped(body: &str) -> String {
    let child = child("int begin, int count", body);
    with_child(
        &format!(
            "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n__device__ int rank_of(cg::thread_block block) {{ return \
             block.size(); }}\n{child}"
        ),
        LAUNCH,
    )
}

#[test]
fn groups_are_arithmetic() {
    let body = "    auto block = cg::this_thread_block();
    __shared__ int s[32];
    const int i = block.group_index().x * block.size() + block.thread_rank();
    s[block.thread_rank()] = out[begin + i];
    block.sync();
    for (unsigned half = block.size() / 2; half > 0; half /= 2) {
        if (block.thread_rank() < half) s[block.thread_rank()] += s[block.thread_rank() + half];
        block.sync();
    }
    if (i == 0) out[begin] = s[0];
";
    rewrite(ID, &grouped(body)).has(&[
        "s[gridfuse::thread_rank(threadIdx, blockDim)] = out[begin + i];",
        "// block.sync();",
        "for (unsigned half = gridfuse::thread_count(blockDim) / 2; half > 0; half /= 2) {",
        "const int i = dim3(blockIdx).x * gridfuse::thread_count(blockDim) + gridfuse::thread_rank(threadIdx, blockDim);
            if (i == 0) out[begin] = s[0];",
    ]);
    let body = "    cg::grid_group grid = cg::this_grid();
    for (int i = grid.thread_rank(); i < count; i += grid.size()) atomicAdd(&out[begin + i], 1);
";
    rewrite(ID, &grouped(body)).has(&[
        "for (int i = gridfuse::thread_rank(threadIdx, blockIdx, blockDim, gridDim); i < count; i += \
         gridfuse::thread_count(blockDim, gridDim))",
    ]);
    let body = "    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    atomicAdd(&out[begin + tile.meta_group_rank()], tile.thread_rank());
";
    rewrite(ID, &grouped(body)).has(&[
        "out[begin + (gridfuse::thread_rank(threadIdx, blockDim) / 16)], (gridfuse::thread_rank(threadIdx, blockDim) % 16))",
    ]);
}

#[test]
fn groups_that_are_more_than_arithmetic() {
    for (body, reason) in [
        (
            "    auto tile = cg::tiled_partition<32>(cg::this_thread_block());\n    out[begin] = tile.shfl(count, 0);\n",
            "reads `threadIdx` itself",
        ),
        (
            "    auto block = cg::this_thread_block();\n    if (threadIdx.x < count) block.sync();\n    out[begin] = 1;\n",
            "in a branch or loop of which it isn't certain",
        ),
        (
            "    auto grid = cg::this_grid();\n    grid.sync();\n    out[begin] = grid.thread_rank();\n",
            "reads `threadIdx` itself",
        ),
        (
            "    auto block = cg::this_thread_block();\n    auto& other = block;\n    out[begin] = other.thread_rank();\n",
            "reads `threadIdx` itself",
        ),
        (
            "    auto block = cg::this_thread_block();\n    out[begin] = rank_of(block);\n",
            "reads `threadIdx` itself",
        ),
        (
            "    auto active = cg::coalesced_threads();\n    out[begin] = active.thread_rank();\n",
            "works together with its warp",
        ),
    ] {
        refuses(ID, &grouped(body), reason);
    }
}
