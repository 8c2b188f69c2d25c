// Shortest paths from one vertex, by rounds of relaxation (Bellman-Ford over the vertices whose
// distance has changed). Such a vertex launches a grid over its edges.
//
//   sssp [--input tree|rmat|uniform|road] [--variant serial|naive] [--vertices N] [--repeat N]
//       [--threads N] [--pending N] [--label TEXT]
//
// Makes its own graph, compares with Dijkstra's algorithm on the CPU and prints one line of JSON.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <queue>
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

constexpr int kUnreached = 1 << 30;

// ---------------------------------------------------------------------------------------- kernels

// Relaxes the `count` edges from `begin` on, of a vertex at distance `base`.
__global__ void relax(const int* col, const int* weight, int* dist, char* active_next, int* last_round, int round,
                      int base, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        int v = col[begin + i];
        int next = base + weight[begin + i];
        if (next < dist[v] && next < atomicMin(&dist[v], next)) {
            active_next[v] = 1;
            *last_round = round + 1;
        }
    }
}

__global__ void sssp_round(const int* row, const int* col, const int* weight, int* dist, char* active, char* active_next,
                           int* last_round, int round, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || !active[v]) return;
    active[v] = 0;
    int base = dist[v];
    int begin = row[v];
    int count = row[v + 1] - begin;
    if (count > 0) {
        relax<<<(count + 127) / 128, 128>>>(col, weight, dist, active_next, last_round, round, base, begin, count);
    }
}

__global__ void sssp_round_serial(const int* row, const int* col, const int* weight, int* dist, char* active,
                                  char* active_next, int* last_round, int round, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || !active[v]) return;
    active[v] = 0;
    int base = dist[v];
    for (int i = row[v]; i < row[v + 1]; ++i) {
        int u = col[i];
        int next = base + weight[i];
        if (next < dist[u] && next < atomicMin(&dist[u], next)) {
            active_next[u] = 1;
            *last_round = round + 1;
        }
    }
}

// Writes a number into the host's memory: sooner there than by a copy.
__global__ void publish(const int* from, int* to) { *to = *from; }

// ----------------------------------------------------------------------------------------- graphs

struct Graph {
    std::vector<int> row, col, weight;   // the edges of vertex v are row[v] .. row[v + 1] - 1
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

// Every vertex has 1000 children, as far as there are vertices; edges go both ways.
Edges tree_edges(int n) {
    Edges edges;
    for (int v = 1; v < n; ++v) {
        edges.push_back({(v - 1) / 1000, v});
        edges.push_back({v, (v - 1) / 1000});
    }
    return edges;
}

// Every edge goes anywhere; 16 for each vertex.
Edges uniform_edges(int n, Random& random) {
    Edges edges;
    for (int v = 0; v < n; ++v)
        for (int i = 0; i < 16; ++i) edges.push_back({v, random.below(n)});
    return edges;
}

// A power-law graph (R-MAT with 57, 19, 19 and 5 %); 8 edges for each vertex, both ways.
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
        edges.push_back({to % n, from % n});
    }
    return edges;
}

// A grid of streets: every twentieth is closed, and now and then there is a short cut.
Edges road_edges(int n, Random& random) {
    int side = 1;
    while ((side + 1) * (side + 1) <= n) ++side;
    Edges edges;
    auto both_ways = [&](int a, int b) {
        if (a >= n || b >= n) return;
        edges.push_back({a, b});
        edges.push_back({b, a});
    };
    for (int v = 0; v < n; ++v) {
        if ((v + 1) % side != 0 && random.below(20) != 0) both_ways(v, v + 1);
        if (random.below(20) != 0) both_ways(v, v + side);
        if (random.below(50) == 0) both_ways(v, v + 2 * side + 1);
    }
    return edges;
}

Graph make_graph(const std::string& input, int vertices) {
    Random random{42};
    if (vertices <= 0) vertices = input == "tree" ? 10001 : 16384;
    Edges edges;
    if (input == "tree") edges = tree_edges(vertices);
    else if (input == "uniform") edges = uniform_edges(vertices, random);
    else if (input == "rmat") edges = rmat_edges(vertices, random);
    else if (input == "road") edges = road_edges(vertices, random);
    else {
        std::fprintf(stderr, "no such input: %s\n", input.c_str());
        std::exit(2);
    }
    Graph graph;
    graph.row.assign(vertices + 1, 0);
    for (auto& edge : edges) ++graph.row[edge.first + 1];
    for (int v = 0; v < vertices; ++v) graph.row[v + 1] += graph.row[v];
    graph.col.resize(edges.size());
    graph.weight.resize(edges.size());
    std::vector<int> next(graph.row.begin(), graph.row.end() - 1);
    for (auto& edge : edges) {
        int at = next[edge.first]++;
        graph.col[at] = edge.second;
        graph.weight[at] = 1 + random.below(100);
    }
    return graph;
}

// --------------------------------------------------------------------------------------- the search

struct Options {
    std::string input = "rmat", variant = "naive", label;
    int vertices = 0, repeat = 5, threads = 256, pending = 0;
};

struct DeviceGraph {
    int *row, *col, *weight, *dist;
    char* active[2];       // whose distance has changed: in this round, and for the next
    int* last_round;       // the last round that has something to do
    int* last_round_host;  // the same, as the host last saw it
    int n;
};

void relax_all(const DeviceGraph& g, bool serial, int threads, cudaStream_t stream) {
    int blocks = (g.n + threads - 1) / threads;
    for (int round = 0; *g.last_round_host == round; ++round) {
        char* active = g.active[round % 2];
        char* next = g.active[(round + 1) % 2];
        if (serial)
            sssp_round_serial<<<blocks, threads, 0, stream>>>(g.row, g.col, g.weight, g.dist, active, next, g.last_round, round, g.n);
        else
            sssp_round<<<blocks, threads, 0, stream>>>(g.row, g.col, g.weight, g.dist, active, next, g.last_round, round, g.n);
        CHECK(cudaGetLastError());
        publish<<<1, 1, 0, stream>>>(g.last_round, g.last_round_host);
        CHECK(cudaGetLastError());
        CHECK(cudaStreamSynchronize(stream));
    }
}

std::vector<int> shortest_on_cpu(const Graph& g) {
    using Entry = std::pair<int, int>;   // distance, vertex
    std::vector<int> dist(g.n(), kUnreached);
    std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue;
    dist[0] = 0;
    queue.push({0, 0});
    while (!queue.empty()) {
        Entry entry = queue.top();
        queue.pop();
        int v = entry.second;
        if (entry.first > dist[v]) continue;
        for (int i = g.row[v]; i < g.row[v + 1]; ++i) {
            int next = dist[v] + g.weight[i];
            if (next < dist[g.col[i]]) {
                dist[g.col[i]] = next;
                queue.push({next, g.col[i]});
            }
        }
    }
    return dist;
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

    // Every vertex may launch once in a round, and launches beyond the limit are lost.
    const int pending = options.pending > 0 ? options.pending : std::max(2 * n, 2048);
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, pending));

    DeviceGraph g;
    g.n = n;
    CHECK(cudaMalloc(&g.row, graph.row.size() * sizeof(int)));
    CHECK(cudaMalloc(&g.col, std::max<size_t>(graph.col.size(), 1) * sizeof(int)));
    CHECK(cudaMalloc(&g.weight, std::max<size_t>(graph.col.size(), 1) * sizeof(int)));
    CHECK(cudaMalloc(&g.dist, n * sizeof(int)));
    CHECK(cudaMalloc(&g.active[0], n));
    CHECK(cudaMalloc(&g.active[1], n));
    CHECK(cudaMalloc(&g.last_round, sizeof(int)));
    CHECK(cudaMallocHost(&g.last_round_host, sizeof(int)));
    CHECK(cudaMemcpy(g.row, graph.row.data(), graph.row.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(g.col, graph.col.data(), graph.col.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(g.weight, graph.weight.data(), graph.weight.size() * sizeof(int), cudaMemcpyHostToDevice));

    cudaStream_t stream;
    cudaEvent_t start, stop;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));

    std::vector<int> first(n, kUnreached), expected = shortest_on_cpu(graph), dist(n);
    first[0] = 0;
    std::vector<float> times;
    bool pass = true;
    for (int i = 0; i <= options.repeat; ++i) {   // the first round warms up
        CHECK(cudaMemcpy(g.dist, first.data(), n * sizeof(int), cudaMemcpyHostToDevice));
        CHECK(cudaMemset(g.active[0], 0, n));
        CHECK(cudaMemset(g.active[1], 0, n));
        CHECK(cudaMemset(g.active[0], 1, 1));
        CHECK(cudaMemset(g.last_round, 0, sizeof(int)));
        *g.last_round_host = 0;
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(start, stream));
        relax_all(g, options.variant == "serial", options.threads, stream);
        CHECK(cudaEventRecord(stop, stream));
        CHECK(cudaEventSynchronize(stop));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (i > 0) times.push_back(ms);
        CHECK(cudaMemcpy(dist.data(), g.dist, n * sizeof(int), cudaMemcpyDeviceToHost));
        pass = pass && dist == expected;
    }
    report("sssp", options, graph, times, pass, dist);
    CHECK(cudaDeviceSynchronize());
    return pass ? 0 : 1;
}
