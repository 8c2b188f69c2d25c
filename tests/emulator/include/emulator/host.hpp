// CUDA's runtime API, as far as the emulator has it, with CUDA 13's names and numbers. Device code may call what CUDA
// lets it call; the functions find out by themselves who calls.
#ifndef GRIDFUSE_EMULATOR_HOST_HPP
#define GRIDFUSE_EMULATOR_HOST_HPP

#include "emulator/types.hpp"

#include <new>
#include <type_traits>
#include <utility>

enum cudaError : int {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInitializationError = 3,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidSymbol = 13,
    cudaErrorInvalidDevicePointer = 17,
    cudaErrorInvalidMemcpyDirection = 21,
    cudaErrorLaunchMaxDepthExceeded = 65,
    cudaErrorSyncDepthExceeded = 68,
    cudaErrorLaunchPendingCountExceeded = 69,
    cudaErrorInvalidDeviceFunction = 98,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchOutOfResources = 701,
    cudaErrorLaunchFailure = 719,
    cudaErrorCooperativeLaunchTooLarge = 720,
    cudaErrorNotSupported = 801,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
    cudaErrorUnknown = 999,
};
using cudaError_t = cudaError;

namespace emu {
struct Stream;
struct Event;
struct Pool;
struct Graph;
struct GraphExec;
}   // namespace emu
using cudaStream_t = emu::Stream*;
using cudaEvent_t = emu::Event*;
using cudaMemPool_t = emu::Pool*;
using cudaGraph_t = emu::Graph*;
using cudaGraphExec_t = emu::GraphExec*;

#define cudaStreamLegacy (reinterpret_cast<cudaStream_t>(1))
#define cudaStreamPerThread (reinterpret_cast<cudaStream_t>(2))
#define cudaStreamTailLaunch (reinterpret_cast<cudaStream_t>(3))
#define cudaStreamFireAndForget (reinterpret_cast<cudaStream_t>(4))
#define cudaStreamDefault 0u
#define cudaStreamNonBlocking 1u
#define cudaEventDefault 0u
#define cudaEventBlockingSync 1u
#define cudaEventDisableTiming 2u
#define cudaHostAllocDefault 0u
#define cudaHostAllocPortable 1u
#define cudaHostAllocMapped 2u
#define cudaHostAllocWriteCombined 4u
#define cudaMemAttachGlobal 1u
#define cudaMemAttachHost 2u
#define cudaCpuDeviceId (-1)

enum cudaMemcpyKind : int {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4,
};
enum cudaLimit : int {
    cudaLimitStackSize = 0,
    cudaLimitPrintfFifoSize = 1,
    cudaLimitMallocHeapSize = 2,
    cudaLimitDevRuntimeSyncDepth = 3,
    cudaLimitDevRuntimePendingLaunchCount = 4,
};
enum cudaStreamCaptureStatus : int { cudaStreamCaptureStatusNone = 0, cudaStreamCaptureStatusActive = 1, cudaStreamCaptureStatusInvalidated = 2 };
enum cudaStreamCaptureMode : int { cudaStreamCaptureModeGlobal = 0, cudaStreamCaptureModeThreadLocal = 1, cudaStreamCaptureModeRelaxed = 2 };
enum cudaFuncAttribute : int { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout = 9 };
enum cudaFuncCache : int { cudaFuncCachePreferNone = 0, cudaFuncCachePreferShared = 1, cudaFuncCachePreferL1 = 2, cudaFuncCachePreferEqual = 3 };
enum cudaDeviceAttr : int {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
    cudaDevAttrCooperativeLaunch = 95,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
    cudaDevAttrMemoryPoolsSupported = 115,
};
enum cudaMemAllocationType : int { cudaMemAllocationTypeInvalid = 0, cudaMemAllocationTypePinned = 1 };
enum cudaMemAllocationHandleType : int { cudaMemHandleTypeNone = 0 };
enum cudaMemLocationType : int { cudaMemLocationTypeInvalid = 0, cudaMemLocationTypeDevice = 1, cudaMemLocationTypeHost = 2 };
struct cudaMemLocation {
    cudaMemLocationType type;
    int id;
};
struct cudaMemPoolProps {
    cudaMemAllocationType allocType;
    cudaMemAllocationHandleType handleTypes;
    cudaMemLocation location;
    void* win32SecurityAttributes;
    std::size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
};
enum cudaMemPoolAttr : int {
    cudaMemPoolReuseFollowEventDependencies = 1,
    cudaMemPoolReuseAllowOpportunistic = 2,
    cudaMemPoolReuseAllowInternalDependencies = 3,
    cudaMemPoolAttrReleaseThreshold = 4,
};
struct cudaFuncAttributes {
    std::size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes, preferredShmemCarveout;
};
struct cudaDeviceProp {
    char name[256];
    std::size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], major, minor, multiProcessorCount;
    int concurrentKernels, maxThreadsPerMultiProcessor, cooperativeLaunch, managedMemory, concurrentManagedAccess;
    std::size_t sharedMemPerMultiprocessor, sharedMemPerBlockOptin;
};
enum cudaMemoryType : int { cudaMemoryTypeUnregistered = 0, cudaMemoryTypeHost = 1, cudaMemoryTypeDevice = 2, cudaMemoryTypeManaged = 3 };
struct cudaPointerAttributes {
    cudaMemoryType type;
    int device;
    void *devicePointer, *hostPointer;
};
using cudaHostFn_t = void (*)(void*);
using cudaStreamCallback_t = void (*)(cudaStream_t, cudaError_t, void*);

// Errors
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

// Device
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset();
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value);
cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit);
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* total);

// Memory
cudaError_t cudaMalloc(void** address, std::size_t bytes);
cudaError_t cudaMallocManaged(void** address, std::size_t bytes, unsigned flags = cudaMemAttachGlobal);
cudaError_t cudaMallocHost(void** address, std::size_t bytes, unsigned flags = 0);
cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned flags);
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags);
cudaError_t cudaFree(void* address);
cudaError_t cudaFreeHost(void* address);
cudaError_t cudaMallocAsync(void** address, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaMallocFromPoolAsync(void** address, std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream);
cudaError_t cudaFreeAsync(void* address, cudaStream_t stream);
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t keep);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device);
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void* to, int value, std::size_t bytes);
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream = nullptr);
cudaError_t cudaMemPrefetchAsync(const void* address, std::size_t bytes, int device, cudaStream_t stream = nullptr);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address);

// Streams and events
cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop);

// Graphs, as far as stream capture needs them
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);

template <class T>
cudaError_t cudaMalloc(T** address, std::size_t bytes) {
    return cudaMalloc(reinterpret_cast<void**>(address), bytes);
}
template <class T>
cudaError_t cudaMallocManaged(T** address, std::size_t bytes, unsigned flags = cudaMemAttachGlobal) {
    return cudaMallocManaged(reinterpret_cast<void**>(address), bytes, flags);
}
template <class T>
cudaError_t cudaMallocHost(T** address, std::size_t bytes, unsigned flags = 0) {
    return cudaMallocHost(reinterpret_cast<void**>(address), bytes, flags);
}
template <class T>
cudaError_t cudaHostAlloc(T** address, std::size_t bytes, unsigned flags) {
    return cudaHostAlloc(reinterpret_cast<void**>(address), bytes, flags);
}
template <class T>
cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned flags) {
    return cudaHostGetDevicePointer(reinterpret_cast<void**>(device), host, flags);
}
template <class T>
cudaError_t cudaMallocAsync(T** address, std::size_t bytes, cudaStream_t stream) {
    return cudaMallocAsync(reinterpret_cast<void**>(address), bytes, stream);
}
template <class T>
cudaError_t cudaMallocFromPoolAsync(T** address, std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    return cudaMallocFromPoolAsync(reinterpret_cast<void**>(address), bytes, pool, stream);
}

namespace emu {
namespace rt {

/// What is launched: a function and its arguments, in memory of the runtime.
struct KernelCode {
    void (*run)(void* closure);       // by every thread
    void (*destroy)(void* closure);   // once, when the grid is complete
    const void* function;             // the kernel, or null: identifies it in limits and reports
    const char* name;                 // null: found out from the function's symbol
    std::size_t bytes;                // of the closure
    std::size_t alignment;
};
struct LaunchShape {
    const char* file;
    int line;
    dim3 grid, block;
    std::size_t shared_bytes;
    cudaStream_t stream;
    bool cooperative;
};

/// For a closure; `launch` with the same code takes it over.
void* parameter_memory(const KernelCode& code);
cudaError_t launch(const LaunchShape& shape, const KernelCode& code, void* closure);
cudaError_t symbol_address(void** address, const void* symbol);
cudaError_t symbol_size(std::size_t* bytes, const void* symbol);
cudaError_t set_function_attribute(const void* function, cudaFuncAttribute attribute, int value);
cudaError_t function_attributes(cudaFuncAttributes* attributes, const void* function);
int blocks_per_multiprocessor(const void* function, int block_threads, std::size_t shared_bytes);
int multiprocessors();

}   // namespace rt

// Lambdas that capture packs are C++20, but take g++ half the time of a std::tuple, and most of the time goes into compiling.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wc++20-extensions"

/// A kernel launch up to its arguments: `Launch("bfs.cu", 58, grid, block).of(child)(a, b)`.
class Launch {
public:
    Launch(const char* file, int line, dim3 grid, dim3 block, std::size_t shared_bytes = 0, cudaStream_t stream = nullptr)
        : shape_{file, line, grid, block, shared_bytes, stream, false} {}

    Launch cooperative() const {
        Launch result = *this;
        result.shape_.cooperative = true;
        return result;
    }

    /// A kernel whose parameters are known: the arguments are converted to them, as in a call. Like a launch, the call is void.
    template <class... P>
    auto of(void (*function)(P...), const char* name = nullptr) const {
        return [shape = shape_, function, name](P... args) {
            (void)start(shape, [function, ...args = static_cast<P&&>(args)] { function(args...); }, reinterpret_cast<const void*>(function), name);
        };
    }

    /// A kernel whose template arguments, or default arguments, depend on the launch's arguments.
    template <class F>
    auto deduced(F function, const char* name = nullptr) const {
        return [shape = shape_, function, name](auto... args) {
            (void)start(shape, [function, ...args = static_cast<decltype(args)&&>(args)] { function(args...); }, nullptr, name);
        };
    }

    /// The same with the arguments as an array of pointers to them.
    template <class... P, std::size_t... I>
    cudaError_t with_array(void (*function)(P...), void** args, std::index_sequence<I...>) const {
        return start(shape_, [function, ...values = *static_cast<std::remove_reference_t<P>*>(args[I])] { function(values...); },
                     reinterpret_cast<const void*>(function), nullptr);
    }

private:
    // Every thread calls the closure: it gets its own copy of the arguments, on its own stack.
    template <class C>
    static cudaError_t start(const rt::LaunchShape& shape, C&& closure, const void* identity, const char* name) {
        void (*destroy)(void*) = nullptr;
        if constexpr (!std::is_trivially_destructible<C>::value) destroy = [](void* self) { static_cast<C*>(self)->~C(); };
        const rt::KernelCode code{[](void* self) { (*static_cast<const C*>(self))(); }, destroy, identity, name, sizeof(C), alignof(C)};
        void* const memory = rt::parameter_memory(code);
        new (memory) C(static_cast<C&&>(closure));
        return rt::launch(shape, code, memory);
    }

    rt::LaunchShape shape_;
};

#pragma GCC diagnostic pop

}   // namespace emu

// Functions that take a kernel or a variable by its type
template <class... P>
cudaError_t cudaLaunchKernel(void (*function)(P...), dim3 grid, dim3 block, void** args, std::size_t shared_bytes = 0,
                             cudaStream_t stream = nullptr) {
    return emu::Launch("cudaLaunchKernel", 0, grid, block, shared_bytes, stream).with_array(function, args, std::index_sequence_for<P...>());
}
template <class... P>
cudaError_t cudaLaunchCooperativeKernel(void (*function)(P...), dim3 grid, dim3 block, void** args, std::size_t shared_bytes = 0,
                                        cudaStream_t stream = nullptr) {
    return emu::Launch("cudaLaunchCooperativeKernel", 0, grid, block, shared_bytes, stream)
        .cooperative()
        .with_array(function, args, std::index_sequence_for<P...>());
}
/// Without the kernel's type there is no way to read the arguments: an "unsupported" fault.
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** args, std::size_t shared_bytes = 0, cudaStream_t stream = nullptr);

template <class F>
cudaError_t cudaFuncSetAttribute(F* function, cudaFuncAttribute attribute, int value) {
    return emu::rt::set_function_attribute(reinterpret_cast<const void*>(function), attribute, value);
}
template <class F>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, F* function) {
    return emu::rt::function_attributes(attributes, reinterpret_cast<const void*>(function));
}
template <class F>
cudaError_t cudaFuncSetCacheConfig(F*, cudaFuncCache) {
    return cudaSuccess;
}
template <class F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F* function, int block_threads, std::size_t shared_bytes) {
    *blocks = emu::rt::blocks_per_multiprocessor(reinterpret_cast<const void*>(function), block_threads, shared_bytes);
    return cudaSuccess;
}
template <class F>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* blocks, int* block_threads, F*, std::size_t = 0, int limit = 0) {
    *block_threads = limit > 0 && limit < 256 ? limit : 256;
    *blocks = emu::rt::multiprocessors();
    return cudaSuccess;
}
template <class T>
cudaError_t cudaGetSymbolAddress(void** address, const T& symbol) {
    return emu::rt::symbol_address(address, &reinterpret_cast<const char&>(symbol));
}
template <class T>
cudaError_t cudaGetSymbolSize(std::size_t* bytes, const T& symbol) {
    return emu::rt::symbol_size(bytes, &reinterpret_cast<const char&>(symbol));
}
template <class T>
cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, std::size_t bytes, std::size_t offset, cudaMemcpyKind kind,
                                    cudaStream_t stream = nullptr) {
    void* address = nullptr;
    if (const cudaError_t error = cudaGetSymbolAddress(&address, symbol)) return error;
    return cudaMemcpyAsync(static_cast<char*>(address) + offset, from, bytes, kind, stream);
}
template <class T>
cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, std::size_t bytes, std::size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
    void* address = nullptr;
    if (const cudaError_t error = cudaGetSymbolAddress(&address, symbol)) return error;
    return cudaMemcpy(static_cast<char*>(address) + offset, from, bytes, kind);
}
template <class T>
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, std::size_t bytes, std::size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t stream = nullptr) {
    void* address = nullptr;
    if (const cudaError_t error = cudaGetSymbolAddress(&address, symbol)) return error;
    return cudaMemcpyAsync(to, static_cast<char*>(address) + offset, bytes, kind, stream);
}
template <class T>
cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, std::size_t bytes, std::size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
    void* address = nullptr;
    if (const cudaError_t error = cudaGetSymbolAddress(&address, symbol)) return error;
    return cudaMemcpy(to, static_cast<char*>(address) + offset, bytes, kind);
}

#endif
