// A quadtree over points: a block splits its cell, its last warp launches the four quarters.

struct Cell {
    int begin, end;
    float x, y, size;
};

struct Limits {
    int depth;
    int max_depth;
    int min_points;
};

__global__ void split(Cell* cells, const float2* points, float2* sorted, Limits limits) {
    __shared__ int count[4];
    __shared__ int first[5];
    Cell cell = cells[blockIdx.x];
    int n = cell.end - cell.begin;
    if (limits.depth >= limits.max_depth || n <= limits.min_points) return;
    if (threadIdx.x < 4) count[threadIdx.x] = 0;
    __syncthreads();
    float cx = cell.x + cell.size / 2, cy = cell.y + cell.size / 2;
    for (int i = cell.begin + threadIdx.x; i < cell.end; i += blockDim.x) {
        int q = (points[i].x >= cx) + 2 * (points[i].y >= cy);
        atomicAdd(&count[q], 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        first[0] = cell.begin;
        for (int q = 0; q < 4; ++q) first[q + 1] = first[q] + count[q];
    }
    __syncthreads();
    int deeper = limits.depth + 1;
    Limits next = limits;
    next.depth = deeper;
    if (threadIdx.x == blockDim.x - 1) {
        Cell* children = cells + gridDim.x + 4 * blockIdx.x;
        for (int q = 0; q < 4; ++q) {
            children[q].begin = first[q];
            children[q].end = first[q + 1];
        }
        split<<<4, blockDim.x>>>(children, points, sorted, next);
    }
}

// Leaves are counted by whoever owns them: one launch for each warp.
__global__ void count_leaf(const Cell* cell, int* total) {
    if (threadIdx.x == 0) atomicAdd(total, cell->end - cell->begin);
}

__global__ void count_leaves(const Cell* __restrict__ leaves, int n, int* total) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (lane == 0 && warp < n) count_leaf<<<1, 32>>>(&leaves[warp], total);
}
