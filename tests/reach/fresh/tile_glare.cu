// HDR glare: each block looks at its 32x32 tile; if the tile holds a bright
// spot, the block launches one grid which blurs the tile with a wide kernel.
// Dark tiles are just copied by the block itself.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define TILE 32
#define RAD 6

#define cudaTry(stmt) do { cudaError_t r_ = (stmt); if (r_ != cudaSuccess) { \
    printf("%s: %s\n", #stmt, cudaGetErrorString(r_)); std::exit(1); } } while (0)

struct Frame {
    int w, h;
    const unsigned *lum;     // 16.0 fixed point luminance
    unsigned *out;
};

__host__ __device__ inline unsigned blurAt(const Frame &f, int x, int y)
{
    unsigned sum = 0, weight = 0;
    for (int dy = -RAD; dy <= RAD; ++dy)
        for (int dx = -RAD; dx <= RAD; ++dx) {
            int sx = x + dx, sy = y + dy;
            if (sx < 0 || sy < 0 || sx >= f.w || sy >= f.h) continue;
            unsigned k = 2 * RAD + 1 - abs(dx) - abs(dy);
            sum += k * f.lum[sy * f.w + sx];
            weight += k;
        }
    return sum / weight;
}

__global__ void blurTile(Frame f, int tx, int ty)
{
    // 32 x 8 threads, four blocks for a tile
    int x = tx + threadIdx.x;
    int y = ty + blockIdx.x * blockDim.y + threadIdx.y;
    if (x < f.w && y < f.h)
        f.out[y * f.w + x] = blurAt(f, x, y);
}

__global__ void glare(Frame f, unsigned threshold, int *bright_tiles)
{
    extern __shared__ unsigned peak[];        // one per warp
    const int x = blockIdx.x * TILE + threadIdx.x;
    unsigned m = 0;
    for (int r = threadIdx.y; r < TILE; r += blockDim.y) {
        int y = blockIdx.y * TILE + r;
        if (x < f.w && y < f.h) m = max(m, f.lum[y * f.w + x]);
    }
    m = __reduce_max_sync(0xffffffffu, m);
    if (threadIdx.x == 0) peak[threadIdx.y] = m;
    __syncthreads();
    for (int i = 0; i < blockDim.y; ++i) m = max(m, peak[i]);

    if (m > threshold) {
        if (threadIdx.x == 0 && threadIdx.y == 0) {
            atomicAdd(bright_tiles, 1);
            blurTile<<<TILE / 8, dim3(TILE, 8), 0, cudaStreamFireAndForget>>>(f, blockIdx.x * TILE, blockIdx.y * TILE);
        }
        return;
    }
    for (int r = threadIdx.y; r < TILE; r += blockDim.y) {
        int y = blockIdx.y * TILE + r;
        if (x < f.w && y < f.h) f.out[y * f.w + x] = f.lum[y * f.w + x];
    }
}

int main()
{
    const int w = 1000, h = 700;
    const unsigned threshold = 20000;
    std::vector<unsigned> lum(w * h), want(w * h), got(w * h);
    unsigned s = 9;
    for (auto &l : lum) { s = s * 22695477u + 1u; l = (s >> 16) % 4000; }
    for (int k = 0; k < 150; ++k) {
        s = s * 22695477u + 1u;
        int x = (s >> 12) % w;
        s = s * 22695477u + 1u;
        int y = (s >> 12) % h;
        lum[y * w + x] = 30000 + 100 * k;
    }

    unsigned *dl, *dout;
    int *dn, n = 0, nref = 0;
    cudaTry(cudaMalloc(&dl, w * h * sizeof(unsigned)));
    cudaTry(cudaMalloc(&dout, w * h * sizeof(unsigned)));
    cudaTry(cudaMalloc(&dn, sizeof(int)));
    cudaTry(cudaMemset(dn, 0, sizeof(int)));
    cudaTry(cudaMemcpy(dl, lum.data(), w * h * sizeof(unsigned), cudaMemcpyHostToDevice));

    dim3 threads(TILE, 8), tiles((w + TILE - 1) / TILE, (h + TILE - 1) / TILE);
    glare<<<tiles, threads, 8 * sizeof(unsigned)>>>(Frame{w, h, dl, dout}, threshold, dn);
    cudaTry(cudaGetLastError());
    cudaTry(cudaDeviceSynchronize());
    cudaTry(cudaMemcpy(got.data(), dout, w * h * sizeof(unsigned), cudaMemcpyDeviceToHost));
    cudaTry(cudaMemcpy(&n, dn, sizeof n, cudaMemcpyDeviceToHost));

    Frame hf{w, h, lum.data(), nullptr};
    for (int ty = 0; ty < h; ty += TILE)
        for (int tx = 0; tx < w; tx += TILE) {
            bool bright = false;
            for (int y = ty; y < ty + TILE && y < h; ++y)
                for (int x = tx; x < tx + TILE && x < w; ++x) bright |= lum[y * w + x] > threshold;
            nref += bright;
            for (int y = ty; y < ty + TILE && y < h; ++y)
                for (int x = tx; x < tx + TILE && x < w; ++x)
                    want[y * w + x] = bright ? blurAt(hf, x, y) : lum[y * w + x];
        }
    int diff = 0;
    for (int i = 0; i < w * h; ++i) diff += got[i] != want[i];
    if (diff || n != nref) printf("%d pixels differ, %d bright tiles (expected %d)\n", diff, n, nref);
    else printf("OK, %d of %u tiles blurred\n", n, tiles.x * tiles.y);
    return diff || n != nref;
}
