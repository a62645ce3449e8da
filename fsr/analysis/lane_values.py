"""Numbers across the lanes of a warp, as far as they are known: ``t + 16``, ``t & 31``, ``i * 4`` with any ``i``.

A number is what it is in every thread of a block, plus terms that nobody knows but that all lanes of a warp share.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from math import gcd, prod
from typing import Any

import numpy as np

WARP = 32
Threads = np.ndarray[Any, np.dtype[Any]]  # an entry a thread of a block

_MOST = 1 << 31  # past this an int is another number
_fresh = count()


@dataclass(frozen=True, eq=False)
class Lanes:
    """A number in each thread. ``terms``: names of what is unknown and the same in all lanes of a warp; two numbers
    with the same terms differ by their values. ``step``: what is unknown is a multiple of it; ``natural``: and not
    negative."""

    values: Threads
    terms: tuple[str, ...] = ()
    step: int = 1
    natural: bool = False

    @property
    def known(self) -> bool:
        """Whether the numbers themselves are known."""
        return not self.terms

    def shared(self) -> bool:
        """Whether all lanes of each warp have the same number."""
        rows = self.values.reshape(-1, WARP)
        return bool((rows == rows[:, :1]).all())


Value = Lanes | None  # None: lanes may differ in ways that are not known


def number(value: int, threads: int) -> Lanes:
    """The same known number in every thread."""
    return Lanes(np.full(threads, value, np.int64))


def unknown(threads: int, step: int = 1, *, natural: bool = False) -> Lanes:
    """A number that nobody knows, the same in all lanes of a warp."""
    return Lanes(np.zeros(threads, np.int64), (f"#{next(_fresh)}",), step, natural)


def _shift(of: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: of(a, np.clip(b, 0, 62))


_EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "*": operator.mul, "/": operator.floordiv, "%": operator.mod, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "<<": _shift(operator.lshift), ">>": _shift(operator.rshift),
}  # fmt: skip
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_LOGICAL = ("&&", "||")


def combined(op: str, a: Value, b: Value) -> Value:
    """The result of an operator."""
    if a is None or b is None:
        return None
    threads = len(a.values)
    if op in ("+", "-"):
        values = a.values + b.values if op == "+" else a.values - b.values
        terms = b.terms if op == "+" else tuple(f"-{t}" for t in b.terms)
        step = gcd(*(x.step for x in (a, b) if x.terms))
        natural = all(x.natural or x.known for x in (a, b)) and (op == "+" or b.known)
        return _within(Lanes(values, tuple(sorted((*a.terms, *terms))), step or 1, natural))
    if a.known and b.known and op in _LOGICAL:
        both = np.logical_and if op == "&&" else np.logical_or
        return Lanes(both(a.values != 0, b.values != 0).astype(np.int64))
    plain = a.known and b.known and bool((a.values >= 0).all() and (b.values >= 0).all())
    if plain and op in _COMPARED:
        return Lanes(_COMPARED[op](a.values, b.values).astype(np.int64))
    if plain and op in _EXACT and not (op in ("/", "%") and bool((b.values == 0).any())):
        return _within(Lanes(_EXACT[op](a.values, b.values)))
    if (parted := _parted(op, a, b)) is not None:
        return parted
    if op == "*" and a.shared() and b.shared():
        factors = [abs(int(x.values[0])) if x.known and _one(x) else x.step for x in (a, b)]
        return unknown(threads, max(prod(factors), 1), natural=all(x.natural or x.known for x in (a, b)))
    return unknown(threads) if a.shared() and b.shared() else None


def _one(a: Lanes) -> bool:
    return bool((a.values == a.values[0]).all())


def _parted(op: str, a: Lanes, b: Lanes) -> Value:
    """``i / 32`` and ``i % 32`` of ``i = blockIdx.x * 256 + threadIdx.x``, however it is written: of whole steps and of
    what is known each for itself."""
    if a.known or not b.known or not _one(b) or not a.natural or bool((a.values < 0).any()):
        return None
    by = int(b.values[0])
    by = {">>": 1 << min(max(by, 0), 31), "&": by + 1}.get(op, by)
    if op not in ("/", ">>", "%", "&") or by <= 0 or a.step % by or (op == "&" and by & (by - 1)):
        return None
    if op in ("%", "&"):
        return Lanes(a.values % by)
    return Lanes(a.values // by, unknown(len(a.values)).terms, a.step // by, a.natural)


def _within(a: Lanes) -> Value:
    """None where an int or an unsigned one would have come to something else."""
    return a if bool((abs(a.values) < _MOST).all()) else None


def joined(a: Value, b: Value) -> Value:
    """What holds of a number that is one of two, the same one in all lanes of a warp."""
    if a is None or b is None:
        return None
    if a.terms == b.terms and bool((a.values == b.values).all()):
        return a
    apart = Lanes(a.values - b.values)
    return Lanes(a.values, unknown(len(a.values)).terms) if apart.shared() else None


def alike(a: Value, b: Value) -> bool:
    """Whether two numbers are known equally well: they differ by what all lanes of a warp share."""
    if a is None or b is None:
        return a is b
    return a.known == b.known and Lanes(a.values - b.values).shared()


def collide(a: Value, b: Value, here: Threads, there: Threads) -> bool | None:
    """Whether two lanes of a warp, one of them ``here`` and another ``there``, have the same number; None where that
    cannot be told."""
    if a is None or b is None or a.terms != b.terms:
        return None
    one, other = a.values.reshape(-1, WARP, 1), b.values.reshape(-1, 1, WARP)
    both = here.reshape(-1, WARP, 1) & there.reshape(-1, 1, WARP) & ~np.eye(WARP, dtype=bool)
    return bool(((one == other) & both).any())
