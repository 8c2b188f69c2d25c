#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

// ---------------------------------------------------------------------------------------
// Segmented sort. One thread inspects one segment and picks a kernel by size class.
// ---------------------------------------------------------------------------------------

#define CUDA_SAFE(call)                                                       \
  {                                                                           \
    const cudaError_t status = call;                                          \
    if (status != cudaSuccess) {                                              \
      printf("CUDA error %d (%s), line %d\n", status, cudaGetErrorString(status), __LINE__); \
      exit(1);                                                                \
    }                                                                         \
  }

template <typename KeyT>
struct SortArgs
{
  const KeyT* in;
  KeyT* out;
  int size;
};

// bitonic network on CAPACITY padded keys, one thread a key
template <int CAPACITY, typename KeyT>
__global__ void BitonicSegment(SortArgs<KeyT> args, KeyT pad)
{
  __shared__ KeyT keys[CAPACITY];
  const int t = threadIdx.x;
  keys[t] = t < args.size ? args.in[t] : pad;
  __syncthreads();
  for (int k = 2; k <= CAPACITY; k <<= 1)
    for (int j = k >> 1; j > 0; j >>= 1)
    {
      const int other = t ^ j;
      if (other > t)
      {
        const bool up = (t & k) == 0;
        if ((keys[t] > keys[other]) == up)
        {
          KeyT tmp = keys[t];
          keys[t] = keys[other];
          keys[other] = tmp;
        }
      }
      __syncthreads();
    }
  if (t < args.size)
    args.out[t] = keys[t];
}

// each thread computes the rank of one key: fine for a few hundred keys
template <typename KeyT>
__global__ void RankSegment(SortArgs<KeyT> args)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= args.size)
    return;
  const KeyT mine = args.in[i];
  int rank = 0;
  for (int j = 0; j < args.size; ++j)
  {
    const KeyT other = args.in[j];
    rank += (other < mine) || (other == mine && j < i);
  }
  args.out[rank] = mine;
}

template <typename KeyT>
__global__ void SortSegments(const KeyT* in, KeyT* out, const int* offsets, int num_segments, KeyT pad)
{
  const int seg = blockIdx.x * blockDim.x + threadIdx.x;
  if (seg >= num_segments)
    return;

  const int begin = offsets[seg];
  SortArgs<KeyT> args{in + begin, out + begin, offsets[seg + 1] - begin};

  switch (args.size <= 0 ? 0 : args.size == 1 ? 1 : args.size <= 32 ? 2 : args.size <= 128 ? 3 : 4)
  {
    case 0:
      break;
    case 1:
      args.out[0] = args.in[0];
      break;
    case 2:
      BitonicSegment<32><<<1, 32>>>(args, pad);
      break;
    case 3:
      BitonicSegment<128, KeyT><<<1, 128>>>(args, pad);
      break;
    default:
      RankSegment<<<dim3((args.size + 63) / 64), dim3(64)>>>(args);
  }
}

int main()
{
  std::mt19937 gen(3);
  std::vector<int> offsets(1, 0);
  while (offsets.size() <= 400)
  {
    int cls = gen() % 10;
    int len = cls < 2 ? gen() % 2 : cls < 7 ? gen() % 33 : cls < 9 ? gen() % 129 : gen() % 600;
    offsets.push_back(offsets.back() + len);
  }
  const int n = offsets.back(), ns = (int)offsets.size() - 1;
  std::vector<short> keys(n), sorted(n);
  for (auto& k : keys)
    k = (short)(gen() % 2000);

  short *d_in, *d_out;
  int* d_off;
  CUDA_SAFE(cudaMalloc(&d_in, n * sizeof(short)));
  CUDA_SAFE(cudaMalloc(&d_out, n * sizeof(short)));
  CUDA_SAFE(cudaMalloc(&d_off, offsets.size() * sizeof(int)));
  CUDA_SAFE(cudaMemcpy(d_in, keys.data(), n * sizeof(short), cudaMemcpyHostToDevice));
  CUDA_SAFE(cudaMemcpy(d_off, offsets.data(), offsets.size() * sizeof(int), cudaMemcpyHostToDevice));
  CUDA_SAFE(cudaMemset(d_out, 0, n * sizeof(short)));

  SortSegments<short><<<(ns + 63) / 64, 64>>>(d_in, d_out, d_off, ns, (short)0x7fff);
  CUDA_SAFE(cudaGetLastError());
  CUDA_SAFE(cudaDeviceSynchronize());
  CUDA_SAFE(cudaMemcpy(sorted.data(), d_out, n * sizeof(short), cudaMemcpyDeviceToHost));

  for (int s = 0; s < ns; ++s)
    std::sort(keys.begin() + offsets[s], keys.begin() + offsets[s + 1]);
  unsigned long long sum = 0;
  for (int i = 0; i < n; ++i)
    sum = sum * 33 + (unsigned short)sorted[i];
  printf("segments %d keys %d checksum %llu %s\n", ns, n, sum, sorted == keys ? "PASS" : "FAIL");
  return sorted != keys;
}
