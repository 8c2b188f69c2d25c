#include <cstdio>
#include <cuda_runtime.h>

__global__ void advect(const float *u, float *w, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) w[i] = u[i] - 0.1f * (u[i] - u[(i + n - 1) % n]);
}

__global__ void diffuse(float *u, const float *w, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) u[i] = w[i] + 0.05f * (w[(i + 1) % n] - 2 * w[i] + w[(i + n - 1) % n]);
}

__global__ void time_loop(float *u, float *w, int n, int steps) {
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        const dim3 block(32);
        const dim3 grid((n + block.x - 1) / block.x);
        for (int t = 0; t < steps; ++t) {
            advect<<<grid, block>>>(u, w, n);
            cudaDeviceSynchronize();
            diffuse<<<grid, block>>>(u, w, n);
            cudaDeviceSynchronize();
        }
    }
}

int main() {
    const int n = 70;
    float *u, *w;
    cudaMallocManaged(&u, n * sizeof(float));
    cudaMallocManaged(&w, n * sizeof(float));
    for (int i = 0; i < n; i++) u[i] = i % 10;
    time_loop<<<1, 1>>>(u, w, n, 6);
    cudaDeviceSynchronize();
    double s = 0;
    for (int i = 0; i < n; i++) s += u[i] * (i % 4);
    printf("%.4f\n", s);
}
