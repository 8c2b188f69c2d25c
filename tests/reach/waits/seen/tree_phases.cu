#include <cstdio>
#include <cuda_runtime.h>

#define MAXTHREADCOUNT 32
#define CUDA_CHECK( a ) if( (a) != cudaSuccess ) printf( "CUDA error on line %i : %s\n", __LINE__, cudaGetErrorString(cudaGetLastError()))

struct particle {
	float x;
	float v;
	int cell;
};

__global__ void root_tree_sort(particle* parts, int n) {
	for (int i = threadIdx.x; i < n; i += blockDim.x) {
		parts[i].cell = (int) parts[i].x;
	}
}

__global__ void kick(particle* parts, int n, float dt) {
	for (int i = threadIdx.x; i < n; i += blockDim.x) {
		parts[i].v += dt * (0.5f - (parts[i].x - parts[i].cell));
	}
}

__global__ void drift(particle* parts, int n, float dt) {
	for (int i = threadIdx.x; i < n; i += blockDim.x) {
		parts[i].x += dt * parts[i].v;
	}
}

__global__ void main_kernel(particle* parts, int n) {
	const int thread = threadIdx.x;
	if (thread == 0) {
		root_tree_sort<<<1,MAXTHREADCOUNT>>>(parts, n);
		CUDA_CHECK(cudaGetLastError());
	}
	__syncthreads();
	if (thread == 0) {
		CUDA_CHECK(cudaDeviceSynchronize());
	}
	__syncthreads();
	if (thread == 0) {
		kick<<<1,MAXTHREADCOUNT>>>(parts, n, 0.1f);
		CUDA_CHECK(cudaGetLastError());
	}
	__syncthreads();
	if (thread == 0) {
		CUDA_CHECK(cudaDeviceSynchronize());
		drift<<<1,MAXTHREADCOUNT>>>(parts, n, 0.1f);
		CUDA_CHECK(cudaDeviceSynchronize());
	}
}

int main() {
	const int n = 50;
	particle* parts;
	cudaMallocManaged(&parts, n * sizeof(particle));
	for (int i = 0; i < n; i++)
		parts[i] = { i * 0.37f, 0.0f, 0 };
	main_kernel<<<1, 64>>>(parts, n);
	cudaDeviceSynchronize();
	double s = 0;
	for (int i = 0; i < n; i++)
		s += parts[i].x * (i + 1);
	printf("%.3f\n", s);
	return 0;
}
