// CUDA's runtime API: devices, memory, copies.
#include "own_new.hpp"

#include "access.hpp"
#include "fiber.hpp"
#include "memory.hpp"
#include "report.hpp"
#include "scheduler.hpp"
#include "settings.hpp"
#include "stream.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#define SITE reinterpret_cast<emu::Site>(__builtin_return_address(0))

namespace emu {

namespace {

// Before everything else: static objects of the program may already use CUDA.
__attribute__((constructor(101))) void begin() {
    read_settings();
    prepare_memory();
    reserve_stacks();
}

__attribute__((destructor(101))) void end() {
    if (settings.leaks) report_leaks();
}

std::uintptr_t at(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

bool is_global(std::uintptr_t address) { return global_at(address) != nullptr; }

/// Memory that the device can use; everything else is the host's alone, and pageable.
bool is_device(const void* address) { return in_arena(at(address)) || is_global(at(address)); }

cudaError_t make_memory(void** address, std::size_t bytes, Allocation::Kind kind, Site site) {
    if (address == nullptr) return fail(cudaErrorInvalidValue);
    // The host may keep the pointer in memory that the device reads, too.
    if (in_arena(at(address))) check_range(host_thread, at(address), sizeof *address, true, site);
    *address = nullptr;
    if (bytes == 0) return cudaSuccess;
    Allocation* const made = allocate(kind, bytes, 256);
    if (made == nullptr) return fail(cudaErrorMemoryAllocation);
    made->allocated_by = host_thread.epoch;
    made->allocated_at = short_site(site);
    *address = reinterpret_cast<void*>(made->begin);
    return cudaSuccess;
}

// The allocation that begins here, or null with the error that CUDA has for it. Freed memory is a fault.
Allocation* to_free(void* address, Site site) {
    Allocation* const a = in_arena(at(address)) ? &allocation_at(at(address)) : nullptr;
    if (a == nullptr || a->number == 0 || a->begin != at(address) || a->owner != nullptr) return nullptr;
    if (a->state == Allocation::State::Free)
        fatal("double-free", "free of " + describe(*a) + ", which has been freed",
              {{"free", a->begin, a->bytes, host_thread.epoch, site}, {"free", a->begin, a->bytes, a->freed_by, long_site(a->freed_at)}});
    return a;
}

void free_now(Thread& by, Allocation& a, Site site) {
    check_free(by, a, site);
    a.freed_by = by.epoch;
    a.freed_at = short_site(site);
    release(a);
}

cudaError_t free_memory(void* address, bool host_memory, Site site) {
    if (address == nullptr) return cudaSuccess;
    Allocation* const a = to_free(address, site);
    if (a == nullptr || (a->kind == Allocation::Kind::Pinned) != host_memory || a->kind == Allocation::Kind::Heap) return fail(cudaErrorInvalidValue);
    host_wait_all();   // as CUDA does
    if (a->state == Allocation::State::Free) (void)to_free(address, site);   // meanwhile, by cudaFreeAsync
    free_now(host_thread, *a, site);
    return cudaSuccess;
}

// Whether a range can be given to CUDA: null and other addresses that are nothing are errors, which CUDA returns.
bool is_plausible(const void* address, bool device) {
    if (at(address) < 65536) return false;
    return !device || is_device(address);
}

bool plausible_copy(const void* to, const void* from, cudaMemcpyKind kind) {
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    return is_plausible(to, to_device) && is_plausible(from, from_device);
}

// A copy as an operation of a stream. Memory that is the host's alone is not looked after.
auto copy_task(void* to, const void* from, std::size_t bytes, Site site) {
    return [to, from, bytes, site](Thread& actor) {
        if (is_device(to) && is_device(from)) check_copy(actor, at(to), at(from), bytes, site);
        else if (is_device(to)) check_range(actor, at(to), bytes, true, site);
        else if (is_device(from)) check_range(actor, at(from), bytes, false, site);
        std::memmove(to, from, bytes);
    };
}

struct Staged {
    unsigned references = 0;
    std::vector<char> bytes;
};

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream, bool synchronous, Site site) {
    if (bytes == 0) return cudaSuccess;
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return fail(cudaErrorInvalidMemcpyDirection);
    if (!plausible_copy(to, from, kind)) return fail(cudaErrorInvalidValue);
    Ptr<Op> op;
    cudaError_t error;
    if (current == nullptr && !synchronous && !is_device(from) && !is_capturing(stream)) {
        // Pageable memory is read before the call returns.
        const Ptr<Staged> staged(new Staged);
        staged->bytes.assign(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
        error = enqueue(stream, [=] {
            return task([=](Thread& actor) { copy_task(to, staged->bytes.data(), bytes, site)(actor); });
        }, &op);
    } else {
        error = enqueue(stream, [=] { return task(copy_task(to, from, bytes, site)); }, &op);
    }
    if (error != cudaSuccess) return error;
    if (current != nullptr) return cudaSuccess;
    // A copy to pageable memory returns when it is done, whatever the function's name.
    if (op && (synchronous || !is_device(to))) host_wait(op);
    else host_passes();
    return cudaSuccess;
}

cudaError_t fill(void* to, int value, std::size_t bytes, cudaStream_t stream, bool synchronous, Site site) {
    if (bytes == 0) return cudaSuccess;
    if (!is_plausible(to, true)) return fail(cudaErrorInvalidValue);
    Ptr<Op> op;
    const cudaError_t error = enqueue(stream, [=] {
        return task([=](Thread& actor) {
            check_range(actor, at(to), bytes, true, site);
            std::memset(to, value, bytes);
        });
    }, &op);
    if (error != cudaSuccess) return error;
    if (current != nullptr) return cudaSuccess;
    // cudaMemset is asynchronous to the host for device memory (CUDA Runtime API: API synchronization behavior).
    const Allocation* const a = live_allocation(at(to), 1);
    if (op && synchronous && a != nullptr && a->kind == Allocation::Kind::Pinned) host_wait(op);
    else host_passes();
    return cudaSuccess;
}

cudaError_t allocate_in_stream(void** address, std::size_t bytes, cudaStream_t stream, Site site) {
    if (!is_stream(stream)) return fail(cudaErrorInvalidResourceHandle);
    if (const cudaError_t error = make_memory(address, bytes, Allocation::Kind::Async, site)) return error;
    if (*address == nullptr || !is_capturing(stream)) return cudaSuccess;
    capture_memory(stream);
    const std::uint32_t number = allocation_at(at(*address)).number;
    allocation(number).captured = true;
    release(allocation(number));
    return enqueue(stream, [number] {
        return task([number](Thread&) { revive(allocation(number)); });
    });
}

Pool default_pool;
std::size_t printf_fifo = 1 << 20, stack_limit = 1024;

}   // namespace

}   // namespace emu

using namespace emu;

const char* cudaGetErrorName(cudaError_t error) {
    switch (error) {
#define NAME(e) case e: return #e;
        NAME(cudaSuccess) NAME(cudaErrorInvalidValue) NAME(cudaErrorMemoryAllocation) NAME(cudaErrorInitializationError)
        NAME(cudaErrorInvalidConfiguration) NAME(cudaErrorInvalidSymbol) NAME(cudaErrorInvalidDevicePointer) NAME(cudaErrorInvalidMemcpyDirection)
        NAME(cudaErrorLaunchMaxDepthExceeded) NAME(cudaErrorSyncDepthExceeded) NAME(cudaErrorLaunchPendingCountExceeded)
        NAME(cudaErrorInvalidDeviceFunction) NAME(cudaErrorNoDevice) NAME(cudaErrorInvalidDevice) NAME(cudaErrorInvalidResourceHandle)
        NAME(cudaErrorNotReady) NAME(cudaErrorIllegalAddress) NAME(cudaErrorLaunchOutOfResources) NAME(cudaErrorLaunchFailure)
        NAME(cudaErrorCooperativeLaunchTooLarge) NAME(cudaErrorNotSupported) NAME(cudaErrorStreamCaptureUnsupported)
        NAME(cudaErrorStreamCaptureInvalidated) NAME(cudaErrorUnknown)
#undef NAME
    }
    return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
    switch (error) {
        case cudaSuccess: return "no error";
        case cudaErrorInvalidValue: return "invalid argument";
        case cudaErrorMemoryAllocation: return "out of memory";
        case cudaErrorInvalidConfiguration: return "invalid configuration argument";
        case cudaErrorInvalidSymbol: return "invalid device symbol";
        case cudaErrorLaunchMaxDepthExceeded: return "launch would exceed maximum depth of nested launches";
        case cudaErrorLaunchPendingCountExceeded: return "launch would exceed the limit of pending launches";
        case cudaErrorInvalidResourceHandle: return "invalid resource handle";
        case cudaErrorNotReady: return "device not ready";
        case cudaErrorCooperativeLaunchTooLarge: return "too many blocks in cooperative launch";
        case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
        default: return cudaGetErrorName(error);
    }
}

cudaError_t cudaDeviceSynchronize() {
    const HostLock lock;
    if (current != nullptr) {
        if (!settings.device_sync) fatal("unsupported", "a kernel calls cudaDeviceSynchronize, which CUDA 12 has no more");
        wait_for_children();
        return cudaSuccess;
    }
    host_wait_all();
    return cudaSuccess;
}

cudaError_t cudaDeviceReset() { return cudaDeviceSynchronize(); }

cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : fail(cudaErrorInvalidDevice); }

cudaError_t cudaGetDevice(int* device) {
    give(device, 0);
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    if (device != 0) return fail(cudaErrorInvalidDevice);
    *properties = {};
    std::strcpy(properties->name, "gridfuse emulator");
    properties->totalGlobalMem = kDeviceBytes;
    properties->sharedMemPerBlock = 48 * 1024;
    properties->sharedMemPerBlockOptin = 227 * 1024;
    properties->sharedMemPerMultiprocessor = 228 * 1024;
    properties->regsPerBlock = 65536;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
    properties->maxThreadsDim[2] = 64;
    properties->maxGridSize[0] = 0x7fffffff;
    properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
    properties->major = 9;
    properties->multiProcessorCount = rt::multiprocessors();
    properties->maxThreadsPerMultiProcessor = 1024;
    properties->concurrentKernels = properties->cooperativeLaunch = properties->managedMemory = properties->concurrentManagedAccess = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
    if (device != 0) return fail(cudaErrorInvalidDevice);
    switch (attribute) {
        case cudaDevAttrMaxThreadsPerBlock: give(value, static_cast<int>(1024)); return cudaSuccess;
        case cudaDevAttrMaxSharedMemoryPerBlock: give(value, static_cast<int>(48 * 1024)); return cudaSuccess;
        case cudaDevAttrWarpSize: give(value, static_cast<int>(32)); return cudaSuccess;
        case cudaDevAttrMultiProcessorCount: give(value, static_cast<int>(rt::multiprocessors())); return cudaSuccess;
        case cudaDevAttrComputeCapabilityMajor: give(value, static_cast<int>(9)); return cudaSuccess;
        case cudaDevAttrComputeCapabilityMinor: give(value, static_cast<int>(0)); return cudaSuccess;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor: give(value, static_cast<int>(228 * 1024)); return cudaSuccess;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: give(value, static_cast<int>(227 * 1024)); return cudaSuccess;
        case cudaDevAttrCooperativeLaunch:
        case cudaDevAttrMemoryPoolsSupported: give(value, static_cast<int>(1)); return cudaSuccess;
    }
    return fail(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value) {
    const HostLock lock;
    switch (limit) {
        case cudaLimitStackSize: stack_limit = value; return cudaSuccess;
        case cudaLimitPrintfFifoSize: printf_fifo = value; return cudaSuccess;
        case cudaLimitMallocHeapSize: heap_limit = value; return cudaSuccess;
        case cudaLimitDevRuntimePendingLaunchCount: pending_launch_limit = value; return cudaSuccess;
        case cudaLimitDevRuntimeSyncDepth: break;
    }
    return fail(cudaErrorNotSupported);
}

cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit) {
    const HostLock lock;
    switch (limit) {
        case cudaLimitStackSize: *value = stack_limit; return cudaSuccess;
        case cudaLimitPrintfFifoSize: *value = printf_fifo; return cudaSuccess;
        case cudaLimitMallocHeapSize: *value = heap_limit; return cudaSuccess;
        case cudaLimitDevRuntimePendingLaunchCount: *value = pending_launch_limit; return cudaSuccess;
        case cudaLimitDevRuntimeSyncDepth: break;
    }
    return fail(cudaErrorNotSupported);
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }

cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* total) {
    const HostLock lock;
    *total = kDeviceBytes;
    *available = kDeviceBytes - std::min(kDeviceBytes, allocated_bytes());
    return cudaSuccess;
}

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
    if (current != nullptr) {   // malloc there, but for its errors: they leave the place as it is (H100, CUDA 13.0)
        if (address == nullptr || bytes == 0) return fail(cudaErrorInvalidValue);
        void* const made = rt::device_malloc(bytes);
        if (made == nullptr) return fail(cudaErrorMemoryAllocation);
        *address = made;
        return cudaSuccess;
    }
    const HostLock lock;
    return make_memory(address, bytes, Allocation::Kind::Device, SITE);
}

cudaError_t cudaMallocManaged(void** address, std::size_t bytes, unsigned) {
    const HostLock lock;
    return make_memory(address, bytes, Allocation::Kind::Managed, SITE);
}

cudaError_t cudaMallocHost(void** address, std::size_t bytes, unsigned) {
    const HostLock lock;
    return make_memory(address, bytes, Allocation::Kind::Pinned, SITE);
}

cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
    const HostLock lock;
    return make_memory(address, bytes, Allocation::Kind::Pinned, SITE);
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
    const HostLock lock;
    const Allocation* const a = live_allocation(at(host), 1);
    if (a == nullptr || a->kind != Allocation::Kind::Pinned) return fail(cudaErrorInvalidValue);
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaFree(void* address) {
    if (current != nullptr) {
        rt::device_free(address);
        return cudaSuccess;
    }
    const HostLock lock;
    return free_memory(address, false, SITE);
}

cudaError_t cudaFreeHost(void* address) {
    const HostLock lock;
    return free_memory(address, true, SITE);
}

cudaError_t cudaMallocAsync(void** address, std::size_t bytes, cudaStream_t stream) {
    const HostLock lock;
    return allocate_in_stream(address, bytes, stream, SITE);
}

cudaError_t cudaMallocFromPoolAsync(void** address, std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    const HostLock lock;
    if (pool == nullptr) return fail(cudaErrorInvalidValue);
    return allocate_in_stream(address, bytes, stream, SITE);
}

cudaError_t cudaFreeAsync(void* address, cudaStream_t stream) {
    const HostLock lock;
    const Site site = SITE;
    if (address == nullptr) return cudaSuccess;
    Allocation* const a = in_arena(at(address)) ? &allocation_at(at(address)) : nullptr;
    if (a == nullptr || a->number == 0 || a->begin != at(address)) return fail(cudaErrorInvalidValue);
    const std::uint32_t number = a->number;
    const cudaError_t error = enqueue(stream, [number, site] {
        return task([number, site](Thread& actor) {
            (void)to_free(reinterpret_cast<void*>(allocation(number).begin), site);
            free_now(actor, allocation(number), site);
        });
    });
    if (error == cudaSuccess) host_passes();
    return error;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
    if (pool == nullptr || properties == nullptr || properties->allocType != cudaMemAllocationTypePinned ||
        properties->location.type != cudaMemLocationTypeDevice || properties->location.id != 0)
        return fail(cudaErrorInvalidValue);
    *pool = new Pool;
    return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    if (pool == nullptr || pool == &default_pool) return fail(cudaErrorInvalidValue);
    delete pool;
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    if (pool == nullptr || value == nullptr) return fail(cudaErrorInvalidValue);
    if (attribute == cudaMemPoolAttrReleaseThreshold) std::memcpy(&pool->release_threshold, value, sizeof pool->release_threshold);
    return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    if (pool == nullptr || value == nullptr || attribute != cudaMemPoolAttrReleaseThreshold) return fail(cudaErrorInvalidValue);
    std::memcpy(value, &pool->release_threshold, sizeof pool->release_threshold);
    return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t) { return pool == nullptr ? fail(cudaErrorInvalidValue) : cudaSuccess; }

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
    if (device != 0) return fail(cudaErrorInvalidDevice);
    *pool = &default_pool;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) { return cudaDeviceGetDefaultMemPool(pool, device); }

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    const HostLock lock;
    if (current != nullptr) fatal("unsupported", "a kernel calls cudaMemcpy; there is cudaMemcpyAsync");
    return copy(to, from, bytes, kind, nullptr, true, SITE);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    const HostLock lock;
    return copy(to, from, bytes, kind, stream, false, SITE);
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
    const HostLock lock;
    return fill(to, value, bytes, nullptr, true, SITE);
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
    const HostLock lock;
    return fill(to, value, bytes, stream, false, SITE);
}

cudaError_t cudaMemPrefetchAsync(const void* address, std::size_t bytes, int, cudaStream_t stream) {
    const HostLock lock;
    const Allocation* const a = live_allocation(at(address), bytes);
    if (a == nullptr || a->kind != Allocation::Kind::Managed || !is_stream(stream)) return fail(cudaErrorInvalidValue);
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
    const HostLock lock;
    *attributes = {};
    const Allocation* const a = live_allocation(at(address), 1);
    if (a == nullptr) return cudaSuccess;
    attributes->type = a->kind == Allocation::Kind::Pinned    ? cudaMemoryTypeHost
                       : a->kind == Allocation::Kind::Managed ? cudaMemoryTypeManaged
                                                              : cudaMemoryTypeDevice;
    attributes->devicePointer = const_cast<void*>(address);
    attributes->hostPointer = attributes->type == cudaMemoryTypeDevice ? nullptr : const_cast<void*>(address);
    return cudaSuccess;
}

namespace emu::rt {

cudaError_t symbol_address(void** address, const void* symbol) {
    const HostLock lock;
    Global* const global = global_at(at(symbol));
    if (global == nullptr || global->allocation.begin != at(symbol)) return fail(cudaErrorInvalidSymbol);
    *address = const_cast<void*>(symbol);
    return cudaSuccess;
}

cudaError_t symbol_size(std::size_t* bytes, const void* symbol) {
    const HostLock lock;
    Global* const global = global_at(at(symbol));
    if (global == nullptr || global->allocation.begin != at(symbol)) return fail(cudaErrorInvalidSymbol);
    *bytes = global->allocation.bytes;
    return cudaSuccess;
}

}   // namespace emu::rt
