#include <stdio.h>
#include <math.h>
#include <cuda_runtime.h>

#define MAX_TESS_POINTS 48
#define N_LINES 256
#define BLOCK_DIM 64

// All coordinates are 16.16 fixed point.
struct BezierLine
{
    int2 CP[3];
    int2 *vertexPos;    // allocated by the device once the curvature is known
    int nVertices;
};

__host__ __device__ inline int lerpFix(int a, int b, int num, int den)
{
    return a + (int)(((long long)(b - a) * num) / den);
}

__host__ __device__ inline int2 evalBezier(const int2 *cp, int i, int n)
{
    int ax = lerpFix(cp[0].x, cp[1].x, i, n - 1), bx = lerpFix(cp[1].x, cp[2].x, i, n - 1);
    int ay = lerpFix(cp[0].y, cp[1].y, i, n - 1), by = lerpFix(cp[1].y, cp[2].y, i, n - 1);
    int2 r;
    r.x = lerpFix(ax, bx, i, n - 1);
    r.y = lerpFix(ay, by, i, n - 1);
    return r;
}

__host__ __device__ inline int tessPoints(const int2 *cp)
{
    // distance of the middle control point from the chord's middle, L1
    long long dx = (long long)cp[1].x - ((long long)cp[0].x + cp[2].x) / 2;
    long long dy = (long long)cp[1].y - ((long long)cp[0].y + cp[2].y) / 2;
    long long curv = ((dx < 0 ? -dx : dx) + (dy < 0 ? -dy : dy)) >> 16;
    int n = (int)(curv * 2) + 4;
    return n < MAX_TESS_POINTS ? n : MAX_TESS_POINTS;
}

__global__ void computeBezierLine_child(int lidx, BezierLine *bLines, int nTessPoints)
{
    int idx = threadIdx.x + blockDim.x * blockIdx.x;
    if (idx < nTessPoints)
        bLines[lidx].vertexPos[idx] = evalBezier(bLines[lidx].CP, idx, nTessPoints);
}

__global__ void computeBezierLines_parent(BezierLine *bLines, int nLines)
{
    int lidx = threadIdx.x + blockDim.x * blockIdx.x;

    if (lidx < nLines)
    {
        bLines[lidx].nVertices = tessPoints(bLines[lidx].CP);
        cudaMalloc((void **)&bLines[lidx].vertexPos, bLines[lidx].nVertices * sizeof(int2));

        if (bLines[lidx].vertexPos != NULL)
            computeBezierLine_child<<<(unsigned)ceilf((float)bLines[lidx].nVertices / 32.0f), 32>>>
                (lidx, bLines, bLines[lidx].nVertices);
    }
}

__global__ void sumAndFree(BezierLine *bLines, int nLines, unsigned long long *sum)
{
    int lidx = threadIdx.x + blockDim.x * blockIdx.x;
    if (lidx >= nLines || bLines[lidx].vertexPos == NULL)
        return;
    unsigned long long s = 0;
    for (int i = 0; i < bLines[lidx].nVertices; i++)
        s += (unsigned long long)(unsigned)bLines[lidx].vertexPos[i].x * (i + 1)
           ^ (unsigned long long)(unsigned)bLines[lidx].vertexPos[i].y;
    atomicAdd(sum, s);
    cudaFree(bLines[lidx].vertexPos);
    bLines[lidx].vertexPos = NULL;
}

int main()
{
    BezierLine *lines = new BezierLine[N_LINES];
    unsigned r = 7;
    for (int i = 0; i < N_LINES; i++)
    {
        for (int k = 0; k < 3; k++)
        {
            r = r * 69069u + 1u;
            lines[i].CP[k].x = (int)(r >> 12) - (1 << 19);
            r = r * 69069u + 1u;
            lines[i].CP[k].y = (int)(r >> 12) - (1 << 19);
        }
        lines[i].vertexPos = NULL;
        lines[i].nVertices = 0;
    }

    unsigned long long expect = 0, got = 0;
    for (int i = 0; i < N_LINES; i++)
    {
        int n = tessPoints(lines[i].CP);
        for (int k = 0; k < n; k++)
        {
            int2 p = evalBezier(lines[i].CP, k, n);
            expect += (unsigned long long)(unsigned)p.x * (k + 1) ^ (unsigned long long)(unsigned)p.y;
        }
    }

    BezierLine *d_lines;
    unsigned long long *d_sum;
    cudaMalloc((void **)&d_lines, N_LINES * sizeof(BezierLine));
    cudaMalloc((void **)&d_sum, sizeof(*d_sum));
    cudaMemset(d_sum, 0, sizeof(*d_sum));
    cudaMemcpy(d_lines, lines, N_LINES * sizeof(BezierLine), cudaMemcpyHostToDevice);

    computeBezierLines_parent<<<(N_LINES + BLOCK_DIM - 1) / BLOCK_DIM, BLOCK_DIM>>>(d_lines, N_LINES);
    sumAndFree<<<(N_LINES + BLOCK_DIM - 1) / BLOCK_DIM, BLOCK_DIM>>>(d_lines, N_LINES, d_sum);
    cudaMemcpy(&got, d_sum, sizeof(got), cudaMemcpyDeviceToHost);
    cudaError_t e = cudaGetLastError();
    printf("bezier: %llu expected %llu (%s) %s\n", got, expect, cudaGetErrorName(e), got == expect ? "PASSED" : "FAILED");
    delete[] lines;
    return got == expect ? 0 : 1;
}
