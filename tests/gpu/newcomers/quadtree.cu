
// Builds the tree of points of which half lie in one corner. Its nodes are numbered as they come; so the points and how deep they lie are
// summed up.

#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

__global__ void sum(const Node* nodes, int used, unsigned long long* sums) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= used) return;
    atomicAdd(&sums[0], (unsigned long long)nodes[i].count);
    atomicAdd(&sums[1], (unsigned long long)(nodes[i].count * double(nodes[i].size * 65536)));
}

int main() {
    const int n = 1 << 17, most = 1 << 18;
    std::vector<float2> points(n);
    unsigned random = 1;
    for (int i = 0; i < n; ++i) {
        float at[2];
        for (float& x : at) {
            random = random * 1664525u + 1013904223u;
            x = (random >> 8) / float(1 << 24) * (i % 2 ? 1 : 0.0625f);
        }
        points[i] = {at[0], at[1]};
    }
    float2 *d_points, *d_other;
    Node* d_nodes;
    int *d_used, used = 1;
    unsigned long long *d_sums, sums[2];
    Node root = {0, 0, 1, 0, n};
    cudaMalloc(&d_points, n * sizeof(float2));
    cudaMalloc(&d_other, n * sizeof(float2));
    cudaMalloc(&d_nodes, most * sizeof(Node));
    cudaMalloc(&d_used, sizeof(int));
    cudaMalloc(&d_sums, 2 * sizeof(unsigned long long));
    cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 65536);
    cudaMemcpy(d_points, points.data(), n * sizeof(float2), cudaMemcpyHostToDevice);
    cudaMemcpy(d_nodes, &root, sizeof(Node), cudaMemcpyHostToDevice);
    cudaMemcpy(d_used, &used, sizeof(int), cudaMemcpyHostToDevice);
    cudaMemset(d_sums, 0, 2 * sizeof(unsigned long long));
    build(d_points, d_other, d_nodes, d_used);
    cudaMemcpy(&used, d_used, sizeof(int), cudaMemcpyDeviceToHost);
    sum<<<(used + 255) / 256, 256>>>(d_nodes, used, d_sums);
    cudaMemcpy(sums, d_sums, 2 * sizeof(unsigned long long), cudaMemcpyDeviceToHost);
    std::printf("%d nodes, %llu points, %llu\n", used, sums[0], sums[1]);
    return cudaGetLastError() == cudaSuccess && used < most ? 0 : 1;
}
