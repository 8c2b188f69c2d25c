// Static shared memory: scalars, arrays of several dimensions, structs, one copy for each block.
#include "conformance.cuh"

struct alignas(16) Entry {
    char tag;
    double weight;
    short rest[3];
};

__global__ void transpose(const int* in, int* out) {
    __shared__ int tile[8][8 + 1];
    int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, width = gridDim.x * 8, height = gridDim.y * 8;
    tile[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();
    out[(blockIdx.x * 8 + threadIdx.y) * height + blockIdx.y * 8 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

__global__ void entries(double* out) {
    __shared__ Entry table[32];
    __shared__ int turn, many[2][3][4];
    int t = threadIdx.x;
    table[t].tag = static_cast<char>('a' + t % 26);
    table[t].weight = t * 0.5 + blockIdx.x;
    table[t].rest[2] = static_cast<short>(-t);
    if (t < 24) many[t / 12][t / 4 % 3][t % 4] = t;
    if (t == 7) turn = 3 + blockIdx.x;
    __syncthreads();
    const Entry& other = table[(t + turn) % 32];
    out[blockIdx.x * 32 + t] = other.weight + other.tag + other.rest[2] + many[1][2][t % 4];
}

int main() {
    Array<int> in(24 * 16), out(24 * 16);
    in.fill([](int i) { return i; });
    transpose<<<dim3(3, 2), dim3(8, 8)>>>(in, out);
    out.show_digest("transposed");
    show("beginning", out.read(), 20);
    Array<double> values(3 * 32);
    entries<<<3, 32>>>(values);
    values.show("entries");
}
