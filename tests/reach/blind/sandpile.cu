// Abelian sandpile on a tiled board. `Scheduler` picks the active tiles and
// fires one grid per tile, `Auditor` runs after them, counts what is left and
// hands over to the next Scheduler.
#include <cstdio>
#include <numeric>
#include <vector>

constexpr int TILE = 16, TX = 5, TY = 4, W = TILE * TX, H = TILE * TY;

template <typename Grain>
struct Pile {
    Grain *sand;        // state
    Grain *topples;     // how many times each site topples this round
    int *tileHot;       // sites >= 4 per tile
    unsigned *rounds;
};

template <typename Grain> __global__ void auditor(Pile<Grain> pile);

template <typename Grain>
__global__ void toppleTile(Pile<Grain> pile, int tx, int ty)
{
    int i = (ty * TILE + threadIdx.y) * W + tx * TILE + threadIdx.x;
    pile.topples[i] = pile.sand[i] / 4;
}

template <typename Grain>
__global__ void scheduler(Pile<Grain> pile)
{
    bool any = false;
    for (int t = 0; t < TX * TY; ++t) {
        if (pile.tileHot[t] == 0) continue;
        any = true;
        toppleTile<<<1, dim3(TILE, TILE), 0, cudaStreamFireAndForget>>>(pile, t % TX, t / TX);
    }
    if (!any) return;
    ++*pile.rounds;
    auditor<<<dim3(TX, TY), dim3(TILE, TILE), 0, cudaStreamTailLaunch>>>(pile);
}

// applies the topples; the board's edge is a sink
template <typename Grain>
__global__ void settle(Pile<Grain> pile)
{
    __shared__ int hot;
    bool lead = threadIdx.x == 0 && threadIdx.y == 0;
    if (lead) hot = 0;
    __syncthreads();
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y, i = y * W + x;
    Grain in = 0;
    if (x > 0) in += pile.topples[i - 1];
    if (x < W - 1) in += pile.topples[i + 1];
    if (y > 0) in += pile.topples[i - W];
    if (y < H - 1) in += pile.topples[i + W];
    Grain v = pile.sand[i] - 4 * pile.topples[i] + in;
    pile.sand[i] = v;
    if (v >= 4) atomicAdd(&hot, 1);
    __syncthreads();
    if (lead) pile.tileHot[blockIdx.y * TX + blockIdx.x] = hot;
}

template <typename Grain>
__global__ void clearTopples(Pile<Grain> pile)
{
    pile.topples[blockIdx.x * blockDim.x + threadIdx.x] = 0;
}

template <typename Grain>
__global__ void auditor(Pile<Grain> pile)
{
    // only one thread of the whole grid does the book-keeping
    if (blockIdx.x | blockIdx.y | threadIdx.x | threadIdx.y) return;
    settle<<<dim3(TX, TY), dim3(TILE, TILE)>>>(pile);
    clearTopples<<<W * H / 256, 256>>>(pile);
    scheduler<<<1, 1, 0, cudaStreamTailLaunch>>>(pile);
}

int main()
{
    using G = int;
    std::vector<G> h(W * H, 0);
    h[20 * W + 30] = 900;
    h[50 * W + 70] = 500;
    h[5 * W + 3] = 64;
    for (int i = 0; i < W * H; i += 13) h[i] += 2;
    std::vector<int> hot(TX * TY, 0);
    for (int i = 0; i < W * H; ++i) hot[(i / W / TILE) * TX + (i % W) / TILE] += h[i] >= 4;

    Pile<G> p;
    cudaMalloc(&p.sand, sizeof(G) * W * H);
    cudaMalloc(&p.topples, sizeof(G) * W * H);
    cudaMalloc(&p.tileHot, sizeof(int) * TX * TY);
    cudaMalloc(&p.rounds, sizeof(unsigned));
    cudaMemcpy(p.sand, h.data(), sizeof(G) * W * H, cudaMemcpyHostToDevice);
    cudaMemcpy(p.tileHot, hot.data(), sizeof(int) * TX * TY, cudaMemcpyHostToDevice);
    cudaMemset(p.topples, 0, sizeof(G) * W * H);
    cudaMemset(p.rounds, 0, sizeof(unsigned));

    scheduler<<<1, 1>>>(p);

    std::vector<G> got(W * H);
    unsigned rounds = 0;
    cudaMemcpy(got.data(), p.sand, sizeof(G) * W * H, cudaMemcpyDeviceToHost);
    cudaMemcpy(&rounds, p.rounds, sizeof rounds, cudaMemcpyDeviceToHost);
    if (cudaError_t e = cudaGetLastError()) return std::printf("cuda error %s\n", cudaGetErrorString(e)), 1;

    // the stable state doesn't depend on the order of topplings
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < W * H; ++i)
            while (h[i] >= 4) {
                int x = i % W, y = i / W;
                h[i] -= 4;
                if (x > 0) h[i - 1]++;
                if (x < W - 1) h[i + 1]++;
                if (y > 0) h[i - W]++;
                if (y < H - 1) h[i + W]++;
                again = true;
            }
    }
    unsigned long long hash = 5381;
    for (G v : got) hash = hash * 33 + v;
    std::printf("rounds %u grains %d checksum %llu %s\n", rounds, std::accumulate(got.begin(), got.end(), 0), hash,
                got == h ? "stable" : "WRONG");
    return got != h;
}
