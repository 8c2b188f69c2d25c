/**
 * Single source shortest paths. A driver thread issues the two kernels of a
 * round into its NULL stream and then puts itself into the tail.
 */
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <vector>

typedef struct edge_s { int from, to, weight; } edge_t;

typedef struct sssp_s {
	int nv, ne;
	const edge_t *edges;
	int *dist;
	int *tentative;
	int *improved;      /* counter, reset by the driver */
	int *round;
} sssp_t;

#define INF (INT_MAX / 2)
#define THREADS 128
#define GRID(n) (((n) + THREADS - 1) / THREADS)

extern "C" {

__global__ void sssp_relax(const sssp_t p)
{
	const int e = blockIdx.x * blockDim.x + threadIdx.x;
	if (e >= p.ne)
		return;
	const edge_t ed = p.edges[e];
	const int d = p.dist[ed.from];
	if (d < INF)
		atomicMin(&p.tentative[ed.to], d + ed.weight);
}

__global__ void sssp_commit(const sssp_t p)
{
	const int v = blockIdx.x * blockDim.x + threadIdx.x;
	if (v < p.nv && p.tentative[v] < p.dist[v]) {
		p.dist[v] = p.tentative[v];
		atomicAdd(p.improved, 1);
	}
}

__global__ void sssp_driver(const sssp_t p)
{
	if (threadIdx.x != 0 || blockIdx.x != 0)
		return;

	if (*p.round > 0 && *p.improved == 0)
		return;         /* fixed point */
	if (*p.round > p.nv) {
		printf("negative cycle\n");
		return;
	}
	*p.improved = 0;
	*p.round += 1;

	sssp_relax<<<GRID(p.ne), THREADS>>>(p);
	sssp_commit<<<GRID(p.nv), THREADS>>>(p);
	sssp_driver<<<1, 1, 0, cudaStreamTailLaunch>>>(p);

	cudaError_t err = cudaGetLastError();
	if (err != cudaSuccess)
		printf("sssp_driver: launch failed (%s)\n", cudaGetErrorString(err));
}

} /* extern "C" */

static void *to_device(const void *src, size_t bytes)
{
	void *p = NULL;
	if (cudaMalloc(&p, bytes) != cudaSuccess) { fprintf(stderr, "out of memory\n"); exit(1); }
	if (src) cudaMemcpy(p, src, bytes, cudaMemcpyHostToDevice);
	else cudaMemset(p, 0, bytes);
	return p;
}

int main()
{
	const int nv = 640;
	std::vector<edge_t> edges;
	unsigned s = 77;
	for (int v = 0; v < nv; v++) {
		for (int k = 0; k < 4; k++) {
			s = s * 1664525u + 1013904223u;
			int to = (v + 1 + (int)((s >> 9) % 17)) % nv;
			edges.push_back({v, to, 1 + (int)((s >> 20) % 500) - (to > v ? 20 : 0) + 20});
		}
	}
	std::vector<int> dist(nv, INF);
	dist[3] = 0;

	sssp_t p;
	p.nv = nv;
	p.ne = (int)edges.size();
	p.edges = (const edge_t *)to_device(edges.data(), edges.size() * sizeof(edge_t));
	p.dist = (int *)to_device(dist.data(), nv * sizeof(int));
	p.tentative = (int *)to_device(dist.data(), nv * sizeof(int));
	p.improved = (int *)to_device(NULL, sizeof(int));
	p.round = (int *)to_device(NULL, sizeof(int));

	sssp_driver<<<1, 1>>>(p);

	std::vector<int> got(nv);
	int rounds;
	cudaMemcpy(got.data(), p.dist, nv * sizeof(int), cudaMemcpyDeviceToHost);
	cudaMemcpy(&rounds, p.round, sizeof(int), cudaMemcpyDeviceToHost);
	if (cudaPeekAtLastError() != cudaSuccess) { printf("%s\n", cudaGetErrorString(cudaGetLastError())); return 1; }

	for (bool more = true; more;) {
		more = false;
		for (const edge_t &e : edges)
			if (dist[e.from] < INF && dist[e.from] + e.weight < dist[e.to]) {
				dist[e.to] = dist[e.from] + e.weight;
				more = true;
			}
	}
	long long sum = 0;
	for (int v = 0; v < nv; v++) sum += (long long)got[v] * (v + 1);
	printf("sssp rounds %d checksum %lld %s\n", rounds, sum, got == dist ? "match" : "NO MATCH");
	return got != dist;
}
