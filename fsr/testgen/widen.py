"""The original with its floating types widened to float64: the more precise answer that errors are judged by.

Token by token: types, literals, function names and limits. Kernels of float alone become kernels of double; half and
bfloat16 become a class that holds a double (noisy.cuh), and with noise that class also shows how far rounding in the
original's own types may carry each element. What depends on the bits of a float (reinterpreting, inline assembly) has
no wide form; such sources are given back as None, never half widened.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

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
_FAST = {f"__{name}f": name for name in (
    "exp", "exp10", "log", "log2", "log10", "pow", "sin", "cos", "tan", "tanh", "sincos")}  # fmt: skip
_ROUNDED = {
    "__fadd_rn": "__dadd_rn", "__fsub_rn": "__dsub_rn", "__fmul_rn": "__dmul_rn", "__fdiv_rn": "__ddiv_rn",
    "__fmaf_rn": "__fma_rn", "__fsqrt_rn": "__dsqrt_rn", "__frsqrt_rn": "rsqrt", "__frcp_rn": "__drcp_rn",
    "__int2float_rn": "__int2double_rn", "__uint2float_rn": "__uint2double_rn", "__float2int_rn": "__double2int_rn",
    "__float2int_rz": "__double2int_rz", "__float2int_rd": "__double2int_rd", "__float2int_ru": "__double2int_ru",
}  # fmt: skip
_NAMES = _FAST | _ROUNDED | {f"{name}f": name for name in _SUFFIXED.split()}
_CLASSES = {
    "float": "fsr_f32", "__half": "fsr_f16", "half": "fsr_f16", "__nv_bfloat16": "fsr_bf16",
    "nv_bfloat16": "fsr_bf16", "__half2": "fsr_f16x2", "half2": "fsr_f16x2", "__nv_bfloat162": "fsr_bf16x2",
    "nv_bfloat162": "fsr_bf16x2", "FLT_MAX": "DBL_MAX", "FLT_MIN": "DBL_MIN", "FLT_EPSILON": "DBL_EPSILON",
    "CUDART_INF_F": "CUDART_INF", "CUDART_NAN_F": "CUDART_NAN", "__float2half": "wide_to_half",
    "__float2half_rn": "wide_to_half", "__float2bfloat16": "wide_to_bf16", "__float2bfloat16_rn": "wide_to_bf16",
    "__fadd_rn": "wide_add", "__fsub_rn": "wide_sub", "__fmul_rn": "wide_mul", "__fdiv_rn": "wide_div",
    "__frcp_rn": "1.0 / fsr_f32", "__fsqrt_rn": "sqrt", "__frsqrt_rn": "rsqrt", "__fmaf_rn": "fma",
    "double": "fsr_f64",
    **dict.fromkeys(("__ldg", "__ldca", "__ldcg", "__ldcs", "__ldcv", "__ldlu"), "wide_load"),
    **dict.fromkeys(("__stcg", "__stcs", "__stwb", "__stwt"), "wide_store"),
    **{f"{made}{t}{n}": f"{made}fsr_{c}x{n}"
       for made in ("", "make_") for t, c in (("float", "f32"), ("double", "f64")) for n in (2, 3, 4)},
}  # fmt: skip
_OF_STD = frozenset([*_SUFFIXED.split(), "abs", "isnan", "isinf", "isfinite", "signbit"])
_QUALIFIES = ("::", ".", "->")
_DIVIDE = "__fdividef"
_HELPER = "static __device__ inline double wide_divide(double a, double b) { return a / b; }\n"
# Of whole numbers a function of float has one meaning, and the one of its name without the f has two for NVRTC, which
# declares both types of it and no others.
_OF_WHOLE = "exp exp2 exp10 expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos tan atan tanh fabs floor ceil round rint"
_OF_TWO = "pow fmax fmin fmod atan2 hypot"
_WHOLE_TYPES = ("int", "unsigned int", "long", "unsigned long", "long long", "unsigned long long")
_SATURATE = "static __device__ inline double wide_saturate(double a) { return a > 0 ? (a < 1 ? a : 1) : 0; }\n"

# Names after which the bits of a float matter, or that have no double counterpart.
_BITS = (
    r"__float_as_u?int|__u?int_as_float|asm|__asm__|tf32|wmma|__\w*_r[zdu]|__nv_fp8\w*|texture\w*|tex[12]D\w*"
    r"|__f\w+_ftz|__bit_cast|bit_cast|union|__u?short_as_\w+|__half_as_\w+|__bfloat16_as_\w+"
)
_HALVES = (
    r"|__half\w*|half2?|__nv_bfloat16\w*|nv_bfloat16\w*|bfloat16|__float2half\w*|__float2bfloat16\w*|__bfloat162float"
    r"|__fsqrt_\w+|__fdiv_\w+|double"
)


@dataclass(frozen=True, slots=True)
class _Style:
    """What becomes of names, and which have no wide form."""

    names: dict[str, str]
    refused: re.Pattern[str]
    types: frozenset[str]  # one of these must occur


_DOUBLE = _Style(_TYPES | _NAMES, re.compile(rf"({_BITS}{_HALVES})$"), frozenset(_TYPES))
_WIDENED = frozenset(name for name, wide in _CLASSES.items() if wide.startswith("fsr_"))
_DOUBLES = frozenset(name for name, wide in _CLASSES.items() if wide.startswith("fsr_f64"))
_CLASS = _Style(_NAMES | _CLASSES, re.compile(rf"({_BITS})$"), _WIDENED - _DOUBLES)
_NOISY = replace(_CLASS, types=_WIDENED)  # a kernel of double alone has no more precise form, but it rounds as well
# Made of bits that stand in the source, they are numbers like others: infinities and NaN are often written so.
_OF_BITS = {
    "__int_as_float": ("<u4", "<f4", ""), "__uint_as_float": ("<u4", "<f4", ""),
    "__short_as_half": ("<u2", "<f2", "fsr_f16"), "__ushort_as_half": ("<u2", "<f2", "fsr_f16"),
}  # fmt: skip
_WHOLE_LITERAL = re.compile(r"(0[xX][\da-fA-F]+|\d+)[uUlL]*$")
_FLOAT_LITERAL = re.compile(r"((?:\d[\d']*\.?[\d']*|\.\d+)(?:[eE][+-]?\d+)?|0[xX][\da-fA-F.]+[pP][+-]?\d+)[fF]$")


def widen(source: str, entries: Sequence[str] = ()) -> str | None:
    """The source with float made double; None when it has no float, or no such form. ``entries``: the kernels that are
    launched, of which a template's arguments may be all that tells of float."""
    text = _rewritten(source, _DOUBLE, entries)
    if text is None:
        return None
    helpers = (_HELPER if "wide_divide" in text else "") + (_SATURATE if "wide_saturate" in text else "")
    return helpers + _of_whole(text) + text


def _of_whole(text: str) -> str:
    """The functions that a wide form calls, of whole numbers."""
    called = {name for name in (*_OF_WHOLE.split(), *_OF_TWO.split()) if re.search(rf"\b{name}\s*\(", text)}
    lines = list[str]()
    for type_ in _WHOLE_TYPES:
        one, two = f"{type_} a", f"{type_} a, {type_} b"
        lines += [f"static __device__ inline double {n}({one}) {{ return {n}((double)a); }}"
                  for n in _OF_WHOLE.split() if n in called]  # fmt: skip
        lines += [f"static __device__ inline double {n}({two}) {{ return {n}((double)a, (double)b); }}"
                  for n in _OF_TWO.split() if n in called]  # fmt: skip
    return "\n".join(["#ifdef __CUDACC_RTC__", *lines, "#endif", ""]) if lines else ""


def widen_candidate(candidate: Candidate) -> Candidate | None:
    """The candidate in float64: source, template arguments, scalar arguments, scratch and more dynamic shared
    memory. Buffers are to be given as float64 (:func:`fsr.testgen.oracle.widened_data`). None as for widen, where the
    class of noisy.cuh does not help either."""
    source = widen(candidate.source, _entries(candidate))
    return _planned(candidate, source, _DOUBLE) if source is not None else _in_class(candidate, _CLASS)


def noisy_candidate(candidate: Candidate, times: int = 1) -> Candidate | None:
    """As :func:`widen_candidate`, but every operation errs at random as one in the original's types does, or so many
    times as much. It may not compile where a source leans on conversions that a class does not have."""
    return _in_class(candidate, _NOISY, times)


def _in_class(candidate: Candidate, style: _Style, times: int = 0) -> Candidate | None:
    text = _rewritten(candidate.source, style, _entries(candidate))
    if text is None:
        return None
    header = Path(__file__).with_name("noisy.cuh").read_text(encoding="utf-8")
    noise = f"#define FSR_NOISE {times}\n" if times else ""
    return _planned(candidate, noise + header + _of_whole(text) + text, style)


def _planned(candidate: Candidate, source: str, style: _Style) -> Candidate:
    launches = tuple(_widen_launch(launch, style) for launch in candidate.plan.launches)
    scratch = tuple(replace(s, dtype=_wide_dtype(s.dtype)) for s in candidate.plan.scratch)
    flags = tuple(f for f in candidate.plan.flags if "fast_math" not in f and "maxrregcount" not in f)
    return replace(candidate, source=source, plan=Plan(launches, scratch, flags))


def _widen_launch(launch: Launch, style: _Style) -> Launch:
    args = tuple(replace(a, dtype=_wide_dtype(a.dtype)) if isinstance(a, ScalarArgument) else a for a in launch.args)
    growth = 2 if style is _DOUBLE else 4  # a half becomes four times as large
    shared = "0" if launch.shared_bytes.strip() == "0" else f"{growth} * ({launch.shared_bytes})"
    return replace(launch, args=args, shared_bytes=shared, entry=_rewritten(launch.entry, style) or launch.entry)


def _wide_dtype(dtype: str) -> str:
    return "float64" if dtype in ("float32", "float16", "bfloat16") else dtype


def _entries(candidate: Candidate) -> list[str]:
    return [launch.entry for launch in candidate.plan.launches]


def _rewritten(text: str, style: _Style, entries: Sequence[str] = ()) -> str | None:
    """The text with its tokens widened; None when some token has no wide form, in the text or an entry, or no type was
    to be widened in any."""
    parts, changed = _parts(text, style)
    named = [_parts(entry, style) for entry in entries]
    if parts is None or any(found is None for found, _ in named) or not (changed or any(n for _, n in named)):
        return None
    return "".join(parts)


def _parts(text: str, style: _Style) -> tuple[list[str] | None, bool]:
    parts: list[str] = []
    at, changed = 0, False
    tokens = list(tokenize(text))
    own = {token.text for token in tokens if token.kind == "name"}
    for number, token in enumerate(tokens):
        if token.start < at:  # read already, with those before it
            continue
        if style is not _DOUBLE and _is_of_std(tokens[number : number + 3]):  # the class's own are not of std
            parts.append(text[at : token.start])
            at = tokens[number + 2].start
            continue
        if (constant := _of_bits(tokens[number : number + 4], style)) is not None:
            parts += [text[at : token.start], constant]
            at, changed = tokens[number + 3].end, True
            continue
        if token.kind == "directive":
            inner, inside = _parts(token.text[1:], style)
            new = None if inner is None else "#" + "".join(inner)
            changed |= inside
        else:
            new = _wide_token(token, style)
            # In a function of the file's that is called ``tanh`` it would be that one, which calls itself for ever.
            if token.text in _NAMES and new in own and (not number or tokens[number - 1].text not in _QUALIFIES):
                new = f"::{new}"
        if new is None:
            return None, changed
        changed |= token.text in style.types
        parts += [text[at : token.start], new]
        at = token.end
    return [*parts, text[at:]], changed


def _is_of_std(tokens: Sequence[Token]) -> bool:
    """Whether three tokens call a function of numbers by its name in std, ``std::sqrt``."""
    texts = [token.text for token in tokens]
    return texts[:2] == ["std", "::"] and texts[2:] != [] and (texts[2] in _NAMES or texts[2] in _OF_STD)


def _of_bits(tokens: Sequence[Token], style: _Style) -> str | None:
    """The double of four tokens that make a float of a literal's bits; None where they do not, or not in this style."""
    if len(tokens) < 4 or tokens[0].text not in _OF_BITS:
        return None
    name, opened, bits, closed = (token.text for token in tokens)
    found = _WHOLE_LITERAL.match(bits)
    if (opened, closed) != ("(", ")") or found is None:
        return None
    whole, real, kind = _OF_BITS[name]
    if kind and style is _DOUBLE:
        return None
    narrow = np.array([int(found[1], 0) & (2 ** (8 * int(whole[-1])) - 1)], whole).view(real)
    return f"{kind}(__longlong_as_double(0x{int(narrow.astype('<f8').view('<u8')[0]):x}ll))"


def _wide_token(token: Token, style: _Style) -> str | None:
    if token.kind == "number":
        match = _FLOAT_LITERAL.match(token.text)
        if match is None or (token.text[:2].lower() == "0x" and "p" not in token.text.lower()):
            return token.text
        return match[1] if any(c in match[1] for c in ".eEpP") else match[1] + ".0"
    if token.kind != "name":
        return token.text
    if token.text in style.names:
        return style.names[token.text]
    if token.text == _DIVIDE:
        return "wide_divide"
    if token.text == "__saturatef":
        return "wide_saturate"
    return None if style.refused.match(token.text) else token.text
