/* N queens, counting solutions. A thread per column; each valid placement launches the next
 * row, waits for its children and adds up what they found. */
#include <stdio.h>
#include <stdlib.h>

#define N 10
#define CDP_ROWS 3           /* rows placed by kernels, the rest is done by one thread */
#define POOL 65536

typedef unsigned int mask_t;

__device__ unsigned long long g_pool[POOL];
__device__ unsigned int g_used;

__host__ __device__ inline bool is_free(mask_t cols, mask_t d1, mask_t d2, int row, int c)
{
    return !((cols >> c) & 1) && !((d1 >> (row + c)) & 1) && !((d2 >> (row - c + N)) & 1);
}

__host__ __device__ unsigned long long count_serial(mask_t cols, mask_t d1, mask_t d2, int row)
{
    /* explicit stack instead of recursion */
    mask_t sc[N + 1], s1[N + 1], s2[N + 1];
    int next[N + 1];
    int top = row;
    unsigned long long found = 0;
    sc[top] = cols; s1[top] = d1; s2[top] = d2; next[top] = 0;
    while (top >= row) {
        if (top == N) { found++; top--; continue; }
        int c = next[top]++;
        if (c >= N) { top--; continue; }
        if (is_free(sc[top], s1[top], s2[top], top, c)) {
            sc[top + 1] = sc[top] | 1u << c;
            s1[top + 1] = s1[top] | 1u << (top + c);
            s2[top + 1] = s2[top] | 1u << (top - c + N);
            next[top + 1] = 0;
            top++;
        }
    }
    return found;
}

__global__ void place(mask_t cols, mask_t d1, mask_t d2, int row, unsigned long long *result)
{
    int c = threadIdx.x;
    if (c >= N || !is_free(cols, d1, d2, row, c))
        return;
    mask_t nc = cols | 1u << c, n1 = d1 | 1u << (row + c), n2 = d2 | 1u << (row - c + N);
    unsigned long long mine;
    if (row + 1 < CDP_ROWS) {
        unsigned int slot = atomicAdd(&g_used, 1);
        if (slot < POOL) {
            g_pool[slot] = 0;
            place<<<1, N>>>(nc, n1, n2, row + 1, &g_pool[slot]);
            cudaError_t e = cudaDeviceSynchronize();
            if (e != cudaSuccess) printf("row %d: error %d\n", row, e);
            mine = *(volatile unsigned long long *)&g_pool[slot];
        } else
            mine = count_serial(nc, n1, n2, row + 1);
    } else {
        mine = count_serial(nc, n1, n2, row + 1);
    }
    if (mine) atomicAdd(result, mine);
}

#define CE(x) { cudaError_t err = (x); if (err != cudaSuccess) { fprintf(stderr, "%d: %s\n", __LINE__, cudaGetErrorString(err)); exit(1); } }

int main()
{
    unsigned long long *d_result, result = 0;
    CE(cudaMalloc((void **)&d_result, sizeof(*d_result)));
    CE(cudaMemset(d_result, 0, sizeof(*d_result)));
    CE(cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, CDP_ROWS + 1));
    place<<<1, N>>>(0, 0, 0, 0, d_result);
    CE(cudaGetLastError());
    CE(cudaDeviceSynchronize());
    CE(cudaMemcpy(&result, d_result, sizeof(result), cudaMemcpyDeviceToHost));
    unsigned long long expect = count_serial(0, 0, 0, 0);
    if (result != expect) {
        printf("MISMATCH: %llu solutions, expected %llu\n", result, expect);
        return 1;
    }
    printf("OK: %llu solutions\n", result);
    CE(cudaFree(d_result));
    return 0;
}
