// Read mapping by k-mer seeds: each read looks up its seeds in an index of the reference,
// candidate positions are verified by Hamming distance in child grids.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

static constexpr int K = 8;
static constexpr int READ_LEN = 64;
static constexpr int SEEDS = 4;
static constexpr uint32_t NUM_KMERS = 1u << (2 * K);
static constexpr int MAX_INLINE_HITS = 12;

#define CUDA_TRY(stmt)                                                          \
  do {                                                                          \
    const cudaError_t status = (stmt);                                          \
    if (status != cudaSuccess) {                                                \
      std::fprintf(stderr, "'%s' failed: %s\n", #stmt, cudaGetErrorString(status)); \
      std::exit(EXIT_FAILURE);                                                  \
    }                                                                           \
  } while (0)

typedef struct {
  const uint8_t  *ref;        // one base per byte, 0..3
  int             ref_len;
  const uint32_t *kmer_start; // NUM_KMERS + 1
  const uint32_t *kmer_pos;
} index_t;

__host__ __device__ inline uint32_t kmer_code(const uint8_t *s)
{
  uint32_t c = 0;
  for (int i = 0; i < K; i++) c = (c << 2) | s[i];
  return c;
}

__host__ __device__ inline int hamming(const uint8_t *a, const uint8_t *b)
{
  int d = 0;
  for (int i = 0; i < READ_LEN; i++) d += a[i] != b[i];
  return d;
}

__device__ void verify(const index_t &idx, const uint8_t *read, uint32_t hit, int seed_off, unsigned long long *best)
{
  int start = (int)hit - seed_off;
  if (start < 0 || start + READ_LEN > idx.ref_len) return;
  unsigned long long d = hamming(read, idx.ref + start);
  atomicMin(best, d << 32 | (uint32_t)start);
}

__global__ void extend_hits(index_t idx, const uint8_t *read, uint32_t from, uint32_t to, int seed_off,
                            unsigned long long *best)
{
  for (uint32_t h = from + threadIdx.x + blockIdx.x * blockDim.x; h < to; h += blockDim.x * gridDim.x)
    verify(idx, read, idx.kmer_pos[h], seed_off, best);
}

__global__ void map_reads(index_t idx, const uint8_t *__restrict__ reads, int num_reads,
                          unsigned long long *__restrict__ best)
{
  const int r = blockDim.x * blockIdx.x + threadIdx.x;
  if (r >= num_reads)
    return;
  const uint8_t *read = reads + (size_t)r * READ_LEN;

  for (int s = 0; s < SEEDS; s++) {
    const int seed_off = s * (READ_LEN / SEEDS);
    const uint32_t code = kmer_code(read + seed_off);
    const uint32_t from = __ldg(&idx.kmer_start[code]);
    const uint32_t to   = __ldg(&idx.kmer_start[code + 1]);
    const uint32_t hits = to - from;
    if (!hits)
      continue;
    if (hits > MAX_INLINE_HITS)
      extend_hits<<<(hits + 63) >> 6, 64, 0, cudaStreamFireAndForget>>>(idx, read, from, to, seed_off, best + r);
    else
      for (uint32_t h = from; h < to; h++)
        verify(idx, read, idx.kmer_pos[h], seed_off, best + r);
  }
}

int main()
{
  const int ref_len = 200000, num_reads = 3000;
  std::vector<uint8_t> ref(ref_len), reads((size_t)num_reads * READ_LEN);
  srand(77);
  for (int i = 0; i < ref_len; i++)     // a satellite repeat inside random sequence
    ref[i] = (i / 500) % 20 == 0 ? (uint8_t)((i % 7 * 5 + i % 3) & 3) : (uint8_t)(rand() & 3);
  for (int r = 0; r < num_reads; r++) {
    int at = rand() % (ref_len - READ_LEN);
    for (int i = 0; i < READ_LEN; i++)
      reads[(size_t)r * READ_LEN + i] = rand() % 50 ? ref[at + i] : (uint8_t)(rand() & 3);
  }
  std::vector<uint32_t> start(NUM_KMERS + 1, 0), pos(ref_len - K + 1);
  for (int i = 0; i + K <= ref_len; i++) start[kmer_code(&ref[i]) + 1]++;
  for (uint32_t c = 0; c < NUM_KMERS; c++) start[c + 1] += start[c];
  std::vector<uint32_t> cur(start.begin(), start.end() - 1);
  for (int i = 0; i + K <= ref_len; i++) pos[cur[kmer_code(&ref[i])]++] = i;

  uint8_t *d_ref, *d_reads; uint32_t *d_start, *d_pos; unsigned long long *d_best;
  CUDA_TRY(cudaMalloc(&d_ref, ref.size()));
  CUDA_TRY(cudaMalloc(&d_reads, reads.size()));
  CUDA_TRY(cudaMalloc(&d_start, start.size() * 4));
  CUDA_TRY(cudaMalloc(&d_pos, pos.size() * 4));
  CUDA_TRY(cudaMalloc(&d_best, num_reads * sizeof(unsigned long long)));
  CUDA_TRY(cudaMemcpy(d_ref, ref.data(), ref.size(), cudaMemcpyHostToDevice));
  CUDA_TRY(cudaMemcpy(d_reads, reads.data(), reads.size(), cudaMemcpyHostToDevice));
  CUDA_TRY(cudaMemcpy(d_start, start.data(), start.size() * 4, cudaMemcpyHostToDevice));
  CUDA_TRY(cudaMemcpy(d_pos, pos.data(), pos.size() * 4, cudaMemcpyHostToDevice));
  CUDA_TRY(cudaMemset(d_best, 0xff, num_reads * sizeof(unsigned long long)));
  CUDA_TRY(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 4 * num_reads));

  index_t idx = {d_ref, ref_len, d_start, d_pos};
  map_reads<<<(num_reads + 127) / 128, 128>>>(idx, d_reads, num_reads, d_best);
  CUDA_TRY(cudaGetLastError());
  CUDA_TRY(cudaDeviceSynchronize());

  std::vector<unsigned long long> best(num_reads);
  CUDA_TRY(cudaMemcpy(best.data(), d_best, num_reads * sizeof(unsigned long long), cudaMemcpyDeviceToHost));
  for (int r = 0; r < num_reads; r++) {
    unsigned long long want = ~0ull;
    const uint8_t *read = &reads[(size_t)r * READ_LEN];
    for (int s = 0; s < SEEDS; s++) {
      int o = s * (READ_LEN / SEEDS);
      uint32_t c = kmer_code(read + o);
      for (uint32_t h = start[c]; h < start[c + 1]; h++) {
        int b = (int)pos[h] - o;
        if (b < 0 || b + READ_LEN > ref_len) continue;
        unsigned long long key = (unsigned long long)hamming(read, &ref[b]) << 32 | (uint32_t)b;
        if (key < want) want = key;
      }
    }
    if (want != best[r]) { std::printf("read %d: %llx, expected %llx\n", r, best[r], want); return 1; }
  }
  std::printf("OK: %d reads mapped\n", num_reads);
  return 0;
}
