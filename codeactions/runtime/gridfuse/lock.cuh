// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A lock for threads of the host that hold it for a few instructions.

#ifndef GRIDFUSE_LOCK_CUH
#define GRIDFUSE_LOCK_CUH

#include "version.cuh"

#include <atomic>

namespace gridfuse {
inline namespace v2 {

namespace detail {

/// Taken when made, given back when destroyed. It stands for std::mutex, whose header takes as long
/// to compile as cuda_runtime.h does; every file that launches would include it.
class Lock {
public:
    explicit Lock(std::atomic<bool>& held) : held_(held) {
        while (held_.exchange(true, std::memory_order_acquire)) {}
    }
    ~Lock() { held_.store(false, std::memory_order_release); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

private:
    std::atomic<bool>& held_;
};

}   // namespace detail

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_LOCK_CUH
