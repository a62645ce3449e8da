"""Whole numbers that are affine in pieces, told apart by conditions on indices: what a clamped index is,
``max(i - w, 0)``, and how many elements lie between two of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from fsr.computation.expression import Affine
from fsr.lifting.conditions import Branch, comparisons
from fsr.lifting.points import Ints, Mask, Points, affine_fit, spanned
from fsr.lifting.refused import Refused

_MOST_CONDITIONS = 120
_DEEPEST = 2
_SPARE = 2  # samples of a piece beyond what it takes to fit it anyway


def in_pieces(points: Points, values: Ints, sizes: Sequence[str], go_on: Callable[[], bool]) -> object:
    """An affine value, or a Branch of which each side is one or another Branch: of the fewest pieces, by the simplest
    conditions. ``go_on``: whether there is time. Raises Refused."""
    found = _Search(points, values, sizes, go_on).of(np.ones(len(points), bool), _DEEPEST)
    if found is None:
        raise Refused("a number is affine in no few pieces")
    return found


class _Search:
    """Each part of the samples is fitted once."""

    def __init__(self, points: Points, values: Ints, sizes: Sequence[str], go_on: Callable[[], bool]) -> None:
        self.points, self.values, self.sizes, self.go_on = points, values, sizes, go_on
        self.conditions = list(itertools.islice(comparisons(points, sizes, numbers=False), _MOST_CONDITIONS))
        self.moving = [c for c in points.columns.values() if (c != c[0]).any()]
        self._known: dict[bytes, Affine | None] = {}

    def of(self, mask: Mask, depth: int) -> object:
        """The pieces of some samples, None where they are too many."""
        whole = self.affine(mask)
        if whole is not None or not depth:
            return whole
        sides = [(c, mask & c[2], mask & ~c[2]) for c in self.conditions]
        sides = [(c, yes, no) for c, yes, no in sides if yes.any() and no.any()]
        ways: tuple[tuple[int, int], ...] = ((0, 0), (0, depth - 1), (depth - 1, 0), (depth - 1, depth - 1))
        for deep in ways[: 1 if depth == 1 else None]:
            for c, yes, no in sides:
                if not self.go_on():
                    return None
                if (left := self.of(yes, deep[0])) is not None and (right := self.of(no, deep[1])) is not None:
                    return Branch(c[0], c[1], left, right)
        return None

    def affine(self, mask: Mask) -> Affine | None:
        """The affine value that some samples have."""
        key = mask.tobytes()
        if key not in self._known:
            self._known[key] = (
                self._fitted(mask) if spanned([c[mask] for c in self.moving], self.values[mask]) else None
            )
        return self._known[key]

    def _fitted(self, mask: Mask) -> Affine | None:
        found = affine_fit(self.points.where(mask), self.values[mask], self.sizes)
        if found is None or mask.sum() < len(found[0]) + _SPARE:
            return None
        return Affine(tuple(sorted(found[0].items())), found[1])
