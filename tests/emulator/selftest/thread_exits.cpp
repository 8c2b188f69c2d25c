// expect: pass
// PTX's `exit`: no destructor runs, barriers don't wait for the thread, what it has launched runs.
#include "selftest.hpp"
struct Marks {
    int* place;
    ~Marks() { *place = 7; }
};
__global__ void child(int* out) { *out = 3; }
__device__ void leave_if(bool leaves) { emu::ptx::exit_if(leaves); }
__global__ void k(int* out) {
    const Marks marks{out + threadIdx.x};
    if (threadIdx.x == 1) LAUNCH(child, 1, 1)(out + 8);
    leave_if(threadIdx.x % 2 == 1);
    __syncthreads();
}
int main() {
    int* const out = device_array<int>(9);
    LAUNCH(k, 1, 8)(out);
    cudaDeviceSynchronize();
    int wrong = 0;
    for (int i = 0; i < 8; ++i) wrong += fetch(out + i) != (i % 2 == 1 ? 0 : 7);
    return wrong == 0 && fetch(out + 8) == 3 ? 0 : 1;
}
