"""Means and squared deviations that are kept up to date element by element, or joined of two parts, as what they are.

Welford's recurrence (Technometrics 1962): ``m += (x - m) / n; s += (x - m_before) * (x - m)``. Of two parts, as Chan,
Golub and LeVeque join them (1979): ``m = a/n * m_a + b/n * m_b; s = s_a + s_b + (m_b - m_a)**2 * a * b / n``.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Protocol

_NEAR = 1e-5  # relative, of factors that were rounded to float
_MOST = 48  # elements: beyond, the deviations of every update are too many


class Terms(Protocol):
    """What is needed of a graph."""

    terms: list[tuple[Any, ...]]

    def list_of(self, op: str, parts: list[int]) -> int:
        """An associative operation."""

    def negated(self, a: int) -> int:
        """Minus a term."""

    def integer(self, value: int, dtype: str) -> int:
        """A whole number."""

    def divided(self, a: int, b: int) -> int:
        """A quotient."""


def collected(g: Terms, flat: list[int]) -> int | None:
    """A sum that is such an update: the mean of all elements, or the sum of their squared deviations. None for
    another."""
    kinds = {g.terms[k][0] for k in flat}
    if len(flat) == 2 and kinds & {"div", "prod"}:
        found = _next_mean(g, flat) or _joint_mean(g, flat)
        if found is not None:
            return found
    return _all_squares(g, flat) if "prod" in kinds and len(flat) <= _MOST else None


def _parts(g: Terms, e: int, op: str = "sum") -> list[int]:
    return list(g.terms[e][1]) if g.terms[e][0] == op else [e]


def _number(g: Terms, e: int) -> float | None:
    return float(g.terms[e][1]) if g.terms[e][0] in ("int", "const") else None


def _without(g: Terms, e: int, m: int) -> list[int] | None:
    """The operands of a sum that m is taken from, less it."""
    left = Counter(_parts(g, e))
    taken = Counter(_parts(g, g.negated(m)))
    return None if taken - left else list((left - taken).elements())


def _mean_of(g: Terms, e: int) -> tuple[list[int], int]:
    """The elements that a term is the mean of, and how many they are: itself alone where it is none."""
    x = g.terms[e]
    count = _number(g, int(x[2])) if x[0] == "div" else None
    if count is None or count < 2 or count != int(count) or len(_parts(g, int(x[1]))) % int(count):
        return _parts(g, e), 1
    return _parts(g, int(x[1])), int(count)


def _mean(g: Terms, elements: list[int], count: int) -> int:
    return g.divided(g.list_of("sum", elements), g.integer(count, "float32"))


def _next_mean(g: Terms, flat: list[int]) -> int | None:
    """``m + (x - m) / n``."""
    for change, m in (flat, flat[::-1]):
        share = _share(g, change)
        if share is None:
            continue
        elements, count = _mean_of(g, m)
        new = _without(g, share[0], m)
        if new and count + 1 == share[1]:
            return _mean(g, elements + new, count + 1)
    return None


def _share(g: Terms, e: int) -> tuple[int, int] | None:
    """A term divided by a whole number, or times one over it."""
    x = g.terms[e]
    if x[0] == "div":
        number = _number(g, int(x[2]))
        return (int(x[1]), int(number)) if number is not None and number >= 2 and number == int(number) else None
    factor, rest = _scaled(g, e)
    if x[0] != "prod" or len(rest) != 1 or not 0 < factor < 0.51 or not _near(1 / factor, round(1 / factor)):
        return None
    return rest[0], round(1 / factor)


def _scaled(g: Terms, e: int) -> tuple[float, list[int]]:
    """The numbers in a product as one, and its other factors."""
    parts = _parts(g, e, "prod")
    numbers = [(k, _number(g, k)) for k in parts]
    return math.prod(n for _, n in numbers if n is not None), [k for k, n in numbers if n is None]


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= _NEAR * abs(b)


def _joint_mean(g: Terms, flat: list[int]) -> int | None:
    """``a / n * m_a + b / n * m_b``."""
    sides = [_scaled(g, k) for k in flat]
    if any(len(rest) != 1 for _, rest in sides):
        return None
    means = [_mean_of(g, rest[0]) for _, rest in sides]
    count = means[0][1] + means[1][1]
    if not all(_near(factor, own / count) for (factor, _), (_, own) in zip(sides, means, strict=True)):
        return None
    return _mean(g, means[0][0] + means[1][0], count)


def _all_squares(g: Terms, flat: list[int]) -> int | None:
    """``s + (x - m_before) * (x - m)`` or ``s_a + s_b + (m_b - m_a)**2 * a * b / n``, one update after the other."""
    updates = sorted(((len(u[2]), k, u) for k in dict.fromkeys(flat) if (u := _update(g, k))), key=lambda u: u[:2])
    left, changed = Counter(flat), False
    for _, e, (before, mean, elements) in updates:
        wanted = Counter(s for m, own in before for s in _squares(g, own, m)) + Counter([e])
        if not wanted - left:
            left = left - wanted + Counter(_squares(g, elements, mean))
            changed = True
    return g.list_of("sum", list(left.elements())) if changed else None


def _update(g: Terms, e: int) -> Found | None:
    factor, sides = _scaled(g, e)
    if g.terms[e][0] != "prod" or len(sides) != 2 or any(g.terms[s][0] != "sum" for s in sides):
        return None
    return _joined(g, factor, sides) if sides[0] == sides[1] else _added(g, factor, sides)


Found = tuple[list[tuple[int, list[list[int]]]], int, list[list[int]]]  # means before and their elements; all's


def _squares(g: Terms, elements: list[list[int]], mean: int) -> list[int]:
    if len(elements) < 2:
        return []
    off = [g.list_of("sum", [*e, g.negated(mean)]) for e in elements]
    return [g.list_of("prod", [d, d]) for d in off]


def _apart(elements: list[int], count: int) -> list[list[int]] | None:
    """One element each; None where elements are sums, whose parts nobody can tell apart."""
    return [[e] for e in elements] if len(elements) == count else None


def _added(g: Terms, factor: float, sides: list[int]) -> Found | None:
    for old, new in (sides, sides[::-1]):
        for part in _parts(g, new):
            mean = g.negated(part)
            elements, count = _mean_of(g, mean)
            x = _without(g, new, mean)
            each = _apart(elements, count)
            if factor != 1.0 or each is None or x is None or len(x) != 1 or x not in each:
                continue
            left = [e for e in each if e != x]
            before = _mean(g, [e[0] for e in left], count - 1) if count > 2 else left[0][0]
            if g.list_of("sum", [*x, g.negated(before)]) == old:
                return [(before, left)], mean, each
    return None


def _joined(g: Terms, factor: float, sides: list[int]) -> Found | None:
    parts = _parts(g, sides[0])
    if len(parts) != 2:
        return None
    negative = [k for k in parts if g.terms[k][0] == "neg"]
    if len(negative) != 1:
        return None
    means = [g.negated(negative[0]), next(k for k in parts if k != negative[0])]
    known = [_mean_of(g, m) for m in means]
    count = known[0][1] + known[1][1]
    own = [_apart(*k) for k in known]
    if not _near(factor, known[0][1] * known[1][1] / count) or own[0] is None or own[1] is None:
        return None
    both = own[0] + own[1]
    return list(zip(means, [own[0], own[1]], strict=True)), _mean(g, [e[0] for e in both], count), both
