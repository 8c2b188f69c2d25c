/* Partitioned equi-join with a residual predicate.
 * Both relations are already partitioned on the low key bits. The build side of a
 * partition goes to (dynamic) shared memory of the child that joins the partition. */
#include <iostream>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>

using key_t_ = unsigned;
struct tuple_t { key_t_ key; int payload; };

struct relation_t {
    const tuple_t* rows;
    const unsigned* part_begin;
};

struct WithinBand {
    int band;
    __host__ __device__ bool operator()(const tuple_t& b, const tuple_t& p) const {
        int d = b.payload - p.payload;
        return d <= band && -d <= band;
    }
};

struct join_result_t {
    unsigned long long matches;
    unsigned long long sum;
};

template <class Residual>
__global__ void join_partition(const tuple_t* build, unsigned nb, const tuple_t* probe, unsigned np,
                               Residual residual, join_result_t* res)
{
    extern __shared__ tuple_t s_build[];
    for (unsigned i = threadIdx.x; i < nb; i += blockDim.x) s_build[i] = build[i];
    __syncthreads();

    unsigned long long matches = 0, sum = 0;
    for (unsigned j = blockIdx.x * blockDim.x + threadIdx.x; j < np; j += gridDim.x * blockDim.x) {
        tuple_t p = probe[j];
        for (unsigned i = 0; i < nb; ++i) {
            if (s_build[i].key == p.key && residual(s_build[i], p)) {
                ++matches;
                sum += static_cast<unsigned>(s_build[i].payload) * 3u + static_cast<unsigned>(p.payload);
            }
        }
    }
    if (matches) {
        atomicAdd(&res->matches, matches);
        atomicAdd(&res->sum, sum);
    }
}

template <class Residual>
__global__ void join_driver(relation_t r, relation_t s, unsigned nparts, Residual residual, join_result_t* res)
{
    const unsigned part = blockDim.x * blockIdx.x + threadIdx.x;
    if (part < nparts) {
        const unsigned r0 = r.part_begin[part], nb = r.part_begin[part + 1] - r0;
        const unsigned s0 = s.part_begin[part], np = s.part_begin[part + 1] - s0;
        if (nb && np) {
            const unsigned block = np >= 256 ? 128 : (np >= 64 ? 64 : 32);
            const unsigned grid  = min((np + block - 1) / block, 4u);
            join_partition<<<grid, block, nb * sizeof(tuple_t), cudaStreamFireAndForget>>>(
                r.rows + r0, nb, s.rows + s0, np, residual, res);
        }
    }
}

static constexpr unsigned PART_BITS = 8;

struct host_relation {
    std::vector<tuple_t> rows;
    std::vector<unsigned> begin;
    host_relation(unsigned n, unsigned seed) {
        rows.resize(n);
        for (auto& t : rows) {
            seed = seed * 747796405u + 2891336453u;
            unsigned w = (seed >> ((seed >> 28) + 4)) ^ seed;
            t.key = (w >> 7) % 601 * ((w & 3) ? 1 : 256);
            t.payload = int(w >> 20) % 500;
        }
        auto part = [](const tuple_t& t) { return t.key & ((1u << PART_BITS) - 1); };
        std::stable_sort(rows.begin(), rows.end(), [&](auto& a, auto& b) { return part(a) < part(b); });
        begin.assign((1u << PART_BITS) + 1, 0);
        for (auto& t : rows) begin[part(t) + 1]++;
        for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    }
    relation_t upload() const {
        tuple_t* d; unsigned* b;
        cudaMalloc(&d, rows.size() * sizeof(tuple_t));
        cudaMalloc(&b, begin.size() * sizeof(unsigned));
        cudaMemcpy(d, rows.data(), rows.size() * sizeof(tuple_t), cudaMemcpyHostToDevice);
        cudaMemcpy(b, begin.data(), begin.size() * sizeof(unsigned), cudaMemcpyHostToDevice);
        return {d, b};
    }
};

int main()
{
    host_relation r(1200, 17), s(4000, 4242);
    WithinBand pred{40};
    join_result_t* d_res;
    cudaMalloc(&d_res, sizeof(join_result_t));
    cudaMemset(d_res, 0, sizeof(join_result_t));

    join_driver<<<(1u << PART_BITS) / 64, 64>>>(r.upload(), s.upload(), 1u << PART_BITS, pred, d_res);

    join_result_t got{}, want{};
    if (auto e = cudaMemcpy(&got, d_res, sizeof got, cudaMemcpyDeviceToHost)) {
        std::cerr << cudaGetErrorString(e) << '\n';
        return 1;
    }
    for (auto& b : r.rows)
        for (auto& p : s.rows)
            if (b.key == p.key && pred(b, p)) {
                want.matches++;
                want.sum += unsigned(b.payload) * 3u + unsigned(p.payload);
            }
    std::cout << "join matches=" << got.matches << " checksum=" << got.sum
              << (got.matches == want.matches && got.sum == want.sum ? " OK" : " WRONG") << std::endl;
    return !(got.matches == want.matches && got.sum == want.sum);
}
