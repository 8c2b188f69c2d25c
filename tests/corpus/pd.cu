// Padding: makes the rows of a matrix longer, in place.
//
//   pd [--input small|medium|large] [--variant serial|naive] [--elements N] [--repeat N] [--label TEXT]
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
constexpr int kPadding = 24;              // elements that a row gets more

// ---------------------------------------------------------------------------------------- kernels

// The elements of a thread: one in kThreads of a tile.
struct Part {
    int value[kItems];
};

// Element i of the matrix lies at i, and at `padded(i, columns)` once its rows have been padded.
__host__ __device__ int padded(int i, int columns) { return i + i / columns * kPadding; }

__device__ Part load(const int* data, int n, int columns, int tile) {
    Part part;
    for (int item = 0; item < kItems; ++item) {
        const int i = n - 1 - (tile * kTile + item * kThreads + int(threadIdx.x));
        part.value[item] = i >= 0 && i < n ? data[i] : 0;
    }
    __syncthreads();
    return part;
}

__device__ void store(const Part& part, int* data, int n, int columns, int tile) {
    for (int item = 0; item < kItems; ++item) {
        const int i = n - 1 - (tile * kTile + item * kThreads + int(threadIdx.x));
        if (i >= 0 && i < n) data[padded(i, columns)] = part.value[item];
    }
}

// Tile by tile from the end: each launches the next one, which may write over what has been read, when it has read its
// elements.
__global__ void pad(int* data, int n, int columns, int tile) {
    const Part part = load(data, n, columns, tile);
    if (threadIdx.x == 0 && (tile + 1) * kTile < n) pad<<<1, kThreads>>>(data, n, columns, tile + 1);
    store(part, data, n, columns, tile);
}

__global__ void pad_serial(int* data, int n, int columns) {
    for (int tile = 0; tile * kTile < n; ++tile) {
        const Part part = load(data, n, columns, tile);
        store(part, data, n, columns, tile);
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

void pad_all(int* data, int n, int columns, bool serial, cudaStream_t stream) {
    if (serial)
        pad_serial<<<1, kThreads, 0, stream>>>(data, n, columns);
    else
        pad<<<1, kThreads, 0, stream>>>(data, n, columns, 0);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
}

int main(int argc, char** argv) {
    Options options = parse(argc, argv);
    const int n = elements_of(options);
    const int columns = 1000, room = padded(n, columns) + 1;
    std::vector<int> before(room, -1), expected;
    for (int i = 0; i < n; ++i) before[i] = int(random_number(i) % 1000000);
    expected = before;
    for (int i = n - 1; i >= 0; --i) expected[padded(i, columns)] = expected[i];
    std::vector<int> result(room);

    int* data;
    CHECK(cudaMalloc(&data, room * sizeof(int)));

    cudaStream_t stream;
    cudaEvent_t start, stop;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));

    std::vector<float> times;
    bool pass = true;
    for (int i = 0; i <= options.repeat; ++i) {   // the first round warms up
        CHECK(cudaMemcpy(data, before.data(), room * sizeof(int), cudaMemcpyHostToDevice));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(start, stream));
        pad_all(data, n, columns, options.variant == "serial", stream);
        CHECK(cudaEventRecord(stop, stream));
        CHECK(cudaEventSynchronize(stop));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (i > 0) times.push_back(ms);
        if (i != 0 && i != options.repeat) continue;
        CHECK(cudaMemcpy(result.data(), data, room * sizeof(int), cudaMemcpyDeviceToHost));
        pass = pass && result == expected;
    }
    report("pd", options, times, pass, result);
    return pass ? 0 : 1;
}
