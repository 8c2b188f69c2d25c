// Test of the chains of gridfuse.cuh on a GPU.
//
//   nvcc -std=c++17 -rdc=true -I codeactions/runtime tests/gpu/chain_test.cu -lcudadevrt -o chain_test
//   ./chain_test [--small]
//
// Chains of all lengths (a ring of slots is written over many times), with any number of blocks, also without memory. A link leaves
// behind what it got and what it saw of the links before. --small is for the emulator. The last line is "N passed, N failed".

#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

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

// A link's arguments in three words and a part of one.
struct Args {
    unsigned number, hash, length;
    unsigned char tail;
};

__host__ __device__ inline unsigned mix(unsigned hash, unsigned value) { return (hash ^ value) * 0x9e3779b1u + (hash >> 15); }

// What the last thread of a link has written before the launch is seen by the next one; plain memory.
__device__ void run_link(gridfuse::Chain<Args>& chain, Args args, unsigned* out, unsigned* left) {
    const unsigned last = blockDim.x - 1;
    unsigned seen = args.number == 0 ? 7 : left[args.number - 1];
    __syncthreads();
    if (threadIdx.x == last) left[args.number] = seen + 3;
    __syncthreads();
    if (threadIdx.x == 0 && args.number + 1 < args.length)
        chain.launch({args.number + 1, mix(args.hash, seen), args.length, static_cast<unsigned char>(args.tail + 1)});
    if (threadIdx.x == last) out[args.number] = mix(args.hash, args.tail);
}

__global__ void waits(unsigned* out, unsigned* left, Args first, gridfuse::ChainMemory memory) {
    gridfuse::Chain<Args> chain(memory, first);
    while (chain.next()) run_link(chain, chain.args(), out, left);
}

__global__ void overlaps(unsigned* out, unsigned length, unsigned hash, gridfuse::ChainMemory memory) {
    __shared__ unsigned shared;
    gridfuse::Chain<unsigned> chain(memory, hash);
    while (chain.next([&](unsigned long long link) { return link + 1 < length; })) {
        const unsigned number = unsigned(chain.number());
        if (threadIdx.x == 0) shared = number;
        const unsigned before = chain.wait();
        if (threadIdx.x == 0 && number + 1 < length) chain.launch(mix(before, shared));
        if (threadIdx.x == blockDim.x - 1) out[number] = before + shared;
    }
}

// Each link writes before it waits, and reads then what some of those before have written; and writes over what another has read.
__global__ void at_once(unsigned* out, unsigned* left, unsigned length, unsigned hash, gridfuse::ChainMemory memory) {
    gridfuse::Chain<unsigned> chain(memory, hash);
    while (chain.next([&](unsigned long long link) { return link + 1 < length; })) {
        const unsigned number = unsigned(chain.number()), last = blockDim.x - 1;
        const unsigned own = out[number];
        if (threadIdx.x == last) left[number] = 3 * number + own;
        const unsigned before = chain.wait_at_once();
        if (threadIdx.x == 0 && number + 1 < length) chain.launch_at_once(mix(before, number));
        unsigned sum = before;
        for (unsigned back = 1; back <= number && back < 5000; back = 3 * back + 1) sum += left[number - back] * back;
        if (threadIdx.x == last) out[number == 0 ? length : number - 1] = sum;
    }
}

template <class T, class Operation>
__global__ void runs(T* out, const T* own, unsigned length, T first, gridfuse::ChainMemory memory) {
    gridfuse::DecoupledLookback<T, Operation> chain(memory, first);
    while (chain.next([&](unsigned long long link) { return link + 1 < length; })) {
        const unsigned number = unsigned(chain.number());
        const T value = threadIdx.x == 0 ? own[number] : T(number);   // the first thread's counts
        const T before = chain.before(value);
        if (threadIdx.x == blockDim.x - 1) out[number] = before;
    }
}

// A link takes what a later one writes over; nothing is passed on.
__global__ void shifts(unsigned* data, unsigned length, gridfuse::ChainMemory memory) {
    gridfuse::DecoupledLookback<> chain(memory);
    while (chain.next([&](unsigned long long link) { return link + 1 < length; })) {
        const unsigned at = (length - 1 - unsigned(chain.number())) * blockDim.x + threadIdx.x;
        const unsigned value = data[at];
        chain.before();
        data[at + blockDim.x / 2 + 1] = value + 1;
    }
}

gridfuse::ChainMemory memory_or_none(bool with, const gridfuse::ChainOwner& owner) {
    return with ? static_cast<gridfuse::ChainMemory>(owner) : gridfuse::ChainMemory();
}

template <class T>
struct Device {
    T* memory = nullptr;
    explicit Device(size_t count) { CHECK(cudaMalloc(&memory, count * sizeof(T))); }
    ~Device() { CHECK(cudaFree(memory)); }
    std::vector<T> read(size_t count) const {
        std::vector<T> values(count);
        CHECK(cudaMemcpy(values.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost));
        return values;
    }
    void write(const std::vector<T>& values) {
        CHECK(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    }
};

template <class T, class Operation, class Combine>
void test_running(const std::string& name, unsigned length, unsigned blocks, unsigned threads, bool with, T first, Combine combine) {
    Device<T> out(length), own(length);
    std::vector<T> values(length), expected(length);
    T running = first;
    for (unsigned i = 0; i < length; ++i) {
        values[i] = T(int(mix(i, 5) % 2001) - 1000);
        if (std::is_integral<T>::value && sizeof(T) == 8) values[i] *= T(0x10000001);   // in both halves
        expected[i] = running;
        running = combine(running, values[i]);
    }
    own.write(values);
    runs<T, Operation><<<blocks, threads>>>(out.memory, own.memory, length, first, memory_or_none(with, gridfuse::chain_for()));
    CHECK(cudaDeviceSynchronize());
    verdict(name, out.read(length) == expected);
}

void test(unsigned length, unsigned blocks, unsigned threads, bool with) {
    const std::string name = std::to_string(length) + " links, " + std::to_string(blocks) + " blocks of " + std::to_string(threads) +
                             (with ? "" : ", no memory");
    {
        Device<unsigned> out(length), left(length);
        const Args first = {0, 11, length, 200};
        waits<<<blocks, threads>>>(out.memory, left.memory, first, memory_or_none(with, gridfuse::chain_for()));
        CHECK(cudaDeviceSynchronize());
        std::vector<unsigned> expected(length);
        unsigned hash = first.hash;
        for (unsigned i = 0; i < length; ++i) {
            expected[i] = mix(hash, (200 + i) & 255);
            hash = mix(hash, 7 + 3 * i);
        }
        verdict("waits: " + name, out.read(length) == expected);
    }
    {
        Device<unsigned> out(length);
        overlaps<<<blocks, threads>>>(out.memory, length, 11, memory_or_none(with, gridfuse::chain_for()));
        CHECK(cudaDeviceSynchronize());
        std::vector<unsigned> expected(length);
        unsigned hash = 11;
        for (unsigned i = 0; i < length; ++i) {
            expected[i] = hash + i;
            hash = mix(hash, i);
        }
        verdict("overlaps: " + name, out.read(length) == expected);
    }
    {
        Device<unsigned> out(length + 1), left(length);
        std::vector<unsigned> own(length + 1), expected(length + 1);
        for (unsigned i = 0; i <= length; ++i) own[i] = 5 * i + 2;
        out.write(own);
        at_once<<<blocks, threads>>>(out.memory, left.memory, length, 11, memory_or_none(with, gridfuse::chain_for()));
        CHECK(cudaDeviceSynchronize());
        expected = own;
        unsigned hash = 11;
        for (unsigned i = 0; i < length; ++i) {
            unsigned sum = hash;
            for (unsigned back = 1; back <= i && back < 5000; back = 3 * back + 1) sum += (3 * (i - back) + own[i - back]) * back;
            expected[i == 0 ? length : i - 1] = sum;
            hash = mix(hash, i);
        }
        verdict("at once: " + name, out.read(length + 1) == expected);
    }
    test_running<int, gridfuse::plus>("sum: " + name, length, blocks, threads, with, -5, [](int a, int b) { return a + b; });
    test_running<float, gridfuse::maximum>("greatest: " + name, length, blocks, threads, with, -3000.0f,
                                            [](float a, float b) { return a < b ? b : a; });
    test_running<long long, gridfuse::plus>("sum of 64 bits: " + name, length, blocks, threads, with, -5ll << 40,
                                           [](long long a, long long b) { return a + b; });
    test_running<unsigned long long, gridfuse::maximum>(
        "greatest of 64 bits: " + name, length, blocks, threads, with, 3ull,
        [](unsigned long long a, unsigned long long b) { return a < b ? b : a; });
    // Sums of small integers, which no order rounds.
    test_running<double, gridfuse::plus>("sum of doubles: " + name, length, blocks, threads, with, 0.5, [](double a, double b) { return a + b; });
    test_running<double, gridfuse::minimum>("least double: " + name, length, blocks, threads, with, 3000.0,
                                          [](double a, double b) { return b < a ? b : a; });
    test_running<int, gridfuse::minimum>("least: " + name, length, blocks, threads, with, 3000, [](int a, int b) { return b < a ? b : a; });
    {
        const size_t count = size_t(length) * threads, moved = threads / 2 + 1;
        Device<unsigned> data(count + moved);
        std::vector<unsigned> values(count + moved);
        for (size_t i = 0; i < values.size(); ++i) values[i] = unsigned(i) * 3;
        data.write(values);
        shifts<<<blocks, threads>>>(data.memory, length, memory_or_none(with, gridfuse::chain_for()));
        CHECK(cudaDeviceSynchronize());
        for (size_t i = count; i-- > 0;) values[i + moved] = values[i] + 1;
        verdict("shifts: " + name, data.read(count + moved) == values);
    }
}

int main(int argc, char** argv) {
    const bool small = argc > 1 && std::string(argv[1]) == "--small";
    for (unsigned length : {1u, 2u, 33u, 70u}) {
        for (unsigned threads : {1u, 20u, 64u, 100u}) {
            for (unsigned blocks : {1u, 2u, 40u}) test(length, blocks, threads, true);
        }
        test(length, 3, 64, false);
    }
    // Several times round the ring, and many links more than blocks can be resident.
    test(small ? 9000 : 200001, small ? 3 : 5000, small ? 1 : 32, true);
    if (!small) {
        test(100003, gridfuse::chain_blocks<overlaps>(128), 128, true);
        test(20011, 1, 33, true);
        for (unsigned i = 0; i < 50; ++i) test(24 + i, 264, 256, true);   // the memory is as it was at first
    }
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
