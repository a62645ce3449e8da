"""Values that a plan's launches leave for one another, put in where they are read: what was stored between is not.

What is read once, or costs little more than what is read, is made again where it is needed: producer and consumer
fusion (Wolfe, High Performance Compilers for Parallel Computing, 1996) on the computation, where no launch's shape
stands in its way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce

from fsr.computation.computation import KEPT, Computation, Statement
from fsr.computation.expression import (
    Affine,
    Expr,
    Fold,
    Load,
    Number,
    Op,
    Recurrence,
    affine,
    children,
    distinct,
    mapped,
    put_in_place,
    rebuilt,
    renamed,
    with_affine,
)
from fsr.lifting.work import extent_at

_CHEAP = frozenset(["sum", "prod", "neg", "max", "min"])
_MOST_MORE = 6  # reads of an element's more than there were


def spared(c: Computation, sizes: Mapping[str, int]) -> Computation:
    """The computation with what is kept between statements put in place of its reads, as far as little is done twice
    at these sizes; the same where nothing is."""
    while (found := next(_put_in(c, sizes), None)) is not None:
        c = found
    return c


def _put_in(c: Computation, sizes: Mapping[str, int]) -> Iterator[Computation]:
    for s in c.statements:
        if not s.target.startswith(KEPT) or sum(o.target == s.target for o in c.statements) != 1 or not _is_plain(s):
            continue
        reads = [r for o in c.statements if o.value is not None for r in _reads_of(o, o.value, s.target, sizes)]
        if not reads or any(r.reader is s or r.reader.kind not in ("map", "fold") for r in reads):
            continue
        if not (_is_read_once(reads, s) or _is_cheap(reads, s)) or not all(_is_inside(r, s, c) for r in reads):
            continue
        told = tuple(o if o.value is None else replace(o, value=_with(o.value, s)) for o in c.statements if o is not s)
        yield replace(c, buffers=tuple(b for b in c.buffers if b.name != s.target), statements=told)


@dataclass(frozen=True)
class _Read:
    """A read of ``load`` by ``reader``, so many ``times`` for an element, ``folded`` within a fold, one that leaves out
    what lies outside where it is ``clipped``."""

    load: Load
    reader: Statement
    times: float
    folded: bool
    clipped: bool


def _is_plain(s: Statement) -> bool:
    """Whether a statement writes each element of its domain, at the element's own place, from what it reads alone."""
    own = tuple(affine(dim) for dim, _ in s.domain)
    if s.value is None or s.kind not in ("map", "fold") or tuple(_index(e) for e in s.place) != own:
        return False
    return not any(isinstance(e, Recurrence) for e in distinct(s.value))


def _index(e: Expr) -> Affine | None:
    return e.index if isinstance(e, Number) and isinstance(e.index, Affine) else None


def _reads_of(reader: Statement, value: Expr, buffer: str, sizes: Mapping[str, int]) -> list[_Read]:
    found = list[_Read]()

    def visit(e: Expr, times: float, folded: bool, clipped: bool) -> None:
        if isinstance(e, Load) and e.buffer == buffer:
            found.append(_Read(e, reader, times, folded, clipped))
        if isinstance(e, Fold):
            times, folded, clipped = times * _points(e, sizes), True, clipped or e.inside
        for part in children(e):
            visit(part, times, folded, clipped)

    visit(value, 1.0, False, False)
    return found


def _points(e: Fold, sizes: Mapping[str, int]) -> float:
    return math.prod(max(1, extent_at(x, sizes)) for _, x in e.dims)


def _is_read_once(reads: list[_Read], s: Statement) -> bool:
    """Whether each element is read by one other alone, which reads no other."""
    if len(reads) != 1 or reads[0].folded:
        return False
    dims = [name for name, _ in reads[0].reader.domain]
    names = [None if (a := _index(i)) is None or len(a.terms) != 1 or a != affine(a.terms[0][0]) else a.terms[0][0]
             for i in reads[0].load.indices]  # fmt: skip
    return None not in names and len(set(names)) == len(names) == len(dims) and set(names) <= set(dims)


def _is_cheap(reads: list[_Read], s: Statement) -> bool:
    """Whether what is read costs little more made anew each time: products and sums of a few reads."""
    assert s.value is not None
    parts = list(distinct(s.value))
    if any(isinstance(e, Fold) or (isinstance(e, Op) and e.name not in _CHEAP) for e in parts):
        return False
    loads = sum(isinstance(e, Load) for e in parts)
    return sum(r.times for r in reads) * max(loads - 1, 0) <= _MOST_MORE


def _is_inside(read: _Read, s: Statement, c: Computation) -> bool:
    """Whether a read that is left out where it lies outside is so with what is put in, too: each of its indices that
    may leave the extent is one of a read there, of as large an extent."""
    if any(_index(i) is None for i in read.load.indices):
        return False
    if not read.clipped:
        return True
    assert s.value is not None
    there = [(_index(i), extent) for e in distinct(s.value) if isinstance(e, Load)
             for i, extent in zip(e.indices, c.buffer(e.buffer).shape, strict=True)]  # fmt: skip
    own = {affine(name) for name, _ in read.reader.domain}
    return all(
        _index(i) in own or (affine(dim), extent) in there
        for (dim, extent), i in zip(s.domain, read.load.indices, strict=True)
    )


def _with(e: Expr, s: Statement) -> Expr:
    """The expression with an element of a statement's put in for each read of it."""
    count = 0

    def change(e: Expr, parts: tuple[Expr, ...]) -> Expr:
        nonlocal count
        e = rebuilt(e, parts)
        if not isinstance(e, Load) or e.buffer != s.target or s.value is None:
            return e
        count += 1
        bound = {n for x in distinct(s.value) if isinstance(x, Fold) for n, _ in x.dims}
        own = {dim for dim, _ in s.domain}
        called = {n: f"{n} of {s.target} {count}" for n in bound | own}
        made = renamed(s.value, lambda n: called.get(n, n))
        at = {called[dim]: _index(i) for (dim, _), i in zip(s.domain, e.indices, strict=True)}
        return _placed(made, {name: a for name, a in at.items() if a is not None})

    return mapped(e, change)


def _placed(e: Expr, at: Mapping[str, Affine]) -> Expr:
    """The expression with other affine values in the place of its dimensions."""
    return with_affine(e, lambda a: reduce(lambda a, name: put_in_place(a, name, at[name]), at, a))


__all__ = ["spared"]
