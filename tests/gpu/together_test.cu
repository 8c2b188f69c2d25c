// Test of the atomic operations of gridfuse.cuh that the threads of a warp do together, on a GPU.
//
//   nvcc -std=c++17 -rdc=true -I codeactions/runtime tests/gpu/together_test.cu -lcudadevrt -o together_test
//   ./together_test [--small]
//
// Threads that come there by chance, alone, some of them or all, with the same place and with others: the results have to be those of
// CUDA's operations. The last line is "N passed, N failed".

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "gridfuse.cuh"

#define CHECK(call)                                                                                      \
    do {                                                                                                 \
        cudaError_t error_ = (call);                                                                     \
        if (error_ != cudaSuccess) {                                                                     \
            std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));       \
            std::exit(2);                                                                                \
        }                                                                                                \
    } while (0)

int passed = 0, failed = 0;

void verdict(const std::string& name, bool right) {
    ++(right ? passed : failed);
    if (!right) std::printf("FAILED: %s\n", name.c_str());
}

__host__ __device__ inline unsigned mix(unsigned hash, unsigned value) { return (hash ^ value) * 0x9e3779b1u + (hash >> 15); }

// Numbers of all signs and sizes.
template <class T>
__device__ T value_of(unsigned thread, unsigned round) {
    const unsigned a = mix(thread * 7 + 1, round), b = mix(a, 77);
    const unsigned long long bits = (static_cast<unsigned long long>(a) << 32 | b) >> (a % 64);
    return static_cast<T>(a & 64 ? ~bits : bits);
}

enum Which { kOne, kFew, kMany };   // places

// The operations of each kind, by each thread in some of the rounds; `Together` or CUDA's own. Of 64 bits with sign CUDA has some only.
template <class T, bool Together>
__global__ void operate(T* results, int which, int rounds) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (int round = 0; round < rounds; ++round) {
        const unsigned chance = mix(thread, round * 31 + 5);
        // All threads, some, or the threads of one half of the warp after the other.
        if (round % 3 == 1 && chance % 4 != 0) continue;
        const unsigned place = which == kOne ? 0 : which == kFew ? thread / 16 % 3 : chance % 5;
        const T value = value_of<T>(thread, round);
        if (round % 3 == 2 && chance % 2 == 0) {
            if constexpr (Together) gridfuse::warp_aggregated::atomicMax(&results[place], value);
            else atomicMax(&results[place], value);
            continue;
        }
        if constexpr (Together) {
            gridfuse::warp_aggregated::atomicMin(&results[5 + place], value);
            gridfuse::warp_aggregated::atomicAnd(&results[10 + place], value | T(1) << place);
            gridfuse::warp_aggregated::atomicOr(&results[15 + place], value & T(chance));
            gridfuse::warp_aggregated::atomicXor(&results[20 + place], value);
        } else {
            atomicMin(&results[5 + place], value);
            atomicAnd(&results[10 + place], value | T(1) << place);
            atomicOr(&results[15 + place], value & T(chance));
            atomicXor(&results[20 + place], value);
        }
    }
}

template <class T, bool Together>
__global__ void add(T* sums, int which, int rounds) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (int round = 0; round < rounds; ++round) {
        const unsigned chance = mix(thread, round * 31 + 5);
        if (round % 3 == 1 && chance % 4 != 0) continue;
        const unsigned place = which == kOne ? 0 : which == kFew ? thread / 16 % 3 : chance % 5;
        T value = std::is_integral<T>::value ? value_of<T>(thread, round) : T(chance % 4);   // sums of small numbers are exact
        if constexpr (Together) gridfuse::warp_aggregated::atomicAdd(&sums[place], value);
        else atomicAdd(&sums[place], value);
        if constexpr (sizeof(T) == 4 && std::is_integral<T>::value) {
            if constexpr (Together) gridfuse::warp_aggregated::atomicSub(&sums[5 + place], value);
            else atomicSub(&sums[5 + place], value);
        }
    }
}

// Each thread sees at least what it has added itself.
__global__ void read_back(unsigned* sum, unsigned* too_small, int rounds) {
    for (unsigned round = 1; round <= unsigned(rounds); ++round) {
        if (mix(threadIdx.x, round) % 3 == 0) continue;
        const unsigned before = *const_cast<volatile unsigned*>(sum);
        gridfuse::warp_aggregated::atomicAdd(sum, 1);
        if (*const_cast<volatile unsigned*>(sum) == before) atomicAdd(too_small, 1u);
    }
}

template <class T, class Kernel>
std::vector<T> results_of(Kernel kernel, int which, int blocks, int threads, int rounds) {
    std::vector<T> results(25, T(12));
    T* there;
    CHECK(cudaMalloc(&there, results.size() * sizeof(T)));
    CHECK(cudaMemcpy(there, results.data(), results.size() * sizeof(T), cudaMemcpyHostToDevice));
    kernel<<<blocks, threads>>>(there, which, rounds);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(results.data(), there, results.size() * sizeof(T), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(there));
    return results;
}

template <class T>
void all_of(const char* type, int blocks, int threads, int rounds) {
    for (int which : {kOne, kFew, kMany}) {
        const std::string name = std::string(type) + ", places " + std::to_string(which) + ", threads " + std::to_string(threads);
        if constexpr (std::is_integral<T>::value)
            verdict(name, results_of<T>(operate<T, true>, which, blocks, threads, rounds) ==
                              results_of<T>(operate<T, false>, which, blocks, threads, rounds));
        verdict(name + ": sums", results_of<T>(add<T, true>, which, blocks, threads, rounds) ==
                                     results_of<T>(add<T, false>, which, blocks, threads, rounds));
    }
}

int main(int argc, char** argv) {
    const bool small = argc > 1 && std::strcmp(argv[1], "--small") == 0;
    const int rounds = small ? 7 : 60, blocks = small ? 2 : 50;
    for (int threads : {1, 31, 32, 100, 256}) {
        if (small && threads > 100) continue;
        all_of<int>("int", blocks, threads, rounds);
        all_of<unsigned>("unsigned", blocks, threads, rounds);
        all_of<unsigned long long>("unsigned long long", blocks, threads, rounds);
        all_of<float>("float", blocks, threads, rounds);
        all_of<double>("double", blocks, threads, rounds);
    }
    unsigned *counts, got[2];
    CHECK(cudaMalloc(&counts, sizeof got));
    CHECK(cudaMemset(counts, 0, sizeof got));
    read_back<<<blocks, 64>>>(counts, counts + 1, rounds);
    CHECK(cudaMemcpy(got, counts, sizeof got, cudaMemcpyDeviceToHost));
    verdict("each thread's own", got[0] > 0 && got[1] == 0);
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
