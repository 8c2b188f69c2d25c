#include <cstdlib>
#include <vector>
#include "tsdf_blocks.cuh"

const int threadsPerCudaBlock = 128;

//fuse one observation into the voxels of one block
__global__ void updateVoxelsKernel(HashEntry entry, Voxel *voxels, Point p, Point sensor, int truncation){
  int v = threadIdx.x + blockIdx.x * blockDim.x;
  if(v >= VOXELS_PER_BLOCK) return;
  int x = entry.position.x * VOXEL_BLOCK_SIZE + v % VOXEL_BLOCK_SIZE;
  int y = entry.position.y * VOXEL_BLOCK_SIZE + (v / VOXEL_BLOCK_SIZE) % VOXEL_BLOCK_SIZE;
  int z = entry.position.z * VOXEL_BLOCK_SIZE + v / (VOXEL_BLOCK_SIZE * VOXEL_BLOCK_SIZE);
  int toVoxel = abs(x - sensor.x) + abs(y - sensor.y) + abs(z - sensor.z);
  int toPoint = abs(p.x - sensor.x) + abs(p.y - sensor.y) + abs(p.z - sensor.z);
  int d = toPoint - toVoxel;
  if(d > truncation || d < -truncation) return;
  Voxel *voxel = &voxels[entry.pointer * VOXELS_PER_BLOCK + v];
  atomicAdd(&voxel->sdf, d);
  atomicAdd(&voxel->weight, 1);
}

//the neighbours of a surface block only get weight
__global__ void touchBlockKernel(Voxel *voxels, int pointer, int count){
  int v = threadIdx.x + blockIdx.x * blockDim.x;
  if(v < count) atomicAdd(&voxels[pointer * VOXELS_PER_BLOCK + v].weight, 1);
}

__global__ void integratePointsKernel(HashEntry *entries, Voxel *voxels, Point *points, int n, int side, Point sensor, int *visible){
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if(i >= n) return;
  Point p = points[i];
  int bx = p.x / VOXEL_BLOCK_SIZE, by = p.y / VOXEL_BLOCK_SIZE, bz = p.z / VOXEL_BLOCK_SIZE;
  if(bx < 0 || by < 0 || bz < 0 || bx >= side || by >= side || bz >= side) return;
  int slot = (bz * side + by) * side + bx;
  atomicAdd(&visible[slot], 1);

  int numCudaBlocks = VOXELS_PER_BLOCK / threadsPerCudaBlock;
  updateVoxelsKernel<<<numCudaBlocks, threadsPerCudaBlock>>>(entries[slot], voxels, p, sensor, 20);
  cdpErrchk(cudaPeekAtLastError());

  if(bx + 1 < side && p.x % VOXEL_BLOCK_SIZE == VOXEL_BLOCK_SIZE - 1){
    int count = VOXEL_BLOCK_SIZE * (1 + p.y % VOXEL_BLOCK_SIZE);
    touchBlockKernel<<<1, count>>>(voxels, entries[slot + 1].pointer, count);
    cdpErrchk(cudaPeekAtLastError());
  }
}

TsdfHandler::TsdfHandler(int blocksPerSide) : side(blocksPerSide), numBlocks(blocksPerSide * blocksPerSide * blocksPerSide) {
  std::vector<HashEntry> e(numBlocks);
  for(int i = 0; i < numBlocks; ++i){
    e[i].position.x = i % side; e[i].position.y = (i / side) % side; e[i].position.z = i / (side * side);
    e[i].pointer = (i * 7) % numBlocks;
  }
  gpuErrchk(cudaMalloc(&voxels_d, sizeof(Voxel) * numBlocks * VOXELS_PER_BLOCK));
  gpuErrchk(cudaMemset(voxels_d, 0, sizeof(Voxel) * numBlocks * VOXELS_PER_BLOCK));
  gpuErrchk(cudaMalloc(&entries_d, sizeof(HashEntry) * numBlocks));
  gpuErrchk(cudaMemcpy(entries_d, e.data(), sizeof(HashEntry) * numBlocks, cudaMemcpyHostToDevice));
  gpuErrchk(cudaMalloc(&visible_d, sizeof(int) * numBlocks));
  gpuErrchk(cudaMemset(visible_d, 0, sizeof(int) * numBlocks));
}

TsdfHandler::~TsdfHandler(){
  cudaFree(voxels_d); cudaFree(entries_d); cudaFree(visible_d);
}

void TsdfHandler::integrate(const Point *points_h, int n, Point sensor){
  Point *points_d;
  gpuErrchk(cudaMalloc(&points_d, sizeof(Point) * n));
  gpuErrchk(cudaMemcpy(points_d, points_h, sizeof(Point) * n, cudaMemcpyHostToDevice));
  int numCudaBlocks = n / threadsPerCudaBlock + 1;
  integratePointsKernel<<<numCudaBlocks, threadsPerCudaBlock>>>(entries_d, voxels_d, points_d, n, side, sensor, visible_d);
  gpuErrchk(cudaPeekAtLastError());
  gpuErrchk(cudaDeviceSynchronize());
  cudaFree(points_d);
}

void TsdfHandler::checksum(){
  std::vector<Voxel> v(numBlocks * VOXELS_PER_BLOCK);
  gpuErrchk(cudaMemcpy(v.data(), voxels_d, sizeof(Voxel) * v.size(), cudaMemcpyDeviceToHost));
  long long s = 0, w = 0;
  for(size_t i = 0; i < v.size(); ++i){ s += (long long)v[i].sdf * (i % 23 + 1); w += v[i].weight; }
  printf("weight %lld checksum %lld\n", w, s);
}

int main(){
  TsdfHandler handler(8);
  Point sensor = {32, 32, 0};
  std::vector<Point> pts;
  for(int i = 0; i < 1500; ++i){
    Point p = { (i * 29) % 64, (i * 53) % 64, 20 + (i * i) % 30 };
    pts.push_back(p);
  }
  handler.integrate(pts.data(), pts.size(), sensor);
  handler.checksum();
  return 0;
}
