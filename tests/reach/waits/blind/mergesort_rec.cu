#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

/// Recursive merge sort in the CDP1 style. The node sorts its halves by recursion,
/// waits for them, has them merged in parallel, waits again and copies back.

constexpr int LEAF = 128;

template <class T>
__global__ void leafSort(T* a, int n)
{
	__shared__ T s[LEAF];
	const int i = threadIdx.x;
	if (i < n) s[i] = a[i];
	__syncthreads();
	if (i < n)
	{
		int rank = 0;
		for (int j = 0; j < n; ++j) rank += s[j] < s[i] || (!(s[i] < s[j]) && j < i);
		a[rank] = s[i];
	}
}

template <class T>
__device__ int countBelow(const T* a, int n, const T& key, bool orEqual)
{
	int lo = 0, hi = n;
	while (lo < hi)
	{
		int mid = (lo + hi) / 2;
		if (a[mid] < key || (orEqual && !(key < a[mid]))) lo = mid + 1;
		else hi = mid;
	}
	return lo;
}

template <class T>
__global__ void merge(const T* a, int na, const T* b, int nb, T* out)
{
	const int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < na) out[i + countBelow(b, nb, a[i], false)] = a[i];
	else if (i < na + nb) out[i - na + countBelow(a, na, b[i - na], true)] = b[i - na];
}

template <class T>
__global__ void mergeSort(T* a, T* tmp, int n)
{
	if (n <= LEAF)
	{
		leafSort<<<1, LEAF>>>(a, n);
		cudaDeviceSynchronize();
		return;
	}
	const int half = n / 2;

	cudaStream_t left, right;
	cudaStreamCreateWithFlags(&left, cudaStreamNonBlocking);
	cudaStreamCreateWithFlags(&right, cudaStreamNonBlocking);
	mergeSort<<<1, 1, 0, left>>>(a, tmp, half);
	mergeSort<<<1, 1, 0, right>>>(a + half, tmp + half, n - half);
	cudaDeviceSynchronize();

	merge<<<(n + 255) / 256, 256, 0, left>>>(a, half, a + half, n - half, tmp);
	cudaStreamDestroy(left);
	cudaStreamDestroy(right);
	cudaDeviceSynchronize();

	for (int i = 0; i < n; ++i) a[i] = tmp[i];
}

int main()
{
	const int n = 3000;
	std::vector<unsigned> h(n), ref;
	for (int i = 0; i < n; ++i) h[i] = (i * 2654435761u) >> 12;
	ref = h;
	std::sort(ref.begin(), ref.end());
	unsigned *a, *tmp;
	cudaMalloc(&a, n * sizeof(unsigned));
	cudaMalloc(&tmp, n * sizeof(unsigned));
	cudaMemcpy(a, h.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice);
	cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, 8);
	mergeSort<<<1, 1>>>(a, tmp, n);
	cudaDeviceSynchronize();
	cudaMemcpy(h.data(), a, n * sizeof(unsigned), cudaMemcpyDeviceToHost);
	unsigned long long sum = 0;
	for (int i = 0; i < n; ++i) sum += (unsigned long long)h[i] * (i + 1);
	std::printf("checksum %llu %s\n", sum, h == ref ? "sorted" : "unsorted");
	return h != ref;
}
