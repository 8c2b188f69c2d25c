// Breadth-first search with launches aggregated by hand after the design of KLAP (El Hajj, chapter 3):
// all threads meet at one point, a scan over the block gives each launch its place, the arguments that
// differ go to arrays, and a block of the aggregated child finds its launch by binary search. For a
// whole grid, the blocks add up in global memory and the last one launches.
//
//   bfs_klap [--input tree|rmat|uniform|road] [--variant klap-block|klap-grid] [--vertices N]
//            [--repeat N] [--threads N] [--pending N] [--label TEXT]

#include "baselines.cuh"

constexpr int kUnreached = -1;

// The arguments of the launches of one level: the arrays of a block begin at its first thread's number.
struct Launches {
    int *first_block, *begin, *count;
};

__global__ void expand(Launches launches, int offset, int parents, const int* col, int* dist, int* deepest, int level) {
    int parent = offset + find_parent(launches.first_block + offset, parents, blockIdx.x);
    int i = (blockIdx.x - launches.first_block[parent]) * blockDim.x + threadIdx.x;
    if (i < launches.count[parent]) {
        int v = col[launches.begin[parent] + i];
        if (dist[v] == kUnreached && atomicCAS(&dist[v], kUnreached, level + 1) == kUnreached)
            *deepest = level + 1;
    }
}

__global__ void bfs_level_block(const int* row, const int* col, int* dist, int* deepest, int level, int n, Launches launches) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    int begin = 0, count = 0;
    if (v < n && dist[v] == level) {
        begin = row[v];
        count = row[v + 1] - begin;
    }
    unsigned blocks = (count + 127) / 128;
    unsigned long long total, at = block_scan(count > 0 ? 1ull << 32 | blocks : 0, total);
    int offset = blockIdx.x * blockDim.x;
    if (count > 0) {
        int slot = offset + int(at >> 32);
        launches.first_block[slot] = int(at);
        launches.begin[slot] = begin;
        launches.count[slot] = count;
        __threadfence();
    }
    __syncthreads();
    if (threadIdx.x == 0 && total != 0)
        expand<<<unsigned(total), 128, 0, cudaStreamFireAndForget>>>(launches, offset, int(total >> 32), col, dist, deepest, level);
}

__global__ void bfs_level_grid(const int* row, const int* col, int* dist, int* deepest, int level, int n, Launches launches,
                               GridState* state) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    int begin = 0, count = 0;
    if (v < n && dist[v] == level) {
        begin = row[v];
        count = row[v + 1] - begin;
    }
    unsigned blocks = (count + 127) / 128;
    unsigned long long total, at = block_scan(count > 0 ? 1ull << 32 | blocks : 0, total);
    __shared__ unsigned long long base;
    if (threadIdx.x == 0 && total != 0) base = atomicAdd(&state->cursor, total);
    __syncthreads();
    if (count > 0) {
        at += base;
        int slot = int(at >> 32);
        launches.first_block[slot] = int(at);
        launches.begin[slot] = begin;
        launches.count[slot] = count;
        __threadfence();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        if (atomicAdd(&state->blocks_done, 1) == gridDim.x - 1) {
            __threadfence();
            total = atomicExch(&state->cursor, 0);
            state->blocks_done = 0;
            if (total != 0)
                expand<<<unsigned(total), 128, 0, cudaStreamFireAndForget>>>(launches, 0, int(total >> 32), col, dist, deepest, level);
        }
    }
}

// Writes a number into the host's memory: sooner there than by a copy.
__global__ void publish(const int* from, int* to) { *to = *from; }

struct DeviceGraph {
    int *row, *col, *dist, *deepest, *deepest_host;
    Launches launches;
    GridState* state;
    int n;
};

void search(const DeviceGraph& g, bool by_block, int threads, cudaStream_t stream) {
    int blocks = (g.n + threads - 1) / threads;
    for (int level = 0; *g.deepest_host == level; ++level) {
        if (by_block)
            bfs_level_block<<<blocks, threads, 0, stream>>>(g.row, g.col, g.dist, g.deepest, level, g.n, g.launches);
        else
            bfs_level_grid<<<blocks, threads, 0, stream>>>(g.row, g.col, g.dist, g.deepest, level, g.n, g.launches, g.state);
        CHECK(cudaGetLastError());
        publish<<<1, 1, 0, stream>>>(g.deepest, g.deepest_host);
        CHECK(cudaGetLastError());
        CHECK(cudaStreamSynchronize(stream));
    }
}

std::vector<int> search_on_cpu(const Graph& g) {
    std::vector<int> dist(g.n(), kUnreached);
    std::queue<int> queue;
    dist[0] = 0;
    queue.push(0);
    while (!queue.empty()) {
        int v = queue.front();
        queue.pop();
        for (int i = g.row[v]; i < g.row[v + 1]; ++i)
            if (dist[g.col[i]] == kUnreached) {
                dist[g.col[i]] = dist[v] + 1;
                queue.push(g.col[i]);
            }
    }
    return dist;
}

int main(int argc, char** argv) {
    Options options = parse(argc, argv);
    Graph graph = make_graph(options.input, options.vertices);
    const int n = graph.n();

    // As in the program that this one is compared with, though it has far fewer launches: the limit costs time.
    const int pending = options.pending > 0 ? options.pending : std::max(2 * n, 2048);
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, pending));


    DeviceGraph g;
    g.n = n;
    CHECK(cudaMalloc(&g.row, graph.row.size() * sizeof(int)));
    CHECK(cudaMalloc(&g.col, std::max<size_t>(graph.col.size(), 1) * sizeof(int)));
    CHECK(cudaMalloc(&g.dist, n * sizeof(int)));
    CHECK(cudaMalloc(&g.deepest, sizeof(int)));
    CHECK(cudaMallocHost(&g.deepest_host, sizeof(int)));
    CHECK(cudaMemcpy(g.row, graph.row.data(), graph.row.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(g.col, graph.col.data(), graph.col.size() * sizeof(int), cudaMemcpyHostToDevice));

    const int threads = (n + options.threads - 1) / options.threads * options.threads;
    CHECK(cudaMalloc(&g.launches.first_block, threads * sizeof(int)));
    CHECK(cudaMalloc(&g.launches.begin, threads * sizeof(int)));
    CHECK(cudaMalloc(&g.launches.count, threads * sizeof(int)));
    CHECK(cudaMalloc(&g.state, sizeof(GridState)));
    CHECK(cudaMemset(g.state, 0, sizeof(GridState)));

    cudaStream_t stream;
    cudaEvent_t start, stop;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));

    std::vector<int> first(n, kUnreached), expected = search_on_cpu(graph), dist(n);
    first[0] = 0;
    std::vector<float> times;
    bool pass = true;
    for (int i = 0; i <= options.repeat; ++i) {   // the first round warms up
        CHECK(cudaMemcpy(g.dist, first.data(), n * sizeof(int), cudaMemcpyHostToDevice));
        CHECK(cudaMemset(g.deepest, 0, sizeof(int)));
        *g.deepest_host = 0;
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(start, stream));
        search(g, options.variant == "klap-block", options.threads, stream);
        CHECK(cudaEventRecord(stop, stream));
        CHECK(cudaEventSynchronize(stop));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (i > 0) times.push_back(ms);
        CHECK(cudaMemcpy(dist.data(), g.dist, n * sizeof(int), cudaMemcpyDeviceToHost));
        pass = pass && dist == expected;
    }
    report("bfs", options, graph, times, pass, dist);
    CHECK(cudaDeviceSynchronize());
    return pass ? 0 : 1;
}
