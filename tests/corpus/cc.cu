// Connected components. In every round each component joins the smallest of those that its edges lead to, until no edge
// leads out of a component. A vertex launches a grid over its edges.
//
//   cc [--input rmat|uniform] [--variant serial|naive] [--vertices N] [--repeat N]
//       [--threads N] [--pending N] [--label TEXT]
//
// Makes its own graph, compares with a search on the CPU and prints one line of JSON.

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

// A component's label is its smallest vertex so far, its root. `joins` says for a root which one it joins: itself, if none.

// Looks at the `count` edges from `begin` on, of a vertex with the label `own`.
__global__ void hook(const int* col, const int* label, int* joins, int* last_round, int round, int own, int begin,
                     int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        int other = label[col[begin + i]];
        if (own < other && own < atomicMin(&joins[other], own)) atomicMax(last_round, round + 1);
    }
}

__global__ void cc_round(const int* row, const int* col, const int* label, int* joins, int* last_round, int round, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int own = label[v];
    int begin = row[v];
    int count = row[v + 1] - begin;
    if (count > 0) hook<<<(count + 127) / 128, 128>>>(col, label, joins, last_round, round, own, begin, count);
}

__global__ void cc_round_serial(const int* row, const int* col, const int* label, int* joins, int* last_round, int round,
                                int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int own = label[v];
    for (int i = row[v]; i < row[v + 1]; ++i) {
        int other = label[col[i]];
        if (own < other && own < atomicMin(&joins[other], own)) atomicMax(last_round, round + 1);
    }
}

__global__ void singletons(int* label, int* joins, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) label[v] = joins[v] = v;
}

// Gives every vertex the root that its root has joined.
__global__ void relabel(int* label, const int* joins, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int root = label[v];
    while (joins[root] != root) root = joins[root];
    label[v] = root;
}

// Writes a number into the host's memory: sooner there than by a copy.
__global__ void publish(const int* from, int* to) { *to = *from; }

// ----------------------------------------------------------------------------------------- graphs

struct Graph {
    std::vector<int> row, col;   // the edges of vertex v are row[v] .. row[v + 1] - 1
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

// Each edge once in each direction, and none from a vertex to itself.
Graph make_graph(const std::string& input, int vertices) {
    Random random{42};
    if (vertices <= 0) vertices = 8192;
    Edges one_way;
    if (input == "uniform") one_way = uniform_edges(vertices, random);
    else if (input == "rmat") one_way = rmat_edges(vertices, random);
    else {
        std::fprintf(stderr, "no such input: %s\n", input.c_str());
        std::exit(2);
    }
    Edges edges;
    for (auto& edge : one_way) {
        if (edge.first == edge.second) continue;
        edges.push_back(edge);
        edges.push_back({edge.second, edge.first});
    }
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    Graph graph;
    graph.row.assign(vertices + 1, 0);
    for (auto& edge : edges) {
        ++graph.row[edge.first + 1];
        graph.col.push_back(edge.second);
    }
    for (int v = 0; v < vertices; ++v) graph.row[v + 1] += graph.row[v];
    return graph;
}

// ------------------------------------------------------------------------------------- the rounds

struct Options {
    std::string input = "rmat", variant = "naive", label;
    int vertices = 0, repeat = 5, threads = 256, pending = 0;
};

struct DeviceGraph {
    int *row, *col, *label, *joins;
    int* last_round;       // the last round that has something to do
    int* last_round_host;  // the same, as the host last saw it
    int n;
};

void components(const DeviceGraph& g, bool serial, int threads, cudaStream_t stream) {
    int blocks = (g.n + threads - 1) / threads;
    singletons<<<blocks, threads, 0, stream>>>(g.label, g.joins, g.n);
    CHECK(cudaGetLastError());
    for (int round = 0; *g.last_round_host == round; ++round) {
        if (serial)
            cc_round_serial<<<blocks, threads, 0, stream>>>(g.row, g.col, g.label, g.joins, g.last_round, round, g.n);
        else
            cc_round<<<blocks, threads, 0, stream>>>(g.row, g.col, g.label, g.joins, g.last_round, round, g.n);
        CHECK(cudaGetLastError());
        relabel<<<blocks, threads, 0, stream>>>(g.label, g.joins, g.n);
        CHECK(cudaGetLastError());
        publish<<<1, 1, 0, stream>>>(g.last_round, g.last_round_host);
        CHECK(cudaGetLastError());
        CHECK(cudaStreamSynchronize(stream));
    }
}

std::vector<int> components_on_cpu(const Graph& g) {
    std::vector<int> label(g.n(), -1), stack;
    for (int root = 0; root < g.n(); ++root) {
        if (label[root] >= 0) continue;
        label[root] = root;
        stack.push_back(root);
        while (!stack.empty()) {
            int v = stack.back();
            stack.pop_back();
            for (int i = g.row[v]; i < g.row[v + 1]; ++i)
                if (label[g.col[i]] < 0) {
                    label[g.col[i]] = root;
                    stack.push_back(g.col[i]);
                }
        }
    }
    return label;
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

    // Every vertex launches once in a round, and launches beyond the limit are lost.
    const int pending = options.pending > 0 ? options.pending : std::max(2 * n, 2048);
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, pending));

    DeviceGraph g;
    g.n = n;
    CHECK(cudaMalloc(&g.row, graph.row.size() * sizeof(int)));
    CHECK(cudaMalloc(&g.col, std::max<size_t>(graph.col.size(), 1) * sizeof(int)));
    CHECK(cudaMalloc(&g.label, n * sizeof(int)));
    CHECK(cudaMalloc(&g.joins, n * sizeof(int)));
    CHECK(cudaMalloc(&g.last_round, sizeof(int)));
    CHECK(cudaMallocHost(&g.last_round_host, sizeof(int)));
    CHECK(cudaMemcpy(g.row, graph.row.data(), graph.row.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(g.col, graph.col.data(), graph.col.size() * sizeof(int), cudaMemcpyHostToDevice));

    cudaStream_t stream;
    cudaEvent_t start, stop;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));

    std::vector<int> expected = components_on_cpu(graph), label(n);
    std::vector<float> times;
    bool pass = true;
    for (int i = 0; i <= options.repeat; ++i) {   // the first round warms up
        CHECK(cudaMemset(g.label, 0xff, n * sizeof(int)));
        CHECK(cudaMemset(g.last_round, 0, sizeof(int)));
        *g.last_round_host = 0;
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(start, stream));
        components(g, options.variant == "serial", options.threads, stream);
        CHECK(cudaEventRecord(stop, stream));
        CHECK(cudaEventSynchronize(stop));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (i > 0) times.push_back(ms);
        CHECK(cudaMemcpy(label.data(), g.label, n * sizeof(int), cudaMemcpyDeviceToHost));
        pass = pass && label == expected;
    }
    report("cc", options, graph, times, pass, label);
    CHECK(cudaDeviceSynchronize());
    return pass ? 0 : 1;
}
