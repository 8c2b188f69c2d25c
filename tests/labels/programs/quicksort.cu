// Quicksort by recursion: one thread partitions, each half becomes a child grid in a stream of its own.

constexpr int MAX_DEPTH = 16;
constexpr int SMALL = 32;

__device__ void selection_sort(unsigned* data, int left, int right) {
    for (int i = left; i < right; ++i) {
        int least = i;
        for (int j = i + 1; j <= right; ++j)
            if (data[j] < data[least]) least = j;
        unsigned t = data[i];
        data[i] = data[least];
        data[least] = t;
    }
}

__device__ int partition(unsigned* data, int left, int right) {
    unsigned pivot = data[right];
    int i = left - 1;
    for (int j = left; j < right; ++j) {
        if (data[j] <= pivot) {
            ++i;
            unsigned t = data[i];
            data[i] = data[j];
            data[j] = t;
        }
    }
    unsigned t = data[i + 1];
    data[i + 1] = data[right];
    data[right] = t;
    return i + 1;
}

__global__ void quicksort(unsigned* data, int left, int right, int depth) {
    if (depth >= MAX_DEPTH || right - left <= SMALL) {
        selection_sort(data, left, right);
        return;
    }
    int middle = partition(data, left, right);
    if (left < middle - 1) {
        cudaStream_t low;
        cudaStreamCreateWithFlags(&low, cudaStreamNonBlocking);
        quicksort<<<1, 1, 0, low>>>(data, left, middle - 1, depth + 1);
        cudaStreamDestroy(low);
    }
    if (middle + 1 < right) {
        cudaStream_t high;
        cudaStreamCreateWithFlags(&high, cudaStreamNonBlocking);
        quicksort<<<1, 1, 0, high>>>(data, middle + 1, right, depth + 1);
        cudaStreamDestroy(high);
    }
}

// The same with a block for each part: thread 0 partitions for all.
__global__ void quicksort_block(unsigned* data, int left, int right, int depth) {
    __shared__ int middle;
    if (right - left <= SMALL || depth >= MAX_DEPTH) {
        if (threadIdx.x == 0) selection_sort(data, left, right);
        return;
    }
    if (threadIdx.x == 0) middle = partition(data, left, right);
    __syncthreads();
    if (threadIdx.x == 0) quicksort_block<<<1, blockDim.x, 0, cudaStreamFireAndForget>>>(data, left, middle - 1, depth + 1);
    if (threadIdx.x == 1) quicksort_block<<<1, blockDim.x, 0, cudaStreamFireAndForget>>>(data, middle + 1, right, depth + 1);
}

int main() {
    unsigned* data;
    cudaMallocManaged(&data, 1024 * sizeof(unsigned));
    quicksort<<<1, 1>>>(data, 0, 1023, 0);
    quicksort_block<<<1, 64>>>(data, 0, 1023, 0);
    cudaDeviceSynchronize();
}
