// Built-in variables in three-dimensional grids and blocks; each thread exists exactly once.
#include "conformance.cuh"

__global__ void where(unsigned* out, unsigned* times) {
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned place = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
    out[place] = blockIdx.x | blockIdx.y << 4 | blockIdx.z << 8 | threadIdx.x << 12 | threadIdx.y << 16 | threadIdx.z << 20;
    atomicAdd(&times[place], 1u);
}

int main() {
    const dim3 grids[] = {dim3(3, 2, 2), dim3(1, 5), dim3(1, 1, 4)};
    const dim3 blocks[] = {dim3(4, 3, 2), dim3(2, 1, 9), dim3(33, 2)};
    for (int i = 0; i < 3; ++i) {
        dim3 grid = grids[i], block = blocks[i];
        int count = grid.x * grid.y * grid.z * block.x * block.y * block.z;
        Array<unsigned> out(count), times(count);
        where<<<grid, block>>>(out, times);
        out.show_digest("places");
        show("last", out.read()[count - 1]);
        unsigned once = 0;
        for (int k = 0; k < count; ++k) once += times.read()[k] == 1;
        show("once", once);
    }
}
