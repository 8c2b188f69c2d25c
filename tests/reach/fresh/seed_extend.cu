// seed_extend.cu - map short reads: one thread per read, its seeds are extended in child grids
#include <stdio.h>
#include <stdlib.h>
#include <vector>
#include "seedlib.cuh"

#define SAFE(x) { cudaError_t rc = (x); if (rc) { printf("%s failed: %s\n", #x, cudaGetErrorString(rc)); exit(1); } }

__global__ void map_reads(kmer_index_t idx, const unsigned char *reads, int n_reads,
                          unsigned long long *best)
{
    int r = threadIdx.x + blockIdx.x * blockDim.x;
    if (r < n_reads) {
        const unsigned char *read = reads + (size_t)r * READ_LEN;
        // first, middle and last seed
        try_seed(idx, read, 0, best + r);
        try_seed(idx, read, READ_LEN / 2, best + r);
        try_seed(idx, read, READ_LEN - K, best + r);
    }
}

int main(int argc, char **argv)
{
    int ref_len = 200000, n_reads = 1500;
    if (argc > 1) n_reads = atoi(argv[1]);

    srand(99);
    std::vector<unsigned char> ref(ref_len), reads((size_t)n_reads * READ_LEN);
    for (int i = 0; i < ref_len; i++) ref[i] = rand() & 3;
    for (int i = 50000; i < 54000; i++) ref[i] = (i % 5) & 3;          // a low complexity stretch
    for (int r = 0; r < n_reads; r++) {
        int p = rand() % (ref_len - READ_LEN);
        if (r % 100 == 0) p = 51000 + r % 1000;
        for (int i = 0; i < READ_LEN; i++) {
            reads[(size_t)r * READ_LEN + i] = ref[p + i];
            if (rand() % 25 == 0) reads[(size_t)r * READ_LEN + i] = rand() & 3;
        }
    }

    // k-mer index
    std::vector<int> bucket(NKMERS + 1, 0), pos(ref_len - K + 1);
    for (int i = 0; i + K <= ref_len; i++) bucket[kmer_at(&ref[i]) + 1]++;
    for (int k = 0; k < NKMERS; k++) bucket[k + 1] += bucket[k];
    std::vector<int> at(bucket.begin(), bucket.end() - 1);
    for (int i = 0; i + K <= ref_len; i++) pos[at[kmer_at(&ref[i])]++] = i;

    unsigned char *d_ref, *d_reads;
    int *d_bucket, *d_pos;
    unsigned long long *d_best;
    SAFE(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 3 * n_reads + 100));
    SAFE(cudaMalloc(&d_ref, ref_len));
    SAFE(cudaMalloc(&d_reads, reads.size()));
    SAFE(cudaMalloc(&d_bucket, bucket.size() * sizeof(int)));
    SAFE(cudaMalloc(&d_pos, pos.size() * sizeof(int)));
    SAFE(cudaMalloc(&d_best, n_reads * sizeof(unsigned long long)));
    SAFE(cudaMemcpy(d_ref, ref.data(), ref_len, cudaMemcpyHostToDevice));
    SAFE(cudaMemcpy(d_reads, reads.data(), reads.size(), cudaMemcpyHostToDevice));
    SAFE(cudaMemcpy(d_bucket, bucket.data(), bucket.size() * sizeof(int), cudaMemcpyHostToDevice));
    SAFE(cudaMemcpy(d_pos, pos.data(), pos.size() * sizeof(int), cudaMemcpyHostToDevice));
    SAFE(cudaMemset(d_best, 0xff, n_reads * sizeof(unsigned long long)));

    kmer_index_t idx = { d_ref, ref_len, d_bucket, d_pos };
    map_reads<<<(n_reads + 255) / 256, 256>>>(idx, d_reads, n_reads, d_best);
    SAFE(cudaGetLastError());
    SAFE(cudaDeviceSynchronize());

    std::vector<unsigned long long> best(n_reads);
    SAFE(cudaMemcpy(best.data(), d_best, n_reads * sizeof(unsigned long long), cudaMemcpyDeviceToHost));

    int wrong = 0, mapped = 0;
    for (int r = 0; r < n_reads; r++) {
        const unsigned char *read = &reads[(size_t)r * READ_LEN];
        unsigned long long b = NO_HIT;
        int offs[3] = { 0, READ_LEN / 2, READ_LEN - K };
        for (int o = 0; o < 3; o++) {
            unsigned k = kmer_at(read + offs[o]);
            for (int j = bucket[k]; j < bucket[k + 1]; j++) {
                int start = pos[j] - offs[o];
                if (start < 0 || start + READ_LEN > ref_len) continue;
                unsigned long long v = ((unsigned long long)mismatches(&ref[start], read, READ_LEN) << 32) | (unsigned)start;
                if (v < b) b = v;
            }
        }
        if (b != NO_HIT) mapped++;
        if (b != best[r]) {
            if (wrong < 3) printf("read %d: %llx, should be %llx\n", r, best[r], b);
            wrong++;
        }
    }
    if (wrong == 0) printf("OK: %d/%d reads mapped\n", mapped, n_reads);
    else printf("%d reads wrong\n", wrong);
    return wrong ? 1 : 0;
}
