// Cells with a steep gradient are refined by a grid of their own.
#include <cmath>
#include <cstdio>
#include <cuda_runtime.h>
namespace amr {
using real = double;
struct Cell { real x, h; int level; };

__device__ inline real field(real x) { return tanh(20.0 * (x - 0.4)); }
__device__ inline int lane() { return threadIdx.x & 31; }

struct Refiner {
    real* values;
    int stride;
    __device__ void sample(const Cell& c, int count, int slot) const {
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x)
            values[slot * stride + i] = field(c.x + c.h * i / count);
    }
};

__global__ void refine_cell(Refiner r, Cell c, int count, int slot) { r.sample(c, count, slot); }

__global__ void mark(Refiner r, const Cell* cells, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        Cell c = cells[i];
        real slope = fabs(field(c.x + c.h) - field(c.x));
        int count = 4 << c.level;
        if (slope > 0.1) refine_cell<<<(count + 31) / 32, 32, 0, cudaStreamFireAndForget>>>(r, c, count, i);
    }
}
}  // namespace amr

int main() {
    using namespace amr;
    const int n = 20;
    Cell* cells;
    real* values;
    cudaMallocManaged(&cells, n * sizeof(Cell));
    cudaMallocManaged(&values, n * 64 * sizeof(real));
    for (int i = 0; i < n; ++i) cells[i] = {i / 20.0, 0.05, i % 4};
    for (int i = 0; i < n * 64; ++i) values[i] = 0;
    mark<<<1, 32>>>(Refiner{values, 64}, cells, n);
    cudaDeviceSynchronize();
    double sum = 0;
    for (int i = 0; i < n * 64; ++i) sum += values[i];
    printf("%.6f\n", sum);
}
