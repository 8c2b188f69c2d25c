// Quicksort with dynamic parallelism, twice: a simple one, in which one thread partitions and launches a grid for each side, and an
// advanced one, in which warps partition together, a ring buffer hands out the state that a partition needs, and short parts go
// to a bitonic sort. A source for measurements of editors, as long and as branched as a vendor's sample: compiled, not run.
//
//   quicksort [--keys N] [--simple] [--verify] [--seed N] [--repeat N]

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                           \
    do {                                                                                                      \
        cudaError_t error_ = (call);                                                                          \
        if (error_ != cudaSuccess) {                                                                          \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));    \
            std::exit(EXIT_FAILURE);                                                                          \
        }                                                                                                     \
    } while (0)

#define WARP_SIZE 32
#define FULL_MASK 0xffffffffu

// Below this many keys a part is sorted bitonically.
#define BITONIC_LENGTH 1024
#define QSORT_BLOCK_SHIFT 9
#define QSORT_BLOCK (1 << QSORT_BLOCK_SHIFT)

// The ring buffer has this many entries; a partition waits for one when all are taken.
#define RING_ENTRIES 4096

// The simple version stops recursing here.
#define MAX_DEPTH 16
#define SELECTION_LENGTH 32

// ------------------------------------------------------------------------------------------------------
// State that the blocks of one partition share.
// ------------------------------------------------------------------------------------------------------

/// The counters of one partition.
struct __align__(128) PartitionState {
    volatile unsigned int left_written;
    volatile unsigned int right_written;
    volatile unsigned int left_reserved;
    volatile unsigned int right_reserved;
    volatile unsigned int blocks_done;
    volatile unsigned int taken;
    unsigned int depth;
    unsigned int unused;
};

/// Entries that are handed out in turn.
struct PartitionRing {
    volatile unsigned int head;
    volatile unsigned int tail;
    volatile unsigned int failed;
    unsigned int mask;
    PartitionState* entries;
};

__device__ inline unsigned int lane_id() {
    return threadIdx.x & (WARP_SIZE - 1);
}

__device__ inline unsigned int lanes_below(unsigned int mask) {
    return __popc(mask & ((1u << lane_id()) - 1u));
}

template <typename T>
__device__ inline void exchange(T& a, T& b) {
    T old = a;
    a = b;
    b = old;
}

/// Takes an entry, or returns null when there is none.
__device__ PartitionState* ring_take(PartitionRing* ring, unsigned int depth) {
    for (unsigned int attempt = 0; attempt < RING_ENTRIES; ++attempt) {
        unsigned int index = atomicAdd((unsigned int*)&ring->head, 1u) & ring->mask;
        PartitionState* entry = ring->entries + index;
        if (atomicCAS((unsigned int*)&entry->taken, 0u, 1u) == 0u) {
            entry->left_written = 0;
            entry->right_written = 0;
            entry->left_reserved = 0;
            entry->right_reserved = 0;
            entry->blocks_done = 0;
            entry->depth = depth;
            __threadfence();
            return entry;
        }
    }
    atomicAdd((unsigned int*)&ring->failed, 1u);
    return nullptr;
}

/// Gives an entry back.
__device__ void ring_give(PartitionRing* ring, PartitionState* entry) {
    __threadfence();
    entry->taken = 0;
    atomicAdd((unsigned int*)&ring->tail, 1u);
}

// ------------------------------------------------------------------------------------------------------
// Sorting short parts.
// ------------------------------------------------------------------------------------------------------

/// Orders two keys; `up` is the direction.
__device__ inline void compare(unsigned int& a, unsigned int& b, bool up) {
    if ((a > b) == up) {
        exchange(a, b);
    }
}

/// Sorts up to BITONIC_LENGTH keys in one block.
__global__ void bitonic_sort(unsigned int* from, unsigned int* to, unsigned int offset, unsigned int length) {
    __shared__ unsigned int keys[BITONIC_LENGTH];
    from += offset;
    to += offset;
    for (unsigned int i = threadIdx.x; i < BITONIC_LENGTH; i += blockDim.x) {
        keys[i] = i < length ? from[i] : 0xffffffffu;
    }
    __syncthreads();
    for (unsigned int size = 2; size <= BITONIC_LENGTH; size *= 2) {
        for (unsigned int stride = size / 2; stride > 0; stride /= 2) {
            for (unsigned int i = threadIdx.x; i < BITONIC_LENGTH / 2; i += blockDim.x) {
                unsigned int position = 2 * i - (i & (stride - 1));
                bool up = (position & size) == 0;
                compare(keys[position], keys[position + stride], up);
            }
            __syncthreads();
        }
    }
    for (unsigned int i = threadIdx.x; i < length; i += blockDim.x) {
        to[i] = keys[i];
    }
}

/// Sorts more keys than a block can hold, when the recursion has become too deep: odd-even merging in global memory.
__global__ void big_bitonic_sort(unsigned int* from, unsigned int* to, unsigned int* back, unsigned int offset,
                                 unsigned int length) {
    from += offset;
    to += offset;
    back += offset;
    unsigned int whole = 1;
    while (whole < length) {
        whole *= 2;
    }
    for (unsigned int i = threadIdx.x; i < length; i += blockDim.x) {
        back[i] = from[i];
    }
    __syncthreads();
    for (unsigned int size = 2; size <= whole; size *= 2) {
        for (unsigned int stride = size / 2; stride > 0; stride /= 2) {
            for (unsigned int i = threadIdx.x; i < whole; i += blockDim.x) {
                unsigned int other = stride == size / 2 ? (i & ~(size - 1)) + (size - 1 - (i & (size - 1))) : i ^ stride;
                if (other > i && other < length) {
                    unsigned int a = back[i];
                    unsigned int b = back[other];
                    if (a > b) {
                        back[i] = b;
                        back[other] = a;
                    }
                }
            }
            __syncthreads();
        }
    }
    for (unsigned int i = threadIdx.x; i < length; i += blockDim.x) {
        to[i] = back[i];
    }
}

/// One thread sorts a few keys.
__device__ void selection_sort(unsigned int* data, int left, int right) {
    for (int i = left; i <= right; ++i) {
        unsigned int least_value = data[i];
        int least = i;
        for (int j = i + 1; j <= right; ++j) {
            unsigned int value = data[j];
            if (value < least_value) {
                least = j;
                least_value = value;
            }
        }
        if (i != least) {
            data[least] = data[i];
            data[i] = least_value;
        }
    }
}

// ------------------------------------------------------------------------------------------------------
// The simple version.
// ------------------------------------------------------------------------------------------------------

/// One thread partitions, and launches a grid of one thread for each side.
__global__ void simple_quicksort(unsigned int* data, int left, int right, int depth) {
    if (depth >= MAX_DEPTH || right - left <= SELECTION_LENGTH) {
        selection_sort(data, left, right);
        return;
    }
    unsigned int* low = data + left;
    unsigned int* high = data + right;
    unsigned int pivot = data[(left + right) / 2];
    while (low <= high) {
        unsigned int low_value = *low;
        unsigned int high_value = *high;
        while (low_value < pivot) {
            ++low;
            low_value = *low;
        }
        while (high_value > pivot) {
            --high;
            high_value = *high;
        }
        if (low <= high) {
            *low++ = high_value;
            *high-- = low_value;
        }
    }
    int next_right = int(high - data);
    int next_left = int(low - data);
    if (left < (high - data)) {
        cudaStream_t stream;
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        simple_quicksort<<<1, 1, 0, stream>>>(data, left, next_right, depth + 1);
        cudaStreamDestroy(stream);
    }
    if ((low - data) < right) {
        cudaStream_t stream;
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        simple_quicksort<<<1, 1, 0, stream>>>(data, next_left, right, depth + 1);
        cudaStreamDestroy(stream);
    }
}

// ------------------------------------------------------------------------------------------------------
// The advanced version.
// ------------------------------------------------------------------------------------------------------

/// How many blocks a part of so many keys gets.
__host__ __device__ inline unsigned int blocks_for(unsigned int length) {
    return (length + QSORT_BLOCK - 1) >> QSORT_BLOCK_SHIFT;
}

/// Each warp reads 32 keys, counts with a ballot how many belong to each side, reserves room for all of them with one atomic
/// operation, and writes them. The block that is done last launches a grid for each side.
__global__ void partition_warps(unsigned int* from, unsigned int* to, unsigned int offset, unsigned int length,
                                PartitionState* state, PartitionRing* ring, bool from_is_first, bool first_launch) {
    unsigned int thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int* in = from + offset;
    unsigned int* out = to + offset;
    unsigned int pivot = in[length / 2];
    unsigned int key = 0;
    bool inside = thread < length;
    if (inside) {
        key = in[thread];
    }
    unsigned int active = __ballot_sync(FULL_MASK, inside);
    unsigned int greater = __ballot_sync(FULL_MASK, inside && key > pivot);
    unsigned int less = __ballot_sync(FULL_MASK, inside && key <= pivot);
    unsigned int less_count = __popc(less);
    unsigned int greater_count = __popc(greater);

    // A pivot that is the greatest key puts all on the left: then equal keys go to the right.
    if (active == 0) {
        less_count = 0;
        greater_count = 0;
    }

    unsigned int left_base = 0;
    unsigned int right_base = 0;
    if (lane_id() == 0) {
        if (less_count > 0) {
            left_base = atomicAdd((unsigned int*)&state->left_reserved, less_count);
        }
        if (greater_count > 0) {
            right_base = atomicAdd((unsigned int*)&state->right_reserved, greater_count);
        }
    }
    left_base = __shfl_sync(FULL_MASK, left_base, 0);
    right_base = __shfl_sync(FULL_MASK, right_base, 0);

    if (inside) {
        if (key <= pivot) {
            out[left_base + lanes_below(less)] = key;
        } else {
            out[length - 1 - right_base - lanes_below(greater)] = key;
        }
    }
    __threadfence();
    __syncthreads();

    if (threadIdx.x == 0) {
        unsigned int done = atomicAdd((unsigned int*)&state->blocks_done, 1u);
        if (done == gridDim.x - 1) {
            unsigned int left_length = state->left_reserved;
            unsigned int right_length = state->right_reserved;
            unsigned int depth = state->depth;
            unsigned int left_offset = offset;
            unsigned int right_offset = offset + left_length;
            ring_give(ring, state);

            if (depth >= MAX_DEPTH || left_length == length || right_length == length) {
                big_bitonic_sort<<<1, QSORT_BLOCK>>>(to, from_is_first ? from : to, from_is_first ? to : from, offset,
                                                     length);
                return;
            }

            cudaStream_t left_stream, right_stream;
            cudaStreamCreateWithFlags(&left_stream, cudaStreamNonBlocking);
            cudaStreamCreateWithFlags(&right_stream, cudaStreamNonBlocking);

            if (left_length > BITONIC_LENGTH) {
                PartitionState* next = ring_take(ring, depth + 1);
                if (next != nullptr) {
                    partition_warps<<<blocks_for(left_length), QSORT_BLOCK, 0, left_stream>>>(
                        to, from, left_offset, left_length, next, ring, !from_is_first, false);
                }
            } else if (left_length > 1) {
                bitonic_sort<<<1, BITONIC_LENGTH / 2, 0, left_stream>>>(to, from_is_first ? from : to, left_offset,
                                                                        left_length);
            } else if (left_length == 1 && from_is_first) {
                from[left_offset] = to[left_offset];
            }

            if (right_length > BITONIC_LENGTH) {
                PartitionState* next = ring_take(ring, depth + 1);
                if (next != nullptr) {
                    partition_warps<<<blocks_for(right_length), QSORT_BLOCK, 0, right_stream>>>(
                        to, from, right_offset, right_length, next, ring, !from_is_first, false);
                }
            } else if (right_length > 1) {
                bitonic_sort<<<1, BITONIC_LENGTH / 2, 0, right_stream>>>(to, from_is_first ? from : to, right_offset,
                                                                         right_length);
            } else if (right_length == 1 && from_is_first) {
                from[right_offset] = to[right_offset];
            }

            cudaStreamDestroy(left_stream);
            cudaStreamDestroy(right_stream);
        }
    }
}

/// Takes the first entry of the ring and starts.
__global__ void start_partition(unsigned int* keys, unsigned int* other, unsigned int length, PartitionRing* ring) {
    if (threadIdx.x != 0 || blockIdx.x != 0) {
        return;
    }
    if (length <= BITONIC_LENGTH) {
        bitonic_sort<<<1, BITONIC_LENGTH / 2>>>(keys, keys, 0, length);
        return;
    }
    PartitionState* state = ring_take(ring, 0);
    if (state == nullptr) {
        return;
    }
    partition_warps<<<blocks_for(length), QSORT_BLOCK>>>(keys, other, 0, length, state, ring, true, true);
}

// ------------------------------------------------------------------------------------------------------
// Sorting rows of a matrix: each row has a length of its own.
// ------------------------------------------------------------------------------------------------------

/// The rows of a sparse matrix.
struct Rows {
    const unsigned int* begin;
    unsigned int* columns;
    unsigned int count;
};

/// Where a key of a row goes: as many smaller ones there are.
template <unsigned int Threads>
__global__ void rank_row(const unsigned int* columns, unsigned int* sorted, unsigned int begin, unsigned int length) {
    __shared__ unsigned int keys[Threads];
    for (unsigned int base = 0; base < length; base += Threads) {
        unsigned int i = base + threadIdx.x;
        unsigned int key = i < length ? columns[begin + i] : 0;
        unsigned int rank = 0;
        for (unsigned int tile = 0; tile < length; tile += Threads) {
            __syncthreads();
            keys[threadIdx.x] = tile + threadIdx.x < length ? columns[begin + tile + threadIdx.x] : 0xffffffffu;
            __syncthreads();
            for (unsigned int k = 0; k < Threads && tile + k < length; ++k) {
                unsigned int other = keys[k];
                rank += other < key || (other == key && tile + k < i);
            }
        }
        if (i < length) {
            sorted[begin + rank] = key;
        }
    }
}

/// Every thread has a row, and launches a grid for it when it is long.
__global__ void sort_rows(Rows rows, unsigned int* sorted, unsigned int threshold) {
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows.count) {
        return;
    }
    unsigned int begin = rows.begin[row];
    unsigned int length = rows.begin[row + 1] - begin;
    if (length > threshold) {
        rank_row<128><<<1, 128>>>(rows.columns, sorted, begin, length);
        return;
    }
    for (unsigned int i = 0; i < length; ++i) {
        unsigned int key = rows.columns[begin + i];
        unsigned int rank = 0;
        for (unsigned int k = 0; k < length; ++k) {
            unsigned int other = rows.columns[begin + k];
            rank += other < key || (other == key && k < i);
        }
        sorted[begin + rank] = key;
    }
}

/// Says whether neighbours are in order.
__global__ void count_disorder(const unsigned int* keys, unsigned int length, unsigned int* disorder) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool wrong = i + 1 < length && keys[i] > keys[i + 1];
    unsigned int mask = __ballot_sync(FULL_MASK, wrong);
    if (lane_id() == 0 && mask != 0) {
        atomicAdd(disorder, __popc(mask));
    }
}

// ------------------------------------------------------------------------------------------------------
// The host.
// ------------------------------------------------------------------------------------------------------

/// What the command line says.
struct Options {
    unsigned int keys = 1u << 18;
    unsigned int seed = 1;
    unsigned int repeat = 3;
    unsigned int rows = 2048;
    unsigned int threshold = 64;
    bool simple = false;
    bool verify = false;
};

/// The same numbers everywhere.
class Random {
public:
    explicit Random(uint64_t seed) : state_(seed) {}

    uint32_t next() {
        uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return uint32_t((z ^ (z >> 31)) >> 32);
    }

private:
    uint64_t state_;
};

/// Times what happens between two calls.
class Stopwatch {
public:
    Stopwatch() {
        CHECK(cudaEventCreate(&begin_));
        CHECK(cudaEventCreate(&end_));
    }

    ~Stopwatch() {
        cudaEventDestroy(begin_);
        cudaEventDestroy(end_);
    }

    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

    void start() {
        CHECK(cudaEventRecord(begin_));
    }

    float stop() {
        CHECK(cudaEventRecord(end_));
        CHECK(cudaEventSynchronize(end_));
        float milliseconds = 0;
        CHECK(cudaEventElapsedTime(&milliseconds, begin_, end_));
        return milliseconds;
    }

private:
    cudaEvent_t begin_;
    cudaEvent_t end_;
};

/// Memory of the device, freed at the end.
template <typename T>
class DeviceArray {
public:
    explicit DeviceArray(size_t count) : count_(count) {
        CHECK(cudaMalloc(&data_, count * sizeof(T)));
        CHECK(cudaMemset(data_, 0, count * sizeof(T)));
    }

    ~DeviceArray() {
        cudaFree(data_);
    }

    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;

    T* get() const {
        return data_;
    }

    void set(const std::vector<T>& values) {
        CHECK(cudaMemcpy(data_, values.data(), std::min(values.size(), count_) * sizeof(T), cudaMemcpyHostToDevice));
    }

    std::vector<T> values() const {
        std::vector<T> values(count_);
        CHECK(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
        return values;
    }

private:
    T* data_ = nullptr;
    size_t count_;
};

/// Reads the command line.
static Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        std::string flag = argv[i];
        auto value = [&]() -> unsigned int {
            if (i + 1 >= argc) {
                std::fprintf(stderr, "%s needs a value\n", flag.c_str());
                std::exit(EXIT_FAILURE);
            }
            return unsigned(std::strtoul(argv[++i], nullptr, 10));
        };
        if (flag == "--keys") {
            options.keys = std::max(1u, value());
        } else if (flag == "--seed") {
            options.seed = value();
        } else if (flag == "--repeat") {
            options.repeat = std::max(1u, value());
        } else if (flag == "--rows") {
            options.rows = std::max(1u, value());
        } else if (flag == "--threshold") {
            options.threshold = value();
        } else if (flag == "--simple") {
            options.simple = true;
        } else if (flag == "--verify") {
            options.verify = true;
        } else {
            std::fprintf(stderr, "unknown flag: %s\n", flag.c_str());
            std::exit(EXIT_FAILURE);
        }
    }
    return options;
}

static std::vector<unsigned int> make_keys(const Options& options) {
    Random random(options.seed);
    std::vector<unsigned int> keys(options.keys);
    for (unsigned int& key : keys) {
        key = random.next();
    }
    return keys;
}

/// Sorts with one thread for each part.
static float run_simple(DeviceArray<unsigned int>& keys, unsigned int count, Stopwatch& watch) {
    watch.start();
    simple_quicksort<<<1, 1>>>(keys.get(), 0, int(count) - 1, 0);
    CHECK(cudaGetLastError());
    return watch.stop();
}

/// Sorts with warps.
static float run_advanced(DeviceArray<unsigned int>& keys, unsigned int count, Stopwatch& watch) {
    DeviceArray<unsigned int> other(count);
    DeviceArray<PartitionState> entries(RING_ENTRIES);
    DeviceArray<PartitionRing> ring(1);
    PartitionRing made;
    std::memset((void*)&made, 0, sizeof made);
    made.mask = RING_ENTRIES - 1;
    made.entries = entries.get();
    CHECK(cudaMemcpy(ring.get(), (const void*)&made, sizeof made, cudaMemcpyHostToDevice));
    watch.start();
    start_partition<<<1, 1>>>(keys.get(), other.get(), count, ring.get());
    CHECK(cudaGetLastError());
    return watch.stop();
}

/// Sorts the rows of a matrix whose rows have very different lengths.
static bool run_rows(const Options& options, Stopwatch& watch) {
    Random random(options.seed + 1);
    std::vector<unsigned int> begin(options.rows + 1, 0);
    for (unsigned int row = 0; row < options.rows; ++row) {
        unsigned int length = random.next() % 16 == 0 ? random.next() % 1024 : random.next() % 32;
        begin[row + 1] = begin[row] + length;
    }
    std::vector<unsigned int> columns(std::max(1u, begin.back()));
    for (unsigned int& column : columns) {
        column = random.next() % 65536;
    }
    DeviceArray<unsigned int> begin_array(begin.size());
    DeviceArray<unsigned int> column_array(columns.size());
    DeviceArray<unsigned int> sorted_array(columns.size());
    begin_array.set(begin);
    column_array.set(columns);
    Rows rows = {begin_array.get(), column_array.get(), options.rows};
    watch.start();
    sort_rows<<<(options.rows + 127) / 128, 128>>>(rows, sorted_array.get(), options.threshold);
    CHECK(cudaGetLastError());
    float time = watch.stop();
    std::printf("rows: %u, columns: %u, %.3f ms\n", options.rows, begin.back(), time);
    std::vector<unsigned int> sorted = sorted_array.values();
    for (unsigned int row = 0; row < options.rows; ++row) {
        if (!std::is_sorted(sorted.begin() + begin[row], sorted.begin() + begin[row + 1])) {
            std::fprintf(stderr, "row %u is out of order\n", row);
            return false;
        }
    }
    return true;
}

/// How many neighbours are out of order.
static unsigned int disorder_of(const DeviceArray<unsigned int>& keys, unsigned int count) {
    DeviceArray<unsigned int> disorder(1);
    count_disorder<<<(count + 255) / 256, 256>>>(keys.get(), count, disorder.get());
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    return disorder.values()[0];
}

static bool verify(const std::vector<unsigned int>& keys, const std::vector<unsigned int>& sorted) {
    std::vector<unsigned int> expected = keys;
    std::sort(expected.begin(), expected.end());
    for (size_t i = 0; i < expected.size(); ++i) {
        if (expected[i] != sorted[i]) {
            std::fprintf(stderr, "key %zu is %u, not %u\n", i, sorted[i], expected[i]);
            return false;
        }
    }
    return true;
}

int main(int argc, char** argv) {
    Options options = parse(argc, argv);
    int device = 0;
    cudaDeviceProp properties;
    CHECK(cudaGetDevice(&device));
    CHECK(cudaGetDeviceProperties(&properties, device));
    std::printf("%s, %d multiprocessors\n", properties.name, properties.multiProcessorCount);
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 16384));

    std::vector<unsigned int> keys = make_keys(options);
    DeviceArray<unsigned int> array(keys.size());
    Stopwatch watch;
    std::vector<float> times;
    bool good = true;
    for (unsigned int round = 0; round < options.repeat; ++round) {
        array.set(keys);
        float time = options.simple ? run_simple(array, options.keys, watch) : run_advanced(array, options.keys, watch);
        times.push_back(time);
        unsigned int disorder = disorder_of(array, options.keys);
        if (disorder != 0) {
            std::fprintf(stderr, "%u keys are out of order\n", disorder);
            good = false;
        }
        if (options.verify) {
            good = verify(keys, array.values()) && good;
        }
    }
    std::sort(times.begin(), times.end());
    std::printf("keys: %u, %.3f ms\n", options.keys, times[times.size() / 2]);
    good = run_rows(options, watch) && good;
    std::printf("%s\n", good ? "passed" : "failed");
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
