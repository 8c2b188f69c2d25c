// Region quadtree of a bitmap: uniform squares become leaves, mixed ones are split
// by a 2 x 2 grid of the same kernel.
#include <cstdint>
#include <cstdio>
#include <vector>
#include <algorithm>

namespace quad {

struct Bitmap {
    const std::uint8_t *bits;
    int side;
    __host__ __device__ bool get(int x, int y) const { return bits[y * side + x] != 0; }
};

struct Leaf { std::uint16_t x, y, size, value; };

struct LeafList {
    Leaf *leaf;
    int *count;
    __device__ void push(Leaf l) { leaf[atomicAdd(count, 1)] = l; }
};

template <int Threads>
__global__ __launch_bounds__(Threads) void split(Bitmap bm, LeafList out, int x0, int y0, int size)
{
    x0 += blockIdx.x * size;
    y0 += blockIdx.y * size;

    int ones = 0;
    for (int k = threadIdx.x; k < size * size; k += Threads)
        ones |= bm.get(x0 + k % size, y0 + k / size) ? 1 : 2;
    const int any1 = __syncthreads_or(ones & 1);
    const int any0 = __syncthreads_or(ones & 2);

    if (threadIdx.x != 0) return;
    if (any1 && any0) {
        // mixed: always splits down to single pixels
        split<Threads><<<dim3(2, 2), Threads, 0, cudaStreamFireAndForget>>>(bm, out, x0, y0, size / 2);
    } else {
        out.push(Leaf{std::uint16_t(x0), std::uint16_t(y0), std::uint16_t(size), std::uint16_t(any1 ? 1 : 0)});
    }
}

void build(const Bitmap &bm, int x, int y, int size, std::vector<Leaf> &out)
{
    bool first = bm.get(x, y), uniform = true;
    for (int j = 0; j < size && uniform; ++j)
        for (int i = 0; i < size && uniform; ++i) uniform = bm.get(x + i, y + j) == first;
    if (uniform) {
        out.push_back(Leaf{std::uint16_t(x), std::uint16_t(y), std::uint16_t(size), std::uint16_t(first)});
        return;
    }
    int h = size / 2;
    build(bm, x, y, h, out);
    build(bm, x + h, y, h, out);
    build(bm, x, y + h, h, out);
    build(bm, x + h, y + h, h, out);
}

} // namespace quad

int main()
{
    using namespace quad;
    const int side = 128;
    std::vector<std::uint8_t> img(side * side, 0);
    const int disc[][3] = {{40, 50, 27}, {95, 30, 14}, {100, 100, 9}};
    for (int y = 0; y < side; ++y)
        for (int x = 0; x < side; ++x)
            for (auto &d : disc)
                if ((x - d[0]) * (x - d[0]) + (y - d[1]) * (y - d[1]) < d[2] * d[2]) img[y * side + x] = 1;

    std::uint8_t *dImg;
    LeafList list;
    cudaMalloc(&dImg, img.size());
    cudaMalloc(&list.leaf, side * side * sizeof(Leaf));
    cudaMalloc(&list.count, sizeof(int));
    cudaMemcpy(dImg, img.data(), img.size(), cudaMemcpyHostToDevice);
    cudaMemset(list.count, 0, sizeof(int));

    split<64><<<1, 64>>>(Bitmap{dImg, side}, list, 0, 0, side);
    int n = 0;
    if (auto e = cudaMemcpy(&n, list.count, sizeof n, cudaMemcpyDeviceToHost); e != cudaSuccess) {
        std::printf("%s\n", cudaGetErrorString(e));
        return 1;
    }
    std::vector<Leaf> got(n), ref;
    cudaMemcpy(got.data(), list.leaf, n * sizeof(Leaf), cudaMemcpyDeviceToHost);
    build(Bitmap{img.data(), side}, 0, 0, side, ref);

    auto hash = [](const std::vector<Leaf> &v) {
        std::uint64_t h = 0;
        for (auto &l : v) {
            std::uint64_t z = (std::uint64_t(l.x) << 40 | std::uint64_t(l.y) << 24 | l.size << 4 | l.value) * 0x9e3779b97f4a7c15ull;
            h += z ^ (z >> 29);     // order independent
        }
        return h;
    };
    std::printf("leaves %d (host %zu) hash %016llx %s\n", n, ref.size(), (unsigned long long)hash(got),
                hash(got) == hash(ref) && got.size() == ref.size() ? "ok" : "FAILED");
    return hash(got) != hash(ref);
}
