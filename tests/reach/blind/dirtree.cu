// Propagates path hashes down a directory tree, a grid per directory.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CUDA_OK(e) cuda_ok((e), __LINE__)
static void cuda_ok(cudaError_t e, int line)
{
    if (e != cudaSuccess) {
        fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(e));
        exit(EXIT_FAILURE);
    }
}

struct Node {
    unsigned name;      // hash of the name
    int firstChild;     // children are contiguous
    int numChildren;
    unsigned path;      // out
};

static __host__ __device__ unsigned extend(unsigned path, unsigned name)
{
    unsigned h = path ^ (name + 0x9e3779b9u + (path << 6) + (path >> 2));
    return h * 2246822519u;
}

class Tree
{
public:
    Node *nodes;
    unsigned long long *files;      // number of leaves seen
    __device__ Node &operator[](int i) const { return nodes[i]; }
};

__global__ void visitChildren(Tree tree, int dir, int depth)
{
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= tree[dir].numChildren)
        return;

    const int me = tree[dir].firstChild + k;
    Node &node = tree[me];
    node.path = extend(tree[dir].path, node.name);

    if (node.numChildren == 0) {
        atomicAdd(tree.files, 1ull);
        return;
    }
    if (depth < 20) {
        int threads = node.numChildren < 32 ? node.numChildren : 32;
        visitChildren<<<(node.numChildren + threads - 1) / threads, threads>>>(tree, me, depth + 1);
    }
}

int main()
{
    // breadth first generation keeps siblings together
    std::vector<Node> nodes(1, Node{7u, 0, 0, 1u});
    std::vector<int> level(1, 0);
    unsigned s = 99;
    for (size_t d = 0; d < nodes.size() && nodes.size() < 2600; ++d) {
        s = s * 1103515245u + 12345u;
        unsigned r = s >> 16;
        int kids = d == 0 ? 12 : level[d] > 12 ? 0 : r % 3 == 0 ? 2 + r % 9 : r % 41 == 1 ? 50 : 0;
        if (kids == 0) continue;
        nodes[d].firstChild = (int)nodes.size();
        nodes[d].numChildren = kids;
        for (int k = 0; k < kids; ++k) {
            nodes.push_back(Node{s ^ (unsigned)(k * 2654435761u), 0, 0, 0u});
            level.push_back(level[d] + 1);
        }
    }
    const int n = (int)nodes.size();

    Tree t;
    CUDA_OK(cudaMalloc(&t.nodes, n * sizeof(Node)));
    CUDA_OK(cudaMalloc(&t.files, sizeof(*t.files)));
    CUDA_OK(cudaMemset(t.files, 0, sizeof(*t.files)));
    CUDA_OK(cudaMemcpy(t.nodes, nodes.data(), n * sizeof(Node), cudaMemcpyHostToDevice));
    visitChildren<<<1, 32>>>(t, 0, 0);
    CUDA_OK(cudaDeviceSynchronize());

    std::vector<Node> got(n);
    unsigned long long files = 0, refFiles = 0, sum = 0;
    CUDA_OK(cudaMemcpy(got.data(), t.nodes, n * sizeof(Node), cudaMemcpyDeviceToHost));
    CUDA_OK(cudaMemcpy(&files, t.files, sizeof files, cudaMemcpyDeviceToHost));

    for (int d = 0; d < n; ++d)
        for (int k = 0; k < nodes[d].numChildren; ++k) {
            Node &c = nodes[nodes[d].firstChild + k];
            c.path = extend(nodes[d].path, c.name);
            refFiles += c.numChildren == 0;
        }
    bool same = files == refFiles;
    for (int i = 0; i < n; ++i) {
        same &= got[i].path == nodes[i].path;
        sum += (unsigned long long)got[i].path * (i + 1);
    }
    printf("%d nodes %llu files checksum %llu %s\n", n, files, sum, same ? "ok" : "WRONG");
    return !same;
}
