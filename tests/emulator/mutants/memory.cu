// What arenas leave behind: memory for later launches in their stream, but no more than a device spares, however large they were.
#include <cstdio>

#include "gridfuse.cuh"

struct add_args { int value; };
__global__ void add_aggregated(gridfuse::Batch<add_args> batch, unsigned* sum) {
    batch.for_each_block([&](uint3 blockIdx, dim3, dim3, const add_args& args) { atomicAdd(sum, args.value + blockIdx.x); });
}

__global__ void parent(unsigned* sum, gridfuse::Arena arena) {
    gridfuse::Aggregator<gridfuse::PerBlock, add_aggregated> adds(arena, sum);
    if (threadIdx.x % 3 == 0) adds.launch(2, 1, {int(threadIdx.x)});
}

int main() {
    size_t before, available, all;
    unsigned* sum;
    cudaMalloc(&sum, sizeof *sum);
    cudaMemset(sum, 0, sizeof *sum);
    cudaMemGetInfo(&before, &all);
    cudaStream_t streams[2];
    for (cudaStream_t& stream : streams) cudaStreamCreate(&stream);
    // Parts of the memory that there is. The second one makes the first one's place its own; there is none left for the third.
    const size_t parts[3] = {40, 24, 40};
    unsigned expected = 0;
    for (int round = 0; round < 3; ++round) {
        cudaStream_t stream = streams[round / 2];
        parent<<<1, 32, 0, stream>>>(sum, gridfuse::arena_for(1, 32, stream, all / 32 / parts[round]));
        for (int t = 0; t < 32; t += 3) expected += 2 * t + 1;
    }
    cudaDeviceSynchronize();
    cudaMemGetInfo(&available, &all);
    unsigned found;
    cudaMemcpy(&found, sum, sizeof found, cudaMemcpyDeviceToHost);
    if (found != expected) std::printf("%u in place of %u\n", found, expected);
    if (before - available > all / 16) std::printf("%zu bytes are kept\n", before - available);
    if (before == available) std::printf("nothing is kept\n");
    return found == expected && before - available <= all / 16 && before != available ? 0 : 1;
}
