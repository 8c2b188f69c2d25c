// Launches into the NULL stream by the threads of one block run one after the other, in the order of the launches; every
// block has such a stream of its own.
#include "conformance.cuh"

struct List {
    int count;
    int values[40];
};

__global__ void append(List* list, int value) { list->values[list->count++] = value; }
__global__ void scale(List* list, int factor) {
    if (static_cast<int>(threadIdx.x) < list->count) list->values[threadIdx.x] *= factor;
}

__global__ void parent(List* lists) {
    List* list = lists + blockIdx.x;
    int t = threadIdx.x;
    for (int turn = 0; turn < 8; ++turn) {
        if (t == turn * 5) {
            append<<<1, 1>>>(list, 10 * blockIdx.x + turn);
            append<<<1, 1>>>(list, t);
        }
        __syncthreads();
    }
    if (t == 63) {
        scale<<<1, 40>>>(list, 3);
        append<<<1, 1>>>(list, -1);
        scale<<<1, 40>>>(list, 2);
    }
}

int main() {
    const int blocks = 3;
    List lists[blocks], *device;
    CHECK(cudaMalloc(&device, sizeof lists));
    CHECK(cudaMemset(device, 0, sizeof lists));
    parent<<<blocks, 64>>>(device);
    conformance::finish();
    CHECK(cudaMemcpy(lists, device, sizeof lists, cudaMemcpyDeviceToHost));
    for (const List& list : lists) show("list", list.values, list.count);
    CHECK(cudaFree(device));
}
