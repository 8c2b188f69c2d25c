// What the hand-written baselines share: the graphs, the command line and the report of the corpus programs.
#pragma once

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

struct Options {
    std::string input = "rmat", variant = "klap-block", label;
    int vertices = 0, repeat = 5, threads = 256, pending = 0;
};

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
    if (options.variant != "klap-block" && options.variant != "klap-grid") {
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

// ------------------------------------------------------------------------------------ aggregation

// Exclusive sum of `value` over the block, for all threads of the block; `total` is the whole sum.
__device__ inline unsigned long long block_scan(unsigned long long value, unsigned long long& total) {
    __shared__ unsigned long long warp_sums[32];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
    unsigned long long sum = value;
    for (unsigned step = 1; step < 32; step *= 2) {
        unsigned long long other = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += other;
    }
    if (lane == 31) warp_sums[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        unsigned long long of_warp = lane < warps ? warp_sums[lane] : 0;
        for (unsigned step = 1; step < 32; step *= 2) {
            unsigned long long other = __shfl_up_sync(~0u, of_warp, step);
            if (lane >= step) of_warp += other;
        }
        warp_sums[lane] = of_warp;
    }
    __syncthreads();
    total = warp_sums[warps - 1];
    return sum - value + (warp > 0 ? warp_sums[warp - 1] : 0);
}

// The last parent whose first block is not behind `block`.
__device__ inline int find_parent(const int* first_block, int parents, int block) {
    int low = 0, high = parents;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (first_block[middle] <= block) low = middle;
        else high = middle;
    }
    return low;
}

// State of a whole-grid aggregation; the last block of the grid leaves it as it was before.
struct GridState {
    unsigned long long cursor;   // parents (upper half) and blocks (lower half)
    unsigned blocks_done;
};
