// Tessellation of quadratic Bezier curves: the more a curve bends, the more vertices it gets. A curve launches a grid over its
// vertices.
//
//   bt [--input skewed|flat] [--variant serial|naive] [--lines N] [--repeat N]
//       [--threads N] [--pending N] [--label TEXT]
//
// Makes its own curves, compares with the CPU and prints one line of JSON.

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

// ---------------------------------------------------------------------------------------- kernels

// Control points are whole numbers, so that the number of vertices does not depend on rounding.
struct Line {
    float2 control[3];
    int count;
};

constexpr int kMostVertices = 2048;

// Where the vertices of line l begin: each line has room for as many as there can be.
__host__ __device__ inline size_t first_vertex(int l) { return size_t(l) * kMostVertices; }

// How many vertices a line gets: the distance of its middle control point from the middle of the others decides.
__host__ __device__ inline int vertices_wanted(const Line& line) {
    float x = line.control[0].x + line.control[2].x - 2 * line.control[1].x;
    float y = line.control[0].y + line.control[2].y - 2 * line.control[1].y;
    int wanted = 4 + int(sqrtf(x * x + y * y) / 2);
    return wanted < kMostVertices ? wanted : kMostVertices;
}

// Vertex i of a line that has `count` of them.
__host__ __device__ inline float2 vertex(float2 a, float2 b, float2 c, int i, int count) {
    float t = float(i) / float(count - 1);
    float u = 1 - t;
    return {u * u * a.x + 2 * u * t * b.x + t * t * c.x, u * u * a.y + 2 * u * t * b.y + t * t * c.y};
}

// Computes the vertices of one line.
__global__ void place(float2* vertices, float2 a, float2 b, float2 c, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        float2 at = vertex(a, b, c, i, count);
        vertices[i] = at;
    }
}

__global__ void tessellate(Line* lines, float2* vertices, int n) {
    int l = blockIdx.x * blockDim.x + threadIdx.x;
    if (l >= n) return;
    Line& line = lines[l];
    int count = vertices_wanted(line);
    line.count = count;
    place<<<(count + 127) / 128, 128>>>(vertices + first_vertex(l), line.control[0], line.control[1], line.control[2], count);
}

__global__ void tessellate_serial(Line* lines, float2* vertices, int n) {
    int l = blockIdx.x * blockDim.x + threadIdx.x;
    if (l >= n) return;
    Line& line = lines[l];
    int count = vertices_wanted(line);
    line.count = count;
    for (int i = 0; i < count; ++i) {
        float2 at = vertex(line.control[0], line.control[1], line.control[2], i, count);
        vertices[first_vertex(l) + i] = at;
    }
}

// ------------------------------------------------------------------------------------------ lines

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

// flat: all lines bend about as much. skewed: hardly at all, but for one in a hundred.
std::vector<Line> make_lines(const std::string& input, int count) {
    if (input != "skewed" && input != "flat") {
        std::fprintf(stderr, "no such input: %s\n", input.c_str());
        std::exit(2);
    }
    Random random{42};
    std::vector<Line> lines(count > 0 ? count : 4096);
    for (Line& line : lines) {
        int bend = 64 + random.below(60);
        if (input == "skewed") bend = random.below(100) == 0 ? 1000 + random.below(1000) : 4 + random.below(32);
        float x = float(random.below(1000)), y = float(random.below(1000));
        line = Line();
        line.control[0] = {x, y};
        line.control[1] = {x + 100, y + float(bend)};
        line.control[2] = {x + 200, y};
    }
    return lines;
}

// -------------------------------------------------------------------------------- the tessellation

struct Options {
    std::string input = "skewed", variant = "naive", label;
    int lines = 0, repeat = 5, threads = 256, pending = 0;
};

void tessellate_all(Line* lines, float2* vertices, int n, bool serial, int threads, cudaStream_t stream) {
    int blocks = (n + threads - 1) / threads;
    if (serial)
        tessellate_serial<<<blocks, threads, 0, stream>>>(lines, vertices, n);
    else
        tessellate<<<blocks, threads, 0, stream>>>(lines, vertices, n);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
}

// Each coordinate is a sum of three terms that are at most as large as the control points, with a few roundings each.
bool close_enough(float2 a, float2 b) {
    const float tolerance = 8 * 3000 * 1.2e-7f;
    return std::fabs(a.x - b.x) <= tolerance && std::fabs(a.y - b.y) <= tolerance;
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
        else if (flag == "--lines") options.lines = std::atoi(value);
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
    long long vertices = 0;
    for (int value : result) vertices += value;
    std::printf("{\"bench\":\"%s\",\"input\":\"%s\",\"variant\":\"%s\",\"time_ms\":%.4f,\"verdict\":\"%s\","
                "\"checksum\":\"%016llx\",\"lines\":%d,\"vertices\":%lld,\"repeats\":%d}\n",
                bench, options.input.c_str(), options.label.c_str(), times[times.size() / 2], pass ? "pass" : "fail",
                (unsigned long long)checksum, int(result.size()), vertices, int(times.size()));
}

int main(int argc, char** argv) {
    Options options = parse(argc, argv);
    std::vector<Line> lines = make_lines(options.input, options.lines);
    const int n = int(lines.size());

    // Every line launches once, and launches beyond the limit are lost.
    const int pending = options.pending > 0 ? options.pending : std::max(n, 2048);
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, pending));

    Line* device_lines;
    float2* vertices;
    CHECK(cudaMalloc(&device_lines, n * sizeof(Line)));
    CHECK(cudaMalloc(&vertices, first_vertex(n) * sizeof(float2)));
    std::vector<float2> result(first_vertex(n));
    std::vector<int> counts(n), expected_counts(n);
    for (int l = 0; l < n; ++l) expected_counts[l] = vertices_wanted(lines[l]);

    cudaStream_t stream;
    cudaEvent_t start, stop;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));

    std::vector<Line> done(n);
    std::vector<float> times;
    bool pass = true;
    for (int i = 0; i <= options.repeat; ++i) {   // the first round warms up
        CHECK(cudaMemcpy(device_lines, lines.data(), n * sizeof(Line), cudaMemcpyHostToDevice));
        CHECK(cudaMemset(vertices, 0xff, result.size() * sizeof(float2)));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(start, stream));
        tessellate_all(device_lines, vertices, n, options.variant == "serial", options.threads, stream);
        CHECK(cudaEventRecord(stop, stream));
        CHECK(cudaEventSynchronize(stop));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (i > 0) times.push_back(ms);
        CHECK(cudaMemcpy(done.data(), device_lines, n * sizeof(Line), cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(result.data(), vertices, result.size() * sizeof(float2), cudaMemcpyDeviceToHost));
        for (int l = 0; l < n; ++l) {
            counts[l] = done[l].count;
            pass = pass && counts[l] == expected_counts[l];
            const float2* control = lines[l].control;
            for (int k = 0; pass && k < counts[l]; ++k)
                pass = close_enough(result[first_vertex(l) + k], vertex(control[0], control[1], control[2], k, counts[l]));
        }
    }
    report("bt", options, times, pass, counts);
    CHECK(cudaDeviceSynchronize());
    return pass ? 0 : 1;
}
