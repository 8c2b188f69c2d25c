// A toy software rasteriser. One thread per triangle sets up edge functions and
// then launches a 2D grid over the bounding box. Everything is in integers so
// the picture can be compared pixel by pixel.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

typedef unsigned long long u64;

#define W 640
#define H 480

#define LAUNCH_2D(kernel, w, h, ...)                                   \
    do {                                                               \
        dim3 blk_(16, 16);                                             \
        dim3 grd_(((w) + 15) / 16, ((h) + 15) / 16);                   \
        kernel<<<grd_, blk_>>>(__VA_ARGS__);                           \
    } while (0)

struct Tri { int x[3], y[3], z[3]; };

struct Setup {
    int minx, miny, maxx, maxy;
    int area;
    Tri t;
};

__host__ __device__ int edge(int ax, int ay, int bx, int by, int px, int py)
{
    return (bx - ax) * (py - ay) - (by - ay) * (px - ax);
}

__host__ __device__ bool setup(const Tri &in, Setup &s)
{
    s.t = in;
    s.area = edge(in.x[0], in.y[0], in.x[1], in.y[1], in.x[2], in.y[2]);
    if (s.area <= 0)
        return false;                    // back facing or degenerate
    s.minx = s.maxx = in.x[0];
    s.miny = s.maxy = in.y[0];
    for (int i = 1; i < 3; i++) {
        if (in.x[i] < s.minx) s.minx = in.x[i];
        if (in.x[i] > s.maxx) s.maxx = in.x[i];
        if (in.y[i] < s.miny) s.miny = in.y[i];
        if (in.y[i] > s.maxy) s.maxy = in.y[i];
    }
    if (s.minx < 0) s.minx = 0;
    if (s.miny < 0) s.miny = 0;
    if (s.maxx > W - 1) s.maxx = W - 1;
    if (s.maxy > H - 1) s.maxy = H - 1;
    return s.minx <= s.maxx && s.miny <= s.maxy;
}

// depth in the high word, triangle id in the low one
__host__ __device__ bool shade(const Setup &s, int id, int px, int py, u64 &out)
{
    const Tri &t = s.t;
    int w0 = edge(t.x[1], t.y[1], t.x[2], t.y[2], px, py);
    int w1 = edge(t.x[2], t.y[2], t.x[0], t.y[0], px, py);
    int w2 = edge(t.x[0], t.y[0], t.x[1], t.y[1], px, py);
    if ((w0 | w1 | w2) < 0)
        return false;
    long long z = ((long long)w0 * t.z[0] + (long long)w1 * t.z[1] + (long long)w2 * t.z[2]) / s.area;
    out = ((u64)z << 32) | (unsigned)id;
    return true;
}

__global__ void fillTriangle(Setup s, int id, u64 *zbuf)
{
    int px = s.minx + blockIdx.x * blockDim.x + threadIdx.x;
    int py = s.miny + blockIdx.y * blockDim.y + threadIdx.y;
    u64 frag;
    if (px <= s.maxx && py <= s.maxy && shade(s, id, px, py, frag))
        atomicMin(&zbuf[py * W + px], frag);
}

__global__ void drawTriangles(const Tri *tris, int n, u64 *zbuf)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= n) return;
    Setup s;
    if (!setup(tris[id], s)) return;
    int w = s.maxx - s.minx + 1, h = s.maxy - s.miny + 1;
    if (w * h <= 16) {
        // not worth a launch
        u64 frag;
        for (int y = s.miny; y <= s.maxy; y++)
            for (int x = s.minx; x <= s.maxx; x++)
                if (shade(s, id, x, y, frag)) atomicMin(&zbuf[y * W + x], frag);
    } else {
        LAUNCH_2D(fillTriangle, w, h, s, id, zbuf);
    }
}

int main()
{
    const int n = 1800;
    std::vector<Tri> tris(n);
    srand(2024);
    for (int i = 0; i < n; i++) {
        int size = (i % 40 == 0) ? 200 : 3 + rand() % 40;
        int cx = rand() % W, cy = rand() % H;
        for (int k = 0; k < 3; k++) {
            tris[i].x[k] = cx + rand() % (2 * size + 1) - size;
            tris[i].y[k] = cy + rand() % (2 * size + 1) - size;
            tris[i].z[k] = 1 + rand() % 60000;
        }
    }

    Tri *dt; u64 *dz;
    cudaMalloc(&dt, n * sizeof(Tri));
    cudaMalloc(&dz, W * H * sizeof(u64));
    cudaMemcpy(dt, tris.data(), n * sizeof(Tri), cudaMemcpyHostToDevice);
    cudaMemset(dz, 0xff, W * H * sizeof(u64));
    drawTriangles<<<(n + 127) / 128, 128>>>(dt, n, dz);
    cudaError_t e = cudaDeviceSynchronize();
    if (e != cudaSuccess) { printf("error: %s\n", cudaGetErrorString(e)); return 1; }
    std::vector<u64> img(W * H), ref(W * H);
    cudaMemcpy(img.data(), dz, W * H * sizeof(u64), cudaMemcpyDeviceToHost);

    memset(ref.data(), 0xff, W * H * sizeof(u64));
    for (int id = 0; id < n; id++) {
        Setup s;
        if (!setup(tris[id], s)) continue;
        for (int y = s.miny; y <= s.maxy; y++)
            for (int x = s.minx; x <= s.maxx; x++) {
                u64 f;
                if (shade(s, id, x, y, f) && f < ref[y * W + x]) ref[y * W + x] = f;
            }
    }
    int diff = 0, covered = 0;
    for (int i = 0; i < W * H; i++) {
        diff += img[i] != ref[i];
        covered += ref[i] != ~0ull;
    }
    if (diff) printf("%d pixels differ\n", diff);
    else printf("OK (%d pixels covered)\n", covered);
    return diff != 0;
}
