#include <iostream>
#include <vector>
#include <random>

// kd tree over integer points, built in place, median by counting (points have distinct coordinates)
struct Node {
    int point;
    int axis;
    int left, right;
};

class Points {
public:
    __host__ __device__ Points(int *x, int *y) : m_x(x), m_y(y) {}
    __device__ int coord(int i, int axis) const { return axis ? m_y[i] : m_x[i]; }
private:
    int *m_x;
    int *m_y;
};

struct Parameters {
    const int max_depth;
    const int min_points;
    __host__ __device__ Parameters(int max_depth, int min_points) : max_depth(max_depth), min_points(min_points) {}
};

__global__ void build_kd_kernel(Node *nodes, int node, Points pts, int *src, int *dst, int first, int last,
                                int depth, Parameters params)
{
    const int count = last - first;
    const int axis = depth & 1;
    __shared__ int s_mid;
    __shared__ int s_lo, s_hi;
    if (threadIdx.x == 0) { s_lo = 0; s_hi = 0; s_mid = -1; }
    __syncthreads();

    // Rank of every point: the one in the middle is the splitter.
    for (int i = first + threadIdx.x; i < last; i += blockDim.x) {
        int c = pts.coord(src[i], axis), rank = 0;
        for (int j = first; j < last; ++j)
            rank += pts.coord(src[j], axis) < c;
        dst[first + rank] = src[i];
        if (rank == count / 2) s_mid = first + rank;
    }
    __syncthreads();

    if (threadIdx.x == 0) {
        Node &n = nodes[node];
        n.axis = axis;
        n.point = dst[s_mid];
        n.left = s_mid - first;
        n.right = last - s_mid - 1;
    }
    if (depth >= params.max_depth || count <= params.min_points)
        return;

    // The last thread launches new blocks: the roles of the two buffers are swapped.
    if (threadIdx.x == blockDim.x - 1) {
        if (s_mid > first)
            build_kd_kernel<<<1, blockDim.x>>>(nodes, 2 * node + 1, pts, dst, src, first, s_mid, depth + 1, params);
        if (s_mid + 1 < last)
            build_kd_kernel<<<1, blockDim.x>>>(nodes, 2 * node + 2, pts, dst, src, s_mid + 1, last, depth + 1, params);
    }
}

int main()
{
    const int n = 4096, max_depth = 8;
    std::vector<int> x(n), y(n), idx(n);
    for (int i = 0; i < n; ++i) { x[i] = (i * 2731) % 8192 * 2 + 1; y[i] = (i * 1237 + 11) % 4096; idx[i] = i; }
    int *dx, *dy, *a, *b; Node *nodes;
    const int nn = (2 << max_depth) * 2;
    cudaMalloc(&dx, n * 4); cudaMalloc(&dy, n * 4); cudaMalloc(&a, n * 4); cudaMalloc(&b, n * 4);
    cudaMalloc(&nodes, nn * sizeof(Node)); cudaMemset(nodes, 0, nn * sizeof(Node));
    cudaMemcpy(dx, x.data(), n * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(dy, y.data(), n * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(a, idx.data(), n * 4, cudaMemcpyHostToDevice);
    Parameters prm(max_depth, 8);
    build_kd_kernel<<<1, 64>>>(nodes, 0, Points(dx, dy), a, b, 0, n, 0, prm);
    cudaError_t e = cudaDeviceSynchronize();
    std::vector<Node> h(nn);
    cudaMemcpy(h.data(), nodes, nn * sizeof(Node), cudaMemcpyDeviceToHost);
    unsigned long long sum = 0;
    for (int i = 0; i < nn; ++i) sum += (unsigned long long)(h[i].point + 3 * h[i].left + 5 * h[i].right + h[i].axis) * (i + 1);
    std::cout << "kd checksum " << sum << " " << cudaGetErrorString(e) << std::endl;
    return 0;
}
