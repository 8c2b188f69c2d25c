// Merge sort, the textbook way: sort the halves in two child grids, wait, merge.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

template <typename T>
__device__ void insertionSort(T *a, int n)
{
    for (int i = 1; i < n; ++i) {
        T v = a[i];
        int j = i - 1;
        for (; j >= 0 && v < a[j]; --j) a[j + 1] = a[j];
        a[j + 1] = v;
    }
}

template <typename T>
__global__ void merge(const T *a, T *out, int mid, int n)
{
    // every element finds its place by binary search in the other half
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        bool left = i < mid;
        int lo = left ? mid : 0, hi = left ? n : mid;
        while (lo < hi) {
            int m = (lo + hi) / 2;
            bool goRight = left ? a[m] < a[i] : !(a[i] < a[m]);
            if (goRight) lo = m + 1;
            else hi = m;
        }
        out[left ? i + (lo - mid) : (i - mid) + lo] = a[i];
    }
}

template <typename T>
__global__ void copyBack(T *dst, const T *src, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) dst[i] = src[i];
}

template <typename T>
__global__ void mergeSort(T *a, T *tmp, int n)
{
    if (n <= 64) {
        insertionSort(a, n);
        return;
    }
    const int mid = n / 2;
    cudaStream_t s[2];
    for (int k = 0; k < 2; ++k) cudaStreamCreateWithFlags(&s[k], cudaStreamNonBlocking);
    mergeSort<<<1, 1, 0, s[0]>>>(a, tmp, mid);
    mergeSort<<<1, 1, 0, s[1]>>>(a + mid, tmp + mid, n - mid);
    cudaDeviceSynchronize();
    merge<<<(n + 255) / 256, 256>>>(a, tmp, mid, n);
    copyBack<<<(n + 255) / 256, 256>>>(a, tmp, n);
    cudaDeviceSynchronize();
    cudaStreamDestroy(s[0]);
    cudaStreamDestroy(s[1]);
}

int main()
{
    const int n = 20000;
    std::vector<float> h(n);
    unsigned s = 1;
    for (auto &v : h) { s = s * 1664525u + 1013904223u; v = (s >> 8) / 1000.f; }
    float *d, *t;
    cudaMalloc(&d, n * sizeof(float));
    cudaMalloc(&t, n * sizeof(float));
    cudaMemcpy(d, h.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 4096);
    cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, 12);
    mergeSort<<<1, 1>>>(d, t, n);
    if (cudaError_t e = cudaDeviceSynchronize()) { std::printf("%s\n", cudaGetErrorString(e)); return 1; }
    std::vector<float> got(n);
    cudaMemcpy(got.data(), d, n * sizeof(float), cudaMemcpyDeviceToHost);
    std::sort(h.begin(), h.end());
    int bad = 0;
    for (int i = 0; i < n; ++i) bad += got[i] != h[i];
    if (bad) std::printf("%d elements out of place\n", bad);
    else std::puts("OK");
    return bad != 0;
}
