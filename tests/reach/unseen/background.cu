#include <cstdio>
#include <cmath>
#include <cuda_runtime.h>

typedef unsigned int uint;

namespace Radar {
    __device__ inline float satMin(float value, float low) { return value < low ? low : value; }

    // One column block of the scan
    __global__ void removeBG_child(const float* inBScan, float* outBScan, const float* bg, uint BScanWidth, uint BScanHeigth, uint startCol, uint startRow){
        uint tx = threadIdx.x, ty = threadIdx.y;
        uint bx = blockIdx.x, by = blockIdx.y;

        uint col = startCol + bx*blockDim.x + tx;
        uint row = startRow + by*blockDim.y + ty;
        uint idx = row*BScanWidth + col;
        if( (row<BScanHeigth) && (col<BScanWidth))
            outBScan[idx] = satMin(inBScan[idx] - bg[col],0);
    }

    __global__ void removeBG_parent(const float* inBScan, float* outBScan, const float* bg, uint BScanWidth, uint BScanHeigth, uint BlockWidth){
        uint tx = threadIdx.x;

        // row and columns where blocks will be taken vertically
        dim3 dimGrid(1, ceil(BScanHeigth/(float)BlockWidth), 1);
        dim3 dimBlock(BlockWidth, BlockWidth, 1);

        removeBG_child<<<dimGrid, dimBlock>>>(inBScan, outBScan, bg, BScanWidth, BScanHeigth, tx*BlockWidth, 0);
    }

    void removeBackground(float* in, float* out, float* bg, uint width, uint height){
        uint bWidth = 8;
        uint gWidth = (width + bWidth - 1)/bWidth;
        dim3 dimBlock(gWidth, 1, 1);
        dim3 dimGrid(1, 1, 1);
        removeBG_parent<<<dimGrid, dimBlock>>>(in, out, bg, width, height, bWidth);
        cudaDeviceSynchronize();
    }
}

int main(){
    const uint width = 50, height = 30;
    float *in, *out, *bg;
    cudaMallocManaged(&in, width*height*sizeof(float));
    cudaMallocManaged(&out, width*height*sizeof(float));
    cudaMallocManaged(&bg, width*sizeof(float));
    for(uint i=0; i<width*height; i++) in[i] = (i*7)%23;
    for(uint i=0; i<width; i++) bg[i] = i%11;
    Radar::removeBackground(in, out, bg, width, height);
    double s = 0;
    for(uint i=0; i<width*height; i++) s += out[i]*((i%5)+1);
    printf("%.1f\n", s);
    return 0;
}
