//! `threshold` of children whose threads meet at barriers.

use super::{Rewritten, refuses, rewrite, rewrite_files, with_child};

const ID: &str = "threshold";

fn child(body: &str) -> String {
    format!("__global__ void child(int* out, int begin, int count) {{\n{body}}}\n")
}

#[track_caller]
fn split(body: &str, launch: &str) -> Rewritten {
    rewrite(ID, &with_child(&child(body), launch))
}

const TREE: &str = "    __shared__ int sums[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    // What this thread has.
    sums[threadIdx.x] = i < count ? out[begin + i] : 0;
    __syncthreads();  // all are there
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) sums[threadIdx.x] += sums[threadIdx.x + stride];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(&out[begin], sums[0]);
";

#[test]
fn a_tree() {
    split(TREE, "child<<<1, 64>>>(out, begin, count);").has(&[
        "\
// Runs a grid of child in one thread, from barrier to barrier; `gridfuse revert` takes it back.
__device__ inline void child_serial(dim3 grid, dim3 block, int* out, int begin, int count) {
    gridfuse::for_each_block(grid, block, [&](uint3 blockIdx, dim3 gridDim, dim3 blockDim) {
        /* __shared__ */ int sums[64];
        gridfuse::for_each_thread(blockDim, [&](uint3 threadIdx) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            // What this thread has.
            sums[threadIdx.x] = i < count ? out[begin + i] : 0;
        });
        // __syncthreads();  // all are there
        for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
            gridfuse::for_each_thread(blockDim, [&](uint3 threadIdx) {
                if (threadIdx.x < stride) sums[threadIdx.x] += sums[threadIdx.x + stride];
            });
            // __syncthreads();
        }
        gridfuse::for_each_thread(blockDim, [&](uint3 threadIdx) {
            if (threadIdx.x == 0) atomicAdd(&out[begin], sums[0]);
        });
    });
}
",
        "constexpr int kChildThreshold = 65;",
        "    __shared__ int sums[64];\n",
    ]);
}

#[test]
fn variables_across_barriers() {
    // What one statement computes for all threads stays one variable, what is cheap is computed again, the rest is an array.
    let body = "    __shared__ float tile[32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x, next = i + 1;
    int first = begin + blockIdx.x;
    float mine = out[i], *place = nullptr;
    tile[threadIdx.x] = mine;
    __syncthreads();
    if (next < count) place = &tile[next];
    __syncthreads();
    out[first + i] = place ? *place : mine;
";
    split(body, "child<<<1, 32>>>(out, begin, count);").has(&["\
        /* __shared__ */ float tile[32];
        int first = begin + blockIdx.x;
        float mine[32];
        float* place[32];
        gridfuse::for_each_thread(blockDim, [&](uint3 threadIdx, unsigned thread) {
            const int i = blockIdx.x * blockDim.x + threadIdx.x;
            mine[thread] = out[i];
            place[thread] = nullptr;
            tile[threadIdx.x] = mine[thread];
        });
        // __syncthreads();
        gridfuse::for_each_thread(blockDim, [&](uint3 threadIdx, unsigned thread) {
            const int i = blockIdx.x * blockDim.x + threadIdx.x;
            const int next = i + 1;
            if (next < count) place[thread] = &tile[next];
        });
        // __syncthreads();
        gridfuse::for_each_thread(blockDim, [&](uint3 threadIdx, unsigned thread) {
            const int i = blockIdx.x * blockDim.x + threadIdx.x;
            out[first + i] = place[thread] ? *place[thread] : mine[thread];
        });
"]);
}

/// What a pointer that crosses a barrier may point to lives as long, though nobody names it behind the barrier.
#[test]
fn what_is_pointed_at_across_barriers() {
    let launch = "child<<<1, 32>>>(out, begin, count);";
    let kept = |before: &str, behind: &str, expected: &str| {
        let body = format!("    {before}\n    __syncthreads();\n    {behind}\n");
        split(&body, launch).has(&[expected]);
    };
    kept("int x = threadIdx.x; int* p = &x;", "out[begin] = *p;", "int x[32];");
    kept(
        "int x[2]; x[1] = 1; int* p = &x[1];",
        "out[begin] = *p;",
        "int x[32][2]",
    );
    kept("int x[2]; x[0] = 1; int* p = x;", "out[begin] = p[0];", "int x[32][2];");
    kept(
        "int x = 1; long at = (long)&x;",
        "out[begin] = *(int*)at;",
        "int x[32];",
    );
    kept(
        "__shared__ int* all[32]; int x = 1; all[threadIdx.x] = &x;",
        "out[begin] = *all[0];",
        "int x[32];",
    );
    // Of no pointer that is there behind the barrier.
    let body = "    int x = 1;\n    atomicAdd(out, *&x);\n    int y = out[begin];\n    __syncthreads();\n    out[begin] = y;\n";
    let result = split(body, launch);
    let text = result.text();
    assert!(text.contains("int x = 1;") && !text.contains("x[32]"), "{text}");
    refuses(
        ID,
        &with_child(
            &child("    const uint3* p = &threadIdx;\n    __syncthreads();\n    out[p->x] = 1;\n"),
            launch,
        ),
        "takes the address of a built-in variable",
    );
}

/// Objects that keep a reference to shared memory may run atomics on it.
#[test]
fn objects_on_shared_memory() {
    let classes = "\
#include <cuda/atomic>
struct Counter { int& c; __device__ void add(int v) const { atomicAdd(&c, v); } };
struct Late { int* at; __device__ void add(int v) { atomicAdd(at, v); } };
struct View { int* at; int n; __device__ int first() const { return at[0]; } };
struct Pair { int a; int b; };
typedef int number;
__device__ void tick(const Counter& c) { c.add(1); }
";
    let with = |made: &str| {
        let body = format!(
            "    __shared__ int s[4];\n    if (threadIdx.x < 4) s[threadIdx.x] = 0;\n    __syncthreads();\n    {made}\n    __syncthreads();\n    out[begin] = s[1];\n"
        );
        with_child(
            &format!("{classes}{}", child(&body)),
            "child<<<1, 32>>>(out, begin, count);",
        )
    };
    for made in [
        "Counter c{s[1]}; c.add(2);",
        "Counter Counter{s[1]}; Counter.add(2);",
        "Counter{s[1]}.add(2);",
        "auto c = Counter{s[1]}; c.add(2);",
        "Counter c = {s[1]}; tick(c);",
        "Counter c[1] = {{s[1]}}; c[0].add(2);",
        "Late c; c.at = &s[1]; c.add(2);",
        "Late c[2]; c[1].at = s; c[1].add(2);",
        "cuda::atomic_ref<int, cuda::thread_scope_block> r(s[1]); r += 2;",
        "cuda::atomic_ref<int> r{s[1]}; ++r;",
    ] {
        refuses(ID, &with(made), "not possible in the local memory of one thread");
    }
    for made in [
        "Pair p{s[0], s[2]}; out[begin + 1] = p.a + p.b;",
        "number n{s[0]}; out[begin + 1] = n;",
        "View v{s, 4}; out[begin + 1] = v.first();",
        "auto n = s[0]; out[begin + 1] = n;",
    ] {
        rewrite(ID, &with(made));
    }
}

#[test]
fn control_flow_around_barriers() {
    let body = "    __shared__ int hist[16];
    extern __shared__ float tile[];
    int mine = out[threadIdx.x];
    if (threadIdx.x < 16) hist[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&hist[mine & 15], 1);
    int rounds = hist[0];

    #pragma unroll
    for (int t = 0; t < rounds; ++t) { // rounds
        if (t == count) break;
        mine += t; __syncthreads();
        tile[threadIdx.x] = mine;
        __syncthreads();
    }
    if (count > 3) {
        __syncthreads();
    } else // few
        mine = 0;
    do {
        mine -= (int)tile[0];
        __syncthreads();
        rounds--;
    } while (rounds > 0); // done
    out[begin + threadIdx.x] = mine;
";
    split(body, "child<<<1, 64, 64 * sizeof(float)>>>(out, begin, count);").has(&[
        "/* extern __shared__ */ alignas(16) float tile[64];\n",
        "gridfuse::serial::atomicAdd(&hist[mine[thread] & 15], 1);\n        });\n        int rounds = hist[0];\n\n        #pragma unroll\n",
        "\
        for (int t = 0; t < rounds; ++t) {
            // rounds
            if (t == count) {
                break;
            }
            gridfuse::for_each_thread(blockDim, [&](uint3 threadIdx, unsigned thread) {
                mine[thread] += t;
            });
            // __syncthreads();
",
        "\
        if (count > 3) {
            // __syncthreads();
        } else {
            // few
            gridfuse::for_each_thread(blockDim, [&](uint3 threadIdx, unsigned thread) {
                mine[thread] = 0;
            });
        }
",
        "            rounds--;\n        } while (rounds > 0);  // done\n",
    ]);
}

#[test]
fn threads_that_leave() {
    let body = "    __shared__ int values[64];
    if (count == 0) return;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    values[threadIdx.x] = i;
    __syncthreads();
    if (i == 3) return;
    out[begin + i] = values[0];
";
    split(body, "child<<<1, 64>>>(out, begin, count);").has(&[
        "        gridfuse::BlockThreads<64> threads(blockDim);\n",
        "        if (count == 0) {\n            return;\n        }\n        threads.for_each([&](uint3 threadIdx, unsigned thread) {\n",
        "            if (i >= count) return threads.exit(thread);\n",
        "        });\n        if (threads.none()) return;\n",
        "            if (i == 3) return;\n",
    ]);
}

#[test]
fn names_in_use_are_avoided() {
    let body = "    __shared__ int grid[64];
    int thread = out[threadIdx.x];
    grid[threadIdx.x] = thread;
    __syncthreads();
    out[begin] = grid[3] + thread;
";
    split(body, "child<<<1, 64>>>(out, begin, count);").has(&[
        "child_serial(dim3 launch_grid, dim3 block,",
        "int thread[64];",
        "thread[launch_thread] = out[threadIdx.x];",
    ]);
}

#[test]
fn thresholds_and_block_sizes() {
    let with = |launch: &str, options: &[(&str, &str)]| {
        rewrite_files(ID, &[("a.cu", &with_child(&child(TREE), launch))], options)
    };
    let reasons = |launch: &str, options: &[(&str, &str)]| with(launch, options).err().unwrap_or_default().join("\n");
    assert!(
        reasons("child<<<1, 512>>>(out, begin, count);", &[]).contains("has 512 threads, so that no grid is below")
    );
    assert!(reasons("child<<<1, 64>>>(out, begin, count);", &[("threshold", "64")]).contains("a threshold above 64"));
    assert!(reasons("child<<<1, 64>>>(out, begin, count);", &[("local-memory", "255")]).contains("needs 256 bytes"));
    let text = with("child<<<1, 512>>>(out, begin, count);", &[("threshold", "2000")]);
    assert!(text.is_ok_and(|r| r.text().contains("kChildThreshold = 2000;")));
    // Without a constant block size, arrays have room for the largest grid that is below the threshold.
    let body = "    __shared__ int first;
    int mine = out[threadIdx.x];
    if (threadIdx.x == 0) first = mine;
    __syncthreads();
    out[begin] = first + mine;
";
    split(body, "child<<<1, count>>>(out, begin, count);")
        .has(&["int mine[kChildThreshold];", "kChildThreshold = 64;"]);
}

#[test]
fn a_second_launch_uses_the_same_function() {
    let text = with_child(
        &child(TREE),
        "child<<<1, 64>>>(out, begin, count);\n    child<<<2, 64>>>(out, begin + count, 1);",
    );
    let first = rewrite(ID, &text);
    let second = first.text().replace("child<<<2, 64>>>", "$0child<<<2, 64>>>");
    let files = [("a.cu", second.as_str()), ("gridfuse.cuh", &*crate::runtime::HEADER)];
    let second = rewrite_files(ID, &files, &[]).unwrap_or_else(|r| panic!("{r:#?}"));
    second.has(&["child_serial(2, 64, out, begin + count, 1);"]);
    assert_eq!(second.text().matches("void child_serial").count(), 1);
}

#[test]
fn refusals() {
    let refuse = |body: &str, reason: &str| {
        let program = with_child(&child(body), "$0child<<<1, 32>>>(out, begin, count);");
        refuses(ID, &program, reason);
    };
    refuse(
        "    if (threadIdx.x < 3) __syncthreads();\n",
        "in a branch or loop of which it isn't certain",
    );
    refuse(
        "    for (int i = threadIdx.x; i < count; i += 32) __syncthreads();\n",
        "in a branch or loop of which it isn't certain",
    );
    refuse(
        "    for (int t = 0; t < count; ++t) {\n        if (out[threadIdx.x] == t) break;\n        __syncthreads();\n    }\n",
        "leave a loop around a barrier at different times",
    );
    refuse(
        "    out[0] = __shfl_down_sync(~0u, count, 1);\n",
        "works together with its warp in a way",
    );
    refuse(
        "    out[0] = __syncthreads_or(count > threadIdx.x);\n",
        "waits at a barrier in a way",
    );
    refuse(
        "    __shared__ volatile int s[32];\n    s[threadIdx.x] = 1;\n",
        "is volatile",
    );
    refuse(
        "    if (count) {\n        __shared__ int s;\n        s = 1;\n    }\n    __syncthreads();\n",
        "inside of a branch or a loop",
    );
    refuse(
        "    extern __shared__ int s[];\n    s[threadIdx.x] = 1;\n",
        "whose size isn't a constant at the launch",
    );
    refuse(
        "    __shared__ int s[2000];\n    s[threadIdx.x] = 1;\n",
        "needs 8000 bytes of local memory",
    );
    refuse(
        "    int* last = &count;\n    *last += threadIdx.x;\n    __syncthreads();\n    out[count] = 1;\n",
        "may change its parameter `count`",
    );
    refuse(
        "    __shared__ int s[4];\n    int* p = s + begin;\n    atomicAdd(p, 1);\n    __syncthreads();\n",
        "may use atomicAdd() on shared memory",
    );
    refuse(
        "    int& first = out[begin];\n    __syncthreads();\n    first = 1;\n",
        "has a type that can't be made an array",
    );
    refuse(
        "    auto f = [&](int i) { return out[i]; };\n    __syncthreads();\n    out[0] = f(1);\n",
        "holds a lambda",
    );
    refuse("again:\n    __syncthreads();\n    if (count) goto again;\n", "goto");
    refuse(
        "#ifdef X\n    __syncthreads();\n#endif\n    out[0] = 1;\n",
        "waits at a barrier under an #if",
    );
    let macros = "#define SYNC() (__syncthreads(), 0)\n#define COUNT(x) atomicAdd(&x, 1)\n";
    refuses(
        ID,
        &format!(
            "{macros}{}",
            with_child(
                &child("    SYNC();\n    out[0] = 1;\n"),
                "child<<<1, 32>>>(out, begin, count);"
            )
        ),
        "waits at a barrier in a way",
    );
    refuses(
        ID,
        &format!(
            "{macros}{}",
            with_child(
                &child("    __shared__ int s;\n    COUNT(s);\n"),
                "child<<<1, 32>>>(out, begin, count);"
            )
        ),
        "the macro `COUNT` may use atomics",
    );
    let helper = "__device__ void help(int* p) { atomicAdd(p, 1); }\n";
    refuses(
        ID,
        &format!(
            "{helper}{}",
            with_child(
                &child("    __shared__ int s[4];\n    help(s);\n"),
                "child<<<1, 32>>>(out, begin, count);"
            )
        ),
        "hands shared memory to `help`",
    );
    refuses(
        ID,
        &format!(
            "__shared__ int everywhere;\n{}",
            with_child(&child("    everywhere = 1;\n"), "child<<<1, 32>>>(out, begin, count);")
        ),
        "uses shared memory",
    );
}

#[test]
fn what_is_hidden_elsewhere_is_not_computed_again() {
    // `stride` is the parameter, and `i` the thread's, wherever `base` and `next` are used.
    let of_parameter = "    __shared__ int sums[32];
    int base = threadIdx.x * count;
    sums[threadIdx.x] = base;
    __syncthreads();
    for (int count = 16; count > 0; count /= 2) {
        if (threadIdx.x < count) sums[threadIdx.x] += sums[threadIdx.x + count] + base;
        __syncthreads();
    }
    if (threadIdx.x == 0) out[begin] = sums[0];
";
    split(of_parameter, "child<<<1, 32>>>(out, begin, count);").has(&["int base[32];", "+ base[thread];"]);
    let through_another = of_parameter
        .replace(
            "int base = threadIdx.x * count;",
            "int i = threadIdx.x;\n    int base = (i + 1) % 32;",
        )
        .replace("int count = 16; count > 0; count /= 2", "int i = 16; i > 0; i /= 2")
        .replace("threadIdx.x < count", "threadIdx.x < i")
        .replace("threadIdx.x + count", "threadIdx.x + i");
    split(&through_another, "child<<<1, 32>>>(out, begin, count);").has(&["int base[32];", "+ base[thread];"]);
    // A macro names what is hidden.
    let by_macro = with_child(
        &format!(
            "#define STEP (count * 2)\n{}",
            child(&of_parameter.replace("* count;", "* STEP;"))
        ),
        "child<<<1, 32>>>(out, begin, count);",
    );
    rewrite(ID, &by_macro).has(&["int base[32];"]);
}

#[test]
fn types_of_the_body() {
    for declaration in [
        "enum { kShift = 3 };",
        "typedef int word;",
        "using word = int;",
        "struct Two { int a, b; };",
    ] {
        let body = format!(
            "    __shared__ int all;\n    {declaration}\n    if (threadIdx.x == 0) all = count;\n    __syncthreads();\n    out[begin] = all;\n"
        );
        let text = with_child(&child(&body), "child<<<1, 32>>>(out, begin, count);");
        refuses(ID, &text, "may declare a type");
    }
}

#[test]
fn builtins_of_the_global_scope() {
    let body = "    out[begin + ::threadIdx.x] = count;\n";
    for id in [ID, "aggregate-block", "coarsen", "serialize"] {
        let text = with_child(&child(body), "child<<<1, 32>>>(out, begin, count);");
        refuses(id, &text, "`::threadIdx`");
    }
}

/// The library's `min` gives the same again; what the user's gives may have changed behind the barrier.
#[test]
fn a_users_min_is_called_once() {
    let body = "    __shared__ int s[32];
    int low = min((int)threadIdx.x, 9);
    s[threadIdx.x] = low;
    __syncthreads();
    out[begin + threadIdx.x] = s[3] + low;
";
    let launch = "child<<<1, 32>>>(out, begin, count);";
    assert!(!split(body, launch).text().contains("int low[32];"));
    let own = "__device__ int limit;\n__device__ int min(int a, int b) { return a < b ? a + limit : b + limit; }\n";
    rewrite(ID, &with_child(&format!("{own}{}", child(body)), launch)).has(&["int low[32];"]);
}

/// What stands in the body is moved about as text, and a macro's use is one text.
#[test]
fn macros_that_hide_where_threads_leave_or_wait() {
    let with = |defines: &str, body: &str| {
        format!(
            "{defines}\n{}",
            with_child(&child(body), "child<<<1, 64>>>(out, begin, count);")
        )
    };
    let body = |first: &str| {
        format!(
            "    __shared__ int sums[64];\n    int rounds = begin;\n    {first}\n    sums[threadIdx.x] = out[threadIdx.x];\n    __syncthreads();\n    out[begin] = sums[0] + rounds;\n"
        )
    };
    for (defines, first) in [
        ("#define BAIL(c) if (c) return", "BAIL(threadIdx.x >= count);"),
        (
            "#define BAIL(c) do { if (c) return; } while (0)",
            "BAIL(threadIdx.x >= count);",
        ),
        (
            "#define PUBLISH(v) { sums[threadIdx.x] = v; __syncthreads(); }",
            "PUBLISH(3);",
        ),
        ("#define STEP __syncthreads(); ++rounds", "STEP;"),
        ("#define TWICE(x) ++x; ++x", "TWICE(rounds);"),
        ("#define WAIT_IF(c) if (c) __syncthreads()", "WAIT_IF(count > 3);"),
    ] {
        refuses(ID, &with(defines, &body(first)), "write out what it stands for");
    }
    rewrite(ID, &with("#define WAIT __syncthreads()", &body("WAIT;")));
    rewrite(ID, &with("#define ADD(x) x += 2", &body("ADD(out[begin + 1]);")));
}

#[test]
fn references_and_sizes_that_stay_behind() {
    let with = |body: &str| with_child(&child(body), "child<<<1, 64>>>(out, begin, count);");
    let reference =
        "    int mine = out[threadIdx.x], &slot = out[begin + threadIdx.x];\n    __syncthreads();\n    slot = mine;\n";
    refuses(ID, &with(reference), "declares a reference and another variable");
    let size = "    constexpr int K = 4;\n    int all[K];\n    all[0] = out[threadIdx.x];\n    __syncthreads();\n    out[begin + threadIdx.x] = all[0];\n";
    refuses(ID, &with(size), "has a size that the kernel declares (`K`)");
}
