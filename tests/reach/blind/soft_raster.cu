#include "raster.cuh"
#include <algorithm>
#include <cstdio>
#include <vector>

using namespace raster;

__global__ void fillTriangle(FrameBuffer fb, Triangle tri, Rect r)
{
    int x = r.x0 + threadIdx.x + blockIdx.x * blockDim.x;
    int y = r.y0 + threadIdx.y + blockIdx.y * blockDim.y;
    if (x < r.x1 && y < r.y1 && covers(tri, x, y))
        atomicMin(fb.zid + (size_t)y * fb.w + x, fragment(tri));
}

__global__ void drawEdge(FrameBuffer fb, Vertex a, Vertex b, int steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > steps) return;
    Vertex p = sample(a, b, i, steps);
    if (p.x >= 0 && p.x < fb.w && p.y >= 0 && p.y < fb.h)
        atomicAdd(&fb.wire[p.y * fb.w + p.x], 1u);
}

__host__ __device__ static int edgeSteps(const Vertex &a, const Vertex &b)
{
    int dx = a.x > b.x ? a.x - b.x : b.x - a.x;
    int dy = a.y > b.y ? a.y - b.y : b.y - a.y;
    return (dx > dy ? dx : dy);
}

__global__ void drawScene(FrameBuffer fb, const Triangle *tris, int count, bool wireframe)
{
    int t = threadIdx.x + blockIdx.x * blockDim.x;
    if (t >= count) return;

    const Triangle tri = tris[t];
    const Rect box = bounds(tri, fb.w, fb.h);
    if (box.empty()) return;

    dim3 block = box.width() > 2 * box.height() ? dim3(32, 4) : dim3(16, 16);
    dim3 grid((box.width() + block.x - 1) / block.x, (box.height() + block.y - 1) / block.y);
    fillTriangle<<<grid, block, 0, cudaStreamFireAndForget>>>(fb, tri, box);

    if (wireframe) {
        for (int e = 0; e < 3; ++e) {
            Vertex a = tri.v[e], b = tri.v[(e + 1) % 3];
            int steps = edgeSteps(a, b);
            if (steps > 0)
                drawEdge<<<steps / 64 + 1, 64, 0, cudaStreamFireAndForget>>>(fb, a, b, steps);
        }
    }
}

int main()
{
    const int W = 256, H = 160, N = 240;
    std::vector<Triangle> tris(N);
    uint32_t s = 777;
    auto rnd = [&](int n) { s = s * 1664525u + 1013904223u; return int((s >> 9) % unsigned(n)); };
    for (int i = 0; i < N; ++i) {
        int cx = rnd(W), cy = rnd(H), size = i % 16 ? 6 + rnd(20) : 90;
        for (auto &v : tris[i].v) v = {cx + rnd(size) - size / 2, cy + rnd(size) - size / 2};
        tris[i].depth = rnd(100000);
        tris[i].id = i;
    }

    FrameBuffer fb{W, H, nullptr, nullptr};
    Triangle *dTris;
    cudaMalloc(&fb.zid, sizeof(*fb.zid) * W * H);
    cudaMalloc(&fb.wire, sizeof(*fb.wire) * W * H);
    cudaMalloc(&dTris, sizeof(Triangle) * N);
    cudaMemset(fb.zid, 0xff, sizeof(*fb.zid) * W * H);
    cudaMemset(fb.wire, 0, sizeof(*fb.wire) * W * H);
    cudaMemcpy(dTris, tris.data(), sizeof(Triangle) * N, cudaMemcpyHostToDevice);

    drawScene<<<(N + 31) / 32, 32>>>(fb, dTris, N, true);
    if (cudaError_t e = cudaDeviceSynchronize(); e != cudaSuccess) {
        std::printf("drawScene: %s\n", cudaGetErrorString(e));
        return 1;
    }

    std::vector<unsigned long long> z(W * H), zr(W * H, ~0ull);
    std::vector<unsigned> wi(W * H), wr(W * H, 0);
    cudaMemcpy(z.data(), fb.zid, z.size() * sizeof z[0], cudaMemcpyDeviceToHost);
    cudaMemcpy(wi.data(), fb.wire, wi.size() * sizeof wi[0], cudaMemcpyDeviceToHost);
    for (auto &t : tris) {
        Rect r = bounds(t, W, H);
        if (r.empty()) continue;
        for (int y = r.y0; y < r.y1; ++y)
            for (int x = r.x0; x < r.x1; ++x)
                if (covers(t, x, y)) zr[y * W + x] = std::min(zr[y * W + x], fragment(t));
        for (int e = 0; e < 3; ++e) {
            int n = edgeSteps(t.v[e], t.v[(e + 1) % 3]);
            for (int i = 0; n > 0 && i <= n; ++i) {
                Vertex p = sample(t.v[e], t.v[(e + 1) % 3], i, n);
                if (p.x >= 0 && p.x < W && p.y >= 0 && p.y < H) wr[p.y * W + p.x]++;
            }
        }
    }
    unsigned long long h = 0;
    for (int i = 0; i < W * H; ++i) h = h * 1000003 + (z[i] ^ wi[i]);
    bool ok = z == zr && wi == wr;
    std::printf("frame %llx %s\n", h, ok ? "ok" : "BAD");
    return !ok;
}
