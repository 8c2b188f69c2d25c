// Adaptive tessellation of curves: each thread allocates its line's points and has a grid fill them in.
#include <cstdio>
#include <cuda_runtime.h>
#include <vector_types.h>
#define MAX_TESS 32

__forceinline__ __device__ float2 operator+(float2 a, float2 b) { float2 c; c.x = a.x + b.x; c.y = a.y + b.y; return c; }
__forceinline__ __device__ float2 operator-(float2 a, float2 b) { float2 c; c.x = a.x - b.x; c.y = a.y - b.y; return c; }
__forceinline__ __device__ float2 operator*(float a, float2 b) { float2 c; c.x = a * b.x; c.y = a * b.y; return c; }
__forceinline__ __device__ float length(float2 a) { return sqrtf(a.x * a.x + a.y * a.y); }

struct BezierLine {
    float2 CP[3];
    float2* vertexPos;
    int nVertices;
};

__device__ float curvature(BezierLine* lines, int i) {
    return length(lines[i].CP[1] - 0.5f * (lines[i].CP[0] + lines[i].CP[2])) / length(lines[i].CP[2] - lines[i].CP[0]);
}

__global__ void tessellate_child(int lidx, BezierLine* bLines, int nTessPoints) {
    int idx = threadIdx.x + blockDim.x * blockIdx.x;
    if (idx < nTessPoints) {
        float u = (float)idx / (float)(nTessPoints - 1);
        float omu = 1.0f - u;
        float B3u[3];
        B3u[0] = omu * omu;
        B3u[1] = 2.0f * u * omu;
        B3u[2] = u * u;
        float2 position = {0, 0};
        for (int i = 0; i < 3; i++) position = position + B3u[i] * bLines[lidx].CP[i];
        bLines[lidx].vertexPos[idx] = position;
    }
}

__global__ void tessellate_lines(BezierLine* bLines, int nLines) {
    int lidx = threadIdx.x + blockDim.x * blockIdx.x;
    if (lidx < nLines) {
        int nTess = min(max((int)(curvature(bLines, lidx) * 16.0f), 4), MAX_TESS);
        bLines[lidx].nVertices = nTess;
        cudaMalloc((void**)&bLines[lidx].vertexPos, nTess * sizeof(float2));
        tessellate_child<<<ceil((float)nTess / 32.0f), 32>>>(lidx, bLines, nTess);
    }
}

__global__ void free_vertices(BezierLine* bLines, int nLines) {
    int lidx = threadIdx.x + blockDim.x * blockIdx.x;
    if (lidx < nLines) cudaFree(bLines[lidx].vertexPos);
}

void run(BezierLine* bLines, int nLines) {
    tessellate_lines<<<(nLines + 63) / 64, 64>>>(bLines, nLines);
    cudaDeviceSynchronize();
    free_vertices<<<(nLines + 63) / 64, 64>>>(bLines, nLines);
}
