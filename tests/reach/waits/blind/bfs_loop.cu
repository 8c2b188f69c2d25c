#include <cstdio>
#include <vector>

// Breadth first search without the host: the loop over levels runs on the GPU.

__global__ void visit_level(const int *rows, const int *cols, int nv, int level, int *dist, int *found)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= nv || dist[v] != level) return;
    for (int e = rows[v]; e < rows[v + 1]; e++)
        if (atomicCAS(&dist[cols[e]], -1, level + 1) == -1)
            *found = 1;
}

__global__ void clear_flag(int *flag) { *flag = 0; }

__global__ void bfs(const int *rows, const int *cols, int nv, int source, int *dist, int *found, int *levels)
{
    dist[source] = 0;
    int level = 0;
    const int tpb = 256;

    do {
        clear_flag<<<1, 1>>>(found);
        visit_level<<<(nv + tpb - 1) / tpb, tpb>>>(rows, cols, nv, level, dist, found);
        if (cudaDeviceSynchronize() != cudaSuccess) {
            *levels = -1;
            return;
        }
        level++;
    } while (*(volatile int *)found);

    *levels = level;
}

int main()
{
    const int nv = 500;
    std::vector<int> rows(1, 0), cols;
    for (int v = 0; v < nv; v++) {
        for (int k = 1; k <= 1 + v % 4; k++) cols.push_back((v * 3 + k * k * 5 + 1) % nv);
        rows.push_back((int)cols.size());
    }
    int *d_rows, *d_cols, *d_dist, *d_flag;
    cudaMalloc(&d_rows, rows.size() * sizeof(int));
    cudaMalloc(&d_cols, cols.size() * sizeof(int));
    cudaMalloc(&d_dist, nv * sizeof(int));
    cudaMalloc(&d_flag, 2 * sizeof(int));
    cudaMemcpy(d_rows, rows.data(), rows.size() * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(d_cols, cols.data(), cols.size() * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemset(d_dist, -1, nv * sizeof(int));

    bfs<<<1, 1>>>(d_rows, d_cols, nv, 0, d_dist, d_flag, d_flag + 1);
    cudaDeviceSynchronize();

    std::vector<int> dist(nv);
    int levels;
    cudaMemcpy(dist.data(), d_dist, nv * sizeof(int), cudaMemcpyDeviceToHost);
    cudaMemcpy(&levels, d_flag + 1, sizeof(int), cudaMemcpyDeviceToHost);
    long sum = 0;
    for (int v = 0; v < nv; v++) sum += (long)(dist[v] + 1) * (v + 1);
    printf("%d levels, checksum %ld\n", levels, sum);
}
