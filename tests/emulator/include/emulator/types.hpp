// The types of CUDA's headers: dim3, the vector types, and the qualifiers, which mean nothing to g++.
#ifndef GRIDFUSE_EMULATOR_TYPES_HPP
#define GRIDFUSE_EMULATOR_TYPES_HPP

#include <cstddef>
#include <cstdint>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__
#define __managed__
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define CUDART_CB
#define CUDART_VERSION 13000

#define EMU_VECTOR(name, type, alignment1, alignment2, alignment4)                                          \
    struct name##1 { type x; };                                                                             \
    struct alignas(alignment2) name##2 { type x, y; };                                                      \
    struct name##3 { type x, y, z; };                                                                       \
    struct alignas(alignment4) name##4 { type x, y, z, w; };                                                \
    constexpr name##1 make_##name##1(type x) { return {x}; }                                                \
    constexpr name##2 make_##name##2(type x, type y) { return {x, y}; }                                     \
    constexpr name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }                          \
    constexpr name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

EMU_VECTOR(char, signed char, 1, 2, 4)
EMU_VECTOR(uchar, unsigned char, 1, 2, 4)
EMU_VECTOR(short, short, 2, 4, 8)
EMU_VECTOR(ushort, unsigned short, 2, 4, 8)
EMU_VECTOR(int, int, 4, 8, 16)
EMU_VECTOR(uint, unsigned, 4, 8, 16)
EMU_VECTOR(long, long, 8, 16, 16)
EMU_VECTOR(ulong, unsigned long, 8, 16, 16)
EMU_VECTOR(longlong, long long, 8, 16, 16)
EMU_VECTOR(ulonglong, unsigned long long, 8, 16, 16)
EMU_VECTOR(float, float, 4, 8, 16)
EMU_VECTOR(double, double, 8, 16, 16)
#undef EMU_VECTOR

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return uint3{x, y, z}; }
};

#endif
