// Rounds of two kernels until a flag says so, each operation of gridfuse::Rounds at least once.
#include "gridfuse.cuh"
#include <cstdio>

constexpr int kThreads = 32;

struct rounds_state {
    int level;
    int wrong;
    int* from;
    int* to;
};

__device__ int left;

// Takes one from each number, with a neighbour that another block has written.
__device__ void lower_body(uint3 blockIdx, dim3 gridDim, dim3 blockDim, const int* from, int* to, int* flag, int n) {
    __shared__ int tile[kThreads];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? from[n - 1 - i] : 0;
    __syncthreads();
    int value = tile[blockDim.x - 1 - threadIdx.x];
    int at = blockIdx.x * blockDim.x + blockDim.x - 1 - threadIdx.x;
    if (at < n) {
        to[at] = value > 0 ? value - 1 : 0;
        if (value > 1) *flag = 1;
    }
}

__device__ void count_body(uint3 blockIdx, dim3 gridDim, dim3 blockDim, const int* counts, int* sum, int n) {
    for (int i = 0; i < n; ++i) *sum += (counts[i] == 0x01010101) + (int)(gridDim.x - 1);
}

// Reads what other blocks have just written.
__device__ void mirror_body(uint3 blockIdx, dim3 gridDim, dim3 blockDim, const int* numbers, int* mirrored, int* mark, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) mirrored[i] = numbers[n - 1 - i];
    atomicAdd(mark, 1);
}

__global__ void lower_rounds(gridfuse::Rounds<rounds_state> rounds, dim3 blocks, int* flag, int* counts, int* sum, int* mapped,
                             int* mirrored, int* mark, int n) {
    int level = rounds.state().level;
    int* from = rounds.state().from;
    int* to = rounds.state().to;
    int again, marked, wrong = 0;
    do {
        rounds.fill(flag, 0, sizeof(int));
        rounds.fill(counts, 1, n * sizeof(int));
        rounds.run(1, 1, [&](uint3 blockIdx, dim3 gridDim) { count_body(blockIdx, gridDim, dim3(1), counts, sum, n); });
        rounds.run(blocks, [&](uint3 blockIdx, dim3 gridDim) { lower_body(blockIdx, gridDim, blockDim, from, to, flag, n); });
        rounds.load(&again, flag, sizeof(int));
        rounds.run(blocks, [&](uint3 blockIdx, dim3 gridDim) {
            mirror_body(blockIdx, gridDim, blockDim, to, mirrored, mark, n);
        });
        rounds.store(mark, &level, sizeof(int));
        rounds.load(&marked, mark, sizeof(int));
        if (marked != level) wrong = 1;
        rounds.swap(from, to);
        ++level;
        rounds.store(&left, &level, sizeof(int));
        rounds.store(mapped, level);
        rounds.copy(counts, from, n * sizeof(int));
    } while (again && rounds.load(mapped) < 1000);
    rounds.finish({level, wrong, from, to});
}

struct count_state {
    int rounds;
};

// Launches as many grids as it is told to, which have no blocks.
__global__ void count_rounds(gridfuse::Rounds<count_state> rounds, dim3 none, int* sum, int times) {
    int done = rounds.state().rounds;
    while (done < times) {
        rounds.run(none, [&](uint3 blockIdx, dim3 gridDim) { *sum = 1000; });
        ++done;
    }
    rounds.finish({done});
}

// Loops whose only grid is empty run, and the last error tells of it where there was a launch.
int counts_without_blocks(int* sum) {
    for (int times = 0; times < 3; times += 2) {
        count_state state = {0};
        cudaError_t error = gridfuse::run_rounds<count_rounds>(0, kThreads, 0, 0, state, 0, sum, times);
        if (error != cudaSuccess || state.rounds != times) return 6;
        if ((cudaGetLastError() == cudaSuccess) != (times == 0)) return 7;
    }
    return 0;
}

// A loop whose blocks CUDA refuses runs without its kernels, and the last error tells of it.
int counts_without_threads(int* sum) {
    int read = -1;
    for (int threads = 0; threads < 4096; threads += 2048) {
        count_state state = {0};
        cudaError_t error = gridfuse::run_rounds<count_rounds>(1, threads, 0, 0, state, 1, sum, 2);
        if (error != cudaSuccess || state.rounds != 2) return 8;
        if (cudaGetLastError() == cudaSuccess) return 9;
    }
    cudaMemcpy(&read, sum, sizeof(int), cudaMemcpyDeviceToHost);
    return read == 0 ? 0 : 10;
}

int main() {
    const int n = 150, most = 7;
    int first[n], numbers[n], *d_a, *d_b, *d_flag, *d_counts, *d_sum, *mapped, *d_mirrored, *d_mark, sum = 0, last = 0;
    for (int i = 0; i < n; ++i) first[i] = i % (most + 1);
    cudaMalloc(&d_a, sizeof(first));
    cudaMalloc(&d_b, sizeof(first));
    cudaMalloc(&d_flag, sizeof(int));
    cudaMalloc(&d_counts, sizeof(first));
    cudaMalloc(&d_sum, sizeof(int));
    cudaMalloc(&d_mirrored, sizeof(first));
    cudaMalloc(&d_mark, sizeof(int));
    cudaMallocManaged(&mapped, sizeof(int));
    cudaMemcpy(d_a, first, sizeof(first), cudaMemcpyHostToDevice);
    cudaMemset(d_sum, 0, sizeof(int));
    cudaMemset(d_mark, 0, sizeof(int));
    if (int wrong = counts_without_blocks(d_sum)) return wrong;
    if (int wrong = counts_without_threads(d_sum)) return wrong;
    rounds_state state = {0, 0, d_a, d_b};
    dim3 blocks((n + kThreads - 1) / kThreads);
    cudaError_t error = gridfuse::run_rounds<lower_rounds>(gridfuse::larger_grid(blocks, 1), kThreads, 0, 0, state, blocks, d_flag, d_counts,
                                                           d_sum, mapped, d_mirrored, d_mark, n);
    if (error != cudaSuccess) {
        printf("%s\n", cudaGetErrorString(error));
        return 1;
    }
    cudaMemcpy(numbers, state.from, sizeof(first), cudaMemcpyDeviceToHost);
    cudaMemcpy(&sum, d_sum, sizeof(int), cudaMemcpyDeviceToHost);
    cudaMemcpyFromSymbol(&last, left, sizeof(int));
    // Numbers are turned round in each round, and an odd number of them is left.
    for (int i = 0; i < n; ++i)
        if (numbers[i] != 0) return 2;
    if (state.level != most || last != most || *mapped != most) return 3;
    if (state.wrong) return 5;
    if (sum != most * n) return 4;
    printf("%d rounds\n", state.level);
    return 0;
}
