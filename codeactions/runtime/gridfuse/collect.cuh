// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What a thread that runs a child grid collects for one place.

#ifndef GRIDFUSE_COLLECT_CUH
#define GRIDFUSE_COLLECT_CUH

#include "atomics.cuh"

#include <limits>
#include <type_traits>

namespace gridfuse {
inline namespace v2 {

namespace detail {

/// What a thread collects for one place, as long as it runs the threads of a child grid: at the end
/// it is done there by one atomic operation.
template <class T, Operation Which, bool = std::is_integral<T>::value>
class Collected {
    // Changes nothing. No flag says whether there is anything: without a branch several threads'
    // loads go out together.
    static constexpr T kNothing = Which == Operation::Add   ? T{0}
                                  : Which == Operation::Min ? std::numeric_limits<T>::max()
                                                            : std::numeric_limits<T>::lowest();

public:
    __device__ __forceinline__ explicit Collected(T* place) : place_(place), all_(kNothing) {}
    Collected(const Collected&) = delete;
    Collected& operator=(const Collected&) = delete;
    __device__ __forceinline__ ~Collected() {
        if (all_ != kNothing) operate<Which>(place_, all_);
    }

    /// In place of the atomic operation with this value.
    __device__ __forceinline__ void take(T value) {
        if constexpr (Which == Operation::Add)
            all_ = static_cast<T>(static_cast<Bits>(all_) + static_cast<Bits>(value));
        else if constexpr (Which == Operation::Min) all_ = value < all_ ? value : all_;
        else all_ = all_ < value ? value : all_;
    }

private:
    // a sum of these wraps around
    using Bits = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;

    T* place_;
    T all_;
};

/// Floating-point numbers, whose sum depends on the order, are not collected.
template <class T, Operation Which>
class Collected<T, Which, false> {
public:
    __device__ __forceinline__ explicit Collected(T* place) : place_(place) {}

    /// The atomic operation with this value.
    __device__ __forceinline__ void take(T value) { operate<Which>(place_, value); }

private:
    T* place_;
};

}   // namespace detail

/// In a function that runs a child grid in one thread: the sum of what its threads add to a place
/// by atomicAdd.
template <class T>
struct SumAt : detail::Collected<T, detail::Operation::Add> {
    using detail::Collected<T, detail::Operation::Add>::Collected;
};
template <class T>
SumAt(T*) -> SumAt<T>;

/// The same for atomicMin.
template <class T>
struct MinimumAt : detail::Collected<T, detail::Operation::Min> {
    using detail::Collected<T, detail::Operation::Min>::Collected;
};
template <class T>
MinimumAt(T*) -> MinimumAt<T>;

/// The same for atomicMax.
template <class T>
struct MaximumAt : detail::Collected<T, detail::Operation::Max> {
    using detail::Collected<T, detail::Operation::Max>::Collected;
};
template <class T>
MaximumAt(T*) -> MaximumAt<T>;

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_COLLECT_CUH
