// Particle transport: select the particles which are still alive, then launch a
// grid of just the right size for them without asking the host; a tail grid
// adds up the energies.
#include <cstdio>
#include <cstdlib>
#include <vector>

struct Particle {
    int cell;
    unsigned energy;
    unsigned alive;
};

struct Bank {
    Particle *p;
    int n;
    int *index;              // of the living
    int *living;
    unsigned long long *tally;   // [0] total energy [1] particles moved
};

#define N_CELLS 4096
#define BLOCK(n, t) (((n) + (t) - 1) / (t))

__host__ __device__ inline void move(Particle &q)
{
    unsigned k = q.energy * 2654435761u + (unsigned)q.cell;
    for (int i = 0; i < 20; i++) k = k * 1664525u + 1013904223u;
    q.cell = (q.cell + (int)(k >> 20) - 2048) & (N_CELLS - 1);
    q.energy -= q.energy >> 3;
    if (q.energy < 64) q.alive = 0;
}

// warp aggregated compaction
__global__ void select_living(Bank b)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool keep = i < b.n && b.p[i].alive;
    unsigned mask = __ballot_sync(0xffffffffu, keep);
    int lane = threadIdx.x & 31, base = 0;
    if (lane == 0 && mask) base = atomicAdd(b.living, __popc(mask));
    base = __shfl_sync(0xffffffffu, base, 0);
    if (keep) b.index[base + __popc(mask & ((1u << lane) - 1u))] = i;
}

__global__ void transport(Bank b)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < *b.living) move(b.p[b.index[k]]);
}

__global__ void tally_energy(Bank b, int moved)
{
    unsigned long long e = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < b.n; i += gridDim.x * blockDim.x)
        e += b.p[i].energy;
    for (int d = 16; d > 0; d /= 2) e += __shfl_down_sync(0xffffffffu, e, d);
    if ((threadIdx.x & 31) == 0) atomicAdd(&b.tally[0], e);
    if (blockIdx.x == 0 && threadIdx.x == 0) b.tally[1] += moved;
}

__global__ void dispatch(Bank b, int *status)
{
    int n = *b.living;
    if (n == 0) return;
    transport<<<BLOCK(n, 128), 128, 0, cudaStreamFireAndForget>>>(b);
    tally_energy<<<64, 256, 0, cudaStreamTailLaunch>>>(b, n);
    if (cudaGetLastError() != cudaSuccess) *status = 1;
}

#define CHK(x) if ((x) != cudaSuccess) { printf("error in line %d: %s\n", __LINE__, cudaGetErrorString(cudaGetLastError())); return 1; }

int main()
{
    const int n = 120000, steps = 12;
    std::vector<Particle> h(n), got(n);
    unsigned s = 55;
    for (int i = 0; i < n; i++) {
        s = s * 1103515245u + 12345u;
        h[i].cell = (s >> 8) % N_CELLS;
        h[i].energy = 40 + (s >> 16) % 600;
        h[i].alive = h[i].energy >= 64;
    }
    Bank b;
    int *status, st = 0;
    b.n = n;
    CHK(cudaMalloc(&b.p, n * sizeof(Particle)));
    CHK(cudaMalloc(&b.index, n * sizeof(int)));
    CHK(cudaMalloc(&b.living, sizeof(int)));
    CHK(cudaMalloc(&b.tally, 2 * sizeof(unsigned long long)));
    CHK(cudaMalloc(&status, sizeof(int)));
    CHK(cudaMemcpy(b.p, h.data(), n * sizeof(Particle), cudaMemcpyHostToDevice));
    CHK(cudaMemset(b.tally, 0, 2 * sizeof(unsigned long long)));
    CHK(cudaMemset(status, 0, sizeof(int)));

    for (int t = 0; t < steps; t++) {
        CHK(cudaMemsetAsync(b.living, 0, sizeof(int), 0));
        select_living<<<BLOCK(n, 256), 256>>>(b);
        dispatch<<<1, 1>>>(b, status);
        CHK(cudaGetLastError());
    }
    CHK(cudaDeviceSynchronize());

    unsigned long long tally[2], want[2] = {0, 0};
    CHK(cudaMemcpy(tally, b.tally, sizeof tally, cudaMemcpyDeviceToHost));
    CHK(cudaMemcpy(got.data(), b.p, n * sizeof(Particle), cudaMemcpyDeviceToHost));
    CHK(cudaMemcpy(&st, status, sizeof st, cudaMemcpyDeviceToHost));

    for (int t = 0; t < steps; t++) {
        int moved = 0;
        unsigned long long e = 0;
        for (auto &q : h)
            if (q.alive) { move(q); moved++; }
        for (auto &q : h) e += q.energy;
        if (moved) { want[0] += e; want[1] += moved; }
    }
    int diff = 0;
    for (int i = 0; i < n; i++)
        diff += got[i].cell != h[i].cell || got[i].energy != h[i].energy || got[i].alive != h[i].alive;
    bool good = !diff && !st && tally[0] == want[0] && tally[1] == want[1];
    if (good) printf("OK (%llu moves)\n", tally[1]);
    else printf("%d particles differ, tally %llu/%llu, expected %llu/%llu, status %d\n", diff, tally[0], tally[1], want[0], want[1], st);
    return !good;
}
