// expect: pass
// malloc, free, new and delete in kernels.
#include "selftest.hpp"
struct Node { int value; Node* next; };
__global__ void k(int* out) {
    Node* head = nullptr;
    for (int i = 0; i < 10; ++i) head = new Node{i, head};
    int sum = 0;
    while (head) {
        sum += head->value;
        Node* next = head->next;
        delete head;
        head = next;
    }
    int* p = static_cast<int*>(::emu::device_malloc(40));
    ::emu::device_memset(p, 0, 40);
    sum += p[9];
    ::emu::device_free(p);
    atomicAdd(out, sum);
}
int main() {
    int* out = device_array<int>(1);
    LAUNCH(k, 2, 40)(out);
    return fetch(out) == 45 * 80 ? 0 : 1;
}
