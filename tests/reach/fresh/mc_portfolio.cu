// Monte Carlo revaluation of a small option book.  Every position chooses its
// own number of paths; the payoff is a functor handed to the path kernel.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

enum class Kind : int { Call, Put, Digital };

struct Position {
    Kind kind;
    double spot, strike, rate, vol, expiry;
    int paths;
    unsigned seed;
};

struct CallPayoff {
    double k;
    __host__ __device__ double operator()(double s) const { return s > k ? s - k : 0.0; }
};
struct PutPayoff {
    double k;
    __host__ __device__ double operator()(double s) const { return s < k ? k - s : 0.0; }
};
// a smooth digital, so that rounding does not flip a path
struct DigitalPayoff {
    double k, width;
    __host__ __device__ double operator()(double s) const
    {
        double t = (s - k) / width;
        return t <= 0 ? 0.0 : (t >= 1 ? 1.0 : t);
    }
};

__host__ __device__ inline unsigned hash32(unsigned x)
{
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

__host__ __device__ inline double gauss(unsigned seed, unsigned path)
{
    double u1 = (hash32(seed + 2u * path) + 1.0) / 4294967297.0;
    double u2 = hash32(seed ^ (2u * path + 1u)) / 4294967296.0;
    return sqrt(-2.0 * log(u1)) * cos(6.283185307179586 * u2);
}

template <class Payoff>
__host__ __device__ inline double onePath(const Position &p, const Payoff &payoff, unsigned path)
{
    double drift = (p.rate - 0.5 * p.vol * p.vol) * p.expiry;
    double st = p.spot * exp(drift + p.vol * sqrt(p.expiry) * gauss(p.seed, path));
    return payoff(st);
}

template <class Payoff>
__global__ void simulate(Position p, Payoff payoff, double *sum)
{
    double acc = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < p.paths; i += gridDim.x * blockDim.x)
        acc += onePath(p, payoff, i);
    for (int d = 16; d; d >>= 1)
        acc += __shfl_down_sync(0xffffffffu, acc, d);
    if ((threadIdx.x & 31) == 0)
        atomicAdd(sum, acc);
}

template <class Payoff>
__device__ void launchPaths(const Position &p, Payoff f, double *sum)
{
    const int threads = 128;
    int blocks = (p.paths + threads * 4 - 1) / (threads * 4);
    simulate<<<blocks, threads>>>(p, f, sum);
}

__global__ void revalue(const Position *book, int n, double *sums)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Position p = book[i];
    switch (p.kind) {
    case Kind::Call:    launchPaths(p, CallPayoff{p.strike}, &sums[i]); break;
    case Kind::Put:     launchPaths(p, PutPayoff{p.strike}, &sums[i]); break;
    case Kind::Digital: launchPaths(p, DigitalPayoff{p.strike, 5.0}, &sums[i]); break;
    }
}

static double cpuSum(const Position &p)
{
    double acc = 0;
    for (int i = 0; i < p.paths; ++i)
        switch (p.kind) {
        case Kind::Call:    acc += onePath(p, CallPayoff{p.strike}, i); break;
        case Kind::Put:     acc += onePath(p, PutPayoff{p.strike}, i); break;
        case Kind::Digital: acc += onePath(p, DigitalPayoff{p.strike, 5.0}, i); break;
        }
    return acc;
}

#define GPU(call)                                                            \
    do {                                                                     \
        const cudaError_t status = (call);                                   \
        if (status != cudaSuccess) {                                         \
            std::fprintf(stderr, #call " -> %s\n", cudaGetErrorName(status)); \
            std::exit(1);                                                    \
        }                                                                    \
    } while (false)

int main()
{
    const int n = 700;
    std::vector<Position> book(n);
    for (int i = 0; i < n; ++i) {
        book[i].kind = static_cast<Kind>(i % 3);
        book[i].spot = 90 + i % 21;
        book[i].strike = 80 + (i * 7) % 41;
        book[i].rate = 0.01 + 0.0001 * (i % 50);
        book[i].vol = 0.1 + 0.005 * (i % 60);
        book[i].expiry = 0.25 + 0.25 * (i % 8);
        book[i].paths = i % 10 == 3 ? 8000 : 100 + (i * 37) % 900;
        book[i].seed = hash32(1000u + i);
    }
    Position *dBook;
    double *dSums;
    GPU(cudaMalloc(&dBook, n * sizeof(Position)));
    GPU(cudaMalloc(&dSums, n * sizeof(double)));
    GPU(cudaMemcpy(dBook, book.data(), n * sizeof(Position), cudaMemcpyHostToDevice));
    GPU(cudaMemset(dSums, 0, n * sizeof(double)));

    revalue<<<(n + 31) / 32, 32>>>(dBook, n, dSums);
    GPU(cudaPeekAtLastError());
    GPU(cudaDeviceSynchronize());

    std::vector<double> sums(n);
    GPU(cudaMemcpy(sums.data(), dSums, n * sizeof(double), cudaMemcpyDeviceToHost));
    double worst = 0, total = 0;
    for (int i = 0; i < n; ++i) {
        double ref = cpuSum(book[i]);
        double rel = std::fabs(sums[i] - ref) / (1.0 + std::fabs(ref));
        worst = rel > worst ? rel : worst;
        total += std::exp(-book[i].rate * book[i].expiry) * sums[i] / book[i].paths;
    }
    if (worst < 1e-8) std::printf("OK  book value %.4f\n", total);
    else std::printf("worst relative difference %.3e\n", worst);
    GPU(cudaFree(dBook));
    GPU(cudaFree(dSums));
    return worst < 1e-8 ? 0 : 1;
}
