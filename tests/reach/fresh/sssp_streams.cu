/* Single source shortest paths (Bellman-Ford with a dirty flag per vertex).
 * Busy vertices relax their edges in a child grid launched in a stream of
 * their own, so that the children of a block need not queue up.            */
#include <stdio.h>
#include <stdlib.h>
#include <limits.h>

typedef struct { int n, m; int *off, *dst, *w; } Graph;

#define BIG_DEG 32
#define INF (INT_MAX / 2)

#define gpuErrchk(ans) { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(cudaError_t code, const char *file, int line)
{
    if (code != cudaSuccess) {
        fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
        exit(code);
    }
}

__device__ void relax(int v, int nd, int *dist, int *dirty_next, int *changed)
{
    if (nd < atomicMin(&dist[v], nd)) {
        dirty_next[v] = 1;
        *changed = 1;
    }
}

__global__ void relaxEdges(Graph g, int u, int du, int *dist, int *dirty_next, int *changed)
{
    int e = g.off[u] + blockIdx.x * blockDim.x + threadIdx.x;
    if (e < g.off[u + 1])
        relax(g.dst[e], du + g.w[e], dist, dirty_next, changed);
}

__global__ void ssspStep(Graph g, int *dist, int *dirty, int *dirty_next, int *changed, int *failed)
{
    int u = blockIdx.x * blockDim.x + threadIdx.x;
    if (u >= g.n || !dirty[u])
        return;
    dirty[u] = 0;
    int du = atomicAdd(&dist[u], 0);
    int deg = g.off[u + 1] - g.off[u];
    if (deg > BIG_DEG) {
        cudaStream_t s;
        if (cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) != cudaSuccess) {
            *failed = 1;
            return;
        }
        relaxEdges<<<(deg + 63) / 64, 64, 0, s>>>(g, u, du, dist, dirty_next, changed);
        if (cudaGetLastError() != cudaSuccess)
            *failed = 1;
        cudaStreamDestroy(s);
    } else {
        for (int e = g.off[u]; e < g.off[u + 1]; e++)
            relax(g.dst[e], du + g.w[e], dist, dirty_next, changed);
    }
}

int main()
{
    Graph h;
    h.n = 20000;
    h.off = (int *)malloc((h.n + 1) * sizeof(int));
    srand(31);
    h.m = 0;
    for (int u = 0; u < h.n; u++) {
        h.off[u] = h.m;
        h.m += (u % 250 == 0) ? 100 + rand() % 700 : 1 + rand() % 5;
    }
    h.off[h.n] = h.m;
    h.dst = (int *)malloc(h.m * sizeof(int));
    h.w = (int *)malloc(h.m * sizeof(int));
    for (int e = 0; e < h.m; e++) { h.dst[e] = rand() % h.n; h.w[e] = 1 + rand() % 100; }

    Graph d = h;
    int *dist, *dirty[2], *flags;
    gpuErrchk(cudaMalloc(&d.off, (h.n + 1) * sizeof(int)));
    gpuErrchk(cudaMalloc(&d.dst, h.m * sizeof(int)));
    gpuErrchk(cudaMalloc(&d.w, h.m * sizeof(int)));
    gpuErrchk(cudaMalloc(&dist, h.n * sizeof(int)));
    gpuErrchk(cudaMalloc(&dirty[0], h.n * sizeof(int)));
    gpuErrchk(cudaMalloc(&dirty[1], h.n * sizeof(int)));
    gpuErrchk(cudaMalloc(&flags, 2 * sizeof(int)));
    gpuErrchk(cudaMemcpy(d.off, h.off, (h.n + 1) * sizeof(int), cudaMemcpyHostToDevice));
    gpuErrchk(cudaMemcpy(d.dst, h.dst, h.m * sizeof(int), cudaMemcpyHostToDevice));
    gpuErrchk(cudaMemcpy(d.w, h.w, h.m * sizeof(int), cudaMemcpyHostToDevice));

    int *hd = (int *)malloc(h.n * sizeof(int));
    for (int i = 0; i < h.n; i++) hd[i] = i == 0 ? 0 : INF;
    gpuErrchk(cudaMemcpy(dist, hd, h.n * sizeof(int), cudaMemcpyHostToDevice));
    gpuErrchk(cudaMemset(dirty[0], 0, h.n * sizeof(int)));
    gpuErrchk(cudaMemset(dirty[1], 0, h.n * sizeof(int)));
    int one = 1;
    gpuErrchk(cudaMemcpy(dirty[0], &one, sizeof(int), cudaMemcpyHostToDevice));
    gpuErrchk(cudaMemset(flags, 0, 2 * sizeof(int)));

    int rounds = 0, f[2] = { 1, 0 };
    while (f[0] && !f[1]) {
        gpuErrchk(cudaMemset(flags, 0, sizeof(int)));
        ssspStep<<<(h.n + 255) / 256, 256>>>(d, dist, dirty[rounds & 1], dirty[~rounds & 1], flags, flags + 1);
        gpuErrchk(cudaPeekAtLastError());
        gpuErrchk(cudaMemcpy(f, flags, 2 * sizeof(int), cudaMemcpyDeviceToHost));
        rounds++;
    }
    gpuErrchk(cudaMemcpy(hd, dist, h.n * sizeof(int), cudaMemcpyDeviceToHost));
    if (f[1]) { printf("a device side launch failed\n"); return 1; }

    int *ref = (int *)malloc(h.n * sizeof(int));
    for (int i = 0; i < h.n; i++) ref[i] = i == 0 ? 0 : INF;
    for (int again = 1; again;) {
        again = 0;
        for (int u = 0; u < h.n; u++)
            for (int e = h.off[u]; e < h.off[u + 1] && ref[u] < INF; e++)
                if (ref[u] + h.w[e] < ref[h.dst[e]]) { ref[h.dst[e]] = ref[u] + h.w[e]; again = 1; }
    }
    int diff = 0;
    for (int i = 0; i < h.n; i++) diff += hd[i] != ref[i];
    if (diff) printf("%d distances wrong\n", diff);
    else printf("OK after %d rounds\n", rounds);
    return diff ? 1 : 0;
}
