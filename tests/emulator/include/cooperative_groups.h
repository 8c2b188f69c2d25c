// Cooperative groups, as far as blocks, warps and what runs together go.
#ifndef GRIDFUSE_EMULATOR_COOPERATIVE_GROUPS_H
#define GRIDFUSE_EMULATOR_COOPERATIVE_GROUPS_H

#include "gridfuse_emulator.hpp"

namespace cooperative_groups {

class thread_block {
public:
    EMU_INLINE static void sync() { __syncthreads(); }
    EMU_INLINE static unsigned thread_rank() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
    EMU_INLINE static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
    EMU_INLINE static unsigned size() { return num_threads(); }
    EMU_INLINE static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    EMU_INLINE static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
    EMU_INLINE static dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
    EMU_INLINE static dim3 dim_threads() { return group_dim(); }
};
EMU_INLINE thread_block this_thread_block() { return {}; }

/// A grid, which no launch by a kernel lets wait.
class grid_group {
public:
    EMU_INLINE static unsigned long long num_blocks() { return 1ull * gridDim.x * gridDim.y * gridDim.z; }
    EMU_INLINE static unsigned long long block_rank() {
        return blockIdx.x + 1ull * gridDim.x * (blockIdx.y + 1ull * gridDim.y * blockIdx.z);
    }
    EMU_INLINE static unsigned long long num_threads() { return num_blocks() * thread_block::num_threads(); }
    EMU_INLINE static unsigned long long size() { return num_threads(); }
    EMU_INLINE static unsigned long long thread_rank() {
        return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
    }
};
EMU_INLINE grid_group this_grid() { return {}; }
EMU_INLINE void sync(const thread_block&) { __syncthreads(); }

/// Some lanes of a warp, numbered from 0.
class coalesced_group {
public:
    EMU_INLINE explicit coalesced_group(unsigned mask) : mask_(mask) {}
    EMU_INLINE unsigned num_threads() const { return unsigned(__popc(mask_)); }
    EMU_INLINE unsigned size() const { return num_threads(); }
    EMU_INLINE unsigned thread_rank() const { return unsigned(__popc(mask_ & emu::ptx::lanemask_lt())); }
    EMU_INLINE void sync() const { __syncwarp(mask_); }
    EMU_INLINE int any(int predicate) const { return __any_sync(mask_, predicate); }
    EMU_INLINE int all(int predicate) const { return __all_sync(mask_, predicate); }
    EMU_INLINE unsigned ballot(int predicate) const { return packed(__ballot_sync(mask_, predicate)); }
    template <class T>
    EMU_INLINE T shfl(T value, unsigned rank) const {
        return __shfl_sync(mask_, value, int(lane_of(rank % num_threads())));
    }
    template <class T>
    EMU_INLINE T shfl_up(T value, unsigned delta) const {
        const unsigned rank = thread_rank();
        return __shfl_sync(mask_, value, int(lane_of(rank >= delta ? rank - delta : rank)));
    }
    template <class T>
    EMU_INLINE T shfl_down(T value, unsigned delta) const {
        const unsigned rank = thread_rank();
        return __shfl_sync(mask_, value, int(lane_of(rank + delta < num_threads() ? rank + delta : rank)));
    }
    template <class T>
    EMU_INLINE unsigned match_any(T value) const {
        return packed(__match_any_sync(mask_, value));
    }

private:
    // The lane with this rank.
    unsigned lane_of(unsigned rank) const {
        unsigned rest = mask_;
        while (rank-- > 0) rest &= rest - 1;
        return unsigned(__ffs(int(rest))) - 1;
    }
    // A mask of lanes as a mask of ranks.
    unsigned packed(unsigned lanes) const {
        unsigned result = 0, rank = 0;
        for (unsigned rest = mask_; rest != 0; rest &= rest - 1, ++rank)
            if (lanes & rest & -rest) result |= 1u << rank;
        return result;
    }

    unsigned mask_;
};
EMU_INLINE coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

/// Consecutive threads of a block: a part of a warp, or a warp.
template <unsigned Size, class Parent = thread_block>
class thread_block_tile {
    static_assert(Size != 0 && Size <= 32 && (Size & (Size - 1)) == 0, "tiles of up to 32 threads");

public:
    EMU_INLINE static constexpr unsigned num_threads() { return Size; }
    EMU_INLINE static constexpr unsigned size() { return Size; }
    EMU_INLINE unsigned thread_rank() const { return thread_block::thread_rank() % Size; }
    EMU_INLINE unsigned meta_group_rank() const { return thread_block::thread_rank() / Size; }
    EMU_INLINE unsigned meta_group_size() const { return (thread_block::num_threads() + Size - 1) / Size; }
    EMU_INLINE void sync() const { __syncwarp(mask()); }
    EMU_INLINE int any(int predicate) const { return __any_sync(mask(), predicate); }
    EMU_INLINE int all(int predicate) const { return __all_sync(mask(), predicate); }
    EMU_INLINE unsigned ballot(int predicate) const { return __ballot_sync(mask(), predicate) >> first(); }
    template <class T>
    EMU_INLINE unsigned match_any(T value) const {
        return __match_any_sync(mask(), value) >> first();
    }
    template <class T>
    EMU_INLINE T shfl(T value, int rank) const {
        return __shfl_sync(mask(), value, rank, Size);
    }
    template <class T>
    EMU_INLINE T shfl_up(T value, unsigned delta) const {
        return __shfl_up_sync(mask(), value, delta, Size);
    }
    template <class T>
    EMU_INLINE T shfl_down(T value, unsigned delta) const {
        return __shfl_down_sync(mask(), value, delta, Size);
    }
    template <class T>
    EMU_INLINE T shfl_xor(T value, int lanes) const {
        return __shfl_xor_sync(mask(), value, lanes, Size);
    }

private:
    EMU_INLINE static unsigned first() { return thread_block::thread_rank() % 32 / Size * Size; }
    EMU_INLINE static unsigned mask() { return (Size == 32 ? ~0u : (1u << (Size & 31)) - 1) << first(); }
};
template <unsigned Size>
EMU_INLINE thread_block_tile<Size> tiled_partition(const thread_block&) {
    return {};
}

}   // namespace cooperative_groups

#endif
