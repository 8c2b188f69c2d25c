// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Where grids leave orders for the host.

#ifndef GRIDFUSE_LAUNCHPAD_CUH
#define GRIDFUSE_LAUNCHPAD_CUH

#include "arguments.cuh"
#include "grid.cuh"

namespace gridfuse {
inline namespace v2 {

namespace detail {

/// Where grids leave orders for the host, to launch what they have collected. In pinned memory, so
/// that both reach it: the device while the parent or its children run, the host before and after.
struct Launchpad {
    static constexpr unsigned kKernels = 32;
    static constexpr unsigned kBytes = 64 * 1024;

    // that the host can launch: their addresses in device code, then 0
    unsigned long long kernels[kKernels];
    unsigned used;                          // bytes of orders
    // of `orders`: the host reads one while its launches write to the other
    unsigned half;
    const void* list;                       // the host's: whose kernels these are,
    int device;                             // on which device,
    Launchpad* next;                        // and the next one that is free
    alignas(kSliceAlignment) unsigned char orders[2][kBytes];
};

/// What stands in front of every order.
struct OrderHead {
    unsigned bytes;          // with what follows it
    unsigned kernel;         // which of the launchpad's
    unsigned blocks;
    unsigned block;          // pack_block, or 0: the launches don't fit into one
    unsigned shared_bytes;
};

/// A launch of a batch as the host is to do it.
template <class Batch, class Common>
struct alignas(kSliceAlignment) Order {
    OrderHead head;
    Bytes<Batch> batch;
    Bytes<Common> uniform;
};

}   // namespace detail

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_LAUNCHPAD_CUH
