// Curves are tessellated by a grid each, which is as long as the curve is bent.
#include <stdio.h>
#include <cuda_runtime.h>
#define MAX_POINTS 16

struct Curve {
    float2 cp[3];
    float2 *points;
    int n;
};

__device__ float2 lerp2(float2 a, float2 b, float t) { return make_float2(a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t); }

__global__ void tessellate(Curve *curves, int which, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float t = (float)i / (n - 1);
        float2 a = lerp2(curves[which].cp[0], curves[which].cp[1], t);
        float2 b = lerp2(curves[which].cp[1], curves[which].cp[2], t);
        curves[which].points[i] = lerp2(a, b, t);
    }
}

__global__ void measure(Curve *curves, float2 *pool, int count) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < count) {
        float dx = curves[c].cp[2].x - curves[c].cp[0].x, dy = curves[c].cp[2].y - curves[c].cp[0].y;
        int n = min(max((int)(sqrtf(dx * dx + dy * dy) * 2.0f), 4), MAX_POINTS);
        curves[c].n = n;
        curves[c].points = pool + c * MAX_POINTS;
        tessellate<<<(n + 31) / 32, 32>>>(curves, c, n);
    }
}

int main() {
    const int count = 20;
    Curve *curves;
    float2 *pool;
    cudaMallocManaged(&curves, count * sizeof(Curve));
    cudaMallocManaged(&pool, count * MAX_POINTS * sizeof(float2));
    for (int c = 0; c < count; ++c) {
        curves[c].cp[0] = make_float2(0, 0);
        curves[c].cp[1] = make_float2(c * 0.25f, 1);
        curves[c].cp[2] = make_float2(c * 0.5f, 0);
    }
    measure<<<1, 32>>>(curves, pool, count);
    cudaDeviceSynchronize();
    for (int c = 0; c < count; ++c)
        for (int i = 0; i < curves[c].n; ++i) printf("%.2f,%.2f ", curves[c].points[i].x, curves[c].points[i].y);
    printf("\n");
}
