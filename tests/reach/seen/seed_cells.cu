// The number of clusters is known on the device only: a deferring kernel launches with it.
#include <cstdio>
#include <cuda_runtime.h>

#ifndef CUDA_CAN_USE_TAIL_LAUNCH
  #if CUDART_VERSION >= 12000
    #define CUDA_CAN_USE_TAIL_LAUNCH 1
  #else
    #define CUDA_CAN_USE_TAIL_LAUNCH 0
  #endif
#endif

namespace Helpers
{
  template <class T> struct CUDA_kernel_object
  {
    T * m_object;
    __host__ __device__ T * operator->() const { return m_object; }
    __host__ __device__ operator T * () const { return m_object; }
  };

  template <class T> __host__ __device__ constexpr T int_ceil_div(const T num, const T denom)
  {
    return num / denom + (num % denom != 0);
  }
}

struct ClusterInfoArr
{
  int number;
  int seed[256];
  float phi[256];
};

struct GeometryArr
{
  float phi[1024];
};

__global__ static
void seedCellPropertiesKernel(Helpers::CUDA_kernel_object<ClusterInfoArr> clusters_arr, const Helpers::CUDA_kernel_object<GeometryArr> geometry)
{
  const int cluster = blockIdx.x * blockDim.x + threadIdx.x;
  if (cluster < clusters_arr->number)
    {
      const int seed_cell = clusters_arr->seed[cluster];
      if (seed_cell >= 0)
        {
          clusters_arr->phi[cluster] = geometry->phi[seed_cell];
        }
      else
        {
          clusters_arr->phi[cluster] = 0.f;
        }
    }
}

__global__ static
void seedCellPropertiesDeferKernel(Helpers::CUDA_kernel_object<ClusterInfoArr> clusters_arr,
                                   const Helpers::CUDA_kernel_object<GeometryArr> geometry,
                                   const int i_dimBlock)
{
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index == 0)
    {
      const int cluster_number = clusters_arr->number;
      const int i_dimGrid = Helpers::int_ceil_div(cluster_number, i_dimBlock);
#if CUDA_CAN_USE_TAIL_LAUNCH
      seedCellPropertiesKernel <<< i_dimGrid, i_dimBlock, 0, cudaStreamTailLaunch>>>(clusters_arr, geometry);
#else
      seedCellPropertiesKernel <<< i_dimGrid, i_dimBlock>>>(clusters_arr, geometry);
#endif
    }
}

int main()
{
  Helpers::CUDA_kernel_object<ClusterInfoArr> clusters;
  Helpers::CUDA_kernel_object<GeometryArr> geometry;
  cudaMallocManaged(&clusters.m_object, sizeof(ClusterInfoArr));
  cudaMallocManaged(&geometry.m_object, sizeof(GeometryArr));
  clusters->number = 150;
  for (int i = 0; i < 256; i++)
    {
      clusters->seed[i] = i % 7 ? i * 3 : -1;
      clusters->phi[i] = 9.f;
    }
  for (int i = 0; i < 1024; i++)
    geometry->phi[i] = i % 31;
  seedCellPropertiesDeferKernel<<<1, 1>>>(clusters, geometry, 64);
  cudaDeviceSynchronize();
  double s = 0;
  for (int i = 0; i < 256; i++)
    s += clusters->phi[i] * (i % 5);
  printf("%.1f\n", s);
  return 0;
}
