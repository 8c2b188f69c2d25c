#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#define ROWS 40
#define BLOCKSIZEX 16
#define BLOCKSIZEY 32

__global__ void compute_on_gpu_child(int* a, int cols, int* b, int coeff);

__global__ void compute_on_gpu(int* a, int rows, int* colOffsets, int *cols, int* b){
  int i = blockIdx.x*blockDim.x+threadIdx.x;
  int coeff;
  if(i<rows){
    coeff = i*cols[i];
    compute_on_gpu_child<<<((cols[i]-1)/BLOCKSIZEY+1), BLOCKSIZEY>>>(a + colOffsets[i], cols[i], b + colOffsets[i], coeff);
  }
}

__global__ void compute_on_gpu_child(int* a, int cols, int* b, int coeff){
  int i = blockIdx.x*blockDim.x+threadIdx.x;
  if(i<cols)
    *(b + i) = *(a + i) + coeff;
}

int main(int argc, char *argv[]) {
  int total = 0;
  int *colOffsets, *cols, *a, *b;
  cudaMallocManaged(&cols, ROWS*sizeof(int));
  cudaMallocManaged(&colOffsets, ROWS*sizeof(int));
  for(int i=0; i<ROWS; i++){
    cols[i] = 1 + (i*13)%70;
    colOffsets[i] = total;
    total += cols[i];
  }
  cudaMallocManaged(&a, total*sizeof(int));
  cudaMallocManaged(&b, total*sizeof(int));
  for(int i=0; i<total; i++)
    a[i] = i%9;
  int gridsize = (ROWS-1)/BLOCKSIZEX+1;
  compute_on_gpu<<<gridsize, BLOCKSIZEX>>>(a, ROWS, colOffsets, cols, b);
  cudaError_t err = cudaDeviceSynchronize();
  if(err != cudaSuccess){
    fprintf(stderr, "%s\n", cudaGetErrorString(err));
    return 1;
  }
  long sum = 0;
  for(int i=0; i<total; i++)
    sum = sum*7 + b[i];
  printf("%ld\n", sum);
  cudaFree(a); cudaFree(b); cudaFree(cols); cudaFree(colOffsets);
  return 0;
}
