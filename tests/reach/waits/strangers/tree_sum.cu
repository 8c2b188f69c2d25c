// Recursive evaluation of an expression tree: the parent needs the values of its children.
#include <iostream>
#include <vector>
#include <cuda_runtime.h>

struct ExprNode {
    char op;            // '+', '*', '^' or 'c'
    int left, right;
    unsigned value;
};

class ExprTree {
public:
    ExprTree() : d_nodes(NULL) {}
    ~ExprTree() { if (d_nodes) cudaFree(d_nodes); }
    int build(int depth, unsigned &seed) {
        int id = (int)nodes.size();
        nodes.push_back(ExprNode());
        seed = seed * 1103515245u + 12345u;
        if (depth == 0 || (depth < 5 && (seed >> 16) % 6 == 0)) {
            nodes[id].op = 'c'; nodes[id].value = seed >> 20; nodes[id].left = nodes[id].right = -1;
            return id;
        }
        char op = "+*^"[(seed >> 18) % 3];
        int l = build(depth - 1, seed), r = build(depth - 1, seed);
        nodes[id].op = op; nodes[id].left = l; nodes[id].right = r; nodes[id].value = 0;
        return id;
    }
    ExprNode *upload() {
        cudaMalloc((void**)&d_nodes, nodes.size() * sizeof(ExprNode));
        cudaMemcpy(d_nodes, &nodes[0], nodes.size() * sizeof(ExprNode), cudaMemcpyHostToDevice);
        return d_nodes;
    }
    void download() { cudaMemcpy(&nodes[0], d_nodes, nodes.size() * sizeof(ExprNode), cudaMemcpyDeviceToHost); }
    std::vector<ExprNode> nodes;
private:
    ExprNode *d_nodes;
};

__global__ void evaluate(ExprNode *nodes, int id)
{
    ExprNode &n = nodes[id];
    if (n.op == 'c') return;
    const int child = threadIdx.x == 0 ? n.left : n.right;
    if (nodes[child].op != 'c') {
        evaluate<<<1, 2>>>(nodes, child);
        cudaDeviceSynchronize();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned a = nodes[n.left].value, b = nodes[n.right].value;
        n.value = n.op == '+' ? a + b : n.op == '*' ? a * b + 1 : a ^ b;
    }
}

int main()
{
    cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 4096);
    ExprTree t;
    unsigned seed = 11;
    t.build(8, seed);
    evaluate<<<1, 2>>>(t.upload(), 0);
    cudaError_t e = cudaDeviceSynchronize();
    t.download();
    unsigned sum = 0;
    for (size_t i = 0; i < t.nodes.size(); ++i) sum = sum * 17 + t.nodes[i].value;
    std::cout << t.nodes.size() << " nodes, root " << t.nodes[0].value << ", checksum " << sum
              << " " << cudaGetErrorString(e) << std::endl;
    return 0;
}
