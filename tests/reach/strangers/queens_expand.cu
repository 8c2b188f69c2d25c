#include <stdio.h>

//////////////////////////////////////////////////////////////////////////

__managed__ int nQueen = 11;
__managed__ int levelDiscriminant = 3;

__device__ int solutions = 0;
__device__ int blockCount = 0;

//////////////////////////////////////////////////////////////////////////

class ErrorChecking {
public:
	static __host__ void hostErrorCheck(cudaError_t e, const char* where) {
		if(e != cudaSuccess) printf("\033[31m%s::%s\033[0m\n", where, cudaGetErrorString(e));
	}
	static __device__ void deviceErrorCheck(cudaError_t e, const char* where) {
		if(e != cudaSuccess) printf("%s::%d\n", where, (int)e);
	}
};

//////////////////////////////////////////////////////////////////////////

__device__ int solve(int level, unsigned cols, unsigned d1, unsigned d2){
	if(level == nQueen) return 1;
	int n = 0;
	unsigned free = ~(cols | d1 | d2) & ((1u << nQueen) - 1);
	while(free){
		unsigned bit = free & -free;
		free ^= bit;
		n += solve(level+1, cols|bit, (d1|bit)<<1, (d2|bit)>>1);
	}
	return n;
}

__global__ void test(int level, unsigned cols, unsigned d1, unsigned d2){

	atomicAdd(&blockCount,1);

	if(level >= levelDiscriminant){
		//non espando piu', risolvo normalmente
		int n = solve(level,cols,d1,d2);
		if(n > 0) atomicAdd(&solutions,n);
		return;
	}

	//espansione
	for(int i = 0; i < nQueen; ++i){
		unsigned bit = 1u << i;
		if((cols | d1 | d2) & bit) continue;

		cudaStream_t s;
		ErrorChecking::deviceErrorCheck(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking),"test::STREAM");
		test<<<1,1,0,s>>>(level+1, cols|bit, (d1|bit)<<1, (d2|bit)>>1);
		ErrorChecking::deviceErrorCheck(cudaPeekAtLastError(),"test::LAUNCH");
		cudaStreamDestroy(s);
	}
}

__global__ void results(){
	printf("solutions = %d\n",solutions);
	printf("block used = %d\n",blockCount);
}

//////////////////////////////////////////////////////////////////////////

int main(){
	ErrorChecking::hostErrorCheck(cudaDeviceSetLimit(cudaLimitStackSize,4096),"main::STACK");
	ErrorChecking::hostErrorCheck(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount,65000),"main::PENDING");
	test<<<1,1>>>(0,0,0,0);
	ErrorChecking::hostErrorCheck(cudaDeviceSynchronize(),"main::SYNCH");
	results<<<1,1>>>();
	ErrorChecking::hostErrorCheck(cudaDeviceSynchronize(),"main::RESULTS");
	return 0;
}
