// expect: pass
// The last thread to give back a reference frees the memory that the counter lies in.
#include "selftest.hpp"
struct Counted { int references; int data[40]; };
__global__ void make(Counted** counted) {
    *counted = static_cast<Counted*>(::emu::device_malloc(sizeof(Counted)));
    (*counted)->references = 40;
}
__global__ void use(Counted** counted, int* out) {
    Counted* const mine = *counted;
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
    Counted** counted = device_array<Counted*>(1);
    LAUNCH(make, 1, 1)(counted);
    LAUNCH(use, 1, 40)(counted, out);
    return fetch(out) == 39 * 20 ? 0 : 1;
}
