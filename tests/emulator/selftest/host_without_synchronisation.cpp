// expect: race uninitialised
// Managed memory, read while a kernel may still write it.
#include "selftest.hpp"
__global__ void k(int* p) { *p = 7; }
int main() {
    int* p;
    cudaMallocManaged(&p, 4);
    LAUNCH(k, 1, 1)(p);
    return *p == 7 ? 0 : 1;
}
