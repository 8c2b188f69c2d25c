#include <stdio.h>
#include <stdbool.h>
#include <cuda_runtime.h>

#ifdef __CUDACC__
#define CUDA_CALLABLE __host__ __device__
#else
#define CUDA_CALLABLE
#endif

#define TPB 128
#define CHILD_TPB 32
#define UNVISITED (-1)

typedef struct {
    float x, y;
} point_t;

typedef struct {
    const point_t *__restrict__ pts;
    const int *__restrict__ cell_start;
    const int *__restrict__ cell_points;
    int *label;
    int *next;
    int *n_next;
    float eps2;
} cluster_t;

CUDA_CALLABLE static inline float dist2(point_t a, point_t b) {
    float dx = a.x - b.x, dy = a.y - b.y;
    return dx * dx + dy * dy;
}

__global__ void scan_cell(cluster_t c, int p, int first, int count, int id) {
    int t = blockDim.x * blockIdx.x + threadIdx.x;
    if (t >= count) return;
    int q = c.cell_points[first + t];
    if (dist2(c.pts[p], c.pts[q]) <= c.eps2) {
        if (atomicCAS(&c.label[q], UNVISITED, id) == UNVISITED) {
            int slot = atomicAdd(c.n_next, 1);
            c.next[slot] = q;
        }
    }
}

__global__ void expand_frontier(cluster_t c, const int *frontier, int n, const int *cell_of, int n_cells, int id) {
    int tid = blockDim.x * blockIdx.x + threadIdx.x;
    if (tid >= n) return;
    int p = frontier[tid];
    int cell = cell_of[p];
    for (int d = -1; d <= 1; d++) {
        int k = cell + d;
        if (k < 0 || k >= n_cells) continue;
        int first = c.cell_start[k], count = c.cell_start[k + 1] - first;
        if (count == 0) continue;
        scan_cell<<<(count + CHILD_TPB - 1) / CHILD_TPB, CHILD_TPB>>>(c, p, first, count, id);
    }
}

int main(int argc, char **argv) {
    const int n = 200, cells = 20;
    point_t *pts;
    int *start, *points, *label, *a, *b, *n_next, *cell_of;
    cudaMallocManaged(&pts, n * sizeof(point_t));
    cudaMallocManaged(&start, (cells + 1) * sizeof(int));
    cudaMallocManaged(&points, n * sizeof(int));
    cudaMallocManaged(&label, n * sizeof(int));
    cudaMallocManaged(&a, n * sizeof(int));
    cudaMallocManaged(&b, n * sizeof(int));
    cudaMallocManaged(&n_next, sizeof(int));
    cudaMallocManaged(&cell_of, n * sizeof(int));
    for (int i = 0; i < n; i++) {
        cell_of[i] = i / 10;
        pts[i].x = i / 10 + (i % 10) * 0.1f;
        pts[i].y = (i * 7 % 13) * 0.2f;
        points[i] = i;
        label[i] = UNVISITED;
    }
    for (int k = 0; k <= cells; k++) start[k] = k * 10;
    cluster_t c = {pts, start, points, label, b, n_next, 1.0f};
    a[0] = 0;
    label[0] = 1;
    int count = 1;
    while (count > 0) {
        *n_next = 0;
        c.next = b;
        expand_frontier<<<(count + TPB - 1) / TPB, TPB>>>(c, a, count, cell_of, cells, 1);
        cudaDeviceSynchronize();
        count = *n_next;
        int *t = a;
        a = b;
        b = t;
    }
    int members = 0;
    for (int i = 0; i < n; i++) members += label[i] == 1;
    printf("%d\n", members);
    return 0;
}
