// Structs as kernel arguments: padding, references to members, 4 KB by value, conversions at the launch.
#include "conformance.cuh"

struct Padded {
    char a;
    double b;
    short c;
    int* d;
    bool e;
};
struct Big {
    int values[1000];
};
struct View {
    int* data;
    int size;
    __device__ int& operator[](int i) const { return data[i]; }
    __device__ int& last() const { return data[size - 1]; }
};
struct Wide : View {
    double weight;
};
struct Number {
    int value;
    __host__ __device__ Number(int v) : value(v) {}
};

__global__ void padded(Padded p, int count, double* out) {
    double& b = p.b;   // the thread's own copy
    b += threadIdx.x;
    char* a = &p.a;
    *a = static_cast<char>(*a + 1);
    out[threadIdx.x] = p.a + p.b + p.c + p.d[threadIdx.x % count] + p.e;
}
__global__ void big(Big values, int* out) {
    int sum = 0;
    for (int i = threadIdx.x; i < 1000; i += blockDim.x) sum += values.values[i];
    atomicAdd(out, sum);
}
__global__ void child(Big values, View view) { view[threadIdx.x] = values.values[threadIdx.x * 10]; }
__global__ void parent(Big values, View view) {
    values.values[20] = -7;
    child<<<1, 4>>>(values, view);
    values.values[30] = -8;   // too late for the child
}
__global__ void converted(float real, long long wide, Number number, View view, unsigned char small) {
    view.last() = static_cast<int>(real * 4) + static_cast<int>(wide >> 33) + number.value + small;
}

int main() {
    Array<int> data(8), sum(1);
    Array<double> out(6);
    data.fill([](int i) { return 100 * i; });
    padded<<<1, 6>>>(Padded{'a', 0.5, -3, data, true}, 8, out);
    out.show("padded");
    Big values;
    for (int i = 0; i < 1000; ++i) values.values[i] = i;
    big<<<2, 50>>>(values, sum);
    values.values[0] = 1000000;   // the launch has its own copy
    sum.show("big");
    values.values[0] = 0;
    parent<<<1, 1>>>(values, View{data, 4});
    data.show("child");
    Wide wide;
    wide.data = data;
    wide.size = 8;
    wide.weight = 2;
    converted<<<1, 1>>>(3, 1 << 30, 50, wide, 300 - 256);
    data.show("converted");
}
