// region statistics for a label image with a parallel_for that takes device lambdas' functors
#include <cstdio>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#ifndef REGION_BLOCK
#error "compile with -DREGION_BLOCK=<threads>"
#endif

template <class Body>
__global__ void for_each_kernel(int n, Body body)
{
    if (const int i = blockIdx.x * blockDim.x + threadIdx.x; i < n) body(i);
}

template <class Body>
__device__ void nested_for_each(int n, Body body)
{
    static_assert(std::is_trivially_copyable_v<Body>);
    if (n > 0)
        for_each_kernel<<<(n + REGION_BLOCK - 1) / REGION_BLOCK, REGION_BLOCK, 0, cudaStreamFireAndForget>>>(n, body);
}

struct Region { int x0, y0, w, h; unsigned sum, edges; };

struct SumPixels {
    const uint8_t* img; int pitch; Region* r;
    __device__ void operator()(int i) const
    {
        const int x = r->x0 + i % r->w, y = r->y0 + i / r->w;
        atomicAdd(&r->sum, unsigned(img[y * pitch + x]));
    }
};

struct CountEdges {
    const uint8_t* img; int pitch; Region* r; int threshold;
    __device__ void operator()(int i) const
    {
        const int w = r->w - 1;
        const int x = r->x0 + i % w, y = r->y0 + i / w;
        const int d = int(img[y * pitch + x + 1]) - int(img[y * pitch + x]);
        if (d > threshold || -d > threshold) atomicAdd(&r->edges, 1u);
    }
};

__global__ void measure(const uint8_t* img, int pitch, Region* regions, int n)
{
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    Region* r = regions + k;
    nested_for_each(r->w * r->h, SumPixels{img, pitch, r});
    if (r->w > 1) nested_for_each((r->w - 1) * r->h, CountEdges{img, pitch, r, 40});
}

template <class T>
auto to_device(const std::vector<T>& v)
{
    T* p = nullptr;
    cudaMalloc(&p, v.size() * sizeof(T));
    cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice);
    auto del = [](T* q) { cudaFree(q); };
    return std::unique_ptr<T, decltype(del)>(p, del);
}

int main()
{
    const int W = 400, H = 300;
    std::vector<uint8_t> img(W * H);
    for (int i = 0; i < W * H; ++i) img[i] = uint8_t((i % W) * (i / W) / 7 ^ i);
    std::vector<Region> regions;
    for (int i = 0; i < 500; ++i) {
        Region r{(i * 31) % 350, (i * 17) % 250, 1 + (i * i) % 50, 1 + (i * 3) % 50, 0, 0};
        regions.push_back(r);
    }
    auto d_img = to_device(img);
    auto d_reg = to_device(regions);
    measure<<<8, 64>>>(d_img.get(), W, d_reg.get(), int(regions.size()));
    if (auto e = cudaDeviceSynchronize(); e != cudaSuccess) { std::puts(cudaGetErrorString(e)); return 1; }
    cudaMemcpy(regions.data(), d_reg.get(), regions.size() * sizeof(Region), cudaMemcpyDeviceToHost);
    unsigned long long s = 0;
    for (const auto& [x0, y0, w, h, sum, edges] : regions) s = s * 131 + sum + edges * 7ull;
    std::printf("checksum %llx\n", s);
}
