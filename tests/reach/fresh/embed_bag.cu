// EmbeddingBag forward + a weighted variant, written around a generic
// "parallel for" kernel that takes device lambdas.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace ml {

template <typename F>
__global__ void parallel_for(int n, F body)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        body(i);
}

template <typename F>
__device__ cudaError_t dispatch(int n, F body)
{
    constexpr int block = 64;
    parallel_for<<<(n + block - 1) / block, block>>>(n, body);
    return cudaGetLastError();
}

struct Bags {
    const int *offsets;      // bags + 1
    const int *ids;
    const float *weights;    // may be null
    int count;
};

enum class Mode { Sum, Mean };

template <Mode mode>
__global__ void embedding_bag(Bags bags, const float *table, int dim, float *out, int *errors)
{
    const int b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b >= bags.count) return;

    const int first = bags.offsets[b];
    const int last = bags.offsets[b + 1];
    float *row = out + static_cast<size_t>(b) * dim;
    if (first == last) {
        for (int d = 0; d < dim; ++d) row[d] = 0.f;
        return;
    }
    const float scale = mode == Mode::Mean ? 1.f / (last - first) : 1.f;
    auto gather = [=](int d) {
        float acc = 0.f;
        for (int k = first; k < last; ++k) {
            float w = bags.weights ? bags.weights[k] : 1.f;
            acc += w * table[static_cast<size_t>(bags.ids[k]) * dim + d];
        }
        row[d] = acc * scale;
    };
    if (dispatch(dim, gather) != cudaSuccess) atomicAdd(errors, 1);
}

}  // namespace ml

#define CUDA_OK(expr) ml_check((expr), #expr, __LINE__)
static void ml_check(cudaError_t e, const char *what, int line)
{
    if (e == cudaSuccess) return;
    std::fprintf(stderr, "[%d] %s: %s\n", line, what, cudaGetErrorString(e));
    std::abort();
}

template <typename T>
struct DeviceVector {
    T *ptr = nullptr;
    size_t n;
    explicit DeviceVector(size_t n_) : n(n_) { CUDA_OK(cudaMalloc(&ptr, n * sizeof(T))); CUDA_OK(cudaMemset(ptr, 0, n * sizeof(T))); }
    explicit DeviceVector(const std::vector<T> &v) : DeviceVector(v.size())
    {
        CUDA_OK(cudaMemcpy(ptr, v.data(), n * sizeof(T), cudaMemcpyHostToDevice));
    }
    DeviceVector(const DeviceVector &) = delete;
    ~DeviceVector() { cudaFree(ptr); }
    std::vector<T> host() const
    {
        std::vector<T> v(n);
        CUDA_OK(cudaMemcpy(v.data(), ptr, n * sizeof(T), cudaMemcpyDeviceToHost));
        return v;
    }
};

int main()
{
    const int vocab = 5000, dim = 96, bags = 1600;
    std::vector<float> table(static_cast<size_t>(vocab) * dim);
    for (size_t i = 0; i < table.size(); ++i) table[i] = ((i * 2654435761u >> 7) % 1000) / 500.f - 1.f;
    std::vector<int> off{0}, ids;
    std::vector<float> w;
    for (int b = 0; b < bags; ++b) {
        int len = b % 17 == 0 ? 0 : (b * 31) % 60;
        for (int k = 0; k < len; ++k) {
            ids.push_back((b * 7919 + k * 104729) % vocab);
            w.push_back(0.5f + (k % 5) * 0.25f);
        }
        off.push_back(static_cast<int>(ids.size()));
    }

    DeviceVector<float> dTable(table), dW(w), dSum(static_cast<size_t>(bags) * dim), dMean(static_cast<size_t>(bags) * dim);
    DeviceVector<int> dOff(off), dIds(ids), dErr(1);
    ml::Bags weighted{dOff.ptr, dIds.ptr, dW.ptr, bags}, plain{dOff.ptr, dIds.ptr, nullptr, bags};

    ml::embedding_bag<ml::Mode::Sum><<<(bags + 127) / 128, 128>>>(weighted, dTable.ptr, dim, dSum.ptr, dErr.ptr);
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());
    ml::embedding_bag<ml::Mode::Mean><<<(bags + 127) / 128, 128>>>(plain, dTable.ptr, dim, dMean.ptr, dErr.ptr);
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());

    auto sum = dSum.host(), mean = dMean.host();
    double worst = dErr.host()[0] ? 1e30 : 0;
    for (int b = 0; b < bags; ++b)
        for (int d = 0; d < dim; ++d) {
            double s = 0, m = 0;
            for (int k = off[b]; k < off[b + 1]; ++k) {
                double t = table[static_cast<size_t>(ids[k]) * dim + d];
                s += w[k] * t;
                m += t;
            }
            if (off[b + 1] > off[b]) m /= off[b + 1] - off[b];
            worst = std::fmax(worst, std::fabs(s - sum[static_cast<size_t>(b) * dim + d]));
            worst = std::fmax(worst, std::fabs(m - mean[static_cast<size_t>(b) * dim + d]));
        }
    std::printf(worst < 1e-3 ? "OK\n" : "difference %g\n", worst);
    return worst < 1e-3 ? 0 : 1;
}
