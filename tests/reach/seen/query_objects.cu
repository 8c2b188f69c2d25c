#include <cstdio>
#include <cuda_runtime.h>

typedef struct __align__(8) {
  int oid;
  float x, y;
} ObjType;

struct Bucket {
  int nO;
  ObjType *arr_obj;
  Bucket *nxt;
};

struct QueryType {
  int minX, maxX;
};

struct QueryOut {
  int *obj_id;
  int *cnt;
  int seg;
};

struct Config {
  int block_size_query;
  int cells;
};

__device__ int CountObject(int cs, int ce, const Config *d_config, Bucket *d_grid) {
  int n = 0;
  for (int c = cs; c <= ce && c < d_config->cells; c++)
    for (Bucket *b = &d_grid[c]; b != NULL; b = b->nxt)
      n += b->nO;
  return n;
}

__global__ void CollectCells(QueryOut d_query_out, Bucket *d_grid, QueryType que, int anchor) {
  int cid = que.minX + blockIdx.x * blockDim.x + threadIdx.x;
  if (cid > que.maxX)
    return;
  Bucket *cur_bkt = &d_grid[cid];
  while (cur_bkt != NULL) {
    for (int j = 0; j < cur_bkt->nO; j++) {
      int pos = atomicAdd(&d_query_out.cnt[anchor], 1);
      if (pos < d_query_out.seg)
        d_query_out.obj_id[anchor * d_query_out.seg + pos] = cur_bkt->arr_obj[j].oid;
    }
    cur_bkt = cur_bkt->nxt;
  }
}

__global__ void QueryKernel(QueryOut d_query_out, QueryType *d_buffer_query, Config *d_config, Bucket *d_grid, int Avg) {
  int tid = threadIdx.x + blockIdx.x * blockDim.x;
  int anchor = tid;
  while (anchor < d_config->block_size_query) {
    QueryType que = d_buffer_query[anchor];
    int Cur = CountObject(que.minX, que.maxX, d_config, d_grid);
    if (Cur > Avg)
      CollectCells<<<(que.maxX - que.minX + 4) / 4, 4>>>(d_query_out, d_grid, que, anchor);
    else {
      for (int cid = que.minX; cid <= que.maxX; cid++) {
        Bucket *cur_bkt = &d_grid[cid];
        while (cur_bkt != NULL) {
          for (int j = 0; j < cur_bkt->nO; j++) {
            int pos = atomicAdd(&d_query_out.cnt[anchor], 1);
            if (pos < d_query_out.seg)
              d_query_out.obj_id[anchor * d_query_out.seg + pos] = cur_bkt->arr_obj[j].oid;
          }
          cur_bkt = cur_bkt->nxt;
        }
      }
    }
    anchor += gridDim.x * blockDim.x;
  }
}

int main() {
  const int cells = 24, queries = 40, seg = 64;
  Bucket *grid;
  ObjType *objs;
  Config *config;
  QueryType *que;
  QueryOut out;
  cudaMallocManaged(&grid, 2 * cells * sizeof(Bucket));
  cudaMallocManaged(&objs, 2 * cells * 4 * sizeof(ObjType));
  cudaMallocManaged(&config, sizeof(Config));
  cudaMallocManaged(&que, queries * sizeof(QueryType));
  cudaMallocManaged(&out.obj_id, queries * seg * sizeof(int));
  cudaMallocManaged(&out.cnt, queries * sizeof(int));
  out.seg = seg;
  config->block_size_query = queries;
  config->cells = cells;
  for (int i = 0; i < 2 * cells; i++) {
    grid[i].nO = 1 + i % 4;
    grid[i].arr_obj = objs + 4 * i;
    grid[i].nxt = i < cells && i % 3 ? &grid[i + cells] : NULL;
    for (int j = 0; j < 4; j++)
      objs[4 * i + j].oid = 4 * i + j + 1;
  }
  for (int q = 0; q < queries; q++) {
    que[q].minX = q % 12;
    que[q].maxX = que[q].minX + q % 9;
    out.cnt[q] = 0;
    for (int s = 0; s < seg; s++)
      out.obj_id[q * seg + s] = 0;
  }
  QueryKernel<<<1, 16>>>(out, que, config, grid, 12);
  cudaDeviceSynchronize();
  long sum = 0;
  for (int i = 0; i < queries; i++)
    sum += out.cnt[i] * (i + 1);
  for (int i = 0; i < queries * seg; i++)
    sum += out.obj_id[i];
  printf("%ld\n", sum);
}
