/* 0/1 knapsack, branch and bound. A block of 8 threads decides the next three
 * items of a partial solution in the 8 possible ways; every surviving thread
 * opens a new block for its subtree, the last items are searched serially. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_ITEMS 26
#define BITS 3
#define BRANCH (1 << BITS)
#define SERIAL_AT 9           /* from this item on: depth first in one thread */

struct Problem {
    int w[N_ITEMS], v[N_ITEMS];     /* sorted by value density */
    int cap;
};

struct Stats {
    int best;
    unsigned long long nodes;
    int failed;
};

/* fractional bound, rounded up, integers only */
__host__ __device__ inline int upper_bound(const Problem *p, int item, int room, int value)
{
    for (; item < N_ITEMS && p->w[item] <= room; item++) {
        room -= p->w[item];
        value += p->v[item];
    }
    if (item < N_ITEMS)
        value += (room * p->v[item] + p->w[item] - 1) / p->w[item];
    return value;
}

__device__ int best_now(Stats *s) { return atomicMax(&s->best, 0); }

__device__ void search(const Problem *p, int item0, int room0, int value0, Stats *s)
{
    int stack_item[N_ITEMS + 2], stack_room[N_ITEMS + 2], stack_value[N_ITEMS + 2];
    int top = 0;
    unsigned long long nodes = 0;
    stack_item[0] = item0; stack_room[0] = room0; stack_value[0] = value0;
    top = 1;
    while (top > 0) {
        top--;
        int item = stack_item[top], room = stack_room[top], value = stack_value[top];
        nodes++;
        if (item == N_ITEMS) {
            atomicMax(&s->best, value);
            continue;
        }
        if (upper_bound(p, item, room, value) <= best_now(s))
            continue;
        /* leave it */
        stack_item[top] = item + 1; stack_room[top] = room; stack_value[top] = value; top++;
        /* take it: tried first */
        if (p->w[item] <= room) {
            stack_item[top] = item + 1;
            stack_room[top] = room - p->w[item];
            stack_value[top] = value + p->v[item];
            top++;
        }
    }
    atomicAdd(&s->nodes, nodes);
}

__global__ void branch(const Problem *p, int item, int room, int value, Stats *s)
{
    /* my way to decide items item .. item+2 */
    for (int b = 0; b < BITS; b++)
        if (threadIdx.x >> b & 1) {
            room -= p->w[item + b];
            value += p->v[item + b];
        }
    item += BITS;
    if (room < 0)
        return;
    atomicMax(&s->best, value);
    if (upper_bound(p, item, room, value) <= best_now(s))
        return;
    if (item >= SERIAL_AT) {
        search(p, item, room, value, s);
        return;
    }
    branch<<<1, BRANCH, 0, cudaStreamFireAndForget>>>(p, item, room, value, s);
    if (cudaGetLastError() != cudaSuccess)
        s->failed = 1;
}

static int solve_dp(const Problem *p)
{
    int *t = (int *)calloc(p->cap + 1, sizeof(int));
    for (int i = 0; i < N_ITEMS; i++)
        for (int c = p->cap; c >= p->w[i]; c--)
            if (t[c - p->w[i]] + p->v[i] > t[c])
                t[c] = t[c - p->w[i]] + p->v[i];
    int r = t[p->cap];
    free(t);
    return r;
}

int main(void)
{
    Problem h;
    Stats s;
    int total = 0;
    srand(5);
    for (int i = 0; i < N_ITEMS; i++) {
        h.w[i] = 100 + rand() % 400;
        h.v[i] = h.w[i] + 20 + rand() % 7;
        total += h.w[i];
    }
    for (int i = 0; i < N_ITEMS; i++)          /* by density, densest first */
        for (int j = i + 1; j < N_ITEMS; j++)
            if (h.v[j] * h.w[i] > h.v[i] * h.w[j]) {
                int a = h.w[i]; h.w[i] = h.w[j]; h.w[j] = a;
                a = h.v[i]; h.v[i] = h.v[j]; h.v[j] = a;
            }
    h.cap = total / 2;

    Problem *dp;
    Stats *ds;
    memset(&s, 0, sizeof s);
    if (cudaMalloc((void **)&dp, sizeof h) || cudaMalloc((void **)&ds, sizeof s)) {
        printf("no memory\n");
        return 1;
    }
    cudaMemcpy(dp, &h, sizeof h, cudaMemcpyHostToDevice);
    cudaMemcpy(ds, &s, sizeof s, cudaMemcpyHostToDevice);

    branch<<<1, BRANCH>>>(dp, 0, h.cap, 0, ds);
    cudaError_t e = cudaDeviceSynchronize();
    cudaMemcpy(&s, ds, sizeof s, cudaMemcpyDeviceToHost);
    if (e != cudaSuccess || s.failed) {
        printf("failed: %s (%d)\n", cudaGetErrorString(e), s.failed);
        return 1;
    }
    int want = solve_dp(&h);
    if (s.best == want)
        printf("OK: value %d, %llu nodes in the serial parts\n", s.best, s.nodes);
    else
        printf("value %d, optimum is %d\n", s.best, want);
    cudaFree(dp);
    cudaFree(ds);
    return s.best != want;
}
