// threadIdx, blockIdx, blockDim, gridDim and warpSize in a one-dimensional grid.
#include "conformance.cuh"

__global__ void where(int* out, int* widths) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    out[thread] = 10000 * gridDim.x + 1000 * blockDim.x + 100 * blockIdx.x + threadIdx.x;
    if (thread == 0) {
        widths[0] = warpSize;
        widths[1] = gridDim.y * 10 + gridDim.z;
        widths[2] = blockDim.y * 10 + blockDim.z;
        widths[3] = blockIdx.y + blockIdx.z + threadIdx.y + threadIdx.z;
    }
}

int main() {
    Array<int> out(3 * 7), widths(4);
    where<<<3, 7>>>(out, widths);
    out.show("threads");
    widths.show("warp, grid, block, index");
}
