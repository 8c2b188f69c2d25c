/* seedlib.h - k-mer index and seed extension for short reads */
#ifndef SEEDLIB_H
#define SEEDLIB_H

#define K 7
#define NKMERS (1 << (2 * K))
#define READ_LEN 64
#define NO_HIT 0xffffffffffffffffull

typedef struct {
    const unsigned char *ref;    /* bases as 0..3 */
    int ref_len;
    const int *bucket;           /* NKMERS + 1 */
    const int *pos;              /* positions, grouped by k-mer */
} kmer_index_t;

__host__ __device__ static inline unsigned kmer_at(const unsigned char *s)
{
    unsigned v = 0;
    for (int i = 0; i < K; i++)
        v = (v << 2) | s[i];
    return v;
}

__host__ __device__ static inline int mismatches(const unsigned char *a, const unsigned char *b, int n)
{
    int c = 0;
    for (int i = 0; i < n; i++)
        c += (a[i] != b[i]);
    return c;
}

__global__ void extend_seeds(kmer_index_t idx, const unsigned char *read, int seed_off,
                             int first, int count, unsigned long long *best)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    int start = idx.pos[first + i] - seed_off;
    if (start < 0 || start + READ_LEN > idx.ref_len)
        return;
    unsigned long long score = (unsigned long long)mismatches(idx.ref + start, read, READ_LEN);
    atomicMin(best, (score << 32) | (unsigned)start);
}

/* look a seed up and, if the reference has it, try all its places */
__device__ static void try_seed(const kmer_index_t &idx, const unsigned char *read, int off,
                                unsigned long long *best)
{
    unsigned k = kmer_at(read + off);
    int first = idx.bucket[k];
    int count = idx.bucket[k + 1] - first;
    if (count <= 0)
        return;
    int threads = count < 32 ? 32 : 64;
    extend_seeds<<<(count + threads - 1) / threads, threads>>>(idx, read, off, first, count, best);
}

#endif
