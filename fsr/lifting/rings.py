"""Indices of a place and a step in a window at the ends of a row: round a ring, ``x[(i + k - r + n) % n]``, or
stopped at its ends, ``x[min(max(i + k - r, 0), n - 1)]``."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from fsr.computation.expression import Affine, Case, Expr, Number, Remainder
from fsr.lifting.conditions import value_of
from fsr.lifting.points import Ints, Points, affine_fit
from fsr.lifting.refused import Refused

_MOST = 2  # dimensions that move along one ring: a place, and a step from it
_FEWEST = 8  # samples between the ends
_SIGNS = {n: list(itertools.product((1, -1), repeat=n)) for n in range(1, _MOST + 1)}


def on_ring(points: Points, values: Ints, sizes: Sequence[str]) -> Remainder:
    """Values that are a sum of dimensions and something made of sizes, round a size. Raises Refused."""
    loops = [n for n in points.columns if n not in sizes]
    there = [n for n in sizes if n in points.columns]  # those that are told of every element alike
    for by, count in itertools.product(there, range(1, _MOST + 1)):
        length = points.columns[by]
        if np.any(length <= 0) or np.any(values >= length) or np.any(values < 0):
            continue
        for names, signs in itertools.product(itertools.combinations(loops, count), _SIGNS[count]):
            moved = sum(sign * points.columns[n] for n, sign in zip(names, signs, strict=True))
            found = _of_sizes(points, (values - moved) % length, length, sizes)
            if found is not None:
                terms = {**dict(zip(names, signs, strict=True)), **found[0]}
                return Remainder(Affine(tuple(sorted(terms.items())), found[1]), by)
    raise Refused("an index is neither affine nor a remainder or quotient")


def stopped(points: Points, values: Ints, sizes: Sequence[str], dtype: str) -> Expr | None:
    """Values that are affine from nought to what sizes tell, and stop there; None where they are no such."""
    high = np.zeros_like(values)
    for run in np.unique(points.run):
        high[points.run == run] = values[points.run == run].max()
    within, end = (values > 0) & (values < high), affine_fit(points, high, sizes)
    if values.min() != 0 or end is None or not set(end[0]) <= set(sizes) or within.sum() < _FEWEST:
        return None
    found = affine_fit(points.where(within), values[within], sizes)
    if found is None or set(found[0]) <= set(sizes):
        return None
    inner, last = (Affine(tuple(sorted(x[0].items())), x[1]) for x in (found, end))
    there = value_of(inner, points)
    if not (np.clip(there, 0, high) == values).all():
        return None
    value: Expr = Number(inner, dtype)
    if (there > high).any():
        value = Case(last, inner, Number(last, dtype), value)
    return Case(inner, Affine(), Number(Affine(), dtype), value) if (there < 0).any() else value


def _of_sizes(points: Points, rest: Ints, length: Ints, sizes: Sequence[str]) -> tuple[dict[str, int], int] | None:
    """What is left as affine in sizes, forwards or backwards on the ring; None where it is not."""
    if any(len(set(rest[points.run == r].tolist())) > 1 for r in set(points.run.tolist())):
        return None
    for way in (rest, rest - length):
        found = affine_fit(points, way, sizes)
        if found is not None and set(found[0]) <= set(sizes):
            return found
    return None
