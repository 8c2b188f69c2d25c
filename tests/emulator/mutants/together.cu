// Atomic operations that the threads of a warp do together: by all of them and by some, with the same place and with others.
#include "gridfuse.cuh"

#include <cstdio>

constexpr int kThreads = 48, kPlaces = 8, kBelowZero = 5;

// With and without a sign, in both halves of the number, and in the upper one alone.
__host__ __device__ long long value_of(unsigned thread) {
    if (thread % 5 == 2) return static_cast<long long>(thread + 1) << 36;
    const unsigned long long bits = (thread * 0x9e3779b97f4a7c15ull) >> thread % 40;
    return static_cast<long long>(thread % 3 == 0 ? ~bits : bits);
}

__host__ __device__ int place_of(unsigned thread, int k) { return k == 0 ? 0 : 1 + thread % 3; }

__global__ void all(unsigned long long* sums, unsigned long long* least, int* most) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 2; ++k) {
        if (k == 1 && thread % 4 == 0) continue;
        gridfuse::warp_aggregated::atomicAdd(&sums[place_of(thread, k)], value_of(thread));
        gridfuse::warp_aggregated::atomicMin(&least[place_of(thread, k)], value_of(thread));
        gridfuse::warp_aggregated::atomicMax(&most[place_of(thread, k)], value_of(thread));
    }
    gridfuse::warp_aggregated::atomicMax(&most[kBelowZero], -1 - static_cast<int>(thread));
}

// The same by few threads, each of which collects what some of the others would do.
__global__ void collected(unsigned long long* sums, unsigned long long* least, int* most) {
    const unsigned first = blockIdx.x * kThreads + threadIdx.x;
    for (int k = 0; k < 2; ++k) {
        // The place is the same for all threads of a grid: here those that come to one of the four rests.
        for (unsigned rest = 0; rest < 12; ++rest) {
            gridfuse::SumAt sum(&sums[place_of(rest, k)]);
            gridfuse::MinimumAt smallest(&least[place_of(rest, k)]);
            gridfuse::MaximumAt greatest(&most[place_of(rest, k)]);
            for (unsigned thread = first; thread < (blockIdx.x + 1) * kThreads; thread += blockDim.x) {
                if (thread % 12 != rest || (k == 1 && thread % 4 == 0)) continue;
                sum.take(value_of(thread));
                smallest.take(value_of(thread));
                greatest.take(value_of(thread));
            }
        }
    }
    gridfuse::MaximumAt below_zero(&most[kBelowZero]);
    for (unsigned thread = first; thread < (blockIdx.x + 1) * kThreads; thread += blockDim.x) below_zero.take(-1 - static_cast<int>(thread));
}

// The kernels one after the other, each on memory of its own.
template <class Kernel>
int wrong(Kernel kernel, int threads) {
    unsigned long long *sums, *least, got_sums[kPlaces], got_least[kPlaces], expected_sums[kPlaces] = {}, expected_least[kPlaces];
    int *most, got_most[kPlaces], expected_most[kPlaces];
    cudaMalloc(&sums, sizeof got_sums);
    cudaMalloc(&least, sizeof got_least);
    cudaMalloc(&most, sizeof got_most);
    for (int place = 0; place < kPlaces; ++place) expected_least[place] = ~0ull, expected_most[place] = -2147483647 - 1;
    cudaMemset(sums, 0, sizeof got_sums);
    cudaMemcpy(least, expected_least, sizeof expected_least, cudaMemcpyHostToDevice);
    cudaMemcpy(most, expected_most, sizeof expected_most, cudaMemcpyHostToDevice);
    kernel<<<2, threads>>>(sums, least, most);
    for (unsigned thread = 0; thread < 2 * kThreads; ++thread)
        for (int k = 0; k < 2; ++k) {
            if (k == 1 && thread % 4 == 0) continue;
            const int place = place_of(thread, k);
            const auto value = static_cast<unsigned long long>(value_of(thread));
            const int small = static_cast<int>(value_of(thread));
            expected_sums[place] += value;
            if (value < expected_least[place]) expected_least[place] = value;
            if (small > expected_most[place]) expected_most[place] = small;
        }
    expected_most[kBelowZero] = -1;
    cudaMemcpy(got_sums, sums, sizeof got_sums, cudaMemcpyDeviceToHost);
    cudaMemcpy(got_least, least, sizeof got_least, cudaMemcpyDeviceToHost);
    cudaMemcpy(got_most, most, sizeof got_most, cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int place = 0; place < kPlaces; ++place)
        wrong += got_sums[place] != expected_sums[place] || got_least[place] != expected_least[place] || got_most[place] != expected_most[place];
    return wrong;
}

int main() {
    const int all_wrong = wrong(all, kThreads) + wrong(collected, 4);
    std::printf("%s\n", all_wrong == 0 ? "right" : "wrong");
    return all_wrong == 0 ? 0 : 1;
}
