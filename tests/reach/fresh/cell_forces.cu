// Short range pair forces with a 3D cell list.  A thread per cell (3D grid);
// each occupied cell launches one block with a thread per particle.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <algorithm>

struct Vec3 { float x, y, z; };

struct Box {
    int3 dim;          // cells per direction
    float cell;        // edge of a cell == cutoff
};

__host__ __device__ inline int flat(const Box &b, int x, int y, int z)
{
    return (z * b.dim.y + y) * b.dim.x + x;
}

__host__ __device__ inline void pairForce(Vec3 a, Vec3 b, float rc2, Vec3 *f)
{
    float dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z;
    float r2 = dx * dx + dy * dy + dz * dz;
    if (r2 < rc2) {
        float w = (rc2 - r2) * (rc2 - r2);     // vanishes smoothly at the cutoff
        f->x += w * dx;
        f->y += w * dy;
        f->z += w * dz;
    }
}

__global__ void cellKernel(Box box, int3 c, const int *start, const Vec3 *pos, Vec3 *force)
{
    int me = flat(box, c.x, c.y, c.z);
    int first = start[me], count = start[me + 1] - first;
    for (int k = threadIdx.x; k < count; k += blockDim.x) {
        Vec3 f = {0.f, 0.f, 0.f};
        Vec3 p = pos[first + k];
        for (int dz = -1; dz <= 1; ++dz)
            for (int dy = -1; dy <= 1; ++dy)
                for (int dx = -1; dx <= 1; ++dx) {
                    int x = c.x + dx, y = c.y + dy, z = c.z + dz;
                    if (x < 0 || y < 0 || z < 0 || x >= box.dim.x || y >= box.dim.y || z >= box.dim.z)
                        continue;
                    int o = flat(box, x, y, z);
                    for (int j = start[o]; j < start[o + 1]; ++j)
                        if (j != first + k)
                            pairForce(p, pos[j], box.cell * box.cell, &f);
                }
        force[first + k] = f;
    }
}

__global__ void forcesByCell(Box box, const int *start, const Vec3 *pos, Vec3 *force)
{
    int3 c = make_int3(blockIdx.x * blockDim.x + threadIdx.x,
                       blockIdx.y * blockDim.y + threadIdx.y,
                       blockIdx.z * blockDim.z + threadIdx.z);
    if (c.x < box.dim.x && c.y < box.dim.y && c.z < box.dim.z) {
        int me = flat(box, c.x, c.y, c.z);
        int occupancy = start[me + 1] - start[me];
        if (occupancy > 0) {
            int threads = min(((occupancy + 31) / 32) * 32, 256);
            cellKernel<<<1, threads>>>(box, c, start, pos, force);
        }
    }
}

static void check(cudaError_t e, int line)
{
    if (e != cudaSuccess) { fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(e)); exit(1); }
}
#define C(e) check(e, __LINE__)

int main()
{
    Box box = {make_int3(12, 10, 9), 1.0f};
    const int cells = box.dim.x * box.dim.y * box.dim.z, n = 9000;

    srand(4);
    std::vector<Vec3> p(n);
    for (int i = 0; i < n; ++i) {
        // a third of the particles sit in one corner
        float sx = i % 3 ? (float)box.dim.x : 3.f, sy = i % 3 ? (float)box.dim.y : 2.f, sz = i % 3 ? (float)box.dim.z : 2.f;
        p[i].x = sx * (rand() % 9973) / 9973.f;
        p[i].y = sy * (rand() % 9973) / 9973.f;
        p[i].z = sz * (rand() % 9973) / 9973.f;
    }
    auto cellOf = [&](const Vec3 &v) {
        return flat(box, std::min((int)v.x, box.dim.x - 1), std::min((int)v.y, box.dim.y - 1), std::min((int)v.z, box.dim.z - 1));
    };
    std::stable_sort(p.begin(), p.end(), [&](const Vec3 &a, const Vec3 &b) { return cellOf(a) < cellOf(b); });
    std::vector<int> start(cells + 1, 0);
    for (auto &v : p) start[cellOf(v) + 1]++;
    for (int c = 0; c < cells; ++c) start[c + 1] += start[c];

    int *dStart; Vec3 *dPos, *dForce;
    C(cudaMalloc(&dStart, start.size() * sizeof(int)));
    C(cudaMalloc(&dPos, n * sizeof(Vec3)));
    C(cudaMalloc(&dForce, n * sizeof(Vec3)));
    C(cudaMemcpy(dStart, start.data(), start.size() * sizeof(int), cudaMemcpyHostToDevice));
    C(cudaMemcpy(dPos, p.data(), n * sizeof(Vec3), cudaMemcpyHostToDevice));
    C(cudaMemset(dForce, 0, n * sizeof(Vec3)));

    dim3 tb(4, 4, 4);
    dim3 gr((box.dim.x + 3) / 4, (box.dim.y + 3) / 4, (box.dim.z + 3) / 4);
    forcesByCell<<<gr, tb>>>(box, dStart, dPos, dForce);
    C(cudaGetLastError());
    C(cudaDeviceSynchronize());
    std::vector<Vec3> f(n);
    C(cudaMemcpy(f.data(), dForce, n * sizeof(Vec3), cudaMemcpyDeviceToHost));

    // reference in double over all pairs
    double worst = 0;
    for (int i = 0; i < n; ++i) {
        double fx = 0, fy = 0, fz = 0, mag = 1;
        for (int j = 0; j < n; ++j) {
            double dx = (double)p[i].x - p[j].x, dy = (double)p[i].y - p[j].y, dz = (double)p[i].z - p[j].z;
            double r2 = dx * dx + dy * dy + dz * dz;
            if (j == i || r2 >= 1.0) continue;
            double w = (1 - r2) * (1 - r2);
            fx += w * dx; fy += w * dy; fz += w * dz;
            mag += w;
        }
        double d = fabs(fx - f[i].x) + fabs(fy - f[i].y) + fabs(fz - f[i].z);
        worst = std::max(worst, d / mag);
    }
    if (worst < 1e-4) printf("OK\n");
    else printf("force error %g\n", worst);
    return worst < 1e-4 ? 0 : 1;
}
