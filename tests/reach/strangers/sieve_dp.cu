// Segmented sieve, every small prime strikes its own multiples.
// nvcc -arch=sm_35 -rdc=true sieve_dp.cu -o sieve -lcudadevrt
#include <iostream>
#include <vector>
#include <cstdint>

#ifndef LIMIT
#define LIMIT 200000
#endif
#ifndef TPB
#define TPB 128
#endif

#define gpuErrchk(ans) { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(cudaError_t code, const char *file, int line, bool abort=true)
{
   if (code != cudaSuccess)
   {
      fprintf(stderr,"GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
      if (abort) exit(code);
   }
}

__global__ void strike(uint8_t *composite, uint32_t p, uint32_t n)
{
    uint64_t m = (uint64_t)p * p + (uint64_t)p * (blockIdx.x * blockDim.x + threadIdx.x);
    if (m <= n) composite[m] = 1;
}

__global__ void sieve(uint8_t *composite, uint32_t n, uint32_t root)
{
    const uint32_t p = 2 + blockIdx.x * blockDim.x + threadIdx.x;
    if (p > root) return;
    // trial division is enough below sqrt(n)
    for (uint32_t q = 2; q * q <= p; ++q)
        if (p % q == 0) return;
    const uint32_t multiples = n / p - p + 1;
#ifdef ONE_BLOCK
    strike<<<1, multiples>>>(composite, p, n);
#else
    strike<<<(multiples + TPB - 1) / TPB, TPB>>>(composite, p, n);
#endif
}

int main()
{
    const uint32_t n = LIMIT;
    uint32_t root = 1;
    while ((root + 1) * (root + 1) <= n) ++root;
    uint8_t *d;
    gpuErrchk(cudaMalloc(&d, n + 1));
    gpuErrchk(cudaMemset(d, 0, n + 1));
    sieve<<<(root + TPB - 1) / TPB, TPB>>>(d, n, root);
    gpuErrchk(cudaPeekAtLastError());
    gpuErrchk(cudaDeviceSynchronize());
    std::vector<uint8_t> h(n + 1);
    gpuErrchk(cudaMemcpy(h.data(), d, n + 1, cudaMemcpyDeviceToHost));
    uint64_t count = 0, sum = 0;
    for (uint32_t i = 2; i <= n; ++i) if (!h[i]) { ++count; sum += i; }
    std::cout << count << " primes, sum " << sum << std::endl;
    cudaFree(d);
    return 0;
}
