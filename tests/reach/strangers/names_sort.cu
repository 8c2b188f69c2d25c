#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 16
#define INSERTION_SORT 24
#define NAME_LEN 16

// compares two names, both padded with zeros
__device__ int name_cmp(const char *a, const char *b, int len) {
    for (int i = 0; i < len; i++) {
        if (a[i] != b[i]) return (unsigned char)a[i] - (unsigned char)b[i];
        if (a[i] == 0) return 0;
    }
    return 0;
}

__device__ void name_swap(char *a, char *b, int len) {
    for (int i = 0; i < len; i++) { char t = a[i]; a[i] = b[i]; b[i] = t; }
}

__device__ void insertion_sort(char *names, int left, int right, int len) {
    for (int i = left + 1; i <= right; i++)
        for (int j = i; j > left && name_cmp(names + (j - 1) * len, names + j * len, len) > 0; j--)
            name_swap(names + (j - 1) * len, names + j * len, len);
}

__device__ int partition(char *names, int left, int right, int len) {
    char *pivot = names + right * len;
    int i = left;
    for (int j = left; j < right; j++)
        if (name_cmp(names + j * len, pivot, len) < 0) {
            if (i != j) name_swap(names + i * len, names + j * len, len);
            i++;
        }
    if (i != right) name_swap(names + i * len, pivot, len);
    return i;
}

__global__ void quicksort(char *names, int left, int right, int depth, int name_length) {
    if (left >= right) return;
    if (depth >= MAX_DEPTH || right - left <= INSERTION_SORT) {
        insertion_sort(names, left, right, name_length);
        return;
    }
    else {
        int pivotIndex = partition(names, left, right, name_length);

        cudaStream_t s;
        cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
        quicksort<<< 1, 1, 0, s >>>(names, left, pivotIndex - 1, depth + 1, name_length);
        cudaStreamDestroy(s);

        cudaStream_t s1;
        cudaStreamCreateWithFlags(&s1, cudaStreamNonBlocking);
        quicksort<<< 1, 1, 0, s1 >>>(names, pivotIndex + 1, right, depth + 1, name_length);
        cudaStreamDestroy(s1);
    }
}

int main(int argc, char **argv) {
    int n = 3000;
    char *names = (char *)calloc(n, NAME_LEN);
    const char *syl[] = { "ka", "ro", "mi", "tel", "an", "sha", "bu", "dor", "el", "vi" };
    srand(4);
    for (int i = 0; i < n; i++) {
        int k = 2 + rand() % 3;
        for (int j = 0; j < k; j++) strcat(names + i * NAME_LEN, syl[rand() % 10]);
    }
    char *d_names;
    cudaMalloc((void **)&d_names, n * NAME_LEN);
    cudaMemcpy(d_names, names, n * NAME_LEN, cudaMemcpyHostToDevice);
    quicksort<<<1, 1>>>(d_names, 0, n - 1, 0, NAME_LEN);
    cudaError_t err = cudaDeviceSynchronize();
    if (err != cudaSuccess) printf("Error: %s\n", cudaGetErrorString(err));
    cudaMemcpy(names, d_names, n * NAME_LEN, cudaMemcpyDeviceToHost);
    int bad = 0; unsigned h = 5381;
    for (int i = 0; i < n; i++) {
        if (i && strcmp(names + (i - 1) * NAME_LEN, names + i * NAME_LEN) > 0) bad++;
        for (char *c = names + i * NAME_LEN; *c; c++) h = h * 33 + *c;
    }
    printf("first %s last %s out of order %d hash %u\n", names, names + (n - 1) * NAME_LEN, bad, h);
    free(names);
    cudaFree(d_names);
    return 0;
}
