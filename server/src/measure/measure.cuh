// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What `gridfuse measure` puts in front of a program (nvcc's -include). The host's launches of the measured
// kernels become
//
//     (gridfuse_measure::measured(site, stream, args), kernel<<<grid, block, shared, stream>>>(args))
//
// where the object that comes first goes last: behind what the launch's other arguments do when the statement ends.
//
// and, in the program that checks, device-side launches become (child<<<...>>>(...), gridfuse_measure::launched()).
// What is seen goes to the file that the environment variable GRIDFUSE_MEASURE_OUT names, one record a line:
//
//     time <site> <milliseconds>           GPU time of a launch until all its children are done
//     data <site> <nth launch> <argument> <kind> <bytes> <hash> <offset or ->   memory after a launch
//     launches <number>                    launches by device code
//     kernel <registers> <shared> <local> <block> <resident> <name>   what a compiled kernel needs: registers a thread, static
//                                          shared bytes a block, local bytes a thread; its largest block, the most threads
//                                          that stay resident on a multiprocessor, and its name up to the line's end
//     error <what> <code> <name>           what CUDA said
//     end                                  the program came to its end
//
// The memory itself goes to the same file with ".bin" behind it, from `offset` on.

#ifndef GRIDFUSE_MEASURE_CUH
#define GRIDFUSE_MEASURE_CUH

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__has_include)
#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#define GRIDFUSE_MEASURE_DEMANGLES 1
#endif
#endif

namespace gridfuse_measure {

// One of each for a translation unit: what one unit launches, it counts itself.
static __device__ unsigned long long device_launches;
static __device__ int device_error;

/// Behind a launch by device code.
static __device__ __forceinline__ void launched() {
    atomicAdd(&device_launches, 1ull);
    const cudaError_t error = cudaPeekAtLastError();
    if (error != cudaSuccess) atomicCAS(&device_error, 0, int(error));
}

/// What one translation unit has counted: launches, and the first error.
using Reader = bool (*)(unsigned long long&, int&);

inline std::vector<Reader>& readers() {
    static std::vector<Reader> all;
    return all;
}

static bool read_own(unsigned long long& launches, int& error) {
    unsigned long long own = 0;
    int own_error = 0;
    if (cudaMemcpyFromSymbol(&own, device_launches, sizeof own) != cudaSuccess ||
        cudaMemcpyFromSymbol(&own_error, device_error, sizeof own_error) != cudaSuccess)
        return false;
    launches += own;
    if (error == 0) error = own_error;
    return true;
}

static const bool registered = (readers().push_back(read_own), true);

static __global__ void warm_child() {}
static __global__ void warm_parent() { warm_child<<<1, 1>>>(); }

/// How the elements of a buffer are compared.
template <class T> struct Kind { static constexpr const char* name = "bytes"; };
template <> struct Kind<float> { static constexpr const char* name = "f32"; };
template <> struct Kind<float2> : Kind<float> {};
template <> struct Kind<float3> : Kind<float> {};
template <> struct Kind<float4> : Kind<float> {};
template <> struct Kind<double> { static constexpr const char* name = "f64"; };
template <> struct Kind<double2> : Kind<double> {};
template <> struct Kind<double3> : Kind<double> {};
template <> struct Kind<char> { static constexpr const char* name = "i8"; };
template <> struct Kind<signed char> : Kind<char> {};
template <> struct Kind<unsigned char> { static constexpr const char* name = "u8"; };
template <> struct Kind<bool> : Kind<unsigned char> {};
template <> struct Kind<short> { static constexpr const char* name = "i16"; };
template <> struct Kind<unsigned short> { static constexpr const char* name = "u16"; };
template <> struct Kind<int> { static constexpr const char* name = "i32"; };
template <> struct Kind<unsigned> { static constexpr const char* name = "u32"; };
template <> struct Kind<long long> { static constexpr const char* name = "i64"; };
template <> struct Kind<unsigned long long> { static constexpr const char* name = "u64"; };
template <> struct Kind<long> {
    static constexpr const char* name = sizeof(long) == 8 ? "i64" : "i32";
};
template <> struct Kind<unsigned long> {
    static constexpr const char* name = sizeof(long) == 8 ? "u64" : "u32";
};

class Recorder {
public:
    static Recorder& get() {
        static Recorder recorder;
        return recorder;
    }

    void begin(int site, cudaStream_t stream) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (out_ == nullptr || capturing(stream)) return;
        warm_up();
        if (capture_) {
            if (!cleared_) {
                cleared_ = true;
                settle("before", cudaDeviceSynchronize());
            }
            return;
        }
        if (used_ + 2 > events_.size()) {
            if (events_.size() >= kMostEvents) drain();
            while (used_ + 2 > events_.size()) {
                cudaEvent_t event;
                if (cudaEventCreate(&event) != cudaSuccess) return fail("cudaEventCreate");
                events_.push_back(event);
            }
        }
        cudaEventRecord(events_[used_], stream);
    }

    template <class... Args>
    void end(int site, cudaStream_t stream, const Args&... args) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (out_ == nullptr || capturing(stream)) return;
        const cudaError_t launch = cudaPeekAtLastError();
        if (launch != cudaSuccess) report("launch", launch);
        if (!capture_) {
            if (used_ + 2 > events_.size()) return;
            cudaEventRecord(events_[used_ + 1], stream);
            used_ += 2;
            sites_.push_back(site);
            return;
        }
        settle("after", cudaStreamSynchronize(stream));
        const unsigned nth = nth_[site]++;
        bases_.clear();
        unsigned number = 0;
        (look(site, nth, number++, args), ...);
    }

    ~Recorder() {
        if (out_ == nullptr) return;
        if (!capture_) drain();
        else {
            cudaDeviceSynchronize();
            look_at_launches();
            look_at_kernels();
            for (auto& entry : last_) write(entry.second);
        }
        std::fprintf(out_, "end\n");
        std::fclose(out_);
        if (bin_ != nullptr) std::fclose(bin_);
    }

private:
    static constexpr std::size_t kMostEvents = 4096;

    struct Seen {
        int site;
        unsigned nth, argument;
        const char* kind;
        std::uint64_t hash;
        std::vector<unsigned char> bytes;
    };

    Recorder() {
        const char* path = std::getenv("GRIDFUSE_MEASURE_OUT");
        if (path == nullptr) return;
        out_ = std::fopen(path, "w");
        if (out_ == nullptr) {
            std::fprintf(stderr, "gridfuse measure: cannot write %s\n", path);
            std::exit(2);
        }
        const char* mode = std::getenv("GRIDFUSE_MEASURE");
        capture_ = mode != nullptr && std::string(mode) == "capture";
        const char* budget = std::getenv("GRIDFUSE_MEASURE_BYTES");
        if (budget != nullptr) budget_ = std::strtoull(budget, nullptr, 10);
        if (capture_) bin_ = std::fopen((std::string(path) + ".bin").c_str(), "wb");
    }

    static bool capturing(cudaStream_t stream) {
        cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
        return cudaStreamIsCapturing(stream, &status) != cudaSuccess || status != cudaStreamCaptureStatusNone;
    }

    // The first launch by device code sets the device's runtime up; that's no time of the program's kernels.
    void warm_up() {
        if (warm_) return;
        warm_ = true;
        warm_parent<<<1, 1>>>();
        cudaDeviceSynchronize();
    }

    void fail(const char* what) { report(what, cudaGetLastError()); }

    void report(const char* what, cudaError_t error) {
        std::fprintf(out_, "error %s %d %s\n", what, int(error), cudaGetErrorName(error));
        std::fflush(out_);
    }

    void settle(const char* what, cudaError_t error) {
        if (error != cudaSuccess) report(what, error);
    }

    void drain() {
        for (std::size_t i = 0; i + 1 < used_; i += 2) {
            float ms = 0;
            const cudaError_t waited = cudaEventSynchronize(events_[i + 1]);
            const cudaError_t error = waited == cudaSuccess ? cudaEventElapsedTime(&ms, events_[i], events_[i + 1]) : waited;
            if (error != cudaSuccess) {
                report("run", error);
                break;
            }
            std::fprintf(out_, "time %d %.6f\n", sites_[i / 2], ms);
        }
        used_ = 0;
        sites_.clear();
        std::fflush(out_);
    }

    void look_at_launches() {
        unsigned long long launches = 0;
        int error = 0;
        bool known = true;
        for (const Reader read : readers()) known = read(launches, error) && known;
        if (known) std::fprintf(out_, "launches %llu\n", launches);
        if (error != 0) report("device-launch", cudaError_t(error));
    }

    template <class T>
    void look(int site, unsigned nth, unsigned argument, const T& value) {
        using Pointee = std::remove_cv_t<std::remove_pointer_t<T>>;
        if constexpr (std::is_pointer_v<T> && !std::is_function_v<Pointee>) {
            if constexpr (std::is_void_v<Pointee>) look_at(site, nth, argument, "bytes", value);
            else look_at(site, nth, argument, Kind<Pointee>::name, (const void*)value);
        }
    }

    // A function of the driver, which isn't linked; null where it's too old for that. `version`: the CUDA version that has it.
    template <class Function>
    static Function driver(const char* name, unsigned version) {
        void* found = nullptr;
#if CUDART_VERSION >= 13000
        cudaDriverEntryPointQueryResult result;
        const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result);
#else
        (void)version;
        const cudaError_t error = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault);
#endif
        if (error != cudaSuccess) {
            // The program's own errors are not these.
            cudaGetLastError();
            return nullptr;
        }
        return reinterpret_cast<Function>(found);
    }

    // What the kernels of the program need, as the driver has loaded them: linking has made one module of all translation units, so
    // that each is seen once. A driver or toolkit that doesn't tell leaves nothing to write.
    void look_at_kernels() {
        using Handle = void*;
        const auto module_of = driver<int (*)(Handle*, Handle)>("cuFuncGetModule", 12000);
        const auto count_of = driver<int (*)(unsigned*, Handle)>("cuModuleGetFunctionCount", 12040);
        const auto functions_of = driver<int (*)(Handle*, unsigned, Handle)>("cuModuleEnumerateFunctions", 12040);
        const auto name_of = driver<int (*)(const char**, Handle)>("cuFuncGetName", 12030);
        const auto attribute_of = driver<int (*)(int*, int, Handle)>("cuFuncGetAttribute", 12000);
        const auto blocks_of = driver<int (*)(int*, Handle, int, std::size_t)>("cuOccupancyMaxActiveBlocksPerMultiprocessor", 12000);
        if (!module_of || !count_of || !functions_of || !name_of || !attribute_of || !blocks_of) return;
        cudaFunction_t own = nullptr;
        if (cudaGetFuncBySymbol(&own, (const void*)warm_parent) != cudaSuccess) {
            cudaGetLastError();
            return;
        }
        Handle module = nullptr;
        unsigned count = 0;
        if (module_of(&module, (Handle)own) != 0 || count_of(&count, module) != 0) return;
        std::vector<Handle> functions(count);
        if (functions_of(functions.data(), count, module) != 0) return;
        // By their numbers in the driver's CUfunction_attribute.
        enum { kLargestBlock = 0, kSharedBytes = 1, kLocalBytes = 3, kRegisters = 4 };
        for (const Handle function : functions) {
            const char* name = nullptr;
            if (function == nullptr || name_of(&name, function) != 0 || name == nullptr) continue;
            if (std::string(name).find("gridfuse_measure") != std::string::npos) continue;
            int block = 0, shared = 0, local = 0, registers = 0;
            if (attribute_of(&block, kLargestBlock, function) != 0 || attribute_of(&shared, kSharedBytes, function) != 0 ||
                attribute_of(&local, kLocalBytes, function) != 0 || attribute_of(&registers, kRegisters, function) != 0)
                continue;
            int resident = 0;
            for (int size = 32; size <= block && size <= 1024; size *= 2) {
                int blocks = 0;
                if (blocks_of(&blocks, function, size, 0) == 0 && blocks * size > resident) resident = blocks * size;
            }
            std::fprintf(out_, "kernel %d %d %d %d %d %s\n", registers, shared, local, block, resident, readable(name).c_str());
        }
    }

    // A name as it stands in the source, where that can be said.
    static std::string readable(const char* name) {
#ifdef GRIDFUSE_MEASURE_DEMANGLES
        int status = 0;
        if (char* const demangled = abi::__cxa_demangle(name, nullptr, nullptr, &status)) {
            const std::string text = demangled;
            std::free(demangled);
            if (status == 0) return text;
        }
#endif
        return name;
    }

    // The allocation that a pointer points into, as the driver knows it.
    static bool range(const void* pointer, const void*& base, std::size_t& bytes) {
        using Function = int (*)(unsigned long long*, std::size_t*, unsigned long long);
        static const Function function = driver<Function>("cuMemGetAddressRange", 12000);
        unsigned long long start = 0;
        if (function == nullptr || function(&start, &bytes, (unsigned long long)(std::uintptr_t)pointer) != 0) return false;
        base = (const void*)(std::uintptr_t)start;
        return true;
    }

    void look_at(int site, unsigned nth, unsigned argument, const char* kind, const void* pointer) {
        cudaPointerAttributes attributes;
        if (pointer == nullptr || cudaPointerGetAttributes(&attributes, pointer) != cudaSuccess) {
            cudaGetLastError();
            return;
        }
        const void* base = nullptr;
        std::size_t bytes = 0;
        if (attributes.type == cudaMemoryTypeUnregistered || !range(pointer, base, bytes)) return;
        for (const void* seen : bases_)
            if (seen == base) return;
        bases_.push_back(base);
        Seen seen{site, nth, argument, kind, 0, std::vector<unsigned char>(bytes)};
        if (const cudaError_t error = cudaMemcpy(seen.bytes.data(), base, bytes, cudaMemcpyDefault)) return report("copy", error);
        seen.hash = hash(seen.bytes);
        if (written_ + bytes <= budget_ / 2) {
            write(seen);
            return;
        }
        // Too much for the file: hashes of all, and what there is after the last launch of each site.
        std::fprintf(out_, "data %d %u %u %s %zu %016llx -\n", site, nth, argument, kind, bytes, (unsigned long long)seen.hash);
        last_[{site, argument}] = std::move(seen);
    }

    void write(const Seen& seen) {
        long long offset = -1;
        if (bin_ != nullptr && written_ + seen.bytes.size() <= budget_ &&
            std::fwrite(seen.bytes.data(), 1, seen.bytes.size(), bin_) == seen.bytes.size()) {
            offset = (long long)written_;
            written_ += seen.bytes.size();
        }
        std::fprintf(out_, "data %d %u %u %s %zu %016llx ", seen.site, seen.nth, seen.argument, seen.kind, seen.bytes.size(),
                     (unsigned long long)seen.hash);
        if (offset < 0) std::fprintf(out_, "-\n");
        else std::fprintf(out_, "%lld\n", offset);
    }

    // FNV-1a over words of eight bytes.
    static std::uint64_t hash(const std::vector<unsigned char>& bytes) {
        std::uint64_t hash = 14695981039346656037ull;
        std::size_t at = 0;
        for (; at + 8 <= bytes.size(); at += 8) {
            std::uint64_t word = 0;
            for (int i = 0; i < 8; ++i) word |= std::uint64_t(bytes[at + i]) << (8 * i);
            hash = (hash ^ word) * 1099511628211ull;
            hash ^= hash >> 29;
        }
        for (; at < bytes.size(); ++at) hash = (hash ^ bytes[at]) * 1099511628211ull;
        return hash;
    }

    std::mutex mutex_;
    std::FILE* out_ = nullptr;
    std::FILE* bin_ = nullptr;
    bool capture_ = false, warm_ = false, cleared_ = false;
    std::vector<cudaEvent_t> events_;
    std::vector<int> sites_;
    std::size_t used_ = 0;
    std::map<int, unsigned> nth_;
    std::map<std::pair<int, unsigned>, Seen> last_;
    std::vector<const void*> bases_;
    std::uint64_t written_ = 0, budget_ = 512ull << 20;
};

/// A launch of a measured kernel, with its arguments: from when this is made until it is destroyed.
template <class... Args>
class Measured {
public:
    Measured(int site, cudaStream_t stream, Args... args) : site_(site), stream_(stream), args_(args...) {
        Recorder::get().begin(site, stream);
    }
    ~Measured() {
        std::apply([this](const Args&... args) { Recorder::get().end(site_, stream_, args...); }, args_);
    }
    Measured(const Measured&) = delete;
    Measured& operator=(const Measured&) = delete;

private:
    int site_;
    cudaStream_t stream_;
    std::tuple<Args...> args_;
};

/// In front of a launch of a measured kernel, in the same expression.
template <class... Args>
Measured<Args...> measured(int site, cudaStream_t stream, Args... args) {
    return Measured<Args...>(site, stream, args...);
}

}   // namespace gridfuse_measure

#endif
