#pragma once
#include <cassert>
#include <cstdio>
#include <cuda_runtime.h>

const int VOXEL_BLOCK_SIZE = 8;
const int VOXELS_PER_BLOCK = VOXEL_BLOCK_SIZE * VOXEL_BLOCK_SIZE * VOXEL_BLOCK_SIZE;

struct Voxel { int sdf; int weight; };
struct Point { int x, y, z; };
struct HashEntry { Point position; int pointer; };

//error function for cpu called after kernel calls
#define gpuErrchk(ans) { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(cudaError_t code, const char *file, int line, bool abort=true)
{
   if (code != cudaSuccess)
   {
      fprintf(stderr,"GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
      if (abort) exit(code);
   }
}

//error function for dynamic parallelism
#define cdpErrchk(ans) { cdpAssert((ans), __FILE__, __LINE__); }
__device__ inline void cdpAssert(cudaError_t code, const char *file, int line, bool abort=true)
{
   if (code != cudaSuccess)
   {
      printf("GPU kernel assert: %s %s %d\n", cudaGetErrorString(code), file, line);
      if (abort) assert(0);
   }
}

class TsdfHandler {
public:
  explicit TsdfHandler(int blocksPerSide);
  ~TsdfHandler();
  void integrate(const Point *points_h, int n, Point sensor);
  void checksum();
private:
  int side, numBlocks;
  Voxel *voxels_d;
  HashEntry *entries_d;
  int *visible_d;
};
