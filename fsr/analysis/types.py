"""The arithmetic type of an expression, as far as it can be told: what fast-math and vector rewrites must know."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from fsr.hardware.c_types import BY_SPELLING
from fsr.source.form import Binary, Call, Cast, Expr, Index, Literal, Member, Name, Ternary, Unary
from fsr.source.types import aliases, plain_type
from fsr.source.walk import walk_expr

__all__ = [
    "DOUBLE", "FLOAT", "FLOATING", "INT", "aliases", "bare", "integer_bytes", "is_integer",
    "mentions_double", "number_type", "resolved", "type_of",
]  # fmt: skip

INT, FLOAT, DOUBLE = "int", "float", "double"
FLOATING = frozenset([FLOAT, DOUBLE])
_ORDER = (INT, FLOAT, DOUBLE)
# Functions of a floating number, or of several, whose result is of the widest one's type; of whole numbers a double.
_OVERLOADED = frozenset([
    "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt", "rcbrt", "fabs", "sin",
    "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "erf", "erfc", "floor", "ceil", "rint", "round",
    "trunc", "pow", "atan2", "fmax", "fmin", "fmod", "hypot", "fma",
])  # fmt: skip


def bare(type_: str) -> str:
    """A type without const, restrict, stars and blanks at its ends."""
    text = re.sub(r"\b(const|volatile|__restrict__|__restrict)\b|[*&]", " ", type_)
    return " ".join(text.split())


@lru_cache(maxsize=256)
def integer_bytes(type_: str) -> int | None:
    """Bytes of an integer type in any spelling (``const long unsigned int``, ``std::size_t``); None for all others."""
    if "*" in type_ or "&" in type_:
        return None
    known = BY_SPELLING.get(plain_type(type_, {}))
    return known.bytes if known is not None and "int" in known.dtype else None


def is_integer(type_: str) -> bool:
    """Whether a type holds every index: an integer of at least 32 bits. (A ``char`` or ``bool`` made from an index is
    another number.)"""
    return (integer_bytes(type_) or 0) >= 4


def resolved(type_: str, names: Mapping[str, str]) -> str:
    """The bare type with aliases looked up, in its usual spelling."""
    return plain_type(bare(type_), names)


def number_type(type_: str, names: Mapping[str, str]) -> str:
    """The same, a number's as fsr writes it: ``unsigned long long`` for a ``uint64_t``."""
    plain = resolved(type_, names)
    known = BY_SPELLING.get(plain)
    return plain if known is None else known.spelling


def _kind(type_: str) -> str | None:
    if type_ in (FLOAT, DOUBLE):
        return type_
    return INT if integer_bytes(type_) is not None or type_ == "bool" else None


def type_of(e: Expr, types: Mapping[str, str], names: Mapping[str, str]) -> str | None:
    """'int' (any integer), 'float', 'double', or None when it cannot be told. ``types``: of variables, as
    declared; ``names``: aliases."""
    match e:
        case Literal(text):
            return _literal(text)
        case Name(text):
            type_ = types.get(text)
            return None if type_ is None or "*" in type_ else _kind(resolved(type_, names))
        case Index(Name(text), _) | Unary("*", Name(text)):
            type_ = types.get(text)
            return None if type_ is None else _kind(resolved(type_, names))
        case Member(Name("threadIdx" | "blockIdx" | "blockDim" | "gridDim"), _):
            return INT
        case Cast(type_, _):
            return None if "*" in type_ else _kind(resolved(type_, names))
        case Unary("-" | "+", operand):
            return type_of(operand, types, names)
        case Binary("+" | "-" | "*" | "/", left, right) | Ternary(_, left, right):
            return _wider(type_of(left, types, names), type_of(right, types, names))
        case Binary("%" | "<<" | ">>" | "&" | "|" | "^" | "<" | ">" | "<=" | ">=" | "==" | "!=" | "&&" | "||", _, _):
            return INT
        case Call(Name(text), args):
            return _call(text, args, types, names)
    return None


def _literal(text: str) -> str | None:
    if re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*", text):
        return INT
    if re.fullmatch(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fF]", text):
        return FLOAT
    return DOUBLE if re.fullmatch(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text) else None


def _call(text: str, args: tuple[Expr, ...], types: Mapping[str, str], names: Mapping[str, str]) -> str | None:
    kind = _kind(resolved(text, names))
    if kind is not None:
        return kind
    if re.fullmatch(r"(exp|exp2|exp10|log|log2|log10|sqrt|rsqrt|fabs|fmax|fmin|fma|pow|sin|cos|tan|tanh|erf)f", text):
        return FLOAT
    if re.fullmatch(r"__(exp|log|log2|log10|pow|sin|cos|fdivide)f|__frsqrt_rn|__fdividef|__half2float", text):
        return FLOAT
    if text in ("__ldg", "__ldcs", "__ldcg", "__ldca") and len(args) == 1 and isinstance(args[0], Unary):
        return type_of(args[0].operand, types, names)
    if text.removeprefix("std::") in _OVERLOADED:
        found = [type_of(a, types, names) for a in args]
        widest = DOUBLE if INT in found else max((k for k in found if k is not None), key=_ORDER.index, default=None)
        return None if None in found else widest
    if text in ("min", "max", "abs"):
        kinds = [type_of(a, types, names) for a in args]
        return kinds[0] if len(set(kinds)) == 1 else None
    return None


def _wider(a: str | None, b: str | None) -> str | None:
    return None if a is None or b is None else max(a, b, key=_ORDER.index)


def mentions_double(e: Expr, types: Mapping[str, str], names: Mapping[str, str]) -> bool:
    """Whether any part of the expression is of type double."""
    return any(type_of(x, types, names) == DOUBLE for x in walk_expr(e))
