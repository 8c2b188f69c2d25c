#include "cell_grid.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

__global__ void pairsWithin(CellGrid grid, int cell)
{
    const int base = grid.first(cell), n = grid.size(cell);
    for (int i = threadIdx.y; i < n; i += blockDim.y)
        for (int j = threadIdx.x; j < n; j += blockDim.x)
            if (i != j)
                grid.feel(base + i, base + j);
}

__global__ void pairsBetween(CellGrid grid, int a, int b)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < grid.size(a) && j < grid.size(b)) {
        grid.feel(grid.first(a) + i, grid.first(b) + j);
        grid.feel(grid.first(b) + j, grid.first(a) + i);
    }
}

__device__ void CellGrid::interact(int c) const
{
    if (size(c) > 1)
        pairsWithin<<<1, dim3(8, 8)>>>(*this, c);
}

__device__ void CellGrid::interact(int c, int d) const
{
    if (d < 0 || size(c) == 0 || size(d) == 0)
        return;
    dim3 tb(8, 4);
    dim3 nb((size(c) + tb.x - 1) / tb.x, (size(d) + tb.y - 1) / tb.y);
    pairsBetween<<<nb, tb>>>(*this, c, d);
}

__global__ void shortRangeForces(CellGrid grid)
{
    int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell < grid.cells()) {
        grid.interact(cell);
        grid.interact(cell, grid.right(cell));
        grid.interact(cell, grid.below(cell));
    }
}

int main()
{
    const int nx = 14, ny = 11, np = 900, width = 100;
    std::vector<int4> p(np);
    unsigned s = 31337;
    auto rng = [&](unsigned m) { s = s * 1103515245u + 12345u; return int((s >> 16) % m); };
    for (auto &q : p) {
        q.x = rng(nx * width);
        q.y = std::min(rng(ny * width), rng(ny * width));
        q.z = rng(9) - 4;
        q.w = (q.y / width) * nx + q.x / width;
    }
    std::stable_sort(p.begin(), p.end(), [](const int4 &a, const int4 &b) { return a.w < b.w; });
    std::vector<int> start(nx * ny + 1, 0);
    for (auto &q : p) start[q.w + 1]++;
    std::partial_sum(start.begin(), start.end(), start.begin());

    int *dStart, *dF;
    int4 *dP;
    cudaMalloc(&dStart, start.size() * sizeof(int));
    cudaMalloc(&dP, np * sizeof(int4));
    cudaMalloc(&dF, 2 * np * sizeof(int));
    cudaMemcpy(dStart, start.data(), start.size() * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(dP, p.data(), np * sizeof(int4), cudaMemcpyHostToDevice);
    cudaMemset(dF, 0, 2 * np * sizeof(int));

    CellGrid grid(nx, ny, dStart, dP, dF, dF + np);
    shortRangeForces<<<(grid.cells() + 63) / 64, 64>>>(grid);
    std::vector<int> f(2 * np);
    cudaMemcpy(f.data(), dF, f.size() * sizeof(int), cudaMemcpyDeviceToHost);
    if (cudaError_t e = cudaGetLastError()) {
        std::printf("cuda: %s\n", cudaGetErrorString(e));
        return 1;
    }

    long long sum = 0;
    int bad = 0;
    for (int i = 0; i < np; i++) {
        int fx = 0, fy = 0;
        for (int j = 0; j < np; j++) {
            int dc = std::abs(p[i].w - p[j].w);
            bool sameRow = p[i].w / nx == p[j].w / nx;
            if (i == j || !(dc == 0 || (dc == 1 && sameRow) || dc == nx)) continue;
            fx += p[i].z * p[j].z * CellGrid::sign(p[i].x - p[j].x);
            fy += p[i].z * p[j].z * CellGrid::sign(p[i].y - p[j].y);
        }
        bad += fx != f[i] || fy != f[np + i];
        sum += (long long)f[i] * (i + 1) - (long long)f[np + i] * (np - i);
    }
    std::printf("forces checksum %lld, %d bad\n", sum, bad);
    return bad != 0;
}
