// Integer Lloyd iteration: assign -> centroid -> test -> assign -> ...
#include <array>
#include <cassert>
#include <cstdio>
#include <cstring>
#include <vector>

namespace clustering {
namespace detail {

template <int Dim>
struct Point { short c[Dim]; };

template <int Dim, int K>
struct State {
    Point<Dim> centre[K];
    int sum[K][Dim];
    int count[K];
    int moved;      // points that changed cluster this iteration
    int iteration;
};

template <int Dim>
__host__ __device__ int dist2(const Point<Dim> &a, const Point<Dim> &b)
{
    int d = 0;
    for (int k = 0; k < Dim; ++k) d += (a.c[k] - b.c[k]) * (a.c[k] - b.c[k]);
    return d;
}

template <int Dim, int K>
__host__ __device__ int nearest(const Point<Dim> &p, const Point<Dim> *centre)
{
    int best = 0;
    for (int k = 1; k < K; ++k)
        if (dist2<Dim>(p, centre[k]) < dist2<Dim>(p, centre[best])) best = k;
    return best;
}

template <int Dim, int K> __global__ void assign(const Point<Dim> *, int, int *, State<Dim, K> *);
template <int Dim, int K> __global__ void centroid(const Point<Dim> *, int, int *, State<Dim, K> *);
template <int Dim, int K> __global__ void test(const Point<Dim> *, int, int *, State<Dim, K> *);

constexpr int kAssignThreads = 96;
constexpr int kMaxIter = 60;

template <int Dim, int K>
__global__ void assign(const Point<Dim> *pts, int n, int *label, State<Dim, K> *st)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int k = nearest<Dim, K>(pts[i], st->centre);
        if (k != label[i]) {
            label[i] = k;
            atomicAdd(&st->moved, 1);
        }
        for (int d = 0; d < Dim; ++d) atomicAdd(&st->sum[k][d], (int)pts[i].c[d]);
        atomicAdd(&st->count[k], 1);
    }
    if (i == 0) centroid<Dim, K><<<K, Dim, 0, cudaStreamTailLaunch>>>(pts, n, label, st);
}

template <int Dim, int K>
__global__ void centroid(const Point<Dim> *pts, int n, int *label, State<Dim, K> *st)
{
    const int k = blockIdx.x, d = threadIdx.x;
    if (st->count[k] > 0) st->centre[k].c[d] = (short)(st->sum[k][d] / st->count[k]);
    st->sum[k][d] = 0;
    if (k == 0 && d == 0) {
        test<Dim, K><<<1, K, 0, cudaStreamTailLaunch>>>(pts, n, label, st);
        assert(cudaGetLastError() == cudaSuccess);
    }
}

template <int Dim, int K>
__global__ void test(const Point<Dim> *pts, int n, int *label, State<Dim, K> *st)
{
    st->count[threadIdx.x] = 0;
    if (threadIdx.x != 0) return;
    const bool again = st->moved > 0 && ++st->iteration < kMaxIter;
    st->moved = 0;
    if (again)
        assign<Dim, K><<<(n + kAssignThreads - 1) / kAssignThreads, kAssignThreads, 0, cudaStreamTailLaunch>>>(pts, n, label, st);
}

} // namespace detail
} // namespace clustering

int main()
{
    using namespace clustering::detail;
    constexpr int D = 3, K = 6;
    using S = State<D, K>;
    const int n = 2000;
    std::vector<Point<D>> pts(n);
    unsigned s = 2024;
    auto rnd = [&] { s = s * 1664525u + 1013904223u; return (int)(s >> 16); };
    for (auto &p : pts) {
        int c = rnd() % K;
        for (int d = 0; d < D; ++d) p.c[d] = (short)(100 * ((c * (d + 2)) % 7) + rnd() % 180);
    }
    S init;
    std::memset(&init, 0, sizeof init);
    for (int k = 0; k < K; ++k) init.centre[k] = pts[k * 11];

    Point<D> *dP; int *dL; S *dS;
    cudaMalloc(&dP, n * sizeof(Point<D>));
    cudaMalloc(&dL, n * sizeof(int));
    cudaMalloc(&dS, sizeof(S));
    cudaMemcpy(dP, pts.data(), n * sizeof(Point<D>), cudaMemcpyHostToDevice);
    cudaMemset(dL, 0xff, n * sizeof(int));
    cudaMemcpy(dS, &init, sizeof(S), cudaMemcpyHostToDevice);

    assign<D, K><<<(n + kAssignThreads - 1) / kAssignThreads, kAssignThreads>>>(dP, n, dL, dS);
    if (cudaError_t e = cudaDeviceSynchronize()) { std::printf("%s\n", cudaGetErrorString(e)); return 1; }

    S got;
    std::vector<int> lab(n), ref(n, -1);
    cudaMemcpy(&got, dS, sizeof(S), cudaMemcpyDeviceToHost);
    cudaMemcpy(lab.data(), dL, n * sizeof(int), cudaMemcpyDeviceToHost);

    Point<D> c[K];
    for (int k = 0; k < K; ++k) c[k] = init.centre[k];
    int it = 0;
    for (;;) {
        int moved = 0, sum[K][D] = {}, cnt[K] = {};
        for (int i = 0; i < n; ++i) {
            int k = nearest<D, K>(pts[i], c);
            moved += k != ref[i];
            ref[i] = k;
            for (int d = 0; d < D; ++d) sum[k][d] += pts[i].c[d];
            ++cnt[k];
        }
        for (int k = 0; k < K; ++k)
            for (int d = 0; d < D; ++d)
                if (cnt[k]) c[k].c[d] = (short)(sum[k][d] / cnt[k]);
        if (!moved || ++it >= kMaxIter) break;
    }
    bool same = ref == lab && it == got.iteration && !std::memcmp(c, got.centre, sizeof c);
    long long h = 0;
    for (int i = 0; i < n; ++i) h = h * 7 % 1000000007 + lab[i];
    std::printf("kmeans iterations %d checksum %lld %s\n", got.iteration, h, same ? "OK" : "DIFFERS");
    return !same;
}
