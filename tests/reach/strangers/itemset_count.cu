#include <stdio.h>
#include <stdlib.h>

#define NITEMS 40
#define MINSUP 120

// vertical bitmaps, 32 transactions a word
__global__ void support(const unsigned *bm, int words, int a, int b, int *sup)
{
    int w = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned v = w < words ? bm[a * words + w] & bm[b * words + w] : 0;
    int c = __popc(v);
    for (int o = 16; o; o >>= 1) c += __shfl_down_sync(0xffffffffu, c, o);
    if ((threadIdx.x & 31) == 0 && c) atomicAdd(&sup[a * NITEMS + b], c);
}

__global__ void support3(const unsigned *bm, int words, int a, int b, const int *sup, int *sup3)
{
    int c = b + 1 + blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= NITEMS || sup[a * NITEMS + c] < MINSUP || sup[b * NITEMS + c] < MINSUP) return;
    int s = 0;
    for (int w = 0; w < words; w++) s += __popc(bm[a * words + w] & bm[b * words + w] & bm[c * words + w]);
    if (s >= MINSUP) { atomicAdd(&sup3[0], 1); atomicAdd(&sup3[1], s); }
}

__global__ void pairs(const unsigned *bm, int words, const int *single, int *sup)
{
    int a = blockIdx.x, b = threadIdx.x;
    if (b <= a || single[a] < MINSUP || single[b] < MINSUP) return;
    int nb = (words + 63) / 64;
    support<<<nb, 64>>>(bm, words, a, b, sup);
}

__global__ void triples(const unsigned *bm, int words, const int *sup, int *sup3)
{
    int a = blockIdx.x, b = threadIdx.x;
    if (b > a && b < NITEMS && sup[a * NITEMS + b] >= MINSUP) {
        int rest = NITEMS - b - 1;
        if (rest > 0) support3<<<1, rest>>>(bm, words, a, b, sup, sup3);
    }
}

int main()
{
    int trans = 3200, words = trans / 32;
    unsigned *h = (unsigned *)calloc(NITEMS * words, 4), *bm;
    int single[NITEMS] = {0}, *ds, *sup, *sup3, r3[2];
    srand(77);
    for (int t = 0; t < trans; t++)
        for (int i = 0; i < NITEMS; i++)
            if (rand() % (i + 2) == 0 || (t % 9 == i % 9 && rand() % 2)) { h[i * words + t / 32] |= 1u << (t % 32); single[i]++; }
    cudaMalloc(&bm, NITEMS * words * 4); cudaMalloc(&ds, sizeof(single));
    cudaMalloc(&sup, NITEMS * NITEMS * 4); cudaMalloc(&sup3, 8);
    cudaMemset(sup, 0, NITEMS * NITEMS * 4); cudaMemset(sup3, 0, 8);
    cudaMemcpy(bm, h, NITEMS * words * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(ds, single, sizeof(single), cudaMemcpyHostToDevice);
    pairs<<<NITEMS, NITEMS>>>(bm, words, ds, sup);
    triples<<<NITEMS, 64>>>(bm, words, sup, sup3);
    cudaMemcpy(r3, sup3, 8, cudaMemcpyDeviceToHost);
    printf("frequent triples %d total support %d %s\n", r3[0], r3[1], cudaGetErrorString(cudaGetLastError()));
    return 0;
}
