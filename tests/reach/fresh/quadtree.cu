// Point quadtree, built top down: a block partitions the points of its node and
// one of its threads launches four blocks for the children.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

struct Pt { unsigned short x, y; int id; };

struct Node {
    int x0, y0, size;       // square, half open
    int begin, end;         // range in the buffer of its depth's parity
    int depth;
    int child;              // first of four, or -1
};

struct Params {
    int leaf_capacity;
    int max_depth;
    int max_nodes;
};

class QuadTree {
public:
    Node *nodes;
    int *n_nodes;
    Pt *buf[2];
    int *error;
    Params prm;

    __host__ __device__ static int quadrant(const Node &n, const Pt &p)
    {
        const int h = n.size / 2;
        return (p.x >= n.x0 + h ? 1 : 0) + (p.y >= n.y0 + h ? 2 : 0);
    }

    __host__ __device__ bool isLeaf(const Node &n) const
    {
        return n.end - n.begin <= prm.leaf_capacity || n.depth >= prm.max_depth;
    }

    __host__ __device__ static Node childOf(const Node &n, int q, int begin, int count)
    {
        const int h = n.size / 2;
        return Node{n.x0 + (q & 1) * h, n.y0 + (q >> 1) * h, h, begin, begin + count, n.depth + 1, -1};
    }

    __device__ void split(int first) const;
};

template <int THREADS>
__global__ void __launch_bounds__(THREADS) buildNodes(QuadTree tree, int first)
{
    __shared__ int count[4], cursor[4];
    const Node me = tree.nodes[first + blockIdx.x];
    if (tree.isLeaf(me)) return;

    const Pt *src = tree.buf[me.depth & 1];
    Pt *dst = tree.buf[(me.depth + 1) & 1];

    if (threadIdx.x < 4) count[threadIdx.x] = 0;
    __syncthreads();
    for (int i = me.begin + threadIdx.x; i < me.end; i += THREADS)
        atomicAdd(&count[QuadTree::quadrant(me, src[i])], 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        int at = me.begin;
        for (int q = 0; q < 4; ++q) { cursor[q] = at; at += count[q]; }
    }
    __syncthreads();
    for (int i = me.begin + threadIdx.x; i < me.end; i += THREADS) {
        const Pt p = src[i];
        dst[atomicAdd(&cursor[QuadTree::quadrant(me, p)], 1)] = p;
    }
    __syncthreads();

    if (threadIdx.x == 0) {
        const int c = atomicAdd(tree.n_nodes, 4);
        if (c + 4 > tree.prm.max_nodes) {
            *tree.error = 1;
            return;
        }
        for (int q = 0; q < 4; ++q)
            tree.nodes[c + q] = QuadTree::childOf(me, q, cursor[q] - count[q], count[q]);
        tree.nodes[first + blockIdx.x].child = c;
        tree.split(c);
    }
}

__device__ void QuadTree::split(int first) const
{
    buildNodes<128><<<4, 128>>>(*this, first);
    if (cudaGetLastError() != cudaSuccess) *error = 2;
}

using Leaf = std::array<int, 4>;     // x0, y0, size, count

static void reference(const QuadTree &t, const Node &n, std::vector<Pt> pts, std::vector<Leaf> &leaves)
{
    if (t.isLeaf(n)) {
        leaves.push_back(Leaf{n.x0, n.y0, n.size, (int)pts.size()});
        return;
    }
    std::vector<Pt> q[4];
    for (const Pt &p : pts) q[QuadTree::quadrant(n, p)].push_back(p);
    for (int k = 0; k < 4; ++k) reference(t, QuadTree::childOf(n, k, 0, (int)q[k].size()), q[k], leaves);
}

template <class T> static T *gpuAlloc(size_t n)
{
    T *p;
    if (cudaMalloc(&p, n * sizeof(T)) != cudaSuccess || cudaMemset(p, 0, n * sizeof(T)) != cudaSuccess) {
        std::puts("allocation failed");
        std::exit(1);
    }
    return p;
}

int main()
{
    const int n = 25000;
    std::vector<Pt> pts(n);
    srand(11);
    for (int i = 0; i < n; ++i) {
        if (i % 4) pts[i] = Pt{(unsigned short)(rand() % 65536), (unsigned short)(rand() % 65536), i};
        else pts[i] = Pt{(unsigned short)(9000 + rand() % 700), (unsigned short)(41000 + rand() % 900), i};
    }
    QuadTree t;
    t.prm = Params{40, 12, 40000};
    t.nodes = gpuAlloc<Node>(t.prm.max_nodes);
    t.n_nodes = gpuAlloc<int>(1);
    t.error = gpuAlloc<int>(1);
    t.buf[0] = gpuAlloc<Pt>(n);
    t.buf[1] = gpuAlloc<Pt>(n);
    const Node root{0, 0, 65536, 0, n, 0, -1};
    const int one = 1;
    cudaMemcpy(t.nodes, &root, sizeof root, cudaMemcpyHostToDevice);
    cudaMemcpy(t.n_nodes, &one, sizeof one, cudaMemcpyHostToDevice);
    cudaMemcpy(t.buf[0], pts.data(), n * sizeof(Pt), cudaMemcpyHostToDevice);

    buildNodes<128><<<1, 128>>>(t, 0);
    cudaError_t e = cudaDeviceSynchronize();
    int err = 0, nn = 0;
    cudaMemcpy(&err, t.error, sizeof err, cudaMemcpyDeviceToHost);
    cudaMemcpy(&nn, t.n_nodes, sizeof nn, cudaMemcpyDeviceToHost);
    if (e != cudaSuccess || err) { std::printf("%s, error %d\n", cudaGetErrorString(e), err); return 1; }

    std::vector<Node> nodes(nn);
    std::vector<Pt> buf[2] = {std::vector<Pt>(n), std::vector<Pt>(n)};
    cudaMemcpy(nodes.data(), t.nodes, nn * sizeof(Node), cudaMemcpyDeviceToHost);
    for (int b = 0; b < 2; ++b) cudaMemcpy(buf[b].data(), t.buf[b], n * sizeof(Pt), cudaMemcpyDeviceToHost);

    std::vector<Leaf> got, want;
    std::vector<int> seen(n, 0);
    int outside = 0;
    for (const Node &nd : nodes) {
        if (nd.child >= 0) continue;
        got.push_back(Leaf{nd.x0, nd.y0, nd.size, nd.end - nd.begin});
        for (int i = nd.begin; i < nd.end; ++i) {
            const Pt &p = buf[nd.depth & 1][i];
            ++seen[p.id];
            outside += p.x < nd.x0 || p.y < nd.y0 || p.x >= nd.x0 + nd.size || p.y >= nd.y0 + nd.size;
        }
    }
    reference(t, root, pts, want);
    std::sort(got.begin(), got.end());
    std::sort(want.begin(), want.end());
    const bool once = std::all_of(seen.begin(), seen.end(), [](int s) { return s == 1; });
    if (got == want && once && !outside) std::printf("OK: %zu leaves\n", got.size());
    else std::printf("wrong: %zu leaves (expected %zu), %d points outside, once %d\n", got.size(), want.size(), outside, (int)once);
    return !(got == want && once && !outside);
}
