// What the conformance programs share: an end at the first unexpected error, and printing of results.

#ifndef CONFORMANCE_CUH
#define CONFORMANCE_CUH

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

/// Ends the program, with exit code 1, if a call of the CUDA runtime fails.
#define CHECK(call) conformance::check((call), #call, __LINE__)

namespace conformance {

inline void check(cudaError_t error, const char* call, int line) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "line %d: %s: %s\n", line, call, cudaGetErrorName(error));
    std::exit(1);
}

inline void print(bool value) { std::printf(" %s", value ? "true" : "false"); }
inline void print(int value) { std::printf(" %d", value); }
inline void print(unsigned value) { std::printf(" %u", value); }
inline void print(long long value) { std::printf(" %lld", value); }
inline void print(unsigned long long value) { std::printf(" %llu", value); }
inline void print(float value) { std::printf(" %g", static_cast<double>(value)); }
inline void print(double value) { std::printf(" %g", value); }

/// Prints `name: value value ...`.
template <class T>
void show(const char* name, const T* values, int count) {
    std::printf("%s:", name);
    for (int i = 0; i < count; ++i) print(values[i]);
    std::printf("\n");
}
template <class T>
void show(const char* name, T value) {
    show(name, &value, 1);
}

/// Prints one number for many integers (FNV-1a over their values).
template <class T>
void show_digest(const char* name, const T* values, int count) {
    unsigned long long digest = 14695981039346656037ull;
    for (int i = 0; i < count; ++i) {
        digest = (digest ^ static_cast<unsigned long long>(values[i])) * 1099511628211ull;
    }
    std::printf("%s: %d values, digest %016llx\n", name, count, digest);
}

/// Waits for the device; nothing may have failed.
inline void finish() {
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
}

/// Prints `name: cudaErrorName`; the number may come from the device.
inline void show_error(const char* name, int error) {
    std::printf("%s: %s\n", name, cudaGetErrorName(static_cast<cudaError_t>(error)));
}

/// Device memory, zero at first, and a copy of it on the host.
template <class T>
class Array {
public:
    explicit Array(int count) : count_(count), host_(static_cast<T*>(std::calloc(count, sizeof(T)))) {
        CHECK(cudaMalloc(&device_, count * sizeof(T)));
        CHECK(cudaMemset(device_, 0, count * sizeof(T)));
        CHECK(cudaDeviceSynchronize());   // for kernels in any stream
    }
    ~Array() {
        CHECK(cudaFree(device_));
        std::free(host_);
    }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;

    operator T*() const { return device_; }
    int count() const { return count_; }

    /// What the device has written, after everything launched so far.
    const T* read() {
        finish();
        CHECK(cudaMemcpy(host_, device_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
        return host_;
    }
    /// Sets the elements to `value(i)`.
    template <class Value>
    void fill(Value value) {
        for (int i = 0; i < count_; ++i) host_[i] = value(i);
        CHECK(cudaMemcpy(device_, host_, count_ * sizeof(T), cudaMemcpyHostToDevice));
        CHECK(cudaDeviceSynchronize());
    }
    void show(const char* name) { conformance::show(name, read(), count_); }
    void show_digest(const char* name) { conformance::show_digest(name, read(), count_); }

private:
    int count_;
    T* device_ = nullptr;
    T* host_;
};

}   // namespace conformance

using conformance::Array;
using conformance::show;
using conformance::show_error;

#endif   // CONFORMANCE_CUH
