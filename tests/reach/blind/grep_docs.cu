// Count occurrences of a set of needles in a collection of documents.
// A thread per document; each (document, needle) pair becomes a grid.
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#define CU(x)                                                                       \
    if (auto err_ = (x); err_ != cudaSuccess) {                                     \
        std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(err_)); \
        std::exit(EXIT_FAILURE);                                                    \
    }

constexpr int kMaxNeedle = 16;

struct Needle {
    char text[kMaxNeedle];
    int len;
};

struct Span {
    const char *data;
    int size;
};

struct Corpus {
    const char *text;
    const int *begin;   // ndocs + 1
    int ndocs;
    __device__ Span doc(int i) const { return {text + begin[i], begin[i + 1] - begin[i]}; }
};

// Both arguments travel by value: the needle lands in constant bank.
__global__ void scanDocument(Span doc, const Needle needle, unsigned *hits)
{
    const int stride = gridDim.x * blockDim.x;
    unsigned local = 0;
    for (int p = blockIdx.x * blockDim.x + threadIdx.x; p + needle.len <= doc.size; p += stride) {
        int k = 0;
        while (k < needle.len && doc.data[p + k] == needle.text[k]) ++k;
        local += (k == needle.len);
    }
    if (local) atomicAdd(hits, local);
}

__global__ void grepAll(Corpus corpus, const Needle *needles, int nneedles, unsigned *hits)
{
    const int d = threadIdx.x + blockIdx.x * blockDim.x;
    if (d >= corpus.ndocs) return;

    const Span doc = corpus.doc(d);
    for (int n = 0; n < nneedles; ++n) {
        const Needle needle = needles[n];
        if (needle.len > doc.size) continue;
        int blocks = doc.size / 512 + 1;
        scanDocument<<<blocks, 128, 0, cudaStreamFireAndForget>>>(doc, needle, &hits[d * nneedles + n]);
    }
}

static unsigned countHost(std::string_view hay, std::string_view pat)
{
    unsigned c = 0;
    for (size_t p = hay.find(pat); p != hay.npos; p = hay.find(pat, p + 1)) ++c;
    return c;
}

int main()
{
    const std::vector<std::string> pats = {"ab", "aba", "cc", "abcab", "ddddd"};
    const int ndocs = 150;

    std::string text;
    std::vector<int> begin;
    unsigned z = 2463534242u;
    for (int d = 0; d < ndocs; ++d) {
        begin.push_back((int)text.size());
        z ^= z << 13; z ^= z >> 17; z ^= z << 5;
        int len = (d % 10 == 3) ? 3000 + z % 2000 : z % 90;
        for (int i = 0; i < len; ++i) {
            z ^= z << 13; z ^= z >> 17; z ^= z << 5;
            text += "abcd"[(z >> 5) & 3];
        }
    }
    begin.push_back((int)text.size());

    std::vector<Needle> needles;
    for (auto &p : pats) {
        Needle n{};
        std::memcpy(n.text, p.data(), p.size());
        n.len = (int)p.size();
        needles.push_back(n);
    }

    char *dText; int *dBegin; Needle *dNeedles; unsigned *dHits;
    const size_t nh = ndocs * needles.size();
    CU(cudaMalloc(&dText, text.size()));
    CU(cudaMalloc(&dBegin, begin.size() * sizeof(int)));
    CU(cudaMalloc(&dNeedles, needles.size() * sizeof(Needle)));
    CU(cudaMalloc(&dHits, nh * sizeof(unsigned)));
    CU(cudaMemset(dHits, 0, nh * sizeof(unsigned)));
    CU(cudaMemcpy(dText, text.data(), text.size(), cudaMemcpyHostToDevice));
    CU(cudaMemcpy(dBegin, begin.data(), begin.size() * sizeof(int), cudaMemcpyHostToDevice));
    CU(cudaMemcpy(dNeedles, needles.data(), needles.size() * sizeof(Needle), cudaMemcpyHostToDevice));

    grepAll<<<5, 32>>>(Corpus{dText, dBegin, ndocs}, dNeedles, (int)needles.size(), dHits);
    CU(cudaDeviceSynchronize());

    std::vector<unsigned> hits(nh);
    CU(cudaMemcpy(hits.data(), dHits, nh * sizeof(unsigned), cudaMemcpyDeviceToHost));
    unsigned long long sum = 0, want = 0;
    for (int d = 0; d < ndocs; ++d)
        for (size_t n = 0; n < pats.size(); ++n) {
            std::string_view v(text.data() + begin[d], begin[d + 1] - begin[d]);
            sum += hits[d * pats.size() + n] * (d * 7ull + n + 1);
            want += countHost(v, pats[n]) * (d * 7ull + n + 1);
        }
    std::printf("grep checksum %llu / %llu\n", sum, want);
    return sum == want ? 0 : 1;
}
