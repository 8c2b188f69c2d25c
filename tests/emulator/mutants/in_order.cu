// Two launches of a thread of which the second reads what the first has written: with room for all, with little or no memory for either,
// with the heap full, from any control flow, at every granularity. Each child of the second launch reads all that the first has left.
#include <cstdio>

#include "gridfuse.cuh"

constexpr int kThreads = 40, kBlocks = 3, kMost = 3, kRoom = 24;
constexpr int kLaunches = kThreads * kBlocks * kMost;
constexpr std::size_t kHeap = (8 << 20) - 1024;

__host__ __device__ inline int launches_of(int t) { return t % 5 == 2 ? 0 : 1 + t % kMost; }
__host__ __device__ inline unsigned blocks_of(int id) { return 1 + id % 3; }
__host__ __device__ inline int made(int id, int i) { return id * 31 + i * 7 + 1; }

struct make_args { int id; };
__global__ void make_aggregated(gridfuse::Batch<make_args> batch, int* made_there) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const make_args& args) {
        const int i = blockIdx.x * blockDim.x + threadIdx.x;
        made_there[args.id * kRoom + i] = made(args.id, i);
    });
}

struct use_args { int id, count; };
__global__ void use_aggregated(gridfuse::Batch<use_args> batch, const int* made_there, int* sums) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const use_args& args) {
        int sum = 0;
        for (int i = threadIdx.x; i < args.count; i += blockDim.x) sum += made_there[args.id * kRoom + i];
        atomicAdd(&sums[args.id], sum);
    });
}

template <class Granularity>
__global__ void parent(int* made_there, int* sums, gridfuse::Arena arena) {
    gridfuse::Aggregator<Granularity, make_aggregated> makes(arena, made_there);
    gridfuse::Aggregator<Granularity, use_aggregated> uses(arena, made_there, sums);
    gridfuse::InOrder in_order(makes, uses);
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (launches_of(t) == 0) return;
    for (int k = 0; k < launches_of(t); ++k) {
        const int id = t * kMost + k;
        if (id % 4 == 0) atomicAdd(&sums[id], 0);   // threads of a warp drift apart
        makes.launch(blocks_of(id), 8, {id});
        if (id % 7 == 3) return;
        uses.launch(1, 4, {id, int(blocks_of(id)) * 8});
    }
}

// Takes all of the heap.
__global__ void take(void** heap) {
    *heap = malloc(kHeap);
    void** last = static_cast<void**>(*heap);
    if (last == nullptr) return;
    *last = nullptr;
    for (std::size_t bytes = 1 << 20; bytes >= sizeof(void*); bytes /= 2) {
        while (void* piece = malloc(bytes)) {
            *last = piece;
            last = static_cast<void**>(piece);
            *last = nullptr;
        }
    }
}
__global__ void give(void** heap) {
    for (void* piece = *heap; piece != nullptr;) {
        void* const next = *static_cast<void**>(piece);
        free(piece);
        piece = next;
    }
}

template <class Granularity>
bool run(const char* name, int* made_there, int* sums, void** heap, int bytes, bool full) {
    bool right = true;
    for (int repeat = 0; repeat < 2; ++repeat) {
        cudaMemset(made_there, 0, kLaunches * kRoom * sizeof(int));
        cudaMemset(sums, 0, kLaunches * sizeof(int));
        if (full) take<<<1, 1>>>(heap);
        if (bytes < 0) parent<Granularity><<<kBlocks, kThreads>>>(made_there, sums, gridfuse::Arena());
        else parent<Granularity><<<kBlocks, kThreads>>>(made_there, sums, gridfuse::arena_for(kBlocks, kThreads, 0, bytes, 2));
        if (cudaDeviceSynchronize() != cudaSuccess) return false;
        if (full) give<<<1, 1>>>(heap);
        if (cudaDeviceSynchronize() != cudaSuccess) return false;
        for (int t = 0; t < kBlocks * kThreads; ++t) {
            bool left = false;
            for (int k = 0; k < kMost; ++k) {
                const int id = t * kMost + k;
                const bool makes = k < launches_of(t) && !left;
                left = left || id % 7 == 3;
                int want = 0;
                for (int i = 0; i < int(blocks_of(id)) * 8; ++i) want += made(id, i);
                right = right && sums[id] == (makes && !left ? want : 0);
                right = right && made_there[id * kRoom] == (makes ? made(id, 0) : 0);
            }
        }
    }
    if (!right) std::printf("wrong: %s, %d bytes%s\n", name, bytes, full ? ", full" : "");
    return right;
}

template <class Granularity>
bool all(const char* name, int* made_there, int* sums, void** heap) {
    bool right = true;
    for (int bytes : {256, 24, 0, -1}) right = run<Granularity>(name, made_there, sums, heap, bytes, false) && right;
    for (int bytes : {256, 24}) right = run<Granularity>(name, made_there, sums, heap, bytes, true) && right;
    return right;
}

int main() {
    int *made_there, *sums;
    void** heap;
    cudaMallocManaged(&made_there, kLaunches * kRoom * sizeof(int));
    cudaMallocManaged(&sums, kLaunches * sizeof(int));
    cudaMallocManaged(&heap, sizeof(void*));
    bool right = all<gridfuse::PerWarp>("warp", made_there, sums, heap);
    right = all<gridfuse::PerBlock>("block", made_there, sums, heap) && right;
    right = all<gridfuse::PerMultiBlock<2>>("blocks", made_there, sums, heap) && right;
    right = all<gridfuse::PerGrid>("grid", made_there, sums, heap) && right;
    std::printf("%s\n", right ? "right" : "wrong");
    return right ? 0 : 1;
}
