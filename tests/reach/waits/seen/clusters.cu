#include <stdio.h>
#include <cuda_runtime.h>
#define THREADS_PER_BLOCK 32

__global__ void kernel_init(unsigned int* p, unsigned int n){
    int i=blockIdx.x*blockDim.x+threadIdx.x;
    if(i<n) p[i]=0;
}

__global__ void kernel_bfs_child(const unsigned int* V,const unsigned int* E,unsigned int* Fa,unsigned int* Xa,unsigned int* workToDo,unsigned int n){
    int i=blockIdx.x*blockDim.x+threadIdx.x;
    if(i<n && Fa[i]==1 && Xa[i]==0){
        Xa[i]=1;
        for(unsigned int e=V[i];e<V[i+1];e++)
            if(!Xa[E[e]]){
                Fa[E[e]]=1;
                *workToDo=1;
            }
    }
}

__global__ void kernel_label(unsigned int* visited,const unsigned int* Xa,unsigned int* map,int cluster,unsigned int n){
    int i=blockIdx.x*blockDim.x+threadIdx.x;
    if(i<n && Xa[i]==1){
        visited[i]=1;
        map[i]=cluster;
    }
}

__global__ void kernel_main(const unsigned int* V,const unsigned int* E,unsigned int* visited,unsigned int* Fa,unsigned int* Xa,unsigned int* workToDo,unsigned int* map,unsigned int n){
    int n_grid_dim=(n+THREADS_PER_BLOCK-1)/THREADS_PER_BLOCK;
    kernel_init<<<n_grid_dim,THREADS_PER_BLOCK>>>(visited,n);
    cudaDeviceSynchronize();
    int cluster=1;
    for(int v=0;v<n;v++){
        if(visited[v]==0){
            kernel_init<<<n_grid_dim,THREADS_PER_BLOCK>>>(Fa,n);
            kernel_init<<<n_grid_dim,THREADS_PER_BLOCK>>>(Xa,n);
            cudaDeviceSynchronize();
            Fa[v]=1;
            *workToDo=1;
            while(*workToDo==1){
                *workToDo=0;
                kernel_bfs_child<<<n_grid_dim,THREADS_PER_BLOCK>>>(V,E,Fa,Xa,workToDo,n);
                cudaDeviceSynchronize();
            }
            kernel_label<<<n_grid_dim,THREADS_PER_BLOCK>>>(visited,Xa,map,cluster,n);
            cudaDeviceSynchronize();
            cluster++;
        }
    }
}

int main(){
    const unsigned int n=24;
    unsigned int *V,*E,*visited,*Fa,*Xa,*work,*map;
    cudaMallocManaged(&V,(n+1)*4); cudaMallocManaged(&E,2*n*4); cudaMallocManaged(&visited,n*4);
    cudaMallocManaged(&Fa,n*4); cudaMallocManaged(&Xa,n*4); cudaMallocManaged(&work,4); cudaMallocManaged(&map,n*4);
    for(unsigned int i=0;i<=n;i++) V[i]=2*i;
    for(unsigned int i=0;i<n;i++){ E[2*i]=i/6*6+(i+1)%6; E[2*i+1]=i/6*6+(i+5)%6; }
    kernel_main<<<1,1>>>(V,E,visited,Fa,Xa,work,map,n);
    cudaDeviceSynchronize();
    for(unsigned int i=0;i<n;i++) printf("%u ",map[i]);
    printf("\n");
}
