// Mariani and Silver: a rectangle whose border is of one colour is filled, another is split.

constexpr int SPLIT = 4;
constexpr int MIN_SIDE = 32;
constexpr int MAX_DEPTH = 5;
constexpr int MIXED = -1;

__host__ __device__ int ceil_div(int n, int d) { return (n + d - 1) / d; }

__device__ int dwell(float2 low, float step, int x, int y) {
    float2 c = make_float2(low.x + x * step, low.y + y * step), z = c;
    int n = 0;
    while (n < 256 && z.x * z.x + z.y * z.y < 4.0f) {
        z = make_float2(z.x * z.x - z.y * z.y + c.x, 2 * z.x * z.y + c.y);
        ++n;
    }
    return n;
}

__global__ void fill(int* image, int width, int x0, int y0, int side, int value) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < side && y < side) image[(y0 + y) * width + x0 + x] = value;
}

__global__ void every_pixel(int* image, int width, float2 low, float step, int x0, int y0, int side) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < side && y < side) image[(y0 + y) * width + x0 + x] = dwell(low, step, x0 + x, y0 + y);
}

__global__ void rectangle(int* image, int width, float2 low, float step, int x0, int y0, int side, int depth) {
    x0 += side * blockIdx.x;
    y0 += side * blockIdx.y;
    __shared__ int low_dwell, high_dwell;
    int t = threadIdx.y * blockDim.x + threadIdx.x;
    if (t == 0) {
        low_dwell = 256;
        high_dwell = 0;
    }
    __syncthreads();
    for (int i = t; i < side; i += blockDim.x * blockDim.y) {
        int d = dwell(low, step, x0 + i, y0);
        atomicMin(&low_dwell, d);
        atomicMax(&high_dwell, d);
    }
    __syncthreads();
    int common = low_dwell == high_dwell ? low_dwell : MIXED;
    if (t != 0) return;
    dim3 threads(32, 8);
    dim3 blocks(ceil_div(side, threads.x), ceil_div(side, threads.y));
    if (common != MIXED) {
        fill<<<blocks, threads, 0, cudaStreamFireAndForget>>>(image, width, x0, y0, side, common);
    } else if (depth < MAX_DEPTH && side / SPLIT > MIN_SIDE) {
        rectangle<<<dim3(SPLIT, SPLIT), dim3(blockDim.x, blockDim.y), 0, cudaStreamFireAndForget>>>(
            image, width, low, step, x0, y0, side / SPLIT, depth + 1);
    } else {
        every_pixel<<<blocks, threads, 0, cudaStreamFireAndForget>>>(image, width, low, step, x0, y0, side);
    }
}
