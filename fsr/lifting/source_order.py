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
    Fold,
    Load,
    Number,
    Op,
    Order,
    Quotient,
    Remainder,
    children,
    distinct,
    moved,
    valued,
)
from fsr.lifting.graph import Graph
from fsr.lifting.points import Points

Read = tuple[str, tuple[int, ...]]  # a buffer, and the indices there
_MOST = 400  # terms of a sum, all beneath them told


def in_written_order(g: Graph, parts: Sequence[Expr], points: Points, lists: Sequence[Sequence[int]]) -> list[Expr]:
    """The parts of a sum as the source has them. Those that are told by no one term, as they hold folds, stand where
    the first term of the same buffers stood, be it added or taken off; else behind, as they come."""
    n = max(range(len(lists)), key=lambda k: len(lists[k]))
    at = {name: int(column[n]) for name, column in points.columns.items()}
    places: dict[tuple[Read, ...], int] = {}
    alike: dict[tuple[bool, frozenset[str]], int] = {}
    told = sum(map(g.written_out, lists[n])) <= _MOST
    for place, (term, buffers) in enumerate(zip(lists[n], _buffers_of(g, lists[n]), strict=True)):
        alike.setdefault((g.terms[term][0] == "neg", buffers), place)
        if told:
            places.setdefault(tuple(_reads_of_term(g, term)), place)

    def place_of(part: Expr) -> int:
        found = places.get(tuple(_reads_of(part, at))) if told else None
        if found is not None:
            return found
        buffers = frozenset(x.buffer for x in distinct(part) if isinstance(x, Load))
        return alike.get((isinstance(part, Op) and part.name == "neg", buffers), len(lists[n]))

    return sorted(parts, key=place_of)


def multiplied_order(g: Graph, parts: Sequence[Expr], points: Points, factors: Sequence[int]) -> Order:
    """How the source multiplies these parts, which are the factors of the first sample; empty where they are told by
    no one factor each. One factor that holds a fold, or is long, is what the others leave."""
    if len(parts) != len(factors) or len(parts) < 3:
        return ()
    at = {name: int(column[0]) for name, column in points.columns.items()}
    left: dict[tuple[Read, ...], list[int]] = {}
    for number, part in enumerate(parts):
        if not any(isinstance(x, Fold) for x in distinct(part)):
            left.setdefault(tuple(_reads_of(part, at)), []).append(number)
    short = [g.written_out(factor) <= _MOST for factor in factors]
    own = [left.get(tuple(_reads_of_term(g, f)), []) if told else [] for f, told in zip(factors, short, strict=True)]
    part_of = [numbers.pop(0) if numbers else -1 for numbers in own]
    rest = [number for number in range(len(parts)) if number not in part_of]
    if len(rest) > 1:
        return ()
    part_of = [rest[0] if number < 0 else number for number in part_of]
    return moved(g.order(g.make("prod", tuple(factors))), part_of.__getitem__)


def _buffers_of(g: Graph, terms: Sequence[int]) -> list[frozenset[str]]:
    """The buffers that each term reads."""
    known = dict[int, frozenset[str]]()
    for term in terms:
        for k in g.upward(term, known):
            own = {g.terms[k][1]} if g.terms[k][0] == "load" else set[str]()
            known[k] = frozenset(own).union(*(known[below] for below in g.operands(k)))
    return [known[term] for term in terms]


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
