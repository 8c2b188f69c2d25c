#include <cstdio>
#include <cstdint>
#include <vector>
#include <algorithm>

// Bucket per block; the block picks the sorter for its bucket once it knows the size.
template <typename KeyType, int N>
__global__ void bitonic_small(KeyType* keys, unsigned n) {
    __shared__ KeyType s[N];
    for (unsigned i = threadIdx.x; i < N; i += blockDim.x) s[i] = i < n ? keys[i] : KeyType(~KeyType(0));
    __syncthreads();
    for (unsigned k = 2; k <= N; k *= 2)
        for (unsigned j = k / 2; j > 0; j /= 2) {
            for (unsigned i = threadIdx.x; i < N; i += blockDim.x) {
                unsigned l = i ^ j;
                if (l > i && ((i & k) == 0) == (s[i] > s[l])) { KeyType t = s[i]; s[i] = s[l]; s[l] = t; }
            }
            __syncthreads();
        }
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) keys[i] = s[i];
}

template <typename KeyType>
__global__ void rank_large(const KeyType* in, KeyType* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned r = 0;
    for (unsigned j = 0; j < n; ++j) r += in[j] < in[i] || (in[j] == in[i] && j < i);
    out[r] = in[i];
}

template <typename KeyType>
__global__ void copy_back(KeyType* dst, const KeyType* src, unsigned n) {
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) dst[i] = src[i];
}

template <typename KeyType>
__global__ void sort_buckets(KeyType* keys, KeyType* tmp, const unsigned* offsets) {
    const unsigned begin = offsets[blockIdx.x];
    const unsigned n = offsets[blockIdx.x + 1] - begin;
    __shared__ int sorted;
    if (threadIdx.x == 0) sorted = 1;
    __syncthreads();
    for (unsigned i = threadIdx.x; i + 1 < n; i += blockDim.x)
        if (keys[begin + i] > keys[begin + i + 1]) sorted = 0;
    __syncthreads();

    if (threadIdx.x == 0 && !sorted) {
        if (n <= 64) {
            bitonic_small<KeyType, 64><<<1, 32>>>(keys + begin, n);
        } else if (n <= 512) {
            bitonic_small<KeyType, 512><<<1, 128>>>(keys + begin, n);
        } else {
            rank_large<KeyType><<<(n + 255) / 256, 256>>>(keys + begin, tmp + begin, n);
            copy_back<KeyType><<<1, 256>>>(keys + begin, tmp + begin, n);
        }
    }
}

int main() {
    std::vector<unsigned> off{0};
    for (int b = 0; b < 48; ++b) off.push_back(off.back() + (b * b * 37) % 1100);
    std::vector<uint32_t> keys(off.back());
    uint32_t r = 9;
    for (size_t i = 0; i < keys.size(); ++i) { r = r * 1664525u + 1013904223u; keys[i] = r >> 4; }
    auto ref = keys;
    for (int b = 0; b < 48; ++b) std::sort(ref.begin() + off[b], ref.begin() + off[b + 1]);
    uint32_t *dk, *dt; unsigned* doff;
    cudaMalloc(&dk, keys.size() * 4); cudaMalloc(&dt, keys.size() * 4); cudaMalloc(&doff, off.size() * 4);
    cudaMemcpy(dk, keys.data(), keys.size() * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(doff, off.data(), off.size() * 4, cudaMemcpyHostToDevice);
    sort_buckets<uint32_t><<<48, 64>>>(dk, dt, doff);
    cudaMemcpy(keys.data(), dk, keys.size() * 4, cudaMemcpyDeviceToHost);
    unsigned h = 0;
    for (auto k : keys) h = h * 33 + k;
    printf("%s hash %u\n", keys == ref ? "PASSED" : "FAILED", h);
    return keys == ref ? 0 : 1;
}
