// Shared variables of templates and of functions: one for each instantiation, the same one for all that call it.
#include "conformance.cuh"

template <class T, int N>
__device__ T turn(T value, int by) {
    __shared__ T ring[N];
    __syncthreads();
    ring[threadIdx.x] = value;
    __syncthreads();
    return ring[(threadIdx.x + by) % N];
}

struct Counter {
    template <int Which>
    static __device__ int& cell() {
        __shared__ int instance;
        return instance;
    }
};

__device__ int& common() {
    __shared__ int instance;
    return instance;
}
__device__ void first_half() {
    if (threadIdx.x < 16) atomicAdd(&common(), 1);
}
__device__ void second_half() {
    if (threadIdx.x >= 16) atomicAdd(&common(), 100);
}

template <class T>
__global__ void ring(T* out) {
    T value = turn<T, 32>(static_cast<T>(threadIdx.x), 5);
    value += turn<T, 32>(value, 1) * 100;
    if (threadIdx.x == 0) {
        Counter::cell<1>() = 0;
        Counter::cell<2>() = 1000;
        common() = 0;
    }
    __syncthreads();
    atomicAdd(&Counter::cell<1>(), 1);
    atomicSub(&Counter::cell<2>(), 2);
    first_half();
    second_half();
    __syncthreads();
    if (threadIdx.x < 3) value = threadIdx.x == 0 ? Counter::cell<1>() : threadIdx.x == 1 ? Counter::cell<2>() : common();
    out[threadIdx.x] = value;
}

int main() {
    Array<int> whole(32);
    Array<double> real(32);
    ring<<<1, 32>>>(whole.operator int*());
    whole.show("int");
    ring<double><<<1, 32>>>(real);
    real.show("double");
}
