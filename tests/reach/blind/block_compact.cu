// Photon list: each block compacts its surviving photons and launches one grid for them.
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

struct Photon { int cell; int energy; unsigned state; };

constexpr int kBlock = 128;
constexpr int kCells = 256;

__host__ __device__ inline unsigned lcg(unsigned &s) { return s = s * 1664525u + 1013904223u; }

// up to 6 scatterings, energy halves each time
__host__ __device__ inline int scatter(Photon &p)
{
    unsigned r = lcg(p.state);
    int lost = (p.energy + 1) / 2;
    p.energy -= lost;
    p.cell = (p.cell + (int)(r >> 28) - 7 + kCells) % kCells;
    return lost;
}

__global__ void track(const Photon *list, int n, unsigned long long *tally)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Photon p = list[i];
    while (p.energy > 0) {
        int where = p.cell;
        int lost = scatter(p);
        atomicAdd(tally + where, (unsigned long long)lost);
    }
}

__global__ void emit(const Photon *photons, int n, int cut, Photon *scratch, unsigned long long *tally)
{
    __shared__ int kept;
    if (threadIdx.x == 0) kept = 0;
    __syncthreads();

    Photon *mine = scratch + blockIdx.x * kBlock;
    int i = blockIdx.x * kBlock + threadIdx.x;
    if (i < n) {
        Photon p = photons[i];
        if (p.energy > cut) {
            mine[atomicAdd(&kept, 1)] = p;
        } else if (p.energy > 0) {
            atomicAdd(tally + p.cell, (unsigned long long)p.energy);    // absorbed on the spot
        }
    }
    __syncthreads();

    if (threadIdx.x == 0 && kept > 0)
        track<<<(kept + 31) / 32, 32>>>(mine, kept, tally);
}

int main()
{
    const int n = 3000, cut = 600;
    std::vector<Photon> ph(n);
    unsigned s = 8;
    for (auto &p : ph) {
        p.cell = (lcg(s) >> 16) % kCells;
        p.energy = (lcg(s) >> 16) % 1000;
        p.state = lcg(s);
    }

    Photon *d, *scratch;
    unsigned long long *tally;
    const int blocks = (n + kBlock - 1) / kBlock;
    cudaMalloc(&d, n * sizeof(Photon));
    cudaMalloc(&scratch, blocks * kBlock * sizeof(Photon));
    cudaMalloc(&tally, kCells * sizeof(*tally));
    cudaMemset(tally, 0, kCells * sizeof(*tally));
    cudaMemcpy(d, ph.data(), n * sizeof(Photon), cudaMemcpyHostToDevice);
    emit<<<blocks, kBlock>>>(d, n, cut, scratch, tally);

    std::vector<unsigned long long> got(kCells), ref(kCells, 0);
    if (cudaMemcpy(got.data(), tally, kCells * sizeof(*tally), cudaMemcpyDeviceToHost) != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
    for (Photon p : ph) {
        if (p.energy <= cut) { ref[p.cell] += p.energy; continue; }
        while (p.energy > 0) { int c = p.cell; ref[c] += scatter(p); }
    }
    unsigned long long sum = 0;
    for (int c = 0; c < kCells; ++c) sum += got[c] * (c + 1);
    std::printf("tally checksum %llu %s\n", sum, got == ref ? "ok" : "bad");
    return got != ref;
}
