// Launches in device functions, templates and members.

template <typename T>
__global__ void scale(T* data, int n, T factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= factor;
}

template <typename T, int BLOCK>
__device__ void scale_rows(T* data, int columns, T factor, cudaStream_t stream) {
    scale<T><<<(columns + BLOCK - 1) / BLOCK, BLOCK, 0, stream>>>(data, columns, factor);
}

__global__ void rows(float* matrix, int columns, float factor) {
    if (threadIdx.x == 0) {
        cudaStream_t mine;
        cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking);
        scale_rows<float, 128>(matrix + blockIdx.x * columns, columns, factor, mine);
        cudaStreamDestroy(mine);
    }
}

struct View {
    double* data;
    int size;
    __device__ bool empty() const { return size == 0; }
    __device__ int blocks(int threads) const { return (size + threads - 1) / threads; }
};

__global__ void by_view(View view, double factor) {
    if (view.empty()) return;
    if (threadIdx.x == 0) scale<<<view.blocks(64), 64>>>(view.data, view.size, factor);
}

// The helper is given a thread's own value by one caller and a uniform one by the other.
__device__ void scale_part(double* data, int begin, int count) {
    scale<<<1, 32>>>(data + begin, count, 2.0);
}

__global__ void parts(double* data, const int* __restrict__ counts, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) scale_part(data, i * 32, counts[i]);
}

__global__ void whole(double* data, int n) {
    if (threadIdx.x == 0) scale_part(data, 0, n);
}

__device__ int clamp_to(int value, int most) { return value < most ? value : most; }

__device__ int own_share(int n) { return n / (threadIdx.x + 1); }

__global__ void through_helpers(double* data, int n) {
    scale<<<1, 32>>>(data, clamp_to(n, 32), 1.5);
    scale<<<1, 32>>>(data, own_share(n), 1.5);
}
