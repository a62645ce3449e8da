"""The original with its floating type widened to float64: the more precise answer that errors are judged by.

Token by token: types, literals, function names and limits. What depends on the bits of a float (reinterpreting,
half types, inline assembly) has no wide form; such sources are given back as None, never half widened.
"""

from __future__ import annotations

import re
from dataclasses import replace

from fsr.records import Candidate, Launch, Plan, ScalarArgument
from fsr.source.tokens import Token, tokenize

_TYPES = {
    "float": "double", "float2": "double2", "float3": "double3", "float4": "double4", "make_float2": "make_double2",
    "make_float3": "make_double3", "make_float4": "make_double4", "FLT_MAX": "DBL_MAX", "FLT_MIN": "DBL_MIN",
    "FLT_EPSILON": "DBL_EPSILON", "CUDART_INF_F": "CUDART_INF", "CUDART_NAN_F": "CUDART_NAN",
}  # fmt: skip
_SUFFIXED = """exp exp2 exp10 expm1 log log2 log10 log1p pow sqrt rsqrt cbrt rcbrt sin cos tan asin acos atan atan2 sinh
    cosh tanh asinh acosh atanh erf erfc erfinv erfcinv normcdf lgamma tgamma fabs fmax fmin fma fmod floor ceil round
    rint trunc nearbyint copysign hypot fdim remainder ldexp frexp modf sinpi cospi sincos sincospi lround llround lrint
    llrint nextafter scalbn logb ilogb norm3d"""  # expf -> exp, and so on
_FAST = {f"__{name}f": name for name in ("exp", "exp10", "log", "log2", "log10", "pow", "sin", "cos", "tan", "sincos")}
_ROUNDED = {
    "__fadd_rn": "__dadd_rn", "__fsub_rn": "__dsub_rn", "__fmul_rn": "__dmul_rn", "__fdiv_rn": "__ddiv_rn",
    "__fmaf_rn": "__fma_rn", "__fsqrt_rn": "__dsqrt_rn", "__frsqrt_rn": "rsqrt", "__frcp_rn": "__drcp_rn",
    "__int2float_rn": "__int2double_rn", "__uint2float_rn": "__uint2double_rn", "__float2int_rn": "__double2int_rn",
    "__float2int_rz": "__double2int_rz", "__float2int_rd": "__double2int_rd", "__float2int_ru": "__double2int_ru",
}  # fmt: skip
_NAMES = _TYPES | _FAST | _ROUNDED | {f"{name}f": name for name in _SUFFIXED.split()}
_DIVIDE = "__fdividef"
_HELPER = "static __device__ inline double wide_divide(double a, double b) { return a / b; }\n"
_SATURATE = "static __device__ inline double wide_saturate(double a) { return a > 0 ? (a < 1 ? a : 1) : 0; }\n"

# Names after which the bits of a float matter, or that have no double counterpart.
_BITS = re.compile(
    r"(__half\w*|half2?|__nv_bfloat16\w*|nv_bfloat16\w*|bfloat16|__float_as_u?int|__u?int_as_float|__float2half\w*"
    r"|__half2float|__float2bfloat16\w*|__bfloat162float|asm|__asm__|tf32|wmma|__\w*_r[zdu]|__nv_fp8\w*|texture\w*|tex[12]D\w*"
    r"|__f\w+_ftz|__bit_cast|bit_cast|union|__fsqrt_\w+|__fdiv_\w+|double)$"
)
_FLOAT_LITERAL = re.compile(r"((?:\d[\d']*\.?[\d']*|\.\d+)(?:[eE][+-]?\d+)?|0[xX][\da-fA-F.]+[pP][+-]?\d+)[fF]$")


def widen(source: str) -> str | None:
    """The source with float made double; None when it has no float, or no such form."""
    text, changed = _rewritten(source)
    if text is None or not changed:
        return None
    helpers = (_HELPER if "wide_divide" in text else "") + (_SATURATE if "wide_saturate" in text else "")
    return helpers + text


def widen_candidate(candidate: Candidate) -> Candidate | None:
    """The candidate in float64: source, template arguments, scalar arguments, scratch and twice the dynamic shared
    memory. Buffers are to be given as float64 (:func:`fsr.testgen.oracle.widened_data`). None as for widen."""
    source = widen(candidate.source)
    if source is None or any("half" in s.dtype or "float16" in s.dtype for s in candidate.plan.scratch):
        return None
    launches = tuple(_widen_launch(launch) for launch in candidate.plan.launches)
    scratch = tuple(replace(s, dtype=_wide_dtype(s.dtype)) for s in candidate.plan.scratch)
    flags = tuple(f for f in candidate.plan.flags if "fast_math" not in f and "maxrregcount" not in f)
    return replace(candidate, source=source, plan=Plan(launches, scratch, flags))


def _widen_launch(launch: Launch) -> Launch:
    args = tuple(replace(a, dtype=_wide_dtype(a.dtype)) if isinstance(a, ScalarArgument) else a for a in launch.args)
    shared = "0" if launch.shared_bytes.strip() == "0" else f"2 * ({launch.shared_bytes})"
    entry, _ = _rewritten(launch.entry)
    return replace(launch, args=args, shared_bytes=shared, entry=entry or launch.entry)


def _wide_dtype(dtype: str) -> str:
    return "float64" if dtype == "float32" else dtype


def _rewritten(text: str) -> tuple[str | None, bool]:
    """The text with its tokens widened (None when some token has no wide form), and whether any changed."""
    parts, at, changed = [], 0, False
    for token in tokenize(text):
        if token.kind == "directive":
            inner, inside = _rewritten(token.text[1:])
            new = None if inner is None else "#" + inner
            changed |= inside
        else:
            new = _wide_token(token)
        if new is None:
            return None, changed
        changed |= token.text in _TYPES
        parts += [text[at : token.start], new]
        at = token.end
    return "".join([*parts, text[at:]]), changed


def _wide_token(token: Token) -> str | None:
    if token.kind == "number":
        match = _FLOAT_LITERAL.match(token.text)
        if match is None or (token.text[:2].lower() == "0x" and "p" not in token.text.lower()):
            return token.text
        return match[1] if any(c in match[1] for c in ".eEpP") else match[1] + ".0"
    if token.kind != "name":
        return token.text
    if token.text in _NAMES:
        return _NAMES[token.text]
    if token.text == _DIVIDE:
        return "wide_divide"
    if token.text == "__saturatef":
        return "wide_saturate"
    return None if _BITS.match(token.text) else token.text
