// Test of gridfuse.cuh on a GPU.
//
//   nvcc -std=c++17 -rdc=true -I codeactions/runtime tests/gpu/runtime_test.cu -lcudadevrt -o runtime_test
//   ./runtime_test [--quick|--small] [GROUP]
//
// A test is a list of launches for each thread of a parent kernel. The CPU works out what all their
// threads would leave behind, the GPU does it with an Aggregator. --quick leaves out what takes long
// under compute-sanitizer, and launches that CUDA refuses, which it reports as invalid writes; --small does with fewer threads, for the
// emulator, and leaves out a kernel that CUDA refuses because of its static shared memory, whose size nothing knows there before
// it runs. GROUP runs one group of tests alone (see main). The last line is "N passed, N failed".

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// From the first launch on, so that all of them test it.
#define GRIDFUSE_LAUNCHPAD_AFTER 0
#include "gridfuse.cuh"

#define CHECK(call)                                                                                      \
    do {                                                                                                 \
        cudaError_t error_ = (call);                                                                     \
        if (error_ != cudaSuccess) {                                                                     \
            std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));       \
            std::exit(2);                                                                                \
        }                                                                                                \
    } while (0)

// ------------------------------------------------------------------------------- launches as data

struct Launch {
    dim3 grid{1}, block{1};
    unsigned shared = 0;     // bytes
    long long offset = 0;    // of its first thread's result
    int id = 0;
    bool refused = false;    // by CUDA: no thread of it runs
};

__host__ __device__ inline unsigned mix(unsigned hash, unsigned value) { return (hash ^ value) * 0x9e3779b1u + (hash >> 15); }

// What one thread of a launch leaves behind: depends on all that it can see.
__host__ __device__ inline unsigned result_of(dim3 t, dim3 b, dim3 grid, dim3 block, int id, unsigned written) {
    unsigned hash = mix(mix(1, id), written);
    hash = mix(mix(mix(hash, t.x), t.y), t.z);
    hash = mix(mix(mix(hash, b.x), b.y), b.z);
    hash = mix(mix(mix(hash, grid.x), grid.y), grid.z);
    return mix(mix(mix(hash, block.x), block.y), block.z);
}

__host__ __device__ inline long long place_of(dim3 t, dim3 b, dim3 grid, dim3 block) {
    long long in_block = t.x + block.x * (t.y + block.y * t.z);
    long long block_number = b.x + (long long)grid.x * (b.y + (long long)grid.y * b.z);
    return block_number * (block.x * block.y * block.z) + in_block;
}

// ----------------------------------------------------------------------------------- child kernels

// The child's body, as a rewrite would move it. `written` was written by the launching thread. Results
// are added, so that a block that runs twice is seen.
__device__ __forceinline__ void work(uint3 blockIdx, dim3 gridDim, dim3 blockDim, unsigned* out, const unsigned* written,
                                     int id, long long offset) {
    dim3 t(threadIdx.x, threadIdx.y, threadIdx.z), b(blockIdx.x, blockIdx.y, blockIdx.z);
    atomicAdd(&out[offset + place_of(t, b, gridDim, blockDim)], result_of(t, b, gridDim, blockDim, id, written[id]));
}

struct plain_args { int id; long long offset; };
__global__ void plain(gridfuse::Batch<plain_args> batch, unsigned* out, const unsigned* written) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const plain_args& args) {
        work(blockIdx, gridDim, blockDim, out, written, args.id, args.offset);
    });
}

// Another kernel, a template, with more arguments than anyone needs.
template <class T>
struct wide_args {
    wide_args() = delete;
    __host__ __device__ wide_args(int i, T o) : id(i), offset(o) {
        for (int k = 0; k < 5; ++k) more[k] = i * k;
    }
    char small = 7;
    int id;
    T offset;
    double more[5];
};
template <class T, int Add>
__global__ void wide(gridfuse::Batch<wide_args<T>> batch, unsigned* out, const unsigned* written) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const wide_args<T>& args) {
        bool right = args.small == 7;
        for (int k = 0; k < 5; ++k) right = right && args.more[k] == args.id * k;
        work(blockIdx, gridDim, blockDim, out, written, right ? args.id : 0, args.offset + Add);
    });
}

// One that uses dynamic shared memory and barriers.
struct shared_args { int id; long long offset; unsigned words; };
template <int StaticBytes>
__global__ void with_shared(gridfuse::Batch<shared_args> batch, unsigned* out, const unsigned* written) {
    extern __shared__ unsigned dynamic[];
    __shared__ char fixed[StaticBytes];
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const shared_args& args) {
        for (unsigned i = threadIdx.x; i < args.words; i += blockDim.x) dynamic[i] = i + args.id;
        fixed[threadIdx.x % StaticBytes] = 1;
        __syncthreads();
        bool right = fixed[(threadIdx.x + 1) % blockDim.x % StaticBytes] == 1;
        for (unsigned i = threadIdx.x; i < args.words; i += blockDim.x) {
            unsigned other = args.words - 1 - i;
            right = right && dynamic[other] == other + args.id;
        }
        __syncthreads();
        if (right) work(blockIdx, gridDim, blockDim, out, written, args.id, args.offset);
    });
}

// Takes part only with its last block, and takes no arguments in common.
struct corner_args { unsigned* out; };
__global__ void corner(gridfuse::Batch<corner_args> batch) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3, const corner_args& args) {
        if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) atomicAdd(args.out, gridDim.x);
    });
}

// ---------------------------------------------------------------------------------- parent kernels

struct Work {
    const Launch* launches;
    const int* begin;      // of each thread's launches; one more than threads
    int threads;           // those with launches; the others leave at once
    unsigned* out;
    unsigned* written;
};

__device__ inline int thread_number() {
    int in_block = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    return block * (blockDim.x * blockDim.y * blockDim.z) + in_block;
}

template <class G>
__global__ void parent_plain(Work w, gridfuse::Arena arena) {
    gridfuse::Aggregator<G, plain> children(arena, w.out, w.written);
    int t = thread_number();
    if (t >= w.threads) return;
    if (w.begin[t] == w.begin[t + 1]) return;
    for (int i = w.begin[t]; i < w.begin[t + 1]; ++i) {
        const Launch& l = w.launches[i];
        w.written[l.id] = 77 * l.id + 1;
        children.launch(l.grid, l.block, {l.id, l.offset});
        if (i - w.begin[t] > 100000) return;
    }
}

// So many arguments that a block of 1,024 threads has too few registers for them otherwise.
template <class G, class T>
__global__ void __launch_bounds__(1024) parent_wide(Work w, gridfuse::Arena arena) {
    gridfuse::Aggregator<G, wide<T, 0>> children(arena, w.out, w.written);
    int t = thread_number();
    if (t >= w.threads) return;
    for (int i = w.begin[t]; i < w.begin[t + 1]; ++i) {
        const Launch& l = w.launches[i];
        w.written[l.id] = 77 * l.id + 1;
        children.launch(l.grid, l.block, {l.id, T(l.offset)});
    }
}

template <class G, int StaticBytes>
__global__ void parent_shared(Work w, gridfuse::Arena arena) {
    gridfuse::Aggregator<G, with_shared<StaticBytes>> children(arena, w.out, w.written);
    int t = thread_number();
    if (t >= w.threads) return;
    for (int i = w.begin[t]; i < w.begin[t + 1]; ++i) {
        const Launch& l = w.launches[i];
        w.written[l.id] = 77 * l.id + 1;
        children.launch(l.grid, l.block, l.shared, {l.id, l.offset, l.shared / 4});
    }
}

// Three aggregators, two of them with the same kernel, used in turn; with barriers and shared memory of its own.
template <class G>
__global__ void parent_three(Work w, gridfuse::Arena arena) {
    gridfuse::Aggregator<G, plain> one(arena, w.out, w.written);
    gridfuse::Aggregator<G, plain, 1> two(arena, w.out, w.written);
    gridfuse::Aggregator<G, wide<long long, 0>> three(arena, w.out, w.written);
    __shared__ int numbers[1024];
    int in_block = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    numbers[in_block] = thread_number();
    __syncthreads();
    int t = numbers[in_block];
    __syncthreads();
    if (t >= w.threads) return;
    for (int i = w.begin[t]; i < w.begin[t + 1]; ++i) {
        const Launch& l = w.launches[i];
        w.written[l.id] = 77 * l.id + 1;
        if (l.id % 3 == 0) one.launch(l.grid, l.block, {l.id, l.offset});
        else if (l.id % 3 == 1) two.launch(l.grid, l.block, {l.id, l.offset});
        else three.launch(l.grid, l.block, {l.id, l.offset});
    }
}

template <class G>
__global__ void parent_corner(dim3 grid, int times, unsigned* out, gridfuse::Arena arena) {
    gridfuse::Aggregator<G, corner> children(arena);
    for (int i = 0; i < times; ++i) children.launch(grid, 32, {out + threadIdx.x});
}

// Not aggregated: every launch runs in the launching thread.
__global__ void parent_serial(Work w) {
    int t = thread_number();
    if (t >= w.threads) return;
    for (int i = w.begin[t]; i < w.begin[t + 1]; ++i) {
        const Launch& l = w.launches[i];
        gridfuse::for_each_thread(l.grid, l.block, [&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim) {
            dim3 ti(threadIdx.x, threadIdx.y, threadIdx.z), bi(blockIdx.x, blockIdx.y, blockIdx.z);
            atomicAdd(&w.out[l.offset + place_of(ti, bi, gridDim, blockDim)], result_of(ti, bi, gridDim, blockDim, l.id, 77 * l.id + 1));
        });
    }
}

// ------------------------------------------------------------------------------------ making tests

bool small_tests = false;
int unless_small(int usual, int small) { return small_tests ? small : usual; }

struct Random {
    uint64_t state = 1;
    int below(int n) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return int((state >> 33) % uint64_t(n));
    }
};

struct Test {
    dim3 grid{1}, block{256};
    std::vector<std::vector<Launch>> of_thread;   // as many as there are threads with launches
    size_t bytes_per_thread = 64;
    unsigned aggregators = 1;
    bool arena = true;
    dim3 arena_grid{0};    // another grid than the parent's
    int repeat = 2;

    void add(int thread, Launch l) {
        if (int(of_thread.size()) <= thread) of_thread.resize(thread + 1);
        of_thread[thread].push_back(l);
    }
};

using Parent = std::function<void(const Test&, Work, cudaStream_t)>;

// The arena that goes with a granularity; `Kernel` are those that the host launches where it does.
template <class G, auto... Kernel>
auto arena_of(dim3 grid, dim3 block, cudaStream_t stream, size_t bytes_per_thread, unsigned aggregators = 1, size_t nested_bytes = 0) {
    if constexpr (std::is_same<G, gridfuse::PerGridFromHost>::value)
        return gridfuse::launchpad_for<Kernel...>(grid, block, stream, bytes_per_thread, aggregators, nested_bytes);
    else
        return gridfuse::arena_for(grid, block, stream, bytes_per_thread, aggregators, nested_bytes);
}

template <class G, auto... Children, class Kernel>
Parent with_arena(Kernel kernel) {
    return [kernel](const Test& test, Work w, cudaStream_t stream) {
        if (test.arena)
            kernel<<<test.grid, test.block, 0, stream>>>(
                w, arena_of<G, Children...>(test.arena_grid.x ? test.arena_grid : test.grid, test.block, stream, test.bytes_per_thread, test.aggregators));
        else
            kernel<<<test.grid, test.block, 0, stream>>>(w, gridfuse::Arena());
    };
}

int passed = 0, failed = 0;
void verdict(const std::string& name, bool right) {
    std::printf("%s %s\n", right ? "ok  " : "FAIL", name.c_str());
    std::fflush(stdout);
    ++(right ? passed : failed);
}

template <class T>
T* upload(const std::vector<T>& values) {
    T* there = nullptr;
    CHECK(cudaMalloc(&there, std::max<size_t>(values.size(), 1) * sizeof(T)));
    CHECK(cudaMemcpy(there, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return there;
}

// `captured`: through a graph, launched `repeat` times.
bool run(const Test& test, const Parent& parent, bool captured = false) {
    std::vector<Launch> launches;
    std::vector<int> begin{0};
    long long results = 0;
    for (auto& of_thread : test.of_thread) {
        for (Launch l : of_thread) {
            l.id = int(launches.size()) + 1;
            l.offset = results;
            if (!l.refused) results += 1ll * l.grid.x * l.grid.y * l.grid.z * (l.block.x * l.block.y * l.block.z);
            launches.push_back(l);
        }
        begin.push_back(int(launches.size()));
    }
    std::vector<unsigned> expected(results + 1, 0), got(results + 1);
    for (const Launch& l : launches) {
        if (l.refused) continue;
        dim3 b(0, 0, 0), t(0, 0, 0);
        for (b.z = 0; b.z < l.grid.z; ++b.z)
            for (b.y = 0; b.y < l.grid.y; ++b.y)
                for (b.x = 0; b.x < l.grid.x; ++b.x)
                    for (t.z = 0; t.z < l.block.z; ++t.z)
                        for (t.y = 0; t.y < l.block.y; ++t.y)
                            for (t.x = 0; t.x < l.block.x; ++t.x)
                                expected[l.offset + place_of(t, b, l.grid, l.block)] +=
                                    result_of(t, b, l.grid, l.block, l.id, 77 * l.id + 1);
    }
    Work w;
    Launch* launches_there = upload(launches);
    int* begin_there = upload(begin);
    w.launches = launches_there;
    w.begin = begin_there;
    w.threads = int(test.of_thread.size());
    CHECK(cudaMalloc(&w.out, (results + 1) * sizeof(unsigned)));
    CHECK(cudaMalloc(&w.written, (launches.size() + 2) * sizeof(unsigned)));
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaGraphExec_t graph = nullptr;
    if (captured) {
        cudaGraph_t made;
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        parent(test, w, stream);
        CHECK(cudaStreamEndCapture(stream, &made));
        CHECK(cudaGraphInstantiate(&graph, made, 0));
        CHECK(cudaGraphDestroy(made));
    }
    bool right = true;
    for (int i = 0; i < (captured ? test.repeat : unless_small(test.repeat, 1)); ++i) {
        CHECK(cudaMemsetAsync(w.out, 0, (results + 1) * sizeof(unsigned), stream));
        CHECK(cudaMemsetAsync(w.written, 0, (launches.size() + 2) * sizeof(unsigned), stream));
        if (captured) CHECK(cudaGraphLaunch(graph, stream));
        else parent(test, w, stream);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpyAsync(got.data(), w.out, (results + 1) * sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
        right = right && got == expected;
    }
    if (graph) CHECK(cudaGraphExecDestroy(graph));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(launches_there));
    CHECK(cudaFree(begin_there));
    CHECK(cudaFree(w.out));
    CHECK(cudaFree(w.written));
    return right;
}

Launch shaped(dim3 grid, dim3 block, unsigned shared = 0) {
    Launch l;
    l.grid = grid;
    l.block = block;
    l.shared = shared;
    l.refused = grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x * block.y * block.z > 1024 || block.x * block.y * block.z == 0 ||
                block.z > 64 || grid.y > 65535 || grid.z > 65535 || shared > 48 * 1024;
    return l;
}

// ------------------------------------------------------------------------------------------- tests

template <class G>
void test_counts() {
    for (int count : {0, 1, 2, 31, 32, 33, 100, 500, 1023, 1024, 1025, 2100})
        for (int threads : {1, 50, 128}) {
            if (count > unless_small(2100, 100)) continue;
            Test one_block_each, several;
            one_block_each.block = several.block = 1024;
            one_block_each.bytes_per_thread = several.bytes_per_thread = 128;
            Random random;
            for (int i = 0; i < count; ++i) {
                one_block_each.add(i % 1024, shaped(1, threads));
                several.add(i % 1024, shaped(1 + random.below(5), threads));
            }
            std::string what = std::to_string(count) + " launches of " + std::to_string(threads) + " threads a block, ";
            verdict(what + "one block each", run(one_block_each, with_arena<G, plain>(parent_plain<G>)));
            verdict(what + "some blocks each", run(several, with_arena<G, plain>(parent_plain<G>)));
        }
}

Test random_test(int blocks, int launchers, int most_launches, unsigned seed) {
    Random random;
    random.state = seed;
    Test test;
    test.grid = blocks;
    for (int t = 0; t < launchers; ++t) {
        if (int(test.of_thread.size()) <= t) test.of_thread.resize(t + 1);
        if (random.below(3) == 0) continue;   // leaves early
        for (int i = random.below(most_launches + 1); i > 0; --i) test.add(t, shaped(1 + random.below(4), 64));
    }
    return test;
}

template <class G>
void test_control_flow() {
    verdict("threads leave before others launch", run(random_test(7, 7 * 256 - 100, 1, 3), with_arena<G, plain>(parent_plain<G>)));
    verdict("divergent loops that fit", [] {
        Test test = random_test(3, 600, 4, 5);
        test.bytes_per_thread = 512;
        return run(test, with_arena<G, plain>(parent_plain<G>));
    }());
    verdict("divergent loops that overflow", run(random_test(3, 600, 9, 6), with_arena<G, plain>(parent_plain<G>)));
    verdict("tiny arena", [] {
        Test test = random_test(3, 600, 3, 7);
        test.bytes_per_thread = 8;
        return run(test, with_arena<G, plain>(parent_plain<G>));
    }());
    verdict("arena for one thread's worth of bytes", [] {
        Test test = random_test(1, 20, 2, 8);
        test.block = 32;
        test.bytes_per_thread = 1;
        return run(test, with_arena<G, plain>(parent_plain<G>));
    }());
    verdict("empty arena", [] {
        Test test = random_test(2, 500, 2, 9);
        test.arena = false;
        return run(test, with_arena<G, plain>(parent_plain<G>));
    }());
    verdict("arena for fewer blocks than the parent has", [] {
        Test test = random_test(5, 5 * 256, 1, 10);
        test.arena_grid = 2;
        return run(test, with_arena<G, plain>(parent_plain<G>));
    }());
    verdict("no thread launches", run(random_test(4, 0, 1, 11), with_arena<G, plain>(parent_plain<G>)));
    verdict("many blocks", run(random_test(unless_small(300, 11), unless_small(300, 11) * 256, 1, 12), with_arena<G, plain>(parent_plain<G>)));
}

template <class G>
void test_shapes() {
    Random random;
    Test grids, varying, shapes, parents;
    for (int t = 0; t < 200; ++t) {
        grids.add(t, shaped(dim3(1 + random.below(5), 1 + random.below(4), 1 + random.below(3)), dim3(8, 4, 2)));
        varying.add(t, shaped(1 + random.below(3), 1 + random.below(300)));
        shapes.add(t, shaped(1 + random.below(3), dim3(1 + random.below(9), 1 + random.below(5), 1 + random.below(3))));
        parents.add(t, shaped(1 + random.below(3), 64));
    }
    verdict("three-dimensional grids and blocks", run(grids, with_arena<G, plain>(parent_plain<G>)));
    verdict("block sizes that differ", run(varying, with_arena<G, plain>(parent_plain<G>)));
    verdict("block shapes that differ in all dimensions", run(shapes, with_arena<G, plain>(parent_plain<G>)));
    parents.grid = dim3(2, 2, 2);
    parents.block = dim3(5, 3, 2);
    verdict("three-dimensional parent", run(parents, with_arena<G, plain>(parent_plain<G>)));
    Test empty;
    for (int t = 0; t < 200; ++t) empty.add(t, shaped(random.below(2) * random.below(4), 64));
    verdict("grids of no blocks among others", run(empty, with_arena<G, plain>(parent_plain<G>)));
    Test nothing;
    nothing.add(3, shaped(0, 64));
    verdict("nothing but a grid of no blocks", run(nothing, with_arena<G, plain>(parent_plain<G>)));
    Test full;
    for (int t = 0; t < 8; ++t) full.add(t, shaped(2, 1024));
    verdict("blocks of 1024 threads", run(full, with_arena<G, plain>(parent_plain<G>)));
    Test wide_grid;
    wide_grid.add(0, shaped(dim3(3, 300, 2), 4));
    wide_grid.add(1, shaped(unless_small(70000, 700), 4));
    wide_grid.add(2, shaped(1, 4));
    verdict("large grids", run(wide_grid, with_arena<G, plain>(parent_plain<G>)));
}

// Launches that CUDA refuses, among others.
template <class G>
void test_refused() {
    Random random;
    Test invalid;
    for (int t = 0; t < 200; ++t) {
        Launch odd[] = {shaped(0, 64), shaped(dim3(2, 0, 1), 64), shaped(3, 64), shaped(1, 1025), shaped(1, dim3(32, 33)), shaped(1, 64),
                        shaped(2, 0), shaped(1, dim3(4, 1, 65)), shaped(dim3(1, 65536), 64), shaped(dim3(1, 1, 65536), 64),
                        shaped(dim3(0, 65536), 64)};
        invalid.add(t, odd[random.below(sizeof odd / sizeof *odd)]);
    }
    verdict("launches that CUDA refuses", run(invalid, with_arena<G, plain>(parent_plain<G>)));
}

template <class G>
void test_kernels() {
    verdict("template kernels, wide arguments", run(random_test(3, 600, 2, 21), with_arena<G, wide<long long, 0>>(parent_wide<G, long long>)));
    verdict("template kernels, other type", run(random_test(3, 600, 2, 22), with_arena<G, wide<int, 0>>(parent_wide<G, int>)));
    Test three = random_test(3, 700, 3, 23);
    three.aggregators = 3;
    three.bytes_per_thread = 256;
    verdict("three aggregators", run(three, with_arena<G, plain, wide<long long, 0>>(parent_three<G>)));
    three.arena = false;
    verdict("three aggregators, no memory", run(three, with_arena<G, plain, wide<long long, 0>>(parent_three<G>)));
}

// An arena with parts for some of the aggregators only: the others put their launches aside.
template <class G>
void test_starved() {
    Test three = random_test(3, 700, 3, 23);
    three.bytes_per_thread = 256;
    three.aggregators = 1;
    const unsigned long long before = gridfuse::direct_launches();
    verdict("three aggregators, memory for one", run(three, with_arena<G, plain, wide<long long, 0>>(parent_three<G>)));
    verdict("what finds no memory is counted", gridfuse::direct_launches() > before);
}

// Launches from loops of different lengths and from several branches, with too little memory for all of them: threads of one
// warp write down, put aside and do other things at the same time.
struct counter_args { int turn; };
__global__ void counter(gridfuse::Batch<counter_args> batch, unsigned* count) {
    batch.for_each_block([&](uint3, dim3, dim3, const counter_args&) { atomicAdd(count, 1u); });
}
__device__ inline int turns(int t, int most) { return (t * 7 + 3) % (most + 1); }
template <class G, int Mode>
__global__ void parent_overflow(unsigned* count, int n, int most, gridfuse::Arena arena) {
    gridfuse::Aggregator<G, counter> counters(arena, count);
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    for (int i = 0; i < turns(t, most); ++i) {
        int kind = t * 5 + i;
        if (Mode == 0) {
            counters.launch(1, 64, {i});
        } else if (Mode == 1) {
            if (kind % 3 == 0) counters.launch(1, 64, {i});
            else if (kind % 3 == 1) counters.launch(2, 32, {i});
            else atomicAdd(count, 64u);
        } else if (Mode == 2) {
            if (kind % 2 == 0) counters.launch(1 + (t & 1), 64 >> (t & 1), {i});
            else for (int k = 0; k < 64; ++k) atomicAdd(count, 1u);
        } else if (Mode == 3) {
            unsigned seen = *(volatile unsigned*)count;
            if (kind % 2 == 0) counters.launch(1, 64, {i});
            else while (atomicCAS(count, seen, seen + 64) != seen) seen = *(volatile unsigned*)count;
        } else {
            if (t % 11 == 3 && i == 2) {
                atomicAdd(count, 64u * (turns(t, most) - i));
                return;
            }
            counters.launch(1, 64, {i});
        }
    }
}

template <class G, int Mode>
void overflow(const char* name) {
    const int n = unless_small(700, 300);
    unsigned* count;
    CHECK(cudaMalloc(&count, sizeof(unsigned)));
    bool right = true;
    for (int most : {2, 3, 4, 5, 7, 11})
        for (int bytes : {64, 24, 8, 0}) {
            if (most > unless_small(11, 3)) continue;
            CHECK(cudaMemset(count, 0, sizeof(unsigned)));
            parent_overflow<G, Mode><<<3, 256>>>(count, n, most, arena_of<G, counter>(3, 256, 0, bytes));
            CHECK(cudaDeviceSynchronize());
            unsigned found = 0, expected = 0;
            CHECK(cudaMemcpy(&found, count, sizeof(unsigned), cudaMemcpyDeviceToHost));
            for (int t = 0; t < n; ++t) expected += 64u * ((t * 7 + 3) % (most + 1));
            right = right && found == expected;
        }
    CHECK(cudaFree(count));
    verdict(name, right);
}

template <class G>
void test_overflow() {
    overflow<G, 0>("too little memory, one place");
    overflow<G, 1>("too little memory, two places");
    overflow<G, 2>("too little memory, other loops beside it");
    overflow<G, 3>("too little memory, other waiting beside it");
    overflow<G, 4>("too little memory, early return");
}

// A tree of launches: a kernel that launches itself and, beside that, another one. Every thread of a node leaves a mark in its
// level; which threads launch, and what, follows from numbers that the CPU works out as well.
constexpr int kLevels = 7;
struct Node {
    dim3 grid, block;
    unsigned id;
    int level;
};
__host__ __device__ inline unsigned of_thread(unsigned id, unsigned block, unsigned thread) { return mix(mix(mix(7, id), block), thread); }
__host__ __device__ inline bool has_child(const Node& node, unsigned thread, int levels, unsigned sparse) {
    return node.level + 1 < levels && thread % sparse < 3;
}
__host__ __device__ inline bool has_leaf(unsigned thread, unsigned sparse) { return thread % sparse == 4; }
__host__ __device__ inline Node child_of(const Node& node, unsigned thread, bool flat) {
    return {flat ? dim3(1 + thread % 3) : dim3(1 + thread % 2, 1 + thread / 2 % 2), dim3(flat ? 1 + thread / 5 % 60 : 32), thread, node.level + 1};
}

struct tree_args { unsigned id; int level; };
struct leaf_args { unsigned id; int level; };
__global__ void leaf_aggregated(gridfuse::NestedBatch<leaf_args> batch, unsigned* marks) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const leaf_args& args) {
        atomicAdd(&marks[kLevels], mix(args.id + args.level, blockIdx.x) + threadIdx.x);
    });
}
template <class Trees, class Leaves>
__device__ void tree_body(Trees& trees, Leaves& leaves, uint3 blockIdx, dim3 gridDim, dim3 blockDim, unsigned* marks, int levels,
                          unsigned sparse, unsigned flat, unsigned id, int level) {
    __shared__ unsigned first;
    const unsigned thread = of_thread(id, blockIdx.x + gridDim.x * blockIdx.y, threadIdx.x);
    if (threadIdx.x == 0) first = thread;
    __syncthreads();
    atomicAdd(&marks[level], thread ^ first ^ blockDim.x);
    Node node{gridDim, blockDim, id, level};
    if (has_leaf(thread, sparse)) leaves.launch(1 + thread % 3, 20, {thread, level});
    if (!has_child(node, thread, levels, sparse)) return;
    Node child = child_of(node, thread, flat);
    trees.launch(child.grid, child.block, {child.id, child.level});
}
template <class G>
__global__ void tree_aggregated(gridfuse::NestedBatch<tree_args> batch, unsigned* marks, int levels, unsigned sparse, bool flat) {
    gridfuse::Aggregator<G, tree_aggregated<G>> trees(batch.arena(), marks, levels, sparse, flat);
    gridfuse::Aggregator<G, leaf_aggregated> leaves(batch.arena(), marks);
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const tree_args& args) {
        tree_body(trees, leaves, blockIdx, gridDim, blockDim, marks, levels, sparse, flat, args.id, args.level);
    });
}
template <class G>
__global__ void tree(unsigned* marks, int levels, unsigned sparse, bool flat, unsigned id, gridfuse::Arena arena) {
    gridfuse::Aggregator<G, tree_aggregated<G>> trees(arena, marks, levels, sparse, flat);
    gridfuse::Aggregator<G, leaf_aggregated> leaves(arena, marks);
    tree_body(trees, leaves, blockIdx, gridDim, blockDim, marks, levels, sparse, flat, id, 0);
}

void grow(const Node& node, int levels, unsigned sparse, bool flat, std::vector<unsigned>& marks) {
    for (unsigned b = 0; b < node.grid.x * node.grid.y; ++b)
        for (unsigned t = 0; t < node.block.x; ++t) {
            unsigned thread = of_thread(node.id, b, t);
            marks[node.level] += thread ^ of_thread(node.id, b, 0) ^ node.block.x;
            if (has_leaf(thread, sparse))
                for (unsigned leaf = 0; leaf < 1 + thread % 3; ++leaf)
                    for (unsigned i = 0; i < 20; ++i) marks[kLevels] += mix(thread + node.level, leaf) + i;
            if (has_child(node, thread, levels, sparse)) grow(child_of(node, thread, flat), levels, sparse, flat, marks);
        }
}

// In several streams at once, several times each.
template <class G>
bool run_trees(int levels, unsigned sparse, bool flat, size_t per_thread, size_t nested) {
    const Node root{unless_small(20, 3), unless_small(128, 40), 5, 0};
    std::vector<unsigned> expected(kLevels + 1), got(kLevels + 1);
    grow(root, levels, sparse, flat, expected);
    cudaStream_t streams[2];
    unsigned* marks[2];
    for (int i = 0; i < 2; ++i) {
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        CHECK(cudaMalloc(&marks[i], expected.size() * sizeof(unsigned)));
    }
    bool right = true;
    for (int turn = 0; turn < unless_small(5, 2); ++turn) {
        for (int i = 0; i < 2; ++i) {
            CHECK(cudaMemsetAsync(marks[i], 0, expected.size() * sizeof(unsigned), streams[i]));
            tree<G><<<root.grid, root.block, 0, streams[i]>>>(marks[i], levels, sparse, flat, root.id,
                                                              arena_of<G, tree_aggregated<G>, leaf_aggregated>(root.grid, root.block, streams[i], per_thread, 2, nested));
            CHECK(cudaGetLastError());
        }
        for (int i = 0; i < 2; ++i) {
            CHECK(cudaMemcpyAsync(got.data(), marks[i], expected.size() * sizeof(unsigned), cudaMemcpyDeviceToHost, streams[i]));
            CHECK(cudaStreamSynchronize(streams[i]));
            right = right && got == expected;
        }
    }
    for (int i = 0; i < 2; ++i) {
        CHECK(cudaStreamDestroy(streams[i]));
        CHECK(cudaFree(marks[i]));
    }
    return right;
}

template <class G>
void test_nested() {
    // So few that even launched one by one no more are pending than may be.
    const int levels = 4;
    const unsigned sparse = unless_small(40, 20);
    const size_t enough = unless_small(int(gridfuse::kNestedBytes), 1 << 20);
    verdict("nested, memory for all", run_trees<G>(levels, sparse, true, 64, enough));
    verdict("nested, two-dimensional grids", run_trees<G>(levels, sparse, false, 64, enough));
    verdict("nested, little memory", run_trees<G>(levels, sparse, true, 64, 10 * 4200));
    verdict("nested, hardly any memory", run_trees<G>(levels, sparse, false, 8, 2 * 4200));
    verdict("nested, no memory", run_trees<G>(levels, sparse, true, 64, 0));
}

template <class G>
void test_shared() {
    Random random;
    Test small, mixed;
    for (int t = 0; t < 200; ++t) {
        small.add(t, shaped(1 + random.below(3), 64, 4 * random.below(1000)));
        Launch l = shaped(1 + random.below(2), 32 + random.below(50), random.below(2) ? 20000 : 1000);
        l.refused = l.shared + 40000 > 48 * 1024;
        if (random.below(10) == 0) {
            l.shared = 60000;   // more than any kernel gets unasked
            l.refused = true;
        }
        mixed.add(t, l);
    }
    verdict("dynamic shared memory", run(small, with_arena<G, with_shared<16>>(parent_shared<G, 16>)));
    if (!small_tests) verdict("too much shared memory for some", run(mixed, with_arena<G, with_shared<40000>>(parent_shared<G, 40000>)));
}

template <class G>
void test_host() {
    Test test = random_test(3, 600, 2, 31);
    verdict("captured in a graph", run(test, with_arena<G, plain>(parent_plain<G>), true));
    bool right[6] = {};
    std::vector<std::thread> threads;
    for (int i = 0; i < 6; ++i)
        threads.emplace_back([&, i] { right[i] = run(random_test(5, 5 * 200, 2, 40 + i), with_arena<G, plain>(parent_plain<G>)); });
    for (auto& thread : threads) thread.join();
    verdict("several host threads and streams", std::all_of(right, right + 6, [](bool r) { return r; }));

    // More memory than there is: fewer bytes a thread, or none; no error is left behind.
    gridfuse::Arena arena = arena_of<G, plain>(dim3(1u << 30), 1024, 0, 1u << 20);
    (void)arena;
    verdict("too large an arena leaves no error", cudaGetLastError() == cudaSuccess);
    (void)arena_of<G, plain>(0, 1024, 0, 64);
    (void)arena_of<G, plain>(1, 0, 0, 64);
    verdict("arena for nothing", cudaGetLastError() == cudaSuccess);
    (void)cudaMemset(nullptr, 0, 4);
    cudaError_t before = cudaPeekAtLastError();
    (void)arena_of<G, plain>(1, 32, 0, 64);
    verdict("an earlier error stays", cudaGetLastError() == before && before != cudaSuccess);
    CHECK(cudaDeviceSynchronize());
}

// More blocks in a batch than a grid can have.
template <class G>
void test_huge() {
    unsigned* out;
    CHECK(cudaMalloc(&out, 4 * sizeof(unsigned)));
    CHECK(cudaMemset(out, 0, 4 * sizeof(unsigned)));
    const int times = 16500;
    parent_corner<G><<<1, 4>>>(dim3(1u << 15), times, out, arena_of<G, corner>(1, 4, 0, 32 * times));
    CHECK(cudaDeviceSynchronize());
    unsigned got[4];
    CHECK(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(out));
    verdict("more than 2^31 - 1 blocks together", std::all_of(got, got + 4, [=](unsigned g) { return g == (1u << 15) * unsigned(times); }));
}

// A kernel that launches itself again and again.
struct chain_args { int level; };
template <class G>
__global__ void chain_aggregated(gridfuse::NestedBatch<chain_args> batch, int* reached, int levels) {
    gridfuse::Aggregator<G, chain_aggregated<G>> chains(batch.arena(), reached, levels);
    batch.for_each_block([&](uint3, dim3, dim3, const chain_args& args) {
        if (threadIdx.x != 3) return;
        atomicMax(reached, args.level);
        if (args.level < levels) chains.launch(1, 32, {args.level + 1});
    });
}
template <class G>
__global__ void chain(int* reached, int levels, gridfuse::Arena arena) {
    gridfuse::Aggregator<G, chain_aggregated<G>> chains(arena, reached, levels);
    if (threadIdx.x == 0) chains.launch(1, 32, {1});
}
__global__ void add_one(int* value) { ++*value; }

// What is particular to launches from the host.
void test_from_host() {
    using G = gridfuse::PerGridFromHost;
    const Test test = random_test(3, 600, 2, 51);
    verdict("arena without a launchpad", run(test, with_arena<gridfuse::PerGrid>(parent_plain<G>)));
    verdict("launchpad for another kernel", run(test, with_arena<G, counter>(parent_plain<G>)));
    verdict("launchpad and a granularity of the device", run(test, with_arena<G, plain>(parent_plain<gridfuse::PerBlock>)));
    Test three = random_test(3, 700, 3, 52);
    three.aggregators = 3;
    three.bytes_per_thread = 256;
    verdict("launchpad for some of the kernels", run(three, with_arena<G, counter, wide<long long, 0>>(parent_three<G>)));

    int* reached;
    CHECK(cudaMalloc(&reached, sizeof(int)));
    const int levels = unless_small(300, 40);
    bool right = true;
    cudaStream_t created;
    CHECK(cudaStreamCreate(&created));
    for (cudaStream_t stream : {cudaStream_t(0), cudaStreamLegacy, cudaStreamPerThread, created}) {
        CHECK(cudaMemsetAsync(reached, 0, sizeof(int), stream));
        chain<G><<<1, 32, 0, stream>>>(reached, levels,
                                       gridfuse::launchpad_for<chain_aggregated<G>>(1, 32, stream, 64, 1, unless_small(int(gridfuse::kNestedBytes), 1 << 18)));
        add_one<<<1, 1, 0, stream>>>(reached);
        int got = 0;
        CHECK(cudaMemcpyAsync(&got, reached, sizeof(int), cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
        right = right && got == levels + 1;
    }
    CHECK(cudaStreamDestroy(created));
    CHECK(cudaFree(reached));
    verdict("a long chain, before what comes next in the stream", right);
}

__global__ void ask_threshold(const Launch* launches, int count, unsigned long long threshold, bool* answer) {
    for (int i = 0; i < count; ++i) answer[i] = gridfuse::below_threshold(launches[i].grid, launches[i].block, threshold);
}
// With a count: how many threads ran, and the sum of their numbers.
__global__ void serial_count(int blocks, int threads, long long count, long long* out) {
    out[0] = out[1] = 0;
    gridfuse::for_each_thread(blocks, threads, count, [&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim) {
        out[0] += 1;
        out[1] += blockIdx.x * blockDim.x + threadIdx.x;
        if (gridDim.x != blocks) out[0] = -1000;
    });
}

void test_threshold() {
    std::vector<Launch> launches = {shaped(1, 63), shaped(1, 64), shaped(2, 31), shaped(2, 32), shaped(0, 1), shaped(1, 0), shaped(1, 1025),
                                    shaped(dim3(0x7fffffff, 65535, 65535), 1024), shaped(dim3(0x80000000u), 1), shaped(dim3(2, 2, 3), dim3(5)),
                                    shaped(dim3(1, 65536), 1), shaped(1, dim3(1, 1, 65))};
    std::vector<bool> expected = {true, false, true, false, false, false, false, false, false, true, false, false};
    Launch* there = upload(launches);
    bool* answer;
    CHECK(cudaMalloc(&answer, launches.size()));
    ask_threshold<<<1, 1>>>(there, int(launches.size()), 64, answer);
    std::vector<char> got(launches.size());
    CHECK(cudaMemcpy(got.data(), answer, got.size(), cudaMemcpyDeviceToHost));
    bool right = true;
    for (size_t i = 0; i < got.size(); ++i) right = right && bool(got[i]) == expected[i];
    verdict("below_threshold", right);
    long long *out, sums[2];
    CHECK(cudaMalloc(&out, sizeof sums));
    right = true;
    for (long long count : {-5, 0, 1, 63, 64, 65, 128, 129, 500}) {
        serial_count<<<1, 1>>>(2, 64, count, out);
        CHECK(cudaMemcpy(sums, out, sizeof sums, cudaMemcpyDeviceToHost));
        long long ran = std::max(0ll, std::min(count, 128ll));
        right = right && sums[0] == ran && sums[1] == ran * (ran - 1) / 2;
    }
    verdict("for_each_thread with a count", right);
    Random random;
    Test test;
    for (int t = 0; t < 200; ++t)
        test.add(t, shaped(dim3(1 + random.below(4), 1 + random.below(3), random.below(3)), dim3(1 + random.below(5), 1 + random.below(3), 2)));
    verdict("for_each_thread", run(test, [](const Test& t, Work w, cudaStream_t stream) { parent_serial<<<t.grid, t.block, 0, stream>>>(w); }));
}

// ------------------------------------------------------------------- blocks in one thread

// A block's sum and its numbers of threads, with barriers, by its threads or by one thread.
__device__ void sum_in_one_thread(dim3 grid, dim3 block, unsigned limit, unsigned* out) {
    gridfuse::for_each_block(grid, block, [&](uint3 blockIdx, dim3 gridDim, dim3 blockDim) {
        unsigned sums[64];
        unsigned own[64];
        unsigned last = 0, bits = 0;
        const unsigned number = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        gridfuse::BlockThreads<64> threads(blockDim);
        threads.for_each([&](uint3 threadIdx, unsigned thread) {
            own[thread] = threadIdx.x + 5 * threadIdx.y + 7 * threadIdx.z;
            sums[thread] = 0;
            if (thread >= limit) return threads.exit(thread);
            sums[thread] = own[thread];
        });
        if (threads.none()) {
            out[2 * number] = 1000;
            return;
        }
        threads.for_each([&](uint3, unsigned thread) {
            if (thread == 0)
                gridfuse::for_each_thread(blockDim, [&](uint3 threadIdx, unsigned other) {
                    if (other > 0) sums[0] += own[other] == threadIdx.x + 5 * threadIdx.y + 7 * threadIdx.z ? sums[other] : 100000;
                });
            gridfuse::serial::atomicMax(&last, thread);
            gridfuse::serial::atomicOr(&bits, 1u << thread % 32);
        });
        unsigned left = 0;
        threads.for_each([&](uint3) { gridfuse::serial::atomicAdd(&left, 1); });
        atomicAdd(&out[2 * number], sums[0]);
        atomicAdd(&out[2 * number + 1], left + 64 * last + (bits == (left >= 32 ? ~0u : (1u << left) - 1) ? 0 : 1u << 30));
    });
}
__global__ void sums_in_one_thread(dim3 grid, dim3 block, unsigned limit, unsigned* out) {
    sum_in_one_thread(grid, block, limit, out);
}

__global__ void serial_atomics(unsigned* out) {
    unsigned value = 5;
    int number = -3;
    float real = 1.5f;
    out[0] = gridfuse::serial::atomicAdd(&value, 2) == 5 && value == 7;
    out[1] = gridfuse::serial::atomicSub(&value, 8u) == 7 && value == ~0u;
    out[2] = gridfuse::serial::atomicExch(&value, 9) == ~0u && value == 9;
    out[3] = gridfuse::serial::atomicMin(&number, -4) == -3 && gridfuse::serial::atomicMin(&number, 8) == -4 && number == -4;
    out[4] = gridfuse::serial::atomicMax(&number, -5) == -4 && gridfuse::serial::atomicMax(&number, 8) == -4 && number == 8;
    out[5] = gridfuse::serial::atomicInc(&value, 9) == 9 && value == 0 && gridfuse::serial::atomicInc(&value, 9) == 0 && value == 1;
    out[6] = gridfuse::serial::atomicDec(&value, 4) == 1 && value == 0 && gridfuse::serial::atomicDec(&value, 4) == 0 && value == 4;
    out[7] = gridfuse::serial::atomicCAS(&value, 3, 1) == 4 && value == 4 && gridfuse::serial::atomicCAS(&value, 4, 12) == 4 && value == 12;
    out[8] = gridfuse::serial::atomicAnd(&value, 10u) == 12 && gridfuse::serial::atomicOr(&value, 3u) == 8 && gridfuse::serial::atomicXor(&value, 1u) == 11 && value == 10;
    out[9] = gridfuse::serial::atomicAdd(&real, 1) == 1.5f && real == 2.5f;
}

void test_serial() {
    std::vector<unsigned> got(2 * 24);
    unsigned* out;
    CHECK(cudaMalloc(&out, got.size() * sizeof(unsigned)));
    bool right = true;
    for (dim3 block : {dim3(1), dim3(33), dim3(64), dim3(3, 4, 5)})
        for (unsigned limit : {0u, 1u, 20u, 64u}) {
            const dim3 grid(2, 3, 4);
            CHECK(cudaMemset(out, 0, got.size() * sizeof(unsigned)));
            sums_in_one_thread<<<1, 1>>>(grid, block, limit, out);
            CHECK(cudaMemcpy(got.data(), out, got.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
            unsigned sum = 0, count = 0;
            for (unsigned z = 0; z < block.z; ++z)
                for (unsigned y = 0; y < block.y; ++y)
                    for (unsigned x = 0; x < block.x; ++x)
                        if (count < limit) {
                            sum += x + 5 * y + 7 * z;
                            ++count;
                        }
            for (int b = 0; b < 24; ++b)
                right = right && got[2 * b] == (count == 0 ? 1000 : sum) && got[2 * b + 1] == (count == 0 ? 0 : count + 64 * (count - 1));
        }
    verdict("blocks in one thread", right);
    serial_atomics<<<1, 1>>>(out);
    CHECK(cudaMemcpy(got.data(), out, 10 * sizeof(unsigned), cudaMemcpyDeviceToHost));
    verdict("atomics in one thread", std::all_of(got.begin(), got.begin() + 10, [](unsigned g) { return g == 1; }));
    CHECK(cudaFree(out));
}

// ------------------------------------------------------------------------- allocating together

__device__ bool is_filled(const unsigned* memory, unsigned words, unsigned with) {
    for (unsigned i = 0; i < words; ++i)
        if (memory[i] != with + i) return false;
    return true;
}
__device__ void fill_words(unsigned* memory, unsigned words, unsigned with) {
    for (unsigned i = 0; i < words; ++i) memory[i] = with + i;
}

enum Way { kMalloc, kNew, kCuda, kMallocInBlock, kNewInBlock, kCudaInBlock };

// Thread t gets words[t] words (kNone: it leaves before, kHuge: what no heap has) and fills them.
constexpr unsigned kNone = ~0u, kHuge = ~1u, kEndless = ~2u;
__global__ void take(const unsigned* words, unsigned** parts, Way way, int n, unsigned* errors) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n || words[t] == kNone) return;
    const size_t count = words[t] == kHuge ? size_t(1) << 36 : words[t] == kEndless ? ~size_t(0) / 4 : words[t];
    unsigned* part = nullptr;
    cudaError_t error = cudaSuccess;
    const bool cuda = way == kCuda || way == kCudaInBlock;
    // Errors leave the place as it is.
    unsigned* const before = cuda ? reinterpret_cast<unsigned*>(parts) : nullptr;
    part = before;
    switch (way) {
        case kMalloc: part = static_cast<unsigned*>(gridfuse::malloc_together(count * sizeof(unsigned))); break;
        case kNew: part = gridfuse::new_together<unsigned>(count); break;
        case kCuda: error = gridfuse::cuda_malloc_together(&part, count * sizeof(unsigned)); break;
        case kMallocInBlock: part = static_cast<unsigned*>(gridfuse::malloc_together_in_block(count * sizeof(unsigned))); break;
        case kNewInBlock: part = gridfuse::new_together_in_block<unsigned>(count); break;
        case kCudaInBlock: error = gridfuse::cuda_malloc_together_in_block(&part, count * sizeof(unsigned)); break;
    }
    // malloc and new give for nothing a place of its own, cudaMalloc an error.
    const bool possible = words[t] < kEndless && (words[t] != 0 || !cuda);
    const cudaError_t wanted = possible ? cudaSuccess : words[t] == 0 ? cudaErrorInvalidValue : cudaErrorMemoryAllocation;
    if ((part != before) != possible) atomicAdd(errors, 1);
    if (cuda && (error != wanted || cudaGetLastError() != wanted)) atomicAdd(errors, 1);
    if (part == before) part = nullptr;
    if (reinterpret_cast<uintptr_t>(part) % 16 != 0) atomicAdd(errors, 1);
    if (part != nullptr) fill_words(part, words[t], t);
    parts[t] = part;
    // Some are given back at once, while others of the same allocation stay.
    if (t % 5 == 3 && part != nullptr) {
        if (!is_filled(part, words[t], t)) atomicAdd(errors, 1);
        gridfuse::free_together(part);
        parts[t] = nullptr;
    }
}

// The threads give back other threads' parts, in another order; those of odd number in a child grid.
__global__ void give_back(const unsigned* words, unsigned** parts, int n, int step, unsigned* errors, bool deeper) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (deeper && t == 0) give_back<<<gridDim.x, blockDim.x>>>(words, parts, n, step, errors, false);
    if (t >= n) return;
    t = int(static_cast<long long>(t) * step % n);
    if (words[t] >= kEndless || (t % 2 == 0) != deeper) return;
    if (parts[t] != nullptr && !is_filled(parts[t], words[t], t)) atomicAdd(errors, 1);
    gridfuse::free_together(parts[t]);
}

void test_together() {
    const char* const names[] = {"malloc", "new", "cudaMalloc", "malloc in blocks", "new in blocks", "cudaMalloc in blocks"};
    const int n = unless_small(5003, 211), rounds = unless_small(40, 2);   // the heap holds 32 MB: not all rounds' memory
    unsigned **parts, *errors, *words;
    CHECK(cudaMalloc(&parts, n * sizeof(unsigned*)));
    CHECK(cudaMalloc(&words, n * sizeof(unsigned)));
    CHECK(cudaMallocManaged(&errors, sizeof(unsigned)));
    *errors = 0;
    Random random;
    for (int way = kMalloc; way <= kCudaInBlock; ++way) {
        for (int round = 0; round < rounds; ++round) {
            std::vector<unsigned> wanted(n);
            for (unsigned& w : wanted) {
                const int kind = random.below(20);
                w = kind == 0 ? kNone : kind == 1 ? 0 : kind == 2 ? random.below(500) : random.below(60);
                if (round % 4 == 1 && random.below(200) == 0) w = random.below(2) ? kHuge : kEndless;
                if (w == kEndless && (way == kMalloc || way == kCuda || way == kMallocInBlock || way == kCudaInBlock)) w = kHuge;
            }
            CHECK(cudaMemcpy(words, wanted.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
            CHECK(cudaMemset(parts, 0, n * sizeof(unsigned*)));
            const int threads = round % 3 == 0 ? 128 : round % 3 == 1 ? 33 : 1;
            take<<<(n + threads - 1) / threads, threads>>>(words, parts, Way(way), n, errors);
            const int step = round % 2 ? 1 : n - 1;
            give_back<<<(n + 63) / 64, 64>>>(words, parts, n, step, errors, true);
            CHECK(cudaDeviceSynchronize());
        }
        verdict(std::string("together: ") + names[way], *errors == 0);
        *errors = 0;
    }
    CHECK(cudaFree(parts));
    CHECK(cudaFree(words));
    CHECK(cudaFree(errors));
}

// -------------------------------------------------------------------------------------- recursion

// A grid, and those that its first block launches: a piece of the list of all.
struct Step {
    Launch launch;
    int first = 0, count = 0;
};

struct grow_args { int id; };
__global__ void grow_flattened(gridfuse::Worklist<grow_args> worklist, const Step* steps, unsigned* out, unsigned* written);

// The threads count themselves, so that one that still is or already is at another block's work is seen.
__device__ __forceinline__ void grow_body(gridfuse::Recursion<grow_flattened>& grows, uint3 blockIdx, dim3 gridDim, dim3 blockDim,
                                          const Step* steps, unsigned* out, unsigned* written, int id) {
    extern __shared__ unsigned dynamic[];
    __shared__ unsigned here;
    const unsigned thread = threadIdx.x + blockDim.x * threadIdx.y, threads = blockDim.x * blockDim.y;
    const Step& step = steps[id];
    if (thread == 0) here = 0;
    if (step.launch.shared > 0) dynamic[thread] = id + thread;
    __syncthreads();
    atomicAdd(&here, 1u);
    __syncthreads();
    bool right = here == threads;
    if (step.launch.shared > 0) right = right && dynamic[threads - 1 - thread] == id + threads - 1 - thread;
    if (right) work(blockIdx, gridDim, blockDim, out, written, id, step.launch.offset);
    if ((blockIdx.x | blockIdx.y | blockIdx.z) != 0) return;
    for (int k = thread; k < step.count; k += threads) {
        const int child = step.first + k;
        const Launch& launch = steps[child].launch;
        written[child] = 3 * child + 1;
        if (launch.shared > 0) grows.launch(launch.grid, launch.block, launch.shared, {child});
        else grows.launch(launch.grid, launch.block, {child});
    }
}

__global__ void grow_flattened(gridfuse::Worklist<grow_args> worklist, const Step* steps, unsigned* out, unsigned* written) {
    gridfuse::Recursion<grow_flattened> grows(worklist, steps, out, written);
    grows.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const grow_args& args) {
        grow_body(grows, blockIdx, gridDim, blockDim, steps, out, written, args.id);
    });
}

__global__ void grow_alone(const Step* steps, unsigned* out, unsigned* written, int id) {
    gridfuse::Recursion<grow_flattened> grows({}, steps, out, written);
    grow_body(grows, blockIdx, gridDim, blockDim, steps, out, written, id);
}

// Every step launches `children` others (at random: up to so many), as long as there are fewer than `most`.
std::vector<Step> make_steps(int most, int children, bool at_random, std::function<Launch(int)> launch) {
    Random random;
    std::vector<Step> steps(1);
    steps[0].launch = launch(0);
    for (size_t i = 0; i < steps.size() && steps.size() < size_t(most); ++i) {
        steps[i].first = int(steps.size());
        steps[i].count = at_random ? random.below(children + 1) : children;
        if (at_random && i + 1 == steps.size()) steps[i].count = children;
        for (int k = 0; k < steps[i].count; ++k) {
            steps.emplace_back();
            steps.back().launch = launch(int(steps.size()) - 1);
        }
    }
    return steps;
}

enum class Direct { kNone, kSome, kAny };

// `start` launches the first step. `direct`: whether launches go out by themselves.
void check_steps(const std::string& name, std::vector<Step> steps, Direct direct,
                 const std::function<void(const Launch&, const Step*, unsigned*, unsigned*)>& start) {
    long long all = 0;
    for (size_t id = 0; id < steps.size(); ++id) {
        Launch& launch = steps[id].launch;
        launch.id = int(id);
        launch.offset = all;
        all += 1ll * launch.grid.x * launch.grid.y * launch.grid.z * launch.block.x * launch.block.y;
    }
    std::vector<unsigned> expected(all);
    for (const Step& step : steps) {
        const Launch& l = step.launch;
        const unsigned written = l.id == 0 ? 1 : 3 * l.id + 1;
        dim3 b, t;
        for (b.z = 0; b.z < l.grid.z; ++b.z)
            for (b.y = 0; b.y < l.grid.y; ++b.y)
                for (b.x = 0; b.x < l.grid.x; ++b.x)
                    for (t.z = 0; t.z < 1; ++t.z)
                        for (t.y = 0; t.y < l.block.y; ++t.y)
                            for (t.x = 0; t.x < l.block.x; ++t.x)
                                expected[l.offset + place_of(t, b, l.grid, l.block)] += result_of(t, b, l.grid, l.block, l.id, written);
    }
    Step* device_steps;
    unsigned *out, *written;
    CHECK(cudaMalloc(&device_steps, steps.size() * sizeof(Step)));
    CHECK(cudaMalloc(&out, all * sizeof(unsigned)));
    CHECK(cudaMalloc(&written, steps.size() * sizeof(unsigned)));
    CHECK(cudaMemcpy(device_steps, steps.data(), steps.size() * sizeof(Step), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(out, 0, all * sizeof(unsigned)));
    CHECK(cudaMemset(written, 0, steps.size() * sizeof(unsigned)));
    const unsigned one = 1;
    CHECK(cudaMemcpy(written, &one, sizeof(one), cudaMemcpyHostToDevice));
    const unsigned long long before = gridfuse::direct_launches();
    start(steps[0].launch, device_steps, out, written);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    const unsigned long long by_themselves = gridfuse::direct_launches() - before;
    std::vector<unsigned> found(all);
    CHECK(cudaMemcpy(found.data(), out, all * sizeof(unsigned), cudaMemcpyDeviceToHost));
    const bool as_wanted = direct == Direct::kAny || (by_themselves != 0) == (direct == Direct::kSome);
    if (!as_wanted) std::printf("%s: %llu launches by themselves\n", name.c_str(), by_themselves);
    verdict("recursion: " + name, found == expected && as_wanted);
    CHECK(cudaFree(device_steps));
    CHECK(cudaFree(out));
    CHECK(cudaFree(written));
}

template <unsigned Bits>
void start_flattened(const Launch& first, const Step* steps, unsigned* out, unsigned* written) {
    gridfuse::launch_recursion<grow_flattened, Bits>(first.grid, first.block, first.shared, 0, {0}, steps, out, written);
}

void test_recursion() {
    const auto plain = [](dim3 grid, dim3 block) {
        return [=](int) {
            Launch launch;
            launch.grid = grid;
            launch.block = block;
            return launch;
        };
    };
    constexpr unsigned kMany = 18;
    check_steps("a chain", make_steps(unless_small(2000, 60), 1, false, plain(1, 64)), Direct::kNone, start_flattened<kMany>);
    check_steps("a chain of grids", make_steps(unless_small(500, 40), 1, false, plain(dim3(3, 2, 2), 32)), Direct::kNone, start_flattened<kMany>);
    check_steps("a bush", make_steps(unless_small(5000, 90), unless_small(4999, 89), false, plain(1, 96)), Direct::kNone, start_flattened<kMany>);
    check_steps("a binary tree", make_steps(unless_small(8191, 127), 2, false, plain(1, dim3(16, 4))), Direct::kNone, start_flattened<kMany>);
    check_steps("a tree", make_steps(unless_small(9000, 150), 5, true, plain(2, 33)), Direct::kNone, start_flattened<kMany>);
    check_steps("small blocks", make_steps(unless_small(9000, 150), 3, true, plain(1, 1)), Direct::kNone, start_flattened<kMany>);
    check_steps("large blocks", make_steps(unless_small(900, 6), 3, true, plain(1, 1024)), Direct::kNone, start_flattened<kMany>);
    check_steps("a large first grid", make_steps(unless_small(3000, 40), 4, false, [&](int id) {
        return plain(id == 0 ? dim3(unless_small(700, 20), 7) : dim3(1), 64)(id);
    }), Direct::kNone, start_flattened<kMany>);
    check_steps("little room", make_steps(unless_small(1500, 100), 4, true, plain(1, 64)), Direct::kSome, start_flattened<4>);
    check_steps("hardly any room", make_steps(unless_small(1500, 60), 4, true, plain(1, 32)), Direct::kSome, start_flattened<1>);
    check_steps("places are used again", make_steps(unless_small(3000, 100), 1, false, plain(2, 32)), Direct::kAny, start_flattened<2>);
    check_steps("shared memory", make_steps(unless_small(2000, 60), 3, true, [&](int id) {
        Launch launch = plain(1, 64)(id);
        launch.shared = id % 3 == 1 ? 0 : 64 * sizeof(unsigned);
        return launch;
    }), Direct::kNone, start_flattened<kMany>);
    check_steps("more shared memory", make_steps(unless_small(400, 60), 3, true, [&](int id) {
        Launch launch = plain(1, 64)(id);
        launch.shared = id % 5 == 4 ? 128 * sizeof(unsigned) : 64 * sizeof(unsigned);
        return launch;
    }), Direct::kSome, start_flattened<kMany>);
    check_steps("other blocks", make_steps(unless_small(400, 60), 3, true, [&](int id) {
        return plain(1, id % 4 == 3 ? 48 : 64)(id);
    }), Direct::kSome, start_flattened<kMany>);
    check_steps("without a worklist", make_steps(unless_small(400, 60), 4, false, plain(1, 64)), Direct::kSome,
                [](const Launch& first, const Step* steps, unsigned* out, unsigned* written) {
                    grow_alone<<<first.grid, first.block>>>(steps, out, written, 0);
                });
}

// ------------------------------------------------------------------------------------------- loops

struct pass_args { int id; };
__global__ void pass_loop(gridfuse::Iterations<pass_args> iterations, const Launch* rounds, int count, unsigned* runs, unsigned* marks, unsigned* wrong);

__host__ __device__ inline unsigned blocks_in(const Launch& round) { return round.grid.x * round.grid.y * round.grid.z; }

// Each block of a round leaves a mark, when it has seen that all blocks of the round before have been run.
__device__ __forceinline__ void pass_body(gridfuse::Loop<pass_loop>& passes, uint3 blockIdx, dim3 gridDim, dim3 blockDim, const Launch* rounds,
                                          int count, unsigned* runs, unsigned* marks, unsigned* wrong, int id) {
    extern __shared__ unsigned dynamic[];
    __shared__ unsigned here;
    const unsigned thread = threadIdx.x + blockDim.x * threadIdx.y, threads = blockDim.x * blockDim.y;
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const Launch& round = rounds[id];
    if (thread == 0) here = 0;
    if (round.shared > 0) dynamic[thread] = id + thread;
    __syncthreads();
    atomicAdd(&here, 1u);
    __syncthreads();
    bool right = here == threads && gridDim.x * gridDim.y * gridDim.z == blocks_in(round) && block < blocks_in(round);
    if (round.shared > 0) right = right && dynamic[threads - 1 - thread] == id + threads - 1 - thread;
    if (id > 0) right = right && runs[id - 1] == blocks_in(rounds[id - 1]) && marks[rounds[id - 1].offset] == 1;
    if (!right) atomicAdd(wrong, 1u);
    // In front of what it does last, and not by the first block.
    if (block == blocks_in(round) - 1 && thread == threads - 1 && id + 1 < count) {
        const Launch& next = rounds[id + 1];
        if (next.shared > 0) passes.launch(next.grid, next.block, next.shared, {id + 1});
        else passes.launch(next.grid, next.block, {id + 1});
    }
    if (thread != threads / 2) return;
    marks[round.offset + block] += 1;
    atomicAdd(&runs[id], 1u);
}

__global__ void pass_loop(gridfuse::Iterations<pass_args> iterations, const Launch* rounds, int count, unsigned* runs, unsigned* marks, unsigned* wrong) {
    gridfuse::Loop<pass_loop> passes(iterations, rounds, count, runs, marks, wrong);
    passes.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const pass_args& args) {
        pass_body(passes, blockIdx, gridDim, blockDim, rounds, count, runs, marks, wrong, args.id);
    });
}

__global__ void pass_alone(const Launch* rounds, int count, unsigned* runs, unsigned* marks, unsigned* wrong) {
    gridfuse::Loop<pass_loop> passes({}, rounds, count, runs, marks, wrong);
    pass_body(passes, blockIdx, gridDim, blockDim, rounds, count, runs, marks, wrong, 0);
}

enum class Start { kFixed, kGrowing, kAlone };

void check_rounds(const std::string& name, int count, const std::function<Launch(int)>& launch, Start start, Direct direct) {
    std::vector<Launch> rounds;
    long long all = 0;
    for (int id = 0; id < count; ++id) {
        rounds.push_back(launch(id));
        rounds.back().id = id;
        rounds.back().offset = all;
        all += blocks_in(rounds.back());
    }
    Launch* there;
    unsigned *runs, *marks, *wrong;
    CHECK(cudaMalloc(&there, count * sizeof(Launch)));
    CHECK(cudaMalloc(&runs, count * sizeof(unsigned)));
    CHECK(cudaMalloc(&marks, all * sizeof(unsigned)));
    CHECK(cudaMalloc(&wrong, sizeof(unsigned)));
    CHECK(cudaMemcpy(there, rounds.data(), count * sizeof(Launch), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(runs, 0, count * sizeof(unsigned)));
    CHECK(cudaMemset(marks, 0, all * sizeof(unsigned)));
    CHECK(cudaMemset(wrong, 0, sizeof(unsigned)));
    const Launch& first = rounds[0];
    const unsigned long long before = gridfuse::direct_launches();
    if (start == Start::kFixed)
        gridfuse::launch_loop<pass_loop>(first.grid, first.block, first.shared, 0, {0}, there, count, runs, marks, wrong);
    else if (start == Start::kGrowing)
        gridfuse::launch_growing_loop<pass_loop>(first.grid, first.block, first.shared, 0, {0}, there, count, runs, marks, wrong);
    else
        pass_alone<<<first.grid, first.block, first.shared>>>(there, count, runs, marks, wrong);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    const bool by_themselves = gridfuse::direct_launches() != before;
    std::vector<unsigned> found(all);
    unsigned mistakes = 0;
    CHECK(cudaMemcpy(found.data(), marks, all * sizeof(unsigned), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&mistakes, wrong, sizeof mistakes, cudaMemcpyDeviceToHost));
    bool right = mistakes == 0 && by_themselves == (direct == Direct::kSome);
    for (unsigned mark : found) right = right && mark == 1;
    verdict("loop: " + name, right);
    CHECK(cudaFree(there));
    CHECK(cudaFree(runs));
    CHECK(cudaFree(marks));
    CHECK(cudaFree(wrong));
}

// Grids in the order in which they have to be run: each driver launches others, which are written down behind it, and the next driver last.
struct drive_args { int at; };
struct Grid {
    int blocks;
    int children, tails;   // of a driver: how many it launches, the next driver among the latter; 0 and 0 of the others and of the last one
    bool driver;
};
constexpr int kDriveThreads = 64;
__global__ void drive_loop(gridfuse::Iterations<drive_args, 3, 3> iterations, const Grid* grids, unsigned* runs, unsigned* wrong);

__device__ __forceinline__ void drive_body(gridfuse::Loop<drive_loop>& drives, uint3 blockIdx, dim3 gridDim, const Grid* grids, unsigned* runs,
                                           unsigned* wrong, int at) {
    const Grid& grid = grids[at];
    // All blocks of the grid before have been run, and none of the one behind.
    const bool right = gridDim.x == grid.blocks && (at == 0 || runs[at - 1] == grids[at - 1].blocks * kDriveThreads) && runs[at + 1] == 0;
    if (!right) atomicAdd(wrong, 1u);
    if (grid.driver && blockIdx.x == gridDim.x - 1 && threadIdx.x == kDriveThreads - 1) {
        // The children and the others take turns.
        for (int i = 0; i < 3; ++i) {
            const int tail = at + 1 + grid.children + i;
            if (i < grid.tails) drives.launch(grids[tail].blocks, kDriveThreads, {tail});
            if (i < grid.children) drives.launch_child(grids[at + 1 + i].blocks, kDriveThreads, {at + 1 + i});
        }
    }
    atomicAdd(&runs[at], 1u);
}

__global__ void drive_loop(gridfuse::Iterations<drive_args, 3, 3> iterations, const Grid* grids, unsigned* runs, unsigned* wrong) {
    gridfuse::Loop<drive_loop> drives(iterations, grids, runs, wrong);
    drives.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3, const drive_args& args) {
        drive_body(drives, blockIdx, gridDim, grids, runs, wrong, args.at);
    });
}

void check_drivers(const std::string& name, int count, int most_blocks, bool grows) {
    std::vector<Grid> grids;
    for (int driver = 0; driver < count; ++driver) {
        const bool last = driver + 1 == count;
        Grid grid{1 + driver * 5 % 3, driver % 4, (last ? 0 : 1) + driver * 7 % 3, true};
        grids.push_back(grid);
        for (int leaf = 0; leaf < grid.children + grid.tails - !last; ++leaf)
            grids.push_back(Grid{1 + (driver * 37 + leaf * 11) % most_blocks, 0, 0, false});
    }
    const std::size_t all = grids.size();
    Grid* there;
    unsigned *runs, *wrong;
    CHECK(cudaMalloc(&there, all * sizeof(Grid)));
    CHECK(cudaMalloc(&runs, (all + 1) * sizeof(unsigned)));
    CHECK(cudaMalloc(&wrong, sizeof(unsigned)));
    CHECK(cudaMemcpy(there, grids.data(), all * sizeof(Grid), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(runs, 0, (all + 1) * sizeof(unsigned)));
    CHECK(cudaMemset(wrong, 0, sizeof(unsigned)));
    const unsigned long long before = gridfuse::direct_launches();
    if (!grows) gridfuse::launch_loop<drive_loop>(grids[0].blocks, kDriveThreads, 0, 0, {0}, there, runs, wrong);
    else gridfuse::launch_growing_loop<drive_loop>(grids[0].blocks, kDriveThreads, 0, 0, {0}, there, runs, wrong);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    std::vector<unsigned> found(all + 1);
    unsigned mistakes = 0;
    CHECK(cudaMemcpy(found.data(), runs, (all + 1) * sizeof(unsigned), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&mistakes, wrong, sizeof mistakes, cudaMemcpyDeviceToHost));
    bool right = mistakes == 0 && gridfuse::direct_launches() == before;
    for (std::size_t at = 0; at < all; ++at) right = right && found[at] == static_cast<unsigned>(grids[at].blocks) * kDriveThreads;
    verdict("loop: " + name, right);
    CHECK(cudaFree(there));
    CHECK(cudaFree(runs));
    CHECK(cudaFree(wrong));
}

struct turn_args { unsigned seed; int round; };

// Every thread reads what all others have left in the round before.
__device__ __forceinline__ void turn_body(gridfuse::BlockLoop<turn_args>& turns, unsigned* values, int last, unsigned seed, int round) {
    __shared__ unsigned sum;
    if (threadIdx.x == 0) sum = seed;
    __syncthreads();
    const unsigned value = values[(threadIdx.x * 7 + 5) % blockDim.x];
    if (threadIdx.x == blockDim.x - 1 && round < last) turns.launch({seed * 3 + 1, round + 1});
    atomicAdd(&sum, value);
    __syncthreads();
    if (threadIdx.x % 5 == 3) return;
    values[threadIdx.x] = value + sum;
}

__global__ void turn(unsigned* values, int last, unsigned seed, int round) {
    gridfuse::BlockLoop<turn_args> turns({seed, round});
    while (turns.next()) {
        const turn_args args = turns.args();
        turn_body(turns, values, last, args.seed, args.round);
    }
}

void check_turns(int threads, int last) {
    std::vector<unsigned> expected(threads), next(threads), found(threads);
    for (int t = 0; t < threads; ++t) expected[t] = next[t] = t * t;
    unsigned* values;
    CHECK(cudaMalloc(&values, threads * sizeof(unsigned)));
    CHECK(cudaMemcpy(values, expected.data(), threads * sizeof(unsigned), cudaMemcpyHostToDevice));
    turn<<<1, threads>>>(values, last, 11, 0);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    unsigned seed = 11;
    for (int round = 0; round <= last; ++round, seed = seed * 3 + 1) {
        unsigned sum = seed;
        for (int t = 0; t < threads; ++t) sum += expected[(t * 7 + 5) % threads];
        for (int t = 0; t < threads; ++t) next[t] = t % 5 == 3 ? expected[t] : expected[(t * 7 + 5) % threads] + sum;
        expected = next;
    }
    CHECK(cudaMemcpy(found.data(), values, threads * sizeof(unsigned), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(values));
    verdict("loop: one block of " + std::to_string(threads) + " threads", found == expected);
}

void test_loop() {
    const auto plain = [](dim3 grid, dim3 block) {
        return [=](int) {
            Launch launch;
            launch.grid = grid;
            launch.block = block;
            return launch;
        };
    };
    check_turns(unless_small(1024, 64), unless_small(500, 7));
    check_turns(33, 20);
    check_turns(1, 5);
    check_rounds("one block", unless_small(1000, 12), plain(1, 64), Start::kFixed, Direct::kNone);
    check_rounds("one iteration", 1, plain(7, 64), Start::kFixed, Direct::kNone);
    check_rounds("a grid", unless_small(1000, 10), plain(unless_small(100, 9), 32), Start::kFixed, Direct::kNone);
    check_rounds("three dimensions", unless_small(300, 8), plain(dim3(3, 2, 2), dim3(16, 4)), Start::kFixed, Direct::kNone);
    check_rounds("large blocks", unless_small(200, 3), plain(unless_small(300, 2), 1024), Start::kFixed, Direct::kNone);
    check_rounds("very many blocks", unless_small(20, 3), plain(unless_small(100000, 300), 32), Start::kFixed, Direct::kNone);
    const auto sizes = [&](int id) { return plain(dim3(1 + id * 37 % unless_small(900, 20), 1 + id % 2), 64)(id); };
    check_rounds("grids of several sizes", unless_small(500, 9), sizes, Start::kGrowing, Direct::kNone);
    check_rounds("grids of several sizes, with few blocks", unless_small(500, 9), sizes, Start::kFixed, Direct::kNone);
    check_rounds("shared memory", unless_small(200, 9), [&](int id) {
        Launch launch = plain(5, 64)(id);
        launch.shared = id % 3 == 1 ? 0 : 64 * sizeof(unsigned);
        return launch;
    }, Start::kFixed, Direct::kNone);
    check_rounds("more shared memory", unless_small(20, 9), [&](int id) {
        Launch launch = plain(5, 64)(id);
        launch.shared = id >= 4 ? 128 * sizeof(unsigned) : 64 * sizeof(unsigned);
        return launch;
    }, Start::kFixed, Direct::kSome);
    check_rounds("other blocks", unless_small(20, 9), [&](int id) { return plain(5, id >= 3 ? 48 : 64)(id); }, Start::kFixed, Direct::kSome);
    check_rounds("without memory", unless_small(20, 9), plain(6, 64), Start::kAlone, Direct::kSome);
    check_drivers("drivers", unless_small(1000, 9), unless_small(900, 7), true);
    check_drivers("drivers, with few blocks", unless_small(300, 9), unless_small(900, 7), false);
}

template <class G>
void run_groups(const char* granularity, bool quick, const std::string& only) {
    std::printf("%s\n", granularity);
    const std::pair<const char*, void (*)()> groups[] = {
        {"control_flow", test_control_flow<G>}, {"shapes", test_shapes<G>}, {"kernels", test_kernels<G>},
        {"shared", test_shared<G>},             {"host", test_host<G>},     {"counts", test_counts<G>},
        {"huge", test_huge<G>},                 {"refused", test_refused<G>}, {"starved", test_starved<G>},
        {"overflow", test_overflow<G>},         {"nested", test_nested<G>}};
    for (auto& group : groups)
        if (only.empty() ? !(quick && (group.second == test_huge<G> || group.second == test_refused<G>)) : only == group.first)
            group.second();
}

int main(int argc, char** argv) {
    bool quick = false;
    std::string only;
    for (int i = 1; i < argc; ++i) {
        if (std::string(argv[i]) == "--quick") quick = true;
        else if (std::string(argv[i]) == "--small") quick = small_tests = true;
        else only = argv[i];
    }
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 32768));
    CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 << 20));
    if (only.empty() || only == "threshold") test_threshold();
    if (only.empty() || only == "serial") test_serial();
    if (only.empty() || only == "together") test_together();
    if (only.empty() || only == "recursion") test_recursion();
    if (only.empty() || only == "loop") test_loop();
    run_groups<gridfuse::PerWarp>("per warp", quick, only);
    run_groups<gridfuse::PerBlock>("per block", quick, only);
    run_groups<gridfuse::PerMultiBlock<2>>("per 2 blocks", quick, only);
    run_groups<gridfuse::PerGrid>("per grid", quick, only);
    run_groups<gridfuse::PerGridFromHost>("per grid, from the host", quick, only);
    if (only.empty() || only == "from_host") test_from_host();
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
