// What device code can call. Every function ends in one of the runtime's (namespace emu::rt), so that nothing here has
// a state of its own. Functions that a call's place in the source matters for (barriers, votes, atomics) are always
// inlined: the runtime then sees the return address in the user's function.
#ifndef GRIDFUSE_EMULATOR_DEVICE_HPP
#define GRIDFUSE_EMULATOR_DEVICE_HPP

#include "emulator/types.hpp"

#include <math.h>

#include <cstring>
#include <type_traits>

#define EMU_INLINE inline __attribute__((always_inline))

// The built-in variables are constants of a thread. The scheduler changes them at a switch, which the compiler can't
// see: a value that it keeps from before a switch is still the one of its thread.
#ifndef GRIDFUSE_EMULATOR_RUNTIME
extern const uint3 threadIdx;
extern const uint3 blockIdx;
extern const dim3 blockDim;
extern const dim3 gridDim;
#endif
constexpr int warpSize = 32;

namespace emu {

/// Where a `__device__`, `__constant__` or `__managed__` variable lives.
enum class Space : int { Device, Constant, Managed };

/// Makes a variable at namespace scope known to the runtime.
struct RegisterGlobal {
    RegisterGlobal(const volatile void* address, std::size_t bytes, const char* name, Space space);
};

/// Identifies a `__shared__` variable; its address is what counts.
struct SharedKey {
    char unused = 0;
};

/// Reach of an atomic operation or a fence.
enum class Scope : int { Block, Device, System };

/// What the lanes of a warp do together.
enum class WarpOp : int { Sync, Shuffle, Ballot, MatchAny, MatchAll, Reduce };
enum class ShuffleMode : int { Index, Up, Down, Xor };
enum class Reduction : int { AddUnsigned, MinUnsigned, MaxUnsigned, MinSigned, MaxSigned, And, Or, Xor };
enum class BarrierOp : int { Sync, Count, And, Or };

namespace rt {

bool in_kernel();
void* shared(const SharedKey* key, std::size_t bytes, std::size_t alignment);
void* dynamic_shared(std::size_t alignment);
unsigned dynamic_shared_bytes();
void* device_malloc(std::size_t bytes);
void device_free(void* address);
void copy(void* to, const void* from, std::size_t bytes);
void fill(void* to, int value, std::size_t bytes);
int barrier(BarrierOp op, int predicate);
void fence(Scope scope);
void warp_sync(unsigned mask);
std::uint64_t shuffle(unsigned mask, std::uint64_t bits, ShuffleMode mode, int lane, int width);
unsigned ballot(unsigned mask, int predicate);
unsigned match_any(unsigned mask, std::uint64_t bits);
unsigned match_all(unsigned mask, std::uint64_t bits, int* all);
unsigned reduce(unsigned mask, unsigned value, Reduction op);
unsigned active_mask();
unsigned lane();
unsigned warp();
unsigned sm();
unsigned long long clock();
void sleep();
[[noreturn]] void trap();
[[noreturn]] void exit_thread();
/// A read-modify-write: checks and the value now; the new value follows with `atomic_store` before anything else runs.
std::uint64_t atomic_load(const volatile void* address, unsigned bytes, Scope scope, bool will_write);
void atomic_store(volatile void* address, unsigned bytes, std::uint64_t bits, Scope scope, bool is_read_modify_write);

}   // namespace rt

template <class T>
EMU_INLINE T& shared(const SharedKey& key) {
    return *static_cast<T*>(rt::shared(&key, sizeof(T), alignof(T)));
}
template <class T>
EMU_INLINE T* dynamic_shared() {
    return static_cast<T*>(rt::dynamic_shared(alignof(T)));
}
EMU_INLINE void* device_malloc(std::size_t bytes) { return rt::device_malloc(bytes); }
EMU_INLINE void device_free(void* address) { rt::device_free(address); }
EMU_INLINE void* device_memcpy(void* to, const void* from, std::size_t bytes) {
    rt::copy(to, from, bytes);
    return to;
}
EMU_INLINE void* device_memmove(void* to, const void* from, std::size_t bytes) {
    rt::copy(to, from, bytes);
    return to;
}
EMU_INLINE void* device_memset(void* to, int value, std::size_t bytes) {
    rt::fill(to, value, bytes);
    return to;
}

namespace detail {

template <class To, class From>
EMU_INLINE To bits(const From& from) {
    To to{};
    __builtin_memcpy(&to, &from, sizeof(From) < sizeof(To) ? sizeof(From) : sizeof(To));
    return to;
}

template <class T>
struct Same {   // keeps a parameter out of the deduction
    using Type = T;
};
template <class T>
using SameT = typename Same<T>::Type;

template <class T, class F>
EMU_INLINE T modify(T* address, Scope scope, F&& next) {
    static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8, "an atomic operation on 2, 4 or 8 bytes");
    const T old = bits<T>(rt::atomic_load(address, sizeof(T), scope, true));
    rt::atomic_store(address, sizeof(T), bits<std::uint64_t>(static_cast<T>(next(old))), scope, true);
    return old;
}

template <class T>
EMU_INLINE T exchange_if_equal(T* address, Scope scope, T expected, T desired) {
    const std::uint64_t old = rt::atomic_load(address, sizeof(T), scope, true);
    if (old == bits<std::uint64_t>(expected)) rt::atomic_store(address, sizeof(T), bits<std::uint64_t>(desired), scope, true);
    return bits<T>(old);
}

}   // namespace detail

/// Special registers that inline PTX reads.
namespace ptx {
EMU_INLINE void exit_if(bool leaves) {
    if (leaves) rt::exit_thread();
}
EMU_INLINE unsigned laneid() { return rt::lane(); }
EMU_INLINE unsigned warpid() { return rt::warp(); }
EMU_INLINE unsigned smid() { return rt::sm(); }
EMU_INLINE unsigned lanemask_eq() { return 1u << rt::lane(); }
EMU_INLINE unsigned lanemask_lt() { return (1u << rt::lane()) - 1; }
EMU_INLINE unsigned lanemask_le() { return (2u << rt::lane()) - 1; }
EMU_INLINE unsigned lanemask_gt() { return ~lanemask_le(); }
EMU_INLINE unsigned lanemask_ge() { return ~lanemask_lt(); }
EMU_INLINE unsigned dynamic_smem_size() { return rt::dynamic_shared_bytes(); }
}   // namespace ptx

}   // namespace emu

// ---------------------------------------------------------------------------------------- barriers and fences

EMU_INLINE void __syncthreads() { emu::rt::barrier(emu::BarrierOp::Sync, 0); }
EMU_INLINE int __syncthreads_count(int predicate) { return emu::rt::barrier(emu::BarrierOp::Count, predicate); }
EMU_INLINE int __syncthreads_and(int predicate) { return emu::rt::barrier(emu::BarrierOp::And, predicate); }
EMU_INLINE int __syncthreads_or(int predicate) { return emu::rt::barrier(emu::BarrierOp::Or, predicate); }
EMU_INLINE void __syncwarp(unsigned mask = 0xffffffffu) { emu::rt::warp_sync(mask); }
EMU_INLINE void __threadfence_block() { emu::rt::fence(emu::Scope::Block); }
EMU_INLINE void __threadfence() { emu::rt::fence(emu::Scope::Device); }
EMU_INLINE void __threadfence_system() { emu::rt::fence(emu::Scope::System); }
EMU_INLINE void __nanosleep(unsigned) { emu::rt::sleep(); }
EMU_INLINE void __trap() { emu::rt::trap(); }
EMU_INLINE long long clock64() { return static_cast<long long>(emu::rt::clock()); }

// ------------------------------------------------------------------------------------------------ warp functions

EMU_INLINE unsigned __activemask() { return emu::rt::active_mask(); }
EMU_INLINE unsigned __ballot_sync(unsigned mask, int predicate) { return emu::rt::ballot(mask, predicate); }
EMU_INLINE int __any_sync(unsigned mask, int predicate) { return emu::rt::ballot(mask, predicate) != 0; }
EMU_INLINE int __all_sync(unsigned mask, int predicate) { return emu::rt::ballot(mask, !predicate) == 0; }

template <class T>
EMU_INLINE T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
    return emu::detail::bits<T>(emu::rt::shuffle(mask, emu::detail::bits<std::uint64_t>(value), emu::ShuffleMode::Index, lane, width));
}
template <class T>
EMU_INLINE T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    return emu::detail::bits<T>(emu::rt::shuffle(mask, emu::detail::bits<std::uint64_t>(value), emu::ShuffleMode::Up, int(delta), width));
}
template <class T>
EMU_INLINE T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    return emu::detail::bits<T>(emu::rt::shuffle(mask, emu::detail::bits<std::uint64_t>(value), emu::ShuffleMode::Down, int(delta), width));
}
template <class T>
EMU_INLINE T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
    return emu::detail::bits<T>(emu::rt::shuffle(mask, emu::detail::bits<std::uint64_t>(value), emu::ShuffleMode::Xor, lanes, width));
}
template <class T>
EMU_INLINE unsigned __match_any_sync(unsigned mask, T value) {
    return emu::rt::match_any(mask, emu::detail::bits<std::uint64_t>(value));
}
template <class T>
EMU_INLINE unsigned __match_all_sync(unsigned mask, T value, int* all) {
    return emu::rt::match_all(mask, emu::detail::bits<std::uint64_t>(value), all);
}
#define EMU_REDUCE(name, op)                                                                                              \
    EMU_INLINE unsigned __reduce_##name##_sync(unsigned mask, unsigned value) { return emu::rt::reduce(mask, value, emu::Reduction::op##Unsigned); }
EMU_REDUCE(min, Min)
EMU_REDUCE(max, Max)
EMU_REDUCE(add, Add)
#undef EMU_REDUCE
EMU_INLINE int __reduce_min_sync(unsigned mask, int value) { return int(emu::rt::reduce(mask, unsigned(value), emu::Reduction::MinSigned)); }
EMU_INLINE int __reduce_max_sync(unsigned mask, int value) { return int(emu::rt::reduce(mask, unsigned(value), emu::Reduction::MaxSigned)); }
EMU_INLINE int __reduce_add_sync(unsigned mask, int value) { return int(emu::rt::reduce(mask, unsigned(value), emu::Reduction::AddUnsigned)); }
EMU_INLINE unsigned __reduce_and_sync(unsigned mask, unsigned value) { return emu::rt::reduce(mask, value, emu::Reduction::And); }
EMU_INLINE unsigned __reduce_or_sync(unsigned mask, unsigned value) { return emu::rt::reduce(mask, value, emu::Reduction::Or); }
EMU_INLINE unsigned __reduce_xor_sync(unsigned mask, unsigned value) { return emu::rt::reduce(mask, value, emu::Reduction::Xor); }

// -------------------------------------------------------------------------------------------------------- atomics

#define EMU_ATOMIC(name, suffix, scope)                                                                                   \
    template <class T>                                                                                                    \
    EMU_INLINE T atomicAdd##suffix(T* address, emu::detail::SameT<T> value) {                                             \
        return emu::detail::modify(address, emu::Scope::scope, [value](T old) { return T(old + value); });                \
    }                                                                                                                     \
    template <class T>                                                                                                    \
    EMU_INLINE T atomicSub##suffix(T* address, emu::detail::SameT<T> value) {                                             \
        return emu::detail::modify(address, emu::Scope::scope, [value](T old) { return T(old - value); });                \
    }                                                                                                                     \
    template <class T>                                                                                                    \
    EMU_INLINE T atomicExch##suffix(T* address, emu::detail::SameT<T> value) {                                            \
        return emu::detail::modify(address, emu::Scope::scope, [value](T) { return value; });                             \
    }                                                                                                                     \
    template <class T>                                                                                                    \
    EMU_INLINE T atomicMin##suffix(T* address, emu::detail::SameT<T> value) {                                             \
        return emu::detail::modify(address, emu::Scope::scope, [value](T old) { return value < old ? value : old; });     \
    }                                                                                                                     \
    template <class T>                                                                                                    \
    EMU_INLINE T atomicMax##suffix(T* address, emu::detail::SameT<T> value) {                                             \
        return emu::detail::modify(address, emu::Scope::scope, [value](T old) { return old < value ? value : old; });     \
    }                                                                                                                     \
    template <class T>                                                                                                    \
    EMU_INLINE T atomicAnd##suffix(T* address, emu::detail::SameT<T> value) {                                             \
        return emu::detail::modify(address, emu::Scope::scope, [value](T old) { return T(old & value); });                \
    }                                                                                                                     \
    template <class T>                                                                                                    \
    EMU_INLINE T atomicOr##suffix(T* address, emu::detail::SameT<T> value) {                                              \
        return emu::detail::modify(address, emu::Scope::scope, [value](T old) { return T(old | value); });                \
    }                                                                                                                     \
    template <class T>                                                                                                    \
    EMU_INLINE T atomicXor##suffix(T* address, emu::detail::SameT<T> value) {                                             \
        return emu::detail::modify(address, emu::Scope::scope, [value](T old) { return T(old ^ value); });                \
    }                                                                                                                     \
    EMU_INLINE unsigned atomicInc##suffix(unsigned* address, unsigned limit) {                                            \
        return emu::detail::modify(address, emu::Scope::scope, [limit](unsigned old) { return old >= limit ? 0u : old + 1; }); \
    }                                                                                                                     \
    EMU_INLINE unsigned atomicDec##suffix(unsigned* address, unsigned limit) {                                            \
        return emu::detail::modify(address, emu::Scope::scope,                                                            \
                                   [limit](unsigned old) { return old == 0 || old > limit ? limit : old - 1; });          \
    }                                                                                                                     \
    template <class T>                                                                                                    \
    EMU_INLINE T atomicCAS##suffix(T* address, emu::detail::SameT<T> expected, emu::detail::SameT<T> desired) {           \
        return emu::detail::exchange_if_equal(address, emu::Scope::scope, expected, desired);                             \
    }
EMU_ATOMIC(, , Device)
EMU_ATOMIC(, _block, Block)
EMU_ATOMIC(, _system, System)
#undef EMU_ATOMIC

// ----------------------------------------------------------------------------------------------- plain functions

template <class T> EMU_INLINE T __ldg(const T* address) { return *address; }
template <class T> EMU_INLINE T __ldcg(const T* address) { return *address; }
template <class T> EMU_INLINE T __ldca(const T* address) { return *address; }
template <class T> EMU_INLINE T __ldcs(const T* address) { return *address; }
template <class T> EMU_INLINE T __ldlu(const T* address) { return *address; }
template <class T> EMU_INLINE T __ldcv(const T* address) { return *const_cast<const volatile T*>(address); }
template <class T> EMU_INLINE void __stcg(T* address, T value) { *address = value; }
template <class T> EMU_INLINE void __stcs(T* address, T value) { *address = value; }
template <class T> EMU_INLINE void __stwb(T* address, T value) { *address = value; }
template <class T> EMU_INLINE void __stwt(T* address, T value) { *const_cast<volatile T*>(address) = value; }

EMU_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
EMU_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
EMU_INLINE int __ffs(int x) { return __builtin_ffs(x); }
EMU_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
EMU_INLINE int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
EMU_INLINE int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
inline unsigned __brev(unsigned x) {
    unsigned result = 0;
    for (int i = 0; i < 32; ++i) result |= (x >> i & 1) << (31 - i);
    return result;
}
inline unsigned long long __brevll(unsigned long long x) {
    return static_cast<unsigned long long>(__brev(unsigned(x))) << 32 | __brev(unsigned(x >> 32));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    const unsigned long long both = static_cast<unsigned long long>(y) << 32 | x;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i) {
        const unsigned pick = selector >> (4 * i);
        unsigned byte = unsigned(both >> (8 * (pick & 7))) & 0xff;
        if (pick & 8) byte = byte & 0x80 ? 0xff : 0;
        result |= byte << (8 * i);
    }
    return result;
}
EMU_INLINE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return unsigned(((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31)) >> 32);
}
EMU_INLINE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return unsigned((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31));
}
EMU_INLINE int __mulhi(int x, int y) { return int(static_cast<long long>(x) * y >> 32); }
EMU_INLINE unsigned __umulhi(unsigned x, unsigned y) { return unsigned(static_cast<unsigned long long>(x) * y >> 32); }
EMU_INLINE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
EMU_INLINE int __mul24(int x, int y) { return int((unsigned(x) << 8 >> 8) * (unsigned(y) << 8 >> 8)); }
EMU_INLINE unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }
EMU_INLINE unsigned __usad(unsigned x, unsigned y, unsigned z) { return z + (x < y ? y - x : x - y); }
EMU_INLINE int __hadd(int x, int y) { return int((static_cast<long long>(x) + y) >> 1); }
EMU_INLINE unsigned __uhadd(unsigned x, unsigned y) { return unsigned((static_cast<unsigned long long>(x) + y) >> 1); }
EMU_INLINE unsigned __sad(int x, int y, unsigned z) { return z + (x < y ? unsigned(y) - unsigned(x) : unsigned(x) - unsigned(y)); }
EMU_INLINE int __float_as_int(float x) { return emu::detail::bits<int>(x); }
EMU_INLINE unsigned __float_as_uint(float x) { return emu::detail::bits<unsigned>(x); }
EMU_INLINE float __int_as_float(int x) { return emu::detail::bits<float>(x); }
EMU_INLINE float __uint_as_float(unsigned x) { return emu::detail::bits<float>(x); }
EMU_INLINE long long __double_as_longlong(double x) { return emu::detail::bits<long long>(x); }
EMU_INLINE double __longlong_as_double(long long x) { return emu::detail::bits<double>(x); }
EMU_INLINE float __fdividef(float x, float y) { return x / y; }
EMU_INLINE float __fadd_rn(float x, float y) { return x + y; }
EMU_INLINE float __fmul_rn(float x, float y) { return x * y; }
EMU_INLINE float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
EMU_INLINE float __frcp_rn(float x) { return 1 / x; }
EMU_INLINE float __fsqrt_rn(float x) { return sqrtf(x); }
EMU_INLINE float __saturatef(float x) { return x > 1 ? 1 : x > 0 ? x : 0; }
EMU_INLINE float __expf(float x) { return expf(x); }
EMU_INLINE float __logf(float x) { return logf(x); }
EMU_INLINE float __log2f(float x) { return log2f(x); }
EMU_INLINE float __powf(float x, float y) { return powf(x, y); }
EMU_INLINE float __sinf(float x) { return sinf(x); }
EMU_INLINE float __cosf(float x) { return cosf(x); }
EMU_INLINE float rsqrtf(float x) { return 1 / sqrtf(x); }
EMU_INLINE double rsqrt(double x) { return 1 / sqrt(x); }
EMU_INLINE int __float2int_rd(float x) { return int(floorf(x)); }
EMU_INLINE int __float2int_rn(float x) { return int(rintf(x)); }
EMU_INLINE int __float2int_ru(float x) { return int(ceilf(x)); }
EMU_INLINE int __float2int_rz(float x) { return int(x); }
EMU_INLINE float __int2float_rn(int x) { return float(x); }
EMU_INLINE float __uint2float_rn(unsigned x) { return float(x); }

// CUDA has these at namespace scope for all arithmetic types, also of two different ones.
template <class A, class B>
constexpr std::enable_if_t<std::is_arithmetic<A>::value && std::is_arithmetic<B>::value, std::common_type_t<A, B>> min(A a, B b) {
    using T = std::common_type_t<A, B>;
    return T(b) < T(a) ? T(b) : T(a);
}
template <class A, class B>
constexpr std::enable_if_t<std::is_arithmetic<A>::value && std::is_arithmetic<B>::value, std::common_type_t<A, B>> max(A a, B b) {
    using T = std::common_type_t<A, B>;
    return T(a) < T(b) ? T(b) : T(a);
}

#endif
