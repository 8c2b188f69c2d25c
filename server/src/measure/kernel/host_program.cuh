#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

namespace gridfuse_run {

inline void check(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s: %s\n", what, cudaGetErrorName(error), cudaGetErrorString(error));
    std::exit(1);
}

// splitmix64: the same numbers everywhere.
struct Random {
    std::uint64_t state;
    std::uint64_t next() {
        std::uint64_t z = (state += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
    std::uint64_t below(std::uint64_t n) { return next() % n; }
    double unit() { return double(next() >> 11) * 0x1p-53; }
};

// The edges of vertex v lead to col[row[v]] .. col[row[v + 1] - 1].
struct Csr {
    std::vector<std::uint64_t> row, col;

    Csr(std::uint64_t nodes, const std::vector<std::pair<std::uint64_t, std::uint64_t>>& edges)
        : row(nodes + 1), col(edges.size()) {
        for (const auto& edge : edges) ++row[edge.first + 1];
        for (std::uint64_t v = 0; v < nodes; ++v) row[v + 1] += row[v];
        std::vector<std::uint64_t> next(row.begin(), row.end() - 1);
        for (const auto& edge : edges) col[next[edge.first]++] = edge.second;
    }
};

using Edges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

// A power-law graph: R-MAT with 57, 19, 19 and 5 %.
inline Csr rmat(std::uint64_t nodes, std::uint64_t degree, std::uint64_t seed) {
    Random random{seed};
    int levels = 0;
    while ((std::uint64_t(1) << levels) < nodes) ++levels;
    Edges edges(nodes * degree);
    for (auto& edge : edges) {
        std::uint64_t from = 0, to = 0;
        for (int level = 0; level < levels; ++level) {
            const std::uint64_t p = random.below(100);
            from = from * 2 + (p >= 76);
            to = to * 2 + ((p >= 57 && p < 76) || p >= 95);
        }
        edge = {from % nodes, to % nodes};
    }
    return Csr(nodes, edges);
}

inline Csr uniform(std::uint64_t nodes, std::uint64_t degree, std::uint64_t seed) {
    Random random{seed};
    Edges edges(nodes * degree);
    for (auto& edge : edges) {
        edge.first = random.below(nodes);
        edge.second = random.below(nodes);
    }
    return Csr(nodes, edges);
}

inline Csr grid(std::uint64_t nodes) {
    std::uint64_t side = 1;
    while ((side + 1) * (side + 1) <= nodes) ++side;
    Edges edges;
    for (std::uint64_t v = 0; v < nodes; ++v) {
        if ((v + 1) % side != 0 && v + 1 < nodes) {
            edges.push_back({v, v + 1});
            edges.push_back({v + 1, v});
        }
        if (v + side < nodes) {
            edges.push_back({v, v + side});
            edges.push_back({v + side, v});
        }
    }
    return Csr(nodes, edges);
}

inline Csr star(std::uint64_t nodes) {
    Edges edges;
    for (std::uint64_t v = 1; v < nodes; ++v) {
        edges.push_back({0, v});
        edges.push_back({v, 0});
    }
    return Csr(nodes, edges);
}

inline Csr tree(std::uint64_t nodes, std::uint64_t degree) {
    Edges edges;
    for (std::uint64_t v = 1; v < nodes; ++v) edges.push_back({(v - 1) / degree, v});
    return Csr(nodes, edges);
}

// Memory for a parameter, with what it holds before each launch.
template <class Pointer>
class Buffer {
    static_assert(std::is_pointer<Pointer>::value, "the run specification gives a buffer to a parameter that is no pointer");

public:
    using T = std::remove_cv_t<std::remove_pointer_t<Pointer>>;
    static_assert(std::is_trivially_copyable<T>::value, "memory of this type can't be copied to the GPU as it is");

    explicit Buffer(std::size_t count) : count_(count), first_(new T[count]) {
        std::memset(static_cast<void*>(first_.get()), 0, bytes());
        check(cudaMalloc(reinterpret_cast<void**>(&device_), bytes()), "cudaMalloc");
    }
    ~Buffer() { cudaFree(device_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    template <class V>
    void set(std::size_t index, V value) { first_[index] = as(value); }

    template <class V>
    void fill(V value) {
        for (std::size_t i = 0; i < count_; ++i) set(i, value);
    }

    template <class V, class W>
    void iota(V start, W step) {
        for (std::size_t i = 0; i < count_; ++i) set(i, start + decltype(start + step)(i) * step);
    }

    // Integers from low to high; floating point numbers below high.
    template <class V>
    void random(V low, V high, std::uint64_t seed) {
        Random random{seed};
        for (std::size_t i = 0; i < count_; ++i) {
            if constexpr (std::is_integral<T>::value) {
                const std::uint64_t values = std::uint64_t(high) - std::uint64_t(low) + 1;
                set(i, (long long)(std::uint64_t(low) + (values == 0 ? random.next() : random.below(values))));
            } else {
                set(i, double(low) + (double(high) - double(low)) * random.unit());
            }
        }
    }

    void copy(const std::vector<std::uint64_t>& values) {
        for (std::size_t i = 0; i < count_; ++i) {
            set(i, values[i]);
            if (std::uint64_t(first_[i]) != values[i]) {
                std::fprintf(stderr, "the graph is too large for the type of a parameter\n");
                std::exit(1);
            }
        }
    }

    // The elements of a NumPy array, whose type was compared with this one before.
    template <std::size_t Size>
    void read(const char* path, long long offset) {
        static_assert(sizeof(T) == Size, "the elements of the file and those of the parameter differ in size");
        std::FILE* file = std::fopen(path, "rb");
        if (file == nullptr || std::fseek(file, long(offset), SEEK_SET) != 0 ||
            std::fread(first_.get(), sizeof(T), count_, file) != count_) {
            std::fprintf(stderr, "%s can't be read\n", path);
            std::exit(1);
        }
        std::fclose(file);
    }

    void restore() { check(cudaMemcpy(device_, first_.get(), bytes(), cudaMemcpyHostToDevice), "cudaMemcpy"); }
    T* device() const { return device_; }

    void print(const char* name) const {
        std::unique_ptr<T[]> now(new T[count_]);
        check(cudaMemcpy(now.get(), device_, bytes(), cudaMemcpyDeviceToHost), "cudaMemcpy");
        std::printf("%s[%llu]:", name, (unsigned long long)count_);
        const std::size_t shown = count_ < 64 ? count_ : 64;
        for (std::size_t i = 0; i < shown; ++i) {
            if constexpr (std::is_floating_point<T>::value) std::printf(" %g", double(now[i]));
            else if constexpr (std::is_signed<T>::value) std::printf(" %lld", (long long)now[i]);
            else if constexpr (std::is_integral<T>::value) std::printf(" %llu", (unsigned long long)now[i]);
        }
        std::printf(shown < count_ ? " ...\n" : "\n");
    }

private:
    template <class V>
    static T as(V value) {
        static_assert(std::is_constructible<T, V>::value,
                      "elements of this type can't be made of numbers: only zeros(count) and npy(\"file\") fill them");
        return static_cast<T>(value);
    }

    std::size_t bytes() const { return count_ * sizeof(T); }

    std::size_t count_;
    std::unique_ptr<T[]> first_;
    T* device_ = nullptr;
};

}   // namespace gridfuse_run
