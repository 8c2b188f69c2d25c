// Particle effects: emitters spawn particles when triggered; each emitter's thread launches
// the spawn kernel of its effect type. Simplified from a game engine.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace fx {

enum class Effect : int { None, Sparks, Smoke, Ring };

struct Emitter {
    float    px, py, pz;
    float    strength;
    Effect   effect;
    unsigned seed;
};

struct ParticlePool {
    float4   *pos;       // xyz, size
    float4   *vel;       // xyz, ttl
    int      *owner;
    unsigned *alive;
    unsigned  capacity;
};

struct Tuning {
    static constexpr int   kThreads     = 64;
    static constexpr float kSparkRate   = 24.f;
    static constexpr float kSmokeRate   = 6.f;
    static constexpr int   kRingSegments = 48;
};

#define FX_BLOCKS(n) (((n) + Tuning::kThreads - 1) / Tuning::kThreads)
#define FX_LAUNCH(kernel, n, ...) kernel<<<FX_BLOCKS(n), Tuning::kThreads>>>(__VA_ARGS__)

__host__ __device__ inline float rnd(unsigned a, unsigned b)
{
    unsigned h = a * 747796405u + b * 2891336453u + 1u;
    h = ((h >> ((h >> 28) + 4u)) ^ h) * 277803737u;
    h = (h >> 22) ^ h;
    return (float)(h >> 8) / 16777216.0f;
}

__host__ __device__ inline int sparkCount(const Emitter &e) { return (int)(e.strength * Tuning::kSparkRate); }
__host__ __device__ inline int smokeCount(const Emitter &e) { return (int)(e.strength * Tuning::kSmokeRate); }

__device__ void put(ParticlePool pool, unsigned slot, const Emitter &e, int owner, float vx, float vy, float vz, float ttl)
{
    if (slot >= pool.capacity) return;
    pool.pos[slot] = make_float4(e.px, e.py, e.pz, 0.1f);
    pool.vel[slot] = make_float4(vx, vy, vz, ttl);
    pool.owner[slot] = owner;
}

__global__ void spawnSparks(const Emitter *emitters, int id, int n, ParticlePool pool)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Emitter e = emitters[id];
    put(pool, atomicAdd(pool.alive, 1u), e, id, rnd(e.seed, 3 * i) - 0.5f, rnd(e.seed, 3 * i + 1), rnd(e.seed, 3 * i + 2) - 0.5f, 1.0f);
}

__global__ void spawnSmoke(const Emitter *emitters, int id, int n, unsigned base, ParticlePool pool)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Emitter e = emitters[id];
    put(pool, base + i, e, id, 0.f, 0.2f + 0.1f * rnd(e.seed, i), 0.f, 4.0f);
}

__global__ void spawnRing(const Emitter *emitters, int id, unsigned base, ParticlePool pool)
{
    Emitter e = emitters[id];
    for (int s = threadIdx.x; s < Tuning::kRingSegments; s += blockDim.x) {
        float a = 6.2831853f * s / Tuning::kRingSegments;
        put(pool, base + s, e, id, cosf(a) * e.strength, 0.f, sinf(a) * e.strength, 2.0f);
    }
}

__global__ void updateEmitters(const Emitter *emitters, int numEmitters, ParticlePool pool)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= numEmitters) return;
    const Emitter e = emitters[id];
    switch (e.effect) {
    case Effect::Sparks: {
        int n = sparkCount(e);
        if (n > 0) FX_LAUNCH(spawnSparks, n, emitters, id, n, pool);
        break;
    }
    case Effect::Smoke: {
        int n = smokeCount(e);
        if (n > 0) {
            unsigned base = atomicAdd(pool.alive, (unsigned)n);
            FX_LAUNCH(spawnSmoke, n, emitters, id, n, base, pool);
        }
        break;
    }
    case Effect::Ring:
        spawnRing<<<1, 32>>>(emitters, id, atomicAdd(pool.alive, (unsigned)Tuning::kRingSegments), pool);
        break;
    default:
        break;
    }
}

} // namespace fx

#define FX_CHECK(x) if (cudaError_t e_ = (x)) { std::fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(e_)); std::exit(1); }

int main()
{
    using namespace fx;
    const int n = 1500;
    std::vector<Emitter> em(n);
    std::vector<double> want(n, 0);
    std::vector<int> wantCount(n, 0);
    unsigned total = 0;
    for (int i = 0; i < n; ++i) {
        Emitter &e = em[i];
        e.px = i; e.py = 1.f; e.pz = -i; e.seed = 1000u + i;
        e.strength = 1.f + (i * 7 % 40) * 0.25f;
        e.effect = (Effect)(i * 5 % 4);
        if (e.effect == Effect::Sparks) {
            wantCount[i] = sparkCount(e);
            for (int k = 0; k < wantCount[i]; ++k) want[i] += rnd(e.seed, 3 * k + 1);
        } else if (e.effect == Effect::Smoke) {
            wantCount[i] = smokeCount(e);
            for (int k = 0; k < wantCount[i]; ++k) want[i] += 0.2f + 0.1f * rnd(e.seed, k);
        } else if (e.effect == Effect::Ring)
            wantCount[i] = Tuning::kRingSegments;
        total += wantCount[i];
    }
    Emitter *dEm; ParticlePool pool; pool.capacity = total + 64;
    FX_CHECK(cudaMalloc(&dEm, n * sizeof(Emitter)));
    FX_CHECK(cudaMalloc(&pool.pos, pool.capacity * sizeof(float4)));
    FX_CHECK(cudaMalloc(&pool.vel, pool.capacity * sizeof(float4)));
    FX_CHECK(cudaMalloc(&pool.owner, pool.capacity * sizeof(int)));
    FX_CHECK(cudaMalloc(&pool.alive, sizeof(unsigned)));
    FX_CHECK(cudaMemset(pool.alive, 0, sizeof(unsigned)));
    FX_CHECK(cudaMemcpy(dEm, em.data(), n * sizeof(Emitter), cudaMemcpyHostToDevice));

    FX_LAUNCH(updateEmitters, n, dEm, n, pool);
    FX_CHECK(cudaGetLastError());
    FX_CHECK(cudaDeviceSynchronize());

    unsigned alive;
    FX_CHECK(cudaMemcpy(&alive, pool.alive, sizeof alive, cudaMemcpyDeviceToHost));
    if (alive != total) { std::printf("%u particles, expected %u\n", alive, total); return 1; }
    std::vector<float4> vel(total); std::vector<int> owner(total);
    FX_CHECK(cudaMemcpy(vel.data(), pool.vel, total * sizeof(float4), cudaMemcpyDeviceToHost));
    FX_CHECK(cudaMemcpy(owner.data(), pool.owner, total * sizeof(int), cudaMemcpyDeviceToHost));
    std::vector<double> got(n, 0); std::vector<int> count(n, 0);
    for (unsigned i = 0; i < total; ++i) { got[owner[i]] += vel[i].y; count[owner[i]]++; }
    for (int i = 0; i < n; ++i)
        if (count[i] != wantCount[i] || std::fabs(got[i] - want[i]) > 1e-3) {
            std::printf("emitter %d: %d particles sum %g, expected %d, %g\n", i, count[i], got[i], wantCount[i], want[i]);
            return 1;
        }
    std::printf("OK, %u particles\n", alive);
    return 0;
}
