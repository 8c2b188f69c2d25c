// Managed memory, from cudaMallocManaged and as variables: host and device use the same addresses in turn.
#include "conformance.cuh"

struct Node {
    int value;
    Node* next;
};

__managed__ int total = 5;
__managed__ int table[4] = {1, 2, 3};

__global__ void walk(Node* head, int* data) {
    for (Node* node = head; node != nullptr; node = node->next) {
        total += node->value;
        node->value *= 10;
    }
    data[3] = table[2];
    table[3] = total;
}

int main() {
    Node* nodes;
    int* data;
    CHECK(cudaMallocManaged(&nodes, 10 * sizeof(Node)));
    CHECK(cudaMallocManaged(&data, 4 * sizeof(int)));
    for (int i = 0; i < 10; ++i) nodes[i] = Node{i + 1, i < 9 ? &nodes[i + 1] : nullptr};
    for (int i = 0; i < 4; ++i) data[i] = -i;
    for (int round = 0; round < 2; ++round) {
        walk<<<1, 1>>>(nodes, data);
        conformance::finish();
        show("total", total);
        show("table", table, 4);
        show("data", data, 4);
        show("first", nodes[0].value);
        show("last", nodes[9].value);
        table[2] = 100;
        total -= 50;
    }
    CHECK(cudaFree(nodes));
    CHECK(cudaFree(data));
}
