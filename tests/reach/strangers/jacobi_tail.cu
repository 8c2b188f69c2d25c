// Integer Jacobi smoothing, iterate until nothing changes; the loop never goes back to the host.
#include <cstdio>
#include <utility>
#include <vector>

constexpr int kThreads = 128;

struct State {
    int n;
    int iterations;
    int maxIterations;
    unsigned changed;
};

__global__ void sweep(const int* __restrict__ in, int* __restrict__ out, State* st) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= st->n) return;
    int v = in[i];
    if (i > 0 && i + 1 < st->n) v = (in[i - 1] + 2 * in[i] + in[i + 1]) / 4;
    out[i] = v;
    if (v != in[i]) atomicAdd(&st->changed, 1u);
}

__global__ void step(int* a, int* b, State* st) {
    if (st->iterations > 0 && st->changed == 0) return;            // fixed point
    if (st->iterations == st->maxIterations) return;
    st->changed = 0;
    ++st->iterations;
    sweep<<<(st->n + kThreads - 1) / kThreads, kThreads>>>(a, b, st);
    step<<<1, 1, 0, cudaStreamTailLaunch>>>(b, a, st);
}

int main() {
    const int n = 2000;
    std::vector<int> h(n);
    for (int i = 0; i < n; ++i) h[i] = (i * 7919) % 10007;
    int *a, *b;
    State* st;
    cudaMalloc(&a, n * sizeof(int));
    cudaMalloc(&b, n * sizeof(int));
    cudaMallocManaged(&st, sizeof(State));
    *st = State{n, 0, 400, 0u};
    cudaMemcpy(a, h.data(), n * sizeof(int), cudaMemcpyHostToDevice);
    step<<<1, 1>>>(a, b, st);
    if (auto e = cudaDeviceSynchronize(); e != cudaSuccess) {
        std::printf("failed: %s\n", cudaGetErrorString(e));
        return 1;
    }
    cudaMemcpy(h.data(), st->iterations % 2 ? b : a, n * sizeof(int), cudaMemcpyDeviceToHost);
    long long sum = 0;
    for (int i = 0; i < n; ++i) sum += (long long)h[i] * (i + 1);
    std::printf("%d iterations, changed %u, checksum %lld\n", st->iterations, st->changed, sum);
}
