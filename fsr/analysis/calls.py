"""What a call does, by its name alone: only compute, load with a hint to the caches, or update atomically.

A file may define functions of its own under these names: :mod:`fsr.analysis.functions` tells.
"""

from __future__ import annotations

import re

from fsr.source.form import Call, Expr, Name


def _words(text: str) -> list[str]:
    return text.split()


_MATH = _words("""
    exp exp2 exp10 expm1 log log2 log10 log1p sqrt rsqrt cbrt rcbrt pow sin cos tan asin acos atan atan2 sinh cosh
    tanh asinh acosh atanh erf erfc erfinv erfcinv erfcx normcdf normcdfinv tgamma lgamma fabs floor ceil trunc
    round rint nearbyint fmod remainder fma fmax fmin fdim hypot rhypot copysign ldexp scalbn sinpi cospi j0 j1 y0 y1
""")
_OTHER = _words("""
    abs labs llabs max min umax umin isnan isinf isfinite signbit __expf __exp10f __logf __log2f __log10f __powf
    __sinf __cosf __tanf __fdividef __saturatef __frsqrt_rn __popc __popcll __clz __clzll __ffs __ffsll __brev
    __brevll __mul24 __umul24 __mulhi __umulhi __mul64hi __sad __usad __byte_perm __funnelshift_l __funnelshift_r
    __float_as_int __int_as_float __float_as_uint __uint_as_float __hiloint2double __double2hiint make_float2
    make_float3 make_float4 make_int2 make_int3 make_int4 make_uint2 make_uint4 make_double2 __half2float
    __float2half __float2half_rn __bfloat162float __float2bfloat16 __float2bfloat16_rn __hadd __hsub __hmul __hfma
    __hdiv __hmax __hmin __hadd2 __hmul2 __hfma2 __halves2half2 __low2float __high2float __half22float2
    __float22half2_rn float double int unsigned long short char bool size_t half __half __nv_bfloat16 sizeof assert
    printf
""")  # what is printed, and in which order, no contract tells
PURE = frozenset([*_MATH, *(f"{name}f" for name in _MATH), *_OTHER])
INTO = frozenset(_words("sincos sincosf __sincosf sincospi sincospif modf modff frexp frexpf"))
OF_BYTES = frozenset(("memset", "memcpy"))  # through the pointers that they are given, and nothing else
"""They compute, and leave results where they are told to."""
_PATTERN = re.compile(
    r"u?int(8|16|32|64|ptr)_t|ptrdiff_t|uint|make_[a-z]+[1-4]|make_cu(Double|Float)?Complex|"
    r"cuC(add|sub|mul|div|fma|abs|real|imag)f?|cuConjf?|__(f|d|h)(add|sub|mul|maf|ma|div|sqrt|rcp)_r[nzud]|__(float|double|int|uint|ll|ull)2\w+"
)
_LIMIT = re.compile(r"numeric_limits<[\w ]+>::(max|min|lowest|epsilon|denorm_min|infinity|quiet_NaN)")
CONSTANTS = frozenset(
    _words("INFINITY NAN FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX INT_MAX INT_MIN UINT_MAX CUDART_INF_F M_PI true false")
)
LOADS = frozenset(["__ldg", "__ldca", "__ldcg", "__ldcs", "__ldlu"])  # the plain value; __ldcv fetches anew each time
ATOMICS = frozenset(f"atomic{op}" for op in ("Add", "Sub", "Max", "Min", "And", "Or", "Xor"))  # order does not matter
COOPERATES = re.compile(
    r"__(sync|shfl|ballot|any|all_sync|activemask|match|reduce|cluster|nanosleep|shared)|^all_sync|cooperative_groups|"
    r"^cg$|^cg::|this_thread|warpSize|laneid|__launch_dependents"
)


def is_pure_name(name: str) -> bool:
    """Whether a call of CUDA's function of that name only computes from its arguments."""
    bare = name.removeprefix("::").removeprefix("std::").removeprefix("cuda::std::")
    return bare in PURE or _PATTERN.fullmatch(bare) is not None or _LIMIT.fullmatch(bare) is not None


def is_load(e: Expr) -> bool:
    """Whether the expression is ``__ldg(pointer)`` or one of its relatives."""
    return isinstance(e, Call) and isinstance(e.callee, Name) and e.callee.text in LOADS


def is_atomic(e: Expr) -> bool:
    """Whether the expression is a call of an atomic function."""
    return isinstance(e, Call) and isinstance(e.callee, Name) and e.callee.text.startswith("atomic")
