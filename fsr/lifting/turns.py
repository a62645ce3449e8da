"""Periods along a dimension, of lengths of the source's own: the first of every eight in a tile, rows of one colour.
Where a computation differs from the original tells which there are, and what to look at to know them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fsr.computation.expression import Affine, Case, Expr, Load, Number, Op, Remainder, affine, distinct, names_in
from fsr.lifting.points import Mask, Points

Turn = tuple[Remainder, Affine, Mask]  # where what is left is at most a number, and which samples that holds for
Place = tuple[int, ...]
Rates = np.ndarray[Any, np.dtype[np.float64]]
_PERIODS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 24, 32, 64, 128)
_OFTEN = 1.25  # times as often as elsewhere, elements of one place in a period differ
_EXPLAINED = 0.6  # of how the rate of differences varies along a dimension
_FEWEST_TURNS = 2  # periods that are seen whole along a dimension
_MOST_CELLS = 480  # elements looked at, for a period


def turns(points: Points, loops: Sequence[str]) -> Iterator[Turn]:
    """Conditions that some samples meet and some do not: a dimension is first in its period, or not last."""
    for name, by in itertools.product(loops, points.turns):
        column = points.columns[name]
        for most in dict.fromkeys((0, by - 2)):
            hit = column % by <= most
            if all(len(np.unique(column[side] // by)) >= _FEWEST_TURNS for side in (hit, ~hit)):
                yield Remainder(affine(name), by), Affine((), most), hit


def by_turn(left: Remainder, right: Affine, yes: Expr, no: Expr) -> Expr:
    """``yes`` where what is left of a dimension is at most a number, else ``no``. A comparison of numbers, beneath one
    of the dimension itself where ``no`` reads what lies before: there nobody reads outside of a buffer."""
    ((name, _),) = left.value.terms
    beyond = Op("gt", (Number(left, "int32"), Number(right, "int32")))
    found = yes if yes == no else Op("select", (beyond, no, yes))
    before = any(_before(i, name) for e in distinct(no) if isinstance(e, Load) for i in e.indices)
    return Case(affine(name), right, yes, found) if before and found != yes else found


def _before(index: Expr, name: str) -> bool:
    """Whether an index may lie before a dimension: behind it, or at another, nothing is at its beginning."""
    match index:
        case Number(Affine(terms, constant)):
            return constant < 0 and name in dict(terms)
    return name in names_in(index)


def periods(differs: Mask) -> tuple[int, ...]:
    """The periods along some dimension at one place of which elements differ more often than at others: of each
    dimension the one that tells most. ``differs``: shaped as the output."""
    found = dict[int, None]()
    for d, length in enumerate(differs.shape):
        rates = differs.mean(tuple(k for k in range(differs.ndim) if k != d))
        best = max(((_told(rates, by), -by) for by in _PERIODS if by * _FEWEST_TURNS <= length), default=(0.0, 0))
        if best[0] > 0:
            found[-best[1]] = None
    return tuple(sorted(found))


def _told(rates: Rates, by: int) -> float:
    """Which share of how the rate of differences varies one place in a period tells, where more differs there; 0 where
    that is little. The first period is left out: its first elements lie at an edge."""
    rest, place = rates[by:], np.arange(by, len(rates)) % by
    best = 0.0
    for p in range(by):
        here = place == p
        if min(here.sum(), (~here).sum()) < _FEWEST_TURNS or rest[here].mean() <= _OFTEN * rest[~here].mean():
            continue
        between = here.mean() * (~here).mean() * (rest[here].mean() - rest[~here].mean()) ** 2
        best = max(best, float(between / rest.var()))
    return best if best >= _EXPLAINED else 0.0


def cells_about_turns(shape: Sequence[int], by: Sequence[int]) -> list[Place]:
    """Elements on either side of the ends of periods, some of the many there are, and all about corners."""
    along, edges = [], []
    for length in shape:
        ends = {k * p + more for p in by for k in range(1, 5) for more in (-1, 0, 1)}
        edges.append(sorted({0, 1, length - 2, length - 1} & set(range(length))))
        along.append(sorted({*edges[-1], length // 2, *(e for e in ends if e < length)} & set(range(length))))
    every = list(itertools.product(*along))
    if len(every) <= _MOST_CELLS:
        return every
    some = (every[n] for n in np.random.default_rng(3).choice(len(every), _MOST_CELLS, replace=False))
    return sorted({*itertools.product(*edges), *some})
