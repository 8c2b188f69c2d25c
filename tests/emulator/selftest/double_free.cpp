// expect: double-free
#include "selftest.hpp"
__global__ void k() {
    void* p = ::emu::device_malloc(16);
    ::emu::device_free(p);
    ::emu::device_free(p);
}
int main() {
    LAUNCH(k, 1, 1)();
    cudaDeviceSynchronize();
}
