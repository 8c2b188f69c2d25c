// Early returns, breaks, gotos, switches with fall through, and returns from loops of device functions.
#include "conformance.cuh"

__device__ int fibonacci(int n) {
    int a = 0, b = 1;
    while (true) {
        if (n-- == 0) return a;
        b += a;
        a = b - a;
    }
}

__device__ int search(const int* data, int count, int wanted) {
    for (int i = 0; i < count; ++i) {
        if (data[i] == -1) continue;
        if (data[i] > wanted) break;
        if (data[i] == wanted) return i;
    }
    return -1;
}

__global__ void kernel(const int* data, int* out, int count) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= count) return;
    int result = 0;
    switch (t % 5) {
    case 0: result += 1;
    case 1: result += 10; break;
    case 2: out[t] = fibonacci(t % 10); return;
    case 3: {
        int i = 0;
        do result += i;
        while (++i < t);
        goto end;
    }
    default: result = search(data, 20, t);
    }
    result += 1000;
end:
    out[t] = result;
}

int main() {
    Array<int> data(20), out(40);
    data.fill([](int i) { return i % 3 == 2 ? -1 : 2 * i; });
    kernel<<<3, 16>>>(data, out, 40);
    out.show("out");
}
