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

from fsr.backends.cub import CUB_HEADERS

PRELUDE_NAME = "fsr_prelude.h"

_PIPELINE = re.compile(r"^\s*#\s*include\s*[<\"]cuda_pipeline(_primitives)?\.h", re.MULTILINE)
_LIBCUXX = re.compile(r"^\s*#\s*include\s*[<\"](cooperative_groups|cuda/|cub/|thrust/|nv/)", re.MULTILINE)

EMPTY_HEADERS = (
    "algorithm", "assert.h", "cassert", "cfloat", "chrono", "climits", "cmath", "cstddef", "cstdint", "cstdio",
    "cstdlib", "cstring", "ctime", "cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h",
    "driver_types.h", "float.h", "fstream", "functional", "inttypes.h", "iomanip", "iostream", "limits", "limits.h",
    "math.h", "memory", "numeric", "random", "sstream", "stddef.h", "stdexcept", "stdint.h", "stdio.h", "stdlib.h",
    "string", "string.h", "sys/time.h", "sys/types.h", "time.h", "type_traits", "unistd.h", "utility", "vector",
    "vector_types.h",
)  # fmt: skip

VENDOR_HEADERS = ("cublas_v2.h", "cublas_api.h", "cublasLt.h", "cublasXt.h", "cusolverDn.h", "nccl.h")
_VENDOR_TEXT = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"  # what device code has from them

_FLOAT_UNARY = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp2",
    "expm1", "floor", "lgamma", "log", "log10", "log1p", "log2", "nearbyint", "rint", "round", "sin", "sinh",
    "sqrt", "tan", "tanh", "tgamma", "trunc",
)  # fmt: skip
_FLOAT_BINARY = ("atan2", "copysign", "fdim", "fmax", "fmin", "fmod", "hypot", "nextafter", "pow", "remainder")


_FLOATS = {  # of <float.h>; GCC and Clang have each as __NAME__ too
    "FLT": ("3.402823466e+38F", "1.175494351e-38F", "1.192092896e-07F", "1.401298464e-45F", 6, 24, -125, 128, -37, 38),
    "DBL": ("1.7976931348623157e+308", "2.2250738585072014e-308", "2.2204460492503131e-16",
            "4.9406564584124654e-324", 15, 53, -1021, 1024, -307, 308),
}  # fmt: skip
_FLOAT_NAMES = (
    "MAX",
    "MIN",
    "EPSILON",
    "TRUE_MIN",
    "DIG",
    "MANT_DIG",
    "MIN_EXP",
    "MAX_EXP",
    "MIN_10_EXP",
    "MAX_10_EXP",
)
_BITS = {"SCHAR": 8, "SHRT": 16, "INT8": 8, "INT16": 16}


def _limits() -> str:
    """The limits of <limits.h> and <stdint.h> below 32 bits, and the types that are others by name."""
    known = {"CHAR_MAX": "127", "CHAR_MIN": "(-128)", "LONG_MIN": "(-LONG_MAX - 1)", "RAND_MAX": "INT_MAX",
             "INT64_MIN": "LONG_MIN", "PTRDIFF_MAX": "LONG_MAX", "PTRDIFF_MIN": "LONG_MIN"}  # fmt: skip
    lines = [f"#define {name} {value}" for name, value in known.items()]
    for name, bits in _BITS.items():
        unsigned = {"SCHAR": "UCHAR", "SHRT": "USHRT"}.get(name, f"U{name}")
        high = 2 ** (bits - 1) - 1
        lines += [
            f"#define {name}_MAX {high}",
            f"#define {name}_MIN (-{high} - 1)",
            f"#define {unsigned}_MAX {2 * high + 1}",
        ]
    for sign in ("", "u"):
        lines += [f"typedef {sign}int{bits}_t {sign}int_least{bits}_t;" for bits in (8, 16, 32, 64)]
        lines += [f"typedef {sign}int{8 if bits == 8 else 64}_t {sign}int_fast{bits}_t;" for bits in (8, 16, 32, 64)]
        lines.append(f"typedef {sign}int64_t {sign}intmax_t;")
    return "\n".join(lines)


def _floats() -> str:
    """The macros of <float.h>, and those that compilers have of their own."""
    lines = [
        f"#define {mark}{prefix}_{name}{mark} {value}"
        for prefix, values in _FLOATS.items()
        for name, value in zip(_FLOAT_NAMES, values, strict=True)
        for mark in ("", "__")
    ]
    lines += [
        f"#define {name} {value}"
        for name, value in (("FLT_RADIX", 2), ("DECIMAL_DIG", 17), ("__INT_MAX__", 2147483647))
    ]
    guarded = (f"#ifndef {line.split()[1]}\n{line}\n#endif" for line in lines)
    return "\n".join(guarded)


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
    (
        r"""#pragma once
#ifdef FSR_LIBCUXX
#include <cuda/std/climits>
#include <cuda/std/cstdint>
#else
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef long intptr_t;
#ifdef FSR_PIPELINE
typedef unsigned long long uint64_t; typedef unsigned long long uintptr_t;
#else
typedef unsigned long uint64_t; typedef unsigned long uintptr_t;
#endif
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
@LIMITS@
#endif
typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint; typedef unsigned long ulong;
typedef unsigned char u_char; typedef unsigned short u_short; typedef unsigned int u_int; typedef unsigned long u_long;
typedef uint8_t u_int8_t; typedef uint16_t u_int16_t; typedef uint32_t u_int32_t; typedef uint64_t u_int64_t;
#define __const const
#define __const__ const
#if __cplusplus >= 201703L
#define register
#endif
@FLOATS@
#ifndef CUDA_VERSION
#define CUDA_VERSION (__CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10)
#endif
#ifndef CUDART_VERSION
#define CUDART_VERSION CUDA_VERSION
#endif
#ifndef INFINITY
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#endif
#ifndef NAN
#define NAN __builtin_bit_cast(float, 0x7fc00000)
#endif
#define HUGE_VALF INFINITY
#define HUGE_VAL ((double)INFINITY)
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
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
template <class T, T V> struct integral_constant {
  static constexpr T value = V; using type = integral_constant; using value_type = T;
  __device__ constexpr operator T() const { return V; }
};
template <bool B> using bool_constant = integral_constant<bool, B>;
using true_type = bool_constant<true>; using false_type = bool_constant<false>;
using size_t = ::size_t; using ptrdiff_t = ::ptrdiff_t; using nullptr_t = decltype(nullptr);
template <bool B, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { using type = T; };
template <bool B, class T = void> using enable_if_t = typename enable_if<B, T>::type;
template <bool B, class T, class F> struct conditional { using type = T; };
template <class T, class F> struct conditional<false, T, F> { using type = F; };
template <bool B, class T, class F> using conditional_t = typename conditional<B, T, F>::type;
template <class...> using void_t = void;
#define FSR_CHANGE(NAME, FROM, TO, ...) \
  template <class T> struct NAME { using type = T; }; \
  template <__VA_ARGS__> struct NAME<FROM> { using type = TO; }; \
  template <class T> using NAME##_t = typename NAME<T>::type;
FSR_CHANGE(remove_const, const T, T, class T) FSR_CHANGE(remove_volatile, volatile T, T, class T)
FSR_CHANGE(remove_pointer, T*, T, class T) FSR_CHANGE(remove_reference, T&, T, class T)
template <class T> struct remove_reference<T&&> { using type = T; };
#undef FSR_CHANGE
template <class T> struct remove_cv { using type = remove_const_t<remove_volatile_t<T>>; };
template <class T> using remove_cv_t = typename remove_cv<T>::type;
template <class T> struct decay { using type = remove_cv_t<remove_reference_t<T>>; };
template <class T, size_t N> struct decay<T (&)[N]> { using type = T*; };
template <class T> using decay_t = typename decay<T>::type;
template <class T> struct add_const { using type = const T; };
template <class T> using add_const_t = const T;
template <class T> T&& declval() noexcept;
template <class A, class B> struct is_same : false_type {};
template <class A> struct is_same<A, A> : true_type {};
template <class A, class B> constexpr bool is_same_v = is_same<A, B>::value;
template <class T, class... Of> struct fsr_among : false_type {};
template <class T, class A, class... Of> struct fsr_among<T, A, Of...>
    : bool_constant<is_same<T, A>::value || fsr_among<T, Of...>::value> {};
template <class T, class... Of> constexpr bool fsr_one_of = fsr_among<remove_cv_t<T>, Of...>::value;
#define FSR_TRAIT(NAME, ...) \
  template <class T> struct NAME : bool_constant<(__VA_ARGS__)> {}; \
  template <class T> constexpr bool NAME##_v = NAME<T>::value;
FSR_TRAIT(is_void, fsr_one_of<T, void>)
FSR_TRAIT(is_floating_point, fsr_one_of<T, float, double>)
FSR_TRAIT(is_integral, fsr_one_of<T, bool, char, signed char, unsigned char, wchar_t, char16_t, char32_t, short,
  unsigned short, int, unsigned int, long, unsigned long, long long, unsigned long long>)
FSR_TRAIT(is_arithmetic, is_integral_v<T> || is_floating_point_v<T>)
FSR_TRAIT(is_unsigned, fsr_one_of<T, bool, unsigned char, unsigned short, unsigned int, unsigned long,
  unsigned long long, char16_t, char32_t>)
FSR_TRAIT(is_signed, is_arithmetic_v<T> && !is_unsigned_v<T>)
FSR_TRAIT(is_const, !is_same_v<T, remove_const_t<T>>)
FSR_TRAIT(is_pointer, !is_same_v<remove_cv_t<T>, remove_pointer_t<remove_cv_t<T>>>)
FSR_TRAIT(is_reference, !is_same_v<T, remove_reference_t<T>>)
FSR_TRAIT(is_enum, __is_enum(T))
FSR_TRAIT(is_class, __is_class(T))
FSR_TRAIT(is_trivially_copyable, __is_trivially_copyable(T))
FSR_TRAIT(is_pod, __is_pod(T))
#undef FSR_TRAIT
template <class A, class B> struct is_base_of : bool_constant<__is_base_of(A, B)> {};
template <class A, class B> struct is_convertible : bool_constant<__is_convertible_to(A, B)> {};
template <class A, class B> constexpr bool is_convertible_v = is_convertible<A, B>::value;
template <class T> struct underlying_type { using type = __underlying_type(T); };
template <class T> using underlying_type_t = typename underlying_type<T>::type;
template <class A, class B> struct common_type { using type = decay_t<decltype(true ? declval<A>() : declval<B>())>; };
template <class A, class B> using common_type_t = typename common_type<A, B>::type;
template <class T> struct make_unsigned { using type = conditional_t<sizeof(T) == 1, unsigned char,
  conditional_t<sizeof(T) == 2, unsigned short, conditional_t<sizeof(T) == 4, unsigned int, unsigned long>>>; };
template <class T> using make_unsigned_t = typename make_unsigned<T>::type;
template <class T> struct make_signed { using type = conditional_t<sizeof(T) == 1, signed char,
  conditional_t<sizeof(T) == 2, short, conditional_t<sizeof(T) == 4, int, long>>>; };
template <class T> using make_signed_t = typename make_signed<T>::type;
__device__ __forceinline__ bool signbit(float x) { return ::signbit(x); }
__device__ __forceinline__ bool signbit(double x) { return ::signbit(x); }
template <class T> struct numeric_limits { static constexpr bool is_specialized = false; };
template <class T> struct numeric_limits<const T> : numeric_limits<T> {};
#define FSR_FLOAT_LIMITS(T, NAME) \
  template <> struct numeric_limits<T> { \
    static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false; \
    static constexpr bool is_iec559 = true; \
    static constexpr bool has_infinity = true, has_quiet_NaN = true; \
    static constexpr int digits = NAME##_MANT_DIG, digits10 = NAME##_DIG, max_exponent = NAME##_MAX_EXP, radix = 2; \
    __device__ static constexpr T max() { return NAME##_MAX; } \
    __device__ static constexpr T min() { return NAME##_MIN; } \
    __device__ static constexpr T lowest() { return -NAME##_MAX; } \
    __device__ static constexpr T epsilon() { return NAME##_EPSILON; } \
    __device__ static constexpr T denorm_min() { return NAME##_TRUE_MIN; } \
    __device__ static constexpr T infinity() { return (T)INFINITY; } \
    __device__ static constexpr T quiet_NaN() { return (T)NAN; } };
FSR_FLOAT_LIMITS(float, FLT) FSR_FLOAT_LIMITS(double, DBL)
#undef FSR_FLOAT_LIMITS
#define FSR_LIMITS(T, LOW, HIGH) \
  template <> struct numeric_limits<T> { \
    static constexpr bool is_specialized = true, is_signed = (LOW) < 0, is_integer = true, is_exact = true; \
    static constexpr bool is_iec559 = false, has_infinity = false, has_quiet_NaN = false; \
    static constexpr int digits = sizeof(T) * 8 - ((LOW) < 0), radix = 2; \
    __device__ static constexpr T max() { return HIGH; } \
    __device__ static constexpr T min() { return LOW; } \
    __device__ static constexpr T lowest() { return LOW; } };
FSR_LIMITS(bool, false, true) FSR_LIMITS(char, -128, 127)
FSR_LIMITS(signed char, -128, 127) FSR_LIMITS(unsigned char, 0, 255)
FSR_LIMITS(short, -32768, 32767) FSR_LIMITS(unsigned short, 0, 65535)
FSR_LIMITS(int, INT_MIN, INT_MAX) FSR_LIMITS(unsigned int, 0, UINT_MAX)
FSR_LIMITS(long, -LONG_MAX - 1, LONG_MAX) FSR_LIMITS(unsigned long, 0, ULONG_MAX)
FSR_LIMITS(long long, LLONG_MIN, LLONG_MAX) FSR_LIMITS(unsigned long long, 0, ULLONG_MAX)
#undef FSR_LIMITS
}
"""
    )
    .replace("@MATH@", _std_math())
    .replace("@LIMITS@", _limits())
    .replace("@FLOATS@", _floats())
)


def uses_libcuxx(source: str) -> bool:
    """Whether the text includes NVIDIA's C++ library, which brings integer types of its own: the prelude then
    takes those (int64_t is ``long long`` there, ``long`` elsewhere on Linux). Define FSR_LIBCUXX for it."""
    return _LIBCUXX.search(source) is not None


def uses_pipeline(source: str) -> bool:
    """Whether the text includes <cuda_pipeline.h>, which under NVRTC declares uint64_t as ``unsigned long long``: the
    prelude then says the same. Define FSR_PIPELINE for it."""
    return _PIPELINE.search(source) is not None


def builtin_headers() -> dict[str, str]:
    """Header name to text, for NVRTC's in-memory headers: the prelude and the empty stand-ins."""
    return {
        PRELUDE_NAME: PRELUDE,
        **dict.fromkeys(EMPTY_HEADERS, "\n"),
        **dict.fromkeys(VENDOR_HEADERS, _VENDOR_TEXT),
        **CUB_HEADERS,
    }


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
