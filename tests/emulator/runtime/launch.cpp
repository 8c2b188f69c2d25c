// Kernel launches, from the host and from kernels, with the errors that CUDA reports for them.
#include "own_new.hpp"

#include "access.hpp"
#include "fiber.hpp"
#include "report.hpp"
#include "scheduler.hpp"
#include "settings.hpp"
#include "stream.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

namespace emu {

namespace {

constexpr unsigned kMaxNesting = 24;               // CUDA C++ Programming Guide, CUDA dynamic parallelism: limits
constexpr std::size_t kPlainShared = 48 * 1024;    // more needs cudaFuncAttributeMaxDynamicSharedMemorySize
constexpr std::size_t kMostShared = 227 * 1024;    // compute capability 9.0

std::map<const void*, std::size_t> shared_limits;   // by kernel; only looked up

// Where the arguments of launches lie: fixed addresses, sizes of powers of two.
std::uintptr_t next_parameters = kParameterBase;
std::vector<void*> idle_parameters[40];
unsigned parameter_class(std::size_t bytes) {
    unsigned size = 6;
    while ((std::size_t(1) << size) < bytes) ++size;
    return size;
}

cudaError_t validate(const rt::LaunchShape& shape, const rt::KernelCode& code) {
    const dim3 g = shape.grid, b = shape.block;
    if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535) return cudaErrorInvalidConfiguration;
    if (b.x == 0 || b.y == 0 || b.z == 0 || b.x > 1024 || b.y > 1024 || b.z > 64 || b.x * b.y * b.z > 1024) return cudaErrorInvalidConfiguration;
    std::size_t most = kPlainShared;
    if (const auto limit = shared_limits.find(code.function); code.function != nullptr && limit != shared_limits.end()) most = limit->second;
    if (shape.shared_bytes > most) return cudaErrorInvalidValue;
    if (!is_stream(shape.stream)) return cudaErrorInvalidResourceHandle;
    if (shape.cooperative && std::uint64_t(g.x) * g.y * g.z > max_resident()) return cudaErrorCooperativeLaunchTooLarge;
    if (current != nullptr) {
        if (current->block->grid->depth + 1 > kMaxNesting) return cudaErrorLaunchMaxDepthExceeded;
        if (pending_launches >= pending_launch_limit) return cudaErrorLaunchPendingCountExceeded;
    }
    return cudaSuccess;
}

Ptr<Op> make_grid(const rt::LaunchShape& shape, const Ptr<Closure>& closure) {
    Grid* const grid = new Grid;
    grid->kind = Op::Kind::Grid;
    grid->closure = closure;
    grid->shape = shape;
    grid->blocks = std::uint64_t(shape.grid.x) * shape.grid.y * shape.grid.z;
    grid->block_threads = shape.block.x * shape.block.y * shape.block.z;
    switch (settings.block_order) {
        case BlockOrder::Ascending: break;
        case BlockOrder::Descending:
            grid->order_stride = grid->blocks - 1;
            grid->order_offset = grid->blocks - 1;
            break;
        case BlockOrder::Scattered:
            grid->order_stride = 1 + chance.below(grid->blocks);
            while (std::gcd(grid->order_stride, grid->blocks) != 1) ++grid->order_stride;
            grid->order_offset = chance.below(grid->blocks);
            break;
    }
    if (current != nullptr) grid->depth = current->block->grid->depth + 1;
    return Ptr<Op>(grid);
}

// Pointers to local memory among the arguments: a child must not use them.
void keep_local_memory(const void* closure, std::size_t bytes) {
    for (std::size_t i = 0; i + sizeof(std::uintptr_t) <= bytes; i += sizeof(std::uintptr_t)) {
        std::uintptr_t word;
        std::memcpy(&word, static_cast<const char*>(closure) + i, sizeof word);
        if (is_stack(word)) never_reuse(word);
    }
}

}   // namespace

Closure::~Closure() {
    if (code.destroy != nullptr) code.destroy(memory);
    idle_parameters[parameter_class(std::max(code.bytes, code.alignment))].push_back(memory);
}

namespace rt {

void* parameter_memory(const KernelCode& code) {
    const HostLock lock;
    const unsigned size = parameter_class(std::max(code.bytes, code.alignment));
    auto& idle = idle_parameters[size];
    if (!idle.empty()) {
        void* const memory = idle.back();
        idle.pop_back();
        return memory;
    }
    const std::size_t taken = std::size_t(1) << size;
    next_parameters = (next_parameters + taken - 1) / taken * taken;
    if (next_parameters + taken > kParameterBase + kParameterBytes) fatal("unsupported", "the arguments of all launches that are pending take more than 16 GB");
    void* const memory = reinterpret_cast<void*>(next_parameters);
    next_parameters += taken;
    return memory;
}

cudaError_t launch(const LaunchShape& shape, const KernelCode& code, void* memory) {
    const HostLock lock;
    resolve_same_value();
    const Ptr<Closure> closure(new Closure);
    closure->code = code;
    closure->memory = memory;
    if (current != nullptr) keep_local_memory(memory, code.bytes);
    if (const cudaError_t error = validate(shape, code)) {
        Grid failed;
        failed.shape = shape;
        failed.closure = closure;
        note("launch-error", "the launch of " + kernel_name(failed) + " at " + shape.file + ":" + number(shape.line) + " fails: " +
                                 cudaGetErrorName(error) + (current != nullptr ? ", launched by " + describe(*current) : Text()));
        return fail(error);
    }
    Ptr<Op> op;
    const cudaError_t error = enqueue(shape.stream, [shape, closure] { return make_grid(shape, closure); }, &op);
    if (error != cudaSuccess) return error;
    if (current == nullptr) {
        host_passes();
        return cudaSuccess;
    }
    ++pending_launches;
    // The child's first chance: at once, before its launcher goes on.
    if (settings.children == Children::Eager && shape.stream != cudaStreamTailLaunch && !chance.one_in(4)) hold(static_cast<Grid&>(*op));
    else if (chance.one_in(2)) yield();
    return cudaSuccess;
}

cudaError_t set_function_attribute(const void* function, cudaFuncAttribute attribute, int value) {
    const HostLock lock;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || static_cast<std::size_t>(value) > kMostShared) return fail(cudaErrorInvalidValue);
    shared_limits[function] = static_cast<std::size_t>(value);
    return cudaSuccess;
}

cudaError_t function_attributes(cudaFuncAttributes* attributes, const void* function) {
    const HostLock lock;
    *attributes = {};
    attributes->maxThreadsPerBlock = 1024;
    attributes->numRegs = 32;
    attributes->ptxVersion = attributes->binaryVersion = 90;
    const auto limit = shared_limits.find(function);
    attributes->maxDynamicSharedSizeBytes = static_cast<int>(limit == shared_limits.end() ? kPlainShared : limit->second);
    return cudaSuccess;
}

int multiprocessors() { return static_cast<int>(max_resident()); }
int blocks_per_multiprocessor(const void*, int block_threads, std::size_t) { return block_threads >= 1 && block_threads <= 1024 ? 1 : 0; }

}   // namespace rt

}   // namespace emu

cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t) {
    emu::fatal("unsupported", "cudaLaunchKernel with a kernel whose type is not known");
}
