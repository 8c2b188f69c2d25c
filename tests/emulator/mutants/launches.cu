// What the runtime header must not get wrong: how many launches there are, in any number and from any control flow, whether
// they fit or not, at every granularity. Every thread of every child leaves a number that depends on all it can see.
#include <cstdio>
#include <vector>

#include "gridfuse.cuh"

struct Job {
    dim3 grid, block;
    unsigned shared;     // words of dynamic shared memory
    int first;           // of its results
};

__host__ __device__ inline unsigned mix(unsigned a, unsigned b) { return (a ^ b) * 0x9e3779b1u + (a >> 15); }

__host__ __device__ inline unsigned result_of(dim3 t, dim3 b, const Job& job, unsigned note) {
    unsigned h = mix(note, t.x + 64 * (t.y + 64 * t.z));
    h = mix(h, b.x + 1024 * (b.y + 1024 * b.z));
    h = mix(h, job.grid.x + 1024 * (job.grid.y + 1024 * job.grid.z));
    return mix(h, job.block.x + 64 * (job.block.y + 64 * job.block.z));
}

__device__ inline void work(uint3 blockIdx, dim3 gridDim, dim3 blockDim, unsigned* out, const unsigned* notes, int id, int first) {
    extern __shared__ unsigned words[];
    Job job{gridDim, blockDim, 0, first};
    int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int threads = blockDim.x * blockDim.y * blockDim.z;
    if (notes[id] % 2 == 1) words[t] = t;   // asked for
    dim3 ti(threadIdx.x, threadIdx.y, threadIdx.z), bi(blockIdx.x, blockIdx.y, blockIdx.z);
    atomicAdd(&out[first + b * threads + t], result_of(ti, bi, job, notes[id]));
}

struct work_args { int id, first; };
__global__ void work_aggregated(gridfuse::Batch<work_args> batch, unsigned* out, const unsigned* notes) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const work_args& args) {
        work(blockIdx, gridDim, blockDim, out, notes, args.id, args.first);
    });
}

// Thread t does the jobs from begin[t] on. Two aggregators.
template <class Granularity>
__global__ void parent(const Job* jobs, const int* begin, int n, unsigned* out, unsigned* notes, gridfuse::Arena arena) {
    gridfuse::Aggregator<Granularity, work_aggregated> even(arena, out, notes);
    gridfuse::Aggregator<Granularity, work_aggregated, 1> odd(arena, out, notes);
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n || begin[t] == begin[t + 1]) return;
    for (int i = begin[t]; i < begin[t + 1]; ++i) {
        const Job& job = jobs[i];
        notes[i] = i * 2 + (job.shared != 0);
        if (job.shared != 0) {
            odd.launch(job.grid, job.block, job.shared * sizeof(unsigned), {i, job.first});
            continue;
        }
        if (i % 3 == 0) even.launch(job.grid, job.block, {i, job.first});
        else odd.launch(job.grid, job.block, {i, job.first});
        if (i % 41 == 40) return;
    }
}

bool right = true;

struct Random {
    unsigned state;
    unsigned below(unsigned n) {
        state = state * 1664525u + 1013904223u;
        return (state >> 8) % n;
    }
};

enum Shapes { kOne, kLinear, kBlocks, kAny, kShared };

template <class Granularity>
void run(const char* name, int blocks, int threads, int launchers, int most, Shapes shapes, std::size_t bytes, unsigned seed, bool arena = true) {
    Random random{seed};
    std::vector<Job> jobs;
    std::vector<int> begin{0};
    int results = 0;
    for (int t = 0; t < launchers; ++t) {
        int count = most == 0 ? 1 : random.below(4) == 0 ? 0 : int(random.below(most + 1));
        for (int k = 0; k < count; ++k) {
            Job job{dim3(1), dim3(4), 0, results};
            if (shapes == kLinear) job.grid.x = random.below(4), job.block.x = 1 + random.below(6);
            if (shapes == kBlocks || shapes == kAny) job.grid = dim3(1 + random.below(3), 1 + random.below(2), 1 + random.below(3));
            if (shapes == kBlocks) job.block = dim3(2, 2, 2);
            if (shapes == kAny) job.block = dim3(1 + random.below(3), 1 + random.below(2), 1 + random.below(2));
            if (shapes == kShared) job.shared = random.below(2) ? 8 + random.below(9) : 0;
            results += job.grid.x * job.grid.y * job.grid.z * job.block.x * job.block.y * job.block.z;
            jobs.push_back(job);
            if ((int(jobs.size()) - 1) % 41 == 40 && jobs.back().shared == 0) break;
        }
        begin.push_back(int(jobs.size()));
    }
    std::vector<unsigned> expected(results + 1), got(results + 1);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        const Job& job = jobs[i];
        int at = job.first;
        for (unsigned b = 0; b < job.grid.x * job.grid.y * job.grid.z; ++b)
            for (unsigned t = 0; t < job.block.x * job.block.y * job.block.z; ++t) {
                dim3 bi(b % job.grid.x, b / job.grid.x % job.grid.y, b / job.grid.x / job.grid.y);
                dim3 ti(t % job.block.x, t / job.block.x % job.block.y, t / job.block.x / job.block.y);
                Job plain = job;
                expected[at++] = result_of(ti, bi, plain, unsigned(i) * 2 + (job.shared != 0));
            }
    }
    Job* jobs_there;
    int* begin_there;
    unsigned *out, *notes;
    cudaMalloc(&jobs_there, (jobs.size() + 1) * sizeof(Job));
    cudaMalloc(&begin_there, begin.size() * sizeof(int));
    cudaMalloc(&out, (results + 1) * sizeof(unsigned));
    cudaMalloc(&notes, (jobs.size() + 1) * sizeof(unsigned));
    cudaMemcpy(jobs_there, jobs.data(), jobs.size() * sizeof(Job), cudaMemcpyHostToDevice);
    cudaMemcpy(begin_there, begin.data(), begin.size() * sizeof(int), cudaMemcpyHostToDevice);
    bool same = true;
    for (int repeat = 0; repeat < 2; ++repeat) {
        cudaMemset(out, 0, (results + 1) * sizeof(unsigned));
        if (arena)
            parent<Granularity><<<blocks, threads>>>(jobs_there, begin_there, launchers, out, notes, gridfuse::arena_for(blocks, threads, 0, bytes, 2));
        else
            parent<Granularity><<<blocks, threads>>>(jobs_there, begin_there, launchers, out, notes, gridfuse::Arena());
        cudaMemcpy(got.data(), out, (results + 1) * sizeof(unsigned), cudaMemcpyDeviceToHost);
        same = same && got == expected && cudaGetLastError() == cudaSuccess;
    }
    cudaFree(jobs_there);
    cudaFree(begin_there);
    cudaFree(out);
    cudaFree(notes);
    if (!same) std::printf("wrong: %s, %d launches\n", name, int(jobs.size()));
    right = right && same;
}

template <class G>
void all() {
    run<G>("a few", 1, 40, 37, 2, kLinear, 128, 1);
    run<G>("several blocks", 5, 40, 190, 2, kLinear, 128, 2);
    run<G>("one block of four", 4, 40, 30, 2, kLinear, 128, 12);
    run<G>("one each, more than a warp searches at once", 1, 96, 70, 0, kLinear, 128, 3);
    run<G>("one block each", 3, 33, 90, 0, kOne, 128, 4);
    run<G>("too little memory", 3, 64, 150, 3, kLinear, 32, 5);
    run<G>("hardly any memory", 2, 40, 60, 3, kLinear, 8, 6);
    run<G>("shapes", 3, 40, 100, 2, kBlocks, 128, 7);
    run<G>("blocks of all shapes", 2, 20, 30, 2, kAny, 128, 8);
    run<G>("shared memory", 2, 40, 70, 2, kShared, 128, 9);
    run<G>("no arena", 2, 40, 50, 1, kLinear, 0, 10, false);
    run<G>("more blocks than before", 9, 32, 280, 1, kLinear, 64, 11);
}

int main() {
    all<gridfuse::PerWarp>();
    all<gridfuse::PerBlock>();
    all<gridfuse::PerMultiBlock<2>>();
    all<gridfuse::PerGrid>();
    std::printf("%s\n", right ? "right" : "wrong");
    return right ? 0 : 1;
}
