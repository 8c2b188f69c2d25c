// expect: pass
// cuda::atomic_ref on shared and on global memory, and its reads and writes of local memory, which are plain there.
#include "selftest.hpp"
#include <cuda/atomic>
__global__ void k(int* out) {
    SHARED(int, sum);
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    cuda::atomic_ref<int, cuda::thread_scope_block> here(sum);
    here += 2;
    here.fetch_add(1, cuda::memory_order_relaxed);
    ++here;
    here--;
    __syncthreads();
    int last = 0;
    cuda::atomic_ref<int> mine(last);
    mine.store(here.load());
    cuda::atomic_ref all(*out);
    if (threadIdx.x == 0) all.fetch_add(last, cuda::std::memory_order_relaxed);
    cuda::atomic_ref<int, cuda::thread_scope_device> most(out[1]);
    most.fetch_max(int(threadIdx.x));
    int expected = 0;
    cuda::atomic_ref<int, cuda::thread_scope_device>(out[2]).compare_exchange_strong(expected, 5);
    volatile int spilled = 3;
    if (spilled != 3) out[3] = 1;
}
int main() {
    int* out = device_array<int>(4);
    LAUNCH(k, 2, 33)(out);
    return fetch(out) == 2 * 33 * 3 && fetch(out + 1) == 32 && fetch(out + 2) == 5 && fetch(out + 3) == 0 ? 0 : 1;
}
