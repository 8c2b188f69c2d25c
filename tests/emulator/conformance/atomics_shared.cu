// Atomic operations on shared memory.
#include "conformance.cuh"

__global__ void histogram(const int* in, int count, int* out) {
    __shared__ int bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) atomicAdd(&bins[in[i] % 16], 1);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

struct Cells {
    int least, most, bits, flips;
    unsigned wrapped, down;
    unsigned long long sum, flags;
    float real;
    double wide;
};

__global__ void all_kinds(Cells* out) {
    __shared__ Cells cells;
    int t = threadIdx.x;
    if (t == 0) cells = Cells{1000, -1000, 0, 0, 0, 0, 0, ~0ull, 0.0f, 0.0};
    __syncthreads();
    atomicMin(&cells.least, 40 - t);
    atomicMax(&cells.most, t - 40);
    atomicOr(&cells.bits, 1 << t % 9);
    atomicXor(&cells.flips, t);
    atomicInc(&cells.wrapped, 12u);
    atomicDec(&cells.down, 12u);
    atomicAdd(&cells.sum, 5000000000ull);
    atomicAnd(&cells.flags, ~(1ull << t % 50));
    atomicAdd(&cells.real, 1.0f);
    atomicAdd(&cells.wide, 0.25);
    __syncthreads();
    if (t == 0) out[blockIdx.x] = cells;
}

int main() {
    Array<int> in(1000), out(16);
    in.fill([](int i) { return i * i % 97; });
    histogram<<<3, 50>>>(in, 1000, out);
    out.show("bins");
    Cells cells[2], *device;
    CHECK(cudaMalloc(&device, sizeof cells));
    all_kinds<<<2, 77>>>(device);
    conformance::finish();
    CHECK(cudaMemcpy(cells, device, sizeof cells, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(device));
    for (const Cells& c : cells) {
        show("min", c.least);
        show("max", c.most);
        show("or", c.bits);
        show("xor", c.flips);
        show("inc", c.wrapped);
        show("dec", c.down);
        show("add 64 bits", c.sum);
        show("and 64 bits", c.flags);
        show("float", c.real);
        show("double", c.wide);
    }
}
