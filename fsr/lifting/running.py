"""Values that a running maximum decides on: what either side of the branch does is one sum of powers."""

from __future__ import annotations

from collections import Counter
from typing import Any, Protocol


class Terms(Protocol):
    """What is needed of a graph."""

    terms: list[tuple[Any, ...]]

    def list_of(self, op: str, parts: list[int]) -> int:
        """An associative operation."""

    def op(self, name: str, *args: int) -> int:
        """An operation on terms."""

    def negated(self, a: int) -> int:
        """Minus a term."""

    def exponential(self, a: int) -> int:
        """e to a term."""

    def exponent(self, e: int) -> int | None:
        """What e is raised to in a power of it."""

    def const(self, value: float, dtype: str) -> int:
        """A literal."""

    def is_value(self, e: int, value: float) -> bool:
        """Whether a term is that literal."""


Summand = tuple[tuple[int, ...], int, bool]  # factors that are no powers of e, the whole exponent, whether it is double


def rescaled(g: Terms, condition: tuple[Any, ...], a: int, b: int) -> int | None:
    """``s * exp(m - x) + exp(x - x)`` where x > m, else ``s + exp(x - m)``: with M = max(m, x) both are
    ``s * exp(m - M) + exp(x - M)``. None for sides that are no such sums."""
    if condition[0] not in ("gt", "ge"):
        return None
    _, new, old = condition
    sides = [_summands(g, a, new), _summands(g, b, old)]
    if sides[0] != sides[1] or not any(_has_power(g, e) for e in (a, b)):
        return None
    low = g.negated(g.list_of("max", [new, old]))
    total = []
    for (factors, exponent, wide), count in sides[0].items():
        power = g.exponential(g.list_of("sum", [exponent, low]))
        power = g.op("float64", power) if wide else power
        total += [g.list_of("prod", [power, *factors])] * count
    return g.list_of("sum", total)


def _parts(g: Terms, e: int, op: str) -> list[int]:
    return list(g.terms[e][1]) if g.terms[e][0] == op else [e]


def _has_power(g: Terms, e: int) -> bool:
    return any(g.exponent(f) is not None for k in _parts(g, e, "sum") for f in _parts(g, k, "prod"))


def _summands(g: Terms, e: int, top: int) -> Counter[Summand]:
    """The terms of a sum, each times e to ``top``."""
    found: Counter[Summand] = Counter()
    for k in _parts(g, e, "sum"):
        if g.is_value(k, 0.0):
            continue
        exponents, rest = [top], list[int]()
        wide = g.terms[k][0] == "const" and g.terms[k][2] == "float64"
        for f in _parts(g, k, "prod"):
            power = g.exponent(f)
            if power is not None:
                exponents.append(power)
                wide = wide or g.terms[f][0] == "float64"
            elif not g.is_value(f, 1.0):
                rest.append(f)
        found[tuple(sorted(rest)), g.list_of("sum", exponents), wide] += 1
    return found
