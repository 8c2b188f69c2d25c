// Greedy colouring; the launch stands in a macro, with the error check after it.
#include <cstdio>
#include <cuda_runtime.h>
#define THREADS_PER_CHILD 32
#define LAUNCH_CHILD(kernel, n, ...)                                              \
    do {                                                                          \
        kernel<<<((n) + THREADS_PER_CHILD - 1) / THREADS_PER_CHILD, THREADS_PER_CHILD>>>(__VA_ARGS__); \
    } while (0)

__global__ void conflicts(const int* row, const int* col, const int* colour, int* bad, int v, int n) {
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < n && colour[col[row[v] + k]] == colour[v]) bad[v] = 1;
}

__global__ void check_colouring(const int* row, const int* col, const int* colour, int* bad, int nodes) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < nodes) {
        int n = row[v + 1] - row[v];
        if (n) LAUNCH_CHILD(conflicts, n, row, col, colour, bad, v, n);
    }
}

__global__ void clear_flags(int* bad, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) bad[i] = 0;
}

__global__ void driver(const int* row, const int* col, const int* colour, int* bad, int nodes) {
    clear_flags<<<(nodes + 31) / 32, 32>>>(bad, nodes);
    check_colouring<<<(nodes + 31) / 32, 32>>>(row, col, colour, bad, nodes);
}

void run(const int* row, const int* col, const int* colour, int* bad, int nodes) {
    driver<<<1, 1>>>(row, col, colour, bad, nodes);
}
