// Survey propagation on a random 3-SAT formula. Each clause tells each of its variables how likely it is that the others leave
// the clause to it (a survey); a variable multiplies what its clauses tell, and the clauses make new surveys of the products.
// A variable launches a grid over the clauses that it is in.
//
//   sp [--input skewed|flat] [--variant serial|naive] [--variables N] [--iterations N] [--repeat N]
//       [--threads N] [--pending N] [--label TEXT]
//
// Makes its own formula, compares with the CPU and prints one line of JSON. Logarithms of products are sums of whole numbers,
// so that the order of the additions makes no difference.

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

constexpr int kLiterals = 3;             // in each clause
constexpr double kMostCertain = 1 - 1e-6;   // no survey is larger

using Sum = long long;   // of logarithms, in units of 2^-40
constexpr double kUnit = double(1ll << 40);

// ---------------------------------------------------------------------------------------- kernels

// Number k of a clause c's literals is number 3 c + k of all. Its variable occurs in it, plainly (1) or negated (0).
struct Formula {
    const int* variable;    // of a literal
    const char* plain;      // whether it is plain
    const int* row;         // the occurrences of variable v are literals[row[v]] .. literals[row[v + 1] - 1]
    const int* literals;
    int variables, clauses;
};

// The logarithm of the probability that a clause does not need the variable.
__device__ Sum logarithm(double survey) { return llrint(log1p(-survey) * kUnit); }

__device__ void add(Sum* sum, Sum value) { atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(value)); }

// Adds up the surveys for `count` occurrences from `begin` on, of variable v: those of plain and of negated ones.
__global__ void add_surveys(Formula f, const double* survey, Sum* sums, int v, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        int literal = f.literals[begin + i];
        add(&sums[2 * v + f.plain[literal]], logarithm(survey[literal]));
    }
}

__global__ void update_variables(Formula f, const double* survey, Sum* sums) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= f.variables) return;
    int begin = f.row[v];
    int count = f.row[v + 1] - begin;
    if (count > 0) add_surveys<<<(count + 127) / 128, 128>>>(f, survey, sums, v, begin, count);
}

__global__ void update_variables_serial(Formula f, const double* survey, Sum* sums) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= f.variables) return;
    Sum negated = 0, plain = 0;
    for (int i = f.row[v]; i < f.row[v + 1]; ++i) {
        int literal = f.literals[i];
        Sum value = logarithm(survey[literal]);
        if (f.plain[literal]) plain += value;
        else negated += value;
    }
    sums[2 * v] = negated;
    sums[2 * v + 1] = plain;
}

// The probability that a variable can't help a clause, given the logarithms of the probabilities that no other clause needs it
// as it is in this one (`same`), and that none needs it the other way (`opposite`).
__host__ __device__ inline double useless(double same, double opposite) {
    double needed_otherwise = -expm1(opposite);   // times exp(same), as all three cases
    double needed_so = -expm1(same) * exp(opposite - same);
    return needed_otherwise / (needed_otherwise + needed_so + exp(opposite));
}

__global__ void update_clauses(Formula f, const double* survey, const Sum* sums, double* next) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= f.clauses) return;
    double part[kLiterals];
    for (int k = 0; k < kLiterals; ++k) {
        int literal = kLiterals * c + k;
        int v = f.variable[literal], plain = f.plain[literal];
        Sum same = sums[2 * v + plain] - logarithm(survey[literal]);   // without this clause
        part[k] = useless(double(same) / kUnit, double(sums[2 * v + 1 - plain]) / kUnit);
    }
    for (int k = 0; k < kLiterals; ++k) {
        double product = 1;
        for (int other = 0; other < kLiterals; ++other)
            if (other != k) product *= part[other];
        next[kLiterals * c + k] = fmin(product, kMostCertain);
    }
}

// ---------------------------------------------------------------------------------------- formulas

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

struct HostFormula {
    std::vector<int> variable, row, literals;
    std::vector<char> plain;
    std::vector<double> first;   // the surveys to begin with
    int variables() const { return int(row.size()) - 1; }
    int clauses() const { return int(variable.size()) / kLiterals; }
};

// Four clauses for each variable. flat: each literal is any variable. skewed: a small number is more likely than a large one.
HostFormula make_formula(const std::string& input, int variables) {
    if (input != "skewed" && input != "flat") {
        std::fprintf(stderr, "no such input: %s\n", input.c_str());
        std::exit(2);
    }
    Random random{42};
    if (variables <= 0) variables = 4096;
    HostFormula f;
    f.row.assign(variables + 1, 0);
    for (int c = 0; c < 4 * variables; ++c) {
        int chosen[kLiterals];
        for (int k = 0; k < kLiterals; ++k) {
            bool again = true;
            while (again) {
                int below = variables;
                if (input == "skewed")
                    while (below > 8 && random.below(4) != 0) below = below / 2 + 1;
                chosen[k] = random.below(below);
                again = std::find(chosen, chosen + k, chosen[k]) != chosen + k;
            }
            f.variable.push_back(chosen[k]);
            f.plain.push_back(char(random.below(2)));
            f.first.push_back(random.below(1000) / 1000.0);
            ++f.row[chosen[k] + 1];
        }
    }
    for (int v = 0; v < variables; ++v) f.row[v + 1] += f.row[v];
    f.literals.resize(f.variable.size());
    std::vector<int> next(f.row.begin(), f.row.end() - 1);
    for (size_t literal = 0; literal < f.variable.size(); ++literal) f.literals[next[f.variable[literal]]++] = int(literal);
    return f;
}

// ------------------------------------------------------------------------------------ propagation

struct Options {
    std::string input = "skewed", variant = "naive", label;
    int variables = 0, iterations = 10, repeat = 5, threads = 256, pending = 0;
};

// The surveys after the last iteration are in survey[iterations % 2].
void propagate(const Formula& f, double* const (&survey)[2], Sum* sums, const Options& options, cudaStream_t stream) {
    int threads = options.threads;
    int blocks = (f.variables + threads - 1) / threads;
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
        double* now = survey[iteration % 2];
        double* next = survey[(iteration + 1) % 2];
        CHECK(cudaMemsetAsync(sums, 0, 2 * f.variables * sizeof(Sum), stream));
        if (options.variant == "serial")
            update_variables_serial<<<blocks, threads, 0, stream>>>(f, now, sums);
        else
            update_variables<<<blocks, threads, 0, stream>>>(f, now, sums);
        CHECK(cudaGetLastError());
        update_clauses<<<(f.clauses + threads - 1) / threads, threads, 0, stream>>>(f, now, sums, next);
        CHECK(cudaGetLastError());
    }
    CHECK(cudaStreamSynchronize(stream));
}

// The same with sums of real numbers.
std::vector<double> propagate_on_cpu(const HostFormula& f, int iterations) {
    std::vector<double> survey(f.first), next(f.first.size());
    for (int iteration = 0; iteration < iterations; ++iteration) {
        std::vector<double> sums(2 * f.variables());
        for (size_t literal = 0; literal < survey.size(); ++literal)
            sums[2 * f.variable[literal] + f.plain[literal]] += std::log1p(-survey[literal]);
        for (size_t literal = 0; literal < survey.size(); ++literal) {
            double product = 1;
            size_t clause = literal - literal % kLiterals;
            for (size_t other = clause; other < clause + kLiterals; ++other) {
                if (other == literal) continue;
                int v = f.variable[other], plain = f.plain[other];
                double same = sums[2 * v + plain] - std::log1p(-survey[other]);
                product *= useless(std::min(same, 0.0), sums[2 * v + 1 - plain]);
            }
            next[literal] = std::min(product, kMostCertain);
        }
        survey.swap(next);
    }
    return survey;
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
        else if (flag == "--variables") options.variables = std::atoi(value);
        else if (flag == "--iterations") options.iterations = std::max(1, std::atoi(value));
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

void report(const char* bench, const Options& options, const HostFormula& formula, std::vector<float> times, bool pass,
            double largest_error) {
    std::sort(times.begin(), times.end());
    std::printf("{\"bench\":\"%s\",\"input\":\"%s\",\"variant\":\"%s\",\"time_ms\":%.4f,\"verdict\":\"%s\","
                "\"largest_error\":%.2g,\"variables\":%d,\"clauses\":%d,\"repeats\":%d}\n",
                bench, options.input.c_str(), options.label.c_str(), times[times.size() / 2], pass ? "pass" : "fail", largest_error,
                formula.variables(), formula.clauses(), int(times.size()));
}

int main(int argc, char** argv) {
    Options options = parse(argc, argv);
    HostFormula formula = make_formula(options.input, options.variables);
    const int n = formula.variables();
    const size_t literals = formula.variable.size();

    // Every variable launches once in an iteration, and launches beyond the limit are lost.
    const int pending = options.pending > 0 ? options.pending : std::max(2 * n, 2048);
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, pending));

    int *variable, *row, *occurrences;
    char* plain;
    double* survey[2];
    Sum* sums;
    CHECK(cudaMalloc(&variable, literals * sizeof(int)));
    CHECK(cudaMalloc(&plain, literals));
    CHECK(cudaMalloc(&row, (n + 1) * sizeof(int)));
    CHECK(cudaMalloc(&occurrences, literals * sizeof(int)));
    CHECK(cudaMalloc(&survey[0], literals * sizeof(double)));
    CHECK(cudaMalloc(&survey[1], literals * sizeof(double)));
    CHECK(cudaMalloc(&sums, 2 * n * sizeof(Sum)));
    CHECK(cudaMemcpy(variable, formula.variable.data(), literals * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(plain, formula.plain.data(), literals, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(row, formula.row.data(), (n + 1) * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(occurrences, formula.literals.data(), literals * sizeof(int), cudaMemcpyHostToDevice));
    const Formula f{variable, plain, row, occurrences, n, formula.clauses()};

    cudaStream_t stream;
    cudaEvent_t start, stop;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));

    // A logarithm is rounded by 2^-41 at most, and a variable adds some thousand of them at most: 1e-9 together. An iteration can
    // make that several times as large.
    const double tolerance = 1e-6;
    std::vector<double> expected = propagate_on_cpu(formula, options.iterations), result(literals);
    std::vector<float> times;
    bool pass = true;
    double largest_error = 0;
    for (int i = 0; i <= options.repeat; ++i) {   // the first round warms up
        CHECK(cudaMemcpy(survey[0], formula.first.data(), literals * sizeof(double), cudaMemcpyHostToDevice));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(start, stream));
        propagate(f, survey, sums, options, stream);
        CHECK(cudaEventRecord(stop, stream));
        CHECK(cudaEventSynchronize(stop));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (i > 0) times.push_back(ms);
        CHECK(cudaMemcpy(result.data(), survey[options.iterations % 2], literals * sizeof(double), cudaMemcpyDeviceToHost));
        for (size_t literal = 0; literal < literals; ++literal) {
            double error = std::fabs(result[literal] - expected[literal]);
            pass = pass && error <= tolerance;   // false for a NaN
            largest_error = std::max(largest_error, error);
        }
    }
    report("sp", options, formula, times, pass, largest_error);
    CHECK(cudaDeviceSynchronize());
    return pass ? 0 : 1;
}
