// Children of children: a tree of grids, data that goes down several levels, and the host that waits for all of them.
#include "conformance.cuh"

__global__ void tree(int* nodes, int* leaves, int depth) {
    atomicAdd(nodes, 1);
    if (depth == 0) {
        if (threadIdx.x == 0) atomicAdd(leaves, 1);
    } else if (threadIdx.x < 3) {
        tree<<<1, 3>>>(nodes, leaves, depth - 1);
    }
}

__global__ void pass_on(int* cells, int level) {
    cells[level + 1] = cells[level] + level;
    if (level < 6) pass_on<<<1, 1>>>(cells, level + 1);
}

__global__ void quicksort(int* data, int left, int right) {
    while (left < right) {
        int pivot = data[(left + right) / 2], i = left, j = right;
        while (i <= j) {
            while (data[i] < pivot) ++i;
            while (data[j] > pivot) --j;
            if (i <= j) {
                int kept = data[i];
                data[i++] = data[j];
                data[j--] = kept;
            }
        }
        if (left < j) {
            cudaStream_t stream;
            cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
            quicksort<<<1, 1, 0, stream>>>(data, left, j);
            cudaStreamDestroy(stream);
        }
        left = i;
    }
}

int main() {
    Array<int> counts(2), cells(8), data(100);
    tree<<<1, 3>>>(counts, counts + 1, 3);
    counts.show("threads and leaves");
    cells.fill([](int i) { return i == 0 ? 5 : 0; });
    pass_on<<<1, 1>>>(cells, 0);
    cells.show("cells");
    data.fill([](int i) { return (i * 37 + 11) % 101; });
    quicksort<<<1, 1>>>(data, 0, 99);
    data.show("sorted");
}
