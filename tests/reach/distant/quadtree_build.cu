// Region quadtree over 2D points; four blocks build the four children of a node.
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

struct Points {
    float *x;
    float *y;
    int    stride;         // one copy of the points per level
    __device__ float *level_x(int depth) const { return x + (size_t)depth * stride; }
    __device__ float *level_y(int depth) const { return y + (size_t)depth * stride; }
};

struct Box { float x0, y0, x1, y1; };

struct Params {
    int max_depth;
    int min_points;
    Params(int d, int p) : max_depth(d), min_points(p) {}
};

struct TreeStats {
    unsigned int leaves;
    unsigned int deepest;
    unsigned long long hash;
};

__host__ __device__ inline Box child_box(const Box &b, int q)
{
    float cx = 0.5f * (b.x0 + b.x1), cy = 0.5f * (b.y0 + b.y1);
    Box r;
    r.x0 = (q & 1) ? cx : b.x0;  r.x1 = (q & 1) ? b.x1 : cx;
    r.y0 = (q & 2) ? cy : b.y0;  r.y1 = (q & 2) ? b.y1 : cy;
    return r;
}

__host__ __device__ inline int quadrant(const Box &b, float x, float y)
{
    return (x >= 0.5f * (b.x0 + b.x1) ? 1 : 0) | (y >= 0.5f * (b.y0 + b.y1) ? 2 : 0);
}

__host__ __device__ inline unsigned long long leaf_hash(int depth, int count, const Box &b)
{
    return (unsigned long long)(depth + 1) * 1000003ull * (count + 1)
         + (unsigned long long)(b.x0 * 4096) * 31ull + (unsigned long long)(b.y0 * 4096);
}

// Each block takes the points [begin,end) of the parent that lie in quadrant blockIdx.x and
// packs them into the next level's copy from the position that the counts of the quadrants before it give.
__global__ void build_children(Points points, int begin, int end, Box parent, int depth,
                               Params params, TreeStats *stats)
{
    __shared__ int counts[4];
    __shared__ int cursor;
    const int q = blockIdx.x;
    const float *in_x = points.level_x(depth - 1), *in_y = points.level_y(depth - 1);
    float *out_x = points.level_x(depth), *out_y = points.level_y(depth);
    if (threadIdx.x < 4) counts[threadIdx.x] = 0;
    __syncthreads();
    for (int i = begin + threadIdx.x; i < end; i += blockDim.x)
        atomicAdd(&counts[quadrant(parent, in_x[i], in_y[i])], 1);
    __syncthreads();

    int first = begin;
    for (int k = 0; k < q; ++k) first += counts[k];
    const int count = counts[q];
    if (threadIdx.x == 0) cursor = first;
    __syncthreads();
    for (int i = begin + threadIdx.x; i < end; i += blockDim.x) {
        const float x = in_x[i], y = in_y[i];
        if (quadrant(parent, x, y) == q) {
            int at = atomicAdd(&cursor, 1);
            out_x[at] = x;
            out_y[at] = y;
        }
    }
    __syncthreads();

    if (threadIdx.x == blockDim.x - 1) {
        const Box mine = child_box(parent, q);
        if (depth >= params.max_depth || count <= params.min_points) {
            atomicAdd(&stats->leaves, 1u);
            atomicMax(&stats->deepest, (unsigned)depth);
            atomicAdd(&stats->hash, leaf_hash(depth, count, mine));
        } else {
            build_children<<<4, blockDim.x>>>(points, first, first + count, mine, depth + 1, params, stats);
        }
    }
}

static void cpu_build(const std::vector<float2> &pts, Box parent, int depth, const Params &p, TreeStats &s)
{
    std::vector<float2> sub[4];
    for (auto &pt : pts) sub[quadrant(parent, pt.x, pt.y)].push_back(pt);
    for (int q = 0; q < 4; ++q) {
        Box mine = child_box(parent, q);
        int count = (int)sub[q].size();
        if (depth >= p.max_depth || count <= p.min_points) {
            s.leaves++;
            if ((unsigned)depth > s.deepest) s.deepest = depth;
            s.hash += leaf_hash(depth, count, mine);
        } else
            cpu_build(sub[q], mine, depth + 1, p, s);
    }
}

#define CHK(x) do { if ((x) != cudaSuccess) { fprintf(stderr, "cuda failure, line %d\n", __LINE__); return 2; } } while (0)

int main()
{
    const int n = 20000;
    std::vector<float2> pts(n);
    std::vector<float> hx(n), hy(n);
    srand(5);
    for (int i = 0; i < n; ++i) {
        float x = rand() / (RAND_MAX + 1.0f), y = rand() / (RAND_MAX + 1.0f);
        if (i % 3 == 0) { x = x * x * x; y = y * y; }      // a dense corner
        x = x < 0.999f ? x : 0.999f; y = y < 0.999f ? y : 0.999f;
        pts[i] = make_float2(x, y); hx[i] = x; hy[i] = y;
    }
    Params params(9, 24);
    Points p;
    p.stride = n;
    const size_t copies = params.max_depth + 1;
    TreeStats *d_stats, got, ref;
    memset(&ref, 0, sizeof ref);
    CHK(cudaMalloc(&p.x, copies * n * sizeof(float)));
    CHK(cudaMalloc(&p.y, copies * n * sizeof(float)));
    CHK(cudaMalloc(&d_stats, sizeof(TreeStats)));
    CHK(cudaMemset(d_stats, 0, sizeof(TreeStats)));
    CHK(cudaMemcpy(p.x, hx.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHK(cudaMemcpy(p.y, hy.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 16384));

    Box root = {0.f, 0.f, 1.f, 1.f};
    build_children<<<4, 128>>>(p, 0, n, root, 1, params, d_stats);
    CHK(cudaGetLastError());
    CHK(cudaDeviceSynchronize());
    CHK(cudaMemcpy(&got, d_stats, sizeof got, cudaMemcpyDeviceToHost));

    cpu_build(pts, root, 1, params, ref);
    if (got.leaves != ref.leaves || got.deepest != ref.deepest || got.hash != ref.hash) {
        printf("mismatch: leaves %u/%u depth %u/%u hash %llx/%llx\n", got.leaves, ref.leaves,
               got.deepest, ref.deepest, got.hash, ref.hash);
        return 1;
    }
    printf("OK: %u leaves, depth %u\n", got.leaves, got.deepest);
    return 0;
}
