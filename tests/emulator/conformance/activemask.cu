// What has to hold of __activemask(), whichever threads happen to be together: the mask holds the caller and nobody who is
// elsewhere, and the threads it names can work together.
#include "conformance.cuh"

__global__ void properties(unsigned* broken) {
    unsigned lane = threadIdx.x % 32;
    unsigned here = threadIdx.x < 64 ? ~0u : 0xff;   // the last warp has 8 threads
    unsigned mask = __activemask();
    if ((mask >> lane & 1) == 0 || (mask & ~here) != 0) atomicAdd(broken, 1u);
    if (lane % 3 == 0) {
        mask = __activemask();
        if ((mask >> lane & 1) == 0 || (mask & ~(here & 0x49249249)) != 0) atomicAdd(broken, 1u);
    }
    for (unsigned turn = 0; turn < lane; ++turn) {
        mask = __activemask();   // lanes above `turn` alone can be in this turn, or in another one
        if ((mask >> lane & 1) == 0 || (mask & ~here) != 0 || (mask & 1) != 0) atomicAdd(broken, 1u);
    }
}

// Threads that happen to be together reserve places for all of them with one addition.
__global__ void reserve(int* count, int* taken) {
    unsigned lane = threadIdx.x % 32;
    for (unsigned turn = 0; turn < lane % 4; ++turn) {
        unsigned together = __activemask();
        int leader = __ffs(together) - 1, place = 0;
        if (static_cast<int>(lane) == leader) place = atomicAdd(count, __popc(together));
        place = __shfl_sync(together, place, leader) + __popc(together & ((1u << lane) - 1));
        atomicAdd(&taken[place], 1);
    }
}

int main() {
    Array<unsigned> broken(1);
    properties<<<4, 72>>>(broken);
    broken.show("broken");
    Array<int> count(1), taken(6 * 8 * 4 * 4);
    reserve<<<4, 128>>>(count, taken);
    count.show("places");
    int once = 0;
    for (int i = 0; i < taken.count(); ++i) once += taken.read()[i] == 1;
    show("taken once", once);
}
