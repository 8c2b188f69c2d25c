// Each thread solves a small 0/1 knapsack; big instances are solved row by row by
// children, small ones in the thread. Afterwards the thread walks the table back.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAXITEMS 24
#define SERIAL_LIMIT 64
#define CHILD_BLOCK 64

struct Instance {
    int items;
    int capacity;
    int weight[MAXITEMS];
    int value[MAXITEMS];
};

#define DP_SYNC(flag)                               \
    do {                                            \
        cudaError_t e__ = cudaDeviceSynchronize();  \
        if (e__ != cudaSuccess) { flag = (int)e__; return; } \
    } while (0)

__global__ void dpRow(const int *prev, int *row, int cap, int w, int v)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c <= cap) {
        int best = prev[c];
        if (c >= w && prev[c - w] + v > best) best = prev[c - w] + v;
        row[c] = best;
    }
}

__global__ void solve(const Instance *inst, int n, int *tables, int stride, int *bestValue,
                      unsigned *chosen, int *status)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= n) return;
    const Instance *in = &inst[id];
    const int width = in->capacity + 1;
    int *table = tables + (size_t)id * stride;

    for (int c = 0; c < width; c++) table[c] = 0;

    if (width > SERIAL_LIMIT) {
        for (int i = 0; i < in->items; i++)
            dpRow<<<(width + CHILD_BLOCK - 1) / CHILD_BLOCK, CHILD_BLOCK>>>(
                table + i * width, table + (i + 1) * width, in->capacity, in->weight[i], in->value[i]);
        DP_SYNC(status[id]);
    } else {
        for (int i = 0; i < in->items; i++)
            for (int c = 0; c < width; c++) {
                int best = table[i * width + c];
                if (c >= in->weight[i]) best = max(best, table[i * width + c - in->weight[i]] + in->value[i]);
                table[(i + 1) * width + c] = best;
            }
    }

    bestValue[id] = table[in->items * width + in->capacity];
    unsigned set = 0;
    for (int i = in->items, c = in->capacity; i > 0; i--)
        if (table[i * width + c] != table[(i - 1) * width + c]) {
            set |= 1u << (i - 1);
            c -= in->weight[i - 1];
        }
    chosen[id] = set;
    status[id] = 0;
}

int main(void)
{
    const int n = 40, stride = (MAXITEMS + 1) * 301;
    Instance *h = (Instance *)calloc(n, sizeof(Instance)), *d;
    for (int k = 0; k < n; k++) {
        h[k].items = 4 + k % 20;
        h[k].capacity = k % 3 ? 30 + k : 200 + 2 * k;
        for (int i = 0; i < h[k].items; i++) {
            h[k].weight[i] = 3 + (i * 7 + k * 5) % 41;
            h[k].value[i] = 1 + (i * 13 + k * 3) % 29;
        }
    }
    int *tab, *best, *stat, hb[40];
    unsigned *ch, hc[40];
    cudaMalloc(&d, n * sizeof(Instance));
    cudaMalloc(&tab, sizeof(int) * n * stride);
    cudaMalloc(&best, sizeof hb);
    cudaMalloc(&stat, sizeof hb);
    cudaMalloc(&ch, sizeof hc);
    cudaMemcpy(d, h, n * sizeof(Instance), cudaMemcpyHostToDevice);
    solve<<<2, 32>>>(d, n, tab, stride, best, ch, stat);
    cudaMemcpy(hb, best, sizeof hb, cudaMemcpyDeviceToHost);
    cudaMemcpy(hc, ch, sizeof hc, cudaMemcpyDeviceToHost);
    int bad = 0;
    long sum = 0;
    for (int k = 0; k < n; k++) {
        int v = 0, w = 0;
        for (int i = 0; i < h[k].items; i++)
            if (hc[k] >> i & 1) { v += h[k].value[i]; w += h[k].weight[i]; }
        bad += v != hb[k] || w > h[k].capacity;
        sum += (long)hb[k] * (k + 1);
    }
    printf("checksum %ld bad %d\n", sum, bad);
    return bad;
}
