"""Expressions away from the edges of their domain: constant folds written out, conditions on the domain decided as they
are in its middle, and the tests that say where that is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fsr.computation.expression import (
    ASSOCIATIVE,
    Affine,
    Case,
    Const,
    Expr,
    Fold,
    Load,
    Number,
    Op,
    Recurrence,
    children,
    fixed,
    rebuilt,
    valued,
    with_affine,
)  # fmt: skip
from fsr.computation.types import type_of
from fsr.transform.plain.c_text import NotPlain

MOST_TERMS = 64  # of a fold that is written out


def moved(load: Load, by: Mapping[str, int]) -> Load:
    """The same element at another point: whole numbers added to dimensions."""
    found = with_affine(load, lambda a: raised(a, by))
    assert isinstance(found, Load)
    return found


def raised(a: Affine, by: Mapping[str, int]) -> Affine:
    """An affine value with whole numbers added to its dimensions."""
    return replace(a, constant=a.constant + sum(k * by.get(n, 0) for n, k in a.terms))


def difference(a: Affine, b: Affine) -> Affine:
    """a - b."""
    found = dict(a.terms)
    for name, k in b.terms:
        found[name] = found.get(name, 0) - k
    return Affine(tuple(sorted((n, k) for n, k in found.items() if k)), a.constant - b.constant)


@dataclass
class Inner:
    """Expressions away from the edges of a domain. ``tile``: how many points a tile has along a dimension. ``timed``:
    sizes. ``middle``: dimensions somewhere in the middle. What is gathered on the way: ``below``: of affine values at
    the tile's first point the largest constant with which they must not be above nought; ``within``: the same of
    indices and the extent that they must be below."""

    tile: Mapping[str, int]
    timed: Mapping[str, int]
    middle: Mapping[str, int]
    below: dict[tuple[tuple[str, int], ...], int] = field(default_factory=dict)
    within: dict[tuple[tuple[tuple[str, int], ...], str], int] = field(default_factory=dict)
    _known: dict[int, tuple[Expr, Expr]] = field(default_factory=dict)  # by identity, with what it is of

    def of(self, e: Expr) -> Expr:
        """The expression without folds, and without conditions on sizes and at most one of the tile's dimensions: the
        middle has both sides of a diagonal. Raises NotPlain."""
        if id(e) not in self._known:
            self._known[id(e)] = e, self._of(e)
        return self._known[id(e)][1]

    def _of(self, e: Expr) -> Expr:
        match e:
            case Fold():
                return self._written_out(e)
            case Recurrence():
                raise NotPlain("a recurrence")
            case Case():
                a = difference(e.left, e.right)
                dims = {n for n, _ in a.terms} - self.timed.keys()
                if not dims or (len(dims) == 1 and dims <= self.tile.keys()):
                    holds = valued(a, {**self.middle, **self.timed}.__getitem__) <= 0
                    self._not_above_nought(a if holds else difference(Affine((), 1), a))
                    return self.of(e.yes if holds else e.no)
        e = _without_noughts(rebuilt(e, tuple(map(self.of, children(e)))))
        return e.yes if isinstance(e, Case) and e.yes == e.no else e

    def _written_out(self, e: Fold) -> Expr:
        lengths = [x.constant for _, x in e.dims]
        if e.op not in ASSOCIATIVE or any(x.terms for _, x in e.dims) or math.prod(lengths) > MOST_TERMS:
            raise NotPlain("a fold that is no few terms")
        names = [n for n, _ in e.dims]
        every = itertools.product(*map(range, lengths))
        terms = [self.of(fixed(e.body, dict(zip(names, at, strict=True)))) for at in every]
        return Op(e.op, tuple(terms))

    def read(self, load: Load, shape: Sequence[str]) -> None:
        """What must hold for an element to be there at all of the tile's points; its indices are affine."""
        for index, extent in zip(load.indices, shape, strict=True):
            assert isinstance(index, Number)
            assert isinstance(index.index, Affine)
            a = index.index
            self._not_above_nought(difference(Affine(), a))
            highest = a.constant + self._reach(a)
            self.within[a.terms, extent] = max(self.within.get((a.terms, extent), highest), highest)

    def _reach(self, a: Affine) -> int:
        """How much larger an affine value is at most at another of the tile's points."""
        return sum(max(0, k) * (self.tile[n] - 1) for n, k in a.terms if n in self.tile)

    def _not_above_nought(self, a: Affine) -> None:
        highest = a.constant + self._reach(a)
        if a.terms or highest > 0:
            self.below[a.terms] = max(self.below.get(a.terms, highest), highest)


def _without_noughts(e: Expr) -> Expr:
    """A sum less its literal noughts, where another operand has their type."""
    if not isinstance(e, Op) or e.name != "sum":
        return e
    rest = tuple(a for a in e.args if not (isinstance(a, Const) and a.value == 0))
    noughts = {type_of(a) for a in e.args if a not in rest}
    if not rest or not noughts <= {type_of(a) for a in rest}:
        return e
    return rest[0] if len(rest) == 1 else replace(e, args=rest)
