// Shortest paths with launches aggregated by hand after the design of KLAP (El Hajj, chapter 3):
// all threads meet at one point, a scan over the block gives each launch its place, the arguments that
// differ go to arrays, and a block of the aggregated child finds its launch by binary search. For a
// whole grid, the blocks add up in global memory and the last one launches.
//
//   sssp_klap [--input tree|rmat|uniform|road] [--variant klap-block|klap-grid] [--vertices N]
//             [--repeat N] [--threads N] [--pending N] [--label TEXT]

#include "baselines.cuh"

constexpr int kUnreached = 1 << 30;

// The arguments of the launches of one round: the arrays of a block begin at its first thread's number.
struct Launches {
    int *first_block, *base, *begin, *count;
};

__global__ void relax(Launches launches, int offset, int parents, const int* col, const int* weight, int* dist, char* active_next,
                      int* last_round, int round) {
    int parent = offset + find_parent(launches.first_block + offset, parents, blockIdx.x);
    int i = (blockIdx.x - launches.first_block[parent]) * blockDim.x + threadIdx.x;
    if (i < launches.count[parent]) {
        int v = col[launches.begin[parent] + i];
        int next = launches.base[parent] + weight[launches.begin[parent] + i];
        if (next < dist[v] && next < atomicMin(&dist[v], next)) {
            active_next[v] = 1;
            *last_round = round + 1;
        }
    }
}

__global__ void sssp_round_block(const int* row, const int* col, const int* weight, int* dist, char* active, char* active_next,
                                 int* last_round, int round, int n, Launches launches) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    int base = 0, begin = 0, count = 0;
    if (v < n && active[v]) {
        active[v] = 0;
        base = dist[v];
        begin = row[v];
        count = row[v + 1] - begin;
    }
    unsigned blocks = (count + 127) / 128;
    unsigned long long total, at = block_scan(count > 0 ? 1ull << 32 | blocks : 0, total);
    int offset = blockIdx.x * blockDim.x;
    if (count > 0) {
        int slot = offset + int(at >> 32);
        launches.first_block[slot] = int(at);
        launches.base[slot] = base;
        launches.begin[slot] = begin;
        launches.count[slot] = count;
        __threadfence();
    }
    __syncthreads();
    if (threadIdx.x == 0 && total != 0)
        relax<<<unsigned(total), 128, 0, cudaStreamFireAndForget>>>(launches, offset, int(total >> 32), col, weight, dist,
                                                                      active_next, last_round, round);
}

__global__ void sssp_round_grid(const int* row, const int* col, const int* weight, int* dist, char* active, char* active_next,
                                int* last_round, int round, int n, Launches launches, GridState* state) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    int base = 0, begin = 0, count = 0;
    if (v < n && active[v]) {
        active[v] = 0;
        base = dist[v];
        begin = row[v];
        count = row[v + 1] - begin;
    }
    unsigned blocks = (count + 127) / 128;
    unsigned long long total, at = block_scan(count > 0 ? 1ull << 32 | blocks : 0, total);
    __shared__ unsigned long long start;
    if (threadIdx.x == 0 && total != 0) start = atomicAdd(&state->cursor, total);
    __syncthreads();
    if (count > 0) {
        at += start;
        int slot = int(at >> 32);
        launches.first_block[slot] = int(at);
        launches.base[slot] = base;
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
                relax<<<unsigned(total), 128, 0, cudaStreamFireAndForget>>>(launches, 0, int(total >> 32), col, weight, dist,
                                                                      active_next, last_round, round);
        }
    }
}

// Writes a number into the host's memory: sooner there than by a copy.
__global__ void publish(const int* from, int* to) { *to = *from; }

struct DeviceGraph {
    int *row, *col, *weight, *dist, *last_round, *last_round_host;
    char* active[2];
    Launches launches;
    GridState* state;
    int n;
};

void relax_all(const DeviceGraph& g, bool by_block, int threads, cudaStream_t stream) {
    int blocks = (g.n + threads - 1) / threads;
    for (int round = 0; *g.last_round_host == round; ++round) {
        char* active = g.active[round % 2];
        char* next = g.active[(round + 1) % 2];
        if (by_block)
            sssp_round_block<<<blocks, threads, 0, stream>>>(g.row, g.col, g.weight, g.dist, active, next, g.last_round, round,
                                                             g.n, g.launches);
        else
            sssp_round_grid<<<blocks, threads, 0, stream>>>(g.row, g.col, g.weight, g.dist, active, next, g.last_round, round,
                                                            g.n, g.launches, g.state);
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
    CHECK(cudaMalloc(&g.weight, std::max<size_t>(graph.col.size(), 1) * sizeof(int)));
    CHECK(cudaMalloc(&g.dist, n * sizeof(int)));
    CHECK(cudaMalloc(&g.active[0], n));
    CHECK(cudaMalloc(&g.active[1], n));
    CHECK(cudaMalloc(&g.last_round, sizeof(int)));
    CHECK(cudaMallocHost(&g.last_round_host, sizeof(int)));
    CHECK(cudaMemcpy(g.row, graph.row.data(), graph.row.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(g.col, graph.col.data(), graph.col.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(g.weight, graph.weight.data(), graph.weight.size() * sizeof(int), cudaMemcpyHostToDevice));

    const int threads = (n + options.threads - 1) / options.threads * options.threads;
    CHECK(cudaMalloc(&g.launches.first_block, threads * sizeof(int)));
    CHECK(cudaMalloc(&g.launches.base, threads * sizeof(int)));
    CHECK(cudaMalloc(&g.launches.begin, threads * sizeof(int)));
    CHECK(cudaMalloc(&g.launches.count, threads * sizeof(int)));
    CHECK(cudaMalloc(&g.state, sizeof(GridState)));
    CHECK(cudaMemset(g.state, 0, sizeof(GridState)));

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
        relax_all(g, options.variant == "klap-block", options.threads, stream);
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
