// Chains of launches, as one grid: every link gets what the one before passes on, and sees what it has written.
#include <cstdio>

#include "gridfuse.cuh"

constexpr int kLinks = 11, kThreads = 5;

struct pass_args { int number; long long hash; };

__host__ __device__ inline long long mix(unsigned long long hash, unsigned long long value) {
    return static_cast<long long>((hash ^ value) * 0x5851f42d4c957f2dull + 99);
}

// The last thread writes what the next link reads.
__device__ void pass_link(gridfuse::Chain<pass_args>& chain, unsigned* written, long long* out, int number, long long hash) {
    if (threadIdx.x == kThreads - 1) written[number] = number == 0 ? 3 : written[number - 1] + 2;
    __syncthreads();
    if (threadIdx.x == 0 && number + 1 < kLinks) chain.launch({number + 1, mix(hash, number)});
    if (threadIdx.x == 1) out[number] = hash + written[number];
}

__global__ void pass(unsigned* written, long long* out, pass_args first, gridfuse::ChainMemory memory) {
    gridfuse::Chain<pass_args> chain(memory, first);
    while (chain.next()) {
        const pass_args args = chain.args();
        pass_link(chain, written, out, args.number, args.hash);
    }
}

// The last thread writes before it waits; the first one launches directly behind that. A link sees what all before it have written.
__global__ void overlap(unsigned* written, long long* out, long long first, gridfuse::ChainMemory memory) {
    gridfuse::Chain<long long> chain(memory, first);
    while (chain.next([](unsigned long long link) { return link + 1 < kLinks; })) {
        const int number = int(chain.number());
        if (threadIdx.x == kThreads - 1) written[number] = 3 + 2 * number;
        const long long hash = chain.wait_at_once();
        if (threadIdx.x == 0 && number + 1 < kLinks) chain.launch_at_once(mix(hash, number));
        unsigned seen = 0;
        for (int link = 0; link < number; ++link) seen += written[link];
        if (threadIdx.x == 1) out[number] = hash + seen;
    }
}

__host__ __device__ inline long long own_of(int number) { return mix(number, 7); }

// Each link looks back at what those before have said.
__global__ void add(unsigned* written, long long* out, long long first, gridfuse::ChainMemory memory) {
    gridfuse::DecoupledLookback<long long, gridfuse::plus> chain(memory, first);
    while (chain.next([](unsigned long long link) { return link + 1 < kLinks; })) {
        const int number = int(chain.number());
        if (threadIdx.x == blockDim.x - 1) written[number] = 3 + 2 * number;
        const long long before = chain.before(own_of(number));
        unsigned seen = 0;
        if (threadIdx.x == 0)
            for (int link = 0; link < number; ++link) seen += written[link];
        if (threadIdx.x == 0) out[number] = before + seen;
    }
}

template <class Launch, class Expected>
bool run(const char* name, unsigned* written, long long* out, Launch launch, Expected expected) {
    for (int number = 0; number < kLinks; ++number) out[number] = written[number] = 0;
    launch();
    bool right = cudaDeviceSynchronize() == cudaSuccess;
    for (int number = 0; number < kLinks; ++number) right = right && out[number] == expected(number);
    if (!right) std::printf("wrong: %s\n", name);
    return right;
}

int main() {
    unsigned* written;
    long long* out;
    cudaMallocManaged(&written, kLinks * sizeof(unsigned));
    cudaMallocManaged(&out, kLinks * sizeof(long long));
    const auto hash = [](int number) {
        long long hash = 5;
        for (int link = 0; link < number; ++link) hash = mix(hash, link);
        return hash;
    };
    const auto sum = [](int number) {
        unsigned long long sum = 5;
        for (int link = 0; link < number; ++link) sum += own_of(link) + 3 + 2 * link;
        return static_cast<long long>(sum);
    };
    bool right = run(
        "pass", written, out, [&] { pass<<<3, kThreads>>>(written, out, pass_args{0, 5}, gridfuse::chain_for()); },
        [&](int number) { return hash(number) + 3 + 2 * number; });
    right &= run(
        "overlap", written, out, [&] { overlap<<<3, kThreads>>>(written, out, 5, gridfuse::chain_for()); },
        [&](int number) { return hash(number) + number * (number + 2); });
    right &= run(
        "add", written, out, [&] { add<<<4, kThreads>>>(written, out, 5, gridfuse::chain_for()); }, sum);
    right &= run(
        "add, a thread a block", written, out, [&] { add<<<6, 1>>>(written, out, 5, gridfuse::chain_for()); }, sum);
    std::printf("%s\n", right ? "right" : "wrong");
    return right ? 0 : 1;
}
