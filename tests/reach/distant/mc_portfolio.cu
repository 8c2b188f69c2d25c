/*
 * Monte Carlo pricing of a book of European options.
 * Each contract asks for its own number of paths (by notional); one thread per contract
 * launches the simulation of that contract.
 */
#include <cmath>
#include <iostream>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_CALL(x) do { if ((x) != cudaSuccess) { \
    std::cout << "Error at " << __FILE__ << ":" << __LINE__ << std::endl; \
    return EXIT_FAILURE; } } while (0)

enum OptionType { Call, Put };

struct Contract {
    OptionType type;
    double spot, strike, vol, maturity;
    int    paths;
};

__constant__ double c_rate;

// stateless generator: same numbers on host and device
__host__ __device__ inline double uniform01(unsigned a, unsigned b)
{
    unsigned x = a * 0x9e3779b9u ^ (b + 0x7f4a7c15u) * 0x85ebca6bu;
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    return (x + 0.5) / 4294967296.0;
}

__host__ __device__ inline double gaussian(unsigned contract, unsigned path)
{
    double u1 = uniform01(contract, 2 * path), u2 = uniform01(contract, 2 * path + 1);
    return sqrt(-2.0 * log(u1)) * cos(6.283185307179586 * u2);
}

__host__ __device__ inline double payoff(const Contract &c, double rate, double z)
{
    double st = c.spot * exp((rate - 0.5 * c.vol * c.vol) * c.maturity + c.vol * sqrt(c.maturity) * z);
    double p = c.type == Call ? st - c.strike : c.strike - st;
    return p > 0 ? p : 0;
}

class Pricer {
public:
    static const int BlockSize = 128;
    static const int PathsPerThread = 8;

    __host__ __device__ static int gridFor(int paths)
    {
        const int perBlock = BlockSize * PathsPerThread;
        return 1 + ((paths - 1) / perBlock);
    }
};

__global__ void simulate(const Contract *book, int id, double *sums)
{
    extern __shared__ double sh[];
    const Contract c = book[id];
    const int first = blockIdx.x * blockDim.x + threadIdx.x;
    const int step = gridDim.x * blockDim.x;
    double acc = 0;
    for (int p = first; p < c.paths; p += step)
        acc += payoff(c, c_rate, gaussian(id, p));
    sh[threadIdx.x] = acc;
    __syncthreads();
    for (int half = blockDim.x / 2; half; half >>= 1) {
        if (threadIdx.x < half) sh[threadIdx.x] += sh[threadIdx.x + half];
        __syncthreads();
    }
    if (!threadIdx.x) atomicAdd(sums + id, sh[0]);
}

__global__ void priceBook(const Contract *book, int n, double *sums)
{
    int id = threadIdx.x + blockIdx.x * blockDim.x;
    if (id < n && book[id].paths > 0) {
        sums[id] = 0;
        int grid = Pricer::gridFor(book[id].paths);
        size_t smem = Pricer::BlockSize * sizeof(double);
        simulate<<<grid, Pricer::BlockSize, smem>>>(book, id, sums);
    }
}

__global__ void discount(const Contract *book, int n, const double *sums, double *prices)
{
    int id = threadIdx.x + blockIdx.x * blockDim.x;
    if (id < n) prices[id] = book[id].paths > 0 ? exp(-c_rate * book[id].maturity) * sums[id] / book[id].paths : 0.0;
}

int main()
{
    const int n = 700;
    const double rate = 0.03;
    std::vector<Contract> book(n);
    unsigned r = 5;
    for (int i = 0; i < n; ++i) {
        r = r * 69069u + 1u;
        Contract &c = book[i];
        c.type = (r >> 20) & 1 ? Call : Put;
        c.spot = 80 + (r >> 8) % 40;
        c.strike = 80 + (r >> 12) % 40;
        c.vol = 0.1 + 0.01 * ((r >> 16) % 30);
        c.maturity = 0.25 * (1 + (r >> 24) % 12);
        c.paths = i % 29 == 0 ? 20000 : 64 << (r >> 28) % 4;
        if (i % 50 == 49) c.paths = 0;          // expired
    }
    Contract *dBook;
    double *dSums, *dPrices;
    CUDA_CALL(cudaMalloc((void **)&dBook, n * sizeof(Contract)));
    CUDA_CALL(cudaMalloc((void **)&dSums, n * sizeof(double)));
    CUDA_CALL(cudaMalloc((void **)&dPrices, n * sizeof(double)));
    CUDA_CALL(cudaMemcpy(dBook, &book[0], n * sizeof(Contract), cudaMemcpyHostToDevice));
    CUDA_CALL(cudaMemcpyToSymbol(c_rate, &rate, sizeof(double)));

    const int threads = 64;
    priceBook<<<(n + threads - 1) / threads, threads>>>(dBook, n, dSums);
    discount<<<(n + threads - 1) / threads, threads>>>(dBook, n, dSums, dPrices);
    CUDA_CALL(cudaGetLastError());
    std::vector<double> prices(n);
    CUDA_CALL(cudaMemcpy(&prices[0], dPrices, n * sizeof(double), cudaMemcpyDeviceToHost));

    for (int i = 0; i < n; ++i) {
        double acc = 0, want = 0;
        for (int p = 0; p < book[i].paths; ++p) acc += payoff(book[i], rate, gaussian(i, p));
        if (book[i].paths) want = std::exp(-rate * book[i].maturity) * acc / book[i].paths;
        if (std::fabs(want - prices[i]) > 1e-8 * (1 + want)) {
            std::cout << "contract " << i << ": " << prices[i] << " expected " << want << std::endl;
            return EXIT_FAILURE;
        }
    }
    std::cout << "OK" << std::endl;
    return EXIT_SUCCESS;
}
