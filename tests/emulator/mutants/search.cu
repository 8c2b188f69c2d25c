// The search for the launch that a block belongs to: any number of launches, any block, full and partial warps.
#include <cstdio>

#include "gridfuse.cuh"

__global__ void look(const unsigned* first, unsigned count, unsigned blocks, unsigned* wrong) {
    for (unsigned block = 0; block < blocks; ++block) {
        const gridfuse::detail::Place place = gridfuse::detail::find(first, count, block);
        const bool fits = place.slot < count && place.first == first[place.slot] && place.first <= block &&
                          (place.slot + 1 == count || first[place.slot + 1] > block);
        if (!fits) atomicAdd(wrong, 1u);
    }
}

int main() {
    unsigned *first, *wrong;
    cudaMallocManaged(&first, 1100 * sizeof(unsigned));
    cudaMallocManaged(&wrong, sizeof(unsigned));
    *wrong = 0;
    for (unsigned count : {1u, 2u, 3u, 31u, 32u, 33u, 34u, 64u, 65u, 100u, 1023u, 1024u, 1025u})
        for (unsigned threads : {32u, 7u}) {
            unsigned blocks = 0;
            for (unsigned i = 0; i < count; ++i) {
                first[i] = blocks;
                blocks += i % 3 == 0 ? 2 : 1;
            }
            look<<<1, threads>>>(first, count, count > 200 ? blocks - 200 : blocks, wrong);
            if (cudaDeviceSynchronize() != cudaSuccess) return 2;
        }
    std::printf("%u wrong\n", *wrong);
    return *wrong == 0 ? 0 : 1;
}
