// Launches in loops, and what may change in them.

__global__ void step(float* to, const float* from, int n, int time) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) to[i] = (from[i - 1] + from[i] + from[i + 1]) / 3 + time;
}

// Time steps in order, with two buffers that change places.
__global__ void simulate(float* a, float* b, int n, int steps) {
    if (blockIdx.x * blockDim.x + threadIdx.x != 0) return;
    int blocks = (n + 255) / 256;
    for (int t = 0; t < steps; ++t) {
        step<<<blocks, 256>>>(b, a, n, t);
        float* swap = a;
        a = b;
        b = swap;
    }
}

__global__ void refine(float* cells, int first, int count, int level) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) cells[first + i] *= level;
}

// Adaptive refinement: each thread asks for as many levels as its cell needs.
__global__ void adapt(float* cells, const int* __restrict__ levels, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int level = 1;
    while (level <= levels[i]) {
        refine<<<1 << level, 64>>>(cells, i * 64, 64 << level, level);
        ++level;
    }
}

// The loop runs equally often for a block, but the offset is a thread's own.
__global__ void patches(float* cells, const int* __restrict__ count) {
    int patches = count[blockIdx.x];
    do {
        refine<<<patches, blockDim.x>>>(cells, threadIdx.x, blockDim.x, patches);
    } while (--patches > 0);
}

// Threads leave the loop at different times: what it leaves behind varies.
__global__ void left_early(float* cells, const float* __restrict__ error) {
    int rounds = 0;
    while (rounds < 10 && error[threadIdx.x * 10 + rounds] > 0.1f) ++rounds;
    refine<<<1, 64>>>(cells, 0, 64, rounds);
}

// Set differently on two paths that threads take apart, and on two that blocks do.
__global__ void merged(float* cells, int n) {
    int side = 0;
    if (threadIdx.x < n) side = 1;
    int part = 0;
    if (blockIdx.x < n) part = 1;
    refine<<<1, 64>>>(cells, side, part, n);
}
