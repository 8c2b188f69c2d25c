// Line of sight: which points of a terrain an observer at its first point sees.
//
//   los [--input small|medium|large] [--variant serial|naive] [--elements N] [--repeat N] [--label TEXT]
//
// Makes its own data, compares with the CPU and prints one line of JSON. medium is as deep as CUDA's documentation lets launches
// nest; large has more launches pending than may be: the naive chain breaks off, and the check fails.

#include <algorithm>
#include <cmath>
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

// The largest value of the warps before the calling thread's (-infinity for the first), and of all warps.
__device__ float2 greatest_before_warp(float value) {
    __shared__ float values[kThreads / 32];
    const int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) values[warp] = value;
    __syncthreads();
    float before = -INFINITY, all = -INFINITY;
    for (int w = 0; w < kThreads / 32; ++w) {
        if (w < warp) before = fmaxf(before, values[w]);
        all = fmaxf(all, values[w]);
    }
    return make_float2(before, all);
}

// The points of a thread: every 32nd of its warp's part of a tile.
struct Part {
    float slope[kItems];   // from the observer
    float before[kItems];  // the largest slope of the warp's points before
    float all;             // of all of the warp's points
};

__device__ Part load(const float* height, int n, int tile) {
    Part part;
    const int lane = threadIdx.x % 32;
    const int first = tile * kTile + threadIdx.x / 32 * kPerWarp + lane;
    const float observer = height[0];
    for (int item = 0; item < kItems; ++item) {
        const int i = first + 32 * item;
        part.slope[item] = i > 0 && i < n ? (height[i] - observer) / float(i) : -INFINITY;
    }
    part.all = -INFINITY;
    for (int item = 0; item < kItems; ++item) {
        float greatest = part.slope[item];
        for (int distance = 1; distance < 32; distance *= 2) {
            const float other = __shfl_up_sync(~0u, greatest, distance);
            if (lane >= distance) greatest = fmaxf(greatest, other);
        }
        const float previous = __shfl_up_sync(~0u, greatest, 1);
        part.before[item] = lane > 0 ? fmaxf(part.all, previous) : part.all;
        part.all = fmaxf(part.all, __shfl_sync(~0u, greatest, 31));
    }
    return part;
}

__device__ void store(const Part& part, unsigned char* visible, int n, int tile, float before) {
    const int first = tile * kTile + threadIdx.x / 32 * kPerWarp + threadIdx.x % 32;
    for (int item = 0; item < kItems; ++item) {
        const int i = first + 32 * item;
        if (i < n) visible[i] = part.slope[item] > fmaxf(before, part.before[item]);
    }
}

// Tile by tile: each launches the next one when it knows the largest slope up to there.
__global__ void look(const float* height, unsigned char* visible, int n, int tile, float horizon) {
    const Part part = load(height, n, tile);
    const float2 slopes = greatest_before_warp(part.all);
    if (threadIdx.x == 0 && (tile + 1) * kTile < n)
        look<<<1, kThreads>>>(height, visible, n, tile + 1, fmaxf(horizon, slopes.y));
    store(part, visible, n, tile, fmaxf(horizon, slopes.x));
}

__global__ void look_serial(const float* height, unsigned char* visible, int n) {
    float horizon = -INFINITY;
    for (int tile = 0; tile * kTile < n; ++tile) {
        const Part part = load(height, n, tile);
        const float2 slopes = greatest_before_warp(part.all);
        store(part, visible, n, tile, fmaxf(horizon, slopes.x));
        horizon = fmaxf(horizon, slopes.y);
        __syncthreads();   // the values of the warps have been read
    }
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

void look_all(const float* height, unsigned char* visible, int n, bool serial, cudaStream_t stream) {
    if (serial)
        look_serial<<<1, kThreads, 0, stream>>>(height, visible, n);
    else
        look<<<1, kThreads, 0, stream>>>(height, visible, n, 0, -INFINITY);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
}

int main(int argc, char** argv) {
    Options options = parse(argc, argv);
    const int n = elements_of(options);
    // Hills that rise with the distance, so that some of them are seen everywhere.
    std::vector<float> heights(n);
    for (int i = 0; i < n; ++i) heights[i] = float(random_number(i) % 1000) + (i % 1000 < 20 ? float(i) * 0.5f : 0);
    std::vector<unsigned char> expected(n), seen(n);
    float horizon = -INFINITY;
    for (int i = 1; i < n; ++i) {
        const float slope = (heights[i] - heights[0]) / float(i);
        expected[i] = slope > horizon;
        horizon = std::max(horizon, slope);
    }
    std::vector<int> result(n);

    float* height;
    unsigned char* visible;
    CHECK(cudaMalloc(&height, n * sizeof(float)));
    CHECK(cudaMalloc(&visible, n));
    CHECK(cudaMemcpy(height, heights.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    cudaStream_t stream;
    cudaEvent_t start, stop;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));

    std::vector<float> times;
    bool pass = true;
    for (int i = 0; i <= options.repeat; ++i) {   // the first round warms up
        CHECK(cudaMemset(visible, 0xff, n));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(start, stream));
        look_all(height, visible, n, options.variant == "serial", stream);
        CHECK(cudaEventRecord(stop, stream));
        CHECK(cudaEventSynchronize(stop));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (i > 0) times.push_back(ms);
        if (i != 0 && i != options.repeat) continue;
        CHECK(cudaMemcpy(seen.data(), visible, n, cudaMemcpyDeviceToHost));
        pass = pass && seen == expected;
        result.assign(seen.begin(), seen.end());
    }
    report("los", options, times, pass, result);
    return pass ? 0 : 1;
}
