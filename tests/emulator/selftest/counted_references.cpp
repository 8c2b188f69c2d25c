// expect: pass
// Threads count down how many of them still use some memory; the last one frees it.
#include "selftest.hpp"
struct Shared {
    int left, value;
};
__global__ void make(Shared** shared) {
    *shared = static_cast<Shared*>(emu::device_malloc(sizeof(Shared)));
    (*shared)->left = 96;
    (*shared)->value = 7;
}
__global__ void use(Shared** shared, int* out) {
    Shared* const mine = *shared;
    atomicAdd(out, mine->value);
    __threadfence();
    if (atomicSub(&mine->left, 1) == 1) {
        __threadfence();
        emu::device_free(mine);
    }
}
int main() {
    Shared** shared = device_array<Shared*>(1);
    int* out = device_array<int>(1);
    LAUNCH(make, 1, 1)(shared);
    LAUNCH(use, 3, 32)(shared, out);
    return fetch(out) == 96 * 7 ? 0 : 1;
}
