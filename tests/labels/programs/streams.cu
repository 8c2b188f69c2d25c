// Streams, waits and mutual recursion.

__global__ void leaf(int* data, int i) { data[i] += 1; }

__global__ void many_streams(int* data, int n) {
    cudaStream_t streams[4];
    for (int s = 0; s < 4; ++s) cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking);
    for (int i = 0; i < n; ++i) {
        leaf<<<1, 32, 0, streams[i % 4]>>>(data, i);
    }
    for (int s = 0; s < 4; ++s) cudaStreamDestroy(streams[s]);
}

__global__ void null_by_name(int* data) {
    cudaStream_t stream = 0;
    if (threadIdx.x == 0) leaf<<<1, 32, 0, stream>>>(data, blockIdx.x);
    if (threadIdx.x == 1) leaf<<<1, 32, 32 * sizeof(int), cudaStreamPerThread>>>(data, blockIdx.x);
}

#ifdef WITH_DEVICE_SYNC
__global__ void waits(int* data, int n) {
    if (threadIdx.x == 0) {
        leaf<<<n, 32>>>(data, 0);
        cudaDeviceSynchronize();
        leaf<<<n, 32>>>(data, 1);
    }
}
#endif

__global__ void odd(int* data, int n);

__global__ void even(int* data, int n) {
    if (n == 0) return;
    if (threadIdx.x == 0) odd<<<1, 64, 0, cudaStreamTailLaunch>>>(data, n - 1);
}

__global__ void odd(int* data, int n) {
    if (threadIdx.x == 0) even<<<1, 64, 0, cudaStreamTailLaunch>>>(data, n - 1);
}

// It launches what recurs, and is not part of it.
__global__ void start(int* data) {
    even<<<1, 64>>>(data, 8);
}

int main() {
    int* data;
    cudaMalloc(&data, 1024 * sizeof(int));
    start<<<1, 1>>>(data);
    many_streams<<<1, 1>>>(data, 100);
    cudaDeviceSynchronize();
}
