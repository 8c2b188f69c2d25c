// Flood a maze (game AI): the number of new cells of each wave decides on the
// next grid, the parent waits for it on the device.
#include <iostream>
#include <queue>
#include <vector>
#include <cstdlib>
#include <cstring>

#define DEV_CHECK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { printf("device: %d\n", (int)e_); return; } } while (0)

const int W = 160, H = 120;

struct Maze { const char *wall; int *dist; int *wave[2]; int *count; };

__global__ void flood(Maze m, int side, int n, int d)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int c = m.wave[side][i], x = c % W, y = c / W;
    const int dx[4] = {1, -1, 0, 0}, dy[4] = {0, 0, 1, -1};
    for (int k = 0; k < 4; k++) {
        int nx = x + dx[k], ny = y + dy[k];
        if (nx < 0 || ny < 0 || nx >= W || ny >= H || m.wall[ny * W + nx]) continue;
        if (atomicCAS(&m.dist[ny * W + nx], -1, d) == -1)
            m.wave[1 - side][atomicAdd(m.count, 1)] = ny * W + nx;
    }
}

__global__ void search(Maze m)
{
    int side = 0, n = 1;
    for (int d = 1; n > 0; d++) {
        *m.count = 0;
        flood<<<(n + 63) / 64, 64>>>(m, side, n, d);
        DEV_CHECK(cudaGetLastError());
        DEV_CHECK(cudaDeviceSynchronize());
        n = *(volatile int *)m.count;
        side = 1 - side;
    }
}

int main()
{
    std::vector<char> wall(W * H, 0);
    srand(6);
    for (auto &w : wall) w = rand() % 100 < 30;
    wall[0] = wall[1] = wall[2] = wall[W] = wall[W + 1] = 0;
    std::vector<int> want(W * H, -1), got(W * H, -1);
    std::queue<int> q;
    want[0] = 0;
    q.push(0);
    while (!q.empty()) {
        int c = q.front(); q.pop();
        int x = c % W, y = c / W;
        int nb[4][2] = {{x + 1, y}, {x - 1, y}, {x, y + 1}, {x, y - 1}};
        for (auto &p : nb) {
            if (p[0] < 0 || p[1] < 0 || p[0] >= W || p[1] >= H) continue;
            int o = p[1] * W + p[0];
            if (!wall[o] && want[o] < 0) { want[o] = want[c] + 1; q.push(o); }
        }
    }
    got[0] = 0;
    Maze m;
    char *dw;
    cudaMalloc(&dw, W * H);
    cudaMalloc(&m.dist, W * H * sizeof(int));
    cudaMalloc(&m.wave[0], W * H * sizeof(int));
    cudaMalloc(&m.wave[1], W * H * sizeof(int));
    cudaMalloc(&m.count, sizeof(int));
    m.wall = dw;
    cudaMemcpy(dw, wall.data(), W * H, cudaMemcpyHostToDevice);
    cudaMemcpy(m.dist, got.data(), W * H * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemset(m.wave[0], 0, sizeof(int));
    search<<<1, 1>>>(m);
    cudaError_t e = cudaDeviceSynchronize();
    if (e != cudaSuccess) { std::cerr << cudaGetErrorString(e) << "\n"; return 1; }
    cudaMemcpy(got.data(), m.dist, W * H * sizeof(int), cudaMemcpyDeviceToHost);
    int bad = 0;
    for (int i = 0; i < W * H; i++) bad += got[i] != want[i];
    if (bad) std::cout << bad << " cells differ\n";
    else std::cout << "OK\n";
    return bad != 0;
}
