/*
 * Tessellation of quadratic Bezier curves; the number of points depends on the curvature.
 */
#include <cstdio>
#include <cuda_runtime.h>

#define MAX_TESS_POINTS 32
#define N_LINES 64
#define BLOCK_DIM 64

struct BezierLine {
    float2 CP[3];                       // control points
    float2 vertexPos[MAX_TESS_POINTS];  // results
    int nVertices;
};

__device__ float computeCurvature(const float2 *CP) {
    float x = CP[1].x - 0.5f * (CP[0].x + CP[2].x);
    float y = CP[1].y - 0.5f * (CP[0].y + CP[2].y);
    float c = CP[2].x - CP[0].x, d = CP[2].y - CP[0].y;
    return sqrtf(x * x + y * y) / sqrtf(c * c + d * d);
}

__global__ void computeBezierLine_child(int lidx, BezierLine *bLines, int nTessPoints) {
    int idx = threadIdx.x + blockDim.x * blockIdx.x;
    if (idx < nTessPoints) {
        float u = (float)idx / (float)(nTessPoints - 1);
        float omu = 1.0f - u;
        float B3u[3];
        B3u[0] = omu * omu;
        B3u[1] = 2.0f * u * omu;
        B3u[2] = u * u;
        float2 position = {0, 0};
        for (int i = 0; i < 3; i++) {
            position.x += B3u[i] * bLines[lidx].CP[i].x;
            position.y += B3u[i] * bLines[lidx].CP[i].y;
        }
        bLines[lidx].vertexPos[idx] = position;
    }
}

__global__ void computeBezierLines_dynamic(BezierLine *bLines, int nLines) {
    int lidx = threadIdx.x + blockDim.x * blockIdx.x;

    if (lidx < nLines) {
        float curvature = computeCurvature(bLines[lidx].CP);
        int nTessPoints = min(max((int)(curvature * 16.0f), 4), MAX_TESS_POINTS);
        bLines[lidx].nVertices = nTessPoints;

        int childBlocks = (nTessPoints + 31) / 32;
        computeBezierLine_child<<<childBlocks, 32>>>(lidx, bLines, nTessPoints);
    }
}

int main() {
    BezierLine *bLines;
    cudaMallocManaged(&bLines, N_LINES * sizeof(BezierLine));
    for (int i = 0; i < N_LINES; i++)
        for (int j = 0; j < 3; j++) {
            bLines[i].CP[j].x = (i * 3 + j * 5) % 7 + j;
            bLines[i].CP[j].y = (i * 5 + j * 3) % 11;
        }
    computeBezierLines_dynamic<<<(N_LINES + BLOCK_DIM - 1) / BLOCK_DIM, BLOCK_DIM>>>(bLines, N_LINES);
    cudaDeviceSynchronize();
    double sum = 0;
    int points = 0;
    for (int i = 0; i < N_LINES; i++) {
        points += bLines[i].nVertices;
        for (int j = 0; j < bLines[i].nVertices; j++)
            sum += bLines[i].vertexPos[j].x - bLines[i].vertexPos[j].y;
    }
    printf("%d %.3f\n", points, sum);
    cudaFree(bLines);
    return 0;
}
