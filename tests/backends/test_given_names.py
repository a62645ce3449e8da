"""What nvcc gives a file without being asked, the host device and NVRTC give it too, with equal values."""

from __future__ import annotations

import pytest

from fsr.backends.cuda.nvrtc import NvrtcToolchain
from fsr.backends.host.compiler import HostToolchain
from fsr.errors import MissingToolError
from fsr.records import Candidate, CompileFailure, Image, Launch, Plan

LIMITS = """
static_assert(FLT_MAX == 3.402823466e+38F && __FLT_MAX__ == FLT_MAX && FLT_DIG == 6 && FLT_MANT_DIG == 24, "");
static_assert(FLT_MIN == 1.175494351e-38F && FLT_EPSILON == __FLT_EPSILON__ && DBL_DIG == 15 && DBL_MAX > 1e308, "");
static_assert(INT_MAX == 2147483647 && INT_MIN == -INT_MAX - 1 && UINT_MAX == 4294967295U && SHRT_MIN == -32768, "");
static_assert(USHRT_MAX == 65535 && SCHAR_MAX == 127 && CHAR_BIT == 8 && UINT8_MAX == 255 && INT64_MIN < 0, "");
static_assert(LONG_MAX == LLONG_MAX && SIZE_MAX == ULONG_MAX && PTRDIFF_MAX == LONG_MAX && CUDA_VERSION >= 12000, "");
static_assert(sizeof(uint) == 4 && sizeof(ushort) == 2 && sizeof(ulong) == 8 && sizeof(uint_least8_t) == 1, "");
static_assert(sizeof(std::size_t) == 8 && sizeof(int_fast16_t) == 8 && sizeof(uintmax_t) == 8, "");
__global__ void k(float *x, int n) { x[0] = FLT_MAX + HUGE_VAL + M_LOG10E + __INT_MAX__; }
"""
TRAITS = """
enum Kind : short { A };
template <class T> __device__ float as_float(T x) {
  if constexpr (std::is_integral_v<T>) return (float)x + 1.0f;
  else return (float)x;
}
using limits = std::numeric_limits<float>;
static_assert(limits::digits == 24 && limits::is_iec559 && limits::has_infinity && !limits::is_integer, "");
static_assert(std::numeric_limits<short>::is_signed && std::numeric_limits<unsigned>::digits == 32, "");
static_assert(std::is_same_v<std::decay_t<const float &>, float>, "");
static_assert(std::is_same_v<std::remove_pointer_t<int *>, int>, "");
static_assert(std::is_unsigned_v<uint> && std::is_signed_v<float> && std::is_void_v<void>, "");
static_assert(std::is_pointer_v<float *const> && std::is_const_v<const int> && std::is_enum_v<Kind>, "");
static_assert(sizeof(std::underlying_type_t<Kind>) == 2 && sizeof(std::make_unsigned_t<long>) == 8, "");
static_assert(sizeof(std::common_type_t<int, double>) == 8 && std::is_convertible_v<int, float>, "");
static_assert(std::conditional_t<true, std::true_type, std::false_type>::value && std::bool_constant<true>{}, "");
__global__ void k(float *x, int n) {
  x[0] = as_float(n) + std::max(x[1], 2.0f) + std::min(n, 3) + limits::lowest() + std::pow(x[0], 2.0f);
}
"""
HALVES = """
#include <cublas_v2.h>
__global__ void k(float *x, int n) { x[0] = __half2float(__float2half(x[1])) + (float)__float2bfloat16(x[2]); }
"""
LIBRARY = """
#include <cuda/cmath>
#include <cuda/functional>
#include <cuda/std/array>
#include <cuda/std/bit>
#include <cuda/std/cassert>
#include <cuda/std/complex>
#include <cuda/std/limits>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>
static_assert(cuda::std::popcount(7u) == 3 && cuda::std::countl_zero(5u) == 29 && cuda::std::bit_ceil(9u) == 16u, "");
static_assert(cuda::ceil_div(7, 3) == 3 && cuda::std::is_same_v<float, cuda::std::decay_t<const float &>>, "");
__global__ void k(float *x, int n) {
  assert(n > 0);
  cuda::std::complex<float> c(x[1], x[2]);
  cuda::std::array<float, 2> a{{x[3], cuda::maximum<float>{}(x[4], x[5])}};
  x[0] = (c * c).real() + a[1] + cuda::std::get<1>(cuda::std::make_tuple(n, x[6]));
  x[1] = cuda::std::numeric_limits<float>::max() + cuda::std::countr_zero(8u) + cuda::round_up(n, 4);
}
"""
WITHOUT = "__global__ void k(float *x, int n) { x[0] = cuda::std::numeric_limits<float>::max(); }"
ASKED = """
#ifdef __NVCC__
__device__ float one(float x) { return x; }
#endif
__global__ void k(float *x, int n) { x[0] = one(SCALE) + width(); }
""".replace("__global__", "__device__ uint width() { return 4; }\n__global__")
ROUNDED = """
#include <cuda_bf16.h>
__global__ void k(float *x, int n) {
  x[0] = (float)__int2bfloat16_rz(n) + (float)__ull2bfloat16_ru(257ull) + __bfloat162ushort_rd(__short_as_bfloat16(7));
  x[1] = (float)__int2half_rd(n) + __half2char_rz(__float2half(x[2])) + __low2float(__bfloat162bfloat162(x[3]));
}
"""
CUB = """
#include <cub/cub.cuh>
__global__ void k(float *x, int n) {
  typedef cub::BlockReduce<float, 32> Reduce;
  typedef cub::BlockScan<int, 32> Scan;
  typedef cub::KeyValuePair<int, float> Pair;
  __shared__ typename Reduce::TempStorage memory;
  __shared__ typename Scan::TempStorage scanned;
  __shared__ typename cub::WarpReduce<Pair>::TempStorage first;
  cub::Sum sum;
  float v = Reduce(memory).Reduce(x[threadIdx.x], cub::Max());
  __syncthreads();
  v += Reduce(memory).Reduce(x[threadIdx.x], sum) + Reduce().Sum(x[n]);
  int upto, all;
  Scan(scanned).InclusiveSum(n, upto, all);
  Pair pair = cub::WarpReduce<Pair>(first).Reduce(Pair(n, v), cub::ArgMax());
  if (threadIdx.x == 0) x[0] = v + upto + all + pair.key;
}
"""
SOURCES = {"rounded": ROUNDED, "limits": LIMITS, "traits": TRAITS, "halves": HALVES, "library": LIBRARY, "asked": ASKED}
SOURCES["cub"] = CUB


def result_of(toolchain, source):
    launch = Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", ("x", "n"))
    flags = ("-DSCALE=n", "-Duint=unsigned") if source == ASKED else ()
    return toolchain.compile(Candidate(source, Plan((launch,), (), flags)))


def compiled(toolchain, source):
    result = result_of(toolchain, source)
    assert isinstance(result, Image), result.log
    assert isinstance(result_of(toolchain, WITHOUT), CompileFailure)  # as nvcc 13.0, which wants the include


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_the_host_device(source):
    compiled(HostToolchain(), source)


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_nvrtc(source):
    try:
        toolchain = NvrtcToolchain("sm_90")
    except MissingToolError as missing:
        pytest.skip(str(missing))
    compiled(toolchain, source)
