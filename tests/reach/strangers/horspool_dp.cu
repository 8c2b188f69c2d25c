#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASIZE 256
#define NPAT 3

#define checkCudaErrors(x) { cudaError_t e_ = (x); if (e_ != cudaSuccess) { printf("cuda error %d line %d\n", (int)e_, __LINE__); exit(1); } }

__constant__ int d_plen[NPAT];
__constant__ int d_poff[NPAT];

__global__ void compare(int idx, int p, char *x, char *y, int m, int* results) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
//	printf("%d\t%d\n",idx,id);
	if (id >= m) return;
	if(x[id]!=y[idx+id]) {
		atomicAnd(&results[idx], ~(1<<p));
		return;
	}
}

__global__ void search(char *x, char* y, int n, int results[]) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if ( idx >= n ) return;

    for (int p = 0; p < NPAT; ++p) {
	int m = d_plen[p];
	char *pat = x + d_poff[p];
	if ( idx > (n - m) ) continue;
	if(pat[0]==y[idx] && pat[m-1]==y[idx+m-1]) {
		results[idx] |= 1<<p;
	}
    }
}

__global__ void verify(char *x, char *y, int n, int results[]) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if ( idx >= n || results[idx] == 0) return;
    // only the longest candidate is checked, the others are prefixes of it
    int p = 31 - __clz(results[idx]);
    int m = d_plen[p];
    results[idx] = 1<<p;
/*
	for( int i = 0; i < m; ++i ) {
	    if ( x[i] != y[idx + i] ) { results[idx] = 0; return; }
	}
*/
	if(m>2)
	compare<<<(m+63)/64,64>>>(idx,p,x+d_poff[p],y,m,results);
}

int main(int argc, char* argv[]) {
    size_t n = 1 << 14;
    if (argc > 1) n = atoi(argv[1]);
    const char* pats[NPAT] = { "aba", "abacabadabacaba", "abacabadabacabaeabacabadabacabafabacabadabacabaeabacabadabacabaaa" };
    char all[512]; int len[NPAT], off[NPAT], t = 0;
    for (int i = 0; i < NPAT; ++i) { len[i] = strlen(pats[i]); off[i] = t; memcpy(all + t, pats[i], len[i]); t += len[i]; }

    char* text = (char*)malloc(n);
    for (size_t i = 0; i < n; ++i) {        // ruler sequence
        size_t v = i + 1; int k = 0;
        while ((v & 1) == 0) { v >>= 1; k++; }
        text[i] = 'a' + (k % 7);
        if (i % 611 == 17) text[i] = 'a';
    }
    int* results = (int*)malloc(n * sizeof(int));

    char* d_sub = 0; char* d_text = 0; int* d_results = 0;
    checkCudaErrors( cudaMalloc((void**)&d_sub, t) );
    checkCudaErrors( cudaMalloc((void**)&d_text, n) );
    checkCudaErrors( cudaMalloc((void**)&d_results, n * sizeof(int)) );
    checkCudaErrors( cudaMemset(d_results, 0, n * sizeof(int)) );
    checkCudaErrors( cudaMemcpy(d_sub, all, t, cudaMemcpyHostToDevice) );
    checkCudaErrors( cudaMemcpy(d_text, text, n, cudaMemcpyHostToDevice) );
    checkCudaErrors( cudaMemcpyToSymbol(d_plen, len, sizeof(len)) );
    checkCudaErrors( cudaMemcpyToSymbol(d_poff, off, sizeof(off)) );
    checkCudaErrors( cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 32768) );

    dim3 threadsPerBlocks(ASIZE, 1);
    int tb = n / threadsPerBlocks.x;
    int t1 = n % threadsPerBlocks.x;
    if ( t1 != 0 ) tb += 1;
    dim3 numBlocks(tb,1);
    search<<<numBlocks,threadsPerBlocks>>>(d_sub, d_text, n, d_results);
    verify<<<numBlocks,threadsPerBlocks>>>(d_sub, d_text, n, d_results);
    checkCudaErrors( cudaDeviceSynchronize() );
    checkCudaErrors( cudaMemcpy(results, d_results, n * sizeof(int), cudaMemcpyDeviceToHost) );

    int j = 0; long long sum = 0;
    for (size_t i = 0; i < n; ++i)
        if ( results[i] ) { j++; sum += (long long)results[i] * (i % 1009); }
    printf("%d matches, checksum %lld\n", j, sum);

	cudaFree(d_sub);
	cudaFree(d_text);
	cudaFree(d_results);
//	free(mainString);
	free(results);
	free(text);
	return 0;
}
