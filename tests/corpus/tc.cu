// Triangle counting. The edges go from the smaller vertex to the larger one; for each edge, the neighbours that both of its ends
// have close a triangle. A vertex launches a grid over its edges.
//
//   tc [--input rmat|uniform] [--variant serial|naive] [--vertices N] [--repeat N]
//       [--threads N] [--pending N] [--label TEXT]
//
// Makes its own graph, compares with a count on the CPU and prints one line of JSON.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
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

// How many of the ascending `few` are among the ascending `many`.
__device__ int common(const int* few, int few_count, const int* many, int many_count) {
    int found = 0;
    for (int i = 0; i < few_count; ++i) {
        int low = 0, high = many_count;
        while (low < high) {
            int middle = (low + high) / 2;
            if (many[middle] < few[i]) low = middle + 1;
            else high = middle;
        }
        if (low < many_count && many[low] == few[i]) ++found;
    }
    return found;
}

// Counts the triangles that contain one of the `count` edges from `begin` on, which belong to vertex v.
__global__ void close(const int* row, const int* col, int* triangles, int v, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        int u = col[begin + i];
        int found = common(col + row[u], row[u + 1] - row[u], col + begin, count);
        if (found > 0) atomicAdd(&triangles[v], found);
    }
}

__global__ void count_triangles(const int* row, const int* col, int* triangles, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v];
    int count = row[v + 1] - begin;
    if (count > 1) close<<<(count + 127) / 128, 128>>>(row, col, triangles, v, begin, count);
}

__global__ void count_triangles_serial(const int* row, const int* col, int* triangles, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v];
    int count = row[v + 1] - begin;
    int found = 0;
    for (int i = begin; i < begin + count; ++i) {
        int u = col[i];
        found += common(col + row[u], row[u + 1] - row[u], col + begin, count);
    }
    triangles[v] = found;
}

// ----------------------------------------------------------------------------------------- graphs

struct Graph {
    std::vector<int> row, col;   // the edges of vertex v are row[v] .. row[v + 1] - 1, their ends ascending
    int n() const { return int(row.size()) - 1; }
};

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

using Edges = std::vector<std::pair<int, int>>;

// Every edge goes anywhere; 8 for each vertex.
Edges uniform_edges(int n, Random& random) {
    Edges edges;
    for (int v = 0; v < n; ++v)
        for (int i = 0; i < 8; ++i) edges.push_back({v, random.below(n)});
    return edges;
}

// A power-law graph (R-MAT with 57, 19, 19 and 5 %); 8 edges for each vertex.
Edges rmat_edges(int n, Random& random) {
    int levels = 0;
    while ((1 << levels) < n) ++levels;
    Edges edges;
    for (int64_t i = 0; i < int64_t(n) * 8; ++i) {
        int from = 0, to = 0;
        for (int level = 0; level < levels; ++level) {
            int p = random.below(100);
            from = from * 2 + (p >= 76);
            to = to * 2 + ((p >= 57 && p < 76) || p >= 95);
        }
        edges.push_back({from % n, to % n});
    }
    return edges;
}

// Each edge once, from the smaller vertex to the larger one.
Graph make_graph(const std::string& input, int vertices) {
    Random random{42};
    if (vertices <= 0) vertices = 16384;
    Edges edges;
    if (input == "uniform") edges = uniform_edges(vertices, random);
    else if (input == "rmat") edges = rmat_edges(vertices, random);
    else {
        std::fprintf(stderr, "no such input: %s\n", input.c_str());
        std::exit(2);
    }
    for (auto& edge : edges)
        if (edge.first > edge.second) std::swap(edge.first, edge.second);
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    Graph graph;
    graph.row.assign(vertices + 1, 0);
    for (auto& edge : edges) {
        if (edge.first == edge.second) continue;
        ++graph.row[edge.first + 1];
        graph.col.push_back(edge.second);
    }
    for (int v = 0; v < vertices; ++v) graph.row[v + 1] += graph.row[v];
    return graph;
}

// -------------------------------------------------------------------------------------- the count

struct Options {
    std::string input = "rmat", variant = "naive", label;
    int vertices = 0, repeat = 5, threads = 256, pending = 0;
};

struct DeviceGraph {
    int *row, *col;
    int* triangles;   // for each vertex, those in which it is the smallest one
    int n;
};

void count_all(const DeviceGraph& g, bool serial, int threads, cudaStream_t stream) {
    int blocks = (g.n + threads - 1) / threads;
    if (serial)
        count_triangles_serial<<<blocks, threads, 0, stream>>>(g.row, g.col, g.triangles, g.n);
    else
        count_triangles<<<blocks, threads, 0, stream>>>(g.row, g.col, g.triangles, g.n);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
}

std::vector<int> triangles_on_cpu(const Graph& g) {
    std::vector<int> triangles(g.n()), neighbour_of(g.n(), -1);
    for (int v = 0; v < g.n(); ++v) {
        for (int i = g.row[v]; i < g.row[v + 1]; ++i) neighbour_of[g.col[i]] = v;
        for (int i = g.row[v]; i < g.row[v + 1]; ++i)
            for (int j = g.row[g.col[i]]; j < g.row[g.col[i] + 1]; ++j) triangles[v] += neighbour_of[g.col[j]] == v;
    }
    return triangles;
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
        else if (flag == "--vertices") options.vertices = std::atoi(value);
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

void report(const char* bench, const Options& options, const Graph& graph, std::vector<float> times, bool pass,
            const std::vector<int>& result) {
    uint64_t checksum = 14695981039346656037ull;   // FNV-1a
    for (int value : result) checksum = (checksum ^ uint32_t(value)) * 1099511628211ull;
    std::sort(times.begin(), times.end());
    std::printf("{\"bench\":\"%s\",\"input\":\"%s\",\"variant\":\"%s\",\"time_ms\":%.4f,\"verdict\":\"%s\","
                "\"checksum\":\"%016llx\",\"vertices\":%d,\"edges\":%d,\"repeats\":%d}\n",
                bench, options.input.c_str(), options.label.c_str(), times[times.size() / 2], pass ? "pass" : "fail",
                (unsigned long long)checksum, graph.n(), int(graph.col.size()), int(times.size()));
}

int main(int argc, char** argv) {
    Options options = parse(argc, argv);
    Graph graph = make_graph(options.input, options.vertices);
    const int n = graph.n();

    // Every vertex may launch once, and launches beyond the limit are lost.
    const int pending = options.pending > 0 ? options.pending : std::max(2 * n, 2048);
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, pending));

    DeviceGraph g;
    g.n = n;
    CHECK(cudaMalloc(&g.row, graph.row.size() * sizeof(int)));
    CHECK(cudaMalloc(&g.col, std::max<size_t>(graph.col.size(), 1) * sizeof(int)));
    CHECK(cudaMalloc(&g.triangles, n * sizeof(int)));
    CHECK(cudaMemcpy(g.row, graph.row.data(), graph.row.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(g.col, graph.col.data(), graph.col.size() * sizeof(int), cudaMemcpyHostToDevice));

    cudaStream_t stream;
    cudaEvent_t start, stop;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));

    std::vector<int> expected = triangles_on_cpu(graph), triangles(n);
    std::vector<float> times;
    bool pass = true;
    for (int i = 0; i <= options.repeat; ++i) {   // the first round warms up
        CHECK(cudaMemset(g.triangles, 0, n * sizeof(int)));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(start, stream));
        count_all(g, options.variant == "serial", options.threads, stream);
        CHECK(cudaEventRecord(stop, stream));
        CHECK(cudaEventSynchronize(stop));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (i > 0) times.push_back(ms);
        CHECK(cudaMemcpy(triangles.data(), g.triangles, n * sizeof(int), cudaMemcpyDeviceToHost));
        pass = pass && triangles == expected;
    }
    report("tc", options, graph, times, pass, triangles);
    CHECK(cudaDeviceSynchronize());
    return pass ? 0 : 1;
}
