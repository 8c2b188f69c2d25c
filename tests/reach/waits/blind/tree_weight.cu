/*
 * Weights of all subtrees. The tree is stored first-child/next-sibling flattened:
 * kids[off[v] .. off[v+1]) are the children of v.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct tree {
	int n;
	const int *off;
	const int *kids;
	const int *own;         /* weight of the node alone */
	long long *total;       /* out: weight of the subtree */
	int *height;            /* out */
} tree_t;

__global__ void subtree(tree_t t, int parent);

/* one thread a child */
__device__ void descend(tree_t t, int v)
{
	int nk = t.off[v + 1] - t.off[v];
	long long w = t.own[v];
	int h = 0;

	if (nk > 0) {
		subtree<<<1, nk>>>(t, v);
		cudaDeviceSynchronize();
		for (int k = t.off[v]; k < t.off[v + 1]; k++) {
			w += t.total[t.kids[k]];
			h = max(h, t.height[t.kids[k]] + 1);
		}
	}
	t.total[v] = w;
	t.height[v] = h;
}

__global__ void subtree(tree_t t, int parent)
{
	int k = t.off[parent] + threadIdx.x;
	if (k < t.off[parent + 1])
		descend(t, t.kids[k]);
}

__global__ void whole_tree(tree_t t, int root)
{
	if (threadIdx.x == 0 && blockIdx.x == 0)
		descend(t, root);
}

int main(void)
{
	enum { N = 400 };
	static int parent[N], off[N + 1], kids[N], own[N], fill[N];
	for (int v = 1; v < N; v++) {
		parent[v] = (v - 1) / 3 - ((v - 1) / 3 > 4 ? v % 3 : 0);
		off[parent[v] + 1]++;
	}
	for (int v = 0; v < N; v++) {
		off[v + 1] += off[v];
		own[v] = 1 + v * v % 11;
	}
	for (int v = 1; v < N; v++)
		kids[off[parent[v]] + fill[parent[v]]++] = v;

	tree_t t;
	t.n = N;
	cudaMalloc((void **)&t.off, sizeof off);
	cudaMalloc((void **)&t.kids, sizeof kids);
	cudaMalloc((void **)&t.own, sizeof own);
	cudaMalloc((void **)&t.total, N * sizeof(long long));
	cudaMalloc((void **)&t.height, N * sizeof(int));
	cudaMemcpy((void *)t.off, off, sizeof off, cudaMemcpyHostToDevice);
	cudaMemcpy((void *)t.kids, kids, sizeof kids, cudaMemcpyHostToDevice);
	cudaMemcpy((void *)t.own, own, sizeof own, cudaMemcpyHostToDevice);
	assert(cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, 16) == cudaSuccess);

	whole_tree<<<1, 32>>>(t, 0);
	assert(cudaDeviceSynchronize() == cudaSuccess);

	long long total[N], ref[N], sum = 0;
	cudaMemcpy(total, t.total, sizeof total, cudaMemcpyDeviceToHost);
	for (int v = N - 1; v >= 0; v--) ref[v] = own[v];
	for (int v = N - 1; v > 0; v--) ref[parent[v]] += ref[v];
	for (int v = 0; v < N; v++) { assert(ref[v] == total[v]); sum += total[v] * (v + 1); }
	printf("checksum %lld\n", sum);
	return 0;
}
