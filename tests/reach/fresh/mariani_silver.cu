// Mandelbrot by the Mariani-Silver method: rectangles with a border of constant
// dwell are filled, others are split.  Fixed point arithmetic (28 fractional
// bits) so that the host computes the very same picture.
#include <cstdio>
#include <cstdlib>
#include <vector>

using fix = long long;

constexpr int SHIFT = 28;
constexpr int IMG = 1024;
constexpr int MAX_DWELL = 256;
constexpr int INIT_SUBDIV = 4;
constexpr int SUBDIV = 4;
constexpr int MIN_SIZE = 32;
constexpr int BLOCK = 64;
constexpr int MIXED = -1;

__host__ __device__ constexpr int divup(int a, int b) { return (a + b - 1) / b; }

__host__ __device__ int dwell(int px, int py)
{
    const fix cx = -(fix(9) << (SHIFT - 2)) + px * ((fix(3) << SHIFT) / IMG);    // from -2.25, 3 wide
    const fix cy = -(fix(3) << (SHIFT - 1)) + py * ((fix(3) << SHIFT) / IMG);    // from -1.5
    fix zx = cx, zy = cy;
    int d = 0;
    while (d < MAX_DWELL) {
        fix xx = (zx * zx) >> SHIFT, yy = (zy * zy) >> SHIFT;
        if (xx + yy > (fix(4) << SHIFT)) break;
        zy = ((2 * zx * zy) >> SHIFT) + cy;
        zx = xx - yy + cx;
        ++d;
    }
    return d;
}

// i-th pixel of the border of a size x size square, 0 <= i < 4*size (corners twice)
__host__ __device__ inline int borderDwell(int x0, int y0, int size, int i)
{
    const int side = i / size, k = i % size;
    switch (side) {
    case 0:  return dwell(x0 + k, y0);
    case 1:  return dwell(x0 + k, y0 + size - 1);
    case 2:  return dwell(x0, y0 + k);
    default: return dwell(x0 + size - 1, y0 + k);
    }
}

__global__ void fillRect(int *out, int x0, int y0, int size, int value)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < size && y < size) out[(y0 + y) * IMG + x0 + x] = value;
}

__global__ void perPixel(int *out, int x0, int y0, int size)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < size && y < size) out[(y0 + y) * IMG + x0 + x] = dwell(x0 + x, y0 + y);
}

__device__ int commonDwell(int x0, int y0, int size)
{
    __shared__ int lo[BLOCK], hi[BLOCK];
    int l = MAX_DWELL + 1, h = -1;
    for (int i = threadIdx.x; i < 4 * size; i += BLOCK) {
        const int d = borderDwell(x0, y0, size, i);
        l = min(l, d);
        h = max(h, d);
    }
    lo[threadIdx.x] = l;
    hi[threadIdx.x] = h;
    __syncthreads();
    for (int s = BLOCK / 2; s > 0; s /= 2) {
        if (threadIdx.x < s) {
            lo[threadIdx.x] = min(lo[threadIdx.x], lo[threadIdx.x + s]);
            hi[threadIdx.x] = max(hi[threadIdx.x], hi[threadIdx.x + s]);
        }
        __syncthreads();
    }
    return lo[0] == hi[0] ? lo[0] : MIXED;
}

__global__ void mandelbrotBlock(int *out, int x0, int y0, int size)
{
    x0 += size * blockIdx.x;
    y0 += size * blockIdx.y;
    const int common = commonDwell(x0, y0, size);
    if (threadIdx.x != 0) return;

    const dim3 bs(32, 4), grid(divup(size, 32), divup(size, 4));
    if (common != MIXED) {
        fillRect<<<grid, bs>>>(out, x0, y0, size, common);
    } else if (size / SUBDIV >= MIN_SIZE) {
        mandelbrotBlock<<<dim3(SUBDIV, SUBDIV), BLOCK>>>(out, x0, y0, size / SUBDIV);
    } else {
        perPixel<<<grid, bs>>>(out, x0, y0, size);
    }
}

static void hostRect(std::vector<int> &img, int x0, int y0, int size, int &filled)
{
    const int first = borderDwell(x0, y0, size, 0);
    bool same = true;
    for (int i = 1; i < 4 * size && same; ++i) same = borderDwell(x0, y0, size, i) == first;
    if (!same && size / SUBDIV >= MIN_SIZE) {
        const int s = size / SUBDIV;
        for (int j = 0; j < SUBDIV; ++j)
            for (int i = 0; i < SUBDIV; ++i) hostRect(img, x0 + i * s, y0 + j * s, s, filled);
        return;
    }
    filled += same;
    for (int y = y0; y < y0 + size; ++y)
        for (int x = x0; x < x0 + size; ++x) img[y * IMG + x] = same ? first : dwell(x, y);
}

#define CHECK_CUDA(call)                                                        \
    {                                                                           \
        cudaError_t res = (call);                                               \
        if (res != cudaSuccess) {                                               \
            fprintf(stderr, "CUDA call (%s) failed: %s\n", #call, cudaGetErrorString(res)); \
            exit(-1);                                                           \
        }                                                                       \
    }

int main()
{
    int *d;
    CHECK_CUDA(cudaMalloc(&d, IMG * IMG * sizeof(int)));
    CHECK_CUDA(cudaMemset(d, 0xff, IMG * IMG * sizeof(int)));
    mandelbrotBlock<<<dim3(INIT_SUBDIV, INIT_SUBDIV), BLOCK>>>(d, 0, 0, IMG / INIT_SUBDIV);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaDeviceSynchronize());
    std::vector<int> got(IMG * IMG), want(IMG * IMG);
    CHECK_CUDA(cudaMemcpy(got.data(), d, IMG * IMG * sizeof(int), cudaMemcpyDeviceToHost));

    const int s = IMG / INIT_SUBDIV;
    int filled = 0;
    for (int j = 0; j < INIT_SUBDIV; ++j)
        for (int i = 0; i < INIT_SUBDIV; ++i) hostRect(want, i * s, j * s, s, filled);
    long bad = 0;
    for (int i = 0; i < IMG * IMG; ++i) bad += got[i] != want[i];
    if (bad) printf("%ld pixels differ\n", bad);
    else printf("OK, %d rectangles filled\n", filled);
    CHECK_CUDA(cudaFree(d));
    return bad != 0;
}
