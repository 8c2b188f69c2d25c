/*
 * bfs_csr.cu - level synchronous breadth first search on a CSR graph.
 *
 * Light vertices are expanded by the thread that owns them, heavy vertices
 * get a grid of their own.
 *
 *   nvcc -rdc=true -arch=sm_90 -std=c++17 bfs_csr.cu -o bfs_csr
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cuda_runtime.h>

#define N_VERT   700
#define HEAVY    24
#define TPB      64

static void die(cudaError_t rc, const char *what)
{
    if (rc == cudaSuccess) return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(rc));
    exit(2);
}

__global__ void expand_heavy(const int *col, int first, int count, int next_level,
                             int *level, int *queue, int *qlen)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        int w = col[first + i];
        if (atomicCAS(&level[w], -1, next_level) == -1)
            queue[atomicAdd(qlen, 1)] = w;
    }
}

__global__ void bfs_step(const int *rowptr, const int *col, const int *frontier, int nf,
                         int next_level, int *level, int *queue, int *qlen)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= nf) return;

    int v = frontier[t];
    int first = rowptr[v];
    int count = rowptr[v + 1] - first;

    if (count > HEAVY) {
        expand_heavy<<<(count + 31) / 32, 32>>>(col, first, count, next_level, level, queue, qlen);
    } else {
        for (int e = 0; e < count; e++) {
            int w = col[first + e];
            if (atomicCAS(&level[w], -1, next_level) == -1)
                queue[atomicAdd(qlen, 1)] = w;
        }
    }
}

static unsigned seed = 12345u;
static unsigned rnd(void) { seed = seed * 1664525u + 1013904223u; return seed >> 8; }

static int cpu_bfs(const int *rp, const int *col, int *lev)
{
    int *q = (int *)malloc(sizeof(int) * N_VERT), h = 0, t = 0;
    for (int i = 0; i < N_VERT; i++) lev[i] = -1;
    lev[0] = 0; q[t++] = 0;
    while (h < t) {
        int v = q[h++];
        for (int e = rp[v]; e < rp[v + 1]; e++)
            if (lev[col[e]] < 0) { lev[col[e]] = lev[v] + 1; q[t++] = col[e]; }
    }
    free(q);
    return t;
}

int main(void)
{
    int *rp = (int *)malloc(sizeof(int) * (N_VERT + 1));
    int *col = (int *)malloc(sizeof(int) * N_VERT * 128);
    int m = 0;
    for (int v = 0; v < N_VERT; v++) {
        int deg = (v % 5 == 2) ? 26 + rnd() % 70 : 1 + rnd() % 4;
        rp[v] = m;
        for (int k = 0; k < deg; k++) col[m++] = (v + 1 + rnd() % 250) % N_VERT;
    }
    rp[N_VERT] = m;

    int *d_rp, *d_col, *d_lev, *d_q[2], *d_len;
    die(cudaMalloc(&d_rp, sizeof(int) * (N_VERT + 1)), "malloc");
    die(cudaMalloc(&d_col, sizeof(int) * m), "malloc");
    die(cudaMalloc(&d_lev, sizeof(int) * N_VERT), "malloc");
    die(cudaMalloc(&d_q[0], sizeof(int) * N_VERT), "malloc");
    die(cudaMalloc(&d_q[1], sizeof(int) * N_VERT), "malloc");
    die(cudaMalloc(&d_len, sizeof(int)), "malloc");
    die(cudaMemcpy(d_rp, rp, sizeof(int) * (N_VERT + 1), cudaMemcpyHostToDevice), "copy");
    die(cudaMemcpy(d_col, col, sizeof(int) * m, cudaMemcpyHostToDevice), "copy");
    die(cudaMemset(d_lev, 0xff, sizeof(int) * N_VERT), "memset");
    die(cudaMemset(d_lev, 0, sizeof(int)), "memset");
    die(cudaMemset(d_q[0], 0, sizeof(int)), "memset");

    int nf = 1, depth = 0;
    while (nf > 0) {
        die(cudaMemset(d_len, 0, sizeof(int)), "memset");
        bfs_step<<<(nf + TPB - 1) / TPB, TPB>>>(d_rp, d_col, d_q[depth & 1], nf, depth + 1,
                                                d_lev, d_q[(depth + 1) & 1], d_len);
        die(cudaGetLastError(), "bfs_step");
        die(cudaMemcpy(&nf, d_len, sizeof(int), cudaMemcpyDeviceToHost), "copy");
        depth++;
    }

    int lev[N_VERT], ref[N_VERT];
    die(cudaMemcpy(lev, d_lev, sizeof lev, cudaMemcpyDeviceToHost), "copy");
    int reached = cpu_bfs(rp, col, ref);
    long sum = 0;
    for (int i = 0; i < N_VERT; i++) sum += (long)(lev[i] + 2) * (i + 1);
    printf("reached %d depth %d checksum %ld %s\n", reached, depth, sum,
           memcmp(lev, ref, sizeof lev) ? "MISMATCH" : "ok");
    return memcmp(lev, ref, sizeof lev) != 0;
}
