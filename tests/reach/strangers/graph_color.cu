#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "graph_color.h"

#ifdef GPU_PROFILE
__device__ unsigned nested_calls = 0;
#endif

__device__ unsigned int gm_idx_pool[MAXDIMGRID];

/* Child kernel invoked by the dynamic parallelism implementation with multiple kernel calls */
__global__ void process_neighbors(int curr, int *edgeArray, int *color, int *mark, int start, int end)
{
	__shared__ int flag;
	if (threadIdx.x==0) flag = 1;
	__syncthreads();
	for (int tid=threadIdx.x+start; tid<end; tid += blockDim.x) {
		int nid = edgeArray[tid];
		if ( color[nid]==0 && nid<curr ) {
			atomicAnd(&flag, 0); break;
		}
	}
	__syncthreads();
	if (threadIdx.x==0) mark[curr] = flag;
}

/* processes the elements in a buffer in block-based fashion */
__global__ void process_buffer(int *vertexArray, int *edgeArray, int *color, int *mark,
							   int *buffer, unsigned int buffer_size)
{
	int bid = blockIdx.x;
	__shared__ int flag;
	for ( ; bid<buffer_size; bid += gridDim.x ) {
		if (threadIdx.x==0) flag = 1;
		__syncthreads();
		int curr = buffer[bid];
		int start = vertexArray[curr];
		int end = vertexArray[curr+1];
		for (int eid=start+threadIdx.x; eid<end; eid+=blockDim.x) {
			int nid = edgeArray[eid];
			if ( color[nid]==0 && nid<curr ) { atomicAnd(&flag, 0); break; }
		}
		__syncthreads();
		if (threadIdx.x==0) mark[curr] = flag;
		__syncthreads();
	}
}

__global__ void gclr_bitmap_multidp_kernel(int *vertexArray, int *edgeArray, int *color, int *mark, int nodeNumber)
{
	int tid = blockIdx.x * blockDim.x + threadIdx.x;

	cudaStream_t s[MAX_STREAM_NUM];
	for (int i=0; i<MAX_STREAM_NUM; ++i) {
		cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking);
		//cudaStreamCreateWithFlags(&s[i], cudaStreamDefault);
	}
	int flag = 1;
	if ( tid<nodeNumber && color[tid]==0 ){
		int start = vertexArray[tid];
		int end = vertexArray[tid+1];
		int edge_num = end - start;
		if ( edge_num<THREASHOLD ) {
			for (int i=start; i<end; ++i) {
				int nid = edgeArray[i];
				if ( color[nid]==0 && nid<tid ) { flag = 0; break; }
			}
			mark[tid] = flag;
		}
		else {
#ifdef GPU_PROFILE
			atomicInc(&nested_calls, 1<<30);
#endif
			process_neighbors<<<1, NESTED_BLOCK_SIZE, 0, s[threadIdx.x%MAX_STREAM_NUM]>>>(tid, edgeArray, color, mark, start, end);
		}
	}
}

/* a single nested kernel call per thread-block*/
__global__ void gclr_bitmap_cons_block_dp_kernel(int *vertexArray, int *edgeArray, int *color, int *mark,
												 int nodeNumber, int *buffer)
{
	cudaStream_t s;
	cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
	unsigned per_block_buffer = GM_BUFF_SIZE/gridDim.x;     // amount of the buffer available to each thread block
    unsigned block_offset = blockIdx.x * per_block_buffer;
    unsigned int *block_index = &gm_idx_pool[blockIdx.x];
    int t_idx = 0;
    if (threadIdx.x == 0) *block_index = 0;
    __syncthreads();

	int tid = blockIdx.x * blockDim.x + threadIdx.x;
	// 1st phase
	if ( tid<nodeNumber && color[tid]==0 ){
		int flag = 1;
		int start = vertexArray[tid];
		int end = vertexArray[tid+1];
		if ( end-start<THREASHOLD ) {
			for (int i=start; i<end; ++i) {
				int nid = edgeArray[i];
				if ( color[nid]==0 && nid<tid ) { flag = 0; break; }
			}
			mark[tid] = flag;
		}
		else {
			t_idx = atomicInc(block_index, per_block_buffer);
			buffer[t_idx+block_offset] = tid;
		}
	}
	__syncthreads();

	//2nd phase - nested kernel call
	if (threadIdx.x==0 && *block_index!=0){
		unsigned int block_num = 13;
		if ( *block_index<block_num ) block_num = *block_index;
		process_buffer<<<block_num,NESTED_BLOCK_SIZE,0,s>>>(vertexArray, edgeArray, color, mark,
											buffer+block_offset, *block_index);
	}
}

__global__ void commit_kernel(int *color, int *mark, int color_type, int nodeNumber, unsigned *left)
{
	int tid = blockIdx.x *blockDim.x + threadIdx.x;
	if ( tid>=nodeNumber || color[tid] ) return;
	if ( mark[tid] ) color[tid] = color_type;
	else atomicAdd(left, 1);
}

int main(int argc, char **argv)
{
	CONF config; config.verbose = 0; config.solution = argc>1 ? atoi(argv[1]) : 2;
	graph_t g; g.nodes = 3000;
	int *deg = (int*)calloc(g.nodes+1, sizeof(int));
	unsigned r = 12345;
	for (int i=0; i<g.nodes; ++i) { r = r*1103515245u+12345u; deg[i] = (i%50==0) ? 60+(r>>16)%200 : 2+(r>>16)%10; }
	g.vertexArray = (int*)malloc((g.nodes+1)*sizeof(int)); g.vertexArray[0] = 0;
	for (int i=0; i<g.nodes; ++i) g.vertexArray[i+1] = g.vertexArray[i]+deg[i];
	g.edges = g.vertexArray[g.nodes];
	g.edgeArray = (int*)malloc(g.edges*sizeof(int));
	for (int i=0; i<g.edges; ++i) { r = r*1103515245u+12345u; g.edgeArray[i] = (r>>12)%g.nodes; }

	int *d_v, *d_e, *d_c, *d_m, *d_b; unsigned *d_left;
	cudaMalloc(&d_v, (g.nodes+1)*sizeof(int)); cudaMalloc(&d_e, g.edges*sizeof(int));
	cudaMalloc(&d_c, g.nodes*sizeof(int)); cudaMalloc(&d_m, g.nodes*sizeof(int));
	cudaMalloc(&d_b, GM_BUFF_SIZE*sizeof(int)); cudaMalloc(&d_left, sizeof(unsigned));
	cudaMemcpy(d_v, g.vertexArray, (g.nodes+1)*sizeof(int), cudaMemcpyHostToDevice);
	cudaMemcpy(d_e, g.edgeArray, g.edges*sizeof(int), cudaMemcpyHostToDevice);
	int *color = (int*)malloc(g.nodes*sizeof(int));
	for (int sol=0; sol<2; ++sol) {
		if (config.solution!=2 && config.solution!=sol) continue;
		cudaMemset(d_c, 0, g.nodes*sizeof(int));
		unsigned left = g.nodes; int c = 1;
		for ( ; left && c<500; ++c) {
			cudaMemset(d_left, 0, sizeof(unsigned));
			cudaMemset(d_m, 0, g.nodes*sizeof(int));
			if (sol==0) gclr_bitmap_multidp_kernel<<<(g.nodes+127)/128, 128>>>(d_v, d_e, d_c, d_m, g.nodes);
			else gclr_bitmap_cons_block_dp_kernel<<<(g.nodes+127)/128, 128>>>(d_v, d_e, d_c, d_m, g.nodes, d_b);
			commit_kernel<<<(g.nodes+127)/128, 128>>>(d_c, d_m, c, g.nodes, d_left);
			cudaMemcpy(&left, d_left, sizeof(unsigned), cudaMemcpyDeviceToHost);
		}
		cudaMemcpy(color, d_c, g.nodes*sizeof(int), cudaMemcpyDeviceToHost);
		long sum = 0;
		for (int i=0; i<g.nodes; ++i) sum += (long)color[i]*(i%97+1);
		printf("solution %d: %d rounds, checksum %ld (%s)\n", sol, c-1, sum, cudaGetErrorString(cudaGetLastError()));
	}
	return 0;
}
