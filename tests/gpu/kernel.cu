// A kernel without a main: `gridfuse measure` runs it as its run specification says.

// Gives the `count` neighbours from `begin` on the next level.
__global__ void visit(const int* col, int* dist, int level, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicCAS(&dist[col[begin + i]], -1, level + 1);
}

// gridfuse: run <<<(n + 255) / 256, 256>>>
//   n = 20000, level = 0
//   graph = csr(rmat, n, 8)
//   row = graph.row, col = graph.col
//   dist = random(n, -1, 0)
//   pending_launches = 32768
//
// One level of a breadth-first search that has begun at half of the vertices.
__global__ void search(const int* row, const int* col, int* dist, int level, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || dist[v] != level) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) visit<<<(count + 63) / 64, 64>>>(col, dist, level, begin, count);
}
