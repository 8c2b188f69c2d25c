// Block structured adaptive mesh: flag coarse cells with a steep gradient and
// fill a refined 16x16 patch for each.  The field is an integer height map, so
// that host and device agree to the last bit.
#include <cstdio>
#include <vector>
#include <cstdlib>

constexpr int NX = 96;           // coarse cells in x
constexpr int NY = 64;           // coarse cells in y
constexpr int R = 16;            // refinement ratio
constexpr int STEEP = 700;
constexpr int MAX_PATCHES = NX * NY;

struct Patch {
    int cx, cy;
    int cell[R * R];
};

struct Mesh {
    Patch *patches;
    int *patch_of;               // NX*NY, -1 when not refined
    int *n_patches;
};

__host__ __device__ inline int height(int fx, int fy)
{
    // two ridges and a pit, in fine cell coordinates
    int dx = fx - 500, dy = fy - 430;
    int d2 = (dx * dx + dy * dy) / 64;
    int ridge = 4000 - abs(fx - fy) * 12;
    int v = (ridge > 0 ? ridge : 0) + (d2 < 900 ? (900 - d2) * 3 : 0);
    return v + (fx * 7 + fy * 3) / 50;
}

__host__ __device__ inline int steepness(int cx, int cy)
{
    int fx = cx * R + R / 2, fy = cy * R + R / 2;
    int gx = height(fx + R, fy) - height(fx - R, fy);
    int gy = height(fx, fy + R) - height(fx, fy - R);
    return abs(gx) + abs(gy);
}

__global__ void fillPatch(Mesh mesh, int slot, int cx, int cy)
{
    int lx = blockIdx.x * blockDim.x + threadIdx.x;
    int ly = blockIdx.y * blockDim.y + threadIdx.y;
    Patch &p = mesh.patches[slot];
    if (lx == 0 && ly == 0) {
        p.cx = cx;
        p.cy = cy;
    }
    if (lx < R && ly < R)
        p.cell[ly * R + lx] = height(cx * R + lx, cy * R + ly);
}

__global__ void flagAndRefine(Mesh mesh, int *launch_errors)
{
    int cx = blockIdx.x * blockDim.x + threadIdx.x;
    int cy = blockIdx.y * blockDim.y + threadIdx.y;
    if (cx >= NX || cy >= NY) return;

    int slot = -1;
    if (steepness(cx, cy) > STEEP) {
        slot = atomicAdd(mesh.n_patches, 1);
        dim3 block(8, 8);
        dim3 grid((R + block.x - 1) / block.x, (R + block.y - 1) / block.y);
        fillPatch<<<grid, block, 0, cudaStreamFireAndForget>>>(mesh, slot, cx, cy);
        if (cudaGetLastError() != cudaSuccess)
            atomicAdd(launch_errors, 1);
    }
    mesh.patch_of[cy * NX + cx] = slot;
}

static void die(cudaError_t e, const char *what)
{
    if (e == cudaSuccess) return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
    exit(2);
}

int main()
{
    die(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, MAX_PATCHES + 64), "limit");

    Mesh m;
    int *counters;
    die(cudaMalloc(&m.patches, sizeof(Patch) * MAX_PATCHES), "patches");
    die(cudaMalloc(&m.patch_of, sizeof(int) * NX * NY), "patch_of");
    die(cudaMalloc(&counters, 2 * sizeof(int)), "counters");
    die(cudaMemset(counters, 0, 2 * sizeof(int)), "memset");
    m.n_patches = counters;

    dim3 b(16, 8), g((NX + 15) / 16, (NY + 7) / 8);
    flagAndRefine<<<g, b>>>(m, counters + 1);
    die(cudaGetLastError(), "launch");
    die(cudaDeviceSynchronize(), "sync");

    int c[2];
    die(cudaMemcpy(c, counters, sizeof c, cudaMemcpyDeviceToHost), "copy");
    std::vector<int> of(NX * NY);
    std::vector<Patch> patches(c[0] > 0 ? c[0] : 1);
    die(cudaMemcpy(of.data(), m.patch_of, sizeof(int) * NX * NY, cudaMemcpyDeviceToHost), "copy");
    die(cudaMemcpy(patches.data(), m.patches, sizeof(Patch) * c[0], cudaMemcpyDeviceToHost), "copy");

    int bad = c[1], want = 0;
    for (int cy = 0; cy < NY; ++cy)
        for (int cx = 0; cx < NX; ++cx) {
            bool refine = steepness(cx, cy) > STEEP;
            int slot = of[cy * NX + cx];
            want += refine;
            if (refine != (slot >= 0)) { ++bad; continue; }
            if (!refine) continue;
            const Patch &p = patches[slot];
            if (p.cx != cx || p.cy != cy) ++bad;
            for (int i = 0; i < R * R; ++i)
                if (p.cell[i] != height(cx * R + i % R, cy * R + i / R)) { ++bad; break; }
        }
    if (want != c[0]) ++bad;
    if (bad) printf("MISMATCH: %d (patches %d, expected %d, launch errors %d)\n", bad, c[0], want, c[1]);
    else printf("OK, %d of %d cells refined\n", want, NX * NY);
    return bad ? 1 : 0;
}
