#include <stdio.h>
#include <cuda_runtime.h>

__global__ void harmonics(float step_size, int* BIndexes, float* BForceC, float* atomcoord, float* atomforces, int n){
int i = blockIdx.x * blockDim.x + threadIdx.x;
if(i < n){
int a = BIndexes[3*i]; int b = BIndexes[3*i+1]; int t = BIndexes[3*i+2];
float d = atomcoord[a] - atomcoord[b];
atomicAdd(&atomforces[a], -BForceC[t] * d);
atomicAdd(&atomforces[b], BForceC[t] * d);
}
}

__global__ void angle_forces(float step_size, int* AIndexes, float* AForceC, float* atomcoord, float* atomforces, int n){
int i = blockIdx.x * blockDim.x + threadIdx.x;
if(i < n){
int a = AIndexes[4*i]; int b = AIndexes[4*i+1]; int c = AIndexes[4*i+2]; int t = AIndexes[4*i+3];
float d = atomcoord[a] - 2.0f * atomcoord[b] + atomcoord[c];
atomicAdd(&atomforces[b], AForceC[t] * d);
}
}

__global__ void force_step(float step_size, float* atomcoord, float* atomforces, int* BIH, int BIH_size, float* BForceC, int* AIH, int AIH_size, float* AForceC){

int default_threads = 32;

int BIH_blocks = (BIH_size/3 + default_threads - 1) / default_threads;
int AIH_blocks = (AIH_size/4 + default_threads - 1) / default_threads;

angle_forces<<<AIH_blocks, default_threads, 0, cudaStreamFireAndForget>>> (step_size, AIH, AForceC, atomcoord, atomforces, AIH_size / 4);
harmonics<<<BIH_blocks, default_threads, 0, cudaStreamFireAndForget>>>(step_size, BIH, BForceC, atomcoord, atomforces, BIH_size / 3);

}

__global__ void move_step(float step_size, float* atomcoord, float* atomvel, float* atomforces, int n){
int i = blockIdx.x * blockDim.x + threadIdx.x;
if(i < n){
atomvel[i] += step_size * atomforces[i];
atomcoord[i] += step_size * atomvel[i];
atomforces[i] = 0;
}
}

int main(){
int n = 64, nb = 60, na = 50;
int *B, *A; float *K, *x, *v, *f;
cudaMallocManaged(&B, 3 * nb * sizeof(int));
cudaMallocManaged(&A, 4 * na * sizeof(int));
cudaMallocManaged(&K, 4 * sizeof(float));
cudaMallocManaged(&x, n * sizeof(float));
cudaMallocManaged(&v, n * sizeof(float));
cudaMallocManaged(&f, n * sizeof(float));
for(int i = 0; i < nb; i++){ B[3*i] = i; B[3*i+1] = i + 1; B[3*i+2] = i % 4; }
for(int i = 0; i < na; i++){ A[4*i] = i; A[4*i+1] = i + 1; A[4*i+2] = i + 2; A[4*i+3] = i % 4; }
for(int i = 0; i < 4; i++) K[i] = 1 + i;
for(int i = 0; i < n; i++){ x[i] = (i * 5) % 8; v[i] = 0; f[i] = 0; }
for(int step = 0; step < 2; step++){
force_step<<<1, 1>>>(0.5f, x, f, B, 3 * nb, K, A, 4 * na, K);
move_step<<<1, 64>>>(0.5f, x, v, f, n);
}
cudaDeviceSynchronize();
double s = 0;
for(int i = 0; i < n; i++) s += x[i] * (i % 3 + 1);
printf("%.3f\n", s);
return 0;
}
