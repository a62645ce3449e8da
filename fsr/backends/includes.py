"""Where CUDA's device headers are, and stand-ins for the host headers that device code may name.

NVRTC ships no host headers, and nvcc includes <cuda_runtime.h> (with the host's math, limits and integer
types behind it) before every file. So the text :data:`PRELUDE` goes before every candidate, and the usual
host headers are given as empty files: what device code can use from them is in the prelude already.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

PRELUDE_NAME = "fsr_prelude.h"

_LIBCUXX = re.compile(r"^\s*#\s*include\s*[<\"](cooperative_groups|cuda/|cub/|thrust/|nv/)", re.MULTILINE)

EMPTY_HEADERS = (
    "algorithm", "assert.h", "cassert", "cfloat", "chrono", "climits", "cmath", "cstddef", "cstdint", "cstdio",
    "cstdlib", "cstring", "ctime", "cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h",
    "driver_types.h", "float.h", "fstream", "functional", "inttypes.h", "iomanip", "iostream", "limits", "limits.h",
    "math.h", "memory", "numeric", "random", "sstream", "stddef.h", "stdexcept", "stdint.h", "stdio.h", "stdlib.h",
    "string", "string.h", "sys/time.h", "time.h", "type_traits", "unistd.h", "utility", "vector", "vector_types.h",
)  # fmt: skip

_FLOAT_UNARY = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp2",
    "expm1", "floor", "lgamma", "log", "log10", "log1p", "log2", "nearbyint", "rint", "round", "sin", "sinh",
    "sqrt", "tan", "tanh", "tgamma", "trunc",
)  # fmt: skip
_FLOAT_BINARY = ("atan2", "copysign", "fdim", "fmax", "fmin", "fmod", "hypot", "nextafter", "pow", "remainder")


def _std_math() -> str:
    """Overloads of the <cmath> functions in namespace std, for float and double."""
    lines = []
    for name in _FLOAT_UNARY:
        lines.append(f"__device__ __forceinline__ float {name}(float x) {{ return ::{name}f(x); }}")
        lines.append(f"__device__ __forceinline__ double {name}(double x) {{ return ::{name}(x); }}")
    for name in _FLOAT_BINARY:
        lines.append(f"__device__ __forceinline__ float {name}(float x, float y) {{ return ::{name}f(x, y); }}")
        lines.append(f"__device__ __forceinline__ double {name}(double x, double y) {{ return ::{name}(x, y); }}")
    return "\n".join(lines)


PRELUDE = (
    r"""#pragma once
#ifdef FSR_LIBCUXX
#include <cuda/std/climits>
#include <cuda/std/cstdint>
#else
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long uint64_t; typedef long intptr_t; typedef unsigned long uintptr_t;
#define CHAR_BIT 8
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295U
#define LONG_MAX 9223372036854775807L
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-LLONG_MAX - 1)
#define ULLONG_MAX 18446744073709551615ULL
#define ULONG_MAX 18446744073709551615UL
#define INT32_MAX INT_MAX
#define INT32_MIN INT_MIN
#define INT64_MAX LONG_MAX
#define UINT32_MAX UINT_MAX
#define UINT64_MAX 18446744073709551615UL
#define SIZE_MAX 18446744073709551615UL
#endif
#define FLT_MAX 3.402823466e+38F
#define FLT_MIN 1.175494351e-38F
#define FLT_EPSILON 1.192092896e-07F
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#ifndef INFINITY
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#endif
#ifndef NAN
#define NAN __builtin_bit_cast(float, 0x7fc00000)
#endif
#define HUGE_VALF INFINITY
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
namespace std {
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::intptr_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::uintptr_t;
template <class T> __device__ constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <class T> __device__ constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T> __device__ __forceinline__ void swap(T& a, T& b) { T t = a; a = b; b = t; }
__device__ __forceinline__ int abs(int x) { return ::abs(x); }
__device__ __forceinline__ long abs(long x) { return ::labs(x); }
__device__ __forceinline__ long long abs(long long x) { return ::llabs(x); }
__device__ __forceinline__ float abs(float x) { return ::fabsf(x); }
__device__ __forceinline__ double abs(double x) { return ::fabs(x); }
__device__ __forceinline__ float fabs(float x) { return ::fabsf(x); }
__device__ __forceinline__ double fabs(double x) { return ::fabs(x); }
__device__ __forceinline__ float fma(float x, float y, float z) { return ::fmaf(x, y, z); }
__device__ __forceinline__ double fma(double x, double y, double z) { return ::fma(x, y, z); }
__device__ __forceinline__ bool isnan(float x) { return x != x; }
__device__ __forceinline__ bool isnan(double x) { return x != x; }
__device__ __forceinline__ bool isinf(float x) { return ::fabsf(x) == INFINITY; }
__device__ __forceinline__ bool isinf(double x) { return ::fabs(x) == (double)INFINITY; }
__device__ __forceinline__ bool isfinite(float x) { return ::fabsf(x) < INFINITY; }
__device__ __forceinline__ bool isfinite(double x) { return ::fabs(x) < (double)INFINITY; }
@MATH@
template <bool B, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { using type = T; };
template <bool B, class T = void> using enable_if_t = typename enable_if<B, T>::type;
template <bool B, class T, class F> struct conditional { using type = T; };
template <class T, class F> struct conditional<false, T, F> { using type = F; };
template <bool B, class T, class F> using conditional_t = typename conditional<B, T, F>::type;
template <class T, T V> struct integral_constant { static constexpr T value = V; using type = integral_constant; };
using true_type = integral_constant<bool, true>; using false_type = integral_constant<bool, false>;
template <class A, class B> struct is_same : false_type {};
template <class A> struct is_same<A, A> : true_type {};
template <class A, class B> inline constexpr bool is_same_v = is_same<A, B>::value;
template <class T> struct is_floating_point : false_type {};
template <> struct is_floating_point<float> : true_type {};
template <> struct is_floating_point<double> : true_type {};
template <class T> inline constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T> struct numeric_limits;
template <> struct numeric_limits<float> {
  __device__ static constexpr float max() { return FLT_MAX; }
  __device__ static constexpr float min() { return FLT_MIN; }
  __device__ static constexpr float lowest() { return -FLT_MAX; }
  __device__ static constexpr float epsilon() { return FLT_EPSILON; }
  __device__ static constexpr float infinity() { return INFINITY; }
  __device__ static constexpr float quiet_NaN() { return NAN; }
};
template <> struct numeric_limits<double> {
  __device__ static constexpr double max() { return DBL_MAX; }
  __device__ static constexpr double min() { return DBL_MIN; }
  __device__ static constexpr double lowest() { return -DBL_MAX; }
  __device__ static constexpr double epsilon() { return DBL_EPSILON; }
  __device__ static constexpr double infinity() { return (double)INFINITY; }
  __device__ static constexpr double quiet_NaN() { return (double)NAN; }
};
#define FSR_LIMITS(T, LOW, HIGH) \
  template <> struct numeric_limits<T> { \
    __device__ static constexpr T max() { return HIGH; } \
    __device__ static constexpr T min() { return LOW; } \
    __device__ static constexpr T lowest() { return LOW; } };
FSR_LIMITS(signed char, -128, 127) FSR_LIMITS(unsigned char, 0, 255)
FSR_LIMITS(short, -32768, 32767) FSR_LIMITS(unsigned short, 0, 65535)
FSR_LIMITS(int, INT_MIN, INT_MAX) FSR_LIMITS(unsigned int, 0, UINT_MAX)
FSR_LIMITS(long, -LONG_MAX - 1, LONG_MAX) FSR_LIMITS(unsigned long, 0, ULONG_MAX)
FSR_LIMITS(long long, LLONG_MIN, LLONG_MAX) FSR_LIMITS(unsigned long long, 0, ULLONG_MAX)
#undef FSR_LIMITS
}
"""
).replace("@MATH@", _std_math())


def uses_libcuxx(source: str) -> bool:
    """Whether the text includes NVIDIA's C++ library, which brings integer types of its own: the prelude then
    takes those (int64_t is ``long long`` there, ``long`` elsewhere on Linux). Define FSR_LIBCUXX for it."""
    return _LIBCUXX.search(source) is not None


def builtin_headers() -> dict[str, str]:
    """Header name to text, for NVRTC's in-memory headers: the prelude and the empty stand-ins."""
    return {PRELUDE_NAME: PRELUDE, **dict.fromkeys(EMPTY_HEADERS, "\n")}


def _candidate_roots() -> Iterator[Path]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "include"
    spec = importlib.util.find_spec("nvidia")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        yield from sorted(Path(location).glob("*/include"))
    if nvcc := shutil.which("nvcc"):
        yield Path(nvcc).resolve().parents[1] / "include"
    yield Path("/usr/local/cuda/include")
    yield from sorted(Path("/usr/local").glob("cuda-*/include"), reverse=True)
    yield Path("/usr/lib/cuda/include")


@functools.cache
def cuda_include_dirs() -> tuple[Path, ...]:
    """Folders with CUDA's device headers (the one with cuda_fp16.h, and its cccl beside it): CUDA_HOME and
    CUDA_PATH first, then NVIDIA's Python packages, then /usr/local. Empty when there are none."""
    return tuple(_first_complete(_candidate_roots()))


def _first_complete(roots: Iterable[Path]) -> list[Path]:
    """The first folder that has NVIDIA's C++ library as well (cooperative groups need it), else the first."""
    usable = [root for root in roots if (root / "cuda_fp16.h").is_file()]
    for root in usable:
        if (root / "cccl").is_dir():
            return [root, root / "cccl"]
        if (root / "cuda" / "std").is_dir():  # where toolkits before CUDA 13 have it
            return [root]
    return usable[:1]
