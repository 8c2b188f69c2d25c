// Many more launches than the arena has room for: they are put aside by chunks, and a chunk's launches of one block size and one
// size of shared memory run together. Every thread of every child leaves a number that depends on all it can see; in the end the
// heap is as empty as before, and where it is full, launches run one by one.
#include <cstdio>

#include "gridfuse.cuh"

constexpr int kThreads = 72, kBlocks = 2, kMost = 9, kLaunches = kThreads * kBlocks * kMost;
constexpr int kRoom = 96;   // results of a launch
constexpr std::size_t kHeap = (8 << 20) - 1024;

__host__ __device__ inline int launches_of(int t) { return t % 5 == 2 ? 0 : t * 7 % (kMost + 1); }
__host__ __device__ inline unsigned blocks_of(int id) { return 1 + id % 3; }
// Several in a row are the same, so that there are batches.
__host__ __device__ inline unsigned threads_of(int id) { return id / 16 % 3 == 1 ? 32 : 8; }
__host__ __device__ inline unsigned words_of(int id) { return id / 24 % 4 == 3 ? 40 : 0; }

__host__ __device__ inline unsigned result_of(int id, unsigned block, unsigned thread, unsigned blocks, unsigned threads) {
    return ((id * 131 + block) * 131 + thread) * 131 + blocks * 64 + threads;
}

struct mark_args { int id; };
__global__ void mark_aggregated(gridfuse::Batch<mark_args> batch, unsigned* out) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const mark_args& args) {
        extern __shared__ unsigned words[];
        if (threadIdx.x == 0 && words_of(args.id) != 0) words[words_of(args.id) - 1] = args.id;   // asked for
        atomicAdd(&out[args.id * kRoom + blockIdx.x * blockDim.x + threadIdx.x],
                  result_of(args.id, blockIdx.x, threadIdx.x, gridDim.x, blockDim.x));
    });
}

template <class Granularity>
__global__ void parent(unsigned* out, gridfuse::Arena arena) {
    gridfuse::Aggregator<Granularity, mark_aggregated> launches(arena, out);
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < launches_of(t); ++i) {
        const int id = t * kMost + i;
        if (id % 4 == 0) atomicAdd(&out[id * kRoom], 0u);   // threads of a warp drift apart
        launches.launch(blocks_of(id), threads_of(id), words_of(id) * sizeof(unsigned), {id});
    }
}

// Takes one piece of the heap, and then all that is left but for so many bytes, if it is to be `full`.
__global__ void take(void** heap, bool full, std::size_t left) {
    void* const spare = left != 0 ? malloc(left) : nullptr;
    *heap = malloc(kHeap - (left + 15) / 16 * 16);
    void** last = static_cast<void**>(*heap);
    if (last != nullptr) *last = nullptr;
    for (std::size_t bytes = 1 << 20; full && last != nullptr && bytes >= sizeof(void*); bytes /= 2) {
        while (void* piece = malloc(bytes)) {
            *last = piece;
            last = static_cast<void**>(piece);
            *last = nullptr;
        }
    }
    if (spare != nullptr) free(spare);
}
__global__ void give(void** heap) {
    for (void* piece = *heap; piece != nullptr;) {
        void* const next = *static_cast<void**>(piece);
        free(piece);
        piece = next;
    }
}

template <class Granularity>
bool run(const char* name, unsigned* out, void** heap, int bytes, bool full, std::size_t left = 0) {
    cudaMemset(out, 0, kLaunches * kRoom * sizeof(unsigned));
    if (full) take<<<1, 1>>>(heap, true, left);
    parent<Granularity><<<kBlocks, kThreads>>>(out, gridfuse::arena_for(kBlocks, kThreads, 0, bytes));
    if (cudaDeviceSynchronize() != cudaSuccess) return false;
    bool right = true;
    for (int t = 0; t < kBlocks * kThreads; ++t) {
        for (int i = 0; i < kMost; ++i) {
            const int id = t * kMost + i;
            for (unsigned at = 0; at < kRoom; ++at) {
                const unsigned threads = threads_of(id), block = at / threads;
                const bool runs = i < launches_of(t) && block < blocks_of(id);
                const unsigned want = runs ? result_of(id, block, at % threads, blocks_of(id), threads) : 0;
                right = right && out[id * kRoom + at] == want;
            }
        }
    }
    // Nothing else is left on the heap.
    if (!full) take<<<1, 1>>>(heap, false, 0);
    if (cudaDeviceSynchronize() != cudaSuccess) return false;
    const bool has_room = *heap != nullptr;
    give<<<1, 1>>>(heap);
    if (cudaDeviceSynchronize() != cudaSuccess) return false;
    if (!right || !has_room) std::printf("%s %s, %d bytes%s\n", right ? "heap:" : "wrong:", name, bytes, full ? ", full" : "");
    return right && has_room;
}

int main() {
    unsigned* out;
    cudaMallocManaged(&out, kLaunches * kRoom * sizeof(unsigned));
    void** heap;
    cudaMallocManaged(&heap, sizeof(void*));
    bool right = true;
    for (int bytes : {0, 16}) {
        right = run<gridfuse::PerGrid>("per grid", out, heap, bytes, false) && right;
        right = run<gridfuse::PerMultiBlock<2>>("per two blocks", out, heap, bytes, false) && right;
        right = run<gridfuse::PerBlock>("per block", out, heap, bytes, false) && right;
        right = run<gridfuse::PerWarp>("per warp", out, heap, bytes, false) && right;
    }
    right = run<gridfuse::PerBlock>("per block", out, heap, 16, true) && right;
    // One chunk and no other.
    right = run<gridfuse::PerGrid>("per grid", out, heap, 16, true, 2000) && right;
    std::printf("%s\n", right ? "right" : "wrong");
    return right ? 0 : 1;
}
