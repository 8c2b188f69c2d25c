// Test of what gridfuse.cuh runs behind a parent in its stream, on a GPU.
//
//   nvcc -std=c++17 -rdc=true -I codeactions/runtime tests/gpu/stream_test.cu -lcudadevrt -o stream_test
//   ./stream_test [--small] [--stop block|launches|memory]
//
// Every thread of a child adds to a place of its own what it is: each has to run once. --small is for the emulator. With --stop the
// parent does what can't be run, and has to be stopped for it: the device is of no use then, so that is a run by itself. The last line
// is "N passed, N failed".

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

// Soon, so that few launches test it.
#define GRIDFUSE_TELL_AFTER 8
#include "gridfuse.cuh"

#define CHECK(call)                                                                                      \
    do {                                                                                                 \
        cudaError_t error_ = (call);                                                                     \
        if (error_ != cudaSuccess) {                                                                     \
            std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));       \
            std::exit(2);                                                                                \
        }                                                                                                \
    } while (0)

int passed = 0, failed = 0;

void verdict(const std::string& name, bool right) {
    ++(right ? passed : failed);
    if (!right) std::printf("FAILED: %s\n", name.c_str());
}

// One launch. Refused: CUDA would not do it.
struct Launch {
    dim3 grid;
    int id = 0;
    long long offset = 0;   // of its first thread's place
    bool refused = false;
    int count = 0;          // of threads that do something, where the child looks at that
};

// What is passed for each launch; of odd size and alignment.
struct Args {
    long long offset;
    int id;
    unsigned char tail;
};
struct alignas(32) Wide {
    double filler[4];
    long long offset;
    int id;
};

// A child that does nothing in threads from a number on.
struct Counted {
    long long offset;
    int id;
    int count;
    __device__ int threads() const { return count; }
};

struct Work {
    const Launch* launches;
    const int* begin;   // of each thread of the parent
    int threads;
    unsigned* written;   // by the parent, before it launches
    unsigned* out;       // as the children get it
    unsigned salt;
};

__host__ __device__ inline unsigned mix(unsigned hash, unsigned value) { return (hash ^ value) * 0x9e3779b1u + (hash >> 15); }
__host__ __device__ inline unsigned result(uint3 thread, uint3 block, dim3 grid, dim3 threads, int id, unsigned salt) {
    unsigned hash = mix(salt, id);
    for (unsigned value : {thread.x, thread.y, thread.z, block.x, block.y, block.z, grid.x, grid.y, grid.z, threads.x, threads.y, threads.z})
        hash = mix(hash, value);
    return hash | 1;
}
__host__ __device__ inline long long place(uint3 thread, uint3 block, dim3 grid, dim3 threads) {
    const long long in_grid = block.x + 1ll * grid.x * (block.y + 1ll * grid.y * block.z);
    return in_grid * (threads.x * threads.y * threads.z) + thread.x + threads.x * (thread.y + threads.y * thread.z);
}

template <class A>
__device__ void child_thread(uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim, const A& args, unsigned* out,
                             const unsigned* written, unsigned salt) {
    if constexpr (std::is_same<A, Counted>::value) {
        const int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= args.count) return;
    }
    const bool seen = written[args.id] == 77u * args.id;
    atomicAdd(&out[args.offset + place(threadIdx, blockIdx, gridDim, blockDim)],
              seen ? result(threadIdx, blockIdx, gridDim, blockDim, args.id, salt) : 5u);
}

template <class A, unsigned X, unsigned Y, unsigned Z>
__global__ void child(gridfuse::StreamBatch<A, X, Y, Z> batch, unsigned* out, const unsigned* written, unsigned salt) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const A& args) {
        child_thread(threadIdx, blockIdx, gridDim, blockDim, args, out, written, salt);
    });
}

// Of the children's threads those that have something to do.
template <class A, unsigned X>
__global__ void child_of_threads(gridfuse::StreamBatch<A, X> batch, unsigned* out, const unsigned* written, unsigned salt) {
    batch.for_each_thread([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim, const A& args) {
        child_thread(threadIdx, blockIdx, gridDim, blockDim, args, out, written, salt);
    });
}

// The same with launch bounds, so that it can't have the blocks that it would have otherwise.
template <class A, unsigned X>
__global__ void __launch_bounds__(X) bound_child_of_threads(gridfuse::StreamBatch<A, X> batch, unsigned* out, const unsigned* written,
                                                            unsigned salt) {
    batch.for_each_thread([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim, const A& args) {
        child_thread(threadIdx, blockIdx, gridDim, blockDim, args, out, written, salt);
    });
}

// With shared memory that every block of a child uses anew, and threads that return early.
template <class A, unsigned X, unsigned Y, unsigned Z>
__global__ void shared_child(gridfuse::StreamBatch<A, X, Y, Z> batch, unsigned* out, const unsigned* written, unsigned salt) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const A& args) {
        __shared__ long long offset;
        __shared__ int id;
        if (threadIdx.x == X - 1) {
            offset = args.offset;
            id = args.id;
        }
        __syncthreads();
        A mine = args;
        mine.offset = offset;
        mine.id = id;
        child_thread(threadIdx, blockIdx, gridDim, blockDim, mine, out, written, salt);
        __syncthreads();
    });
}

// One thread of X writes 1 for its block: blocks much larger in number than threads that check them.
__global__ void count_child(gridfuse::StreamBatch<Args, 32> batch, unsigned* out) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3, const Args& args) {
        if (threadIdx.x == 0) atomicAdd(&out[args.offset + blockIdx.x + 1ll * gridDim.x * blockIdx.y], 1u);
    });
}

template <class A>
__device__ A args_of(const Launch& launch) {
    A args = {};
    args.offset = launch.offset;
    args.id = launch.id;
    if constexpr (std::is_same<A, Counted>::value) args.count = launch.count;
    return args;
}

template <bool MayBeFull, class Aggregator>
__device__ void launch_one(Aggregator& children, const Launch& launch, dim3 block, const Work& work) {
    using A = typename Aggregator::Args;
    work.written[launch.id] = 77u * launch.id;
    if constexpr (MayBeFull) {
        children.launch(launch.grid, block, args_of<A>(launch), [&](dim3 grid, dim3 block, const A& args) {
            gridfuse::for_each_thread(grid, block, [&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim) {
                child_thread(threadIdx, blockIdx, gridDim, blockDim, args, work.out, work.written, work.salt);
            });
        });
    } else {
        children.launch(launch.grid, block, args_of<A>(launch));
    }
}

// The children. By types, as nvcc finds no kernel that has an instance of a template of kernels for an argument ("invalid device function").
template <class A, unsigned X, unsigned Y, unsigned Z>
struct Plain {
    static constexpr auto kernel = child<A, X, Y, Z>;
    static constexpr unsigned x = X, y = Y, z = Z;
    static constexpr bool counted = false, may_be_full = false;
};
template <class A, unsigned X, unsigned Y, unsigned Z>
struct Shared {
    static constexpr auto kernel = shared_child<A, X, Y, Z>;
    static constexpr unsigned x = X, y = Y, z = Z;
    static constexpr bool counted = false, may_be_full = false;
};
template <unsigned X>
struct Threads {
    static constexpr auto kernel = child_of_threads<Counted, X>;
    static constexpr unsigned x = X, y = 1, z = 1;
    static constexpr bool counted = true, may_be_full = false;
};
template <unsigned X>
struct BoundThreads {
    static constexpr auto kernel = bound_child_of_threads<Counted, X>;
    static constexpr unsigned x = X, y = 1, z = 1;
    static constexpr bool counted = true, may_be_full = false;
};
// What finds no room runs in the launching thread.
template <class Child>
struct Limited : Child {
    static constexpr bool may_be_full = true;
};

// Threads leave early, loop, and launch in a branch and in a function.
template <class Child>
__global__ void parent(Work work, gridfuse::StreamArena arena) {
    gridfuse::Aggregator<gridfuse::PerGridInStream, Child::kernel> children(arena);
    const dim3 threads(Child::x, Child::y, Child::z);
    const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const int at = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
    if (at >= work.threads) return;
    for (int i = work.begin[at]; i < work.begin[at + 1]; ++i) {
        const Launch& launch = work.launches[i];
        if (launch.id % 3 == 0) {
            launch_one<Child::may_be_full>(children, launch, threads, work);
        } else if constexpr (Child::may_be_full) {
            launch_one<true>(children, launch, threads, work);
        } else {
            work.written[launch.id] = 77u * launch.id;
            children.launch(launch.grid, threads, args_of<typename decltype(children)::Args>(launch));
        }
    }
}

struct Test {
    dim3 grid, block;
    std::vector<std::vector<Launch>> of_thread;
    int rounds = 1;
    bool captured = false;
};

struct Random {
    unsigned state;
    unsigned below(unsigned n) { return (state = mix(state, 0x51ed270b)) % n; }
};

template <class T>
T* upload(const std::vector<T>& values) {
    T* there = nullptr;
    CHECK(cudaMalloc(&there, (values.size() + 1) * sizeof(T)));
    CHECK(cudaMemcpy(there, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return there;
}

template <class Child, unsigned Launches>
bool run(const Test& test, cudaStream_t stream) {
    std::vector<Launch> launches;
    std::vector<int> begin{0};
    long long results = 0;
    constexpr unsigned X = Child::x, Y = Child::y, Z = Child::z;
    const dim3 threads(X, Y, Z);
    for (const auto& of_thread : test.of_thread) {
        for (Launch launch : of_thread) {
            launch.id = int(launches.size()) + 1;
            launch.offset = results;
            if (!launch.refused) results += 1ll * launch.grid.x * launch.grid.y * launch.grid.z * X * Y * Z;
            launches.push_back(launch);
        }
        begin.push_back(int(launches.size()));
    }
    const unsigned salt = 3 + unsigned(results);
    std::vector<unsigned> expected(results + 1, 0), got(results + 1, 0);
    for (const Launch& launch : launches) {
        if (launch.refused) continue;
        uint3 block = {0, 0, 0}, thread = {0, 0, 0};
        for (block.z = 0; block.z < launch.grid.z; ++block.z)
            for (block.y = 0; block.y < launch.grid.y; ++block.y)
                for (block.x = 0; block.x < launch.grid.x; ++block.x)
                    for (thread.z = 0; thread.z < Z; ++thread.z)
                        for (thread.y = 0; thread.y < Y; ++thread.y)
                            for (thread.x = 0; thread.x < X; ++thread.x)
                                if (!Child::counted || int(block.x * X + thread.x) < launch.count) expected[launch.offset + place(thread, block, launch.grid, threads)] +=
                                    test.rounds * result(thread, block, launch.grid, threads, launch.id, salt);
    }
    Work work;
    Launch* launches_there = upload(launches);
    int* begin_there = upload(begin);
    work.launches = launches_there;
    work.begin = begin_there;
    work.threads = int(test.of_thread.size());
    unsigned* out;
    CHECK(cudaMalloc(&work.written, (launches.size() + 2) * sizeof(unsigned)));
    CHECK(cudaMalloc(&out, (results + 1) * sizeof(unsigned)));
    CHECK(cudaMemsetAsync(out, 0, (results + 1) * sizeof(unsigned), stream));
    work.out = out;
    work.salt = salt;
    const auto launch = [&] {
        CHECK(cudaMemsetAsync(work.written, 0, (launches.size() + 2) * sizeof(unsigned), stream));
        parent<Child><<<test.grid, test.block, 0, stream>>>(
            work, gridfuse::followed_by<Child::kernel, Launches>(test.grid, test.block, stream, out, work.written, salt));
        CHECK(cudaGetLastError());
    };
    if (test.captured) {
        cudaGraph_t graph;
        cudaGraphExec_t executable;
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        launch();
        CHECK(cudaStreamEndCapture(stream, &graph));
        CHECK(cudaGraphInstantiate(&executable, graph, 0));
        for (int round = 0; round < test.rounds; ++round) CHECK(cudaGraphLaunch(executable, stream));
        CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaGraphExecDestroy(executable));
        CHECK(cudaGraphDestroy(graph));
    } else {
        for (int round = 0; round < test.rounds; ++round) launch();
    }
    CHECK(cudaMemcpyAsync(got.data(), out, (results + 1) * sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (void* memory : {static_cast<void*>(launches_there), static_cast<void*>(begin_there), static_cast<void*>(work.written),
                         static_cast<void*>(out)})
        CHECK(cudaFree(memory));
    return got == expected;
}

// Some threads of `threads` launch, up to `most` times each; grids of up to `blocks` blocks.
Test random_test(int threads, int most, unsigned blocks, unsigned seed, bool flat = true) {
    Random random{seed};
    Test test;
    test.block = dim3(64);
    test.grid = dim3((threads + 63) / 64);
    test.of_thread.resize(threads);
    for (auto& of_thread : test.of_thread) {
        const int count = random.below(3) == 0 ? 0 : int(random.below(most + 1));
        for (int i = 0; i < count; ++i) {
            Launch launch;
            // Of some grids no thread does anything, of some all do.
            launch.count = int(random.below(2 + blocks * 64)) - int(random.below(3) == 0) * 40;
            launch.grid = flat ? dim3(1 + random.below(blocks)) : dim3(1 + random.below(blocks), 1 + random.below(3), 1 + random.below(4));
            of_thread.push_back(launch);
        }
    }
    return test;
}

void all(bool small, cudaStream_t stream) {
    // As many launches as this, of one block or of several.
    for (int count : {0, 1, 2, 31, 32, 33, 63, 64, 65, 1000, 1023, 1024, 1025, 1056, 1057, 2100}) {
        if (small && count > 100) continue;
        for (unsigned blocks : {1u, 5u}) {
            Test test;
            test.block = dim3(96);
            test.grid = dim3((count + 95) / 96 + 1);
            Random random{unsigned(count) * 2 + blocks};
            for (int i = 0; i < count; ++i) {
                Launch launch;
                launch.grid = dim3(1 + random.below(blocks));
                test.of_thread.push_back({launch});
            }
            verdict(std::to_string(count) + " launches of up to " + std::to_string(blocks) + " blocks",
                    run<Plain<Args, 32, 1, 1>, 1>(test, stream));
        }
    }
    const int threads = small ? 100 : 3000;
    verdict("up to four launches a thread", run<Plain<Args, 32, 1, 1>, 4>(random_test(threads, 4, 7, 11), stream));
    verdict("blocks and grids of three dimensions", run<Plain<Args, 4, 3, 2>, 2>(random_test(threads / 2, 2, 5, 12, false), stream));
    verdict("blocks that are no whole warps", run<Plain<Args, 33, 1, 1>, 2>(random_test(threads, 2, 5, 13), stream));
    verdict("blocks of one thread", run<Plain<Args, 1, 1, 1>, 2>(random_test(threads, 2, 40, 14), stream));
    verdict("large blocks", run<Plain<Args, 256, 2, 2>, 1>(random_test(small ? 20 : 300, 1, 3, 15), stream));
    verdict("wide arguments", run<Plain<Wide, 32, 1, 1>, 3>(random_test(threads, 3, 4, 16), stream));
    verdict("shared memory", run<Shared<Args, 64, 1, 1>, 2>(random_test(threads, 2, 9, 17), stream));
    for (unsigned seed : {40, 41, 42}) {
        verdict("threads", run<Threads<128>, 2>(random_test(threads, 2, 5, seed), stream));
        verdict("threads of blocks of one warp", run<Threads<32>, 3>(random_test(threads, 3, 1 + seed % 3, seed), stream));
        verdict("threads of large blocks", run<Threads<1024>, 1>(random_test(threads / 2, 1, 2, seed), stream));
        verdict("threads of a kernel with launch bounds", run<BoundThreads<64>, 2>(random_test(threads, 2, 5, seed), stream));
        // Parents of many blocks write down what they launch in several places.
        Test many = random_test(small ? 300 : 40000, 2, seed % 2 == 0 ? 2 : 9, seed);
        many.block = dim3(small ? 2 : 16);
        many.grid = dim3(small ? 150 : 2500);
        verdict("threads of launches by many blocks", run<Threads<64>, 2>(many, stream));
    }
    // With too little room, and with room for a number of launches that isn't known.
    const auto alone = [&](const char* name, bool some, auto runs) {
        CHECK(cudaStreamSynchronize(stream));
        const auto before = gridfuse::direct_launches();
        verdict(name, runs());
        verdict(std::string(name) + ": in the launching thread", (gridfuse::direct_launches() > before) == some);
    };
    alone("more launches than there is room for", true, [&] { return run<Limited<Plain<Args, 32, 1, 1>>, 1>(random_test(threads, 6, 5, 43), stream); });
    alone("more threads than there is room for", true, [&] { return run<Limited<Threads<128>>, 1>(random_test(threads, 5, 4, 44), stream); });
    alone("as many launches as there is room for", false, [&] { return run<Limited<Plain<Args, 32, 1, 1>>, 6>(random_test(threads, 6, 5, 45), stream); });
    alone("an unknown number of launches", false, [&] { return run<Limited<Threads<64>>, gridfuse::kNotKnown>(random_test(threads, 9, 3, 46), stream); });
    Test exact = random_test(64, 1, 3, 47);   // as many launches as places, all of one thread
    exact.of_thread.assign(64, {});
    exact.of_thread[5].assign(64, Launch());
    for (auto& launch : exact.of_thread[5]) launch.grid = dim3(3), launch.count = 70;
    alone("all places taken", false, [&] { return run<Limited<Threads<32>>, 1>(exact, stream); });
    exact.of_thread[5].push_back(exact.of_thread[5][0]);
    alone("one launch too many", true, [&] { return run<Limited<Threads<32>>, 1>(exact, stream); });
    Test none = random_test(500, 0, 1, 18);
    verdict("no launches", run<Plain<Args, 32, 1, 1>, 1>(none, stream));
    verdict("no threads", run<Threads<32>, 1>(none, stream));
    Test solid = random_test(threads, 2, 6, 19);
    solid.grid = dim3(2, 2, (solid.grid.x + 3) / 4);
    solid.block = dim3(8, 4, 2);
    verdict("a parent of three dimensions", run<Plain<Args, 32, 1, 1>, 2>(solid, stream));
    Test one = random_test(1, 1, 1, 20);
    one.of_thread = {{Launch()}};
    one.of_thread[0][0].grid = dim3(small ? 700 : 300000);
    verdict("one launch of many blocks", run<Plain<Args, 32, 1, 1>, 1>(one, stream));
    one.of_thread.assign(40, one.of_thread[0]);
    for (auto& of_thread : one.of_thread) of_thread[0].grid = dim3(small ? 9 : (1 << 15) + 9);
    verdict("launches of many blocks together", run<Plain<Args, 1, 1, 1>, 1>(one, stream));

    // Child grids of very different sizes, some of which begin and end within a tile, and some of which fill many.
    Test skewed = random_test(small ? 70 : 5000, 1, 1, 24);
    Random sizes{25};
    for (auto& of_thread : skewed.of_thread)
        for (Launch& launch : of_thread) {
            const bool large = sizes.below(small ? 30 : 500) == 0;
            launch.grid = dim3(large ? (small ? 40 : 2000) : 1);
            launch.count = large ? int(launch.grid.x) * 128 - int(sizes.below(100)) : 1 + int(sizes.below(4));
        }
    verdict("threads of child grids of very different sizes", run<Threads<128>, 1>(skewed, stream));

    // Grids that CUDA refuses, among others.
    Test refused = random_test(threads, 3, 4, 21);
    Random random{22};
    for (auto& of_thread : refused.of_thread)
        for (Launch& launch : of_thread) {
            const unsigned kind = random.below(9);
            if (kind > 3) continue;
            launch.refused = true;
            launch.grid = kind == 0 ? dim3(0) : kind == 1 ? dim3(1, 0) : kind == 2 ? dim3(1, 65536) : dim3(0x80000000u);
        }
    verdict("grids that CUDA refuses", run<Plain<Args, 32, 1, 1>, 3>(refused, stream));

    // One after the other in the same memory: of different sizes, with and without launches.
    bool right = true;
    for (int round = 0; round < (small ? 6 : 60); ++round) {
        Test test = random_test(1 + round * 37 % threads, round % 3, 1 + round % 9, 30 + round);
        test.rounds = 1 + round % 4;
        if (round % 3 == 1) {   // many small blocks
            test.block = dim3(1);
            test.grid = dim3(unsigned(test.of_thread.size()) + 64);
        }
        right = right && run<Threads<64>, 2>(test, stream);
        right = right && run<Plain<Args, 32, 1, 1>, 2>(test, stream);
        right = right && run<Plain<Wide, 32, 1, 1>, 2>(test, stream);
    }
    verdict("turns", right);
    Test graph = random_test(threads, 2, 5, 23);
    graph.captured = true;
    graph.rounds = 3;
    verdict("a graph that is launched three times", run<Plain<Args, 32, 1, 1>, 2>(graph, stream));
    verdict("a graph of threads that is launched three times", run<Threads<64>, 2>(graph, stream));
}

__global__ void stopping_parent(int what, gridfuse::StreamArena arena) {
    gridfuse::Aggregator<gridfuse::PerGridInStream, count_child> children(arena);
    children.launch(1, what == 0 ? 64 : 32, {0, 0, 0});
    if (what == 1) children.launch(1, 32, {0, 0, 0});
}

// The parent has to be stopped.
int stop(const std::string& how) {
    unsigned* out;
    CHECK(cudaMalloc(&out, sizeof(unsigned)));
    if (how == "memory")
        stopping_parent<<<1, 32>>>(2, gridfuse::StreamArena());
    else
        stopping_parent<<<1, 32>>>(how == "block" ? 0 : 1, gridfuse::followed_by<count_child>(1, 32, 0, out));
    verdict("stopped: " + how, cudaDeviceSynchronize() != cudaSuccess);
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
    bool small = false;
    for (int i = 1; i < argc; ++i) {
        const std::string flag = argv[i];
        if (flag == "--small") small = true;
        else if (flag == "--stop" && i + 1 < argc) return stop(argv[i + 1]);
    }
    cudaStream_t created;
    CHECK(cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking));
    all(small, created);
    // Other streams: memory isn't shared with them.
    Test first = random_test(small ? 100 : 3000, 2, 6, 40), second = random_test(small ? 70 : 2000, 2, 9, 41);
    first.rounds = second.rounds = 4;
    bool right = true;
    for (cudaStream_t stream : {cudaStream_t(0), cudaStreamLegacy, cudaStreamPerThread, created})
        right = right && run<Plain<Args, 32, 1, 1>, 2>(first, stream) && run<Plain<Args, 32, 1, 1>, 2>(second, stream);
    verdict("streams", right);
    CHECK(cudaStreamDestroy(created));
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
