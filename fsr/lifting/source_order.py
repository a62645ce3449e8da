"""The order in which a source adds or multiplies, found again after the terms were generalised by their forms.

What was watched has its terms in order; generalising sorts them into groups. Of one sample, that with the most terms,
each group's expression is told by what it reads there, and stands where the term that reads the same stood.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fsr.computation.expression import (
    Affine,
    Case,
    Expr,
    Load,
    Number,
    Order,
    Quotient,
    Remainder,
    children,
    moved,
    valued,
)
from fsr.lifting.graph import Graph
from fsr.lifting.points import Points

Read = tuple[str, tuple[int, ...]]  # a buffer, and the indices there
_MOST = 400  # terms of a sum, all beneath them told


def in_written_order(g: Graph, parts: Sequence[Expr], points: Points, lists: Sequence[Sequence[int]]) -> list[Expr]:
    """The parts of a sum as the source has them; those that are told by no one term (folds) behind, as they come."""
    n = max(range(len(lists)), key=lambda k: len(lists[k]))
    if sum(map(g.written_out, lists[n])) > _MOST:
        return list(parts)
    at = {name: int(column[n]) for name, column in points.columns.items()}
    places: dict[tuple[Read, ...], int] = {}
    for place, term in enumerate(lists[n]):
        places.setdefault(tuple(_reads_of_term(g, term)), place)
    found = [places.get(tuple(_reads_of(part, at)), len(places)) for part in parts]
    return [part for _, part in sorted(zip(found, parts, strict=True), key=lambda pair: pair[0])]


def multiplied_order(g: Graph, parts: Sequence[Expr], points: Points, factors: Sequence[int]) -> Order:
    """How the source multiplies these parts, which are the factors of the first sample; empty where they are told by
    no one factor each."""
    if len(parts) != len(factors) or len(parts) < 3 or sum(map(g.written_out, factors)) > _MOST:
        return ()
    at = {name: int(column[0]) for name, column in points.columns.items()}
    left: dict[tuple[Read, ...], list[int]] = {}
    for number, part in enumerate(parts):
        left.setdefault(tuple(_reads_of(part, at)), []).append(number)
    own = [left.get(tuple(_reads_of_term(g, factor)), []) for factor in factors]
    if not all(own):
        return ()
    part_of = [numbers.pop(0) if numbers else -1 for numbers in own]
    return () if -1 in part_of else moved(g.order(g.make("prod", tuple(factors))), part_of.__getitem__)


def _reads_of_term(g: Graph, term: int) -> Iterator[Read]:
    x = g.terms[term]
    if x[0] == "load":
        yield x[1], tuple(g.terms[i][1] if g.terms[i][0] == "int" else 0 for i in x[2])
        return
    for below in g.operands(term):
        yield from _reads_of_term(g, below)


def _reads_of(e: Expr, at: Mapping[str, int]) -> Iterator[Read]:
    match e:
        case Load():
            yield e.buffer, tuple(_value(i, at) for i in e.indices)
        case Case():
            yield from _reads_of(e.yes if _affine(e.left, at) <= _affine(e.right, at) else e.no, at)
        case _:
            for part in children(e):
                yield from _reads_of(part, at)


def _value(e: Expr, at: Mapping[str, int]) -> int:
    match e:
        case Number(Affine() as a, _):
            return _affine(a, at)
        case Number(Remainder(value, by), _):
            return _affine(value, at) % _size(by, at)
        case Number(Quotient(value, by), _):
            return _affine(value, at) // _size(by, at)
    return 0  # where data decides: of a term too


def _affine(a: Affine, at: Mapping[str, int]) -> int:
    return valued(a, lambda name: at.get(name, 0))


def _size(by: str | int, at: Mapping[str, int]) -> int:
    return max(1, at.get(by, 1)) if isinstance(by, str) else by
