// expect: pass
// Threads that have left are not waited for, neither by the block nor by their warps.
#include "selftest.hpp"
__global__ void k(int* out, int n) {
    SHARED(int[100], data);
    int i = threadIdx.x;
    if (i >= n) return;
    data[i] = i;
    __syncthreads();
    int other = data[n - 1 - i];
    __syncwarp();
    for (int d = 16; d > 0; d /= 2) {
        int lane_value = __shfl_xor_sync(0xffffffffu, other, 0);
        other = lane_value;
    }
    out[i] = other;
}
int main() {
    int* out = device_array<int>(100);
    LAUNCH(k, 1, 100)(out, 70);
    int got[100];
    cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
    for (int i = 0; i < 70; ++i)
        if (got[i] != 69 - i) return 1;
    return got[70] == 0 ? 0 : 1;
}
