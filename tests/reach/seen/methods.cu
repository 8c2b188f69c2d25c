// The child works through a view whose methods say which element a thread has.
#include <cstdio>
#include <cuda_runtime.h>

template <typename T> class Span {
public:
    __host__ __device__ Span(T *p, int n) : ptr(p), len(n) {}
    __device__ int first() const { return blockIdx.x * blockDim.x + threadIdx.x; }
    __device__ int step() const { return gridDim.x * blockDim.x; }
    __host__ __device__ int size() const { return len; }
    __host__ __device__ T &operator[](int i) const { return ptr[i]; }
private:
    T *ptr;
    int len;
};

__global__ void add_to_row(Span<float> row, float what) {
    for (int i = row.first(); i < row.size(); i += row.step()) row[i] += what;
}

__global__ void add_to_rows(float *m, const float *what, const int *lengths, int rows, int pitch) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) {
        Span<float> row(m + r * pitch, lengths[r]);
        if (lengths[r] > 0) add_to_row<<<(lengths[r] + 31) / 32, 32>>>(row, what[r]);
    }
}

int main() {
    const int rows = 12, pitch = 48;
    float *m, *what;
    int *lengths;
    cudaMallocManaged(&m, rows * pitch * sizeof(float));
    cudaMallocManaged(&what, rows * sizeof(float));
    cudaMallocManaged(&lengths, rows * sizeof(int));
    for (int i = 0; i < rows * pitch; ++i) m[i] = i % 3;
    for (int r = 0; r < rows; ++r) { what[r] = r; lengths[r] = 4 * r; }
    add_to_rows<<<1, 32>>>(m, what, lengths, rows, pitch);
    cudaDeviceSynchronize();
    double sum = 0;
    for (int i = 0; i < rows * pitch; ++i) sum += m[i] * (i % 11);
    printf("%g\n", sum);
}
