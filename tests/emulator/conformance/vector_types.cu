// Vector types: loads and stores of whole vectors, make_ functions, dim3 and uint3.
#include "conformance.cuh"

__device__ int2 operator+(int2 a, int2 b) { return make_int2(a.x + b.x, a.y + b.y); }

__device__ unsigned volume(dim3 size) { return size.x * size.y * size.z; }

__global__ void vectors(const float4* in, float4* out, int2* pairs, unsigned* sizes) {
    int t = threadIdx.x;
    float4 value = in[t];
    out[t] = make_float4(value.w, value.z, value.y, value.x + 1);
    pairs[t] = pairs[t] + make_int2(t, -t);
    uint3 where = threadIdx;
    uchar4 bytes = make_uchar4(t, t + 1, t + 2, 255);
    double2 real = {t * 0.5, 2.0};
    sizes[2 * t] = volume(blockDim) + volume(dim3(2, 3)) + where.x;
    sizes[2 * t + 1] = bytes.x + bytes.w + static_cast<unsigned>(real.x * real.y);
}

int main() {
    Array<float> in(32), out(32);
    Array<int> pairs(16);
    Array<unsigned> sizes(16);
    in.fill([](int i) { return i * 0.5f; });
    pairs.fill([](int i) { return 10 * i; });
    vectors<<<1, 8>>>(reinterpret_cast<float4*>(in.operator float*()), reinterpret_cast<float4*>(out.operator float*()),
                      reinterpret_cast<int2*>(pairs.operator int*()), sizes);
    out.show("float4");
    pairs.show("int2");
    sizes.show("sizes");
    show("bytes", static_cast<int>(sizeof(float4) + alignof(float4) + alignof(int2) + sizeof(float3)));
}
