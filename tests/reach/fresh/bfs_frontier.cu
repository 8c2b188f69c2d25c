/*
 * bfs_frontier.cu
 *
 * Level synchronous breadth first search.  One thread takes one vertex of
 * the current frontier.  Vertices of small degree are expanded by the thread
 * itself, hubs get a grid of their own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cuda_runtime.h>

#define CHECK(call)                                                       \
    do {                                                                  \
        cudaError_t e_ = (call);                                          \
        if (e_ != cudaSuccess) {                                          \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,            \
                    cudaGetErrorString(e_));                              \
            exit(EXIT_FAILURE);                                           \
        }                                                                 \
    } while (0)

#define HUB_DEGREE 48
#define TPB        128

static unsigned int rng_state = 12345u;
static unsigned int rng(void)
{
    rng_state = rng_state * 1664525u + 1013904223u;
    return rng_state >> 8;
}

__device__ void visit(int v, int level, int *dist, int *next, int *next_n)
{
    if (atomicCAS(&dist[v], -1, level) == -1) {
        int pos = atomicAdd(next_n, 1);
        next[pos] = v;
    }
}

__global__ void expand_hub(const int *adj, int deg, int level,
                           int *dist, int *next, int *next_n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < deg)
        visit(adj[i], level, dist, next, next_n);
}

__global__ void bfs_level(const int *row, const int *col,
                          const int *frontier, int frontier_n, int level,
                          int *dist, int *next, int *next_n)
{
    int tid = blockIdx.x * blockDim.x + threadIdx.x;
    if (tid >= frontier_n)
        return;

    int u = frontier[tid];
    int begin = row[u];
    int deg = row[u + 1] - begin;

    if (deg >= HUB_DEGREE) {
        expand_hub<<<(deg + TPB - 1) / TPB, TPB>>>(col + begin, deg, level, dist, next, next_n);
    } else {
        for (int i = 0; i < deg; ++i)
            visit(col[begin + i], level, dist, next, next_n);
    }
}

static int cpu_bfs(int n, const int *row, const int *col, int src, int *dist)
{
    int *q = (int *)malloc(n * sizeof(int));
    int head = 0, tail = 0, i;
    for (i = 0; i < n; ++i)
        dist[i] = -1;
    dist[src] = 0;
    q[tail++] = src;
    while (head < tail) {
        int u = q[head++];
        for (i = row[u]; i < row[u + 1]; ++i) {
            if (dist[col[i]] < 0) {
                dist[col[i]] = dist[u] + 1;
                q[tail++] = col[i];
            }
        }
    }
    free(q);
    return tail;
}

int main(void)
{
    const int n = 30000;
    int *row = (int *)malloc((n + 1) * sizeof(int));
    int i, j, m = 0;

    for (i = 0; i < n; ++i) {
        int d = 1 + (int)(rng() % 4);
        if (i % 97 == 0)
            d = 60 + (int)(rng() % 900);       /* about 310 hubs */
        row[i] = m;
        m += d;
    }
    row[n] = m;
    int *col = (int *)malloc(m * sizeof(int));
    for (i = 0; i < n; ++i)
        for (j = row[i]; j < row[i + 1]; ++j)
            col[j] = (int)(rng() % (unsigned)n);

    int *d_row, *d_col, *d_dist, *d_f[2], *d_n;
    CHECK(cudaMalloc((void **)&d_row, (n + 1) * sizeof(int)));
    CHECK(cudaMalloc((void **)&d_col, m * sizeof(int)));
    CHECK(cudaMalloc((void **)&d_dist, n * sizeof(int)));
    CHECK(cudaMalloc((void **)&d_f[0], n * sizeof(int)));
    CHECK(cudaMalloc((void **)&d_f[1], n * sizeof(int)));
    CHECK(cudaMalloc((void **)&d_n, sizeof(int)));
    CHECK(cudaMemcpy(d_row, row, (n + 1) * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_col, col, m * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(d_dist, 0xff, n * sizeof(int)));

    int src = 1, zero = 0, cur = 0, fn = 1, level = 0;
    CHECK(cudaMemcpy(d_dist + src, &zero, sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_f[0], &src, sizeof(int), cudaMemcpyHostToDevice));

    while (fn > 0) {
        ++level;
        CHECK(cudaMemset(d_n, 0, sizeof(int)));
        bfs_level<<<(fn + TPB - 1) / TPB, TPB>>>(d_row, d_col, d_f[cur], fn, level,
                                                 d_dist, d_f[cur ^ 1], d_n);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(&fn, d_n, sizeof(int), cudaMemcpyDeviceToHost));
        cur ^= 1;
    }

    int *got = (int *)malloc(n * sizeof(int));
    int *want = (int *)malloc(n * sizeof(int));
    CHECK(cudaMemcpy(got, d_dist, n * sizeof(int), cudaMemcpyDeviceToHost));
    int reached = cpu_bfs(n, row, col, src, want);
    int bad = 0;
    for (i = 0; i < n; ++i)
        if (got[i] != want[i] && bad++ < 5)
            printf("dist[%d] = %d, expected %d\n", i, got[i], want[i]);
    if (bad)
        printf("FAILED: %d of %d distances differ\n", bad, n);
    else
        printf("OK (%d levels, %d vertices reached)\n", level - 1, reached);

    cudaFree(d_row); cudaFree(d_col); cudaFree(d_dist);
    cudaFree(d_f[0]); cudaFree(d_f[1]); cudaFree(d_n);
    free(row); free(col); free(got); free(want);
    return bad != 0;
}
