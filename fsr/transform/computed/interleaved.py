"""Records of a few elements, one behind the other, as what a point makes: a pixel's colours, a vector's coordinates.

An element of a record is not like its neighbour: what it is made of depends on its place there, and reads the others.
A point of the records makes all of its elements, with each place known, so that no condition is left, and what they
share is computed once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fsr.computation.computation import Computation, Statement
from fsr.computation.expression import Carried, Case, Expr, Fold, Load, Number, Recurrence, fixed, names_in, walk
from fsr.computation.simplify import simplified
from fsr.transform.computed.parts import name_of, value_of

MOST = 4  # elements of a record: all of a pack of records are in registers at a time


def by_records(c: Computation) -> Iterator[Computation]:
    """The computation over records, of maps alone; none where each element is one of a line like any other."""
    if any(s.value is None or s.kind != "map" or s.target.startswith("_") for s in c.statements):
        return
    if any(isinstance(e, Fold | Recurrence | Carried) for s in c.statements for e in walk(value_of(s))):
        return
    if any(_is_record(s) and not _is_line(s) for s in c.statements):
        yield replace(c, statements=tuple(made for s in c.statements for made in _elements(s)))


def _is_record(s: Statement) -> bool:
    """Whether neighbours along the last dimension of a statement are a record of its target."""
    if len(s.domain) < 2 or name_of(s.place[-1]) != s.domain[-1][0]:
        return False
    count = s.domain[-1][1]
    return count.isdigit() and 1 < int(count) <= MOST


def _is_line(s: Statement) -> bool:
    """Whether each element is made of elements that stand where it stands."""
    last = s.domain[-1][0]

    def alike(e: Expr) -> bool:
        match e:
            case Load(_, (*_, index)):
                return name_of(index) == last
            case Case() | Number():
                return last not in names_in(e)
        return True

    indices = {i for e in walk(value_of(s)) if isinstance(e, Load) for i in e.indices}
    return all(alike(e) for e in walk(value_of(s)) if e not in indices)


def _elements(s: Statement) -> Iterator[Statement]:
    """A statement for each element of a record."""
    if not _is_record(s):
        yield s
        return
    last, count = s.domain[-1]
    for at in range(int(count)):
        place = tuple(fixed(p, {last: at}) for p in s.place)
        yield replace(s, domain=s.domain[:-1], value=simplified(fixed(value_of(s), {last: at})), place=place)
