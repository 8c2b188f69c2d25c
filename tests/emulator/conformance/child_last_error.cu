// The last error of device code: kept until it is read by cudaGetLastError, one for each thread.
#include "conformance.cuh"

__global__ void child(int* ran) { atomicAdd(ran, 1); }

__global__ void parent(int* errors, int* ran) {
    int t = threadIdx.x;
    int* mine = errors + 6 * t;
    if (t % 2 == 0) child<<<1, 2000>>>(ran);
    mine[0] = cudaPeekAtLastError();
    child<<<1, 1>>>(ran);   // does not clear the error
    mine[1] = cudaPeekAtLastError();
    mine[2] = cudaGetLastError();
    mine[3] = cudaGetLastError();
    child<<<1, 1>>>(ran);
    mine[4] = cudaGetLastError();
    if (t == 3) child<<<1, 0>>>(ran);
    __syncthreads();
    mine[5] = cudaPeekAtLastError();
}

int main() {
    Array<int> errors(4 * 6), ran(1);
    parent<<<1, 4>>>(errors, ran);
    const char* names[] = {"after the launch", "after another", "read", "read again", "after a third", "another thread's"};
    for (int t = 0; t < 4; ++t) {
        show("thread", t);
        for (int i = 0; i < 6; ++i) show_error(names[i], errors.read()[6 * t + i]);
    }
    ran.show("ran");
    show_error("host", cudaGetLastError());
}
