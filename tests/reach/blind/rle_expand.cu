/*  rle_expand.cu: run-length decoder.
    Input: (symbol, run) pairs and their exclusive prefix sum. */

#include "cuda_runtime.h"
#include "device_launch_parameters.h"
#include <stdio.h>
#include <stdlib.h>

#define gpuErrchk(ans) { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(cudaError_t code, const char *file, int line)
{
	if (code != cudaSuccess)
	{
		fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
		exit(code);
	}
}

struct RlePair
{
	unsigned char symbol;
	unsigned short run;
};

const int SMALL_RUN = 40;
const int FILL_THREADS = 256;

static __device__ __host__ inline int numBlocks(int n, int per) { return (n + per - 1) / per; }

static __global__ void fillRun(unsigned char *dst, int n, unsigned char symbol)
{
	// four bytes a thread
	int base = 4 * (threadIdx.x + blockIdx.x * blockDim.x);
#pragma unroll
	for (int k = 0; k < 4; k++)
		if (base + k < n) dst[base + k] = symbol;
}

static __device__ __noinline__ void emitRun(unsigned char *dst, RlePair p)
{
	int n = p.run;
	if (n < SMALL_RUN)
	{
		while (n-- > 0)
			*dst++ = p.symbol;
		return;
	}
	fillRun << <numBlocks(n, 4 * FILL_THREADS), FILL_THREADS >> > (dst, n, p.symbol);
}

__global__ void decode(const RlePair *pairs, const int *offsets, int npairs, unsigned char *out)
{
	for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < npairs; i += blockDim.x * gridDim.x)
	{
		if (pairs[i].run == 0)
			continue;
		emitRun(out + offsets[i], pairs[i]);
	}
}

__global__ void adler(const unsigned char *data, int n, unsigned long long *acc)
{
	int i = threadIdx.x + blockIdx.x * blockDim.x;
	if (i < n)
		atomicAdd(acc, (unsigned long long)data[i] * (unsigned)(i % 65521 + 1));
}

int main()
{
	const int npairs = 2000;
	RlePair *pairs = (RlePair *)malloc(npairs * sizeof(RlePair));
	int *offsets = (int *)malloc((npairs + 1) * sizeof(int));
	offsets[0] = 0;
	srand(11);
	unsigned lcg = 11;
	for (int i = 0; i < npairs; i++)
	{
		lcg = lcg * 1103515245u + 12345u;
		pairs[i].symbol = (unsigned char)(lcg >> 20);
		pairs[i].run = (unsigned short)(((lcg >> 8) % 9 == 0) ? (lcg >> 16) % 5000 : (lcg >> 16) % 20);
		offsets[i + 1] = offsets[i] + pairs[i].run;
	}
	int total = offsets[npairs];

	RlePair *dPairs; int *dOffsets; unsigned char *dOut; unsigned long long *dAcc;
	gpuErrchk(cudaMalloc((void **)&dPairs, npairs * sizeof(RlePair)));
	gpuErrchk(cudaMalloc((void **)&dOffsets, (npairs + 1) * sizeof(int)));
	gpuErrchk(cudaMalloc((void **)&dOut, total));
	gpuErrchk(cudaMalloc((void **)&dAcc, sizeof(unsigned long long)));
	gpuErrchk(cudaMemset(dAcc, 0, sizeof(unsigned long long)));
	gpuErrchk(cudaMemcpy(dPairs, pairs, npairs * sizeof(RlePair), cudaMemcpyHostToDevice));
	gpuErrchk(cudaMemcpy(dOffsets, offsets, (npairs + 1) * sizeof(int), cudaMemcpyHostToDevice));

	decode << <4, 128 >> > (dPairs, dOffsets, npairs, dOut);
	gpuErrchk(cudaPeekAtLastError());
	adler << <numBlocks(total, 256), 256 >> > (dOut, total, dAcc);
	gpuErrchk(cudaDeviceSynchronize());

	unsigned long long got, want = 0;
	gpuErrchk(cudaMemcpy(&got, dAcc, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0, pos = 0; i < npairs; i++)
		for (int k = 0; k < pairs[i].run; k++, pos++)
			want += (unsigned long long)pairs[i].symbol * (unsigned)(pos % 65521 + 1);
	printf("decoded %d bytes, checksum %llu, %s\n", total, got, got == want ? "correct" : "INCORRECT");
	free(pairs);
	free(offsets);
	return got != want;
}
