// What CUB makes of the work of three programs of the corpus: sc by DeviceSelect::If, unq by DeviceSelect::Unique, pt by
// DevicePartition::If (which stores the rest in reverse order).
//
//   select_cub [--bench sc|unq|pt] [--input small|medium|large] [--elements N] [--repeat N] [--label TEXT]

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <cub/device/device_partition.cuh>
#include <cub/device/device_select.cuh>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                      \
    do {                                                                                                 \
        cudaError_t error_ = (call);                                                                     \
        if (error_ != cudaSuccess) {                                                                     \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_)); \
            std::exit(2);                                                                                \
        }                                                                                                \
    } while (0)

struct NotZero {
    __host__ __device__ bool operator()(int value) const { return value != 0; }
};
struct Even {
    __host__ __device__ bool operator()(int value) const { return value % 2 == 0; }
};

// The data of the programs of the corpus.
uint64_t random_number(uint64_t i) {
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
std::vector<int> make_data(const std::string& bench, int n) {
    std::vector<int> data(n);
    for (int i = 0; i < n; ++i) {
        if (bench == "sc") data[i] = random_number(i / 8) % 4 == 0 || random_number(i) % 3 == 0 ? 0 : int(random_number(i) % 1000000) + 1;
        else if (bench == "unq") data[i] = i > 0 && random_number(i) % 2 == 0 ? data[i - 1] : int(random_number(i) % 1000);
        else data[i] = int(random_number(i) % 1000000);
    }
    return data;
}

// As the programs of the corpus count: tiles of 4,096.
int elements_of(const std::string& input) {
    if (input == "small") return 8 * 4096 - 100;
    if (input == "medium") return 24 * 4096 - 100;
    if (input == "large") return 4096 * 4096 - 100;
    std::fprintf(stderr, "no such input: %s\n", input.c_str());
    std::exit(2);
}

int main(int argc, char** argv) {
    std::string bench = "sc", input = "medium", label = "cub";
    int elements = 0, repeat = 20;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string flag = argv[i], value = argv[i + 1];
        if (flag == "--bench") bench = value;
        else if (flag == "--input") input = value;
        else if (flag == "--label") label = value;
        else if (flag == "--elements") elements = std::atoi(value.c_str());
        else if (flag == "--repeat") repeat = std::max(1, std::atoi(value.c_str()));
        else {
            std::fprintf(stderr, "unknown flag: %s\n", flag.c_str());
            return 2;
        }
    }
    const int n = elements > 0 ? elements : elements_of(input);
    const std::vector<int> data = make_data(bench, n);
    std::vector<int> expected, rest;
    for (int i = 0; i < n; ++i) {
        const bool keep = bench == "sc" ? data[i] != 0 : bench == "unq" ? i == 0 || data[i] != data[i - 1] : data[i] % 2 == 0;
        if (keep) expected.push_back(data[i]);
        else if (bench == "pt") rest.push_back(data[i]);
    }
    const int chosen = int(expected.size());
    expected.insert(expected.end(), rest.rbegin(), rest.rend());

    int *in, *out, *kept;
    CHECK(cudaMalloc(&in, n * sizeof(int)));
    CHECK(cudaMalloc(&out, n * sizeof(int)));
    CHECK(cudaMalloc(&kept, sizeof(int)));
    CHECK(cudaMemcpy(in, data.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    cudaStream_t stream;
    cudaEvent_t start, stop;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));

    void* memory = nullptr;
    size_t bytes = 0;
    auto work = [&] {
        if (bench == "sc") return cub::DeviceSelect::If(memory, bytes, in, out, kept, n, NotZero(), stream);
        if (bench == "unq") return cub::DeviceSelect::Unique(memory, bytes, in, out, kept, n, stream);
        return cub::DevicePartition::If(memory, bytes, in, out, kept, n, Even(), stream);
    };
    CHECK(work());   // says how much memory it takes
    CHECK(cudaMalloc(&memory, bytes));

    std::vector<float> times;
    for (int i = 0; i <= repeat; ++i) {   // the first round warms up
        CHECK(cudaMemset(out, 0xff, n * sizeof(int)));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(start, stream));
        CHECK(work());
        CHECK(cudaStreamSynchronize(stream));   // as the programs of the corpus do
        CHECK(cudaEventRecord(stop, stream));
        CHECK(cudaEventSynchronize(stop));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (i > 0) times.push_back(ms);
    }
    int size = 0;
    CHECK(cudaMemcpy(&size, kept, sizeof(int), cudaMemcpyDeviceToHost));
    std::vector<int> result(expected.size());
    CHECK(cudaMemcpy(result.data(), out, result.size() * sizeof(int), cudaMemcpyDeviceToHost));
    const bool pass = size == chosen && result == expected;
    std::reverse(result.begin() + std::min(size, int(result.size())), result.end());   // CUB leaves what isn't chosen in reverse order
    uint64_t checksum = 14695981039346656037ull;   // FNV-1a
    for (int value : result) checksum = (checksum ^ uint32_t(value)) * 1099511628211ull;
    std::sort(times.begin(), times.end());
    std::printf("{\"bench\":\"%s\",\"input\":\"%s\",\"variant\":\"%s\",\"time_ms\":%.4f,\"verdict\":\"%s\",\"checksum\":\"%016llx\","
                "\"elements\":%d,\"repeats\":%d}\n",
                bench.c_str(), input.c_str(), label.c_str(), times[times.size() / 2], pass ? "pass" : "fail",
                (unsigned long long)checksum, n, int(times.size()));
    return pass ? 0 : 1;
}
