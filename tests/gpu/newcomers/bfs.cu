
// Runs the search on a graph of which a few vertices have many edges, and compares with the levels that the CPU finds.

#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

int main() {
    const int n = 16384, levels = 12;
    std::vector<int> row(n + 1), col, level(n, -1), dist(n, -1), reached = {0};
    unsigned random = 1;
    for (int v = 0; v < n; ++v) {
        const int degree = v % 64 == 0 ? 512 : v % 16;
        for (int e = 0; e < degree; ++e) {
            random = random * 1664525u + 1013904223u;
            col.push_back((random >> 8) % n);
        }
        row[v + 1] = int(col.size());
    }
    level[0] = 0;
    for (size_t k = 0; k < reached.size(); ++k)
        for (int e = row[reached[k]]; e < row[reached[k] + 1]; ++e)
            if (level[col[e]] < 0) {
                level[col[e]] = level[reached[k]] + 1;
                reached.push_back(col[e]);
            }
    int *d_row, *d_col, *d_dist;
    cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 65536);
    cudaMalloc(&d_row, row.size() * sizeof(int));
    cudaMalloc(&d_col, col.size() * sizeof(int));
    cudaMalloc(&d_dist, n * sizeof(int));
    cudaMemcpy(d_row, row.data(), row.size() * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(d_col, col.data(), col.size() * sizeof(int), cudaMemcpyHostToDevice);
    dist[0] = 0;
    cudaMemcpy(d_dist, dist.data(), n * sizeof(int), cudaMemcpyHostToDevice);
    search(d_row, d_col, d_dist, n, levels);
    cudaMemcpy(dist.data(), d_dist, n * sizeof(int), cudaMemcpyDeviceToHost);
    std::printf("%s\n", dist == level ? "right" : "wrong");
    return dist == level ? 0 : 1;
}
