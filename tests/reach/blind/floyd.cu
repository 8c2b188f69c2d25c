#include <algorithm>
#include <cstdio>
#include <vector>
#include "cuda_runtime.h"
#include "device_launch_parameters.h"

using namespace std;

#define BLOCK_SIZE 16
#define INFINITE 1000000000

#define cudaErr(x) do { cudaError_t err = (x); if (err != cudaSuccess) { \
    printf("[%s:%d] %s\n", __FILE__, __LINE__, cudaGetErrorName(err)); return -1; } } while (0)

// One pivot of Floyd-Warshall with path reconstruction, then the next pivot.
__global__ void fwPivot(int *dist, short *via, int n, int pivot)
{
	const int i = blockIdx.y * blockDim.y + threadIdx.y;
	const int j = blockIdx.x * blockDim.x + threadIdx.x;

	// row and column of the pivot can't improve in its own step
	if (i < n && j < n && i != pivot && j != pivot)
	{
		const int alt = dist[i * n + pivot] + dist[pivot * n + j];
		if (alt < dist[i * n + j])
		{
			dist[i * n + j] = alt;
			via[i * n + j] = (short)pivot;
		}
	}

	if (i == 0 && j == 0 && pivot + 1 < n)
		fwPivot<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(dist, via, n, pivot + 1);
}

int main()
{
	const int n = 100;
	vector<int> dist(n * n, INFINITE);
	vector<short> via(n * n, -1);
	unsigned r = 123;
	for (int i = 0; i < n; i++)
	{
		dist[i * n + i] = 0;
		for (int k = 0; k < 5; k++)
		{
			r = r * 1664525u + 1013904223u;
			int j = (r >> 8) % n;
			if (j != i) dist[i * n + j] = min(dist[i * n + j], (int)(1 + (r >> 16) % 97));
		}
	}

	int *d_dist;
	short *d_via;
	cudaErr(cudaMalloc(&d_dist, n * n * sizeof(int)));
	cudaErr(cudaMalloc(&d_via, n * n * sizeof(short)));
	cudaErr(cudaMemcpy(d_dist, dist.data(), n * n * sizeof(int), cudaMemcpyHostToDevice));
	cudaErr(cudaMemcpy(d_via, via.data(), n * n * sizeof(short), cudaMemcpyHostToDevice));

	dim3 threads(BLOCK_SIZE, BLOCK_SIZE);
	dim3 blocks((n + BLOCK_SIZE - 1) / BLOCK_SIZE, (n + BLOCK_SIZE - 1) / BLOCK_SIZE);
	fwPivot<<<blocks, threads>>>(d_dist, d_via, n, 0);
	cudaErr(cudaGetLastError());
	cudaErr(cudaDeviceSynchronize());

	vector<int> gd(n * n);
	vector<short> gv(n * n);
	cudaErr(cudaMemcpy(gd.data(), d_dist, n * n * sizeof(int), cudaMemcpyDeviceToHost));
	cudaErr(cudaMemcpy(gv.data(), d_via, n * n * sizeof(short), cudaMemcpyDeviceToHost));

	for (int k = 0; k < n; k++)
		for (int i = 0; i < n; i++)
			for (int j = 0; j < n; j++)
				if (dist[i * n + k] + dist[k * n + j] < dist[i * n + j])
				{
					dist[i * n + j] = dist[i * n + k] + dist[k * n + j];
					via[i * n + j] = (short)k;
				}

	long long sum = 0;
	for (int i = 0; i < n * n; i++)
		sum += (gd[i] % 100003) * (i % 31 + 1LL) + gv[i];
	bool equal = gd == dist && gv == via;
	printf("all pairs: checksum %lld %s\n", sum, equal ? "equal to host" : "NOT equal to host");
	cudaFree(d_dist);
	cudaFree(d_via);
	return equal ? 0 : 1;
}
