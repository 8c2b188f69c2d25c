// Values that one thread finds and others use.

__global__ void work(int* out, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[begin + i] += 1;
}

// Behind a barrier all threads of a block read what thread 0 wrote.
__global__ void by_block(int* out, const int* __restrict__ sizes) {
    __shared__ int size;
    __shared__ int start;
    if (threadIdx.x == 0) {
        size = sizes[blockIdx.x];
        start = blockIdx.x * 1024;
    }
    __syncthreads();
    work<<<(size + 31) / 32, 32, 0, cudaStreamFireAndForget>>>(out, start, size);
}

// Without a barrier they may read anything.
__global__ void too_early(int* out, const int* __restrict__ sizes) {
    __shared__ int size;
    if (threadIdx.x == 0) size = sizes[blockIdx.x];
    work<<<1, 32>>>(out, size, size);
}

// One more write behind the barrier, by any thread.
__global__ void written_again(int* out) {
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    atomicAdd(&total, 1);
    work<<<1, 32>>>(out, 0, total);
}

// A shuffle from one lane: the same for the warp.
__global__ void by_warp(int* out, const int* __restrict__ sizes) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int size = __shfl_sync(0xffffffff, sizes[i], 0);
    int lane = threadIdx.x & 31;
    if (lane == 0) {
        work<<<(size + 63) / 64, 64>>>(out, i, size);
    }
}

// Every lane gets its neighbour's value.
__global__ void rotated(int* out, int n) {
    int next = __shfl_down_sync(0xffffffff, (int)threadIdx.x, 1);
    if (next > n) work<<<1, 64>>>(out, next, n);
}

// Votes.
__global__ void votes(int* out, const int* __restrict__ flags) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned mask = __ballot_sync(0xffffffff, flags[i] != 0);
    int many = __popc(mask);
    if (many > 16) work<<<1, 32>>>(out, many, many);
    int blocks = __syncthreads_count(flags[i] > 1);
    if (blocks > 0) work<<<blocks, 32>>>(out, 0, blocks);
}

// The leader of the lanes that are left takes a place for all of them.
__global__ void leader(int* out, int* cursor, const int* __restrict__ flags) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (flags[i] == 0) return;
    unsigned active = __activemask();
    int first = __ffs(active) - 1;
    if ((int)(threadIdx.x % 32) == first) {
        int at = atomicAdd(cursor, __popc(active));
        work<<<1, 32>>>(out, at, __popc(active));
    }
}
