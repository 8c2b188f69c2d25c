// Connected components by synchronous minimum-label propagation.
// The last block of a round to finish decides whether there is another round.
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(stmt)                                                            \
  do {                                                                         \
    cudaError_t rc = (stmt);                                                   \
    if (rc != cudaSuccess) {                                                   \
      std::fprintf(stderr, "%s failed: %s\n", #stmt, cudaGetErrorString(rc));  \
      std::exit(1);                                                            \
    }                                                                          \
  } while (0)

namespace cc {

struct RoundControl {
  unsigned blocksDone;
  int changed;
  int rounds;
};

template <int BlockSize>
__global__ void propagate(const int* __restrict__ rowPtr, const int* __restrict__ nbr, int n,
                          const int* cur, int* next, RoundControl* ctl, int maxRounds) {
  const int v = blockIdx.x * BlockSize + threadIdx.x;
  bool moved = false;
  if (v < n) {
    int best = cur[v];
    for (int e = rowPtr[v]; e < rowPtr[v + 1]; ++e) best = min(best, cur[nbr[e]]);
    next[v] = best;
    moved = best != cur[v];
  }
  if (__syncthreads_or(moved) && threadIdx.x == 0) atomicOr(&ctl->changed, 1);

  if (threadIdx.x == 0) {
    __threadfence();
    const unsigned ticket = atomicAdd(&ctl->blocksDone, 1u);
    if (ticket == gridDim.x - 1) {
      ctl->blocksDone = 0;
      const int again = atomicExch(&ctl->changed, 0);
      ctl->rounds += 1;
      if (again && ctl->rounds < maxRounds) {
        propagate<BlockSize><<<gridDim.x, BlockSize, 0, cudaStreamTailLaunch>>>(
            rowPtr, nbr, n, next, const_cast<int*>(cur), ctl, maxRounds);
      }
    }
  }
}

}  // namespace cc

int main() {
  const int n = 1500;
  std::vector<std::vector<int>> g(n);
  unsigned s = 42;
  auto rnd = [&s] { s = s * 1664525u + 1013904223u; return s >> 8; };
  for (int v = 0; v < n; ++v) {
    int group = v % 7;
    int w = v + 7 < n ? v + 7 : group;
    if (rnd() % 12 != 0) { g[v].push_back(w); g[w].push_back(v); }
    if (rnd() % 5 == 0) { int u = (rnd() % (n / 7)) * 7 + group; g[v].push_back(u); g[u].push_back(v); }
  }
  std::vector<int> row{0}, nbr, lab(n);
  for (int v = 0; v < n; ++v) {
    nbr.insert(nbr.end(), g[v].begin(), g[v].end());
    row.push_back((int)nbr.size());
    lab[v] = v;
  }

  int *dRow, *dNbr, *dA, *dB;
  cc::RoundControl *dCtl, ctl{};
  CHECK(cudaMalloc(&dRow, row.size() * sizeof(int)));
  CHECK(cudaMalloc(&dNbr, nbr.size() * sizeof(int)));
  CHECK(cudaMalloc(&dA, n * sizeof(int)));
  CHECK(cudaMalloc(&dB, n * sizeof(int)));
  CHECK(cudaMalloc(&dCtl, sizeof ctl));
  CHECK(cudaMemcpy(dRow, row.data(), row.size() * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dNbr, nbr.data(), nbr.size() * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dA, lab.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dCtl, &ctl, sizeof ctl, cudaMemcpyHostToDevice));

  constexpr int B = 192;
  cc::propagate<B><<<(n + B - 1) / B, B>>>(dRow, dNbr, n, dA, dB, dCtl, 5000);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  // after the last round both buffers hold the same labels
  CHECK(cudaMemcpy(lab.data(), dB, n * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(&ctl, dCtl, sizeof ctl, cudaMemcpyDeviceToHost));

  std::vector<int> ref(n, -1), stack;
  for (int v = 0; v < n; ++v) {
    if (ref[v] >= 0) continue;
    stack.push_back(v);
    ref[v] = v;
    while (!stack.empty()) {
      int u = stack.back();
      stack.pop_back();
      for (int w : g[u]) if (ref[w] < 0) { ref[w] = v; stack.push_back(w); }
    }
  }
  long long sum = 0;
  for (int v = 0; v < n; ++v) sum += (long long)lab[v] * (v + 3);
  std::printf("components: rounds=%d checksum=%lld %s\n", ctl.rounds, sum, lab == ref ? "ok" : "wrong");
  return lab != ref;
}
