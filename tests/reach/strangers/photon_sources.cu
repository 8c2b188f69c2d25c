#include <cstdio>
#include <cstdlib>
#include <cstdint>

/* Monte-Carlo photon transport in a slab. A source thread launches as many photon threads as its
 * brightness; tallies are integers. */

#define NLAYER 64

typedef struct {
  uint32_t photons;
  int depth;
  uint32_t seed;
} Source;

__device__ uint32_t next(uint32_t *s)
{
  uint32_t x = *s;
  x ^= x << 13; x ^= x >> 17; x ^= x << 5;
  return *s = x;
}

__global__ void trace(Source src, unsigned long long *tally)
{
  uint32_t id = blockIdx.x * blockDim.x + threadIdx.x;
  if (id >= src.photons) return;
  uint32_t s = src.seed ^ (id * 2654435761u);
  if (s == 0) s = 1;
  int z = src.depth;
  for (int bounce = 0; bounce < 200; bounce++) {
    uint32_t r = next(&s);
    if ((r & 15) == 0) { atomicAdd(&tally[z], 1ULL); return; }      // absorbed
    z += (r >> 8 & 1) ? 1 : -1;
    if (z < 0)       { atomicAdd(&tally[NLAYER], 1ULL); return; }   // reflected
    if (z >= NLAYER) { atomicAdd(&tally[NLAYER + 1], 1ULL); return; }
  }
}

__global__ void emit(const Source *src, int n, unsigned long long *tally)
{
  int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    if (src[i].photons == 0) continue;
    trace<<<(src[i].photons + 127) / 128, 128>>>(src[i], tally);
  }
}

int main(void)
{
  int n = 1000;
  Source *h = (Source *) malloc(n * sizeof(Source)), *d;
  srand(1);
  for (int i = 0; i < n; i++) {
    h[i].photons = i % 17 == 0 ? 0 : rand() % 600;
    h[i].depth = rand() % NLAYER;
    h[i].seed = rand();
  }
  unsigned long long *t, ht[NLAYER + 2], sum = 0;
  cudaMalloc((void **) &d, n * sizeof(Source));
  cudaMalloc((void **) &t, sizeof(ht));
  cudaMemset(t, 0, sizeof(ht));
  cudaMemcpy(d, h, n * sizeof(Source), cudaMemcpyHostToDevice);
  emit<<<2, 256>>>(d, n, t);
  cudaMemcpy(ht, t, sizeof(ht), cudaMemcpyDeviceToHost);
  for (int i = 0; i < NLAYER + 2; i++) sum += ht[i] * (i + 1);
  printf("reflected %llu transmitted %llu checksum %llu\n", ht[NLAYER], ht[NLAYER + 1], sum);
  free(h);
  return 0;
}
