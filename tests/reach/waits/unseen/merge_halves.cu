#include <stdio.h>
#include <cuda_runtime.h>

__global__ void mergeRange(const int *a, int *tmp, int left, int mid, int right)
{
    int i = left, j = mid, k = left;
    while (i < mid && j < right) tmp[k++] = a[i] <= a[j] ? a[i++] : a[j++];
    while (i < mid) tmp[k++] = a[i++];
    while (j < right) tmp[k++] = a[j++];
}

__global__ void copyRange(int *a, const int *tmp, int left, int right)
{
    int i = left + blockIdx.x * blockDim.x + threadIdx.x;
    if (i < right) a[i] = tmp[i];
}

__global__ void mergeSort(int *a, int *tmp, int left, int right)
{
    if (right - left < 2) return;
    int mid = (left + right) / 2;
    cudaStream_t s1, s2;
    cudaStreamCreateWithFlags(&s1, cudaStreamNonBlocking);
    mergeSort<<<1, 1, 0, s1>>>(a, tmp, left, mid);
    cudaStreamDestroy(s1);
    cudaStreamCreateWithFlags(&s2, cudaStreamNonBlocking);
    mergeSort<<<1, 1, 0, s2>>>(a, tmp, mid, right);
    cudaStreamDestroy(s2);
    cudaDeviceSynchronize();
    mergeRange<<<1, 1>>>(a, tmp, left, mid, right);
    cudaDeviceSynchronize();
    copyRange<<<(right - left + 31) / 32, 32>>>(a, tmp, left, right);
    cudaDeviceSynchronize();
}

int main()
{
    const int n = 30;
    int *a, *tmp;
    cudaMallocManaged(&a, n * sizeof(int));
    cudaMallocManaged(&tmp, n * sizeof(int));
    for (int i = 0; i < n; i++) a[i] = (i * 17) % 31;
    mergeSort<<<1, 1>>>(a, tmp, 0, n);
    cudaDeviceSynchronize();
    for (int i = 0; i < n; i++) printf("%d ", a[i]);
    printf("\n");
    return 0;
}
