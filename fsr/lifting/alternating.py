"""Neighbours of which some alternate from row to row, ``x[i, i % 2 ? j + 1 : j - 1]``: on a lattice whose colours are
stored apart, the one beside a point is its left or its right by the row's parity."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fsr.computation.expression import Affine, Expr, Remainder, affine
from fsr.lifting.clamped import Neighbour, Vector, neighbours
from fsr.lifting.points import Ints, Points
from fsr.lifting.refused import Refused
from fsr.lifting.turns import by_turn

_Made = Callable[[Points, Neighbour, Ints], Expr]  # of its terms; with the highest indices at these


def alternating(
    points: Points, by: Sequence[Sequence[int]], vectors: Sequence[Sequence[Vector]], own: Ints, names: Sequence[str],
    made: _Made,
) -> list[Expr]:  # fmt: skip
    """What the terms are, those of one place alike or one on even rows and another on odd ones. ``by``: of each sample
    its terms, ``vectors``: their indices; ``own``: a sample's place, a column each of ``names``. Raises Refused."""
    for name in dict.fromkeys(names):
        odd = points.columns[name] % 2 == 1
        if not odd.any() or odd.all():
            continue
        sides: list[Ints] = [np.flatnonzero(~odd), np.flatnonzero(odd)]
        found = [neighbours(points.where(own_side), [vectors[n] for n in at.tolist()], own[at])
                 for own_side, at in zip((~odd, odd), sides, strict=True)]  # fmt: skip
        if all(known for known, _ in found):
            return _joined(points, by, name, sides, found, made)
    raise Refused("neighbours that do not alternate")


def beside(points: Points, loops: Sequence[str], vectors: Sequence[Sequence[Vector]]) -> list[str]:
    """For each index of the terms the dimension that most are at most one away from; none where two have the same."""
    everywhere = np.array(vectors, np.int64)  # samples, terms, indices
    near = [
        max(loops, key=lambda v, c=c: (abs(everywhere[:, :, c] - points.columns[v][:, None]) <= 1).sum())  # type: ignore[misc]
        for c in (range(everywhere.shape[2]) if loops and everywhere.ndim == 3 else ())
    ]
    return near if len(set(near)) == len(near) else []


def _joined(
    points: Points, by: Sequence[Sequence[int]], name: str, sides: Sequence[Ints],
    found: Sequence[tuple[list[Neighbour], Ints]], made: _Made,
) -> list[Expr]:  # fmt: skip
    (even, high_even), (odd, high_odd) = found
    shared = [(a, next(b for b in odd if b.offset == a.offset)) for a in even if any(b.offset == a.offset for b in odd)]
    rest = [[x for x in own if all(x.offset != a.offset for a, _ in shared)] for own in (even, odd)]
    high = np.concatenate([high_even, high_odd])

    def of(at: Ints, one: Neighbour) -> list[int]:
        return [by[n][k] for n, k in zip(at.tolist(), one.terms, strict=True)]

    both = np.concatenate(sides).tolist()
    parts = [made(points.take(both, [*of(sides[0], a), *of(sides[1], b)]), a, high) for a, b in shared]
    for a, b in zip(*rest, strict=True):
        left, right = (
            made(points.take(at.tolist(), of(at, one)), one, own_high)
            for at, one, own_high in zip(sides, (a, b), (high_even, high_odd), strict=True)
        )
        parts.append(by_turn(Remainder(affine(name), 2), Affine(), left, right))
    return parts
