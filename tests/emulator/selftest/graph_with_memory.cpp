// expect: pass
// CUDA makes one executable graph at a time of a graph with memory of its own, and any number of others.
#include "selftest.hpp"
__global__ void k(int* out) { *out = 1; }
int main() {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    int wrong = 0;
    for (int memory = 0; memory < 2; ++memory) {
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
        int* place = device_array<int>(1);
        if (memory) cudaMallocAsync(&place, sizeof(int), stream);
        LAUNCH(k, 1, 1, 0, stream)(place);
        if (memory) cudaFreeAsync(place, stream);
        cudaGraph_t graph;
        cudaStreamEndCapture(stream, &graph);
        cudaGraphExec_t first, second;
        wrong += cudaGraphInstantiate(&first, graph) != cudaSuccess;
        wrong += cudaGraphInstantiate(&second, graph) != (memory ? cudaErrorNotSupported : cudaSuccess);
        if (!memory) cudaGraphExecDestroy(second);
        cudaGraphExecDestroy(first);
        wrong += cudaGraphInstantiate(&second, graph) != cudaSuccess;
        cudaGraphExecDestroy(second);
    }
    return wrong == 0 ? 0 : 1;
}
