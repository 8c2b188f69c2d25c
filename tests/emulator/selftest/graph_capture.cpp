// expect: pass
#include "selftest.hpp"
__global__ void k(int* p, const int* from) { *p += *from; }
int main() {
    int* p = device_array<int>(1);
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaDeviceSynchronize();
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    int* memory;
    cudaMallocAsync(&memory, 4, stream);
    cudaMemsetAsync(memory, 1, 4, stream);
    LAUNCH(k, 1, 1, 0, stream)(p, memory);
    cudaFreeAsync(memory, stream);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&executable, graph);
    cudaGraphDestroy(graph);
    for (int i = 0; i < 3; ++i) cudaGraphLaunch(executable, stream);
    cudaStreamSynchronize(stream);
    cudaGraphExecDestroy(executable);
    return fetch(p) == 3 * 0x01010101 ? 0 : 1;
}
