// The kernels of a library; the file that includes it sets the sizes first.
#ifndef EXPAND_KERNEL_CUH
#define EXPAND_KERNEL_CUH
#ifndef EXPAND_THREADS
#define EXPAND_THREADS 128
#endif
#if EXPAND_DEBUG
#define EXPAND_TRACE(...) printf(__VA_ARGS__)
#else
#define EXPAND_TRACE(...)
#endif
typedef unsigned int uint32;

static __device__ __forceinline__ uint32 expand_gid() { return blockIdx.x * blockDim.x + threadIdx.x; }

__global__ void expand_list(const uint32 *in, uint32 *out, uint32 src, uint32 dst, uint32 n) {
    uint32 i = expand_gid();
    EXPAND_TRACE("copy %u\n", i);
    if (i < n) out[dst + i] = in[src + i];
}

__global__ void expand_lists(const uint32 *in, const uint32 *begin, const uint32 *where, uint32 *out, uint32 lists) {
    uint32 l = expand_gid();
    if (l >= lists) return;
    uint32 n = begin[l + 1] - begin[l];
    if (n == 0) return;
    expand_list<<<(n + EXPAND_THREADS - 1) / EXPAND_THREADS, EXPAND_THREADS>>>(in, out, begin[l], where[l], n);
}
#endif
