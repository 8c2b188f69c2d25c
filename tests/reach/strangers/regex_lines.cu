#include <cstdio>
#include <cstring>
#include <string>
#include <vector>
#include <cuda_runtime.h>

// Shift-and matching of a small pattern with classes, one thread per line; each line that can match
// gets a grid with one thread per start position.
typedef unsigned long long mask_t;

struct Pattern {
    int length;
    mask_t cls[256];
    bool star[64];
};

__constant__ Pattern c_pat;

__device__ bool match_here(const char *s, const char *end)
{
    mask_t active = 1;
    for (; s <= end; ++s) {
        for (int i = 0; i < c_pat.length; ++i)          // epsilon moves over starred atoms
            if ((active >> i & 1) && c_pat.star[i]) active |= 1ull << (i + 1);
        if (active >> c_pat.length & 1) return true;
        if (s == end) break;
        mask_t hit = active & c_pat.cls[(unsigned char)*s], next = 0;
        for (int i = 0; i < c_pat.length; ++i)
            if (hit >> i & 1) next |= 1ull << (c_pat.star[i] ? i : i + 1);
        active = next;
        if (!active) return false;
    }
    return false;
}

__global__ void try_starts(const char *line, int len, int *first, int *count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < len && match_here(line + i, line + len)) {
        atomicMin(first, i);
        atomicAdd(count, 1);
    }
}

__global__ void scan_lines(const char *text, const int *offsets, int lines, int *first, int *count)
{
    int l = blockIdx.x * blockDim.x + threadIdx.x;
    if (l >= lines) return;
    const char *line = text + offsets[l];
    int len = offsets[l + 1] - offsets[l];
    first[l] = len;
    count[l] = 0;
    if (len == 0) return;
    try_starts<<<(len + 31) / 32, 32>>>(line, len, &first[l], &count[l]);
}

int main()
{
    Pattern p; memset(&p, 0, sizeof(p));
    // a[bc]*d.e
    p.length = 5;
    p.cls['a'] |= 1; p.cls['b'] |= 2; p.cls['c'] |= 2; p.cls['d'] |= 4; p.cls['e'] |= 16;
    for (int c = 1; c < 256; ++c) p.cls[c] |= 8;
    p.star[1] = true;
    cudaMemcpyToSymbol(c_pat, &p, sizeof(p));

    std::string text; std::vector<int> off(1, 0);
    unsigned s = 5;
    const int lines = 900;
    for (int l = 0; l < lines; ++l) {
        int len = (l * l) % 137;
        for (int i = 0; i < len; ++i) { s = s * 1664525u + 1013904223u; text += "abcde"[(s >> 20) % 5]; }
        off.push_back((int)text.size());
    }
    char *d_t; int *d_o, *d_f, *d_c;
    cudaMalloc(&d_t, text.size()); cudaMalloc(&d_o, off.size() * 4); cudaMalloc(&d_f, lines * 4); cudaMalloc(&d_c, lines * 4);
    cudaMemcpy(d_t, text.data(), text.size(), cudaMemcpyHostToDevice);
    cudaMemcpy(d_o, off.data(), off.size() * 4, cudaMemcpyHostToDevice);
    scan_lines<<<(lines + 127) / 128, 128>>>(d_t, d_o, lines, d_f, d_c);
    cudaError_t e = cudaDeviceSynchronize();
    std::vector<int> f(lines), c(lines);
    cudaMemcpy(f.data(), d_f, lines * 4, cudaMemcpyDeviceToHost);
    cudaMemcpy(c.data(), d_c, lines * 4, cudaMemcpyDeviceToHost);
    long long sum = 0; int total = 0;
    for (int i = 0; i < lines; ++i) { sum += (long long)f[i] * (i + 1); total += c[i]; }
    printf("%d matches, checksum %lld, %s\n", total, sum, cudaGetErrorString(e));
    return 0;
}
