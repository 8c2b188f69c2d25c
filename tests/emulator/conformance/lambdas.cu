// Lambdas in kernels: captures by value and by reference, generic ones, passed to device functions.
#include "conformance.cuh"

template <class Body>
__device__ void for_each(int begin, int end, Body&& body) {
    for (int i = begin + threadIdx.x; i < end; i += blockDim.x) body(i);
}
template <class F>
__device__ auto twice(F f) {
    return [f](auto value) { return f(f(value)); };
}

__global__ void kernel(int* out, double* real, int count) {
    __shared__ int sum;
    int local = 0;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    for_each(0, count, [=](int i) { out[i] = i * i; });
    for_each(0, count, [&](int i) { local += i; });
    atomicAdd(&sum, local);
    __syncthreads();
    auto next = twice([add = sum](auto value) { return value + add; });
    if (threadIdx.x == 0) {
        out[count] = next(1);
        real[0] = next(0.5);
        auto countdown = [](auto&& self, int n) -> int { return n == 0 ? 0 : n + self(self, n - 1); };
        out[count + 1] = countdown(countdown, 10);
    }
}

int main() {
    Array<int> out(22);
    Array<double> real(1);
    kernel<<<1, 8>>>(out, real, 20);
    out.show("out");
    real.show("real");
}
