"""Ends of ranges: polynomials, and the greater or the smaller of such, with an order that is proved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fsr.analysis.polynomial import Poly, constant
from fsr.source.form import Name
from fsr.transform.sizes import always
from fsr.transform.target import Target


@dataclass(frozen=True, slots=True)
class Extreme:
    """The greater ('max') or the smaller ('min') of two ends."""

    op: str
    left: Bound
    right: Bound


Bound = Poly | Extreme
Interval = tuple[Bound, Bound]  # its first and its last number
_OPPOSITE = {"max": "min", "min": "max"}


def plus(bound: Bound, by: Poly) -> Bound:
    """An end moved on."""
    return each(bound, lambda p: p + by)


def each(bound: Bound, change: Callable[[Poly], Poly]) -> Bound:
    """An end with another polynomial for each."""
    if isinstance(bound, Extreme):
        return Extreme(bound.op, each(bound.left, change), each(bound.right, change))
    return change(bound)


def negative(bound: Bound) -> Bound:
    """An end with the other sign."""
    if isinstance(bound, Extreme):
        return Extreme(_OPPOSITE[bound.op], negative(bound.left), negative(bound.right))
    return -bound


def symbols(bound: Bound) -> frozenset[str]:
    """What an end is made of."""
    return symbols(bound.left) | symbols(bound.right) if isinstance(bound, Extreme) else bound.symbols


def is_at_most(target: Target, one: Bound, other: Bound) -> bool:
    """Whether an end is at most another one, whatever the sizes, and what is read within the contract's limits."""

    def parts(bound: Extreme) -> tuple[Bound, Bound]:
        return bound.left, bound.right

    if isinstance(one, Extreme) and one.op == "max":
        return all(is_at_most(target, x, other) for x in parts(one))
    if isinstance(other, Extreme) and other.op == "min":
        return all(is_at_most(target, one, x) for x in parts(other))
    if isinstance(one, Extreme) and any(is_at_most(target, x, other) for x in parts(one)):
        return True
    if isinstance(other, Extreme):
        return any(is_at_most(target, one, x) for x in parts(other))
    return not isinstance(one, Extreme) and _is_positive(target, other - one)


def _is_positive(target: Target, value: Poly) -> bool:
    """Whether a sum is never below zero."""
    if value.value is not None:
        return value.value >= 0
    texts = []
    for names, count in value.terms:
        side = "low" if count > 0 else "high"
        own = [target.limit(Name(n), side) if len(names) == 1 else target.size_text(Name(n)) for n in names]
        if None in own:
            return False
        texts.append(" * ".join([f"({count})", *(f"({text})" for text in own)]))
    return always(target.contract, f"({' + '.join(texts)}) >= 0")


def covers(target: Target, of: Interval, by: list[Interval]) -> bool:
    """Whether ranges hold all numbers of another one, one going on where another ends."""
    first, last = of
    if is_at_most(target, plus(last, constant(1)), first):
        return True
    return any(
        covers(target, (plus(ends[1], constant(1)), last), by[:n] + by[n + 1 :])
        for n, ends in enumerate(by) if is_at_most(target, ends[0], first)
    )  # fmt: skip
