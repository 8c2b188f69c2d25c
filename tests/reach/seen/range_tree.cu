// Reports all points of a priority search tree below a bound. A thread goes left itself and leaves the right to a new block.
#include <cstddef>
#include <cstdio>
#include <cuda_runtime.h>

template <typename T>
struct TreeNode {
  T dim1_val;
  T dim2_val;
  int left;
  int right;
};

template <typename T>
__global__ void reportAllGlobal(const TreeNode<T> *const root_d, const size_t num_elems, const int start_node, T *const res_arr_d,
                                unsigned long long *const res_ctr_d, const T min_dim2_val);

template <typename T>
__forceinline__ __device__ void splitReportAll(const TreeNode<T> *const &root_d, const size_t &num_elems, const int target_node,
                                               T *const res_arr_d, unsigned long long *const res_ctr_d, const T &min_dim2_val)
{
  reportAllGlobal<T><<<1, 1, 0, cudaStreamFireAndForget>>>(root_d, num_elems, target_node, res_arr_d, res_ctr_d, min_dim2_val);
}

template <typename T>
__global__ void reportAllGlobal(const TreeNode<T> *const root_d, const size_t num_elems, const int start_node, T *const res_arr_d,
                                unsigned long long *const res_ctr_d, const T min_dim2_val)
{
  int node = start_node;
  while (node >= 0 && root_d[node].dim2_val >= min_dim2_val) {
    const unsigned long long at = atomicAdd(res_ctr_d, 1);
    res_arr_d[at] = root_d[node].dim1_val;
    if (root_d[node].right >= 0)
      splitReportAll(root_d, num_elems, root_d[node].right, res_arr_d, res_ctr_d, min_dim2_val);
    node = root_d[node].left;
  }
}

int main() {
  const int n = 63;
  TreeNode<float> *nodes;
  float *res;
  unsigned long long *ctr;
  cudaMallocManaged(&nodes, n * sizeof(TreeNode<float>));
  cudaMallocManaged(&res, n * sizeof(float));
  cudaMallocManaged(&ctr, sizeof(unsigned long long));
  *ctr = 0;
  for (int i = 0; i < n; i++) {
    nodes[i].dim1_val = (i * 7) % 64;
    nodes[i].dim2_val = 100 - i - i % 3;
    nodes[i].left = 2 * i + 1 < n ? 2 * i + 1 : -1;
    nodes[i].right = 2 * i + 2 < n ? 2 * i + 2 : -1;
    res[i] = 0;
  }
  reportAllGlobal<float><<<1, 1>>>(nodes, n, 0, res, ctr, 60.0f);
  cudaDeviceSynchronize();
  double s = *ctr;
  for (int i = 0; i < n; i++) s += res[i];
  printf("%.1f\n", s);
}
