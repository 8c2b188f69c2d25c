// Quicksort: a block partitions its part of the keys around a pivot, and launches its kernel again for the smaller ones and for
// the larger ones. A part that is small enough it sorts itself. serial: one block does all parts, one after the other.
//
//   qs [--input skewed|flat] [--variant serial|naive] [--keys N] [--repeat N]
//       [--threads N] [--pending N] [--label TEXT]
//
// Makes its own keys, compares with the CPU and prints one line of JSON.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                      \
    do {                                                                                                 \
        cudaError_t error_ = (call);                                                                     \
        if (error_ != cudaSuccess) {                                                                     \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_)); \
            std::exit(2);                                                                                \
        }                                                                                                \
    } while (0)

constexpr int kSmall = 256;   // so many keys are sorted by a block
constexpr int kMostParts = 64;

// ---------------------------------------------------------------------------------------- kernels

__device__ inline int median(int a, int b, int c) { return max(min(a, b), min(max(a, b), c)); }

// Sorts a few keys: each goes where as many smaller ones are.
__device__ void sort_small(const int* from, int* out, int count, int threads) {
    __shared__ int keys[kSmall];
    for (int i = threadIdx.x; i < count; i += threads) keys[i] = from[i];
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += threads) {
        int key = keys[i], rank = 0;
        for (int k = 0; k < count; ++k) rank += keys[k] < key || (keys[k] == key && k < i);
        out[rank] = key;
    }
}

// Sorts keys from `from` to `out`: in front of the pivot come those that are less, behind it the greater ones, which are moved
// to `to` first.
__global__ void sort_part(int* from, int* to, int* out, int begin, int count) {
    __shared__ int less, greater;
    if (count <= kSmall) {
        sort_small(from + begin, out + begin, count, blockDim.x);
        return;
    }
    int pivot = median(from[begin], from[begin + count / 2], from[begin + count - 1]);
    if (threadIdx.x == 0) less = greater = 0;
    __syncthreads();
    for (int i = begin + threadIdx.x; i < begin + count; i += blockDim.x) {
        int key = from[i];
        if (key < pivot) to[begin + atomicAdd(&less, 1)] = key;
        if (key > pivot) to[begin + count - 1 - atomicAdd(&greater, 1)] = key;
    }
    __syncthreads();
    for (int i = begin + less + threadIdx.x; i < begin + count - greater; i += blockDim.x) out[i] = pivot;
    if (threadIdx.x == 0) {
        if (less > 0) sort_part<<<1, blockDim.x>>>(to, from, out, begin, less);
        if (greater > 0) sort_part<<<1, blockDim.x>>>(to, from, out, begin + count - greater, greater);
    }
}

// All in one block, which remembers the parts that it has not sorted yet: the larger one of two, so that they stay few.
__global__ void sort_serial(int* a, int* b, int* out, int count) {
    __shared__ int less, greater;
    int4 parts[kMostParts];   // the same in all threads: begin, count, and whether the keys are in `b`
    int waiting = 1;
    parts[0] = {0, count, 0, 0};
    while (waiting > 0) {
        int4 part = parts[--waiting];
        int begin = part.x, count = part.y;
        int *from = part.z ? b : a, *to = part.z ? a : b;
        __syncthreads();
        if (count <= kSmall) {
            sort_small(from + begin, out + begin, count, blockDim.x);
            continue;
        }
        int pivot = median(from[begin], from[begin + count / 2], from[begin + count - 1]);
        if (threadIdx.x == 0) less = greater = 0;
        __syncthreads();
        for (int i = begin + threadIdx.x; i < begin + count; i += blockDim.x) {
            int key = from[i];
            if (key < pivot) to[begin + atomicAdd(&less, 1)] = key;
            if (key > pivot) to[begin + count - 1 - atomicAdd(&greater, 1)] = key;
        }
        __syncthreads();
        for (int i = begin + less + threadIdx.x; i < begin + count - greater; i += blockDim.x) out[i] = pivot;
        int4 low = {begin, less, 1 - part.z, 0}, high = {begin + count - greater, greater, 1 - part.z, 0};
        int4 larger = low.y > high.y ? low : high, smaller = low.y > high.y ? high : low;
        if (larger.y > 0) parts[waiting++] = larger;
        if (smaller.y > 0) parts[waiting++] = smaller;
    }
}

// ------------------------------------------------------------------------------------------- keys

struct Random {   // splitmix64: the same numbers everywhere
    uint64_t state;
    uint64_t next() {
        uint64_t z = (state += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
    int below(int n) { return int(next() % uint64_t(n)); }
};

// flat: any numbers. skewed: small ones come often; one in sixteen is zero, and parts differ much in size.
std::vector<int> make_keys(const std::string& input, int count) {
    if (input != "skewed" && input != "flat") {
        std::fprintf(stderr, "no such input: %s\n", input.c_str());
        std::exit(2);
    }
    Random random{42};
    std::vector<int> keys(count > 0 ? count : 1 << 18);
    for (int& key : keys) {
        key = random.below(1 << 30);
        if (input == "skewed") key = random.below(16) == 0 ? 0 : key >> random.below(24);
    }
    return keys;
}

// -------------------------------------------------------------------------------- the command line

struct Options {
    std::string input = "skewed", variant = "naive", label;
    int keys = 0, repeat = 5, threads = 128, pending = 0;
};

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        std::string flag = argv[i];
        if (i + 1 == argc) {
            std::fprintf(stderr, "%s: unknown, or without a value\n", flag.c_str());
            std::exit(2);
        }
        const char* value = argv[++i];
        if (flag == "--input") options.input = value;
        else if (flag == "--variant") options.variant = value;
        else if (flag == "--label") options.label = value;
        else if (flag == "--keys") options.keys = std::atoi(value);
        else if (flag == "--repeat") options.repeat = std::max(1, std::atoi(value));
        else if (flag == "--pending") options.pending = std::atoi(value);
        else if (flag == "--threads") options.threads = std::atoi(value);
        else {
            std::fprintf(stderr, "unknown flag: %s\n", flag.c_str());
            std::exit(2);
        }
    }
    if (options.variant != "serial" && options.variant != "naive") {
        std::fprintf(stderr, "unknown variant: %s\n", options.variant.c_str());
        std::exit(2);
    }
    if (options.label.empty()) options.label = options.variant;
    return options;
}

void report(const char* bench, const Options& options, std::vector<float> times, bool pass,
            const std::vector<int>& result) {
    uint64_t checksum = 14695981039346656037ull;   // FNV-1a
    for (int value : result) checksum = (checksum ^ uint32_t(value)) * 1099511628211ull;
    std::sort(times.begin(), times.end());
    std::printf("{\"bench\":\"%s\",\"input\":\"%s\",\"variant\":\"%s\",\"time_ms\":%.4f,\"verdict\":\"%s\","
                "\"checksum\":\"%016llx\",\"keys\":%d,\"repeats\":%d}\n",
                bench, options.input.c_str(), options.label.c_str(), times[times.size() / 2], pass ? "pass" : "fail",
                (unsigned long long)checksum, int(result.size()), int(times.size()));
}

void sort_keys(int* const (&keys)[3], int count, const Options& options, cudaStream_t stream) {
    if (options.variant == "serial")
        sort_serial<<<1, options.threads, 0, stream>>>(keys[0], keys[1], keys[2], count);
    else
        sort_part<<<1, options.threads, 0, stream>>>(keys[0], keys[1], keys[2], 0, count);
    CHECK(cudaGetLastError());
}

int main(int argc, char** argv) {
    Options options = parse(argc, argv);
    std::vector<int> keys = make_keys(options.input, options.keys);
    const int n = int(keys.size());
    std::vector<int> expected = keys, sorted(n);
    std::sort(expected.begin(), expected.end());

    // A block launches twice, and launches beyond the limit are lost.
    const int pending = options.pending > 0 ? options.pending : std::max(2 * n / kSmall, 2048);
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, pending));

    int* device[3];   // twice the keys, and the result
    for (int*& memory : device) CHECK(cudaMalloc(&memory, n * sizeof(int)));
    cudaStream_t stream;
    cudaEvent_t start, stop;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));

    std::vector<float> times;
    bool pass = true;
    for (int i = 0; i <= options.repeat; ++i) {   // the first round warms up
        CHECK(cudaMemcpy(device[0], keys.data(), n * sizeof(int), cudaMemcpyHostToDevice));
        for (int k = 1; k < 3; ++k) CHECK(cudaMemset(device[k], 0xff, n * sizeof(int)));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(start, stream));
        sort_keys(device, n, options, stream);
        CHECK(cudaEventRecord(stop, stream));
        CHECK(cudaEventSynchronize(stop));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (i > 0) times.push_back(ms);
        CHECK(cudaMemcpy(sorted.data(), device[2], n * sizeof(int), cudaMemcpyDeviceToHost));
        pass = pass && sorted == expected;
    }
    report("qs", options, times, pass, sorted);
    CHECK(cudaDeviceSynchronize());
    return pass ? 0 : 1;
}
