// Dynamic shared memory, divided into arrays of several types, with sizes that differ between launches.
#include "conformance.cuh"

__global__ void carve(int count, double* out) {
    extern __shared__ double memory[];
    double* reals = memory;
    int* whole = reinterpret_cast<int*>(reals + count);
    unsigned char* bytes = reinterpret_cast<unsigned char*>(whole + count);
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        reals[i] = i * 0.25;
        whole[i] = i * 3;
        bytes[i] = static_cast<unsigned char>(i * 5);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        int j = count - 1 - i;
        out[blockIdx.x * count + i] = reals[j] + whole[j] + bytes[j];
    }
}

// Another kernel sees the same memory under another type.
__global__ void words(unsigned* out) {
    extern __shared__ unsigned piece[];
    piece[threadIdx.x] = threadIdx.x * 9;
    __syncthreads();
    out[threadIdx.x] = piece[(threadIdx.x + 1) % blockDim.x];
}

int main() {
    for (int count : {1, 10, 33, 3000}) {
        Array<double> out(2 * count);
        carve<<<2, 32, count * (sizeof(double) + sizeof(int) + 1)>>>(count, out);
        double sum = 0;
        for (int i = 0; i < 2 * count; ++i) sum += out.read()[i] * (i % 10 + 1);
        show("sum", sum);
        show("ends", (out.read()[0] + out.read()[2 * count - 1]) * 0.5);
    }
    Array<unsigned> out(40);
    words<<<1, 40, 40 * sizeof(unsigned)>>>(out);
    out.show("words");
}
