// __shfl_sync, _up, _down and _xor, with widths, out of range lanes and 64-bit values.
#include "conformance.cuh"

__global__ void shuffles(int* out, long long* wide, double* real) {
    int lane = threadIdx.x, value = lane * 10, row = 0;
    auto put = [&](int result) { out[32 * row++ + lane] = result; };
    put(__shfl_sync(~0u, value, 5));
    put(__shfl_sync(~0u, value, (lane + 1) % 32));
    put(__shfl_sync(~0u, value, 3, 8));
    put(__shfl_sync(~0u, value, 11, 8));   // lane 11 modulo 8
    put(__shfl_up_sync(~0u, value, 1));
    put(__shfl_up_sync(~0u, value, 3, 16));
    put(__shfl_down_sync(~0u, value, 2));
    put(__shfl_down_sync(~0u, value, 5, 8));
    put(__shfl_xor_sync(~0u, value, 1));
    put(__shfl_xor_sync(~0u, value, 6, 8));
    put(__shfl_xor_sync(~0u, value, 16, 16));   // earlier groups can be read, later ones cannot
    wide[lane] = __shfl_xor_sync(~0u, 10000000000ll * lane + lane, 31);
    real[lane] = __shfl_down_sync(~0u, lane + 0.5, 16);
}

// A sum over the warp, and an inclusive scan.
__global__ void scans(int* out) {
    int lane = threadIdx.x, sum = lane * lane, scan = lane + 1;
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
    for (int distance = 1; distance < 32; distance *= 2) {
        int before = __shfl_up_sync(~0u, scan, distance);
        if (lane >= distance) scan += before;
    }
    out[lane] = sum;
    out[32 + lane] = scan;
}

int main() {
    const char* names[] = {"idx 5", "idx next", "idx 3 of 8", "idx 11 of 8", "up 1", "up 3 of 16",
                           "down 2", "down 5 of 8", "xor 1", "xor 6 of 8", "xor 16 of 16"};
    Array<int> out(32 * 11), scan(64);
    Array<long long> wide(32);
    Array<double> real(32);
    shuffles<<<1, 32>>>(out, wide, real);
    for (int row = 0; row < 11; ++row) show(names[row], out.read() + 32 * row, 32);
    wide.show("64 bits");
    real.show("double");
    scans<<<1, 32>>>(scan);
    scan.show("sum and scan");
}
