/*
 * Column statistics of a table (min, max, sum): the grid writes one partial record
 * per block and column, the last block launches the grid which merges them.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#define NCOLS 12
#define NROWS 5000
#define ROWS_PER_BLOCK 256

struct colstat {
	int min, max;
	long long sum;
};

struct table {
	const int *cell;        /* row major */
	int rows, cols;
};

__device__ unsigned int blocks_finished = 0;

static __host__ __device__ struct colstat stat_none(void)
{
	struct colstat s;
	s.min = INT_MAX;
	s.max = INT_MIN;
	s.sum = 0;
	return s;
}

static __host__ __device__ void stat_add(struct colstat *s, int v)
{
	if (v < s->min) s->min = v;
	if (v > s->max) s->max = v;
	s->sum += v;
}

static __host__ __device__ void stat_merge(struct colstat *s, const struct colstat *o)
{
	if (o->min < s->min) s->min = o->min;
	if (o->max > s->max) s->max = o->max;
	s->sum += o->sum;
}

__global__ void merge_partials(const struct colstat *partial, int nparts, struct colstat *out)
{
	struct colstat s = stat_none();
	int col = threadIdx.x;
	for (int p = 0; p < nparts; p++)
		stat_merge(&s, &partial[p * blockDim.x + col]);
	out[col] = s;
}

__global__ void column_stats(struct table t, struct colstat *partial, struct colstat *out)
{
	int col = threadIdx.x;
	int r0 = blockIdx.x * ROWS_PER_BLOCK;
	int r1 = min(r0 + ROWS_PER_BLOCK, t.rows);
	struct colstat s = stat_none();

	for (int r = r0; r < r1; r++)
		stat_add(&s, t.cell[r * t.cols + col]);
	partial[blockIdx.x * t.cols + col] = s;
	__threadfence();
	__syncthreads();

	if (col == 0) {
		unsigned int ticket = atomicInc(&blocks_finished, gridDim.x - 1);
		if (ticket == gridDim.x - 1) {
			__threadfence();
			merge_partials<<<1, t.cols>>>(partial, gridDim.x, out);
			if (cudaGetLastError() != cudaSuccess)
				printf("merge_partials didn't start\n");
		}
	}
}

int main(void)
{
	int *h = (int *)malloc(sizeof(int) * NROWS * NCOLS);
	struct colstat ref[NCOLS], got[NCOLS], *d_part, *d_out;
	int nblocks = (NROWS + ROWS_PER_BLOCK - 1) / ROWS_PER_BLOCK;
	int *d;
	unsigned s = 1234567;
	int bad = 0;
	long long check = 0;

	for (int c = 0; c < NCOLS; c++) ref[c] = stat_none();
	for (int i = 0; i < NROWS * NCOLS; i++) {
		s = s * 69069u + 5u;
		h[i] = (int)(s >> 12) - (1 << 18) * (i % NCOLS);
		stat_add(&ref[i % NCOLS], h[i]);
	}

	cudaMalloc((void **)&d, sizeof(int) * NROWS * NCOLS);
	cudaMalloc((void **)&d_part, sizeof(struct colstat) * nblocks * NCOLS);
	cudaMalloc((void **)&d_out, sizeof got);
	cudaMemcpy(d, h, sizeof(int) * NROWS * NCOLS, cudaMemcpyHostToDevice);

	struct table t = { d, NROWS, NCOLS };
	column_stats<<<nblocks, NCOLS>>>(t, d_part, d_out);
	if (cudaDeviceSynchronize() != cudaSuccess) {
		fprintf(stderr, "error: %s\n", cudaGetErrorString(cudaGetLastError()));
		return 1;
	}
	cudaMemcpy(got, d_out, sizeof got, cudaMemcpyDeviceToHost);
	for (int c = 0; c < NCOLS; c++) {
		bad += got[c].min != ref[c].min || got[c].max != ref[c].max || got[c].sum != ref[c].sum;
		check += got[c].sum * (c + 1) + got[c].max - got[c].min;
	}
	printf("columns %d checksum %lld bad %d\n", NCOLS, check, bad);
	free(h);
	return bad;
}
