#include <cstddef>
#include <cstdio>
#include <cuda_runtime.h>

typedef unsigned int uint;

template <typename T> struct Array {
    T* elements;
    size_t length;
};

struct LegDimensions {
    float body;
    float reach;
    int id;
};

struct Node {
    float3 position;
    int* validity;
    uint childrenCount;
    bool leaf;
};

__constant__ int AngleSample_D[3] = {2, 3, 1};

__device__ inline bool reachable(float3 p, float3 q, const LegDimensions& leg) {
    float dx = p.x - q.x, dy = p.y - q.y, dz = p.z - q.z;
    return dx * dx + dy * dy + dz * dz < leg.reach * leg.reach;
}

__global__ void validity_child(Node parent, Array<float3> input, LegDimensions leg) {
    const size_t total = parent.childrenCount * input.length;
    for (size_t index = blockIdx.x * blockDim.x + threadIdx.x; index < total; index += gridDim.x * blockDim.x) {
        const uint child = index / input.length;
        const uint foothold = index % input.length;
        float3 center = parent.position;
        center.x += child;
        if (reachable(center, input.elements[foothold], leg)) {
            atomicAdd(&parent.validity[child], 1);
        }
    }
}

__global__ void validity_kernel(Array<Node> tree, Array<float3> input, LegDimensions leg) {
    uint index = blockIdx.x * blockDim.x + threadIdx.x;
    uint stride = blockDim.x * gridDim.x;
    for (uint i = index; i < tree.length; i += stride) {
        Node& parent = tree.elements[i];
        if (not parent.leaf) {
            const uint max_child_ind = parent.childrenCount;
            const size_t maxComputeIndex = max_child_ind * input.length;
            constexpr uint maxBlockSize = 1024 / 4;
            int blockSize = min((uint)maxComputeIndex, maxBlockSize);
            int numBlock = (maxComputeIndex + blockSize - 1) / blockSize;
            validity_child<<<numBlock, blockSize>>>(parent, input, leg);
        }
    }
}

int main() {
    Array<Node> tree;
    Array<float3> input;
    tree.length = 21;
    input.length = 60;
    cudaMallocManaged(&tree.elements, tree.length * sizeof(Node));
    cudaMallocManaged(&input.elements, input.length * sizeof(float3));
    int* validity;
    cudaMallocManaged(&validity, tree.length * 8 * sizeof(int));
    for (uint i = 0; i < input.length; i++)
        input.elements[i] = make_float3(i % 7, i % 5, i % 3);
    for (uint i = 0; i < tree.length; i++) {
        tree.elements[i].position = make_float3(i % 4, i % 3, 0);
        tree.elements[i].validity = validity + i * 8;
        tree.elements[i].childrenCount = 1 + i % 8;
        tree.elements[i].leaf = i % 3 == 0;
        for (int c = 0; c < 8; c++)
            validity[i * 8 + c] = 0;
    }
    LegDimensions leg = {1.0f, 3.0f, 0};
    validity_kernel<<<4, 8>>>(tree, input, leg);
    cudaDeviceSynchronize();
    long sum = 0;
    for (uint i = 0; i < tree.length * 8; i++)
        sum = sum * 3 % 1000003 + validity[i];
    std::printf("%ld\n", sum);
    return 0;
}
