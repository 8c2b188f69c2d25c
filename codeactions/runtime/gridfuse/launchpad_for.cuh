// SPDX-License-Identifier: MIT OR Apache-2.0
//
// From the host. With PerGridFromHost, and launchpad_for in place of arena_for, the host launches
// what a grid has collected:
//
//     visit<<<blocks, threads, 0, stream>>>(row, col, dist, n,
//                                           gridfuse::launchpad_for<expand_aggregated>(blocks,
//                                               threads, stream));
//
// At the end of this statement it waits until the parent is done, launches the children into the
// same stream, and waits again as long as these collect launches in their turn. While a stream is
// captured into a graph there is no host to do so: the children are launched by the device then, as
// with PerGrid, and so is whatever doesn't fit. The first launches of a parent are left to the
// device, too: a launchpad takes CUDA a millisecond to make, most of the time of a program that
// launches once.

#ifndef GRIDFUSE_LAUNCHPAD_FOR_CUH
#define GRIDFUSE_LAUNCHPAD_FOR_CUH

#include "aggregate.cuh"
#include "arena_for.cuh"
#include "launchpad.cuh"
#include "lock.cuh"

#include <atomic>
#include <cstddef>

// How many launches of a parent the device makes before the host takes over.
#ifndef GRIDFUSE_LAUNCHPAD_AFTER
#define GRIDFUSE_LAUNCHPAD_AFTER 8
#endif

namespace gridfuse {
inline namespace v2 {

namespace detail {

/// The addresses of kernels in device code, which host code can't find out.
template <auto... Kernel>
__global__ void list_kernels(unsigned long long* list) {
    ((*list++ = reinterpret_cast<unsigned long long>(Kernel)), ...);
}

/// The launches of a batch that don't fit into one grid. (What nvcc makes of it for the host has
/// another type of kernel: that can't say what the parameters are.)
template <class Batch, class Common, auto Kernel>
__global__ void launch_each(Batch batch, Common uniform) {
    Aggregator<PerGridFromHost, Kernel, 0>::launch_each(uniform, batch);
}

/// Where the arguments that all launches have in common stand.
inline void place_arguments(Pack<>&, void**) {}
template <class Head, class... Tail>
void place_arguments(Pack<Head, Tail...>& pack, void** arguments) {
    *arguments = address_of(pack.head);
    place_arguments(pack.tail, arguments + 1);
}

/// Does by the host what an order says.
template <auto Kernel>
void launch_order(unsigned char* memory, cudaStream_t stream) {
    using Child = detail::Child<decltype(Kernel)>;
    using Batch = typename Child::ChildBatch;
    using Common = typename Child::Common;
    auto& order = *reinterpret_cast<Order<Batch, Common>*>(memory);
    const OrderHead head = order.head;
    if (head.block != 0) {
        void* arguments[1 + Child::kUniform] = {&order.batch};
        place_arguments(reinterpret_cast<Common&>(order.uniform), arguments + 1);
        const cudaError_t before = cudaPeekAtLastError();
        if (cudaLaunchKernel(Kernel, dim3(head.blocks), unpack_block(head.block), arguments,
                             head.shared_bytes, stream) == cudaSuccess)
            return;
        // The largest block and the most shared memory may be too much together though none of them
        // was by itself.
        if (before == cudaSuccess) (void)cudaGetLastError();
    }
    void* arguments[] = {&order.batch, &order.uniform};
    // an error stays for the program to see
    (void)cudaLaunchKernel(launch_each<Batch, Common, Kernel>, dim3(1), dim3(1), arguments, 0,
                           stream);
}

/// Launchpads that no launch uses, with the kernels that they list.
class Launchpads {
public:
    /// One that lists these kernels on this device, or null.
    Launchpad* take(int device, const void* list) {
        const Lock lock(held_);
        for (Launchpad** at = &free_; *at != nullptr; at = &(*at)->next) {
            Launchpad* const launchpad = *at;
            if (launchpad->device == device && launchpad->list == list) {
                *at = launchpad->next;
                return launchpad;
            }
        }
        return nullptr;
    }

    void give(Launchpad* launchpad) {
        const Lock lock(held_);
        launchpad->next = free_;
        free_ = launchpad;
    }

    /// A new one, without kernels, or null.
    static Launchpad* make(int device, const void* list) {
        // Taking memory is no part of a graph that some stream is capturing.
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
        if (cudaThreadExchangeStreamCaptureMode(&mode) != cudaSuccess) return nullptr;
        void* memory = nullptr;
        if (cudaHostAlloc(&memory, sizeof(Launchpad),
                          cudaHostAllocPortable | cudaHostAllocMapped) != cudaSuccess)
            memory = nullptr;
        (void)cudaThreadExchangeStreamCaptureMode(&mode);
        Launchpad* const launchpad = static_cast<Launchpad*>(memory);
        if (launchpad == nullptr) return nullptr;
        for (unsigned long long& kernel : launchpad->kernels) kernel = 0;
        launchpad->used = 0;
        launchpad->half = 0;
        launchpad->list = list;
        launchpad->device = device;
        launchpad->next = nullptr;
        return launchpad;
    }

    static Launchpads& instance() {
        static Launchpads launchpads;
        return launchpads;
    }

private:
    std::atomic<bool> held_{false};
    Launchpad* free_ = nullptr;
};

}   // namespace detail

/// Owns the memory of an Arena for one launch in a stream, and launches what the parent and its
/// children have collected: when destroyed. What launchpad_for returns; converts to Arena.
template <auto... Kernel>
class LaunchpadOwner {
    static_assert(sizeof...(Kernel) <= detail::Launchpad::kKernels,
                  "more kernels than a launchpad can list");

public:
    LaunchpadOwner(dim3 grid, dim3 block, cudaStream_t stream, std::size_t bytes_per_thread,
                   unsigned aggregators, std::size_t nested_bytes)
        : memory_(grid, block, stream, bytes_per_thread, aggregators, nested_bytes),
          stream_(stream) {
        // A graph runs without us: there the device launches.
        if (memory_.arena_.memory_ == nullptr || !memory_.memory_.is_kept()) return;
        if (is_among_the_first()) return;
        const cudaError_t before = cudaPeekAtLastError();
        launchpad_ = detail::Launchpads::instance().take(memory_.memory_.device(), &list_);
        if (launchpad_ == nullptr) launchpad_ = make();
        // the program has not failed, only the device launches
        if (before == cudaSuccess) (void)cudaGetLastError();
    }
    ~LaunchpadOwner() {
        if (launchpad_ == nullptr) return;
        // Only kernels that collect launches in their turn leave further orders.
        constexpr bool in_turn = (detail::Child<decltype(Kernel)>::kNested || ...);
        do {
            // On an error, which stays for the program to see, nothing is known of who still uses
            // the launchpad.
            if (cudaStreamSynchronize(stream_) != cudaSuccess) return;
        } while (launch_orders() && in_turn);
        detail::Launchpads::instance().give(launchpad_);
    }
    LaunchpadOwner(const LaunchpadOwner&) = delete;
    LaunchpadOwner& operator=(const LaunchpadOwner&) = delete;

    operator Arena() const {
        Arena arena = memory_;
        arena.launchpad_ = launchpad_;
        return arena;
    }

private:
    static bool is_among_the_first() {
        constexpr int first = GRIDFUSE_LAUNCHPAD_AFTER;
        static std::atomic<int> launches{0};
        return launches.load(std::memory_order_relaxed) < first &&
               launches.fetch_add(1, std::memory_order_relaxed) < first;
    }

    detail::Launchpad* make() const {
        detail::Launchpad* const launchpad =
            detail::Launchpads::make(memory_.memory_.device(), &list_);
        if (launchpad == nullptr) return nullptr;
        unsigned long long* list = launchpad->kernels;
        void* arguments[] = {&list};
        if (cudaLaunchKernel(detail::list_kernels<Kernel...>, dim3(1), dim3(1), arguments, 0,
                             stream_) == cudaSuccess)
            return launchpad;
        (void)cudaFreeHost(launchpad);
        return nullptr;
    }

    // The launches that were left to the host since the last time; false if there were none.
    bool launch_orders() const {
        constexpr void (*launch[])(unsigned char*,
                                   cudaStream_t) = {detail::launch_order<Kernel>...};
        unsigned char* order = launchpad_->orders[launchpad_->half];
        unsigned char* const end = order + launchpad_->used;
        if (order == end) return false;
        launchpad_->half ^= 1;
        launchpad_->used = 0;
        while (order != end) {
            const detail::OrderHead head = *reinterpret_cast<const detail::OrderHead*>(order);
            launch[head.kernel](order, stream_);
            order += head.bytes;
        }
        return true;
    }

    static inline const char list_ = 0;   // its address stands for these kernels

    ArenaOwner memory_;   // given back after the launches
    cudaStream_t stream_;
    detail::Launchpad* launchpad_ = nullptr;
};

/// Makes the arena for one launch of a parent kernel whose Aggregators are PerGridFromHost; in
/// place of arena_for:
///
///     parent<<<grid, block, 0, stream>>>(..., gridfuse::launchpad_for<child_aggregated>(grid,
///         block, stream));
///
/// `Kernel`: the kernels that Aggregators launch, those of the children in their turn included. One
/// that is left out is launched by the device. The host waits at the end of the statement until the
/// parent is done, and then launches the children into the stream; if these collect launches in
/// their turn, it waits until they are done, too. So nothing that comes before in the stream may
/// wait for what the host does later, and no other thread of the host may launch into the stream
/// meanwhile what must not come between parent and children.
template <auto... Kernel>
inline LaunchpadOwner<Kernel...> launchpad_for(dim3 grid, dim3 block, cudaStream_t stream = 0,
                                               std::size_t bytes_per_thread = 64,
                                               unsigned aggregators = 1,
                                               std::size_t nested_bytes = 0) {
    static_assert(sizeof...(Kernel) != 0, "a launchpad launches some kernel");
    return LaunchpadOwner<Kernel...>(grid, block, stream, bytes_per_thread, aggregators,
                                     nested_bytes);
}

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_LAUNCHPAD_FOR_CUH
