// Each thread runs a filter of its own: three kernels for each time step, in a stream that it makes.
#include <cstdio>
#include <cuda_runtime.h>

struct FilterData {
    int N_x;
    int T;
    float *x;
    float *w;
    int *a;
};

__device__ inline unsigned hash(unsigned v) {
    v ^= v >> 16;
    v *= 0x7feb352dU;
    v ^= v >> 15;
    return v;
}

__global__ void PropagateState(FilterData data, int chain, int t) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    int at = chain * data.N_x + i;
    data.x[at] = 0.5f * data.x[at] + (hash(at * 31 + t) % 16);
    data.w[at] = data.x[at] > 8.0f ? 2.0f : 1.0f;
}

__global__ void MetropolisResampling(FilterData data, int chain) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    int k = i;
    for (int b = 0; b < 4; b++) {
        int j = hash(i * 7 + b) % data.N_x;
        if (data.w[chain * data.N_x + j] > data.w[chain * data.N_x + k])
            k = j;
    }
    data.a[chain * data.N_x + i] = k;
}

__global__ void PermutateStates(FilterData data, int chain) {
    extern __shared__ float x_s[];
    int i = threadIdx.x;
    x_s[i] = data.x[chain * data.N_x + i];
    __syncthreads();
    data.x[chain * data.N_x + i] = x_s[data.a[chain * data.N_x + i]];
}

__global__ void ParticleFilter(FilterData data, int n_chains) {
    int tid = blockIdx.x * blockDim.x + threadIdx.x;
    if (tid >= n_chains)
        return;
    cudaStream_t streamPMMH;
    cudaStreamCreateWithFlags(&streamPMMH, cudaStreamNonBlocking);
    for (int t = 1; t < data.T + 1; t++) {
        PropagateState<<<1, data.N_x, 0, streamPMMH>>>(data, tid, t);
        MetropolisResampling<<<1, data.N_x, 0, streamPMMH>>>(data, tid);
        PermutateStates<<<1, data.N_x, sizeof(float) * data.N_x, streamPMMH>>>(data, tid);
    }
    cudaStreamDestroy(streamPMMH);
}

int main() {
    FilterData data;
    const int chains = 6;
    data.N_x = 16;
    data.T = 3;
    cudaMallocManaged(&data.x, chains * data.N_x * sizeof(float));
    cudaMallocManaged(&data.w, chains * data.N_x * sizeof(float));
    cudaMallocManaged(&data.a, chains * data.N_x * sizeof(int));
    for (int i = 0; i < chains * data.N_x; i++)
        data.x[i] = i % 5;
    ParticleFilter<<<1, 32>>>(data, chains);
    cudaDeviceSynchronize();
    double sum = 0;
    for (int i = 0; i < chains * data.N_x; i++)
        sum += data.x[i] * (i % 3 + 1);
    printf("%.4f\n", sum);
}
