"""Whole numbers with a product in them: indices that go by a step whose length is a size (``x[step * i + k]``, a
window's place where its stride is an argument), and counts of elements along several dimensions (``batch * height``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from fsr.computation.expression import Affine, Expr, Number, Op
from fsr.lifting.conditions import value_of
from fsr.lifting.points import Ints, Points, affine_fit

_FEWEST = 12  # samples: of fewer one product or another fits what is none
_FEWEST_COUNTS = 3  # different ones, of which one product with its two numbers tells all
_MOST_FACTORS = 4


def by_steps(points: Points, values: Ints, sizes: Sequence[str], dtype: str) -> Expr | None:
    """The values as a size times a dimension, and what is affine beside; None where they are no such."""
    loops = [n for n, c in points.columns.items() if n not in sizes and (c != c[0]).any()]
    if len(values) < _FEWEST or not _straight(points, loops, values):
        return None
    steps = [n for n in sizes if n in points.columns and n.isidentifier() and len(np.unique(points.columns[n])) > 1]
    products = {f"{s} * {d}": (s, d) for d in loops for s in steps}
    columns = {n: c for n, c in points.columns.items() if n.isidentifier()}
    columns |= {name: points.columns[s] * points.columns[d] for name, (s, d) in products.items()}
    found = affine_fit(Points(columns, points.run, points.terms), values, [*sizes, *products])
    if found is None:
        return None
    terms, constant = found
    (name,) = (n for n in terms if n in products)
    size, dim = products[name]
    parts = (Number(Affine(((size, 1),)), dtype), Number(Affine(((dim, terms[name]),)), dtype))
    rest = Affine(tuple(sorted((n, k) for n, k in terms.items() if n != name)), constant)
    product = Op("prod", parts)
    return Op("sum", (product, Number(rest, dtype))) if rest != Affine() else product


def by_count(points: Points, values: Ints, sizes: Sequence[str], dtype: str) -> Expr | None:
    """The values as a product of sizes, times a whole number and with another added (``rows * columns - 1``); None
    where they are no such."""
    names = [n for n in sizes if n in points.columns and n.isidentifier() and (c := points.columns[n]).max() > c.min()]
    _, first = np.unique(np.stack([points.columns[n] for n in names] or [values]), axis=1, return_index=True)
    if len(np.unique(values[first])) < _FEWEST_COUNTS:
        return None
    for count in range(2, min(len(names), _MOST_FACTORS) + 1):
        for chosen in itertools.combinations(names, count):
            product = np.prod([points.columns[n] for n in chosen], axis=0)
            found = affine_fit(Points({"product": product}, points.run, points.terms), values, ["product"])
            if found is not None:
                return _as_product(chosen, found[0]["product"], found[1], dtype)
    return None


def _as_product(sizes: Sequence[str], times: int, more: int, dtype: str) -> Expr:
    first, *rest = sizes
    product = Op("prod", tuple(Number(Affine(((n, k),)), dtype) for n, k in [(first, times), *((n, 1) for n in rest)]))
    return Op("sum", (product, Number(Affine((), more), dtype))) if more else product


def is_told(index: Expr) -> bool:
    """Whether dimensions and sizes tell an index, affine or by steps."""
    match index:
        case Number(Affine(), _):
            return True
        case Op("sum" | "prod", parts):
            return all(map(is_told, parts))
    return False


def told_at(index: Expr, points: Points) -> Ints:
    """The values of such an index at the samples."""
    match index:
        case Number(Affine() as a, _):
            return value_of(a, points)
        case Op("sum", parts):
            return sum((told_at(p, points) for p in parts), np.zeros(len(points), np.int64))
        case Op("prod", parts):
            return math.prod((told_at(p, points) for p in parts), start=np.ones(len(points), np.int64))
    raise AssertionError(index)


def _straight(points: Points, loops: Sequence[str], values: Ints) -> bool:
    """Whether the values of each run alone are affine."""
    for run in np.unique(points.run):
        here = points.run == run
        matrix = np.stack([*(points.columns[n][here] for n in loops), np.ones(int(here.sum()), np.int64)], 1)
        wanted = values[here].astype(float)
        solution = np.linalg.lstsq(matrix.astype(float), wanted, rcond=None)[0]
        if np.abs(matrix @ solution - wanted).max() > 1e-6:
            return False
    return True
