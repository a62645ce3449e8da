"""What is added to every term of a sum, alike in all: ``sum(f(x[k]) + c)``, whose terms a flat sum has side by side."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from fsr.computation.expression import Affine, Expr, Fold, Number, Op, names_in
from fsr.computation.types import type_of
from fsr.lifting.points import Points
from fsr.lifting.refused import Refused


class Fitter(Protocol):
    """What is needed of the generaliser."""

    fresh: itertools.count[int]

    def term(self, points: Points) -> Expr:
        """The expression of all samples."""

    def affine(self, points: Points, values: Sequence[int]) -> Affine:
        """The affine expression of values."""


def over_and_over(fitter: Fitter, op: str, points: Points, by: Sequence[Sequence[int]]) -> list[Expr]:
    """A floating term that each sum has as often as a size says, as a fold. ``by``: the terms of each sample. Raises
    Refused."""
    if op != "sum" or any(len(set(items)) != 1 for items in by):
        raise Refused("terms that are not alike")
    term = fitter.term(points.of([items[0] for items in by]))
    count = fitter.affine(points, [len(items) for items in by])
    if not count.terms or not type_of(term).startswith("float"):
        raise Refused("not as often as a size says")
    return [Fold(op, ((f"k{next(fitter.fresh)}", count),), term)]


def with_shifts(parts: Sequence[Expr]) -> list[Expr]:
    """The parts of a sum, those that are one term over and over put into a fold that goes as far, as the source has
    them: apart from it, what cancels term by term would not. Where there is none, they are products."""
    found = list(parts)
    for one in [p for p in parts if _repeats(p)]:
        assert isinstance(one, Fold)
        found.remove(one)
        extents = [x for _, x in one.dims]
        at = next((n for n, p in enumerate(found) if isinstance(p, Fold) and _goes(p, extents)), None)
        if at is None:
            (extent,) = extents
            found.append(Op("prod", (one.body, Number(extent, type_of(one.body)))))
            continue
        fold = found[at]
        assert isinstance(fold, Fold)
        found[at] = replace(fold, body=Op("sum", (fold.body, one.body)))
    return found


def _repeats(e: Expr) -> bool:
    return isinstance(e, Fold) and e.op == "sum" and len(e.dims) == 1 and e.dims[0][0] not in names_in(e.body)


def _goes(e: Fold, extents: Sequence[object]) -> bool:
    return e.op == "sum" and not e.inside and [x for _, x in e.dims] == extents and not _repeats(e)
