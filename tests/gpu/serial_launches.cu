// 200,704 launches that run one after the other: a Monte Carlo estimate of how often random walks come back to where they began.
//
//   serial_launches [BATCHES [STEPS]]
//
// Each site has a child grid of 32 walkers, each with STEPS steps on a square lattice; the child adds the returns to the origin up.
// A parent of one block launches the grids of 1024 sites, one by each thread, into the NULL stream of its block: in there a grid begins
// when the one before it has ended. The host launches BATCHES such parents, one after the other.
//
// How long that takes at least: a step draws a number by xorshift, six operations of which each needs the one before, of at least
// 4 cycles each. 16,384 steps take 393,216 cycles, 0.19 ms at 2 GHz; 196 * 1024 grids in a row take 39 s. Collected, the 1024 grids of a
// batch run at the same time on the multiprocessors: 196 * 0.2 ms and a launch each.
//
// Never more than 1024 launches are pending, so that the pool's default size of 2048 will do. Walks of some sites are compared with the
// same walks on the CPU, and all sums with a bound; prints `right` or `wrong`, and ends with 0 or 1.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                  \
    do {                                                                                             \
        cudaError_t error_ = (call);                                                                 \
        if (error_ != cudaSuccess) {                                                                 \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error_));     \
            std::exit(2);                                                                            \
        }                                                                                            \
    } while (0)

constexpr int kSites = 1024;     // of a batch
constexpr int kWalkers = 32;     // of a site

// The returns of one walker to the origin.
__host__ __device__ unsigned walk(unsigned walker, int steps) {
    unsigned state = walker * 2654435761u + 1u;
    int x = 0, y = 0;
    unsigned returns = 0;
    for (int step = 0; step < steps; ++step) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        const int way = 1 - int(state >> 30 & 2u);
        if (state >> 30 & 1u) x += way;
        else y += way;
        returns += x == 0 && y == 0;
    }
    return returns;
}

__global__ void walk_site(unsigned* returns, int site, int steps) {
    const unsigned mine = walk(unsigned(site) * kWalkers + threadIdx.x, steps);
    if (mine > 0) atomicAdd(&returns[site], mine);
}

__global__ void walk_batch(unsigned* returns, int first, int steps) {
    const int site = first + int(threadIdx.x);
    walk_site<<<1, kWalkers>>>(returns, site, steps);
}

int main(int argc, char** argv) {
    const int batches = argc > 1 ? std::atoi(argv[1]) : 196;
    const int steps = argc > 2 ? std::atoi(argv[2]) : 16384;
    const int sites = batches * kSites;
    unsigned* returns;
    CHECK(cudaMalloc(&returns, sites * sizeof(unsigned)));
    CHECK(cudaMemset(returns, 0, sites * sizeof(unsigned)));
    for (int batch = 0; batch < batches; ++batch) {
        walk_batch<<<1, kSites>>>(returns, batch * kSites, steps);
        CHECK(cudaGetLastError());
    }
    CHECK(cudaDeviceSynchronize());
    std::vector<unsigned> found(sites);
    CHECK(cudaMemcpy(found.data(), returns, sites * sizeof(unsigned), cudaMemcpyDeviceToHost));
    bool right = true;
    unsigned long long all = 0;
    for (int site = 0; site < sites; ++site) {
        // An origin is reached in even steps only.
        right = right && found[site] <= unsigned(kWalkers) * unsigned(steps) / 2;
        all += found[site];
        if (site % 4099 != 0 && site + 1 != sites) continue;
        unsigned expected = 0;
        for (int walker = 0; walker < kWalkers; ++walker) expected += walk(unsigned(site) * kWalkers + walker, steps);
        right = right && found[site] == expected;
    }
    std::printf("%llu returns, %s\n", all, right ? "right" : "wrong");
    return right ? 0 : 1;
}
