// Adaptive Simpson on the device, in 32.32 fixed point so the result does not depend on the order.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#define CUDA_CHECK(call)                                                      \
    do {                                                                      \
        cudaError_t err = call;                                               \
        if (err != cudaSuccess) {                                             \
            fprintf(stderr, "CUDA error at %s:%d: %s\n", __FILE__, __LINE__,  \
                    cudaGetErrorString(err));                                 \
            exit(EXIT_FAILURE);                                               \
        }                                                                     \
    } while (0)

struct Spike {
    double c, w;
    __host__ __device__ double operator()(double x) const { return w / ((x - c) * (x - c) + w * w); }
};
struct Chirp {
    double k;
    __host__ __device__ double operator()(double x) const { return sin(k * x * x) + 1.0; }
};

__device__ unsigned int d_leaves = 0;

template <typename F>
__device__ double simpson(const F& f, double a, double b) {
    return (b - a) / 6.0 * (f(a) + 4.0 * f(0.5 * (a + b)) + f(b));
}

template <typename F>
__global__ void integrate(F f, double a, double b, double whole, double eps, int depth, unsigned long long* acc) {
    const double m = 0.5 * (a + b);
    const double left = simpson(f, a, m);
    const double right = simpson(f, m, b);
    const double delta = left + right - whole;
    if (depth <= 0 || fabs(delta) <= 15.0 * eps) {
        const long long fx = llrint((left + right + delta / 15.0) * 4294967296.0);
        atomicAdd(acc, (unsigned long long)fx);
        atomicAdd(&d_leaves, 1u);
        return;
    }
    integrate<F><<<1, 1, 0, cudaStreamFireAndForget>>>(f, a, m, left, 0.5 * eps, depth - 1, acc);
    integrate<F><<<1, 1, 0, cudaStreamFireAndForget>>>(f, m, b, right, 0.5 * eps, depth - 1, acc);
}

template <typename F>
void run(const char* name, F f, double a, double b, double eps) {
    unsigned long long* acc;
    CUDA_CHECK(cudaMalloc(&acc, sizeof(*acc)));
    CUDA_CHECK(cudaMemset(acc, 0, sizeof(*acc)));
    unsigned zero = 0, leaves;
    CUDA_CHECK(cudaMemcpyToSymbol(d_leaves, &zero, sizeof(zero)));
    const double whole = (b - a) / 6.0 * (f(a) + 4.0 * f(0.5 * (a + b)) + f(b));
    integrate<F><<<1, 1>>>(f, a, b, whole, eps, 18, acc);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    unsigned long long h;
    CUDA_CHECK(cudaMemcpy(&h, acc, sizeof(h), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpyFromSymbol(&leaves, d_leaves, sizeof(leaves)));
    printf("%s: %.6f in %u pieces\n", name, (double)(long long)h / 4294967296.0, leaves);
    CUDA_CHECK(cudaFree(acc));
}

int main() {
    run("spike", Spike{0.3, 0.01}, 0.0, 1.0, 1e-7);
    run("chirp", Chirp{9.0}, 0.0, 3.0, 1e-7);
    return 0;
}
