// The words CUDA adds to C++, with the meaning they have when one CPU thread plays all threads of a block.
#pragma once

#define __global__
#define __device__
#define __host__
#define __managed__
#define __grid_constant__
#define __nv_pure__ __attribute__((pure))
#define __forceinline__ inline __attribute__((always_inline))
#define __inline_hint__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __block_size__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __device_builtin__
#define __cudart_builtin__
#define __restrict __restrict__

// __shared__ is the runtime's: it knows where a block's memory lies.
// Host code fills it by name, out of the compiler's sight: a static one that no kernel writes is not all zeros.
#ifndef __constant__
#define __constant__ __attribute__((used))
#endif

// As a function specifier `__noinline__`, and inside __attribute__((__noinline__)) as the host's headers use it.
#ifdef FSR_TRACE  // operands are not followed through calls
#define __noinline__
#else
#define __noinline__ __attribute__((noinline))
#endif

#define __CUDACC__ 1
#define __NVCC__ 1
#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 900
#endif
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define CUDART_VERSION 13000
#define CUDA_VERSION 13000
#define __FSR_HOST_DEVICE__ 1

#if !defined(__clang__)
#define __builtin_assume(condition) \
  do {                              \
    if (!(condition)) __builtin_unreachable(); \
  } while (0)
#endif
