// Unique: keeps the first of equal elements that follow each other.
//
//   unq [--input small|medium|large] [--variant serial|naive] [--elements N] [--repeat N] [--label TEXT]
//
// Makes its own data, compares with the CPU and prints one line of JSON. medium is as deep as CUDA's documentation lets launches
// nest; large has more launches pending than may be: the naive chain breaks off, and the check fails.

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

struct Options {
    std::string input = "medium";
    std::string variant = "naive";
    std::string label;
    int elements = 0;
    int repeat = 20;
};

constexpr int kThreads = 256;
constexpr int kItems = 16;                 // elements of a thread
constexpr int kTile = kThreads * kItems;   // elements of a block
constexpr int kPerWarp = 32 * kItems;

// ---------------------------------------------------------------------------------------- kernels

// The sum of the counts of the warps before the calling thread's, and of all warps. `count` is the same in all threads of a warp.
__device__ int2 sum_before_warp(int count) {
    __shared__ int counts[kThreads / 32];
    const int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) counts[warp] = count;
    __syncthreads();
    int before = 0, all = 0;
    for (int w = 0; w < kThreads / 32; ++w) {
        if (w < warp) before += counts[w];
        all += counts[w];
    }
    return make_int2(before, all);
}

// The elements of a thread: every 32nd of its warp's part of a tile. A bit of `kept` for each thread of the warp.
struct Part {
    int value[kItems];
    unsigned kept[kItems];
};

__device__ Part load(const int* in, int n, int tile) {
    Part part;
    const int first = tile * kTile + threadIdx.x / 32 * kPerWarp + threadIdx.x % 32;
    for (int item = 0; item < kItems; ++item) {
        const int i = first + 32 * item;
        part.value[item] = i < n ? in[i] : 0;
        part.kept[item] = __ballot_sync(~0u, i < n && (i == 0 || part.value[item] != in[i - 1]));
    }
    return part;
}

__device__ int count(const Part& part) {
    int kept = 0;
    for (int item = 0; item < kItems; ++item) kept += __popc(part.kept[item]);
    return kept;
}

__device__ void store(const Part& part, int* out, int to) {
    const unsigned lane = threadIdx.x % 32;
    for (int item = 0; item < kItems; ++item) {
        const unsigned kept = part.kept[item];
        if (kept >> lane & 1) out[to + __popc(kept & ((1u << lane) - 1))] = part.value[item];
        to += __popc(kept);
    }
}

// Tile by tile: each launches the next one when it knows how many elements it keeps.
__global__ void unique(const int* in, int* out, int* kept, int n, int tile, int offset) {
    const Part part = load(in, n, tile);
    const int2 counts = sum_before_warp(count(part));
    if (threadIdx.x == 0) {
        if ((tile + 1) * kTile < n)
            unique<<<1, kThreads>>>(in, out, kept, n, tile + 1, offset + counts.y);
        else
            *kept = offset + counts.y;
    }
    store(part, out, offset + counts.x);
}

__global__ void unique_serial(const int* in, int* out, int* kept, int n) {
    int offset = 0;
    for (int tile = 0; tile * kTile < n; ++tile) {
        const Part part = load(in, n, tile);
        const int2 counts = sum_before_warp(count(part));
        store(part, out, offset + counts.x);
        offset += counts.y;
        __syncthreads();   // the counts of the warps have been read
    }
    if (threadIdx.x == 0) *kept = offset;
}

// ------------------------------------------------------------------------------------------- data

uint64_t random_number(uint64_t i) {   // splitmix64: the same numbers everywhere
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

// A chain of 8 blocks, of 24, of 4096. The last block is not full.
int elements_of(const Options& options) {
    if (options.elements > 0) return options.elements;
    if (options.input == "small") return 8 * kTile - 100;
    if (options.input == "medium") return 24 * kTile - 100;
    if (options.input == "large") return 4096 * kTile - 100;
    std::fprintf(stderr, "no such input: %s\n", options.input.c_str());
    std::exit(2);
}

// Runs of one, two or more equal elements.
std::vector<int> make_data(int n) {
    std::vector<int> data(n);
    for (int i = 0; i < n; ++i) data[i] = i > 0 && random_number(i) % 2 == 0 ? data[i - 1] : int(random_number(i) % 1000);
    return data;
}

// -------------------------------------------------------------------------------- the command line

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
        else if (flag == "--elements") options.elements = std::atoi(value);
        else if (flag == "--repeat") options.repeat = std::max(1, std::atoi(value));
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

void report(const char* bench, const Options& options, std::vector<float> times, bool pass, const std::vector<int>& result) {
    uint64_t checksum = 14695981039346656037ull;   // FNV-1a
    for (int value : result) checksum = (checksum ^ uint32_t(value)) * 1099511628211ull;
    std::sort(times.begin(), times.end());
    const int elements = elements_of(options);
    std::printf("{\"bench\":\"%s\",\"input\":\"%s\",\"variant\":\"%s\",\"time_ms\":%.4f,\"verdict\":\"%s\","
                "\"checksum\":\"%016llx\",\"elements\":%d,\"links\":%d,\"repeats\":%d}\n",
                bench, options.input.c_str(), options.label.c_str(), times[times.size() / 2], pass ? "pass" : "fail",
                (unsigned long long)checksum, elements, (elements + kTile - 1) / kTile, int(times.size()));
}

void unique_all(const int* in, int* out, int* kept, int n, bool serial, cudaStream_t stream) {
    if (serial)
        unique_serial<<<1, kThreads, 0, stream>>>(in, out, kept, n);
    else
        unique<<<1, kThreads, 0, stream>>>(in, out, kept, n, 0, 0);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
}

int main(int argc, char** argv) {
    Options options = parse(argc, argv);
    const int n = elements_of(options);
    const std::vector<int> data = make_data(n);
    std::vector<int> expected;
    for (int i = 0; i < n; ++i)
        if (i == 0 || data[i] != data[i - 1]) expected.push_back(data[i]);
    std::vector<int> result;

    int *in, *out, *kept;
    CHECK(cudaMalloc(&in, n * sizeof(int)));
    CHECK(cudaMalloc(&out, n * sizeof(int)));
    CHECK(cudaMalloc(&kept, sizeof(int)));
    CHECK(cudaMemcpy(in, data.data(), n * sizeof(int), cudaMemcpyHostToDevice));

    cudaStream_t stream;
    cudaEvent_t start, stop;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));

    std::vector<float> times;
    bool pass = true;
    for (int i = 0; i <= options.repeat; ++i) {   // the first round warms up
        CHECK(cudaMemset(out, 0xff, n * sizeof(int)));
        CHECK(cudaMemset(kept, 0xff, sizeof(int)));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(start, stream));
        unique_all(in, out, kept, n, options.variant == "serial", stream);
        CHECK(cudaEventRecord(stop, stream));
        CHECK(cudaEventSynchronize(stop));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (i > 0) times.push_back(ms);
        if (i != 0 && i != options.repeat) continue;
        int size = 0;
        CHECK(cudaMemcpy(&size, kept, sizeof(int), cudaMemcpyDeviceToHost));
        result.resize(size >= 0 && size <= n ? size : 0);
        CHECK(cudaMemcpy(result.data(), out, result.size() * sizeof(int), cudaMemcpyDeviceToHost));
        pass = pass && result == expected;
    }
    report("unq", options, times, pass, result);
    return pass ? 0 : 1;
}
