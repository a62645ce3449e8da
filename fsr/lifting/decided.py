"""Comparisons that come out one way for all finite data, by the form of what is compared: whether a part of an online
softmax is empty, ``if (s == 0) return``, ``m == -INFINITY ? 0 : exp(m - m_new)``, once something is in it.

A sum is greater than nought in floating-point arithmetic too where it has e to ``x - M`` of every x that M is the
largest of: one of these is 1. A power alone may be too small for a number, so that nothing is said of it."""

from __future__ import annotations

import math
import operator
from collections.abc import Container
from typing import Any, Protocol

from fsr.lifting.places import HUGE

_WIDE = ("float32", "float64")  # casts to these make nought of no sum that has a 1 in it
COMPARED = {"gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne}
_GREATER = {"gt": True, "ge": True, "ne": True, "eq": False}


class Terms(Protocol):
    """What is needed of a graph."""

    terms: list[tuple[Any, ...]]
    infinite: set[str]

    def exponent(self, e: int) -> int | None:
        """What e is raised to in a power of it."""

    def list_of(self, op: str, parts: list[int]) -> int:
        """An associative operation."""

    def is_value(self, e: int, value: float) -> bool:
        """Whether a term is that literal."""

    def is_bound(self, e: int, sign: int = 0) -> bool:
        """Whether a term is a literal that no value lies beyond."""


class Decided:
    """What is known of a graph's terms, kept."""

    def __init__(self, graph: Terms) -> None:
        self.graph = graph
        self._positive: dict[int, bool] = {}
        self._within: dict[int, bool] = {}

    def outcome(self, name: str, a: int, b: int) -> bool | None:
        """What a comparison with nought, or with what an extreme begins with, always is; None where that depends."""
        known = self.graph.terms[a], self.graph.terms[b]
        if all(x[0] in ("const", "int") for x in known):
            return bool(COMPARED[name](known[0][1], known[1][1]))
        (low, high), (least, most) = self.places(a), self.places(b)
        if low > most:
            return _GREATER[name]
        if high < least:
            return name == "ne"
        if self.is_greater(a, b):
            return _GREATER[name]
        if self.is_greater(b, a):
            return name == "ne"
        return None

    def places(self, e: int) -> tuple[float, float]:
        """Between which numbers a place of an extreme lies, or a number; anywhere for what is neither."""
        x = self.graph.terms[e]
        if x[0] == "int":
            return x[1], x[1]
        if x[0] in ("argmax", "argmin"):
            ends = [self.places(int(self.graph.terms[p][2])) for p in x[1]]
            return min(low for low, _ in ends), max(high for _, high in ends)
        return -math.inf, math.inf

    def is_greater(self, a: int, b: int) -> bool:
        """Whether a term is greater than another, one of which is nought or a bound."""
        g = self.graph
        if g.is_value(b, 0.0):
            return self.is_positive(a)
        if g.is_bound(b, -1):
            return self.is_within(a)
        x = g.terms[b]
        if not g.is_bound(a, 1):
            return False
        # That an element's magnitude is infinite is asked for its own sake.
        return self.is_within(int(x[1])) and g.terms[x[1]][0] == "max" if x[0] == "fabs" else self.is_within(b)

    def is_positive(self, e: int) -> bool:
        """Whether a term is greater than nought, by its form."""
        if e not in self._positive:
            self._positive[e] = self._is_positive(e)
        return self._positive[e]

    def _is_positive(self, e: int) -> bool:
        x = self.graph.terms[e]
        match x[0]:
            case "const":
                return bool(x[1] > 0)
            case "sum":
                some = any(map(self.is_positive, x[1])) or self._has_largest(x[1])
                return some and all(map(self._is_no_less, x[1]))
            case "max":
                return any(map(self.is_positive, x[1]))
            case "prod" | "min":
                return all(map(self.is_positive, x[1]))
            case "div" | "select":
                return all(map(self.is_positive, x[-2:]))
            case "sqrt" | "rsqrt" | "inv":
                return self.is_positive(int(x[1]))
        return x[0] in _WIDE and self.is_positive(int(x[1]))

    def _is_no_less(self, e: int) -> bool:
        """Whether a term is a power, or greater than nought, or a product of such."""
        x = self.graph.terms[e]
        if x[0] == "prod":
            return all(map(self._is_no_less, x[1]))
        return self.graph.exponent(e) is not None or self.graph.is_value(e, 0.0) or self.is_positive(e)

    def _has_largest(self, parts: tuple[int, ...]) -> bool:
        """Whether among these are powers of all x - M where M is the largest x."""
        g, found = self.graph, dict[int, set[int]]()
        for power in map(g.exponent, parts):
            x = g.terms[power] if power is not None else ("",)
            for k in x[1] if x[0] == "sum" else ():
                y = g.terms[k]
                if y[0] == "neg" and g.terms[y[1]][0] == "max" and self.is_within(int(y[1])):
                    rest = list(x[1])
                    rest.remove(k)
                    found.setdefault(int(y[1]), set()).add(g.list_of("sum", rest))
        return any(set(g.terms[largest][1]) <= own for largest, own in found.items())

    def is_within(self, e: int) -> bool:
        """Whether a term is an element that the contract has finite, or an extreme of such."""
        if e not in self._within:
            x = self.graph.terms[e]
            below = x[1] if x[0] in ("max", "min") else (x[1],) if x[0] in (*_WIDE, "neg") else ()
            self._within[e] = all(map(self.is_within, below)) if below else _is_finite(x, self.graph.infinite)
        return self._within[e]


def _is_finite(x: tuple[Any, ...], infinite: Container[str]) -> bool:
    return x[1] not in infinite if x[0] == "load" else bool(x[0] == "const" and abs(x[1]) < HUGE)
