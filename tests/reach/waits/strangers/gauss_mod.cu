/* Gaussian elimination mod p; the whole outer loop runs on the GPU. */
#include <stdio.h>
#include <stdlib.h>
#include "gauss_mod.h"

__device__ unsigned power_mod(unsigned b, unsigned e)
{
	unsigned long long r = 1, x = b;
	for (; e; e >>= 1) { if (e & 1) r = r * x % PRIME; x = x * x % PRIME; }
	return (unsigned)r;
}

__global__ void division_kernel(unsigned *U, int k, int n, unsigned inv)
{
	int y = blockIdx.x * blockDim.x + threadIdx.x;
	if (y < n && y >= k)
		U[k*n + y] = (unsigned long long)U[k*n + y] * inv % PRIME;
}

__global__ void elimination_kernel(unsigned *U, unsigned *col, int k, int n)
{
	int y = blockIdx.x * blockDim.x + threadIdx.x;
	int x = blockIdx.y * blockDim.y + threadIdx.y;
	if (x > k && x < n && y >= k && y < n) {
		unsigned long long t = (unsigned long long)col[x] * U[k*n + y] % PRIME;
		U[x*n + y] = (unsigned)((U[x*n + y] + PRIME - t) % PRIME);
	}
}

__global__ void column_kernel(const unsigned *U, unsigned *col, int k, int n)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x;
	if (x < n) col[x] = U[x*n + k];
}

__global__ void gauss_kernel(unsigned *U, unsigned *col, unsigned *det, int n)
{
	unsigned long long d = 1;
	dim3 tb(TILE, TILE), grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
	for (int k = 0; k < n; k++) {
		unsigned pivot = U[k*n + k];
		if (pivot == 0) { d = 0; break; }	/* no pivoting */
		d = d * pivot % PRIME;
		column_kernel<<<(n + 63) / 64, 64>>>(U, col, k, n);
		division_kernel<<<(n + 63) / 64, 64>>>(U, k, n, power_mod(pivot, PRIME - 2));
		elimination_kernel<<<grid, tb>>>(U, col, k, n);
		cudaDeviceSynchronize();
	}
	*det = (unsigned)d;
}

int main(int argc, char** argv)
{
	int n = MATRIX_SIZE;
	matrix_t A;
	A.n = n;
	A.elements = (unsigned *)malloc(n * n * sizeof(unsigned));
	srand(7);
	for (int i = 0; i < n * n; i++) A.elements[i] = (unsigned)rand() % PRIME;
	unsigned *dU, *dcol, *ddet, det;
	cudaMalloc((void**)&dU, n * n * sizeof(unsigned));
	cudaMalloc((void**)&dcol, n * sizeof(unsigned));
	cudaMalloc((void**)&ddet, sizeof(unsigned));
	cudaMemcpy(dU, A.elements, n * n * sizeof(unsigned), cudaMemcpyHostToDevice);
	gauss_kernel<<<1, 1>>>(dU, dcol, ddet, n);
	cudaMemcpy(&det, ddet, sizeof(unsigned), cudaMemcpyDeviceToHost);
	cudaMemcpy(A.elements, dU, n * n * sizeof(unsigned), cudaMemcpyDeviceToHost);
	unsigned long long s = 0;
	for (int i = 0; i < n * n; i++) s += (unsigned long long)A.elements[i] * (i % 31);
	printf("det mod p = %u, checksum %llu\n", det, s);
	free(A.elements);
	return 0;
}
