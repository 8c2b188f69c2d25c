// A quadtree of points; a block counts its node's points and its last thread launches the children.
#include <cstdio>
#include <cuda_runtime.h>
struct Params {
    int depth, max_depth, min_points;
    __host__ __device__ Params(int d, int m, int p) : depth(d), max_depth(m), min_points(p) {}
    __host__ __device__ Params(const Params &p, bool) : depth(p.depth + 1), max_depth(p.max_depth), min_points(p.min_points) {}
};
struct Node { float x, y, size; int begin, end; };

__device__ int quadrant(const Node &n, float2 p) { return (p.x >= n.x + n.size / 2) + 2 * (p.y >= n.y + n.size / 2); }

template <int THREADS>
__global__ void split(Node *nodes, float2 *points, float2 *buffer, Params params, int index) {
    __shared__ int count[4], start[4];
    Node node = nodes[index + blockIdx.x];
    int n = node.end - node.begin;
    if (params.depth >= params.max_depth || n <= params.min_points) return;
    if (threadIdx.x < 4) count[threadIdx.x] = 0;
    __syncthreads();
    for (int i = node.begin + threadIdx.x; i < node.end; i += THREADS) atomicAdd(&count[quadrant(node, points[i])], 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        int at = node.begin;
        for (int q = 0; q < 4; ++q) { start[q] = at; at += count[q]; }
        for (int i = node.begin; i < node.end; ++i) buffer[start[quadrant(node, points[i])]++] = points[i];
        for (int i = node.begin; i < node.end; ++i) points[i] = buffer[i];
    }
    __syncthreads();
    if (threadIdx.x == THREADS - 1) {
        int first = 4 * (index + blockIdx.x) + 1;
        for (int q = 0; q < 4; ++q)
            nodes[first + q] = Node{node.x + (q & 1) * node.size / 2, node.y + (q >> 1) * node.size / 2, node.size / 2, start[q] - count[q], start[q]};
        split<THREADS><<<4, THREADS>>>(nodes, points, buffer, Params(params, true), first);
    }
}

int main() {
    const int n = 60;
    Node *nodes;
    float2 *points, *buffer;
    cudaMallocManaged(&nodes, 341 * sizeof(Node));
    cudaMallocManaged(&points, n * sizeof(float2));
    cudaMallocManaged(&buffer, n * sizeof(float2));
    for (int i = 0; i < 341; ++i) nodes[i] = Node{0, 0, 1, 0, 0};
    for (int i = 0; i < n; ++i) points[i] = make_float2((i * 37 % 101) / 101.0f, (i * 61 % 97) / 97.0f);
    nodes[0].end = n;
    split<32><<<1, 32>>>(nodes, points, buffer, Params(0, 3, 8), 0);
    cudaDeviceSynchronize();
    for (int i = 0; i < n; ++i) printf("%.3f ", points[i].x);
    printf("\n");
}
