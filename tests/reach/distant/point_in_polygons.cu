// Which polygon contains a point? Bounding boxes first, then even-odd crossing.
// Polygons with many vertices (coast lines) are crossed by a grid.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace geo {

template <typename R> struct Pt { R x, y; };
template <typename R> struct BBox { R xmin, ymin, xmax, ymax;
    __host__ __device__ bool contains(Pt<R> p) const { return p.x >= xmin && p.x <= xmax && p.y >= ymin && p.y <= ymax; } };

template <typename R>
struct PolygonSet {
    int      count;
    Pt<R>   *verts;
    int     *first;    // count + 1
    BBox<R> *boxes;
};

template <typename R>
__host__ __device__ inline bool crosses(Pt<R> a, Pt<R> b, Pt<R> p)
{
    if ((a.y > p.y) == (b.y > p.y)) return false;
    // exact for the integer coordinates used here
    R lhs = (p.x - a.x) * (b.y - a.y), rhs = (b.x - a.x) * (p.y - a.y);
    return b.y > a.y ? lhs < rhs : lhs > rhs;
}

template <typename R>
__global__ void crossings(const Pt<R> *verts, int n, Pt<R> p, unsigned *parity)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int c = 0;
    if (i < n) c = crosses(verts[i], verts[i + 1 == n ? 0 : i + 1], p);
    const int total = __syncthreads_count(c);
    if (threadIdx.x == 0 && (total & 1)) atomicXor(parity, 1u);
}

template <typename R, int MinVerts = 128>
__global__ void classify(PolygonSet<R> set, const Pt<R> *points, int npoints, unsigned *inside)
{
    const int p = blockIdx.x * blockDim.x + threadIdx.x;   // point
    const int q = blockIdx.y;                              // polygon
    if (p < npoints) {
        const Pt<R> pt = points[p];
        unsigned *out = inside + (size_t)q * npoints + p;
        *out = 0;
        if (set.boxes[q].contains(pt)) {
            const int f = set.first[q], n = set.first[q + 1] - f;
            if (n >= MinVerts) {
                const unsigned nt = 128, nb = (unsigned)(n + nt - 1) / nt;
                crossings<R><<<nb, nt>>>(set.verts + f, n, pt, out);
            } else {
                unsigned par = 0;
                for (int i = 0, j = n - 1; i < n; j = i++)
                    par ^= (unsigned)crosses(set.verts[f + j], set.verts[f + i], pt);
                *out = par;
            }
        }
    }
}

} // namespace geo

#define checkCuda(e) checkCudaImpl((e), __LINE__)
inline cudaError_t checkCudaImpl(cudaError_t result, int line)
{
    if (result != cudaSuccess) {
        fprintf(stderr, "CUDA Runtime Error (line %d): %s\n", line, cudaGetErrorString(result));
        exit(1);
    }
    return result;
}

int main()
{
    using R = long long;
    using geo::Pt; using geo::BBox;
    const int npoly = 24, npoints = 2000;
    std::vector<Pt<R>> verts, pts(npoints);
    std::vector<int> first(1, 0);
    std::vector<BBox<R>> boxes;
    srand(8);
    for (int q = 0; q < npoly; ++q) {
        int n = q % 4 == 0 ? 700 + rand() % 800 : 5 + rand() % 30;
        double cx = rand() % 10000, cy = rand() % 10000;
        BBox<R> b = {1 << 30, 1 << 30, -(1 << 30), -(1 << 30)};
        for (int i = 0; i < n; ++i) {                 // a star with a ragged edge
            double t = 6.283185307 * i / n, r = 800 + rand() % 1200;
            Pt<R> v = {(R)std::lround(cx + r * std::cos(t)), (R)std::lround(cy + r * std::sin(t))};
            verts.push_back(v);
            if (v.x < b.xmin) b.xmin = v.x;
            if (v.x > b.xmax) b.xmax = v.x;
            if (v.y < b.ymin) b.ymin = v.y;
            if (v.y > b.ymax) b.ymax = v.y;
        }
        first.push_back((int)verts.size());
        boxes.push_back(b);
    }
    for (auto &p : pts) p = {rand() % 10000, rand() % 10000};

    geo::PolygonSet<R> set; set.count = npoly;
    Pt<R> *dp; unsigned *din;
    checkCuda(cudaMalloc(&set.verts, verts.size() * sizeof(verts[0])));
    checkCuda(cudaMalloc(&set.first, first.size() * sizeof(int)));
    checkCuda(cudaMalloc(&set.boxes, boxes.size() * sizeof(boxes[0])));
    checkCuda(cudaMalloc(&dp, pts.size() * sizeof(pts[0])));
    checkCuda(cudaMalloc(&din, (size_t)npoly * npoints * sizeof(unsigned)));
    checkCuda(cudaMemcpy(set.verts, verts.data(), verts.size() * sizeof(verts[0]), cudaMemcpyHostToDevice));
    checkCuda(cudaMemcpy(set.first, first.data(), first.size() * sizeof(int), cudaMemcpyHostToDevice));
    checkCuda(cudaMemcpy(set.boxes, boxes.data(), boxes.size() * sizeof(boxes[0]), cudaMemcpyHostToDevice));
    checkCuda(cudaMemcpy(dp, pts.data(), pts.size() * sizeof(pts[0]), cudaMemcpyHostToDevice));
    checkCuda(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 1 << 14));

    geo::classify<R><<<dim3((npoints + 127) / 128, npoly), 128>>>(set, dp, npoints, din);
    checkCuda(cudaGetLastError());
    checkCuda(cudaDeviceSynchronize());

    std::vector<unsigned> in((size_t)npoly * npoints);
    checkCuda(cudaMemcpy(in.data(), din, in.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
    int hits = 0;
    for (int q = 0; q < npoly; ++q)
        for (int p = 0; p < npoints; ++p) {
            unsigned want = 0;
            for (int i = first[q]; i < first[q + 1]; ++i)
                want ^= geo::crosses(verts[i], verts[i + 1 == first[q + 1] ? first[q] : i + 1], pts[p]);
            if (!boxes[q].contains(pts[p])) want = 0;
            hits += want;
            if (in[(size_t)q * npoints + p] != want) { printf("point %d polygon %d: wrong\n", p, q); return 1; }
        }
    printf("OK, %d containments\n", hits);
    return 0;
}
