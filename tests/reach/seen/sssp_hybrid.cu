#include <iostream>
#include <limits>
#include <cuda_runtime.h>

const int THRESHOLD_G = 8;
const int EDGE_PER_TH = 2;
using hdist_t = int;
constexpr hdist_t INF = std::numeric_limits<hdist_t>::max();

struct __align__(8) edge_t {
    int to;
    int weight;
};

struct Frontier {
    int *items;
    int *size;

    __device__ void push(int v) const {
        int p = atomicAdd(size, 1);
        items[p] = v;
    }
};

__device__ __forceinline__ void relax(const edge_t &e, hdist_t d, hdist_t *dist, const Frontier &next) {
    const hdist_t nd = d + e.weight;
    if (atomicMin(&dist[e.to], nd) > nd)
        next.push(e.to);
}

__global__ void DynamicRelax(const edge_t *edges, const int degree, const hdist_t d, hdist_t *dist, Frontier next) {
    const int ID = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = ID; i < degree; i += gridDim.x * blockDim.x)
        relax(edges[i], d, dist, next);
}

__global__ void BF_Kernel(const int *__restrict__ offsets, const edge_t *__restrict__ edges, hdist_t *dist, const int *frontier, const int size, Frontier next) {
    const int ID = blockIdx.x * blockDim.x + threadIdx.x;
    const int stride = gridDim.x * blockDim.x;
    for (int i = ID; i < size; i += stride) {
        const int v = frontier[i];
        const int begin = offsets[v];
        const int degree = offsets[v + 1] - begin;
        const hdist_t d = dist[v];
        if (degree >= THRESHOLD_G)
            DynamicRelax<<<(degree / EDGE_PER_TH + 31) / 32, 32>>>(edges + begin, degree, d, dist, next);
        else
            for (int k = 0; k < degree; k++)
                relax(edges[begin + k], d, dist, next);
    }
}

int main() {
    const int n = 80;
    int *offsets, *a, *size;
    hdist_t *dist;
    cudaMallocManaged(&offsets, (n + 1) * sizeof(int));
    offsets[0] = 0;
    for (int v = 0; v < n; v++)
        offsets[v + 1] = offsets[v] + (v * 5) % 14;
    edge_t *edges;
    Frontier next;
    cudaMallocManaged(&edges, offsets[n] * sizeof(edge_t));
    for (int v = 0; v < n; v++)
        for (int e = offsets[v]; e < offsets[v + 1]; e++)
            edges[e] = {(v * 7 + e) % n, 1 + e % 9};
    cudaMallocManaged(&a, 40 * n * sizeof(int));
    cudaMallocManaged(&next.items, 40 * n * sizeof(int));
    cudaMallocManaged(&size, sizeof(int));
    cudaMallocManaged(&dist, n * sizeof(hdist_t));
    next.size = size;
    for (int v = 0; v < n; v++)
        dist[v] = INF;
    dist[1] = 0;
    a[0] = 1;
    int count = 1;
    while (count) {
        *size = 0;
        BF_Kernel<<<2, 32>>>(offsets, edges, dist, a, count, next);
        cudaDeviceSynchronize();
        count = *size;
        std::swap(a, next.items);
    }
    long sum = 0;
    for (int v = 0; v < n; v++)
        sum = (sum * 3 + (dist[v] == INF ? 7 : dist[v])) % 1000003;
    std::cout << sum << std::endl;
}
