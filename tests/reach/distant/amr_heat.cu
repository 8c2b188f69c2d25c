// One level of adaptive mesh refinement on a 3-D heat problem. Coarse cells with a steep
// gradient are refined 4x4x4 by a child grid and return their average.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define NX 40
#define NY 28
#define NZ 20
#define R  4                       /* refinement per axis */
#define IDX(i, j, k) (((k) * NY + (j)) * NX + (i))

#define cudaErrChk(err) { if (err != cudaSuccess) { \
        fprintf(stderr, "%s(%d): %s\n", __FILE__, __LINE__, cudaGetErrorString(err)); exit(EXIT_FAILURE); } }

struct Grid {
    float *T;        /* temperatures in */
    float *Tnew;     /* out */
    int   *level;    /* 1 where refined */
};

__host__ __device__ inline float at(const float *T, int i, int j, int k)
{
    i = i < 0 ? 0 : i >= NX ? NX - 1 : i;
    j = j < 0 ? 0 : j >= NY ? NY - 1 : j;
    k = k < 0 ? 0 : k >= NZ ? NZ - 1 : k;
    return T[IDX(i, j, k)];
}

__host__ __device__ inline float gradient(const float *T, int i, int j, int k)
{
    float gx = at(T, i + 1, j, k) - at(T, i - 1, j, k);
    float gy = at(T, i, j + 1, k) - at(T, i, j - 1, k);
    float gz = at(T, i, j, k + 1) - at(T, i, j, k - 1);
    return fabsf(gx) + fabsf(gy) + fabsf(gz);
}

/* trilinear value inside coarse cell (i,j,k), offset in [-.5,.5] of a cell */
__host__ __device__ inline float interp(const float *T, int i, int j, int k, float fx, float fy, float fz)
{
    int si = fx < 0 ? -1 : 1, sj = fy < 0 ? -1 : 1, sk = fz < 0 ? -1 : 1;
    fx = fabsf(fx); fy = fabsf(fy); fz = fabsf(fz);
    float c00 = (1 - fx) * at(T, i, j, k) + fx * at(T, i + si, j, k);
    float c10 = (1 - fx) * at(T, i, j + sj, k) + fx * at(T, i + si, j + sj, k);
    float c01 = (1 - fx) * at(T, i, j, k + sk) + fx * at(T, i + si, j, k + sk);
    float c11 = (1 - fx) * at(T, i, j + sj, k + sk) + fx * at(T, i + si, j + sj, k + sk);
    return (1 - fz) * ((1 - fy) * c00 + fy * c10) + fz * ((1 - fy) * c01 + fy * c11);
}

__host__ __device__ inline float fine_value(const float *T, int i, int j, int k, int a, int b, int c)
{
    const float h = 1.0f / R;
    float fx = (a + 0.5f) * h - 0.5f, fy = (b + 0.5f) * h - 0.5f, fz = (c + 0.5f) * h - 0.5f;
    float m = interp(T, i, j, k, fx, fy, fz);
    return m + 0.02f * (interp(T, i, j, k, -fx, fy, fz) + interp(T, i, j, k, fx, -fy, fz) + interp(T, i, j, k, fx, fy, -fz) - 3.0f * m);
}

__global__ void refine_cell(Grid g, int i, int j, int k)
{
    __shared__ float buf[R * R * R];
    int t = (threadIdx.z * R + threadIdx.y) * R + threadIdx.x;
    buf[t] = fine_value(g.T, i, j, k, threadIdx.x, threadIdx.y, threadIdx.z);
    __syncthreads();
    for (int s = R * R * R / 2; s > 0; s /= 2) {
        if (t < s) buf[t] += buf[t + s];
        __syncthreads();
    }
    if (t == 0) g.Tnew[IDX(i, j, k)] = buf[0] / (R * R * R);
}

__global__ void step(Grid g, float tol)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    int k = blockIdx.z * blockDim.z + threadIdx.z;
    if (i < NX && j < NY && k < NZ) {
        if (gradient(g.T, i, j, k) > tol) {
            g.level[IDX(i, j, k)] = 1;
            refine_cell<<<1, dim3(R, R, R)>>>(g, i, j, k);
        } else {
            g.level[IDX(i, j, k)] = 0;
            float c = at(g.T, i, j, k);
            g.Tnew[IDX(i, j, k)] = c + 0.1f * (at(g.T, i - 1, j, k) + at(g.T, i + 1, j, k) + at(g.T, i, j - 1, k)
                                 + at(g.T, i, j + 1, k) + at(g.T, i, j, k - 1) + at(g.T, i, j, k + 1) - 6 * c);
        }
    }
}

int main(void)
{
    const int N = NX * NY * NZ, steps = 3;
    const float tol = 30.0f;
    float *h = (float *)malloc(N * sizeof(float)), *h2 = (float *)malloc(N * sizeof(float)), *out = (float *)malloc(N * sizeof(float));
    for (int k = 0; k < NZ; k++) for (int j = 0; j < NY; j++) for (int i = 0; i < NX; i++) {
        float d = sqrtf((i - 15.f) * (i - 15.f) + (j - 12.f) * (j - 12.f) + (k - 9.f) * (k - 9.f));
        h[IDX(i, j, k)] = d < 6 ? 100.0f : 20.0f;
    }
    Grid g;
    cudaErrChk(cudaMalloc(&g.T, N * sizeof(float)));
    cudaErrChk(cudaMalloc(&g.Tnew, N * sizeof(float)));
    cudaErrChk(cudaMalloc(&g.level, N * sizeof(int)));
    cudaErrChk(cudaMemcpy(g.T, h, N * sizeof(float), cudaMemcpyHostToDevice));
    cudaErrChk(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, N));

    dim3 dimBlock(8, 8, 4);
    dim3 dimGrid((NX - 1) / dimBlock.x + 1, (NY - 1) / dimBlock.y + 1, (NZ - 1) / dimBlock.z + 1);
    for (int s = 0; s < steps; s++) {
        step<<<dimGrid, dimBlock>>>(g, tol);
        cudaErrChk(cudaGetLastError());
        float *t = g.T; g.T = g.Tnew; g.Tnew = t;
    }
    cudaErrChk(cudaDeviceSynchronize());
    cudaErrChk(cudaMemcpy(out, g.T, N * sizeof(float), cudaMemcpyDeviceToHost));

    for (int s = 0; s < steps; s++) {
        for (int k = 0; k < NZ; k++) for (int j = 0; j < NY; j++) for (int i = 0; i < NX; i++) {
            if (gradient(h, i, j, k) > tol) {
                float sum = 0;
                for (int c = 0; c < R; c++) for (int b = 0; b < R; b++) for (int a = 0; a < R; a++) sum += fine_value(h, i, j, k, a, b, c);
                h2[IDX(i, j, k)] = sum / (R * R * R);
            } else {
                float c = at(h, i, j, k);
                h2[IDX(i, j, k)] = c + 0.1f * (at(h, i - 1, j, k) + at(h, i + 1, j, k) + at(h, i, j - 1, k)
                                 + at(h, i, j + 1, k) + at(h, i, j, k - 1) + at(h, i, j, k + 1) - 6 * c);
            }
        }
        float *t = h; h = h2; h2 = t;
    }
    int bad = 0;
    for (int n = 0; n < N; n++) if (fabsf(h[n] - out[n]) > 1e-2f) bad++;
    /* a gradient that equals the tolerance up to rounding may be decided differently */
    if (bad > N / 1000) { printf("MISMATCH in %d cells\n", bad); return 1; }
    printf("OK\n");
    return 0;
}
