// malloc and free on the device: memory of one kernel that other kernels read and free.
#include "conformance.cuh"

__global__ void make(int** lists) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, size = t % 7 + 1;
    int* list = static_cast<int*>(malloc((size + 1) * sizeof(int)));
    lists[t] = list;
    if (list == nullptr) return;
    list[0] = size;
    for (int i = 1; i <= size; ++i) list[i] = t * i;
}

__global__ void grow(int** lists) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int* old = lists[t];
    int* list = static_cast<int*>(malloc((2 * old[0] + 1) * sizeof(int)));
    if (list == nullptr) return;
    list[0] = 2 * old[0];
    memcpy(list + 1, old + 1, old[0] * sizeof(int));
    memset(list + 1 + old[0], 0, old[0] * sizeof(int));
    free(old);
    lists[t] = list;
}

__global__ void sum(int** lists, int* sums, int* sizes) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    sizes[t] = lists[t][0];
    for (int i = 1; i <= lists[t][0]; ++i) sums[t] += lists[t][i];
    free(lists[t]);
}

__global__ void nothing() { free(nullptr); }

int main() {
    int** lists;
    CHECK(cudaMalloc(&lists, 3 * 20 * sizeof(int*)));
    Array<int> sums(60), sizes(60);
    make<<<3, 20>>>(lists);
    grow<<<2, 30>>>(lists);
    sum<<<4, 15>>>(lists, sums, sizes);
    nothing<<<1, 1>>>();
    sums.show("sums");
    sizes.show("sizes");
    CHECK(cudaFree(lists));
}
