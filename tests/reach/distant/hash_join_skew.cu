// Probe side of a hash join whose keys are skewed. Matches of heavy keys are produced by
// a generic for_each grid which gets a lambda.
#include <cstdint>
#include <cstdio>
#include <vector>
#include <algorithm>
#include <stdexcept>
#include <string>

namespace db {

using row_id = std::uint32_t;

inline void throw_on_error(cudaError_t e, const char *where)
{
    if (e != cudaSuccess) throw std::runtime_error(std::string(where) + ": " + cudaGetErrorString(e));
}

namespace device {

template <typename Fn>
__global__ void for_each_n_kernel(std::uint32_t n, Fn fn)
{
    std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) fn(i);
}

template <typename Fn>
__device__ void for_each_n(std::uint32_t n, std::uint32_t cutoff, Fn fn)
{
    if (n < cutoff) {
        for (std::uint32_t i = 0; i < n; ++i) fn(i);
    } else {
        constexpr auto block = 128u;
        auto grid = (n + block - 1u) / block;
        for_each_n_kernel<<<grid, block>>>(n, fn);
    }
}

} // namespace device

struct bucket_table {            // build side grouped by hash bucket
    std::uint32_t mask;
    const std::uint32_t *begin;  // mask + 2
    const std::uint32_t *key;
    const row_id *row;

    __host__ __device__ static std::uint32_t hash(std::uint32_t k)
    {
        k ^= k >> 16; k *= 0x7feb352dU; k ^= k >> 15; k *= 0x846ca68bU; k ^= k >> 16;
        return k;
    }
};

struct match { row_id left, right; };

__global__ void probe(bucket_table t, const std::uint32_t *keys, std::uint32_t n, match *out,
                      unsigned long long *out_size)
{
    for (auto i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const auto key = keys[i];
        const auto b = t.hash(key) & t.mask;
        const auto first = t.begin[b], last = t.begin[b + 1];
        auto emit = [=](std::uint32_t k) {
            if (t.key[first + k] == key) {
                auto pos = atomicAdd(out_size, 1ull);
                out[pos] = match{i, t.row[first + k]};
            }
        };
        device::for_each_n(last - first, 96u, emit);
    }
}

template <typename T>
class buffer {
public:
    explicit buffer(std::size_t n) : n_(n) { throw_on_error(cudaMalloc(&p_, n * sizeof(T)), "cudaMalloc"); }
    explicit buffer(const std::vector<T> &v) : buffer(v.size())
    { throw_on_error(cudaMemcpy(p_, v.data(), n_ * sizeof(T), cudaMemcpyHostToDevice), "upload"); }
    ~buffer() { cudaFree(p_); }
    buffer(const buffer &) = delete;
    T *get() const { return p_; }
    std::vector<T> download(std::size_t n) const
    { std::vector<T> v(n); throw_on_error(cudaMemcpy(v.data(), p_, n * sizeof(T), cudaMemcpyDeviceToHost), "download"); return v; }
private:
    T *p_ = nullptr; std::size_t n_;
};

} // namespace db

int main()
try {
    const std::uint32_t nb = 30000, np = 20000, mask = 8191;
    std::uint32_t seed = 42;
    auto rnd = [&] { seed ^= seed << 13; seed ^= seed >> 17; seed ^= seed << 5; return seed; };
    std::vector<std::uint32_t> build(nb), probe(np);
    for (auto &k : build) k = rnd() % 8 == 0 ? rnd() % 10 : 100 + rnd() % 20000;   // 10 heavy keys
    for (auto &k : probe) k = rnd() % 40 == 0 ? rnd() % 10 : 100 + rnd() % 20000;

    std::vector<std::uint32_t> begin(mask + 2, 0), key(nb), row(nb);
    for (auto k : build) begin[(db::bucket_table::hash(k) & mask) + 1]++;
    for (std::uint32_t b = 0; b <= mask; ++b) begin[b + 1] += begin[b];
    auto cur = begin;
    for (std::uint32_t r = 0; r < nb; ++r) {
        auto at = cur[db::bucket_table::hash(build[r]) & mask]++;
        key[at] = build[r]; row[at] = r;
    }

    std::vector<std::uint64_t> want;
    for (std::uint32_t i = 0; i < np; ++i) {
        auto b = db::bucket_table::hash(probe[i]) & mask;
        for (auto k = begin[b]; k < begin[b + 1]; ++k)
            if (key[k] == probe[i]) want.push_back((std::uint64_t)i << 32 | row[k]);
    }

    db::buffer<std::uint32_t> d_begin(begin), d_key(key), d_row(row), d_probe(probe);
    db::buffer<db::match> d_out(want.size() + 1024);
    db::buffer<unsigned long long> d_size(std::vector<unsigned long long>(1, 0ull));
    db::throw_on_error(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 8192), "limit");

    db::bucket_table t{mask, d_begin.get(), d_key.get(), d_row.get()};
    db::probe<<<40, 256>>>(t, d_probe.get(), np, d_out.get(), d_size.get());
    db::throw_on_error(cudaGetLastError(), "probe");
    db::throw_on_error(cudaDeviceSynchronize(), "probe");

    auto size = d_size.download(1)[0];
    if (size != want.size()) { std::printf("%llu matches, expected %zu\n", size, want.size()); return 1; }
    std::vector<std::uint64_t> got;
    for (auto m : d_out.download(size)) got.push_back((std::uint64_t)m.left << 32 | m.right);
    std::sort(got.begin(), got.end());
    std::sort(want.begin(), want.end());
    if (got != want) { std::puts("matches differ"); return 1; }
    std::printf("OK %zu matches\n", got.size());
    return 0;
} catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
}
