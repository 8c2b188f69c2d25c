// printf in device code, by one thread at a time, also in children.
#include "conformance.cuh"

__global__ void child(int value) { printf("child %d\n", value); }

__global__ void parent(const char* unused, double real) {
    printf("plain\n");
    printf("int %d, unsigned %u, wide %lld %llu, hex %x\n", -5, 4000000000u, -5000000000ll, 1ull << 63, 0xabcu);
    printf("real %g %.3f %e, char %c, string %s, percent %%\n", real, real * 2, real, 'c', "text");
    printf("width [%5d] [%-5d] [%05d] [%8.2f]\n", 42, 42, 42, real);
    printf("null %d\n", unused == nullptr);
    child<<<1, 1>>>(1);
    child<<<1, 1>>>(2);
}

int main() {
    std::printf("begin\n");
    std::fflush(stdout);
    parent<<<1, 1>>>(nullptr, 2.5);
    conformance::finish();
    std::printf("between\n");
    std::fflush(stdout);
    for (int i = 0; i < 3; ++i) child<<<1, 1>>>(10 + i);
    conformance::finish();
    std::printf("end\n");
}
