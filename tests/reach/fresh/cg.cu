// Conjugate gradients for a shifted 1D Laplacian.  One "step" kernel queues the
// vector kernels of an iteration and the next step on the tail stream.
#include <cstdio>
#include <cmath>
#include <vector>

namespace solver {

constexpr int kThreads = 256;

struct Scalars {
    double rr;        // r.r at the beginning of the iteration
    double rr_next;
    double pq;
    int k;
    int error;
};

struct System {
    int n;
    double shift;
    double *x, *r, *p, *q;
    Scalars *s;
    double tol2;
    int kmax;

    __host__ __device__ int blocks() const { return (n + kThreads - 1) / kThreads; }
};

__device__ void block_add(double v, double *target)
{
    __shared__ double buf[kThreads];
    buf[threadIdx.x] = v;
    __syncthreads();
    for (int h = kThreads / 2; h > 0; h >>= 1) {
        if (threadIdx.x < h) buf[threadIdx.x] += buf[threadIdx.x + h];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(target, buf[0]);
}

__global__ void apply(System A)          // q = A p,  pq = p.q
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double c = 0;
    if (i < A.n) {
        double left = i > 0 ? A.p[i - 1] : 0.0;
        double right = i < A.n - 1 ? A.p[i + 1] : 0.0;
        double q = (2.0 + A.shift) * A.p[i] - left - right;
        A.q[i] = q;
        c = q * A.p[i];
    }
    block_add(c, &A.s->pq);
}

__global__ void update(System A)         // x += a p,  r -= a q,  rr_next = r.r
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double c = 0;
    if (i < A.n) {
        double alpha = A.s->rr / A.s->pq;
        A.x[i] += alpha * A.p[i];
        double r = A.r[i] - alpha * A.q[i];
        A.r[i] = r;
        c = r * r;
    }
    block_add(c, &A.s->rr_next);
}

__global__ void direction(System A)      // p = r + b p
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < A.n)
        A.p[i] = A.r[i] + (A.s->rr_next / A.s->rr) * A.p[i];
}

template <typename Kernel>
__device__ void enqueue(Kernel kernel, int blocks, int threads, const System &A)
{
    kernel<<<blocks, threads, 0, cudaStreamTailLaunch>>>(A);
    if (cudaPeekAtLastError() != cudaSuccess)
        A.s->error = 1;
}

__global__ void step(System A)
{
    Scalars *s = A.s;
    if (s->k > 0)
        s->rr = s->rr_next;
    if (s->rr <= A.tol2 || s->k >= A.kmax || s->error)
        return;
    s->k++;
    s->pq = 0;
    s->rr_next = 0;
    enqueue(apply, A.blocks(), kThreads, A);
    enqueue(update, A.blocks(), kThreads, A);
    enqueue(direction, A.blocks(), kThreads, A);
    enqueue(step, 1, 1, A);
}

}  // namespace solver

#define DIE_IF(e) if (cudaError_t e_ = (e)) { std::printf("%s: %s\n", #e, cudaGetErrorString(e_)); return 1; }

int main()
{
    using namespace solver;
    const int n = 10000;
    std::vector<double> truth(n), b(n), x(n), zeros(n, 0.0);
    for (int i = 0; i < n; ++i) truth[i] = std::sin(0.01 * i) + (i % 17) * 0.1;
    const double shift = 0.01;
    double rr = 0;
    for (int i = 0; i < n; ++i) {
        b[i] = (2 + shift) * truth[i] - (i ? truth[i - 1] : 0) - (i < n - 1 ? truth[i + 1] : 0);
        rr += b[i] * b[i];
    }

    System A;
    A.n = n; A.shift = shift; A.kmax = 2000; A.tol2 = rr * 1e-24;
    const size_t bytes = n * sizeof(double);
    for (double **v : {&A.x, &A.r, &A.p, &A.q}) DIE_IF(cudaMalloc(v, bytes));
    DIE_IF(cudaMalloc(&A.s, sizeof(Scalars)));
    Scalars s = {rr, 0, 0, 0, 0};
    DIE_IF(cudaMemcpy(A.s, &s, sizeof s, cudaMemcpyHostToDevice));
    DIE_IF(cudaMemcpy(A.x, zeros.data(), bytes, cudaMemcpyHostToDevice));
    DIE_IF(cudaMemcpy(A.r, b.data(), bytes, cudaMemcpyHostToDevice));
    DIE_IF(cudaMemcpy(A.p, b.data(), bytes, cudaMemcpyHostToDevice));

    step<<<1, 1>>>(A);
    DIE_IF(cudaGetLastError());
    DIE_IF(cudaDeviceSynchronize());
    DIE_IF(cudaMemcpy(&s, A.s, sizeof s, cudaMemcpyDeviceToHost));
    DIE_IF(cudaMemcpy(x.data(), A.x, bytes, cudaMemcpyDeviceToHost));

    double worst = 0;
    for (int i = 0; i < n; ++i) worst = std::fmax(worst, std::fabs(x[i] - truth[i]));
    if (s.error == 0 && worst < 1e-7)
        std::printf("OK: %d iterations, error %.2e\n", s.k, worst);
    else
        std::printf("WRONG: %d iterations, error %.2e, launch error %d\n", s.k, worst, s.error);
    return s.error == 0 && worst < 1e-7 ? 0 : 1;
}
