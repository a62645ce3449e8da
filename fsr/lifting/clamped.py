"""Neighbours whose indices stop at the edges, ``x[max(j - 1, 0)]``, or go round, ``x[(j + n - 1) % n]``: at an edge, or
in a narrow buffer, several of them may be one element."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fsr.computation.expression import Affine, Case, Expr, affine
from fsr.lifting.conditions import shifted, value_of
from fsr.lifting.points import Ints, Points

Vector = tuple[int, ...]


@dataclass(frozen=True)
class Neighbour:
    """``offset``: from a sample's own place, an entry an index. ``terms``: which of each sample's terms it is."""

    offset: Vector
    terms: list[int]


def neighbours(points: Points, vectors: Sequence[Sequence[Vector]], own: Ints) -> tuple[list[Neighbour], Ints]:
    """The neighbours, and the highest index at each sample; none where the terms are no such neighbours.
    ``vectors``: of each sample the indices of its terms, as many everywhere; ``own``: its own place, a row a sample."""
    everywhere = np.array(vectors, np.int64)  # samples, terms, indices
    high = np.zeros_like(own)
    for run in np.unique(points.run):
        here = points.run == run
        high[here] = everywhere[here].max((0, 1))
    within = ((everywhere > 0) & (everywhere < high[:, None])).all((1, 2))
    away = [tuple(sorted(map(tuple, row))) for row in (everywhere - own[:, None])[within].tolist()]
    if not away or everywhere.min() < 0:
        return [], high
    offsets: tuple[Vector, ...] = Counter(away).most_common(1)[0][0]
    if len(set(offsets)) < len(offsets):
        return [], high
    ways: tuple[Callable[[Ints, Ints], Ints], ...] = (
        lambda at, end: np.clip(at, 0, end),
        lambda at, end: at % (end + 1),
    )
    for way in ways:
        places = [way(own + np.array(offset), high) for offset in offsets]
        terms = [_matched(row, [tuple(p[n].tolist()) for p in places]) for n, row in enumerate(everywhere.tolist())]
        if all(t is not None for t in terms):
            kept = [t for t in terms if t is not None]
            return [Neighbour(offset, [t[k] for t in kept]) for k, offset in enumerate(offsets)], high
    return [], high


def _matched(vectors: Sequence[Sequence[int]], wanted: Sequence[Vector]) -> list[int] | None:
    """Which of a sample's terms is at each place; None where they are not the same."""
    left, found = list(enumerate(map(tuple, vectors))), list[int]()
    for place in wanted:
        k = next((k for k, (_, vector) in enumerate(left) if vector == place), None)
        if k is None:
            return None
        found.append(left.pop(k)[0])
    return found


def stopping(
    points: Points, names: Sequence[str], one: Neighbour, high: Sequence[Affine], fit: Callable[[Points], Expr]
) -> Expr:
    """A neighbour's value under conditions that say where it leaves its own offset. ``points``: of its terms;
    ``names``: the dimension of each index; ``high``: the highest indices. Raises Refused."""
    c = next((c for c, d in enumerate(one.offset) if d), None)
    if c is None:
        return fit(points)
    d, rest = one.offset[c], Neighbour((*one.offset[:c], 0, *one.offset[c + 1 :]), [])
    right = Affine((), -d - 1) if d < 0 else shifted(high[c], -d)
    hit = points.columns[names[c]] <= value_of(right, points)
    sides = [stopping(points.where(side), names, rest, high, fit) if side.any() else None for side in (hit, ~hit)]
    if None in sides:
        return next(x for x in sides if x is not None)
    assert sides[0] is not None
    assert sides[1] is not None
    return Case(affine(names[c]), right, sides[0], sides[1])
