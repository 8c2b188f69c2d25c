// Blocks of the child have two dimensions; the parent's size comes from a variable of the host.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
struct Matrix { int width, height, stride; float *elements; };
__device__ float GetElement(const Matrix A, int row, int col) { return A.elements[row * A.stride + col]; }
__device__ void SetElement(Matrix A, int row, int col, float value) { A.elements[row * A.stride + col] = value; }
__device__ int Row() { return blockIdx.y * blockDim.y + threadIdx.y; }
__device__ int Col() { return blockIdx.x * blockDim.x + threadIdx.x; }

__global__ void MatMulTile(Matrix A, Matrix B, Matrix C, int r0, int c0, int size) {
    int r = Row(), c = Col();
    if (r >= size || c >= size) return;
    float sum = 0;
    for (int k = 0; k < A.width; ++k) sum += GetElement(A, r0 + r, k) * GetElement(B, k, c0 + c);
    SetElement(C, r0 + r, c0 + c, sum);
}

__global__ void MatMulTiles(Matrix A, Matrix B, Matrix C, const unsigned char *wanted, int tile) {
    int tr = Row(), tc = Col();
    int across = C.width / tile;
    if (tr < C.height / tile && tc < across && wanted[tr * across + tc]) {
        dim3 dimBlock(8, 8);
        dim3 dimGrid((tile + dimBlock.x - 1) / dimBlock.x, (tile + dimBlock.y - 1) / dimBlock.y);
        MatMulTile<<<dimGrid, dimBlock>>>(A, B, C, tr * tile, tc * tile, tile);
    }
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 4;
    Matrix m[3];
    for (int k = 0; k < 3; ++k) {
        m[k].width = m[k].stride = m[k].height = 32;
        cudaMallocManaged(&m[k].elements, 32 * 32 * sizeof(float));
        for (int i = 0; i < 32 * 32; ++i) m[k].elements[i] = k == 2 ? 0 : (i * (k + 3)) % 7;
    }
    unsigned char *wanted;
    cudaMallocManaged(&wanted, 16);
    for (int i = 0; i < 16; ++i) wanted[i] = i % 3 != 0;
    dim3 block(threads, threads), grid((4 + threads - 1) / threads, (4 + threads - 1) / threads);
    MatMulTiles<<<grid, block>>>(m[0], m[1], m[2], wanted, 8);
    cudaDeviceSynchronize();
    double sum = 0;
    for (int i = 0; i < 32 * 32; ++i) sum += m[2].elements[i] * (i % 5);
    printf("%g\n", sum);
}
