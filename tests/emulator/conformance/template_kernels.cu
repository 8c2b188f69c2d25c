// Kernels as templates: deduced and given arguments, values, kernels as template arguments and in variables.
#include "conformance.cuh"

template <class T>
__global__ void fill(T* out, T value) {
    out[threadIdx.x] = value + static_cast<T>(threadIdx.x);
}
template <int Factor, class T, bool Negate = false>
__global__ void scale(T* out) {
    out[threadIdx.x] *= Negate ? -Factor : Factor;
}
template <class... Numbers>
__global__ void sum(int* out, Numbers... numbers) {
    *out = (0 + ... + static_cast<int>(numbers));
}
template <class T>
struct Add {
    T by;
    __device__ T operator()(T value) const { return value + by; }
};
template <class T, class Function>
__global__ void apply(T* out, Function function) {
    out[threadIdx.x] = function(out[threadIdx.x]);
}

__global__ void plus(int* out) { *out += 3; }
__global__ void times(int* out) { *out *= 3; }

template <auto Kernel, class... A>
__device__ void launch(A... arguments) {
    Kernel<<<1, 1>>>(arguments...);
}
template <void (*Kernel)(int*)>
__global__ void twice(int* out) {
    launch<Kernel>(out);
    launch<Kernel>(out);
}
template <int Depth>
__global__ void recursive(int* out) {
    *out += Depth;
    if constexpr (Depth > 0) recursive<Depth - 1><<<1, 1>>>(out);
}

int main() {
    Array<int> whole(8);
    Array<double> real(8);
    fill<<<1, 8>>>(whole.operator int*(), 10);
    fill<double><<<1, 8>>>(real, 2);
    scale<3><<<1, 8>>>(whole.operator int*());
    scale<2, double, true><<<1, 8>>>(real);
    apply<<<1, 8>>>(whole.operator int*(), Add<int>{100});
    apply<double, Add<double>><<<1, 8>>>(real, {0.5});
    whole.show("whole");
    real.show("real");
    sum<<<1, 1>>>(whole.operator int*(), 1, 2.9, 'a', 4ll);
    twice<plus><<<1, 1>>>(whole);
    conformance::finish();
    twice<times><<<1, 1>>>(whole);
    conformance::finish();
    recursive<4><<<1, 1>>>(whole);
    conformance::finish();
    void (*kernel)(int*) = plus;
    kernel<<<1, 1>>>(whole + 1);
    whole.show("whole");
}
