/* Tessellation of quadratic Bezier curves with one child grid per curve,
   after the well known toolkit sample. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TESS_POINTS 128
#define N_LINES 1024
#define BLOCK_DIM 64

#define checkCudaErrors(val) check((val), #val, __FILE__, __LINE__)

static void check(cudaError_t result, char const *func, const char *file, int line)
{
    if (result) {
        fprintf(stderr, "CUDA error at %s:%d code=%d \"%s\"\n", file, line, (int)result, func);
        exit(EXIT_FAILURE);
    }
}

struct BezierLine {
    float2 CP[3];
    float2 *vertexPos;
    int nVertices;
};

__host__ __device__ inline float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__host__ __device__ inline float2 operator-(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }
__host__ __device__ inline float2 operator*(float a, float2 b)  { return make_float2(a * b.x, a * b.y); }
__host__ __device__ inline float length(float2 a)               { return sqrtf(a.x * a.x + a.y * a.y); }

__host__ __device__ inline float computeCurvature(const BezierLine *l)
{
    float base = length(l->CP[2] - l->CP[0]);
    if (base < 1e-6f) return 0.0f;
    return length(l->CP[1] - 0.5f * (l->CP[0] + l->CP[2])) / base;
}

__host__ __device__ inline int computeTess(const BezierLine *l)
{
    int n = (int)(computeCurvature(l) * 16.0f);
    if (n > MAX_TESS_POINTS) n = MAX_TESS_POINTS;
    if (n < 4) n = 4;
    return n;
}

__host__ __device__ inline float2 evalBezier(const float2 *CP, float u)
{
    float om = 1.0f - u;
    float2 p = (om * om) * CP[0];
    p = p + (2.0f * u * om) * CP[1];
    return p + (u * u) * CP[2];
}

__global__ void computeBezierLinePositions(int lidx, BezierLine *bLines, int nTessPoints)
{
    int idx = threadIdx.x + blockDim.x * blockIdx.x;
    if (idx < nTessPoints) {
        float u = (float)idx / (float)(nTessPoints - 1);
        bLines[lidx].vertexPos[idx] = evalBezier(bLines[lidx].CP, u);
    }
}

__global__ void computeBezierLinesCDP(BezierLine *bLines, int nLines)
{
    int lidx = threadIdx.x + blockDim.x * blockIdx.x;

    if (lidx < nLines) {
        int nTess = computeTess(&bLines[lidx]);
        bLines[lidx].nVertices = nTess;
        if (bLines[lidx].vertexPos != NULL) {
            computeBezierLinePositions<<<ceilf((float)nTess / 32.0f), 32>>>(lidx, bLines, nTess);
        }
    }
}

int main(int argc, char **argv)
{
    BezierLine *lines = (BezierLine *)malloc(N_LINES * sizeof(BezierLine));
    float2 *d_pool;
    checkCudaErrors(cudaMalloc((void **)&d_pool, sizeof(float2) * N_LINES * MAX_TESS_POINTS));
    checkCudaErrors(cudaMemset(d_pool, 0, sizeof(float2) * N_LINES * MAX_TESS_POINTS));
    srand(1);
    for (int i = 0; i < N_LINES; i++) {
        for (int j = 0; j < 3; j++) {
            lines[i].CP[j].x = (float)rand() / (float)RAND_MAX;
            lines[i].CP[j].y = (float)rand() / (float)RAND_MAX;
        }
        lines[i].vertexPos = d_pool + (size_t)i * MAX_TESS_POINTS;
        lines[i].nVertices = 0;
    }

    BezierLine *d_lines;
    checkCudaErrors(cudaMalloc((void **)&d_lines, N_LINES * sizeof(BezierLine)));
    checkCudaErrors(cudaMemcpy(d_lines, lines, N_LINES * sizeof(BezierLine), cudaMemcpyHostToDevice));

    printf("Computing Bezier lines (CUDA Dynamic Parallelism version) ...\n");
    computeBezierLinesCDP<<<(unsigned int)ceil((float)N_LINES / (float)BLOCK_DIM), BLOCK_DIM>>>(d_lines, N_LINES);
    checkCudaErrors(cudaGetLastError());
    checkCudaErrors(cudaDeviceSynchronize());

    BezierLine *back = (BezierLine *)malloc(N_LINES * sizeof(BezierLine));
    float2 *pts = (float2 *)malloc(sizeof(float2) * N_LINES * MAX_TESS_POINTS);
    checkCudaErrors(cudaMemcpy(back, d_lines, N_LINES * sizeof(BezierLine), cudaMemcpyDeviceToHost));
    checkCudaErrors(cudaMemcpy(pts, d_pool, sizeof(float2) * N_LINES * MAX_TESS_POINTS, cudaMemcpyDeviceToHost));

    int errors = 0;
    for (int i = 0; i < N_LINES; i++) {
        int n = computeTess(&lines[i]);
        if (abs(n - back[i].nVertices) > 1) {        // rounding may move the count by one
            printf("line %d has %d vertices, should have %d\n", i, back[i].nVertices, n);
            errors++;
            continue;
        }
        n = back[i].nVertices;
        for (int k = 0; k < n; k++) {
            float2 p = evalBezier(lines[i].CP, (float)k / (float)(n - 1));
            if (length(p - pts[(size_t)i * MAX_TESS_POINTS + k]) > 1e-5f) {
                if (errors++ < 10) printf("line %d point %d differs\n", i, k);
            }
        }
    }
    printf(errors ? "FAILED\n" : "OK\n");
    checkCudaErrors(cudaFree(d_lines));
    checkCudaErrors(cudaFree(d_pool));
    free(lines); free(back); free(pts);
    return errors != 0;
}
