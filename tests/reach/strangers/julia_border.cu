#include <cstdio>
#include <cstdlib>
#include "julia_helper.cuh"

#define cucheck_dev(call)                                               \
  {                                                                     \
    cudaError_t res = (call);                                           \
    if (res != cudaSuccess)                                             \
      printf("%s:%d %d\n", __FILE__, __LINE__, (int)res);               \
  }

/** evaluates the common border dwell, if it exists */
__device__ int border_dwell(int w, int h, complexf c, int x0, int y0, int d) {
    int tid = threadIdx.y * blockDim.x + threadIdx.x;
    int bs = blockDim.x * blockDim.y;
    int comm_dwell = NEUT_DWELL;
    for (int r = tid; r < d; r += bs) {
        // for each boundary: b = 0 is east, then counter-clockwise
        for (int b = 0; b < 4; b++) {
            int x = b % 2 != 0 ? x0 + r : (b == 0 ? x0 + d - 1 : x0);
            int y = b % 2 == 0 ? y0 + r : (b == 1 ? y0 + d - 1 : y0);
            comm_dwell = same_dwell(comm_dwell, pixel_dwell(w, h, c, x, y));
        }
    }
    __shared__ int ldwells[BSX * BSY];
    int nt = min(d, BSX * BSY);
    if (tid < nt)
        ldwells[tid] = comm_dwell;
    __syncthreads();
    for (; nt > 1; nt /= 2) {
        if (tid < nt / 2)
            ldwells[tid] = same_dwell(ldwells[tid], ldwells[tid + nt / 2]);
        __syncthreads();
    }
    return ldwells[0];
}

__global__ void dwell_fill_k(int *dwells, int w, int x0, int y0, int d, int dwell) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < d && y < d) {
        x += x0, y += y0;
        dwells[y * w + x] = dwell;
    }
}

__global__ void julia_pixel_k(int *dwells, int w, int h, complexf c, int x0, int y0, int d) {
    int x = threadIdx.x + blockDim.x * blockIdx.x;
    int y = threadIdx.y + blockDim.y * blockIdx.y;
    if (x < d && y < d) {
        x += x0, y += y0;
        dwells[y * w + x] = pixel_dwell(w, h, c, x, y);
    }
}

__global__ void julia_block_k(int *dwells, int w, int h, complexf c, int x0, int y0, int d, int depth,
                              int SUBDIV, int MIN_SIZE, int MAX_DEPTH) {
    x0 += d * blockIdx.x, y0 += d * blockIdx.y;
    int comm_dwell = border_dwell(w, h, c, x0, y0, d);

    if (threadIdx.x == 0 && threadIdx.y == 0) {
        if (comm_dwell != DIFF_DWELL) {
            // uniform dwell, just fill
            dim3 bs(BSX, BSY), grid(divup(d, BSX), divup(d, BSY));
            dwell_fill_k<<<grid, bs>>>(dwells, w, x0, y0, d, comm_dwell);
        } else if (depth + 1 < MAX_DEPTH && d / SUBDIV > MIN_SIZE) {
            // subdivide recursively
            dim3 bs(blockDim.x, blockDim.y), grid(SUBDIV, SUBDIV);
            julia_block_k<<<grid, bs>>>(dwells, w, h, c, x0, y0, d / SUBDIV, depth + 1, SUBDIV, MIN_SIZE, MAX_DEPTH);
        } else {
            // leaf, per-pixel kernel
            dim3 bs(BSX, BSY), grid(divup(d, BSX), divup(d, BSY));
            julia_pixel_k<<<grid, bs>>>(dwells, w, h, c, x0, y0, d);
        }
        cucheck_dev(cudaGetLastError());
    }
}

int main(int argc, char **argv) {
    int w = 512, h = 512, SUBDIV = 2, INIT = 4;
    complexf c = {-0.4f, 0.6f};
    int *d_dwells, *h_dwells = (int *)malloc(w * h * sizeof(int));
    cudaMalloc((void **)&d_dwells, w * h * sizeof(int));
    dim3 bs(BSX, BSY), grid(INIT, INIT);
    julia_block_k<<<grid, bs>>>(d_dwells, w, h, c, 0, 0, w / INIT, 1, SUBDIV, 16, 5);
    cudaDeviceSynchronize();
    cudaMemcpy(h_dwells, d_dwells, w * h * sizeof(int), cudaMemcpyDeviceToHost);
    long long sum = 0;
    for (int i = 0; i < w * h; i++)
        sum += (long long)h_dwells[i] * (i % 101);
    printf("dwell checksum %lld (%s)\n", sum, cudaGetErrorString(cudaGetLastError()));
    cudaFree(d_dwells);
    free(h_dwells);
    return 0;
}
