// Assembly of a mixed mesh (segments, triangles, quads) into a dense global matrix with integer stiffness.
#include <array>
#include <iostream>
#include <vector>

namespace fem {

enum class ElementType : int { Segment = 2, Triangle = 3, Quad = 4 };

struct Element {
    ElementType type;
    int order;            // quadrature order, so quadOrder^2 points
    int nodes[4];
};

struct MeshView {
    const Element* elements;
    int numElements;
    int numNodes;
};

template <int N>
__device__ int shape(int a, int q, int order) { return (a * 2 + 1) * (q % order + 1) - N * (q / order); }

template <int N>
__global__ void assembleElement(MeshView mesh, int e, unsigned* K) {
    const Element& el = mesh.elements[e];
    const int q = blockIdx.x;
    const int a = threadIdx.x, b = threadIdx.y;
    const int value = shape<N>(a, q, el.order) * shape<N>(b, q, el.order);
    atomicAdd(&K[el.nodes[a] * mesh.numNodes + el.nodes[b]], static_cast<unsigned>(value));
}

__global__ void assemble(MeshView mesh, unsigned* K) {
    for (int e = blockIdx.x * blockDim.x + threadIdx.x; e < mesh.numElements; e += blockDim.x * gridDim.x) {
        const Element& el = mesh.elements[e];
        const int points = el.order * el.order;
        switch (el.type) {
        case ElementType::Segment:
            assembleElement<2><<<el.order, dim3(2, 2)>>>(mesh, e, K);
            break;
        case ElementType::Triangle:
            assembleElement<3><<<points, dim3(3, 3)>>>(mesh, e, K);
            break;
        case ElementType::Quad:
            assembleElement<4><<<points, dim3(4, 4)>>>(mesh, e, K);
            break;
        }
    }
}

} // namespace fem

int main() {
    constexpr int numNodes = 200, numElements = 600;
    std::vector<fem::Element> elements;
    for (int i = 0; i < numElements; ++i) {
        fem::Element e{};
        e.type = static_cast<fem::ElementType>(2 + i % 3);
        e.order = 1 + (i / 3) % 5;
        for (int k = 0; k < 4; ++k) e.nodes[k] = (i * 13 + k * (k + 5)) % numNodes;
        elements.push_back(e);
    }
    fem::Element* dE = nullptr;
    unsigned* dK = nullptr;
    cudaMalloc(&dE, numElements * sizeof(fem::Element));
    cudaMalloc(&dK, numNodes * numNodes * sizeof(unsigned));
    cudaMemset(dK, 0, numNodes * numNodes * sizeof(unsigned));
    cudaMemcpy(dE, elements.data(), numElements * sizeof(fem::Element), cudaMemcpyHostToDevice);
    fem::assemble<<<4, 64>>>(fem::MeshView{dE, numElements, numNodes}, dK);
    const cudaError_t status = cudaDeviceSynchronize();
    std::vector<unsigned> K(numNodes * numNodes);
    cudaMemcpy(K.data(), dK, K.size() * sizeof(unsigned), cudaMemcpyDeviceToHost);
    unsigned long long sum = 0;
    for (size_t i = 0; i < K.size(); ++i) sum = sum * 3 + K[i];
    std::cout << cudaGetErrorString(status) << " checksum " << sum << "\n";
}
