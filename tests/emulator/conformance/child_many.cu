// Many launches: several by each thread, from loops and branches, with configurations of all kinds.
#include "conformance.cuh"

__global__ void count(int* cells, int number) {
    int threads = gridDim.x * gridDim.y * gridDim.z * blockDim.x * blockDim.y * blockDim.z;
    atomicAdd(&cells[number], threads == 1 ? 1000 : 1);
}

__global__ void parent(int* cells, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    if (t % 4 == 0) {
        for (int i = 0; i < t % 3 + 1; ++i) count<<<1, 8 + i>>>(cells, t);
    } else if (t % 4 == 1) {
        count<<<dim3(2, 2), dim3(3, 2, 2)>>>(cells, t);
    } else if (t % 4 == 2) {
        dim3 grid(t % 5 + 1);
        grid.z = 2;
        count<<<grid, {4, 4}>>>(cells, t);
        if (t > 30) return;
        count<<<1, 1>>>(cells, t);
    }
}

int main() {
    Array<int> cells(50);
    parent<<<4, 16>>>(cells, 50);
    cells.show("cells");
}
