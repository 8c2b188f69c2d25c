// expect: out-of-bounds
#include "selftest.hpp"
__attribute__((section("emu_globals"))) int table[4] = {1, 2, 3, 4};
DEVICE_VARIABLE(table);
__global__ void k(int* out) { out[threadIdx.x] = table[threadIdx.x]; }
int main() {
    int* out = device_array<int>(5);
    LAUNCH(k, 1, 5)(out);
    cudaDeviceSynchronize();
}
