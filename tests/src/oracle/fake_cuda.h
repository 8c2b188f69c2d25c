// Stands in for the toolkit where clang reads device code for a second opinion. Nothing here has to compute what CUDA computes: a
// result has to depend on what CUDA's depends on.
#pragma once
#define __CUDACC__ 1
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((device))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(n) __attribute__((aligned(n)))
#define GF_PURE static inline __device__ __host__ __attribute__((always_inline))
#define GF_HERE static inline __device__ __attribute__((always_inline))

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __INTPTR_TYPE__ intptr_t;
namespace std {
using ::size_t; using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::uintptr_t;
// What classes of the host have as members; their functions are left out where they need more.
struct string { string(const char* = nullptr) {} string(const char*, size_t) {} bool operator==(const char*) const { return false; } };
template <class T> struct vector {
    vector() {}
    explicit vector(size_t, T = T()) {}
    vector(const T*, const T*) {}
    size_t size() const { return 0; }
    T* data() const { return nullptr; }
    T* begin() const { return nullptr; }
    T* end() const { return nullptr; }
    T& operator[](size_t) const { return *(T*)0; }
    void push_back(const T&) {}
};
template <class T, class U> struct pair { T first; U second; };
template <class T> struct function;
template <class T, class U = T> struct unordered_map {};
template <class T, class U = T> struct map {};
struct mt19937 { mt19937(unsigned) {} };
struct mt19937_64 { mt19937_64(unsigned long) {} };
}
#define NULL nullptr
#define INT_MAX __INT_MAX__
#define INT_MIN (-__INT_MAX__ - 1)
#define UINT_MAX (__INT_MAX__ * 2u + 1u)
#define INFINITY (__builtin_inff())
#define FLT_MAX __FLT_MAX__
#define DBL_MAX __DBL_MAX__

struct uint3 { unsigned x, y, z; };
struct int2 { int x, y; };
struct int3 { int x, y, z; };
struct int4 { int x, y, z, w; };
struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
struct float2 { float x, y; };
struct float3 { float x, y, z; };
struct float4 { float x, y, z, w; };
struct double2 { double x, y; };
GF_PURE int2 make_int2(int x, int y) { return {x, y}; }
GF_PURE int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
GF_PURE uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
GF_PURE uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
GF_PURE float2 make_float2(float x, float y) { return {x, y}; }
GF_PURE float3 make_float3(float x, float y, float z) { return {x, y, z}; }
GF_PURE float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
struct dim3 {
    unsigned x, y, z;
    __host__ __device__ constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
    __host__ __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};
#define GF_BUILTIN(type, sreg)                                                                   \
    struct type {                                                                                \
        __declspec(property(get = gx)) unsigned x;                                               \
        __declspec(property(get = gy)) unsigned y;                                               \
        __declspec(property(get = gz)) unsigned z;                                               \
        static inline __device__ __attribute__((always_inline)) unsigned gx() { return __nvvm_read_ptx_sreg_##sreg##_x(); } \
        static inline __device__ __attribute__((always_inline)) unsigned gy() { return __nvvm_read_ptx_sreg_##sreg##_y(); } \
        static inline __device__ __attribute__((always_inline)) unsigned gz() { return __nvvm_read_ptx_sreg_##sreg##_z(); } \
        __device__ __attribute__((always_inline)) operator dim3() const { return dim3(gx(), gy(), gz()); } \
        __device__ __attribute__((always_inline)) operator uint3() const { return {gx(), gy(), gz()}; }    \
    };
GF_BUILTIN(gf_tid, tid)
GF_BUILTIN(gf_ctaid, ctaid)
GF_BUILTIN(gf_ntid, ntid)
GF_BUILTIN(gf_nctaid, nctaid)
extern const __device__ gf_tid threadIdx;
extern const __device__ gf_ctaid blockIdx;
extern const __device__ gf_ntid blockDim;
extern const __device__ gf_nctaid gridDim;
#define warpSize 32

// Barriers and fences: what they order is nothing that is asked here.
#define __syncthreads() ((void)0)
GF_HERE void __syncwarp(unsigned = ~0u) {}
GF_HERE void __threadfence() {}
GF_HERE void __threadfence_block() {}
GF_HERE void __threadfence_system() {}
GF_HERE void __nanosleep(unsigned) {}
GF_HERE void __trap() {}
template <class... A> GF_HERE int printf(const char*, A...) { return 0; }
#define assert(x) ((void)0)

// What differs between threads whatever it is handed.
GF_HERE unsigned gf_any() { return __nvvm_read_ptx_sreg_tid_x(); }
GF_HERE unsigned __ballot_sync(unsigned, int) { return gf_any(); }
GF_HERE int __any_sync(unsigned, int) { return gf_any(); }
GF_HERE int __all_sync(unsigned, int) { return gf_any(); }
GF_HERE unsigned __activemask() { return gf_any(); }
GF_HERE long long clock64() { return gf_any(); }
template <class T> GF_HERE T __shfl_sync(unsigned, T v, int, int = 32) { return v + gf_any(); }
template <class T> GF_HERE T __shfl_up_sync(unsigned, T v, unsigned, int = 32) { return v + gf_any(); }
template <class T> GF_HERE T __shfl_down_sync(unsigned, T v, unsigned, int = 32) { return v + gf_any(); }
template <class T> GF_HERE T __shfl_xor_sync(unsigned, T v, int, int = 32) { return v + gf_any(); }
#define GF_ATOMIC(name) template <class T, class U> GF_HERE T name(T* p, U v) { T old = *p; *p = v; return old + gf_any(); }
GF_ATOMIC(atomicAdd) GF_ATOMIC(atomicSub) GF_ATOMIC(atomicMin) GF_ATOMIC(atomicMax) GF_ATOMIC(atomicExch)
GF_ATOMIC(atomicAnd) GF_ATOMIC(atomicOr) GF_ATOMIC(atomicXor) GF_ATOMIC(atomicInc) GF_ATOMIC(atomicDec)
template <class T, class U, class V> GF_HERE T atomicCAS(T* p, U, V v) { T old = *p; *p = v; return old + gf_any(); }

// What depends on its arguments alone.
#define GF_1(name, type) GF_PURE type name(type a) { return a * (type)3; }
#define GF_2(name, type) GF_PURE type name(type a, type b) { return a * (type)3 + b; }
GF_1(sqrtf, float) GF_1(rsqrtf, float) GF_1(fabsf, float) GF_1(expf, float) GF_1(logf, float) GF_1(sinf, float) GF_1(cosf, float)
GF_1(floorf, float) GF_1(ceilf, float) GF_1(sqrt, double) GF_1(fabs, double) GF_1(exp, double) GF_1(log, double) GF_1(ceil, double)
GF_1(floor, double) GF_1(sin, double) GF_1(cos, double)
GF_2(fminf, float) GF_2(fmaxf, float) GF_2(powf, float) GF_2(pow, double) GF_2(atan2f, float) GF_2(fmin, double) GF_2(fmax, double)
GF_PURE int abs(int a) { return a < 0 ? -a : a; }
GF_PURE int __popc(unsigned a) { return a * 3; }
GF_PURE int __clz(int a) { return a * 3; }
GF_PURE int __ffs(int a) { return a * 3; }
GF_PURE unsigned __brev(unsigned a) { return a * 3; }
GF_PURE int __float_as_int(float a) { return (int)a; }
GF_PURE float __int_as_float(int a) { return (float)a; }
GF_PURE int __float2int_rd(float a) { return (int)a; }
#define GF_ORDER(type) \
    GF_PURE type min(type a, type b) { return a < b ? a : b; } GF_PURE type max(type a, type b) { return a > b ? a : b; }
GF_ORDER(int) GF_ORDER(unsigned) GF_ORDER(long) GF_ORDER(unsigned long) GF_ORDER(long long) GF_ORDER(float) GF_ORDER(double)
template <class T> GF_HERE T __ldg(const T* p) { return *p; }

// What host code in headers and launches mentions.
typedef struct gf_stream* cudaStream_t;
typedef struct gf_event* cudaEvent_t;
enum cudaError_t { cudaSuccess = 0, cudaErrorUnknown = 1 };
#define cudaStreamNonBlocking 1
#define cudaEventDisableTiming 2
#define cudaStreamPerThread ((cudaStream_t)2)
#define cudaStreamTailLaunch ((cudaStream_t)3)
#define cudaStreamFireAndForget ((cudaStream_t)4)
GF_PURE cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) { *s = (cudaStream_t)(size_t)9; return cudaSuccess; }
GF_PURE cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
GF_PURE cudaError_t cudaGetLastError() { return cudaSuccess; }
GF_PURE cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
GF_PURE cudaError_t cudaMemsetAsync(void*, int, size_t, cudaStream_t = 0) { return cudaSuccess; }
GF_PURE cudaError_t cudaMemcpyAsync(void*, const void*, size_t, int = 0, cudaStream_t = 0) { return cudaSuccess; }
GF_HERE void* malloc(size_t) { return (void*)(size_t)gf_any(); }
GF_HERE void free(void*) {}

// The value whose uniformity is asked.
extern "C" __device__ void __probe(int id, long long value);
