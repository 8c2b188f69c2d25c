// Batched polynomial products over GF(p): c_k = a_k * b_k, then c_k(x0) by a second child.
#include <cstdio>
#include <cstdint>
#include <vector>
#include <string>
#include <stdexcept>

using u64 = std::uint64_t;
using u32 = std::uint32_t;
static constexpr u32 P = 998244353u;

inline void check(cudaError_t e, const char* msg) {
    if (e != cudaSuccess) throw std::runtime_error(std::string(msg) + ": " + cudaGetErrorString(e));
}

struct Poly { u32 off; u32 deg; };               // deg = number of coefficients - 1
struct Job { Poly a, b, c; };

template <unsigned BS>
__global__ __launch_bounds__(BS) void convolve(const u32* pool, u32* dst, Job job) {
    const u32 k = blockIdx.x * BS + threadIdx.x;
    if (k > job.c.deg) return;
    u64 acc = 0;
    const u32 lo = k > job.b.deg ? k - job.b.deg : 0;
    const u32 hi = k < job.a.deg ? k : job.a.deg;
    for (u32 i = lo; i <= hi; ++i)
        acc = (acc + u64(pool[job.a.off + i]) * pool[job.b.off + k - i]) % P;
    dst[job.c.off + k] = u32(acc);
}

// Horner in strips: a single block, strip results combined by thread 0
template <unsigned BS>
__global__ __launch_bounds__(BS) void evaluate(const u32* coef, u32 n, u32 x, u32* result) {
    __shared__ u32 part[BS];
    u64 xs = 1;                                   // x^BS
    #pragma unroll 1
    for (unsigned i = 0; i < BS; ++i) xs = xs * x % P;
    u64 acc = 0;
    for (int i = int((n - 1) / BS); i >= 0; --i) {
        u32 j = u32(i) * BS + threadIdx.x;
        acc = (acc * xs + (j < n ? coef[j] : 0u)) % P;
    }
    part[threadIdx.x] = u32(acc);
    __syncthreads();
    if (threadIdx.x == 0) {
        u64 r = 0;
        #pragma unroll 1
        for (int i = int(BS) - 1; i >= 0; --i) r = (r * x + part[i]) % P;
        *result = u32(r);
    }
}

template <unsigned BS>
__global__ void multiplyBatch(const Job* jobs, int njobs, const u32* pool, u32* dst, u32 x, u32* values) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j < njobs) {
        const Job job = jobs[j];
        convolve<BS><<<(job.c.deg + BS) / BS, BS>>>(pool, dst, job);
        evaluate<BS><<<1, BS>>>(dst + job.c.off, job.c.deg + 1, x, values + j);   // same stream: runs after
    }
}

int main() try {
    const int njobs = 180;
    std::vector<u32> pool;
    std::vector<Job> jobs;
    u32 seed = 20240607, coff = 0;
    auto rnd = [&] { seed ^= seed << 13; seed ^= seed >> 17; seed ^= seed << 5; return seed; };
    auto fresh = [&](u32 deg) { Poly p{u32(pool.size()), deg}; for (u32 i = 0; i <= deg; ++i) pool.push_back(rnd() % P); return p; };
    for (int j = 0; j < njobs; ++j) {
        Job job;
        job.a = fresh(rnd() % (j % 9 ? 30 : 220));
        job.b = fresh(rnd() % (j % 5 ? 40 : 150));
        job.c = {coff, job.a.deg + job.b.deg};
        coff += job.c.deg + 1;
        jobs.push_back(job);
    }

    u32 *dPool, *dDst, *dVal;
    Job* dJobs;
    check(cudaMalloc(&dPool, pool.size() * 4), "pool");
    check(cudaMalloc(&dDst, coff * 4), "dst");
    check(cudaMalloc(&dVal, njobs * 4), "values");
    check(cudaMalloc(&dJobs, njobs * sizeof(Job)), "jobs");
    check(cudaMemcpy(dPool, pool.data(), pool.size() * 4, cudaMemcpyHostToDevice), "pool copy");
    check(cudaMemcpy(dJobs, jobs.data(), njobs * sizeof(Job), cudaMemcpyHostToDevice), "jobs copy");

    const u32 x = 123457;
    multiplyBatch<32><<<6, 32>>>(dJobs, njobs, dPool, dDst, x, dVal);
    check(cudaDeviceSynchronize(), "multiplyBatch");

    std::vector<u32> val(njobs);
    check(cudaMemcpy(val.data(), dVal, njobs * 4, cudaMemcpyDeviceToHost), "values copy");
    auto horner = [&](Poly p) { u64 r = 0; for (u32 i = p.deg + 1; i-- > 0;) r = (r * x + pool[p.off + i]) % P; return r; };
    u64 sum = 0;
    int bad = 0;
    for (int j = 0; j < njobs; ++j) {
        bad += val[j] != horner(jobs[j].a) * horner(jobs[j].b) % P;
        sum = (sum * 131 + val[j]) % P;
    }
    std::printf("polymul checksum %llu bad %d\n", (unsigned long long)sum, bad);
    return bad ? 1 : 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
}
