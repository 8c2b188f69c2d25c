// tiny software rasterizer: one child grid over the bounding box of each triangle
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

namespace raster {

struct Vertex { int x, y; unsigned z; };
struct Triangle { Vertex v[3]; unsigned color; };

struct FrameBuffer {
    unsigned long long* pixels;   // depth in the high word, color in the low one
    int width, height;
};

__device__ inline int edge(const Vertex& a, const Vertex& b, int x, int y) {
    return (b.x - a.x) * (y - a.y) - (b.y - a.y) * (x - a.x);
}

__global__ void fillTriangle(FrameBuffer fb, const Triangle* __restrict__ tris, int id, int2 lo, int2 hi) {
    const int x = lo.x + blockIdx.x * blockDim.x + threadIdx.x;
    const int y = lo.y + blockIdx.y * blockDim.y + threadIdx.y;
    if (x > hi.x || y > hi.y) return;
    const Triangle& t = tris[id];
    const int w0 = edge(t.v[1], t.v[2], x, y);
    const int w1 = edge(t.v[2], t.v[0], x, y);
    const int w2 = edge(t.v[0], t.v[1], x, y);
    const bool inside = (w0 >= 0 && w1 >= 0 && w2 >= 0) || (w0 <= 0 && w1 <= 0 && w2 <= 0);
    if (!inside) return;
    const int area = w0 + w1 + w2;
    if (area == 0) return;
    const long long z = ((long long)w0 * t.v[0].z + (long long)w1 * t.v[1].z + (long long)w2 * t.v[2].z) / area;
    const unsigned long long packed = ((unsigned long long)z << 32) | t.color;
    atomicMin(&fb.pixels[y * fb.width + x], packed);
}

__global__ void setup(FrameBuffer fb, const Triangle* __restrict__ tris, int count) {
    const int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= count) return;
    const Triangle& t = tris[id];
    int2 lo, hi;
    lo.x = max(0, min(t.v[0].x, min(t.v[1].x, t.v[2].x)));
    lo.y = max(0, min(t.v[0].y, min(t.v[1].y, t.v[2].y)));
    hi.x = min(fb.width - 1, max(t.v[0].x, max(t.v[1].x, t.v[2].x)));
    hi.y = min(fb.height - 1, max(t.v[0].y, max(t.v[1].y, t.v[2].y)));
    if (lo.x > hi.x || lo.y > hi.y) return;   // culled
    const dim3 block(16, 8);
    const dim3 grid((hi.x - lo.x) / block.x + 1, (hi.y - lo.y) / block.y + 1);
    fillTriangle<<<grid, block, 0, cudaStreamFireAndForget>>>(fb, tris, id, lo, hi);
}

} // namespace raster

int main() {
    using namespace raster;
    const int w = 320, h = 200, n = 700;
    std::mt19937 rng(99);
    auto pick = [&](int lo, int hi) { return lo + (int)(rng() % (unsigned)(hi - lo)); };
    std::vector<Triangle> tris(n);
    for (auto& t : tris) {
        const int cx = pick(-20, w + 20), cy = pick(-20, h + 20), r = pick(2, 50);
        for (auto& v : t.v) v = Vertex{cx + pick(-r, r), cy + pick(-r, r), (unsigned)pick(1, 100000)};
        t.color = rng();
    }
    Triangle* d; FrameBuffer fb{nullptr, w, h};
    cudaMalloc(&d, n * sizeof(Triangle));
    cudaMalloc(&fb.pixels, w * h * sizeof(unsigned long long));
    cudaMemcpy(d, tris.data(), n * sizeof(Triangle), cudaMemcpyHostToDevice);
    cudaMemset(fb.pixels, 0xff, w * h * sizeof(unsigned long long));
    setup<<<(n + 63) / 64, 64>>>(fb, d, n);
    const auto err = cudaDeviceSynchronize();
    if (err != cudaSuccess) { std::printf("%s\n", cudaGetErrorString(err)); return 1; }
    std::vector<unsigned long long> px(w * h);
    cudaMemcpy(px.data(), fb.pixels, px.size() * sizeof(px[0]), cudaMemcpyDeviceToHost);
    unsigned long long sum = 0; int covered = 0;
    for (auto p : px) if (p != ~0ull) { sum = sum * 1099511628211ull + p; ++covered; }
    std::printf("covered %d checksum %016llx\n", covered, sum);
}
