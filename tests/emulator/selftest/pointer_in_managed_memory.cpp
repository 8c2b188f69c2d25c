// expect: pass
#include "selftest.hpp"
struct World { int* p; };
__global__ void k(World* w) { w->p[0] += 7; }
int main() {
    World* w;
    cudaMallocManaged(&w, sizeof(World));
    cudaMallocManaged(&w->p, 4);
    w->p[0] = 1;
    LAUNCH(k, 1, 1)(w);
    cudaDeviceSynchronize();
    int result = w->p[0];
    cudaFree(w->p);
    cudaFree(w);
    return result == 8 ? 0 : 1;
}
