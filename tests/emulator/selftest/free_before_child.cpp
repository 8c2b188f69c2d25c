// expect: use-after-free race
// The parent frees memory that its child uses.
#include "selftest.hpp"
__global__ void child(int* p, int* out) { *out = *p; }
__global__ void parent(int* out) {
    int* p = static_cast<int*>(::emu::device_malloc(4));
    *p = 3;
    LAUNCH(child, 1, 1)(p, out);
    ::emu::device_free(p);
}
int main() {
    int* out = device_array<int>(1);
    LAUNCH(parent, 1, 1)(out);
    cudaDeviceSynchronize();
}
