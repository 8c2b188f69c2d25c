// Cooperative groups: thread_block, tiled_partition, coalesced_threads.
#include "conformance.cuh"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void blocks(int* out) {
    __shared__ int sum;
    cg::thread_block block = cg::this_thread_block();
    if (block.thread_rank() == 0) sum = 0;
    block.sync();
    atomicAdd(&sum, static_cast<int>(block.thread_rank()));
    cg::sync(block);
    int* mine = out + 4 * (block.group_index().x * block.size() + block.thread_rank());
    mine[0] = block.thread_rank();
    mine[1] = block.size();
    mine[2] = block.thread_index().y;
    mine[3] = sum;
}

template <int Size>
__device__ int tile_sum(const cg::thread_block_tile<Size>& tile, int value) {
    for (int distance = Size / 2; distance > 0; distance /= 2) value += tile.shfl_down(value, distance);
    return tile.shfl(value, 0);
}

__global__ void tiles(int* out) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    int rank = block.thread_rank();
    int* mine = out + 8 * rank;
    mine[0] = tile_sum<8>(tile, rank);
    mine[1] = tile_sum<32>(warp, 1);
    mine[2] = 100 * tile.meta_group_rank() + tile.thread_rank();
    mine[3] = tile.ballot(rank % 3 == 0);
    mine[4] = (tile.any(rank == 13) != 0) + 2 * (tile.all(rank > 7) != 0);
    mine[5] = tile.shfl_xor(rank, 3);
    mine[6] = tile.shfl_up(rank, 1);
    mine[7] = tile.match_any(rank / 3);
    tile.sync();
    warp.sync();
}

// Threads that happen to be together take places for all of them.
__global__ void coalesced(int* next, int* taken) {
    if (threadIdx.x % 3 == 0) return;
    cg::coalesced_group together = cg::coalesced_threads();
    int place = 0;
    if (together.thread_rank() == 0) place = atomicAdd(next, static_cast<int>(together.size()));
    place = together.shfl(place, 0) + together.thread_rank();
    together.sync();
    atomicAdd(&taken[place], 1);
}

int main() {
    Array<int> out(2 * 12 * 4), tile(64 * 8), next(1), taken(100);
    blocks<<<2, dim3(4, 3)>>>(out);
    out.show("blocks");
    tiles<<<1, 64>>>(tile);
    for (int t : {0, 7, 8, 13, 63}) show("tiles", tile.read() + 8 * t, 8);
    tile.show_digest("all");
    coalesced<<<3, 50>>>(next, taken);
    next.show("places");
    int once = 0;
    for (int i = 0; i < 100; ++i) once += taken.read()[i] == 1;
    show("taken once", once);
}
