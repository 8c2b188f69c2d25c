// A grid's tail launch runs after its children's tail launches, those of its children's children too.
#include "conformance.cuh"

// Does some work first, so that one who doesn't wait comes too early.
__global__ void finish_late(int* done) {
    int waste = 0;
    for (int i = 0; i < 2000; ++i) waste += atomicAdd(done, 0);
    atomicAdd(done, waste < 0 ? 2 : 1);
}

__global__ void record(const int* done, int* seen) { *seen = *done; }

__global__ void child(int* done, int* seen) {
    finish_late<<<1, 1, 0, cudaStreamTailLaunch>>>(done);
    record<<<1, 1, 0, cudaStreamTailLaunch>>>(done, seen);
}

__global__ void grandparent(int* done, int* seen, bool forget) {
    if (forget) {
        child<<<1, 1, 0, cudaStreamFireAndForget>>>(done, seen);
    } else {
        child<<<1, 1>>>(done, seen);
    }
    finish_late<<<1, 1, 0, cudaStreamTailLaunch>>>(done);
    record<<<1, 1, 0, cudaStreamTailLaunch>>>(done, seen + 1);
}

__global__ void greatgrandparent(int* done, int* seen) {
    grandparent<<<1, 1, 0, cudaStreamFireAndForget>>>(done, seen, true);
    record<<<1, 1, 0, cudaStreamTailLaunch>>>(done, seen + 2);
}

int main() {
    Array<int> done(3), seen(9);
    grandparent<<<1, 1>>>(done, seen, false);
    grandparent<<<1, 1>>>(done + 1, seen + 3, true);
    greatgrandparent<<<1, 1>>>(done + 2, seen + 6);
    seen.show("seen by child, grandparent, greatgrandparent");
    done.show("done");
}
