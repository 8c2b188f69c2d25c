#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

// Quicksort with dynamic parallelism: a thread partitions its range and launches the
// two halves into streams of their own. Falls back to selection sort at the bottom.

#define MAX_DEPTH      14
#define INSERTION_SORT 32

__device__ void selection_sort(unsigned int *data, int left, int right)
{
    for (int i = left; i <= right; ++i) {
        unsigned min_val = data[i];
        int min_idx = i;
        for (int j = i + 1; j <= right; ++j) {
            unsigned val_j = data[j];
            if (val_j < min_val) {
                min_idx = j;
                min_val = val_j;
            }
        }
        if (i != min_idx) {
            data[min_idx] = data[i];
            data[i] = min_val;
        }
    }
}

__global__ void quicksort(unsigned int *data, int left, int right, int depth)
{
    if (depth >= MAX_DEPTH || right - left <= INSERTION_SORT) {
        selection_sort(data, left, right);
        return;
    }

    unsigned int *lptr = data + left;
    unsigned int *rptr = data + right;
    unsigned int pivot = data[(left + right) / 2];

    while (lptr <= rptr) {
        unsigned int lval = *lptr;
        unsigned int rval = *rptr;
        while (lval < pivot) {
            lptr++;
            lval = *lptr;
        }
        while (rval > pivot) {
            rptr--;
            rval = *rptr;
        }
        if (lptr <= rptr) {
            *lptr++ = rval;
            *rptr-- = lval;
        }
    }

    int nright = rptr - data;
    int nleft = lptr - data;

    if (left < (rptr - data)) {
        cudaStream_t s;
        cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
        quicksort<<<1, 1, 0, s>>>(data, left, nright, depth + 1);
        cudaStreamDestroy(s);
    }
    if ((lptr - data) < right) {
        cudaStream_t s1;
        cudaStreamCreateWithFlags(&s1, cudaStreamNonBlocking);
        quicksort<<<1, 1, 0, s1>>>(data, nleft, right, depth + 1);
        cudaStreamDestroy(s1);
    }
}

// sorts many arrays at once: one thread per array starts a sort
__global__ void sort_batches(unsigned int *data, const int *offsets, int batches)
{
    int b = threadIdx.x + blockIdx.x * blockDim.x;
    if (b >= batches) return;
    int lo = offsets[b], hi = offsets[b + 1] - 1;
    if (hi > lo)
        quicksort<<<1, 1>>>(data, lo, hi, 0);
}

static bool ok(cudaError_t e, const char *what)
{
    if (e == cudaSuccess) return true;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
    return false;
}

int main()
{
    const int batches = 20;
    std::vector<int> offsets(1, 0);
    srand(2047);
    for (int b = 0; b < batches; b++) offsets.push_back(offsets.back() + rand() % 2000);
    const int n = offsets.back();
    std::vector<unsigned int> h(n), ref;
    for (auto &x : h) x = rand() % 100000;
    ref = h;
    for (int b = 0; b < batches; b++) std::sort(ref.begin() + offsets[b], ref.begin() + offsets[b + 1]);

    unsigned int *d = nullptr;
    int *dOff = nullptr;
    if (!ok(cudaMalloc(&d, n * sizeof(unsigned int)), "malloc")) return 2;
    if (!ok(cudaMalloc(&dOff, offsets.size() * sizeof(int)), "malloc")) return 2;
    cudaMemcpy(d, h.data(), n * sizeof(unsigned int), cudaMemcpyHostToDevice);
    cudaMemcpy(dOff, offsets.data(), offsets.size() * sizeof(int), cudaMemcpyHostToDevice);
    cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 65536);

    sort_batches<<<1, 32>>>(d, dOff, batches);
    if (!ok(cudaGetLastError(), "launch")) return 2;
    if (!ok(cudaDeviceSynchronize(), "sort")) return 2;
    cudaMemcpy(h.data(), d, n * sizeof(unsigned int), cudaMemcpyDeviceToHost);

    for (int i = 0; i < n; ++i)
        if (h[i] != ref[i]) {
            std::printf("element %d: %u instead of %u\n", i, h[i], ref[i]);
            return 1;
        }
    std::printf("OK\n");
    cudaFree(d);
    cudaFree(dOff);
    return 0;
}
