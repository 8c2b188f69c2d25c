// What is loaded, and who may write it meanwhile.

struct Settings {
    int size;
    float scale;
};

__constant__ Settings settings;
__constant__ int table[64];
__device__ int progress;
__device__ const float ratio = 0.5f;
static const int TILE = 32;

__global__ void child(float* out, int first, int count, float scale) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[first + i] *= scale;
}

__global__ void from_constant(float* out) {
    int tid = threadIdx.x;
    if (tid == 0) child<<<settings.size / TILE, TILE>>>(out, table[blockIdx.x], settings.size, settings.scale);
    if (tid < 64) child<<<1, TILE>>>(out, table[tid], TILE, ratio);
}

// The counter changes while the grid runs.
__global__ void counted(float* out, int n) {
    atomicAdd(&progress, 1);
    int now = progress;
    int before = atomicAdd(&progress, n);
    child<<<1, 32>>>(out, now, before, 1.0f);
}

// Read-only for the grid: a parameter that nothing here writes through.
__global__ void offsets(float* out, const int* begin, const int* __restrict__ end, const float* scale) {
    int b = blockIdx.x;
    int first = begin[b];
    int count = end[b] - first;
    if (threadIdx.x == 0) {
        child<<<(count + 31) / 32, 32>>>(out, first, count, *scale);
    }
}

// Written by the kernel itself.
__global__ void own_queue(float* out, int* queue, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) queue[i] = i * 2;
    child<<<1, 32>>>(out, queue[0], n, 0.5f);
}

__global__ void volatile_flag(float* out, volatile int* flag) {
    int f = *flag;
    child<<<1, 32>>>(out, f, 32, 0.5f);
}

__global__ void textures(float* out, cudaTextureObject_t image, int width) {
    int y = blockIdx.x;
    float scale = tex2D<float>(image, 0.5f, y + 0.5f);
    if (threadIdx.x == 0) child<<<(width + 31) / 32, 32>>>(out, y * width, width, scale);
}

// A thread's own array.
__global__ void own_array(float* out, int n) {
    int part[4];
    for (int k = 0; k < 4; ++k) part[k] = threadIdx.x * k;
    int same[2] = {n, n + 1};
    child<<<1, 32>>>(out, part[1], same[0], 0.5f);
}

// The operands vary by thread, the difference doesn't: an analysis may well not see it, and must not claim more.
__global__ void cancelled(float* out, const int* __restrict__ row, int width) {
    int begin = threadIdx.x * width, end = (threadIdx.x + 1) * width;
    child<<<(end - begin) / 32, 32>>>(out, begin, end - begin, 0.5f);
}

__global__ void from_pool(int n, float scale) {
    float* mine = (float*)malloc(n * sizeof(float));
    child<<<(n + 31) / 32, 32>>>(mine, 0, n, scale);
}
