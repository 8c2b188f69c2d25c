// expect: pass
// The last thread to give back a reference frees the memory that the counter lies in.
#include "selftest.hpp"
struct Counted { int references; int data[40]; };
__device__ Counted* counted;
__global__ void make() {
    counted = static_cast<Counted*>(::emu::device_malloc(sizeof(Counted)));
    counted->references = 40;
}
__global__ void use(int* out) {
    Counted* const mine = counted;
    mine->data[threadIdx.x] = threadIdx.x;
    atomicAdd(out, mine->data[threadIdx.x]);
    __threadfence();
    if (atomicSub(&mine->references, 1) == 1) {
        __threadfence();
        ::emu::device_free(mine);
    }
}
int main() {
    int* out = device_array<int>(1);
    LAUNCH(make, 1, 1)();
    LAUNCH(use, 1, 40)(out);
    return fetch(out) == 39 * 20 ? 0 : 1;
}
