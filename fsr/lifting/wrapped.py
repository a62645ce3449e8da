"""Indices that go round where they leave a row, by conditions: ``if (x < 0) x += n; if (x > n - 1) x -= n``, in steps
of any length, and round a period that is longer than the row, whose last element then stands for those behind it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsr.computation.expression import Affine, Case, Expr, Number
from fsr.lifting.conditions import value_of
from fsr.lifting.points import Ints, Points, affine_fit

_FEWEST = 8  # samples between the ends, beside those at each dimension's steps
_FEWEST_RUNS = 3  # that tell a period by a size


def wrapped(points: Points, values: Ints, sizes: Sequence[str], dtype: str) -> Expr | None:
    """The values as affine from nought to an end that sizes tell, and beyond it by a period more or less; None where
    they are no such."""
    inner, last = _inner(points, values, sizes), _of_size(points, _highest(points, values), sizes)
    if inner is None or last is None or values.min() < 0:
        return None
    there, end = value_of(inner, points), value_of(last, points)
    below, beyond = there < 0, there > end
    if not (values == there)[~below & ~beyond].all() or (~below & ~beyond).sum() < _FEWEST:
        return None
    round_ = (below | beyond) & (values != end)
    if not round_.any():
        return None
    period = _period(points.where(round_), np.abs(values - there)[round_], sizes)
    if period is None:
        return None
    length = value_of(period, points)
    on = np.where(below, there + length, np.where(there >= length, there - length, there))
    if (length <= end).any() or not (np.minimum(on, end) == values).all():
        return None
    value = _stopped(inner, last, dtype, bool((beyond & (there < length)).any()))
    if (there >= length).any():
        value = Case(period, inner, Number(_sum(inner, period, -1), dtype), value)
    if not below.any():
        return value
    back = _stopped(_sum(inner, period, 1), last, dtype, bool((below & (on > end)).any()))
    return Case(inner, Affine((), -1), back, value)


def _stopped(at: Affine, last: Affine, dtype: str, stops: bool) -> Expr:
    """A place, or the last one where that is before it."""
    return Case(last, at, Number(last, dtype), Number(at, dtype)) if stops else Number(at, dtype)


def _sum(a: Affine, b: Affine, sign: int) -> Affine:
    terms = dict(a.terms)
    for name, k in b.terms:
        terms[name] = terms.get(name, 0) + sign * k
    return Affine(tuple(sorted((n, k) for n, k in terms.items() if k)), a.constant + sign * b.constant)


def _inner(points: Points, values: Ints, sizes: Sequence[str]) -> Affine | None:
    """What most steps along each dimension go on by, from where most samples begin."""
    loops = [n for n, c in points.columns.items() if n not in sizes and (c != c[0]).any()]
    steps = {name: _step(points, values, name, loops) for name in loops}
    kept = {name: step for name, step in steps.items() if step}
    if not kept or None in steps.values():
        return None
    rest = values - sum((points.columns[n] * k for n, k in kept.items()), np.zeros_like(values))
    begin = np.zeros_like(values)
    for run in np.unique(points.run):
        begin[points.run == run] = _most(rest[points.run == run])
    found = _of_size(points, begin, sizes)
    return None if found is None else _sum(Affine(tuple(sorted(kept.items()))), found, 1)


def _step(points: Points, values: Ints, name: str, loops: Sequence[str]) -> int | None:
    """What a value mostly changes by from a place of a dimension to the next; None where no two are neighbours."""
    columns = [points.run, *(points.columns[n] for n in loops if n != name), points.columns[name]]
    order = np.lexsort(columns[::-1])
    moved = np.stack([c[order] for c in columns])
    gaps = np.diff(moved, axis=1)
    next_to = (gaps[:-1] == 0).all(axis=0) & (gaps[-1] == 1)
    return _most(np.diff(values[order])[next_to]) if next_to.any() else None


def _most(values: Ints) -> int:
    """The value that comes most often."""
    found, counts = np.unique(values, return_counts=True)
    return int(found[counts.argmax()])


def _highest(points: Points, values: Ints) -> Ints:
    high = np.zeros_like(values)
    for run in np.unique(points.run):
        high[points.run == run] = values[points.run == run].max()
    return high


def _period(points: Points, values: Ints, sizes: Sequence[str]) -> Affine | None:
    """A length that one size tells, as each run shows one of its own. Few runs would fit several sizes by chance."""
    if len(np.unique(points.run)) < _FEWEST_RUNS:
        return None
    return _of_size(points, values, sizes)


def _of_size(points: Points, values: Ints, sizes: Sequence[str]) -> Affine | None:
    """A number, or one size's multiple with a number added."""
    for some in ([], *([s] for s in sizes if s in points.columns)):
        own = Points({s: points.columns[s] for s in some}, points.run, points.terms)
        found = affine_fit(own, values, some)
        if found is not None:
            return Affine(tuple(sorted(found[0].items())), found[1])
    return None
