"""Casts between floating types in normal form, and literals of 16 bits that memory holds as integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

_HALVES = ("float16", "bfloat16")


class Terms(Protocol):
    """What is needed of a graph."""

    terms: list[tuple[Any, ...]]
    bfloats: set[int]

    def make(self, *term: Any) -> int:
        """The number of a term."""

    def const(self, value: float, dtype: str) -> int:
        """A literal."""

    def integer(self, value: int, dtype: str) -> int:
        """A whole number."""

    def is_value(self, e: int, value: float) -> bool:
        """Whether a term is that literal."""

    def list_of(self, op: str, parts: Sequence[int]) -> int:
        """An associative operation."""

    def selected(self, c: int, a: int, b: int) -> int:
        """A choice."""


def to_single(g: Terms, a: int) -> int:
    """Casting to float: what was widened before, and the reciprocal root by way of double."""
    x = g.terms[a]
    if x[0] == "float64":
        return int(x[1])
    if x[0] == "div" and g.is_value(x[1], 1.0) and g.terms[x[2]][0] == "sqrt":
        inner = g.terms[g.terms[x[2]][1]]
        if inner[0] == "float64":
            return g.make("rsqrt", inner[1])
        if inner[0] == "int":
            return g.make("rsqrt", g.integer(inner[1], "float32"))
    if x[0] == "int":
        return g.integer(x[1], "float32")
    if x[0] == "const" and x[2] in _HALVES:
        return g.const(x[1], "float32")
    return g.make("float32", a)


def to_double(g: Terms, a: int) -> int:
    """Casting to double: a literal is one of that type."""
    x = g.terms[a]
    return g.const(x[1], "float64") if x[0] == "const" and x[2] == "float32" else g.make("float64", a)


def to_half(g: Terms, a: int, dtype: str) -> int:
    """Casting to 16 bits: what was widened before, also the largest of such values, and a literal of no more digits."""
    kept = _kept(g, a, dtype)
    return g.make(dtype, a) if kept is None else kept


def _kept(g: Terms, a: int, dtype: str) -> int | None:
    """The value of 16 bits that a float is, to the bit; None where it may have more digits."""
    x = g.terms[a]
    if x[0] == "const" and x[2] == "float32" and _is_short(float(x[1]), dtype):
        return g.const(x[1], dtype)
    if x[0] == "float32" and (g.terms[x[1]][0] == dtype or (dtype == "bfloat16" and x[1] in g.bfloats)):
        return int(x[1])
    if x[0] in ("max", "min"):
        parts = [_kept(g, k, dtype) for k in x[1]]
        return None if None in parts else g.list_of(x[0], parts)  # type: ignore[arg-type]
    return None


def _is_short(value: float, dtype: str) -> bool:
    if dtype == "bfloat16":
        return int(np.float32(value).view(np.uint32)) & 0xFFFF == 0
    with np.errstate(over="ignore"):
        return float(np.float16(value)) == value


def as_stored(g: Terms, term: int, dtype: str) -> int:
    """What an element of that type is where a 16-bit integer was stored there: a literal of ``__half`` is its bits."""
    x = g.terms[term]
    if dtype not in _HALVES:
        return term
    if x[0] == "int" and x[2] == "int16":
        bits = np.uint16(int(x[1]) & 0xFFFF)
        value = bits.view(np.float16) if dtype == "float16" else np.uint32(int(bits) << 16).view(np.float32)
        return g.const(float(value), dtype)
    if x[0] == "select":
        sides = [as_stored(g, int(k), dtype) for k in x[2:]]
        return g.selected(int(x[1]), *sides)
    return term
