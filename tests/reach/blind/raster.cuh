#ifndef SOFT_RASTER_CUH
#define SOFT_RASTER_CUH

#include <cuda_runtime.h>
#include <cstdint>

namespace raster {

struct Vertex { int x, y; };

struct Triangle {
    Vertex v[3];
    uint32_t depth;
    uint32_t id;
};

struct Rect {
    int x0, y0, x1, y1;
    __host__ __device__ int width() const { return x1 - x0; }
    __host__ __device__ int height() const { return y1 - y0; }
    __host__ __device__ bool empty() const { return x0 >= x1 || y0 >= y1; }
};

__host__ __device__ inline int lo3(int a, int b, int c) { int m = a < b ? a : b; return m < c ? m : c; }
__host__ __device__ inline int hi3(int a, int b, int c) { int m = a > b ? a : b; return m > c ? m : c; }

__host__ __device__ inline long long edge(const Vertex &a, const Vertex &b, int px, int py)
{
    return (long long)(b.x - a.x) * (py - a.y) - (long long)(b.y - a.y) * (px - a.x);
}

__host__ __device__ inline bool covers(const Triangle &t, int px, int py)
{
    long long e0 = edge(t.v[0], t.v[1], px, py), e1 = edge(t.v[1], t.v[2], px, py), e2 = edge(t.v[2], t.v[0], px, py);
    return (e0 >= 0 && e1 >= 0 && e2 >= 0) || (e0 <= 0 && e1 <= 0 && e2 <= 0);
}

__host__ __device__ inline Rect bounds(const Triangle &t, int w, int h)
{
    Rect r = {lo3(t.v[0].x, t.v[1].x, t.v[2].x), lo3(t.v[0].y, t.v[1].y, t.v[2].y),
              hi3(t.v[0].x, t.v[1].x, t.v[2].x) + 1, hi3(t.v[0].y, t.v[1].y, t.v[2].y) + 1};
    if (r.x0 < 0) r.x0 = 0;
    if (r.y0 < 0) r.y0 = 0;
    if (r.x1 > w) r.x1 = w;
    if (r.y1 > h) r.y1 = h;
    return r;
}

__host__ __device__ inline unsigned long long fragment(const Triangle &t) { return ((unsigned long long)t.depth << 32) | t.id; }

// i-th of n+1 samples on a segment
__host__ __device__ inline Vertex sample(const Vertex &a, const Vertex &b, int i, int n)
{
    return {a.x + (b.x - a.x) * i / n, a.y + (b.y - a.y) * i / n};
}

struct FrameBuffer {
    int w, h;
    unsigned long long *zid;
    unsigned *wire;
};

} // namespace raster
#endif
