/*
 * boost_hist.cu
 *
 *  @brief: level-wise histograms of gradients for a regression tree
 */
#include <cstdio>
#include <cstdlib>
#include <vector>

typedef int float_point;   // gradients are quantized

struct TreeNode { int start, end, feature, cut; long long gain; };

#define NBINS 16
#define NFEAT 6

__global__ void HistKernel(const unsigned char *pBins, const int *pIdx, const float_point *pGrad, int start, int end,
						   int feature, int numofIns, int *pHist)
{
	__shared__ int sHist[NBINS * 2];
	if(threadIdx.x < NBINS * 2)
		sHist[threadIdx.x] = 0;
	__syncthreads();
	int i = start + blockIdx.x * blockDim.x + threadIdx.x;
	if(i < end) {
		int ins = pIdx[i];
		int bin = pBins[feature * numofIns + ins];
		atomicAdd(&sHist[bin], pGrad[ins]);
		atomicAdd(&sHist[NBINS + bin], 1);
	}
	__syncthreads();
	if(threadIdx.x < NBINS * 2)
		atomicAdd(&pHist[threadIdx.x], sHist[threadIdx.x]);
}

// block per node, thread per feature
__global__ void BuildLevelKernel(const TreeNode *pNodes, const unsigned char *pBins, const int *pIdx, const float_point *pGrad,
								 int numofIns, int *pHist)
{
	int nodeId = blockIdx.x, feature = threadIdx.x;
	if(feature >= NFEAT)
		return;
	int numofNodeIns = pNodes[nodeId].end - pNodes[nodeId].start;
	if(numofNodeIns <= 0)
		return;
	int numofBlock = (numofNodeIns + 63) / 64;
	HistKernel<<<numofBlock, 64>>>(pBins, pIdx, pGrad, pNodes[nodeId].start, pNodes[nodeId].end, feature, numofIns,
								   pHist + (nodeId * NFEAT + feature) * NBINS * 2);
}

__global__ void SplitKernel(TreeNode *pNodes, const int *pHist)
{
	TreeNode &node = pNodes[blockIdx.x];
	node.gain = -1;
	for(int f = 0; f < NFEAT; f++) {
		const int *h = pHist + (blockIdx.x * NFEAT + f) * NBINS * 2;
		long long tot = 0, cnt = 0, g = 0, c = 0;
		for(int b = 0; b < NBINS; b++) { tot += h[b]; cnt += h[NBINS + b]; }
		for(int b = 0; b + 1 < NBINS; b++) {
			g += h[b]; c += h[NBINS + b];
			if(c == 0 || c == cnt) continue;
			long long gain = g * g / c + (tot - g) * (tot - g) / (cnt - c);
			if(gain > node.gain) { node.gain = gain; node.feature = f; node.cut = b; }
		}
	}
}

int main()
{
	const int n = 6000, nodes = 20;
	std::vector<unsigned char> bins(NFEAT * n); std::vector<int> idx(n), grad(n); std::vector<TreeNode> t(nodes);
	for(int i = 0; i < n; i++) { idx[i] = (i * 7) % n; grad[i] = (i * 31) % 201 - 100; for(int f = 0; f < NFEAT; f++) bins[f * n + i] = (i * (f + 3) / (f + 1)) % NBINS; }
	int s = 0;
	for(int k = 0; k < nodes; k++) { t[k].start = s; s = k == nodes - 1 ? n : s + (k * k * 13) % 700; if(s > n) s = n; t[k].end = s; }
	unsigned char *db; int *di, *dg, *dh; TreeNode *dt;
	cudaMalloc(&db, bins.size()); cudaMalloc(&di, n * 4); cudaMalloc(&dg, n * 4); cudaMalloc(&dh, nodes * NFEAT * NBINS * 8); cudaMalloc(&dt, nodes * sizeof(TreeNode));
	cudaMemcpy(db, bins.data(), bins.size(), cudaMemcpyHostToDevice); cudaMemcpy(di, idx.data(), n * 4, cudaMemcpyHostToDevice);
	cudaMemcpy(dg, grad.data(), n * 4, cudaMemcpyHostToDevice); cudaMemcpy(dt, t.data(), nodes * sizeof(TreeNode), cudaMemcpyHostToDevice);
	cudaMemset(dh, 0, nodes * NFEAT * NBINS * 8);
	BuildLevelKernel<<<nodes, 32>>>(dt, db, di, dg, n, dh);
	SplitKernel<<<nodes, 1>>>(dt, dh);
	cudaError_t e = cudaDeviceSynchronize();
	cudaMemcpy(t.data(), dt, nodes * sizeof(TreeNode), cudaMemcpyDeviceToHost);
	long long sum = 0;
	for(int k = 0; k < nodes; k++) if(t[k].gain >= 0) sum = sum * 5 + t[k].gain + t[k].feature * 100 + t[k].cut;
	printf("checksum %lld %s\n", sum, cudaGetErrorString(e));
	return 0;
}
