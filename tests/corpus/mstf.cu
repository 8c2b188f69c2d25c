// Minimum spanning forest (Boruvka): in every round each component finds its lightest edge that leads out of it, and joins the
// component at the other end. A vertex launches a grid over its edges to find the lightest one.
//
//   mstf [--input rmat|uniform] [--variant serial|naive] [--vertices N] [--repeat N]
//       [--threads N] [--pending N] [--label TEXT]
//
// Makes its own graph, compares with Kruskal's algorithm on the CPU and prints one line of JSON.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
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

using Key = unsigned long long;   // of an edge: its weight, then its number

constexpr Key kNone = ~0ull;

// ---------------------------------------------------------------------------------------- kernels

// Of the `count` edges from `begin` on, offers those that lead out of the component `own`.
__global__ void find_lightest(const int* col, const Key* key, const int* label, Key* lightest, int own, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && label[col[begin + i]] != own) atomicMin(&lightest[own], key[begin + i]);
}

__global__ void find(const int* row, const int* col, const Key* key, const int* label, Key* lightest, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v];
    int count = row[v + 1] - begin;
    if (count > 0) find_lightest<<<(count + 127) / 128, 128>>>(col, key, label, lightest, label[v], begin, count);
}

__global__ void find_serial(const int* row, const int* col, const Key* key, const int* label, Key* lightest, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int own = label[v];
    Key best = kNone;
    for (int i = row[v]; i < row[v + 1]; ++i)
        if (label[col[i]] != own && key[i] < best) best = key[i];
    if (best != kNone) atomicMin(&lightest[own], best);
}

__global__ void singletons(int* label, int* joins, Key* lightest, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    label[v] = joins[v] = v;
    lightest[v] = kNone;
}

// A component joins the one that its lightest edge leads to; of two that choose the same edge, the larger joins the smaller.
__global__ void join(const int2* ends, const int* label, int* joins, const Key* lightest, int* in_forest, int* last_round,
                     int round, int n) {
    int own = blockIdx.x * blockDim.x + threadIdx.x;
    if (own >= n || lightest[own] == kNone) return;
    int number = int(lightest[own] & 0xffffffffu);
    int one = label[ends[number].x], other = label[ends[number].y];
    if (one != own) other = one;
    if (lightest[other] == lightest[own] && own < other) return;
    joins[own] = other;
    in_forest[number] = 1;
    atomicMax(last_round, round + 1);
}

__global__ void relabel(int* label, const int* joins, Key* lightest, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int root = label[v];
    while (joins[root] != root) root = joins[root];
    label[v] = root;
    lightest[v] = kNone;
}

// Writes a number into the host's memory: sooner there than by a copy.
__global__ void publish(const int* from, int* to) { *to = *from; }

// ----------------------------------------------------------------------------------------- graphs

struct Graph {
    std::vector<int> row, col;     // the edges of vertex v are row[v] .. row[v + 1] - 1
    std::vector<uint64_t> key;     // of such an edge: its weight, then its number, the same in both directions
    std::vector<std::pair<int, int>> ends;   // of the edge with a number
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

// Each edge in both directions, and none from a vertex to itself.
Graph make_graph(const std::string& input, int vertices) {
    Random random{42};
    if (vertices <= 0) vertices = 8192;
    Edges edges;
    if (input == "uniform") edges = uniform_edges(vertices, random);
    else if (input == "rmat") edges = rmat_edges(vertices, random);
    else {
        std::fprintf(stderr, "no such input: %s\n", input.c_str());
        std::exit(2);
    }
    Graph graph;
    for (auto& edge : edges)
        if (edge.first > edge.second) std::swap(edge.first, edge.second);
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    graph.row.assign(vertices + 1, 0);
    for (auto& edge : edges) {
        if (edge.first == edge.second) continue;
        graph.ends.push_back(edge);
        ++graph.row[edge.first + 1];
        ++graph.row[edge.second + 1];
    }
    for (int v = 0; v < vertices; ++v) graph.row[v + 1] += graph.row[v];
    graph.col.resize(2 * graph.ends.size());
    graph.key.resize(2 * graph.ends.size());
    std::vector<int> next(graph.row.begin(), graph.row.end() - 1);
    for (size_t number = 0; number < graph.ends.size(); ++number) {
        int a = graph.ends[number].first, b = graph.ends[number].second;
        uint64_t key = uint64_t(1 + random.below(100000)) << 32 | number;
        graph.col[next[a]] = b;
        graph.key[next[a]++] = key;
        graph.col[next[b]] = a;
        graph.key[next[b]++] = key;
    }
    return graph;
}

// --------------------------------------------------------------------------------------- the rounds

struct Options {
    std::string input = "rmat", variant = "naive", label;
    int vertices = 0, repeat = 5, threads = 256, pending = 0;
};

struct DeviceGraph {
    int *row, *col, *label, *joins, *in_forest;
    Key *key, *lightest;
    int2* ends;
    int* last_round;       // the last round that has something to do
    int* last_round_host;  // the same, as the host last saw it
    int n;
};

void forest(const DeviceGraph& g, bool serial, int threads, cudaStream_t stream) {
    int blocks = (g.n + threads - 1) / threads;
    singletons<<<blocks, threads, 0, stream>>>(g.label, g.joins, g.lightest, g.n);
    CHECK(cudaGetLastError());
    for (int round = 0; *g.last_round_host == round; ++round) {
        if (serial)
            find_serial<<<blocks, threads, 0, stream>>>(g.row, g.col, g.key, g.label, g.lightest, g.n);
        else
            find<<<blocks, threads, 0, stream>>>(g.row, g.col, g.key, g.label, g.lightest, g.n);
        CHECK(cudaGetLastError());
        join<<<blocks, threads, 0, stream>>>(g.ends, g.label, g.joins, g.lightest, g.in_forest, g.last_round, round, g.n);
        CHECK(cudaGetLastError());
        relabel<<<blocks, threads, 0, stream>>>(g.label, g.joins, g.lightest, g.n);
        CHECK(cudaGetLastError());
        publish<<<1, 1, 0, stream>>>(g.last_round, g.last_round_host);
        CHECK(cudaGetLastError());
        CHECK(cudaStreamSynchronize(stream));
    }
}

std::vector<int> forest_on_cpu(const Graph& g) {
    std::vector<uint64_t> keys(g.key);
    std::sort(keys.begin(), keys.end());
    std::vector<int> in_forest(g.ends.size()), up(g.n());
    std::iota(up.begin(), up.end(), 0);
    auto root = [&](int v) {
        while (up[v] != v) v = up[v] = up[up[v]];
        return v;
    };
    for (uint64_t key : keys) {
        auto number = size_t(key & 0xffffffffu);
        int a = root(g.ends[number].first), b = root(g.ends[number].second);
        if (a == b) continue;
        up[a] = b;
        in_forest[number] = 1;
    }
    return in_forest;
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
    const size_t edges = graph.ends.size();

    // Every vertex launches once in a round, and launches beyond the limit are lost.
    const int pending = options.pending > 0 ? options.pending : std::max(2 * n, 2048);
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, pending));

    DeviceGraph g;
    g.n = n;
    CHECK(cudaMalloc(&g.row, graph.row.size() * sizeof(int)));
    CHECK(cudaMalloc(&g.col, std::max<size_t>(2 * edges, 1) * sizeof(int)));
    CHECK(cudaMalloc(&g.key, std::max<size_t>(2 * edges, 1) * sizeof(Key)));
    CHECK(cudaMalloc(&g.ends, std::max<size_t>(edges, 1) * sizeof(int2)));
    CHECK(cudaMalloc(&g.in_forest, std::max<size_t>(edges, 1) * sizeof(int)));
    CHECK(cudaMalloc(&g.label, n * sizeof(int)));
    CHECK(cudaMalloc(&g.joins, n * sizeof(int)));
    CHECK(cudaMalloc(&g.lightest, n * sizeof(Key)));
    CHECK(cudaMalloc(&g.last_round, sizeof(int)));
    CHECK(cudaMallocHost(&g.last_round_host, sizeof(int)));
    CHECK(cudaMemcpy(g.row, graph.row.data(), graph.row.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(g.col, graph.col.data(), 2 * edges * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(g.key, graph.key.data(), 2 * edges * sizeof(Key), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(g.ends, graph.ends.data(), edges * sizeof(int2), cudaMemcpyHostToDevice));

    cudaStream_t stream;
    cudaEvent_t begin, end;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));

    std::vector<int> expected = forest_on_cpu(graph), in_forest(edges);
    std::vector<float> times;
    bool pass = true;
    for (int i = 0; i <= options.repeat; ++i) {   // the first round warms up
        CHECK(cudaMemset(g.in_forest, 0, edges * sizeof(int)));
        CHECK(cudaMemset(g.last_round, 0, sizeof(int)));
        *g.last_round_host = 0;
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(begin, stream));
        forest(g, options.variant == "serial", options.threads, stream);
        CHECK(cudaEventRecord(end, stream));
        CHECK(cudaEventSynchronize(end));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        if (i > 0) times.push_back(ms);
        CHECK(cudaMemcpy(in_forest.data(), g.in_forest, edges * sizeof(int), cudaMemcpyDeviceToHost));
        pass = pass && in_forest == expected;
    }
    report("mstf", options, graph, times, pass, in_forest);
    CHECK(cudaDeviceSynchronize());
    return pass ? 0 : 1;
}
