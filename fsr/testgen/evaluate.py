"""Expressions of a kernel at many values of what they depend on at once, as C computes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsr.source.form import Binary, Call, Cast, Expr, Literal, Member, Name, Ternary, Unary
from fsr.testgen.numbers import constant

Values = NDArray[Any]
Lookup = Callable[[str], Values]
"""The values of a name, or of a member such as ``blockIdx.x``; raises UnknownValueError."""

COMPARED = {"==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater,
            ">=": np.greater_equal}  # fmt: skip
_WHOLE: Mapping[str, Callable[..., Values]] = {
    "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor, "<<": np.left_shift, ">>": np.right_shift,
}  # fmt: skip
_ANY: Mapping[str, Callable[..., Values]] = {"+": np.add, "-": np.subtract, "*": np.multiply}
_CALLS: Mapping[str, Callable[..., Values]] = {
    "min": np.minimum, "max": np.maximum, "abs": np.abs, "__popc": lambda v: _ones(v), "__umul24": np.multiply,
    "__mul24": np.multiply,
}  # fmt: skip
_WORD = np.int64(0xFFFFFFFF)


def _ones(value: Values) -> Values:
    """How many of the low 32 bits are set (as Warren's Hacker's Delight adds them up)."""
    value = value.astype(np.int64) & _WORD
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0x0000FFFF)):
        value = (value & mask) + ((value >> shift) & mask)
    return value


class UnknownValueError(Exception):
    """An expression depends on something that has no known value."""


def evaluated(e: Expr, lookup: Lookup) -> Values:
    """The value of an expression, an array that broadcasts; whole numbers in int64, those that C would take in 32
    unsigned bits wrapped to them. Raises UnknownValueError."""
    try:
        with np.errstate(all="ignore"):
            return _value(e, lookup)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise UnknownValueError(str(error)) from None


def _value(e: Expr, lookup: Lookup) -> Values:
    match e:
        case Name(text):
            return lookup(text)
        case Member(Name(base), name):
            return lookup(f"{base}.{name}")
        case Literal(text):
            return _literal(text)
        case Cast(type_, operand):
            return _cast(type_, _value(operand, lookup))
        case Unary(op, operand):
            return _unary(op, _value(operand, lookup))
        case Binary(op, left, right):
            value = _binary(op, _value(left, lookup), _value(right, lookup))
            return value & _WORD if _unsigned(e) and value.dtype.kind == "i" else value
        case Ternary(test, yes, no):
            return np.where(_value(test, lookup), _value(yes, lookup), _value(no, lookup))
        case Call(Name(name), args) if name in _CALLS:
            return np.asarray(_CALLS[name](*(_value(a, lookup) for a in args))).astype(np.int64)
    raise UnknownValueError(str(e))


def _literal(text: str) -> Values:
    if text in ("true", "false"):
        return np.asarray(text == "true")
    value = constant(text, "")
    if value is not None:
        return np.asarray(value, dtype=np.int64)
    return np.asarray(float(text.rstrip("fFlL")))


def _cast(type_: str, value: Values) -> Values:
    if "float" in type_ or "double" in type_:
        return value.astype(np.float32 if "float" in type_ else np.float64)
    whole = np.trunc(value).astype(np.int64) if value.dtype.kind == "f" else value.astype(np.int64)
    bits = 8 if "char" in type_ else 16 if "short" in type_ else 64 if "long" in type_ or "64" in type_ else 32
    if bits == 64:
        return whole
    low = whole & np.int64((1 << bits) - 1)
    return low if "unsigned" in type_ or "uint" in type_ else np.where(low >> (bits - 1), low - (1 << bits), low)


def _unary(op: str, value: Values) -> Values:
    if op == "!":
        return ~value.astype(bool)
    if op == "~":
        return ~value.astype(np.int64)
    if op == "-":
        return -value
    if op == "+":
        return value
    raise UnknownValueError(op)


def _binary(op: str, left: Values, right: Values) -> Values:
    if op in COMPARED:
        return np.asarray(COMPARED[op](left, right))
    if op in ("&&", "||"):
        joined = np.logical_and if op == "&&" else np.logical_or
        return np.asarray(joined(left, right))
    if left.dtype.kind == "b":
        left = left.astype(np.int64)
    if right.dtype.kind == "b":
        right = right.astype(np.int64)
    if op in _ANY:
        return np.asarray(_ANY[op](left, right))
    if op in ("/", "%"):
        return _divided(op, left, right)
    if op in _WHOLE and "f" not in (left.dtype.kind, right.dtype.kind):
        return np.asarray(_WHOLE[op](left, right & 63 if op in ("<<", ">>") else right))
    raise UnknownValueError(op)


def _divided(op: str, left: Values, right: Values) -> Values:
    if "f" in (left.dtype.kind, right.dtype.kind):
        return np.asarray(left / right)
    safe = np.where(right == 0, 1, right)
    quotient = np.sign(left) * np.sign(safe) * (np.abs(left) // np.abs(safe))
    return quotient if op == "/" else np.asarray(left - quotient * safe)


def _unsigned(e: Binary) -> bool:
    """Whether an operation is done in 32 unsigned bits: one of its literals says so."""
    sides = (e.left, e.right)
    literal = any(isinstance(s, Literal) and s.text[-1:] in "uU" and "l" not in s.text.lower() for s in sides)
    cast = any(isinstance(s, Cast) and s.type.replace("int", "").strip() in ("unsigned", "u32_t") for s in sides)
    inner = any(isinstance(s, Binary) and _unsigned(s) for s in sides)
    return e.op in ("+", "-", "*", "<<") and (literal or cast or inner)
