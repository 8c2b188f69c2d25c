// Text search: a thread per log line; long lines are scanned by a child grid
// whose warps vote with ballots, short ones in place.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

struct Needle {
    char text[16];
    int len;
};

struct Hits {
    unsigned *per_line;              // occurrences in each line
    int *first_at;                   // offset of the first, INT_MAX when none
    unsigned long long *total;
};

__device__ bool matches(const char *p, const Needle &n)
{
    for (int i = 0; i < n.len; ++i)
        if (p[i] != n.text[i]) return false;
    return true;
}

__global__ void grep_line(const char *line, int len, Needle needle, int row, Hits hits)
{
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    const bool hit = at + needle.len <= len && matches(line + at, needle);
    const unsigned mask = warp.ballot(hit);
    if (warp.thread_rank() == 0 && mask) {
        atomicAdd(&hits.per_line[row], __popc(mask));
        atomicMin(&hits.first_at[row], at + __ffs(mask) - 1);
        atomicAdd(hits.total, (unsigned long long)__popc(mask));
    }
}

__global__ void grep_lines(const char *text, const int *line_start, int lines, Needle needle, Hits hits)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= lines) return;
    const char *line = text + line_start[row];
    const int len = line_start[row + 1] - line_start[row];
    if (len < needle.len) return;

    if (len > 160) {
        grep_line<<<(len + 127) / 128, 128, 0, cudaStreamFireAndForget>>>(line, len, needle, row, hits);
        return;
    }
    unsigned count = 0;
    int first = 0x7fffffff;
    for (int at = 0; at + needle.len <= len; ++at)
        if (matches(line + at, needle)) {
            if (count++ == 0) first = at;
        }
    if (count) {
        hits.per_line[row] = count;
        hits.first_at[row] = first;
        atomicAdd(hits.total, (unsigned long long)count);
    }
}

static std::string make_text(std::vector<int> &starts, int lines)
{
    const char *words[] = {"warn", "error", "disk", "timeout", "err", "retry ", "ok ", "conn", "terror", "node-7 "};
    std::string s;
    unsigned h = 17;
    for (int l = 0; l < lines; ++l) {
        starts.push_back((int)s.size());
        int n = l % 11 == 4 ? 100 + l % 800 : 1 + l % 12;
        for (int w = 0; w < n; ++w) {
            h = h * 1103515245u + 12345u;
            s += words[(h >> 16) % 10];
            if ((h >> 20) % 3 == 0) s += ' ';
        }
    }
    starts.push_back((int)s.size());
    return s;
}

#define TRY(...)                                                             \
    if ((__VA_ARGS__) != cudaSuccess) {                                      \
        printf("failed: %s (%s)\n", #__VA_ARGS__, cudaGetErrorString(cudaGetLastError())); \
        return 1;                                                            \
    }

int main()
{
    const int lines = 12000;
    std::vector<int> starts;
    const std::string text = make_text(starts, lines);
    Needle needle = {"error", 5};

    char *d_text; int *d_starts;
    Hits hits;
    TRY(cudaMalloc(&d_text, text.size()));
    TRY(cudaMalloc(&d_starts, starts.size() * sizeof(int)));
    TRY(cudaMalloc(&hits.per_line, lines * sizeof(unsigned)));
    TRY(cudaMalloc(&hits.first_at, lines * sizeof(int)));
    TRY(cudaMalloc(&hits.total, sizeof(unsigned long long)));
    TRY(cudaMemcpy(d_text, text.data(), text.size(), cudaMemcpyHostToDevice));
    TRY(cudaMemcpy(d_starts, starts.data(), starts.size() * sizeof(int), cudaMemcpyHostToDevice));
    TRY(cudaMemset(hits.per_line, 0, lines * sizeof(unsigned)));
    TRY(cudaMemset(hits.first_at, 0x7f, lines * sizeof(int)));
    TRY(cudaMemset(hits.total, 0, sizeof(unsigned long long)));

    grep_lines<<<(lines + 255) / 256, 256>>>(d_text, d_starts, lines, needle, hits);
    TRY(cudaGetLastError());
    TRY(cudaDeviceSynchronize());

    std::vector<unsigned> per(lines);
    std::vector<int> first(lines);
    unsigned long long total = 0, want_total = 0;
    TRY(cudaMemcpy(per.data(), hits.per_line, lines * sizeof(unsigned), cudaMemcpyDeviceToHost));
    TRY(cudaMemcpy(first.data(), hits.first_at, lines * sizeof(int), cudaMemcpyDeviceToHost));
    TRY(cudaMemcpy(&total, hits.total, sizeof total, cudaMemcpyDeviceToHost));

    int bad = 0;
    for (int l = 0; l < lines; ++l) {
        std::string line = text.substr(starts[l], starts[l + 1] - starts[l]);
        unsigned n = 0;
        int f = 0x7f7f7f7f;
        for (size_t p = line.find("error"); p != std::string::npos; p = line.find("error", p + 1))
            if (n++ == 0) f = (int)p;
        want_total += n;
        if (n != per[l] || f != first[l]) ++bad;
    }
    if (bad || total != want_total)
        printf("%d lines differ, total %llu (expected %llu)\n", bad, total, want_total);
    else
        printf("OK: %llu hits\n", total);
    return bad || total != want_total;
}
