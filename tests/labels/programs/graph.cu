// Graph traversals in several styles.

struct Graph {
    int vertices;
    const int* row;
    const int* col;
    const int* weight;
};

__global__ void relax(const int* col, const int* weight, int* dist, int* changed, int begin, int count, int from) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && atomicMin(&dist[col[begin + i]], from + weight[begin + i]) > from) *changed = 1;
}

__global__ void sssp(Graph graph, int* dist, int* changed, const bool* active) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= graph.vertices || !active[v]) return;
    int begin = graph.row[v], count = graph.row[v + 1] - begin;
    if (count > 0) relax<<<(count + 127) / 128, 128>>>(graph.col, graph.weight, dist, changed, begin, count, dist[v]);
}

// A grid-stride loop: the thread launches for one vertex after another.
__global__ void sssp_strided(Graph graph, int* dist, int* changed) {
    int stride = gridDim.x * blockDim.x;
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < graph.vertices; v += stride) {
        int begin = graph.row[v];
        int count = graph.row[v + 1] - begin;
        if (count < 32) continue;
        int blocks = (count - 1) / 128 + 1;
        relax<<<blocks, 128, 0, cudaStreamFireAndForget>>>(graph.col, graph.weight, dist, changed, begin, count, dist[v]);
    }
}

// The frontier is stored by one thread of each block, the block's part of it is expanded by one child.
__global__ void expand(const int* frontier, int n, Graph graph, int* dist, int level) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int e = graph.row[frontier[i]]; e < graph.row[frontier[i] + 1]; ++e) atomicMin(&dist[graph.col[e]], level);
}

__global__ void gather(Graph graph, int* dist, int* frontier, int level) {
    __shared__ int found;
    __shared__ int wide;
    if (threadIdx.x == 0) found = wide = 0;
    __syncthreads();
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < graph.vertices && dist[v] == level - 1) frontier[blockIdx.x * blockDim.x + atomicAdd(&found, 1)] = v;
    __syncthreads();
    if (threadIdx.x == 0 && found > 0) {
        int* mine = frontier + blockIdx.x * blockDim.x;
        expand<<<(found + 63) / 64, 64>>>(mine, found, graph, dist, level);
    }
}

// The last block to finish goes on with the next level in the tail stream.
__device__ unsigned finished;

__global__ void level_done(Graph graph, int* dist, int* frontier, int* count, int level) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < *count) atomicMin(&dist[graph.col[graph.row[frontier[i]]]], level);
    __shared__ bool last;
    __threadfence();
    if (threadIdx.x == 0) last = atomicAdd(&finished, 1) == gridDim.x - 1;
    __syncthreads();
    if (last && threadIdx.x == 0) {
        finished = 0;
        level_done<<<gridDim.x, blockDim.x, 0, cudaStreamTailLaunch>>>(graph, dist, frontier, count, level + 1);
    }
}
