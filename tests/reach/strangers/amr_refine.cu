#include <iostream>
#include <vector>

// Cells whose variation is too large are refined 2x2. One block per cell, the block decides together
// and its first thread launches the refinement.
struct AmrSettings {
	static const int THREADS = 64;
	static const int MAX_REFINE_LEVEL = 5;
};

struct AmrCell { int x, y, size, level; };

__device__ inline int field(int x, int y) {
	int dx = x - 300, dy = y - 500;
	int r = dx * dx + dy * dy;
	return r < 40000 ? 1000 - r / 50 : (x * 3 + y) / 64;
}

template<typename Settings>
__global__ void amrKernel(AmrCell parent, int threshold, unsigned *cellsPerLevel, unsigned long long *energy)
{
	AmrCell cell = parent;
	cell.size /= 2;
	cell.level += 1;
	cell.x += (blockIdx.x % 2) * cell.size;
	cell.y += (blockIdx.x / 2) * cell.size;

	__shared__ int lo, hi, total;
	if(threadIdx.x == 0) { lo = 1 << 30; hi = -(1 << 30); total = 0; }
	__syncthreads();
	int step = cell.size / 8 > 0 ? cell.size / 8 : 1;
	int v = field(cell.x + (threadIdx.x % 8) * step, cell.y + (threadIdx.x / 8) * step);
	atomicMin(&lo, v);
	atomicMax(&hi, v);
	atomicAdd(&total, v);
	__syncthreads();

	if(threadIdx.x == 0) {
		if(hi - lo > threshold && cell.level < Settings::MAX_REFINE_LEVEL) {
			amrKernel<Settings><<<4, Settings::THREADS>>>(cell, threshold, cellsPerLevel, energy);
			cudaError_t retVal = cudaGetLastError();
			if(retVal) printf("refine failed %d\n", (int)retVal);
		}
		else {
			atomicAdd(&cellsPerLevel[cell.level], 1u);
			atomicAdd(energy, (unsigned long long)(total + 100000) * cell.size);
		}
	}
}

int main()
{
	unsigned *cells, h[8]; unsigned long long *energy, e;
	cudaMalloc(&cells, sizeof(h)); cudaMalloc(&energy, sizeof(e));
	cudaMemset(cells, 0, sizeof(h)); cudaMemset(energy, 0, sizeof(e));
	AmrCell root = {0, 0, 1024, 0};
	amrKernel<AmrSettings><<<4, AmrSettings::THREADS>>>(root, 60, cells, energy);
	if(cudaDeviceSynchronize() != cudaSuccess) { std::cerr << "amr failed\n"; return -1; }
	cudaMemcpy(h, cells, sizeof(h), cudaMemcpyDeviceToHost);
	cudaMemcpy(&e, energy, sizeof(e), cudaMemcpyDeviceToHost);
	for(int l = 1; l <= AmrSettings::MAX_REFINE_LEVEL; l++) std::cout << "level " << l << ": " << h[l] << "\n";
	std::cout << "checksum " << e << std::endl;
	return 0;
}
