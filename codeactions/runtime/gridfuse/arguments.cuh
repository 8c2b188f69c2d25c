// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The arguments of launches, as bytes and as lists.

#ifndef GRIDFUSE_ARGUMENTS_CUH
#define GRIDFUSE_ARGUMENTS_CUH

#include "version.cuh"

#include <cstddef>

namespace gridfuse {
inline namespace v2 {

namespace detail {

/// The widest unsigned integer that divides an alignment.
template <std::size_t Alignment>
struct WordOf { using Type = unsigned long long; };
template <> struct WordOf<1> { using Type = unsigned char; };
template <> struct WordOf<2> { using Type = unsigned short; };
template <> struct WordOf<4> { using Type = unsigned; };

/// The bytes of a T, which need not be default constructible; copied word by word.
template <class T>
struct alignas(T) Bytes {
    using Word = typename WordOf<alignof(T)>::Type;
    Word words[sizeof(T) / sizeof(Word)];

    Bytes() = default;
    __host__ __device__ __forceinline__ explicit Bytes(const T& value) {
        memcpy(words, &value, sizeof(T));
    }
    __device__ __forceinline__ const T& value() const { return *reinterpret_cast<const T*>(words); }
};

/// The arguments that all launches have in common, as a plain list.
template <class... T>
struct Pack {
    template <class F, class... Before>
    __device__ __forceinline__ void apply(F&& f, const Before&... before) const {
        f(before...);
    }
};
template <class Head, class... Tail>
struct Pack<Head, Tail...> {
    Head head;
    Pack<Tail...> tail;

    // By value: a reference to a pointer can't be bound to one that is __restrict__.
    __device__ __forceinline__ explicit Pack(Head h, Tail... t) : head(h), tail(t...) {}
    template <class F, class... Before>
    __device__ __forceinline__ void apply(F&& f, const Before&... before) const {
        tail.apply(f, before..., head);
    }
};

struct NoArguments {};

/// Where an argument stands, as launches by the host want it; whatever its type makes of `&`.
template <class T>
inline void* address_of(T& argument) {
    return const_cast<unsigned char*>(&reinterpret_cast<const volatile unsigned char&>(argument));
}

}   // namespace detail

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_ARGUMENTS_CUH
