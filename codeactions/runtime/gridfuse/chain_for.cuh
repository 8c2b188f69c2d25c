// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The memory of a chain.

#ifndef GRIDFUSE_CHAIN_FOR_CUH
#define GRIDFUSE_CHAIN_FOR_CUH

#include "links.cuh"
#include "memory.cuh"

namespace gridfuse {
inline namespace v2 {

/// Owns the memory of a chain for one launch in a stream. What chain_for returns; converts to
/// ChainMemory.
class ChainOwner {
public:
    explicit ChainOwner(cudaStream_t stream) {
        const cudaError_t before = cudaPeekAtLastError();
        if (memory_.take(stream, sizeof(detail::ChainState), sizeof(detail::ChainState)))
            chain_ = ChainMemory(reinterpret_cast<detail::ChainState*>(memory_.memory()));
        // the program has not failed, only one block does everything
        if (before == cudaSuccess) (void)cudaGetLastError();
    }
    ChainOwner(const ChainOwner&) = delete;
    ChainOwner& operator=(const ChainOwner&) = delete;

    operator ChainMemory() const { return chain_; }

private:
    ChainMemory chain_;
    detail::StreamMemory memory_;
};

/// Makes the memory for one launch of a kernel with a Chain; written as the last argument of that
/// launch. It is taken and given back in the order of the stream. Without memory the chain's links
/// run one at a time.
inline ChainOwner chain_for(cudaStream_t stream = 0) { return ChainOwner(stream); }

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_CHAIN_FOR_CUH
