// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The version of the runtime. Headers of different versions may be part of one program, as each has
// its names in an inline namespace of its own, but not of one translation unit.

#if defined(GRIDFUSE_VERSION) && GRIDFUSE_VERSION != 2
#error "two versions of gridfuse.cuh in one translation unit: rewrite with the newer gridfuse"
#endif

#ifndef GRIDFUSE_VERSION_CUH
#define GRIDFUSE_VERSION_CUH

#define GRIDFUSE_VERSION 2

#include <cuda_runtime.h>

#if defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ < 12
#error "gridfuse.cuh needs CUDA 12 or newer"
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#error "gridfuse.cuh needs compute capability 7.0 or newer"
#endif

#endif   // GRIDFUSE_VERSION_CUH
