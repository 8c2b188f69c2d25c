/*
 * Connected components by minimum label propagation over an edge list.
 * The last block to finish a pass checks whether anything changed and, if so,
 * puts the next pass on the tail launch stream.
 */
#include <stdio.h>
#include <stdlib.h>

#define THREADS 192

typedef struct { int a, b; } edge_t;

typedef struct {
    const edge_t *edges;
    int n_edges;
    int *label;
    int n_vertices;
    unsigned int *ticket;
    int *changed;
    int *passes;
} cc_args;

/* labels only ever decrease, so one hop further is safe and saves passes */
__device__ int small_label(volatile int *label, int v)
{
    return label[label[v]];
}

__global__ void cc_pass(cc_args g)
{
    __shared__ int is_last;
    int stride = gridDim.x * blockDim.x;
    int mine = 0;

    for (int e = blockIdx.x * blockDim.x + threadIdx.x; e < g.n_edges; e += stride) {
        edge_t ed = g.edges[e];
        int la = small_label(g.label, ed.a);
        int lb = small_label(g.label, ed.b);
        int lo = la < lb ? la : lb;
        if (atomicMin(&g.label[ed.a], lo) > lo) mine = 1;
        if (atomicMin(&g.label[ed.b], lo) > lo) mine = 1;
    }
    if (mine)
        atomicExch(g.changed, 1);

    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        is_last = (atomicAdd(g.ticket, 1u) == gridDim.x - 1);
    __syncthreads();

    if (is_last && threadIdx.x == 0) {
        *g.ticket = 0;
        *g.passes += 1;
        if (atomicExch(g.changed, 0))
            cc_pass<<<gridDim.x, blockDim.x, 0, cudaStreamTailLaunch>>>(g);
    }
}

static int root(int *p, int v)
{
    while (p[v] != v) {
        p[v] = p[p[v]];
        v = p[v];
    }
    return v;
}

static void *dev(size_t bytes, const void *src)
{
    void *p = NULL;
    cudaError_t e = cudaMalloc(&p, bytes);
    if (e == cudaSuccess)
        e = src ? cudaMemcpy(p, src, bytes, cudaMemcpyHostToDevice) : cudaMemset(p, 0, bytes);
    if (e != cudaSuccess) {
        fprintf(stderr, "device memory: %s\n", cudaGetErrorString(e));
        exit(1);
    }
    return p;
}

int main(void)
{
    const int n = 50000, chains = 40;
    int m = 0;
    edge_t *edges = (edge_t *)malloc(sizeof(edge_t) * 3 * n);

    srand(8);
    for (int v = 0; v < n; v++) {              /* long chains ... */
        int w = v + chains;
        if (w < n && rand() % 200) {
            edges[m].a = v;
            edges[m++].b = w;
        }
    }
    for (int k = 0; k < 60; k++) {             /* ... and a few bridges */
        edges[m].a = rand() % n;
        edges[m++].b = rand() % n;
    }

    for (int e = m - 1; e > 0; e--) {          /* in no particular order */
        int o = rand() % (e + 1);
        edge_t t = edges[e];
        edges[e] = edges[o];
        edges[o] = t;
    }

    int *label = (int *)malloc(n * sizeof(int));
    int *parent = (int *)malloc(n * sizeof(int));
    int *want = (int *)malloc(n * sizeof(int));
    for (int v = 0; v < n; v++)
        label[v] = parent[v] = v;

    cc_args g;
    g.edges = (const edge_t *)dev(m * sizeof(edge_t), edges);
    g.n_edges = m;
    g.label = (int *)dev(n * sizeof(int), label);
    g.n_vertices = n;
    g.ticket = (unsigned int *)dev(sizeof(unsigned int), NULL);
    g.changed = (int *)dev(sizeof(int), NULL);
    g.passes = (int *)dev(sizeof(int), NULL);

    cc_pass<<<48, THREADS>>>(g);
    cudaError_t err = cudaGetLastError();
    if (err == cudaSuccess) err = cudaDeviceSynchronize();
    if (err != cudaSuccess) {
        fprintf(stderr, "cc_pass: %s\n", cudaGetErrorString(err));
        return 1;
    }
    int passes = 0;
    cudaMemcpy(label, g.label, n * sizeof(int), cudaMemcpyDeviceToHost);
    cudaMemcpy(&passes, g.passes, sizeof(int), cudaMemcpyDeviceToHost);

    for (int e = 0; e < m; e++) {
        int a = root(parent, edges[e].a), b = root(parent, edges[e].b);
        if (a < b) parent[b] = a;
        else parent[a] = b;
    }
    int wrong = 0, comps = 0;
    for (int v = 0; v < n; v++) {
        want[v] = root(parent, v);
        comps += want[v] == v;
        wrong += label[v] != want[v];
    }
    if (wrong)
        printf("%d labels wrong after %d passes\n", wrong, passes);
    else
        printf("OK: %d components, %d passes\n", comps, passes);
    return wrong != 0;
}
