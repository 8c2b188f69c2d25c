// Verification of a minimum spanning forest: no edge may be lighter than the heaviest one on the forest's path between its ends.
// Counts for each vertex its edges that are. A vertex launches a grid over its edges.
//
//   mstv [--input rmat|uniform] [--variant serial|naive] [--vertices N] [--repeat N]
//       [--threads N] [--pending N] [--label TEXT]
//
// Makes its own graph and a forest that is wrong here and there, compares with the CPU and prints one line of JSON.

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

// ---------------------------------------------------------------------------------------- kernels

struct Node {   // of the forest
    int up;       // the next vertex towards the root; the root itself at a root
    int weight;   // of the edge to it
    int depth;
};

// The weight of the heaviest edge between two vertices of one tree.
__device__ int heaviest(const Node* nodes, int a, int b) {
    int most = 0;
    while (a != b) {
        if (nodes[a].depth < nodes[b].depth) {
            int c = a;
            a = b;
            b = c;
        }
        most = max(most, nodes[a].weight);
        a = nodes[a].up;
    }
    return most;
}

// Checks the `count` edges from `begin` on, of vertex v. Each edge is there twice, and looked at from its smaller end.
__global__ void check(const int* col, const int* weight, const Node* nodes, int* too_light, int v, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        int u = col[begin + i];
        if (v < u && weight[begin + i] < heaviest(nodes, v, u)) atomicAdd(&too_light[v], 1);
    }
}

__global__ void verify(const int* row, const int* col, const int* weight, const Node* nodes, int* too_light, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v];
    int count = row[v + 1] - begin;
    if (count > 0) check<<<(count + 127) / 128, 128>>>(col, weight, nodes, too_light, v, begin, count);
}

__global__ void verify_serial(const int* row, const int* col, const int* weight, const Node* nodes, int* too_light, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int found = 0;
    for (int i = row[v]; i < row[v + 1]; ++i) {
        int u = col[i];
        if (v < u && weight[i] < heaviest(nodes, v, u)) ++found;
    }
    too_light[v] = found;
}

// ----------------------------------------------------------------------------------------- graphs

struct Graph {
    std::vector<int> row, col, weight;   // the edges of vertex v are row[v] .. row[v + 1] - 1
    std::vector<std::pair<int, int>> ends;   // of each edge once
    std::vector<int> weights;                // of these
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
    if (vertices <= 0) vertices = 16384;
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
    graph.weight.resize(2 * graph.ends.size());
    std::vector<int> next(graph.row.begin(), graph.row.end() - 1);
    for (size_t number = 0; number < graph.ends.size(); ++number) {
        int a = graph.ends[number].first, b = graph.ends[number].second;
        int weight = 1 + random.below(100000);
        graph.weights.push_back(weight);
        graph.col[next[a]] = b;
        graph.weight[next[a]++] = weight;
        graph.col[next[b]] = a;
        graph.weight[next[b]++] = weight;
    }
    return graph;
}

using Forest = std::vector<char>;   // which edges are in it

// Kruskal's algorithm, with a mistake now and then: some edges come too early.
Forest make_forest(const Graph& g) {
    Random random{7};
    std::vector<std::pair<int, int>> order;
    for (size_t number = 0; number < g.ends.size(); ++number)
        order.push_back({random.below(200) == 0 ? 0 : g.weights[number], int(number)});
    std::sort(order.begin(), order.end());
    Forest forest(g.ends.size());
    std::vector<int> up(g.n());
    std::iota(up.begin(), up.end(), 0);
    auto root = [&](int v) {
        while (up[v] != v) v = up[v] = up[up[v]];
        return v;
    };
    for (auto& entry : order) {
        auto& ends = g.ends[entry.second];
        int a = root(ends.first), b = root(ends.second);
        if (a == b) continue;
        up[a] = b;
        forest[entry.second] = 1;
    }
    return forest;
}

// Hangs up every tree at its smallest vertex.
std::vector<Node> make_nodes(const Graph& g, const Forest& forest) {
    std::vector<std::vector<std::pair<int, int>>> neighbours(g.n());
    for (size_t number = 0; number < g.ends.size(); ++number) {
        if (!forest[number]) continue;
        neighbours[g.ends[number].first].push_back({g.ends[number].second, g.weights[number]});
        neighbours[g.ends[number].second].push_back({g.ends[number].first, g.weights[number]});
    }
    std::vector<Node> nodes(g.n(), Node{-1, 0, 0});
    std::vector<int> reached;
    for (int v = 0; v < g.n(); ++v) {
        if (nodes[v].up >= 0) continue;
        nodes[v].up = v;
        reached.push_back(v);
        while (!reached.empty()) {
            int from = reached.back();
            reached.pop_back();
            for (auto& neighbour : neighbours[from]) {
                if (nodes[neighbour.first].up >= 0) continue;
                nodes[neighbour.first] = Node{from, neighbour.second, nodes[from].depth + 1};
                reached.push_back(neighbour.first);
            }
        }
    }
    return nodes;
}

// --------------------------------------------------------------------------------- the verification

struct Options {
    std::string input = "rmat", variant = "naive", label;
    int vertices = 0, repeat = 5, threads = 256, pending = 0;
};

struct DeviceGraph {
    int *row, *col, *weight;
    Node* nodes;
    int* too_light;   // for each vertex, the edges to larger vertices that belong into the forest but aren't there
    int n;
};

void verify_all(const DeviceGraph& g, bool serial, int threads, cudaStream_t stream) {
    int blocks = (g.n + threads - 1) / threads;
    if (serial)
        verify_serial<<<blocks, threads, 0, stream>>>(g.row, g.col, g.weight, g.nodes, g.too_light, g.n);
    else
        verify<<<blocks, threads, 0, stream>>>(g.row, g.col, g.weight, g.nodes, g.too_light, g.n);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
}

// The forest's edges join sets of vertices, the lightest ones first. When one joins the sets of an edge's ends, it is the heaviest
// on the path between them.
std::vector<int> too_light_on_cpu(const Graph& g, const Forest& forest) {
    std::vector<std::pair<int, int>> order;
    for (size_t number = 0; number < g.ends.size(); ++number)
        if (forest[number]) order.push_back({g.weights[number], int(number)});
    std::sort(order.begin(), order.end());
    std::vector<int> too_light(g.n()), set(g.n());
    std::vector<std::vector<int>> members(g.n());
    for (int v = 0; v < g.n(); ++v) {
        set[v] = v;
        members[v] = {v};
    }
    for (auto& entry : order) {
        int few = set[g.ends[entry.second].first], many = set[g.ends[entry.second].second];
        if (members[few].size() > members[many].size()) std::swap(few, many);
        for (int v : members[few])
            for (int i = g.row[v]; i < g.row[v + 1]; ++i)
                if (set[g.col[i]] == many && g.weight[i] < entry.first) ++too_light[std::min(v, g.col[i])];
        for (int v : members[few]) set[v] = many;
        members[many].insert(members[many].end(), members[few].begin(), members[few].end());
        members[few].clear();
    }
    return too_light;
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
    Forest forest = make_forest(graph);
    std::vector<Node> nodes = make_nodes(graph, forest);
    const int n = graph.n();

    // Every vertex launches once at most, and launches beyond the limit are lost.
    const int pending = options.pending > 0 ? options.pending : std::max(2 * n, 2048);
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, pending));

    DeviceGraph g;
    g.n = n;
    const size_t edge_bytes = graph.col.size() * sizeof(int);
    CHECK(cudaMalloc(&g.row, graph.row.size() * sizeof(int)));
    CHECK(cudaMalloc(&g.col, std::max<size_t>(edge_bytes, 1)));
    CHECK(cudaMalloc(&g.weight, std::max<size_t>(edge_bytes, 1)));
    CHECK(cudaMalloc(&g.nodes, n * sizeof(Node)));
    CHECK(cudaMalloc(&g.too_light, n * sizeof(int)));
    CHECK(cudaMemcpy(g.row, graph.row.data(), graph.row.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(g.col, graph.col.data(), edge_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(g.weight, graph.weight.data(), edge_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(g.nodes, nodes.data(), n * sizeof(Node), cudaMemcpyHostToDevice));

    cudaStream_t stream;
    cudaEvent_t start, stop;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));

    std::vector<int> expected = too_light_on_cpu(graph, forest), too_light(n);
    std::vector<float> times;
    bool pass = true;
    for (int i = 0; i <= options.repeat; ++i) {   // the first round warms up
        CHECK(cudaMemset(g.too_light, 0, n * sizeof(int)));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(start, stream));
        verify_all(g, options.variant == "serial", options.threads, stream);
        CHECK(cudaEventRecord(stop, stream));
        CHECK(cudaEventSynchronize(stop));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (i > 0) times.push_back(ms);
        CHECK(cudaMemcpy(too_light.data(), g.too_light, n * sizeof(int), cudaMemcpyDeviceToHost));
        pass = pass && too_light == expected;
    }
    report("mstv", options, graph, times, pass, too_light);
    CHECK(cudaDeviceSynchronize());
    return pass ? 0 : 1;
}
