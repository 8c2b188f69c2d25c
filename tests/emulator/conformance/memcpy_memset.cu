// cudaMalloc, cudaMemcpy in all directions, parts of arrays, cudaMemset.
#include "conformance.cuh"

__global__ void twice(int* data, int count) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < count) data[t] *= 2;
}

int main() {
    const int count = 100;
    int host[count], back[count];
    for (int i = 0; i < count; ++i) host[i] = i;
    int *a, *b;
    CHECK(cudaMalloc(&a, sizeof host));
    CHECK(cudaMalloc(&b, sizeof host));
    CHECK(cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice));
    twice<<<4, 32>>>(a, count);
    CHECK(cudaMemset(b, 0xff, sizeof host));
    CHECK(cudaMemcpy(b + 10, a + 50, 20 * sizeof(int), cudaMemcpyDeviceToDevice));
    CHECK(cudaMemset(b + 30, 0, 5 * sizeof(int) + 1));
    CHECK(cudaMemcpy(back, b, sizeof host, cudaMemcpyDeviceToHost));
    show("parts", back, 40);
    conformance::show_digest("all", back, count);
    CHECK(cudaMemcpy(back, a, sizeof host, cudaMemcpyDefault));
    show("beginning", back, 5);
    CHECK(cudaMemcpy(back + 50, host, 50 * sizeof(int), cudaMemcpyHostToHost));
    conformance::show_digest("mixed", back, count);
    CHECK(cudaMemcpy(back, a, 0, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    CHECK(cudaFree(nullptr));
}
