"""How much a computation has to do, to choose between two forms of one."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fsr.computation.computation import Computation
from fsr.computation.expression import Affine, Expr, Fold, children
from fsr.expressions import evaluate_int

_TWICE = 2


def is_redone(whole: Computation, steps: Computation, sizes: Mapping[str, int]) -> bool:
    """Whether a whole does at least twice what its steps do at these sizes: what one launch leaves, and neighbours
    share, is made again for each of them."""
    return work(whole, sizes) >= _TWICE * work(steps, sizes)


def work(c: Computation, sizes: Mapping[str, int]) -> int:
    """Points of all folds, each as often as it is evaluated; one for an element without."""
    known = {**sizes, **{name: evaluate_int(name, sizes) for name in c.sizes if not name.isidentifier()}}
    total = 0
    for s in c.statements:
        extents = [evaluate_int(extent, known) for _, extent in s.domain]
        total += math.prod(extents) * (_points(s.value, known) if s.value is not None else 1)
    return total


def _points(e: Expr, sizes: Mapping[str, int]) -> int:
    inner = sum(_points(part, sizes) for part in children(e) if _folds(part))
    if isinstance(e, Fold):
        return math.prod(max(0, extent_at(x, sizes)) for _, x in e.dims) * max(1, inner)
    return max(1, inner)


def _folds(e: Expr) -> bool:
    return isinstance(e, Fold) or any(map(_folds, children(e)))


def extent_at(a: Affine, sizes: Mapping[str, int]) -> int:
    """Of a fold; where another index tells it, as long as that one's own start makes it."""
    return a.constant + sum(sizes.get(name, 0) * k for name, k in a.terms)
