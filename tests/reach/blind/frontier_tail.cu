// Maze flood fill with frontier queues. advance() is as wide as the frontier;
// turn() swaps the queues and sizes the next advance().
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <queue>
#include <string>
#include <vector>

#ifndef ADVANCE_TPB
#define ADVANCE_TPB 64
#endif

#define DEVCHK()                                                        \
    {                                                                   \
        auto e_ = cudaGetLastError();                                   \
        if (e_ != cudaSuccess) {                                        \
            printf("%s(%d): %s\n", __func__, __LINE__, cudaGetErrorString(e_)); \
            __trap();                                                   \
        }                                                               \
    }

struct Maze {
    int w, h;
    const unsigned char *wall;
    int *steps;                 // -1: not reached
};

struct Queues {
    int *in, *out;
    int *nOut;
    int level;
};

__device__ void visit(const Maze &m, const Queues &q, int x, int y)
{
    if (x < 0 || y < 0 || x >= m.w || y >= m.h) return;
    int c = y * m.w + x;
    if (m.wall[c]) return;
    if (atomicCAS(m.steps + c, -1, q.level) == -1) q.out[atomicAdd(q.nOut, 1)] = c;
}

template <int TPB>
__global__ void turn(Maze m, Queues q);

template <int TPB>
__global__ void advance(Maze m, Queues q, int nIn)
{
    int t = blockIdx.x * TPB + threadIdx.x;
    if (t < nIn) {
        int c = q.in[t], x = c % m.w, y = c / m.w;
        visit(m, q, x + 1, y);
        visit(m, q, x - 1, y);
        visit(m, q, x, y + 1);
        visit(m, q, x, y - 1);
    }
    if (t == 0) {
        turn<TPB><<<1, 1, 0, cudaStreamTailLaunch>>>(m, q);
        DEVCHK();
    }
}

template <int TPB>
__global__ void turn(Maze m, Queues q)
{
    int n = *q.nOut;
    *q.nOut = 0;
    if (n > 0) {
        Queues r;
        r.in = q.out;
        r.out = q.in;
        r.nOut = q.nOut;
        r.level = q.level + 1;
        int blocks = (n + TPB - 1) / TPB;
        advance<TPB><<<blocks, TPB, 0, cudaStreamTailLaunch>>>(m, r, n);
        DEVCHK();
    }
}

int main(int argc, char **argv)
{
    const int w = 90, h = 70;
    unsigned s = argc > 1 ? (unsigned)atoi(argv[1]) : 9u;
    std::vector<unsigned char> wall(w * h);
    for (auto &c : wall) { s = s * 1103515245u + 12345u; c = (s >> 16) % 100 < 30; }
    for (int i = 0; i < 12; ++i) wall[i] = wall[i * w] = 0;
    std::vector<int> steps(w * h, -1);
    steps[0] = 0;

    unsigned char *dWall;
    int *dSteps, *dQ, *dN;
    cudaMalloc(&dWall, wall.size());
    cudaMalloc(&dSteps, w * h * sizeof(int));
    cudaMalloc(&dQ, 2 * w * h * sizeof(int));
    cudaMalloc(&dN, sizeof(int));
    cudaMemcpy(dWall, wall.data(), wall.size(), cudaMemcpyHostToDevice);
    cudaMemcpy(dSteps, steps.data(), w * h * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemset(dQ, 0, sizeof(int));         // the start cell
    cudaMemset(dN, 0, sizeof(int));

    Maze m{w, h, dWall, dSteps};
    Queues q{dQ, dQ + w * h, dN, 1};
    advance<ADVANCE_TPB><<<1, ADVANCE_TPB>>>(m, q, 1);
    cudaError_t e = cudaDeviceSynchronize();
    if (e != cudaSuccess) { fprintf(stderr, "%s\n", cudaGetErrorString(e)); return 2; }

    std::vector<int> got(w * h);
    cudaMemcpy(got.data(), dSteps, got.size() * sizeof(int), cudaMemcpyDeviceToHost);

    std::queue<int> todo;
    todo.push(0);
    int far = 0;
    while (!todo.empty()) {
        int c = todo.front(), x = c % w, y = c / w;
        todo.pop();
        far = steps[c];
        const int d[4][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}};
        for (auto &k : d) {
            int nx = x + k[0], ny = y + k[1];
            if (nx < 0 || ny < 0 || nx >= w || ny >= h || wall[ny * w + nx] || steps[ny * w + nx] >= 0) continue;
            steps[ny * w + nx] = steps[c] + 1;
            todo.push(ny * w + nx);
        }
    }
    long sum = 0;
    for (int i = 0; i < w * h; ++i) sum += (long)(got[i] + 1) * (i % 1009);
    printf("maze depth %d checksum %ld %s\n", far, sum, got == steps ? "ok" : "differs");
    return got != steps;
}
