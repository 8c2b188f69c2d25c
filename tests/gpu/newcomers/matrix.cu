
// Multiplies a matrix of small whole numbers, so that sums don't depend on their order, and compares with the CPU.

#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

int main() {
    const int rows = 8192;
    std::vector<int> begins(rows + 1), col;
    std::vector<float> value, x(rows), y(rows), expected(rows);
    for (int row = 0; row < rows; ++row) {
        x[row] = float(row % 13);
        for (int k = 0; k < (row % 100 == 0 ? 1000 : row % 40); ++k) {
            col.push_back((row * 31 + k * 17) % rows);
            value.push_back(float(k % 7));
        }
        begins[row + 1] = int(col.size());
    }
    for (int row = 0; row < rows; ++row)
        for (int k = begins[row]; k < begins[row + 1]; ++k) expected[row] += value[k] * x[col[k]];
    int *d_begins, *d_col;
    float *d_value, *d_x, *d_y;
    cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 65536);
    cudaMalloc(&d_begins, begins.size() * sizeof(int));
    cudaMalloc(&d_col, col.size() * sizeof(int));
    cudaMalloc(&d_value, value.size() * sizeof(float));
    cudaMalloc(&d_x, rows * sizeof(float));
    cudaMalloc(&d_y, rows * sizeof(float));
    cudaMemcpy(d_begins, begins.data(), begins.size() * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(d_col, col.data(), col.size() * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(d_value, value.data(), value.size() * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(d_x, x.data(), rows * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemset(d_y, 0, rows * sizeof(float));
    multiply(d_begins, d_col, d_value, d_x, d_y, rows);
    cudaMemcpy(y.data(), d_y, rows * sizeof(float), cudaMemcpyDeviceToHost);
    std::printf("%s\n", y == expected ? "right" : "wrong");
    return y == expected ? 0 : 1;
}
