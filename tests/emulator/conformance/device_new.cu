// new and delete on the device: constructors, destructors, arrays, virtual functions.
#include "conformance.cuh"

struct Shape {
    int* alive;
    __device__ explicit Shape(int* counter) : alive(counter) { atomicAdd(alive, 1); }
    __device__ virtual ~Shape() { atomicSub(alive, 1); }
    __device__ virtual int area() const = 0;
};
struct Square : Shape {
    int side;
    __device__ Square(int* counter, int s) : Shape(counter), side(s) {}
    __device__ int area() const override { return side * side; }
};
struct Box : Shape {
    int* sides;
    __device__ Box(int* counter, int a, int b) : Shape(counter), sides(new int[2]{a, b}) {}
    __device__ ~Box() override { delete[] sides; }
    __device__ int area() const override { return sides[0] * sides[1]; }
};

__global__ void areas(int* alive, int* out, int* most) {
    int t = threadIdx.x;
    Shape* shape;
    if (t % 2 == 0) shape = new Square(alive, t);
    else shape = new Box(alive, t, 3);
    __syncthreads();
    if (t == 0) *most = *alive;
    out[t] = shape->area();
    __syncthreads();
    delete shape;
}

struct Node {
    int value;
    Node* next;
};
__global__ void push(Node** head, int count) {
    for (int i = 0; i < count; ++i) *head = new Node{i, *head};
}
__global__ void pop(Node** head, int* out) {
    for (int i = 0; *head != nullptr; ++i) {
        Node* node = *head;
        out[i] = node->value;
        *head = node->next;
        delete node;
    }
}

int main() {
    Array<int> alive(1), out(40), most(1), values(10);
    areas<<<1, 40>>>(alive, out, most);
    out.show("areas");
    most.show("most alive");
    alive.show("alive");
    Array<Node*> head(1);
    push<<<1, 1>>>(head, 10);
    pop<<<1, 1>>>(head, values);
    values.show("list");
}
