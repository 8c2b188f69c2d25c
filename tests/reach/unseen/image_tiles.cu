// Tiles that need it are sharpened by a two-dimensional child grid.
#include <cstdio>
#include <cuda_runtime.h>
const int TILE = 8;

class Image {
public:
    float* data;
    int width, height, pitch;
    __host__ __device__ float& at(int x, int y) { return data[y * pitch + x]; }
    __host__ __device__ const float& at(int x, int y) const { return data[y * pitch + x]; }
    __host__ __device__ bool inside(int x, int y) const { return x >= 0 && y >= 0 && x < width && y < height; }
};

__device__ int2 pixel_of(int x0, int y0) {
    return make_int2(x0 + blockIdx.x * blockDim.x + threadIdx.x, y0 + blockIdx.y * blockDim.y + threadIdx.y);
}

__global__ void sharpen_tile(const Image src, Image dst, int x0, int y0, float amount) {
    int2 p = pixel_of(x0, y0);
    if (!src.inside(p.x, p.y)) return;
    float c = src.at(p.x, p.y), sum = 0.f;
    int k = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            if (src.inside(p.x + dx, p.y + dy)) { sum += src.at(p.x + dx, p.y + dy); ++k; }
    dst.at(p.x, p.y) = c + amount * (c - sum / k);
}

__global__ void select_tiles(const Image src, Image dst, const float* score, int tiles_x, int tiles_y) {
    int tx = blockIdx.x * blockDim.x + threadIdx.x;
    int ty = blockIdx.y * blockDim.y + threadIdx.y;
    if (tx >= tiles_x || ty >= tiles_y) return;
    float s = score[ty * tiles_x + tx];
    if (s > 0.25f) {
        dim3 threads(TILE, TILE);
        dim3 blocks(1, 1);
        sharpen_tile<<<blocks, threads>>>(src, dst, tx * TILE, ty * TILE, s);
    }
}

int main() {
    Image a{nullptr, 32, 24, 32}, b{nullptr, 32, 24, 32};
    float* score;
    cudaMallocManaged(&a.data, 32 * 24 * sizeof(float));
    cudaMallocManaged(&b.data, 32 * 24 * sizeof(float));
    cudaMallocManaged(&score, 12 * sizeof(float));
    for (int i = 0; i < 32 * 24; ++i) { a.data[i] = (i * 7) % 16; b.data[i] = 0; }
    for (int i = 0; i < 12; ++i) score[i] = 0.125f * i;
    dim3 block(2, 2), grid(2, 2);
    select_tiles<<<grid, block>>>(a, b, score, 4, 3);
    cudaDeviceSynchronize();
    double sum = 0;
    for (int i = 0; i < 32 * 24; ++i) sum += b.data[i];
    printf("%.3f\n", sum);
}
