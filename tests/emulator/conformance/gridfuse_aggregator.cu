// gridfuse.cuh: an Aggregator launches what the threads of a block asked for, also where the arena is too small for it, or
// empty, and the launches go out by themselves.
#include "conformance.cuh"

#include "gridfuse.cuh"

struct visit_args {
    int number, size;
};

__global__ void visit(gridfuse::Batch<visit_args> batch, int* visits, int* sums) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const visit_args& args) {
        int t = blockIdx.x * blockDim.x + threadIdx.x;
        if (t >= args.size) return;
        atomicAdd(&visits[args.number], 1);
        atomicAdd(&sums[args.number], t + 1000 * (gridDim.x == (args.size + blockDim.x - 1) / blockDim.x));
    });
}

__global__ void parent(int* visits, int* sums, int count, gridfuse::Arena arena) {
    gridfuse::Aggregator<gridfuse::PerBlock, visit> visitor(arena, visits, sums);
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= count) return;
    for (int i = 0; i < t % 4; ++i) {
        int size = t * (i + 1) % 50;
        visitor.launch((size + 15) / 16, 16, {t, size});
    }
}

int main() {
    const int count = 90;
    for (int bytes : {128, 32, 4, 0}) {
        Array<int> visits(count), sums(count);
        if (bytes == 0) parent<<<3, 32>>>(visits, sums, count, gridfuse::Arena());
        else parent<<<3, 32>>>(visits, sums, count, gridfuse::arena_for(3, 32, 0, bytes));
        visits.show_digest("visits");
        sums.show_digest("sums");
        show("beginning", visits.read(), 20);
    }
}
