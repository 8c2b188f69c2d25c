// The heat in a plate (Jacobi's method): sweeps until hardly anything changes.
//
//   jacobi [--input small|medium|large] [--variant host|naive] [--size N] [--sweeps N] [--threads N] [--repeat N] [--label TEXT]
//
// A sweep launches the next one into the tail stream; with --variant host the host does so, when it has looked at the change. Makes its
// own data, compares with the CPU and prints one line of JSON.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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
    int size = 0;
    int sweeps = 1000;
    int threads = 256;
    int repeat = 20;
};

constexpr float kTolerance = 0.02f;
constexpr int kWidth = 32;   // of a block

// ---------------------------------------------------------------------------------------- kernels

// What the sweeps share.
struct Progress {
    unsigned change[3];   // the bits of the greatest change in a sweep, in the one before, and 0 for the next one
    int sweeps;           // done
};

// A sweep over the inner points of a plate; the greatest change goes to its place in `progress`.
__device__ void relax(const float* from, float* to, int n, Progress* progress, int sweep, int x, int y) {
    __shared__ unsigned greatest;
    const bool first = threadIdx.x == 0 && threadIdx.y == 0;
    if (first) greatest = 0;
    __syncthreads();
    if (x < n - 1 && y < n - 1) {
        const int i = y * n + x;
        const float value = 0.25f * ((from[i - 1] + from[i + 1]) + (from[i - n] + from[i + n]));
        to[i] = value;
        atomicMax(&greatest, __float_as_uint(fabsf(value - from[i])));
    }
    __syncthreads();
    if (first) atomicMax(&progress->change[sweep % 3], greatest);
}

__global__ void sweep(const float* from, float* to, int n, Progress* progress, int round, int last) {
    const int x = 1 + blockIdx.x * blockDim.x + threadIdx.x, y = 1 + blockIdx.y * blockDim.y + threadIdx.y;
    relax(from, to, n, progress, round, x, y);
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0 && threadIdx.y == 0) {
        const bool moves = round == 0 || progress->change[(round + 2) % 3] > __float_as_uint(kTolerance);
        progress->change[(round + 1) % 3] = 0;
        progress->sweeps = round + 1;
        if (moves && round + 1 < last) sweep<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(to, const_cast<float*>(from), n, progress, round + 1, last);
    }
}

__global__ void sweep_once(const float* from, float* to, int n, Progress* progress, int round) {
    const int x = 1 + blockIdx.x * blockDim.x + threadIdx.x, y = 1 + blockIdx.y * blockDim.y + threadIdx.y;
    relax(from, to, n, progress, round, x, y);
    if (x == 1 && y == 1) {
        progress->change[(round + 1) % 3] = 0;
        progress->sweeps = round + 1;
    }
}

// ------------------------------------------------------------------------------------------- data

int size_of(const Options& options) {
    if (options.size > 2) return options.size;
    if (options.input == "small") return 128;
    if (options.input == "medium") return 512;
    if (options.input == "large") return 2048;
    std::fprintf(stderr, "no such input: %s\n", options.input.c_str());
    std::exit(2);
}

// One edge is hot, and some spots.
std::vector<float> plate(int n) {
    std::vector<float> heat(size_t(n) * n);
    for (int x = 0; x < n; ++x) heat[x] = 100;
    for (int i = 0; i < 20; ++i) heat[size_t(1 + i * 37 % (n - 2)) * n + 1 + i * 53 % (n - 2)] = float(i);
    return heat;
}

unsigned bits_of(float value) {
    unsigned bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// The same on the CPU; how many sweeps it took.
int solve(std::vector<float>& heat, int n, int last) {
    std::vector<float> next = heat;
    unsigned before = 0;
    for (int round = 0;; ++round) {
        unsigned change = 0;
        for (int y = 1; y < n - 1; ++y)
            for (int x = 1; x < n - 1; ++x) {
                const size_t i = size_t(y) * n + x;
                next[i] = 0.25f * ((heat[i - 1] + heat[i + 1]) + (heat[i - n] + heat[i + n]));
                change = std::max(change, bits_of(std::fabs(next[i] - heat[i])));
            }
        heat.swap(next);
        if ((round != 0 && before <= bits_of(kTolerance)) || round + 1 == last) return round + 1;
        before = change;
    }
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
        else if (flag == "--size") options.size = std::atoi(value);
        else if (flag == "--sweeps") options.sweeps = std::max(1, std::atoi(value));
        else if (flag == "--threads") options.threads = std::atoi(value);
        else if (flag == "--repeat") options.repeat = std::max(1, std::atoi(value));
        else {
            std::fprintf(stderr, "unknown flag: %s\n", flag.c_str());
            std::exit(2);
        }
    }
    if (options.variant != "host" && options.variant != "naive") {
        std::fprintf(stderr, "unknown variant: %s\n", options.variant.c_str());
        std::exit(2);
    }
    if (options.threads < kWidth || options.threads > 1024 || options.threads % kWidth != 0) {
        std::fprintf(stderr, "--threads: a multiple of %d\n", kWidth);
        std::exit(2);
    }
    if (options.label.empty()) options.label = options.variant;
    return options;
}

void report(const char* bench, const Options& options, std::vector<float> times, bool pass, const std::vector<float>& result, int sweeps) {
    uint64_t checksum = 14695981039346656037ull;   // FNV-1a
    for (float value : result) checksum = (checksum ^ bits_of(value)) * 1099511628211ull;
    std::sort(times.begin(), times.end());
    std::printf("{\"bench\":\"%s\",\"input\":\"%s\",\"variant\":\"%s\",\"time_ms\":%.4f,\"verdict\":\"%s\","
                "\"checksum\":\"%016llx\",\"size\":%d,\"sweeps\":%d,\"repeats\":%d}\n",
                bench, options.input.c_str(), options.label.c_str(), times[times.size() / 2], pass ? "pass" : "fail",
                (unsigned long long)checksum, size_of(options), sweeps, int(times.size()));
}

// The host looks at the change of a sweep when it has launched the next one.
void sweep_from_host(dim3 grid, dim3 block, float* a, float* b, int n, Progress* progress, int last, cudaStream_t stream) {
    for (int round = 0; round < last; ++round) {
        sweep_once<<<grid, block, 0, stream>>>(round % 2 == 0 ? a : b, round % 2 == 0 ? b : a, n, progress, round);
        CHECK(cudaGetLastError());
        if (round == 0) continue;
        unsigned change;
        CHECK(cudaMemcpyAsync(&change, &progress->change[(round + 2) % 3], sizeof change, cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
        if (change <= bits_of(kTolerance)) break;
    }
}

int main(int argc, char** argv) {
    Options options = parse(argc, argv);
    const int n = size_of(options);
    const size_t bytes = size_t(n) * n * sizeof(float);
    const std::vector<float> heat = plate(n);
    std::vector<float> expected = heat, found(heat.size());
    const int expected_sweeps = solve(expected, n, options.sweeps);

    float *a, *b;
    Progress* progress;
    CHECK(cudaMalloc(&a, bytes));
    CHECK(cudaMalloc(&b, bytes));
    CHECK(cudaMalloc(&progress, sizeof(Progress)));

    cudaStream_t stream;
    cudaEvent_t start, stop;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));

    const dim3 block(kWidth, options.threads / kWidth);
    const dim3 grid((n - 3) / block.x + 1, (n - 3) / block.y + 1);
    std::vector<float> times;
    bool pass = true;
    int sweeps = 0;
    for (int i = 0; i <= options.repeat; ++i) {   // the first round warms up
        CHECK(cudaMemcpy(a, heat.data(), bytes, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(b, heat.data(), bytes, cudaMemcpyHostToDevice));
        CHECK(cudaMemset(progress, 0, sizeof(Progress)));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(start, stream));
        if (options.variant == "host")
            sweep_from_host(grid, block, a, b, n, progress, options.sweeps, stream);
        else
            sweep<<<grid, block, 0, stream>>>(a, b, n, progress, 0, options.sweeps);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(stop, stream));
        CHECK(cudaEventSynchronize(stop));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (i > 0) times.push_back(ms);
        if (i != 0 && i != options.repeat) continue;
        Progress done;
        CHECK(cudaMemcpy(&done, progress, sizeof done, cudaMemcpyDeviceToHost));
        sweeps = done.sweeps;
        CHECK(cudaMemcpy(found.data(), sweeps % 2 == 0 ? a : b, bytes, cudaMemcpyDeviceToHost));
        pass = pass && found == expected && sweeps == expected_sweeps;
    }
    report("jacobi", options, times, pass, found, sweeps);
    return pass ? 0 : 1;
}
