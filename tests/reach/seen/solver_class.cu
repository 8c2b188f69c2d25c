#include <cstdio>
#include <cuda_runtime.h>

namespace fem {

class Mesh {
public:
    int *elem_begin;
    int *elem_node;
    float *value;
    float *out;
    int n_elem;

    __host__ __device__ int nodes(int e) const { return elem_begin[e + 1] - elem_begin[e]; }
    __device__ void assemble(int e);
};

__global__ void assembleElement(Mesh mesh, int e, int n) {
    for (int k = threadIdx.x; k < n; k += blockDim.x) {
        int node = mesh.elem_node[mesh.elem_begin[e] + k];
        atomicAdd(&mesh.out[node], mesh.value[e]);
    }
}

__device__ void Mesh::assemble(int e) {
    const int n = nodes(e);
    if (n > 0)
        assembleElement<<<1, 32>>>(*this, e, n);
}

__global__ void assembleAll(Mesh mesh) {
    const int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e < mesh.n_elem)
        mesh.assemble(e);
}

}  // namespace fem

int main() {
    fem::Mesh mesh;
    mesh.n_elem = 40;
    cudaMallocManaged(&mesh.elem_begin, (mesh.n_elem + 1) * sizeof(int));
    mesh.elem_begin[0] = 0;
    for (int e = 0; e < mesh.n_elem; e++)
        mesh.elem_begin[e + 1] = mesh.elem_begin[e] + e % 6;
    int total = mesh.elem_begin[mesh.n_elem];
    cudaMallocManaged(&mesh.elem_node, total * sizeof(int));
    cudaMallocManaged(&mesh.value, mesh.n_elem * sizeof(float));
    cudaMallocManaged(&mesh.out, 50 * sizeof(float));
    for (int i = 0; i < total; i++) mesh.elem_node[i] = (i * 7) % 50;
    for (int e = 0; e < mesh.n_elem; e++) mesh.value[e] = e % 9;
    for (int i = 0; i < 50; i++) mesh.out[i] = 0;
    fem::assembleAll<<<2, 32>>>(mesh);
    cudaDeviceSynchronize();
    double s = 0;
    for (int i = 0; i < 50; i++) s += mesh.out[i] * (i + 1);
    printf("%.1f\n", s);
}
