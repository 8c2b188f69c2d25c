// What it costs a kernel that it could launch: no thread does. Each vertex of a graph writes its degree, and would launch a grid
// over its edges if there were more than any vertex has.
//
//   idle [--input small|large|huge] [--variant serial|naive] [--rounds N] [--repeat N] [--threads N] [--pending N] [--label TEXT]
//
// With `small` the host waits for each round, as in a search by levels; with the others the rounds follow each other. With `huge` what
// is paid once for a launch of the kernel, however large, doesn't count. Prints one line of JSON; the time is that of one round.

#include <algorithm>
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

// ---------------------------------------------------------------------------------------- kernels

// Marks the `count` edges from `begin` on.
__global__ void mark(const int* col, int* degree, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd(&degree[col[begin + i]], 1 << 16);
}

__global__ void visit(const int* row, const int* col, int* degree, int most, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v];
    int count = row[v + 1] - begin;
    degree[v] = count;
    if (count > most) mark<<<(count + 127) / 128, 128>>>(col, degree, begin, count);
}

__global__ void visit_serial(const int* row, const int* col, int* degree, int most, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v];
    int count = row[v + 1] - begin;
    degree[v] = count;
    if (count > most)
        for (int i = begin; i < begin + count; ++i) atomicAdd(&degree[col[i]], 1 << 16);
}

// -------------------------------------------------------------------------------- the command line

struct Options {
    std::string input = "small", variant = "naive", label;
    int rounds = 50, repeat = 5, threads = 256, pending = 0;
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
        else if (flag == "--rounds") options.rounds = std::max(1, std::atoi(value));
        else if (flag == "--repeat") options.repeat = std::max(1, std::atoi(value));
        else if (flag == "--pending") options.pending = std::atoi(value);
        else if (flag == "--threads") options.threads = std::atoi(value);
        else {
            std::fprintf(stderr, "unknown flag: %s\n", flag.c_str());
            std::exit(2);
        }
    }
    if ((options.variant != "serial" && options.variant != "naive") || (options.input != "small" && options.input != "large" && options.input != "huge")) {
        std::fprintf(stderr, "unknown variant or input: %s, %s\n", options.variant.c_str(), options.input.c_str());
        std::exit(2);
    }
    if (options.label.empty()) options.label = options.variant;
    return options;
}

int main(int argc, char** argv) {
    Options options = parse(argc, argv);
    const bool small = options.input == "small";
    const int n = small ? 16384 : options.input == "large" ? 8 << 20 : 64 << 20;
    const int pending = options.pending > 0 ? options.pending : 32768;
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, pending));

    // Vertex v has v % 16 edges; nobody looks where they lead to.
    std::vector<int> row_host(n + 1, 0);
    for (int v = 0; v < n; ++v) row_host[v + 1] = row_host[v] + v % 16;
    int *row, *col, *degree;
    CHECK(cudaMalloc(&row, row_host.size() * sizeof(int)));
    CHECK(cudaMalloc(&col, std::max(row_host[n], 1) * sizeof(int)));
    CHECK(cudaMalloc(&degree, n * sizeof(int)));
    CHECK(cudaMemcpy(row, row_host.data(), row_host.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(col, 0, std::max(row_host[n], 1) * sizeof(int)));

    cudaStream_t stream;
    cudaEvent_t start, stop;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    const int threads = options.threads, blocks = (n + threads - 1) / threads, most = 16;
    std::vector<float> times;
    for (int i = 0; i <= options.repeat; ++i) {   // the first round warms up
        CHECK(cudaMemset(degree, 0, n * sizeof(int)));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(start, stream));
        for (int round = 0; round < options.rounds; ++round) {
            if (options.variant == "serial")
                visit_serial<<<blocks, threads, 0, stream>>>(row, col, degree, most, n);
            else
                visit<<<blocks, threads, 0, stream>>>(row, col, degree, most, n);
            CHECK(cudaGetLastError());
            if (small) CHECK(cudaStreamSynchronize(stream));
        }
        CHECK(cudaEventRecord(stop, stream));
        CHECK(cudaEventSynchronize(stop));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (i > 0) times.push_back(ms / options.rounds);
    }
    std::vector<int> got(n);
    CHECK(cudaMemcpy(got.data(), degree, n * sizeof(int), cudaMemcpyDeviceToHost));
    bool pass = true;
    for (int v = 0; v < n; ++v) pass = pass && got[v] == v % 16;
    std::sort(times.begin(), times.end());
    std::printf("{\"bench\":\"idle\",\"input\":\"%s\",\"variant\":\"%s\",\"time_ms\":%.5f,\"verdict\":\"%s\",\"rounds\":%d,\"repeats\":%d}\n",
                options.input.c_str(), options.label.c_str(), times[times.size() / 2], pass ? "pass" : "fail", options.rounds,
                int(times.size()));
    CHECK(cudaDeviceSynchronize());
    return pass ? 0 : 1;
}
