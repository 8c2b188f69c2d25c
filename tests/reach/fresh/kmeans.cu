// k-means (Lloyd) on 2D integer points, entirely on the device.
// Assignment changes are counted; the loop ends when no point moves.
#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <vector>

template <int K>
class KMeans {
public:
    struct Point { int x, y; };
    struct Acc { unsigned long long sx, sy; unsigned int n; };

    const Point *points;
    int *assigned;
    int n;
    Point *centers;    // K
    Acc *acc;          // K
    int *moves;
    int *rounds;
    int maxRounds;

    __host__ __device__ static int nearest(const Point &p, const Point *c)
    {
        int best = 0;
        long long bd = LLONG_MAX;
        for (int k = 0; k < K; ++k) {
            long long dx = p.x - c[k].x, dy = p.y - c[k].y;
            long long d = dx * dx + dy * dy;
            if (d < bd) { bd = d; best = k; }
        }
        return best;
    }

    __device__ void assign(int i) const
    {
        Point p = points[i];
        int k = nearest(p, centers);
        if (k != assigned[i]) {
            assigned[i] = k;
            atomicAdd(moves, 1);
        }
        atomicAdd(&acc[k].sx, (unsigned long long)p.x);
        atomicAdd(&acc[k].sy, (unsigned long long)p.y);
        atomicAdd(&acc[k].n, 1u);
    }

    __device__ void recenter(int k) const
    {
        if (acc[k].n) {
            centers[k].x = (int)(acc[k].sx / acc[k].n);
            centers[k].y = (int)(acc[k].sy / acc[k].n);
        }
        acc[k] = Acc{0, 0, 0};
    }

    __device__ void nextRound() const;
};

template <class Model>
__global__ void assignKernel(Model m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < m.n) m.assign(i);
}

template <class Model, int K>
__global__ void updateKernel(Model m)      // one block, K threads
{
    if (threadIdx.x < K) m.recenter(threadIdx.x);
    if (threadIdx.x == 0) {
        *m.rounds += 1;
        const bool settled = *m.moves == 0;
        *m.moves = 0;
        if (!settled && *m.rounds < m.maxRounds) m.nextRound();
    }
}

template <int K>
__device__ void KMeans<K>::nextRound() const
{
    assignKernel<<<(n + 255) / 256, 256, 0, cudaStreamTailLaunch>>>(*this);
    updateKernel<KMeans<K>, K><<<1, K, 0, cudaStreamTailLaunch>>>(*this);
}

template <class Model>
__global__ void startKernel(Model m) { m.nextRound(); }

static void must(cudaError_t e)
{
    if (e != cudaSuccess) { std::fprintf(stderr, "%s\n", cudaGetErrorName(e)); std::exit(3); }
}

int main()
{
    constexpr int K = 12;
    using KM = KMeans<K>;
    const int n = 40000;
    std::vector<KM::Point> pts(n);
    std::vector<KM::Point> ctr(K);
    std::srand(77);
    for (auto &p : pts) {
        int c = std::rand() % 9;
        p.x = 20000 + (c % 3) * 25000 + std::rand() % 9000 + std::rand() % 9000;
        p.y = 20000 + (c / 3) * 25000 + std::rand() % 9000 + std::rand() % 9000;
    }
    for (int k = 0; k < K; ++k) ctr[k] = pts[k * 1000];

    KM m;
    m.n = n;
    m.maxRounds = 300;
    KM::Point *dp;
    int *ints;
    must(cudaMalloc(&dp, n * sizeof(KM::Point)));
    must(cudaMemcpy(dp, pts.data(), n * sizeof(KM::Point), cudaMemcpyHostToDevice));
    m.points = dp;
    must(cudaMalloc(&m.assigned, n * sizeof(int)));
    must(cudaMemset(m.assigned, 0xff, n * sizeof(int)));
    must(cudaMalloc(&m.centers, K * sizeof(KM::Point)));
    must(cudaMemcpy(m.centers, ctr.data(), K * sizeof(KM::Point), cudaMemcpyHostToDevice));
    must(cudaMalloc(&m.acc, K * sizeof(KM::Acc)));
    must(cudaMemset(m.acc, 0, K * sizeof(KM::Acc)));
    must(cudaMalloc(&ints, 2 * sizeof(int)));
    must(cudaMemset(ints, 0, 2 * sizeof(int)));
    m.moves = ints;
    m.rounds = ints + 1;

    startKernel<<<1, 1>>>(m);
    must(cudaGetLastError());
    must(cudaDeviceSynchronize());

    std::vector<int> got(n), want(n, -1);
    std::vector<KM::Point> gc(K);
    int rounds = 0, ref = 0;
    must(cudaMemcpy(got.data(), m.assigned, n * sizeof(int), cudaMemcpyDeviceToHost));
    must(cudaMemcpy(gc.data(), m.centers, K * sizeof(KM::Point), cudaMemcpyDeviceToHost));
    must(cudaMemcpy(&rounds, m.rounds, sizeof(int), cudaMemcpyDeviceToHost));

    for (bool moved = true; moved && ref < m.maxRounds; ++ref) {
        moved = false;
        std::vector<KM::Acc> acc(K, KM::Acc{0, 0, 0});
        for (int i = 0; i < n; ++i) {
            int k = KM::nearest(pts[i], ctr.data());
            moved |= k != want[i];
            want[i] = k;
            acc[k].sx += pts[i].x; acc[k].sy += pts[i].y; acc[k].n++;
        }
        for (int k = 0; k < K; ++k)
            if (acc[k].n) ctr[k] = {int(acc[k].sx / acc[k].n), int(acc[k].sy / acc[k].n)};
    }
    bool same = got == want && rounds == ref &&
                std::equal(gc.begin(), gc.end(), ctr.begin(), [](auto &a, auto &b) { return a.x == b.x && a.y == b.y; });
    if (same) std::printf("OK: settled after %d rounds\n", rounds);
    else std::printf("differs: %d rounds on the GPU, %d on the CPU\n", rounds, ref);
    return same ? 0 : 1;
}
