#include <cstdio>
#include <cstdlib>
#include <vector>
#include <algorithm>

#include "join_settings.h"

#define checkErrorMsg(cond, msg) \
	if(cond) { fprintf(stderr, "%s (%s:%d)\n", msg, __FILE__, __LINE__); return -1; }

namespace lynx {
namespace join {

template< typename Settings >
__global__ void joinFindBoundsKernel(JoinData<typename Settings::SizeType, typename Settings::DataType> d)
{
	typedef typename Settings::SizeType SizeType;
	SizeType id = threadIdx.x + blockIdx.x * Settings::THREADS;
	if(id >= d.inputCountLeft) return;
	typename Settings::DataType key = d.devInputLeft[id];
	SizeType lo = 0, hi = d.inputCountRight;
	while(lo < hi) { SizeType mid = (lo + hi) / 2; if(d.devInputRight[mid] < key) lo = mid + 1; else hi = mid; }
	d.devLower[id] = lo;
	hi = d.inputCountRight;
	while(lo < hi) { SizeType mid = (lo + hi) / 2; if(d.devInputRight[mid] <= key) lo = mid + 1; else hi = mid; }
	d.devUpper[id] = lo;
}

template< typename Settings >
__global__ void joinMainCdpKernel(
	typename Settings::SizeType leftIndex,
	typename Settings::SizeType lower,
	typename Settings::SizeType count,
	typename Settings::SizeType *outLeft,
	typename Settings::SizeType *outRight)
{
	typename Settings::SizeType i = threadIdx.x + blockIdx.x * blockDim.x;
	if(i < count) {
		outLeft[i] = leftIndex;
		outRight[i] = lower + i;
	}
}

template< typename Settings >
__global__ void joinMainJoinKernel(JoinData<typename Settings::SizeType, typename Settings::DataType> d)
{
	typedef typename Settings::SizeType SizeType;
	SizeType id = threadIdx.x + blockIdx.x * Settings::THREADS;
	if(id < d.inputCountLeft) {
		SizeType lower = d.devLower[id];
		SizeType count = d.devUpper[id] - lower;
		SizeType *outLeft = d.devJoinLeftOutIndices + d.devOffset[id];
		SizeType *outRight = d.devJoinRightOutIndices + d.devOffset[id];
		if(count >= Settings::CDP_THRESHOLD) {
			SizeType cdpCtas = (count + Settings::CDP_THREADS - 1) / Settings::CDP_THREADS;
			joinMainCdpKernel<Settings><<< cdpCtas, Settings::CDP_THREADS >>>(id, lower, count, outLeft, outRight);
			cudaError_t err = cudaGetLastError();
			if(err != cudaSuccess)
				printf("Cdp launch failed: %d\n", (int)err);
		}
		else {
			for(SizeType i = 0; i < count; i++) {
				outLeft[i] = id;
				outRight[i] = lower + i;
			}
		}
	}
}

template< typename Settings >
class JoinCdp {
	typedef typename Settings::SizeType SizeType;
	typedef typename Settings::DataType DataType;
	JoinData<SizeType, DataType> data;
	SizeType outCount;
public:
	int setup(const std::vector<DataType> &left, const std::vector<DataType> &right) {
		data.inputCountLeft = left.size();
		data.inputCountRight = right.size();
		checkErrorMsg(cudaMalloc(&data.devInputLeft, left.size() * sizeof(DataType)), "alloc left");
		checkErrorMsg(cudaMalloc(&data.devInputRight, right.size() * sizeof(DataType)), "alloc right");
		checkErrorMsg(cudaMalloc(&data.devLower, left.size() * sizeof(SizeType)), "alloc lower");
		checkErrorMsg(cudaMalloc(&data.devUpper, left.size() * sizeof(SizeType)), "alloc upper");
		checkErrorMsg(cudaMalloc(&data.devOffset, left.size() * sizeof(SizeType)), "alloc offset");
		cudaMemcpy(data.devInputLeft, &left[0], left.size() * sizeof(DataType), cudaMemcpyHostToDevice);
		cudaMemcpy(data.devInputRight, &right[0], right.size() * sizeof(DataType), cudaMemcpyHostToDevice);
		return 0;
	}
	int join() {
		SizeType n = data.inputCountLeft, ctas = (n + Settings::THREADS - 1) / Settings::THREADS;
		joinFindBoundsKernel<Settings><<< ctas, Settings::THREADS >>>(data);
		std::vector<SizeType> lo(n), up(n), off(n);
		cudaMemcpy(&lo[0], data.devLower, n * sizeof(SizeType), cudaMemcpyDeviceToHost);
		cudaMemcpy(&up[0], data.devUpper, n * sizeof(SizeType), cudaMemcpyDeviceToHost);
		outCount = 0;
		for(SizeType i = 0; i < n; i++) { off[i] = outCount; outCount += up[i] - lo[i]; }
		cudaMemcpy(data.devOffset, &off[0], n * sizeof(SizeType), cudaMemcpyHostToDevice);
		checkErrorMsg(cudaMalloc(&data.devJoinLeftOutIndices, outCount * sizeof(SizeType)), "alloc out");
		checkErrorMsg(cudaMalloc(&data.devJoinRightOutIndices, outCount * sizeof(SizeType)), "alloc out");
		joinMainJoinKernel<Settings><<< ctas, Settings::THREADS >>>(data);
		checkErrorMsg(cudaDeviceSynchronize(), "join kernel");
		return 0;
	}
	void report() {
		std::vector<SizeType> l(outCount), r(outCount);
		cudaMemcpy(&l[0], data.devJoinLeftOutIndices, outCount * sizeof(SizeType), cudaMemcpyDeviceToHost);
		cudaMemcpy(&r[0], data.devJoinRightOutIndices, outCount * sizeof(SizeType), cudaMemcpyDeviceToHost);
		unsigned long long sum = 0;
		for(SizeType i = 0; i < outCount; i++) sum = sum * 31 + l[i] * 7 + r[i];
		printf("join %d rows, checksum %llu\n", (int)outCount, sum);
	}
};

}
}

int main()
{
	typedef lynx::join::Settings<int, int, 128, 64, 32> S;
	std::vector<int> left(2000), right(20000);
	unsigned s = 7;
	for(size_t i = 0; i < left.size(); i++) { s = s * 1664525u + 1013904223u; left[i] = (s >> 8) % 900; }
	for(size_t i = 0; i < right.size(); i++) { s = s * 1664525u + 1013904223u; int v = (s >> 8) % 900; right[i] = (v * v) / 900; }
	std::sort(right.begin(), right.end());
	lynx::join::JoinCdp<S> j;
	if(j.setup(left, right) || j.join()) return 1;
	j.report();
	return 0;
}
