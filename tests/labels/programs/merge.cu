// Sorting by merging, traversal of a tree, forces between bodies: recursion on data.

__global__ void merge(int* to, const int* from, int begin, int middle, int end) {
    int i = begin + threadIdx.x;
    if (i < end) to[i] = from[i < middle ? i : i - 1];
}

__global__ void merge_sort(int* data, int* buffer, int begin, int end) {
    if (end - begin < 2) return;
    int middle = begin + (end - begin) / 2;
    if (threadIdx.x == 0) merge_sort<<<1, 32>>>(data, buffer, begin, middle);
    if (threadIdx.x == 0) merge_sort<<<1, 32>>>(data, buffer, middle, end);
    if (threadIdx.x == 0) merge<<<1, end - begin, 0, cudaStreamTailLaunch>>>(data, buffer, begin, middle, end);
}

struct Node {
    Node* child[2];
    float mass;
    int leaves;
};

__global__ void visit(Node* node, float* total, int depth) {
    int side = threadIdx.x;
    Node* next = node->child[side];
    if (side < 2 && next != nullptr) {
        visit<<<1, 2, 0, cudaStreamFireAndForget>>>(next, total, depth + 1);
    } else if (side == 0) {
        atomicAdd(total, node->mass);
    }
}

__global__ void forces(const float4* bodies, float3* out, int first, int count, int with) {
    int i = first + blockIdx.x * blockDim.x + threadIdx.x;
    if (i < first + count) out[i].x += bodies[with].w;
}

__global__ void interactions(const float4* bodies, float3* out, const int2* __restrict__ pairs, int n, int cell) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    int2 pair = pairs[p];
    const int threads = cell < 256 ? cell : 256;
    forces<<<(cell + threads - 1) / threads, threads>>>(bodies, out, pair.x * cell, cell, pair.y);
}
