// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Whether launches of a parent kernel have collected much lately: then the next one may, too.

#ifndef GRIDFUSE_LATELY_CUH
#define GRIDFUSE_LATELY_CUH

#include "version.cuh"

#include <atomic>

// After how many launches of a parent the device begins to tell. Those before it are followed by a
// grid whether there is something to run or not: as long as that takes less time than the memory
// does by which the device tells, a millisecond.
#ifndef GRIDFUSE_TELL_AFTER
#define GRIDFUSE_TELL_AFTER 256
#endif

namespace gridfuse {
inline namespace v2 {

namespace detail {

/// Counts the launches of a parent, and knows the last one that had so much to run that it was
/// worth a grid of its own. The device tells, by a word of the host's memory, and the host doesn't
/// wait for it: it may know of earlier launches only.
class Lately {
public:
    /// The number of the next launch.
    unsigned next() { return launches_.fetch_add(1, std::memory_order_relaxed) + 1; }

    /// Where the device writes that launch `number` had much; null where there is no such memory,
    /// and for the first launches, which are soon anyway.
    unsigned* told(unsigned number) {
        unsigned* told = told_.load(std::memory_order_acquire);
        if (told != nullptr || number <= GRIDFUSE_TELL_AFTER) return told;
        // Memory of the host is no part of a graph that some stream is capturing.
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
        const cudaError_t before = cudaPeekAtLastError();
        if (cudaThreadExchangeStreamCaptureMode(&mode) != cudaSuccess) return nullptr;
        unsigned* first = nullptr;
        if (cudaMallocHost(&told, sizeof *told) == cudaSuccess) {
            *told = number;   // what those before had isn't known
            // Another thread may have made one meanwhile.
            if (!told_.compare_exchange_strong(first, told, std::memory_order_acq_rel,
                                               std::memory_order_acquire)) {
                (void)cudaFreeHost(told);
                told = first;
            }
        } else {
            told = nullptr;
            if (before == cudaSuccess) (void)cudaGetLastError();
        }
        (void)cudaThreadExchangeStreamCaptureMode(&mode);
        return told;
    }

    /// Whether a launch is among the first ones, or follows shortly on one that had much.
    static bool is_soon(unsigned number, const unsigned* told) {
        return told == nullptr || number - *static_cast<const volatile unsigned*>(told) <= kSoon;
    }

private:
    static constexpr unsigned kSoon = 16;

    std::atomic<unsigned> launches_{0};
    std::atomic<unsigned*> told_{nullptr};
};

}   // namespace detail

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_LATELY_CUH
