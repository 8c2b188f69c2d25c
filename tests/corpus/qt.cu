// Quadtree over points: a node with more points than a leaf may hold gets four children, and its points are sorted by them.
// serial and naive build the tree level by level: first the points in each quadrant of each node are counted, then they are moved.
// A node launches a grid over its points for either. recursive: a block builds a node, and launches its kernel again for the
// children.
//
//   qt [--input skewed|flat] [--variant serial|naive|recursive] [--points N] [--roots N] [--repeat N]
//       [--threads N] [--pending N] [--label TEXT]
//
// Makes its own points, compares with the CPU and prints one line of JSON.

#include <algorithm>
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

constexpr int kLeafPoints = 32;
constexpr int kMostLevels = 12;
constexpr int kSide = 1 << 16;   // coordinates are 0 .. kSide - 1

// ---------------------------------------------------------------------------------------- kernels

struct Node {
    int x, y, size;      // the square that it covers
    int begin, count;    // its points
    int children;        // the first of four, or -1
};

__host__ __device__ inline bool is_inner(const Node& node) { return node.count > kLeafPoints && node.size > kSide >> kMostLevels; }

__host__ __device__ inline int quadrant(const Node& node, int2 point) {
    int half = node.size / 2;
    return (point.x >= node.x + half) + 2 * (point.y >= node.y + half);
}

// Child q of a node, with `count` points from `begin` on.
__host__ __device__ inline Node child_of(const Node& node, int q, int begin, int count) {
    int half = node.size / 2;
    return Node{node.x + q % 2 * half, node.y + q / 2 * half, half, begin, count, -1};
}

// Counts a node's points by quadrants.
__global__ void count_points(const int2* points, const Node* nodes, int* counts, int which, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        Node node = nodes[which];
        atomicAdd(&counts[4 * which + quadrant(node, points[node.begin + i])], 1);
    }
}

__global__ void count_level(const int2* points, const Node* nodes, int* counts, int first, int last) {
    int which = first + blockIdx.x * blockDim.x + threadIdx.x;
    if (which >= last || !is_inner(nodes[which])) return;
    int count = nodes[which].count;
    count_points<<<(count + 127) / 128, 128>>>(points, nodes, counts, which, count);
}

__global__ void count_level_serial(const int2* points, const Node* nodes, int* counts, int first, int last) {
    int which = first + blockIdx.x * blockDim.x + threadIdx.x;
    if (which >= last || !is_inner(nodes[which])) return;
    Node node = nodes[which];
    int found[4] = {0, 0, 0, 0};
    for (int i = node.begin; i < node.begin + node.count; ++i) ++found[quadrant(node, points[i])];
    for (int q = 0; q < 4; ++q) counts[4 * which + q] = found[q];
}

// Makes the children of a level's nodes. `next` says where the next point of each of them goes to.
__global__ void make_children(Node* nodes, int* total, const int* counts, int* next, int first, int last) {
    int which = first + blockIdx.x * blockDim.x + threadIdx.x;
    if (which >= last || !is_inner(nodes[which])) return;
    int children = atomicAdd(total, 4);
    nodes[which].children = children;
    int begin = nodes[which].begin;
    for (int q = 0; q < 4; ++q) {
        nodes[children + q] = child_of(nodes[which], q, begin, counts[4 * which + q]);
        next[4 * which + q] = begin;
        begin += counts[4 * which + q];
    }
}

// Moves a node's points to its children.
__global__ void move_points(const int2* from, int2* to, const Node* nodes, int* next, int which, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        Node node = nodes[which];
        int2 point = from[node.begin + i];
        to[atomicAdd(&next[4 * which + quadrant(node, point)], 1)] = point;
    }
}

__global__ void move_level(const int2* from, int2* to, const Node* nodes, int* next, int first, int last) {
    int which = first + blockIdx.x * blockDim.x + threadIdx.x;
    if (which >= last || !is_inner(nodes[which])) return;
    int count = nodes[which].count;
    move_points<<<(count + 127) / 128, 128>>>(from, to, nodes, next, which, count);
}

__global__ void move_level_serial(const int2* from, int2* to, const Node* nodes, int* next, int first, int last) {
    int which = first + blockIdx.x * blockDim.x + threadIdx.x;
    if (which >= last || !is_inner(nodes[which])) return;
    Node node = nodes[which];
    for (int i = node.begin; i < node.begin + node.count; ++i) {
        int2 point = from[i];
        to[next[4 * which + quadrant(node, point)]++] = point;
    }
}

// Builds the tree below some nodes, a block for each. Its threads count and move the points, and one of them launches the
// next level.
__global__ void build(int2* points, int2* other, Node* nodes, int* total, int first) {
    __shared__ int counts[4], next[4], children;
    int which = first + blockIdx.x;
    Node node = nodes[which];
    if (!__syncthreads_or(is_inner(node))) return;
    if (threadIdx.x < 4) counts[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < node.count; i += blockDim.x) atomicAdd(&counts[quadrant(node, points[node.begin + i])], 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        children = atomicAdd(total, 4);
        nodes[which].children = children;
        int begin = node.begin;
        for (int q = 0; q < 4; ++q) {
            nodes[children + q] = child_of(node, q, begin, counts[q]);
            next[q] = begin;
            begin += counts[q];
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < node.count; i += blockDim.x) {
        int2 point = points[node.begin + i];
        other[atomicAdd(&next[quadrant(node, point)], 1)] = point;
    }
    __syncthreads();
    if (threadIdx.x == 0) build<<<4, blockDim.x>>>(other, points, nodes, total, children);
}

// Makes the root.
__global__ void plant(Node* nodes, int* total, int count) {
    nodes[0] = Node{0, 0, kSide, 0, count, -1};
    *total = 1;
}

// Writes a number into the host's memory: sooner there than by a copy.
__global__ void publish(const int* from, int* to) { *to = *from; }

// ----------------------------------------------------------------------------------------- points

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

// flat: anywhere. skewed: half of them in a sixteenth of the square's side, half of these in a sixteenth of that, and so on.
std::vector<int2> make_points(const std::string& input, int count) {
    if (input != "skewed" && input != "flat") {
        std::fprintf(stderr, "no such input: %s\n", input.c_str());
        std::exit(2);
    }
    Random random{42};
    std::vector<int2> points(count > 0 ? count : 1 << 18);
    for (int2& point : points) {
        int side = kSide;
        if (input == "skewed")
            while (side > 16 && random.below(2) == 0) side /= 16;
        point = {random.below(side), random.below(side)};
    }
    return points;
}

// --------------------------------------------------------------------------------------- the tree

struct Options {
    std::string input = "skewed", variant = "naive", label;
    int points = 0, roots = 1, repeat = 5, threads = 128, pending = 0;
};

struct DeviceTree {
    int2* points[2];   // nodes of even depth have theirs in the first, others in the second
    Node* nodes;
    int *counts, *next;   // four for each node
    int* total;           // the number of nodes
    int* total_host;      // the same, as the host last saw it
    int points_count;
};

void build_tree(const DeviceTree& t, const std::string& variant, int threads, cudaStream_t stream) {
    plant<<<1, 1, 0, stream>>>(t.nodes, t.total, t.points_count);
    CHECK(cudaGetLastError());
    if (variant == "recursive") {
        build<<<1, threads, 0, stream>>>(t.points[0], t.points[1], t.nodes, t.total, 0);
        CHECK(cudaGetLastError());
        CHECK(cudaStreamSynchronize(stream));
        return;
    }
    int first = 0, last = 1;
    for (int level = 0; first < last; ++level) {
        const int2* from = t.points[level % 2];
        int2* to = t.points[(level + 1) % 2];
        int blocks = (last - first + threads - 1) / threads;
        if (variant == "serial")
            count_level_serial<<<blocks, threads, 0, stream>>>(from, t.nodes, t.counts, first, last);
        else
            count_level<<<blocks, threads, 0, stream>>>(from, t.nodes, t.counts, first, last);
        CHECK(cudaGetLastError());
        make_children<<<blocks, threads, 0, stream>>>(t.nodes, t.total, t.counts, t.next, first, last);
        CHECK(cudaGetLastError());
        if (variant == "serial")
            move_level_serial<<<blocks, threads, 0, stream>>>(from, to, t.nodes, t.next, first, last);
        else
            move_level<<<blocks, threads, 0, stream>>>(from, to, t.nodes, t.next, first, last);
        CHECK(cudaGetLastError());
        publish<<<1, 1, 0, stream>>>(t.total, t.total_host);
        CHECK(cudaGetLastError());
        CHECK(cudaStreamSynchronize(stream));
        first = last;
        last = *t.total_host;
    }
}

// The same for several roots, which are there already.
void build_forest(const DeviceTree& t, int roots, int threads, cudaStream_t stream) {
    build<<<roots, threads, 0, stream>>>(t.points[0], t.points[1], t.nodes, t.total, 0);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
}

// `side` squares in each row, and as many rows: sorts the points by them.
std::vector<Node> make_roots(std::vector<int2>& points, int side) {
    const int size = kSide / side;
    auto root_of = [&](int2 point) { return point.y / size * side + point.x / size; };
    std::stable_sort(points.begin(), points.end(), [&](int2 a, int2 b) { return root_of(a) < root_of(b); });
    std::vector<Node> roots(side * side);
    for (int2 point : points) ++roots[root_of(point)].count;
    for (int r = 0, begin = 0; r < side * side; begin += roots[r++].count)
        roots[r] = Node{r % side * size, r / side * size, size, begin, roots[r].count, -1};
    return roots;
}

// A tree with its nodes in the order of a walk from the root: which of them are inner ones, and each one's points in ascending order.
struct Tree {
    std::vector<int> nodes, points;
    bool operator==(const Tree& other) const { return nodes == other.nodes && points == other.points; }
};

void add_leaf(Tree& tree, std::vector<int2> points) {
    std::sort(points.begin(), points.end(), [](int2 a, int2 b) { return a.x != b.x ? a.x < b.x : a.y < b.y; });
    tree.nodes.push_back(int(points.size()));
    for (int2 point : points) {
        tree.points.push_back(point.x);
        tree.points.push_back(point.y);
    }
}

void build_on_cpu(Tree& tree, const Node& node, const std::vector<int2>& points) {
    if (!is_inner(node)) return add_leaf(tree, points);
    tree.nodes.push_back(-1);
    std::vector<int2> parts[4];
    for (int2 point : points) parts[quadrant(node, point)].push_back(point);
    for (int q = 0; q < 4; ++q) build_on_cpu(tree, child_of(node, q, 0, int(parts[q].size())), parts[q]);
}

// What the device has built; an empty tree if that is none.
void walk(Tree& tree, const std::vector<Node>& nodes, const std::vector<int2> (&points)[2], int which, int depth) {
    const Node& node = nodes[which];
    if (node.children < 0) {
        auto first = points[depth % 2].begin() + node.begin;
        return add_leaf(tree, {first, first + node.count});
    }
    tree.nodes.push_back(-1);
    for (int q = 0; q < 4; ++q) walk(tree, nodes, points, node.children + q, depth + 1);
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
        else if (flag == "--points") options.points = std::atoi(value);
        else if (flag == "--roots") options.roots = std::max(1, std::atoi(value));
        else if (flag == "--repeat") options.repeat = std::max(1, std::atoi(value));
        else if (flag == "--pending") options.pending = std::atoi(value);
        else if (flag == "--threads") options.threads = std::atoi(value);
        else {
            std::fprintf(stderr, "unknown flag: %s\n", flag.c_str());
            std::exit(2);
        }
    }
    if (options.variant != "serial" && options.variant != "naive" && options.variant != "recursive") {
        std::fprintf(stderr, "unknown variant: %s\n", options.variant.c_str());
        std::exit(2);
    }
    if (options.roots > 1 && (options.variant != "recursive" || (options.roots & (options.roots - 1)) != 0 || options.roots > 256)) {
        std::fprintf(stderr, "--roots takes a power of two up to 256, and --variant recursive\n");
        std::exit(2);
    }
    if (options.label.empty()) options.label = options.variant;
    return options;
}

void report(const char* bench, const Options& options, int points, std::vector<float> times, bool pass,
            const std::vector<int>& result) {
    uint64_t checksum = 14695981039346656037ull;   // FNV-1a
    for (int value : result) checksum = (checksum ^ uint32_t(value)) * 1099511628211ull;
    std::sort(times.begin(), times.end());
    std::printf("{\"bench\":\"%s\",\"input\":\"%s\",\"variant\":\"%s\",\"time_ms\":%.4f,\"verdict\":\"%s\","
                "\"checksum\":\"%016llx\",\"points\":%d,\"nodes\":%d,\"repeats\":%d}\n",
                bench, options.input.c_str(), options.label.c_str(), times[times.size() / 2], pass ? "pass" : "fail",
                (unsigned long long)checksum, points, int(result.size()), int(times.size()));
}

int main(int argc, char** argv) {
    Options options = parse(argc, argv);
    std::vector<int2> points = make_points(options.input, options.points);
    const int n = int(points.size());

    const std::vector<Node> roots = make_roots(points, options.roots);
    const int roots_count = int(roots.size());
    Tree expected, tree;
    for (const Node& root : roots) {
        auto first = points.begin() + root.begin;
        build_on_cpu(expected, root, {first, first + root.count});
    }
    const size_t most_nodes = expected.nodes.size();

    // Every node launches once at most at a time, and launches beyond the limit are lost.
    const int pending = options.pending > 0 ? options.pending : std::max(int(most_nodes), 2048);
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, pending));

    DeviceTree t;
    t.points_count = n;
    CHECK(cudaMalloc(&t.points[0], n * sizeof(int2)));
    CHECK(cudaMalloc(&t.points[1], n * sizeof(int2)));
    CHECK(cudaMalloc(&t.nodes, most_nodes * sizeof(Node)));
    CHECK(cudaMalloc(&t.counts, 4 * most_nodes * sizeof(int)));
    CHECK(cudaMalloc(&t.next, 4 * most_nodes * sizeof(int)));
    CHECK(cudaMalloc(&t.total, sizeof(int)));
    CHECK(cudaMallocHost(&t.total_host, sizeof(int)));

    cudaStream_t stream;
    cudaEvent_t start, stop;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));

    std::vector<Node> nodes(most_nodes);
    std::vector<int2> sorted[2];
    std::vector<float> times;
    bool pass = true;
    for (int i = 0; i <= options.repeat; ++i) {   // the first round warms up
        CHECK(cudaMemcpy(t.points[0], points.data(), n * sizeof(int2), cudaMemcpyHostToDevice));
        CHECK(cudaMemset(t.points[1], 0, n * sizeof(int2)));
        CHECK(cudaMemset(t.nodes, 0xff, most_nodes * sizeof(Node)));
        CHECK(cudaMemset(t.counts, 0, 4 * most_nodes * sizeof(int)));
        CHECK(cudaMemcpy(t.nodes, roots.data(), roots_count * sizeof(Node), cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(t.total, &roots_count, sizeof(int), cudaMemcpyHostToDevice));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(start, stream));
        if (roots_count > 1)
            build_forest(t, roots_count, options.threads, stream);
        else
            build_tree(t, options.variant, options.threads, stream);
        CHECK(cudaEventRecord(stop, stream));
        CHECK(cudaEventSynchronize(stop));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (i > 0) times.push_back(ms);
        int total = 0;
        CHECK(cudaMemcpy(&total, t.total, sizeof(int), cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(nodes.data(), t.nodes, most_nodes * sizeof(Node), cudaMemcpyDeviceToHost));
        for (int k = 0; k < 2; ++k) {
            sorted[k].resize(n);
            CHECK(cudaMemcpy(sorted[k].data(), t.points[k], n * sizeof(int2), cudaMemcpyDeviceToHost));
        }
        tree = Tree();
        for (int root = 0; root < roots_count && size_t(total) == most_nodes; ++root) walk(tree, nodes, sorted, root, 0);
        pass = pass && tree == expected;
    }
    report("qt", options, n, times, pass, tree.nodes);
    CHECK(cudaDeviceSynchronize());
    return pass ? 0 : 1;
}
