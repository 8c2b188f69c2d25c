// Launches that the device refuses: the launching thread gets an error code, the others and the host do not.
#include "conformance.cuh"

__global__ void child(int* ran) { atomicAdd(ran, 1); }

__global__ void parent(int* errors, int* ran) {
    int number = 0;
    auto note = [&] { errors[number++] = cudaGetLastError(); };
    child<<<1, 1>>>(ran);
    note();
    child<<<0, 32>>>(ran);
    note();
    child<<<dim3(1, 0, 1), 32>>>(ran);
    note();
    child<<<1, 0>>>(ran);
    note();
    child<<<1, dim3(8, 8, 0)>>>(ran);
    note();
    child<<<1, 1025>>>(ran);
    note();
    child<<<1, dim3(32, 33)>>>(ran);
    note();
    child<<<1, dim3(1, 1, 65)>>>(ran);
    note();
    child<<<dim3(1, 65536), 1>>>(ran);
    note();
    child<<<dim3(1, 1, 65536), 1>>>(ran);
    note();
    child<<<1, 1, 49153>>>(ran);
    note();
    child<<<1, 1, 1 << 20>>>(ran);
    note();
    child<<<1, 1, 49152>>>(ran);
    note();
    child<<<1, dim3(1, 1, 64)>>>(ran);
    note();
}

int main() {
    const char* names[] = {"fine",          "grid 0",       "grid 1 x 0",   "block 0",          "block 8 x 8 x 0",
                           "block 1025",    "block 32 x 33", "block z 65",  "grid y 65536",     "grid z 65536",
                           "shared 48 KB + 1", "shared 1 MB", "shared 48 KB", "block z 64"};
    const int count = sizeof names / sizeof *names;
    Array<int> errors(count), ran(1);
    parent<<<1, 1>>>(errors, ran);
    for (int i = 0; i < count; ++i) show_error(names[i], errors.read()[i]);
    ran.show("ran");
}
