// Graph colouring (Jones and Plassmann): the vertices have random priorities, and each takes the first colour that no neighbour
// of higher priority has, as soon as all of these have one. Such a vertex launches a grid over the edges to the others.
//
//   gc [--input rmat|uniform] [--variant serial|naive] [--vertices N] [--repeat N]
//       [--threads N] [--pending N] [--label TEXT]
//
// Makes its own graph, compares with a greedy colouring on the CPU and prints one line of JSON.

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

// The first colour that is not taken.
__device__ int first_free(const unsigned* taken) {
    int word = 0;
    while (taken[word] == ~0u) ++word;
    return word * 32 + __ffs(~taken[word]) - 1;
}

// Tells the `count` vertices from `begin` on, neighbours of lower priority, that the colour `own` is taken. A vertex
// with k neighbours of higher priority never needs more than the first k + 1 colours.
__global__ void announce(const int* col, const int* taken_row, unsigned* taken, int* waits_for, char* ready_next,
                         int* last_round, int round, int own, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        int u = col[begin + i];
        int word = taken_row[u] + own / 32;
        if (word < taken_row[u + 1]) atomicOr(&taken[word], 1u << own % 32);
        if (atomicSub(&waits_for[u], 1) == 1) {
            ready_next[u] = 1;
            atomicMax(last_round, round + 1);
        }
    }
}

__global__ void gc_round(const int* row, const int* col, const int* taken_row, unsigned* taken, int* waits_for, int* color,
                         char* ready, char* ready_next, int* last_round, int round, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || !ready[v]) return;
    ready[v] = 0;
    int own = first_free(taken + taken_row[v]);
    color[v] = own;
    int begin = row[v];
    int count = row[v + 1] - begin;
    if (count > 0) {
        announce<<<(count + 127) / 128, 128>>>(col, taken_row, taken, waits_for, ready_next, last_round, round, own, begin, count);
    }
}

__global__ void gc_round_serial(const int* row, const int* col, const int* taken_row, unsigned* taken, int* waits_for,
                                int* color, char* ready, char* ready_next, int* last_round, int round, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || !ready[v]) return;
    ready[v] = 0;
    int own = first_free(taken + taken_row[v]);
    color[v] = own;
    for (int i = row[v]; i < row[v + 1]; ++i) {
        int u = col[i];
        int word = taken_row[u] + own / 32;
        if (word < taken_row[u + 1]) atomicOr(&taken[word], 1u << own % 32);
        if (atomicSub(&waits_for[u], 1) == 1) {
            ready_next[u] = 1;
            atomicMax(last_round, round + 1);
        }
    }
}

// Writes a number into the host's memory: sooner there than by a copy.
__global__ void publish(const int* from, int* to) { *to = *from; }

// ----------------------------------------------------------------------------------------- graphs

struct Graph {
    std::vector<int> row, col;    // the neighbours of lower priority of vertex v are col[row[v]] .. col[row[v + 1] - 1]
    std::vector<int> waits_for;   // the number of neighbours of higher priority
    std::vector<int> taken_row;   // where the colours that v can't have are marked: words of 32 bits
    std::vector<std::pair<uint64_t, int>> order;   // priorities and vertices, the highest first
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
    Graph graph;
    std::vector<uint64_t> priority(vertices);
    for (int v = 0; v < vertices; ++v) {
        priority[v] = random.next();
        graph.order.push_back({priority[v], v});
    }
    std::sort(graph.order.rbegin(), graph.order.rend());

    // Each edge once, from the higher priority to the lower one.
    for (auto& edge : edges)
        if (priority[edge.first] < priority[edge.second]) std::swap(edge.first, edge.second);
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    graph.row.assign(vertices + 1, 0);
    graph.waits_for.assign(vertices, 0);
    graph.taken_row.assign(vertices + 1, 0);
    for (auto& edge : edges) {
        if (edge.first == edge.second) continue;
        ++graph.row[edge.first + 1];
        ++graph.waits_for[edge.second];
        graph.col.push_back(edge.second);
    }
    for (int v = 0; v < vertices; ++v) {
        graph.row[v + 1] += graph.row[v];
        graph.taken_row[v + 1] = graph.taken_row[v] + graph.waits_for[v] / 32 + 1;
    }
    return graph;
}

// ------------------------------------------------------------------------------------- the rounds

struct Options {
    std::string input = "rmat", variant = "naive", label;
    int vertices = 0, repeat = 5, threads = 256, pending = 0;
};

struct DeviceGraph {
    int *row, *col, *waits_for, *taken_row, *color;
    unsigned* taken;
    char* ready[2];        // which vertices can take a colour: in this round, and in the next
    int* last_round;       // the last round that has something to do
    int* last_round_host;  // the same, as the host last saw it
    int n;
};

void color_all(const DeviceGraph& g, bool serial, int threads, cudaStream_t stream) {
    int blocks = (g.n + threads - 1) / threads;
    for (int round = 0; *g.last_round_host == round; ++round) {
        char* ready = g.ready[round % 2];
        char* next = g.ready[(round + 1) % 2];
        if (serial)
            gc_round_serial<<<blocks, threads, 0, stream>>>(g.row, g.col, g.taken_row, g.taken, g.waits_for, g.color, ready, next,
                                                            g.last_round, round, g.n);
        else
            gc_round<<<blocks, threads, 0, stream>>>(g.row, g.col, g.taken_row, g.taken, g.waits_for, g.color, ready, next,
                                                     g.last_round, round, g.n);
        CHECK(cudaGetLastError());
        publish<<<1, 1, 0, stream>>>(g.last_round, g.last_round_host);
        CHECK(cudaGetLastError());
        CHECK(cudaStreamSynchronize(stream));
    }
}

std::vector<int> colors_on_cpu(const Graph& g) {
    std::vector<std::vector<int>> taken(g.n());
    std::vector<int> color(g.n());
    for (auto& entry : g.order) {
        int v = entry.second;
        std::sort(taken[v].begin(), taken[v].end());
        int own = 0;
        for (int other : taken[v]) own += other == own;
        color[v] = own;
        for (int i = g.row[v]; i < g.row[v + 1]; ++i) taken[g.col[i]].push_back(own);
    }
    return color;
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

    // Every vertex launches once at most, and launches beyond the limit are lost.
    const int pending = options.pending > 0 ? options.pending : std::max(2 * n, 2048);
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, pending));

    DeviceGraph g;
    g.n = n;
    const size_t taken_bytes = graph.taken_row[n] * sizeof(unsigned);
    CHECK(cudaMalloc(&g.row, graph.row.size() * sizeof(int)));
    CHECK(cudaMalloc(&g.col, std::max<size_t>(graph.col.size(), 1) * sizeof(int)));
    CHECK(cudaMalloc(&g.waits_for, n * sizeof(int)));
    CHECK(cudaMalloc(&g.taken_row, graph.taken_row.size() * sizeof(int)));
    CHECK(cudaMalloc(&g.taken, taken_bytes));
    CHECK(cudaMalloc(&g.color, n * sizeof(int)));
    CHECK(cudaMalloc(&g.ready[0], n));
    CHECK(cudaMalloc(&g.ready[1], n));
    CHECK(cudaMalloc(&g.last_round, sizeof(int)));
    CHECK(cudaMallocHost(&g.last_round_host, sizeof(int)));
    CHECK(cudaMemcpy(g.row, graph.row.data(), graph.row.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(g.col, graph.col.data(), graph.col.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(g.taken_row, graph.taken_row.data(), graph.taken_row.size() * sizeof(int), cudaMemcpyHostToDevice));

    cudaStream_t stream;
    cudaEvent_t start, stop;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));

    std::vector<char> ready(n);
    for (int v = 0; v < n; ++v) ready[v] = graph.waits_for[v] == 0;
    std::vector<int> expected = colors_on_cpu(graph), color(n);
    std::vector<float> times;
    bool pass = true;
    for (int i = 0; i <= options.repeat; ++i) {   // the first round warms up
        CHECK(cudaMemcpy(g.waits_for, graph.waits_for.data(), n * sizeof(int), cudaMemcpyHostToDevice));
        CHECK(cudaMemset(g.taken, 0, taken_bytes));
        CHECK(cudaMemset(g.color, 0xff, n * sizeof(int)));
        CHECK(cudaMemcpy(g.ready[0], ready.data(), n, cudaMemcpyHostToDevice));
        CHECK(cudaMemset(g.ready[1], 0, n));
        CHECK(cudaMemset(g.last_round, 0, sizeof(int)));
        *g.last_round_host = 0;
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(start, stream));
        color_all(g, options.variant == "serial", options.threads, stream);
        CHECK(cudaEventRecord(stop, stream));
        CHECK(cudaEventSynchronize(stop));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (i > 0) times.push_back(ms);
        CHECK(cudaMemcpy(color.data(), g.color, n * sizeof(int), cudaMemcpyDeviceToHost));
        pass = pass && color == expected;
    }
    report("gc", options, graph, times, pass, color);
    CHECK(cudaDeviceSynchronize());
    return pass ? 0 : 1;
}
