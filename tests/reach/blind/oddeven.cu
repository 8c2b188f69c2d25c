/* Odd-even transposition sort of one block's worth of records; the kernel runs
   STEPS phases and calls itself again from its tail while something moved. */
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

#define NREC 900
#define NTHR 512
#define STEPS 16

typedef struct {
    unsigned key;
    unsigned tag;
} rec_t;

typedef struct {
    rec_t *rec;
    int n;
    int calls;          /* how often we've been here */
    int quiet;          /* consecutive calls without a swap */
    int *report;        /* calls, swaps of the final call */
} job_t;

__device__ int before(rec_t a, rec_t b)
{
    return a.key < b.key || (a.key == b.key && a.tag < b.tag);
}

__global__ void oddeven(job_t job)
{
    __shared__ int swaps;
    if (threadIdx.x == 0) swaps = 0;
    __syncthreads();

    for (int ph = 0; ph < STEPS; ph++) {
        int i = 2 * threadIdx.x + (ph & 1);
        if (i + 1 < job.n) {
            rec_t a = job.rec[i], b = job.rec[i + 1];
            if (before(b, a)) {
                job.rec[i] = b;
                job.rec[i + 1] = a;
                atomicAdd(&swaps, 1);
            }
        }
        __syncthreads();
    }

    if (threadIdx.x == 0) {
        job.calls++;
        if (swaps != 0)
            oddeven<<<1, NTHR, 0, cudaStreamTailLaunch>>>(job);
        else {
            job.report[0] = job.calls;
            job.report[1] = swaps;
        }
    }
}

static int cmp(const void *pa, const void *pb)
{
    const rec_t *a = (const rec_t *)pa, *b = (const rec_t *)pb;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->tag < b->tag ? -1 : a->tag > b->tag;
}

int main(void)
{
    rec_t h[NREC], r[NREC];
    unsigned x = 1;
    for (int i = 0; i < NREC; i++) {
        x = x * 1103515245u + 12345u;
        h[i].key = (x >> 16) % 300;
        h[i].tag = (unsigned)i;
    }
    memcpy(r, h, sizeof h);
    qsort(r, NREC, sizeof(rec_t), cmp);

    job_t job;
    int report[2] = {0, 0};
    cudaError_t e;
    memset(&job, 0, sizeof job);
    job.n = NREC;
    if ((e = cudaMalloc((void **)&job.rec, sizeof h)) != cudaSuccess ||
        (e = cudaMalloc((void **)&job.report, sizeof report)) != cudaSuccess ||
        (e = cudaMemcpy(job.rec, h, sizeof h, cudaMemcpyHostToDevice)) != cudaSuccess) {
        fprintf(stderr, "setup: %s\n", cudaGetErrorString(e));
        return 1;
    }

    oddeven<<<1, NTHR>>>(job);
    if ((e = cudaDeviceSynchronize()) != cudaSuccess) {
        fprintf(stderr, "run: %s\n", cudaGetErrorString(e));
        return 1;
    }
    cudaMemcpy(h, job.rec, sizeof h, cudaMemcpyDeviceToHost);
    cudaMemcpy(report, job.report, sizeof report, cudaMemcpyDeviceToHost);

    unsigned long sum = 0;
    for (int i = 0; i < NREC; i++) sum += (unsigned long)(i + 1) * (h[i].key * 1000ul + h[i].tag);
    int same = memcmp(h, r, sizeof h) == 0;
    printf("calls %d checksum %lu %s\n", report[0], sum, same ? "sorted" : "NOT SORTED");
    cudaFree(job.rec);
    cudaFree(job.report);
    return same ? 0 : 1;
}
