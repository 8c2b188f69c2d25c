// SPDX-License-Identifier: MIT OR Apache-2.0
//
// How many blocks of a kernel can be resident.

#ifndef GRIDFUSE_OCCUPANCY_CUH
#define GRIDFUSE_OCCUPANCY_CUH

#include "version.cuh"

#include <climits>
#include <cstddef>

namespace gridfuse {
inline namespace v2 {

/// How many blocks of a kernel with a Chain to launch: as many as can be resident, but no more than
/// `most` per multiprocessor. Right with any number.
template <auto Kernel>
inline unsigned chain_blocks(dim3 block, std::size_t shared_bytes = 0, unsigned most = UINT_MAX) {
    int device = 0, processors = 0, resident = 0;
    const cudaError_t before = cudaPeekAtLastError();
    const bool known = cudaGetDevice(&device) == cudaSuccess &&
                       cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount,
                                              device) == cudaSuccess &&
                       cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                           &resident, Kernel, static_cast<int>(block.x * block.y * block.z),
                           shared_bytes) == cudaSuccess;
    if (before == cudaSuccess) (void)cudaGetLastError();   // the launch will say what is wrong
    if (!known || processors < 1 || resident < 1) return 1;
    const unsigned each =
        static_cast<unsigned>(resident) < most ? static_cast<unsigned>(resident) : most;
    return each * static_cast<unsigned>(processors);
}

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_OCCUPANCY_CUH
