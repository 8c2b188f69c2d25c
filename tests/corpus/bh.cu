// Gravity among bodies in a plane (Barnes and Hut). The bodies are in the leaves of a quadtree. For each body the tree is walked
// from its root: the bodies of a cell that is far away count as one, and a near leaf's bodies count one by one. A body launches a
// grid over those of each such leaf.
//
//   bh [--input skewed|flat] [--variant serial|naive] [--bodies N] [--repeat N]
//       [--threads N] [--pending N] [--label TEXT]
//
// Makes its own bodies, compares with the CPU and prints one line of JSON. Forces are sums of whole numbers, so that the order of
// the additions makes no difference.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                      \
    do {                                                                                                 \
        cudaError_t error_ = (call);                                                                     \
        if (error_ != cudaSuccess) {                                                                     \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_)); \
            std::exit(2);                                                                                \
        }                                                                                                \
    } while (0)

constexpr int kLeafBodies = 32;
constexpr int kMostLevels = 6;
constexpr int kSide = 1 << 14;   // coordinates are 0 .. kSide - 1

constexpr float kUnit = float(1 << 26);   // forces are in units of 1 / kUnit

// ---------------------------------------------------------------------------------------- kernels

struct Body {
    int x, y, mass;
};

struct Cell {
    int x, y, size;         // the square that it covers
    int first, count;       // its bodies, if it is a leaf
    int child, next;        // what a walk visits next: inside of it (-1 in a leaf), and behind it (-1 at the end)
    float center_x, center_y, mass;   // of all bodies in it
};

using Sum = unsigned long long;   // wraps around, so it holds negative numbers as well

struct Force {
    Sum x, y;
};

__device__ inline Sum rounded(float value) { return Sum(llrintf(value * kUnit)); }

// What a mass at the distance (dx, dy) does. Nothing is nearer than 1.
__host__ __device__ inline float2 pull(float dx, float dy, float mass) {
    float square = dx * dx + dy * dy + 1;
    float factor = mass / (square * sqrtf(square));
    return {dx * factor, dy * factor};
}

// Whether a cell is far enough from a body: farther than its size. Exact, so that it is the same everywhere.
__host__ __device__ inline bool is_far(const Cell& cell, const Body& body) {
    int half = cell.size / 2;
    int dx = cell.x + half - body.x, dy = cell.y + half - body.y;
    return dx * dx + dy * dy > cell.size * cell.size;
}

// Adds what `count` bodies from `first` on, a leaf's, do to one body.
__global__ void pull_by_leaf(const Body* bodies, Force* forces, int which, int first, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        Body body = bodies[which], other = bodies[first + i];
        float2 force = pull(float(other.x - body.x), float(other.y - body.y), float(other.mass));
        atomicAdd(&forces[which].x, rounded(force.x));
        atomicAdd(&forces[which].y, rounded(force.y));
    }
}

__global__ void walk(const Body* bodies, const Cell* cells, Force* forces, int n) {
    int which = blockIdx.x * blockDim.x + threadIdx.x;
    if (which >= n) return;
    Body body = bodies[which];
    Sum x = 0, y = 0;
    int at = 0;
    while (at >= 0) {
        Cell cell = cells[at];
        at = cell.next;
        if (is_far(cell, body)) {
            float2 force = pull(cell.center_x - float(body.x), cell.center_y - float(body.y), cell.mass);
            x += rounded(force.x);
            y += rounded(force.y);
        } else if (cell.child >= 0) {
            at = cell.child;
        } else if (cell.count > 0) {
            pull_by_leaf<<<(cell.count + 127) / 128, 128>>>(bodies, forces, which, cell.first, cell.count);
        }
    }
    atomicAdd(&forces[which].x, x);
    atomicAdd(&forces[which].y, y);
}

__global__ void walk_serial(const Body* bodies, const Cell* cells, Force* forces, int n) {
    int which = blockIdx.x * blockDim.x + threadIdx.x;
    if (which >= n) return;
    Body body = bodies[which];
    Sum x = 0, y = 0;
    int at = 0;
    while (at >= 0) {
        Cell cell = cells[at];
        at = cell.next;
        if (is_far(cell, body)) {
            float2 force = pull(cell.center_x - float(body.x), cell.center_y - float(body.y), cell.mass);
            x += rounded(force.x);
            y += rounded(force.y);
        } else if (cell.child >= 0) {
            at = cell.child;
        } else {
            for (int i = cell.first; i < cell.first + cell.count; ++i) {
                Body other = bodies[i];
                float2 force = pull(float(other.x - body.x), float(other.y - body.y), float(other.mass));
                x += rounded(force.x);
                y += rounded(force.y);
            }
        }
    }
    forces[which] = Force{x, y};
}

// ------------------------------------------------------------------------------ bodies and cells

struct Random {   // splitmix64: the same numbers everywhere
    uint64_t state;
    uint64_t next() {
        uint64_t z = (state += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
    int below(int n) { return int(next() % uint64_t(n)); }
};

// flat: anywhere. skewed: four clusters, in each of which three quarters of the bodies are within half of its side, and so on.
std::vector<Body> make_bodies(const std::string& input, int count) {
    if (input != "skewed" && input != "flat") {
        std::fprintf(stderr, "no such input: %s\n", input.c_str());
        std::exit(2);
    }
    Random random{42};
    std::vector<Body> bodies(count > 0 ? count : 2048);
    for (Body& body : bodies) {
        int side = kSide, x = 0, y = 0;
        if (input == "skewed") {
            x = kSide / 4 + random.below(2) * kSide / 2;
            y = kSide / 4 + random.below(2) * kSide / 2;
            side = kSide / 4;
            while (side > 16 && random.below(4) != 0) side /= 2;
        }
        body = Body{x + random.below(side), y + random.below(side), 1 + random.below(10)};
    }
    return bodies;
}

// Adds the cell for the bodies from `first` to `last`, and those below, and puts these bodies into the order of the leaves.
void add_cells(std::vector<Cell>& cells, std::vector<Body>& bodies, int x, int y, int size, int first, int last) {
    int which = int(cells.size());
    cells.push_back(Cell{x, y, size, first, last - first, -1, -1, 0, 0, 0});
    double sum_x = 0, sum_y = 0, mass = 0;
    for (int i = first; i < last; ++i) {
        sum_x += double(bodies[i].mass) * bodies[i].x;
        sum_y += double(bodies[i].mass) * bodies[i].y;
        mass += bodies[i].mass;
    }
    if (mass > 0) {
        cells[which].center_x = float(sum_x / mass);
        cells[which].center_y = float(sum_y / mass);
        cells[which].mass = float(mass);
    }
    if (last - first > kLeafBodies && size > kSide >> kMostLevels) {
        int half = size / 2;
        auto begin = bodies.begin();
        auto split = [&](int from, int to, bool by_x) {
            auto low = [&](const Body& body) { return by_x ? body.x < x + half : body.y < y + half; };
            return int(std::partition(begin + from, begin + to, low) - begin);
        };
        int bounds[5] = {first, 0, split(first, last, false), 0, last};
        bounds[1] = split(bounds[0], bounds[2], true);
        bounds[3] = split(bounds[2], bounds[4], true);
        cells[which].child = which + 1;
        cells[which].count = 0;
        for (int q = 0; q < 4; ++q)
            add_cells(cells, bodies, x + q % 2 * half, y + q / 2 * half, half, bounds[q], bounds[q + 1]);
    }
    cells[which].next = int(cells.size());
}

std::vector<Cell> make_cells(std::vector<Body>& bodies) {
    std::vector<Cell> cells;
    add_cells(cells, bodies, 0, 0, kSide, 0, int(bodies.size()));
    for (Cell& cell : cells)
        if (cell.next == int(cells.size())) cell.next = -1;
    return cells;
}

// ---------------------------------------------------------------------------------------- the walk

struct Options {
    std::string input = "skewed", variant = "naive", label;
    int bodies = 0, repeat = 5, threads = 128, pending = 0;
};

void walk_all(const Body* bodies, const Cell* cells, Force* forces, int n, const Options& options, cudaStream_t stream) {
    int threads = options.threads;
    int blocks = (n + threads - 1) / threads;
    if (options.variant == "serial")
        walk_serial<<<blocks, threads, 0, stream>>>(bodies, cells, forces, n);
    else
        walk<<<blocks, threads, 0, stream>>>(bodies, cells, forces, n);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
}

// What the CPU finds out for a body.
struct Expected {
    double x, y;
    double error;   // how far a sum of float terms may be from it
    int launches;   // near leaves
};

std::vector<Expected> walk_on_cpu(const std::vector<Body>& bodies, const std::vector<Cell>& cells) {
    std::vector<Expected> expected;
    for (const Body& body : bodies) {
        Expected sum{0, 0, 0, 0};
        auto add = [&](double dx, double dy, double mass) {
            double square = dx * dx + dy * dy + 1;
            double factor = mass / (square * std::sqrt(square));
            sum.x += dx * factor;
            sum.y += dy * factor;
            // Ten roundings of floats, each by 2^-24 at most, and one to a unit.
            sum.error += 10 * std::ldexp(mass / square, -24) + 1 / kUnit;
        };
        for (int at = 0; at >= 0;) {
            const Cell& cell = cells[at];
            at = cell.next;
            if (is_far(cell, body)) {
                add(cell.center_x - body.x, cell.center_y - body.y, cell.mass);
            } else if (cell.child >= 0) {
                at = cell.child;
            } else if (cell.count > 0) {
                ++sum.launches;
                for (int i = cell.first; i < cell.first + cell.count; ++i)
                    add(bodies[i].x - body.x, bodies[i].y - body.y, bodies[i].mass);
            }
        }
        expected.push_back(sum);
    }
    return expected;
}

// -------------------------------------------------------------------------------- the command line

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        std::string flag = argv[i];
        if (i + 1 == argc) {
            std::fprintf(stderr, "%s: unknown, or without a value\n", flag.c_str());
            std::exit(2);
        }
        const char* value = argv[++i];
        if (flag == "--input") options.input = value;
        else if (flag == "--variant") options.variant = value;
        else if (flag == "--label") options.label = value;
        else if (flag == "--bodies") options.bodies = std::atoi(value);
        else if (flag == "--repeat") options.repeat = std::max(1, std::atoi(value));
        else if (flag == "--pending") options.pending = std::atoi(value);
        else if (flag == "--threads") options.threads = std::atoi(value);
        else {
            std::fprintf(stderr, "unknown flag: %s\n", flag.c_str());
            std::exit(2);
        }
    }
    if (options.variant != "serial" && options.variant != "naive") {
        std::fprintf(stderr, "unknown variant: %s\n", options.variant.c_str());
        std::exit(2);
    }
    if (options.label.empty()) options.label = options.variant;
    return options;
}

void report(const char* bench, const Options& options, std::vector<float> times, bool pass, double largest_error, int bodies,
            int cells, int launches) {
    std::sort(times.begin(), times.end());
    std::printf("{\"bench\":\"%s\",\"input\":\"%s\",\"variant\":\"%s\",\"time_ms\":%.4f,\"verdict\":\"%s\","
                "\"largest_error\":%.2g,\"bodies\":%d,\"cells\":%d,\"near_leaves\":%d,\"repeats\":%d}\n",
                bench, options.input.c_str(), options.label.c_str(), times[times.size() / 2], pass ? "pass" : "fail", largest_error,
                bodies, cells, launches, int(times.size()));
}

int main(int argc, char** argv) {
    Options options = parse(argc, argv);
    std::vector<Body> bodies = make_bodies(options.input, options.bodies);
    const std::vector<Cell> cells = make_cells(bodies);
    const std::vector<Expected> expected = walk_on_cpu(bodies, cells);
    const int n = int(bodies.size());
    int launches = 0;
    for (auto& body : expected) launches += body.launches;

    // Launches beyond the limit are lost.
    const int pending = options.pending > 0 ? options.pending : std::max(launches, 2048);
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, pending));

    Body* device_bodies;
    Cell* device_cells;
    Force* device_forces;
    CHECK(cudaMalloc(&device_bodies, n * sizeof(Body)));
    CHECK(cudaMalloc(&device_cells, cells.size() * sizeof(Cell)));
    CHECK(cudaMalloc(&device_forces, n * sizeof(Force)));
    CHECK(cudaMemcpy(device_bodies, bodies.data(), n * sizeof(Body), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_cells, cells.data(), cells.size() * sizeof(Cell), cudaMemcpyHostToDevice));

    cudaStream_t stream;
    cudaEvent_t start, stop;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));

    std::vector<Force> forces(n);
    std::vector<float> times;
    bool pass = true;
    double largest_error = 0;   // as a part of what is allowed
    for (int i = 0; i <= options.repeat; ++i) {   // the first round warms up
        CHECK(cudaMemset(device_forces, 0, n * sizeof(Force)));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(start, stream));
        walk_all(device_bodies, device_cells, device_forces, n, options, stream);
        CHECK(cudaEventRecord(stop, stream));
        CHECK(cudaEventSynchronize(stop));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (i > 0) times.push_back(ms);
        CHECK(cudaMemcpy(forces.data(), device_forces, n * sizeof(Force), cudaMemcpyDeviceToHost));
        for (int b = 0; b < n; ++b) {
            double x = double(int64_t(forces[b].x)) / kUnit, y = double(int64_t(forces[b].y)) / kUnit;
            double error = std::max(std::fabs(x - expected[b].x), std::fabs(y - expected[b].y)) / expected[b].error;
            pass = pass && error <= 1;
            largest_error = std::max(largest_error, error);
        }
    }
    report("bh", options, times, pass, largest_error, n, int(cells.size()), launches);
    CHECK(cudaDeviceSynchronize());
    return pass ? 0 : 1;
}
