"""Records of a few elements, one behind the other, as what a point makes: a pixel's colours, a vector's coordinates.

An element of a record is not like its neighbour: what it is made of depends on its place there, and reads the others.
A point of the records makes all of its elements, with each place known, so that no condition is left, and what they
share is computed once. So it is with a few planes or lines, one behind the other, each made of something else: queries,
keys and values of a head. And where each component of a sum reads the same element, found by what data says (the
attraction of a point's neighbours, a matrix times a few columns), one point makes all components of its sum, so that
such an element is looked up once. Where the components are sums of their own over one window (complex samples times
complex taps), one point makes all of these sums, each term of which is that of all components that it reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fsr.computation.computation import Computation, Statement
from fsr.computation.expression import (
    Carried,
    Case,
    Expr,
    Fold,
    Load,
    Number,
    Op,
    Recurrence,
    distinct,
    fixed,
    mapped,
    names_in,
    rebuilt,
    walk,
)
from fsr.computation.simplify import simplified
from fsr.transform.computed.folding import folds_in
from fsr.transform.computed.parts import name_of, value_of, written_out

MOST = 8  # elements of a record: all of a pack of records are in registers at a time
_PLANES, _STACK = 4, 32  # that a point makes; that lie one behind the other


def by_records(c: Computation) -> Iterator[Computation]:
    """The computation over records, of maps alone; none where each element is one of a line like any other."""
    if _of_maps(c) and any(_is_record(s) and not _is_line(s) for s in c.statements):
        last = [made for s in c.statements for made in (_each(s, s.domain[-1][0]) if _is_record(s) else [s])]
        yield replace(c, statements=tuple(s for s in last if not _stays(s)))


def by_planes(c: Computation) -> Iterator[Computation]:
    """The computation over what several planes have in common, of maps alone; none where they are made alike."""
    if not _of_maps(c):
        return
    found = [(s, _planes(s)) for s in c.statements]
    if any(dim for _, dim in found):
        planes = (made for s, dim in found for made in (_each(s, dim) if dim else [s]))
        yield replace(c, statements=tuple(s for s in planes if not _stays(s)))


def by_components(c: Computation) -> Iterator[Computation]:
    """The computation over the components of folds that read the same where data decides; none where none do."""
    whole = written_out(c)
    found = [(s, _components(s)) for s in (whole.statements if whole else ())]
    if whole and any(dim for _, dim in found):
        told = (replace(made, kind="map") for s, dim in found for made in (_each(s, dim) if dim else [s]))
        yield replace(whole, statements=tuple(s for s in told if not _stays(s)))


def by_sums(c: Computation) -> Iterator[Computation]:
    """The computation over records whose elements are folds over one box each; none where there are none."""
    whole = written_out(c)
    if whole and all(_is_record(s) and folds_in(value_of(s)) for s in whole.statements):
        each = (made for s in whole.statements for made in _each(s, s.domain[-1][0]))
        yield replace(whole, statements=tuple(replace(s, kind="map", value=_in_one(value_of(s))) for s in each))


def _in_one(e: Expr) -> Expr:
    """An expression with sums over the few components of what they read as one sum of as many values."""

    def one(e: Expr, parts: tuple[Expr, ...]) -> Expr:
        e = rebuilt(e, parts)
        if not isinstance(e, Fold) or e.op != "sum" or len(e.dims) < 2:
            return e
        (name, extent), dims = e.dims[-1], e.dims[:-1]
        if extent.terms or not 1 < extent.constant <= MOST or any(name in dict(x.terms) for _, x in dims):
            return e
        terms = tuple(simplified(fixed(e.body, {name: at})) for at in range(extent.constant))
        return replace(e, dims=dims, body=Op("sum", terms))

    return mapped(e, one)


def _components(s: Statement) -> str:
    """The dimension of a few numbers that counts the components of folds, each of which reads what data finds, by the
    same indices for all; '' for none."""
    names, folds = [name_of(p) for p in s.place], [e for e in walk(value_of(s)) if isinstance(e, Fold)]
    if len(folds) != 1 or len(s.domain) < 2:
        return ""
    ((fold,), bound) = folds, {n for n, _ in folds[0].dims}
    found = [i for e in distinct(fold.body) if isinstance(e, Load) for i in e.indices if any(map(_reads, distinct(i)))]
    shared = [i for i in found if bound & names_in(i)]
    few = (n for n, x in s.domain if x.isdigit() and 1 < int(x) <= MOST and names.count(n) == 1)
    return next((n for n in few if n in names_in(fold) and shared and not any(n in names_in(i) for i in shared)), "")


def _reads(e: Expr) -> bool:
    return isinstance(e, Load) and bool(e.indices)


def _of_maps(c: Computation) -> bool:
    """Whether it is maps alone, none of them of values that it makes for itself."""
    if any(s.value is None or s.kind != "map" or s.target.startswith("_") for s in c.statements):
        return False
    return not any(isinstance(e, Fold | Recurrence | Carried) for s in c.statements for e in distinct(value_of(s)))


def _planes(s: Statement) -> str:
    """The dimension before the last along which a statement's points are made of something else each, a few of them
    but for those that stay as they are; '' for none. Its place alone must decide on that: where it stands in an edge's
    condition beside another dimension (a tap of an im2col), all are made alike."""
    names = [name_of(p) for p in s.place]
    tests = [e for e in distinct(value_of(s)) if isinstance(e, Case)]
    chosen = {n for e in tests for n in names if {name for i in (e.left, e.right) for name, _ in i.terms} == {n}}
    few = (n for n, x in s.domain[:-1] if x.isdigit() and 1 < int(x) <= _STACK and n in chosen and names.count(n) == 1)
    return next((n for n in few if sum(not _stays(made) for made in _each(s, n)) <= _PLANES), "")


def _stays(s: Statement) -> bool:
    """Whether a statement leaves an element as it is."""
    return isinstance(s.value, Load) and (s.value.buffer, s.value.indices) == (s.target, s.place)


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

    indices = {i for e in distinct(value_of(s)) if isinstance(e, Load) for i in e.indices}
    return all(alike(e) for e in distinct(value_of(s)) if e not in indices)


def _each(s: Statement, dim: str) -> Iterator[Statement]:
    """A statement for each value of a dimension whose extent is a number."""
    for at in range(int(dict(s.domain)[dim])):
        domain = tuple((n, x) for n, x in s.domain if n != dim)
        place = tuple(fixed(p, {dim: at}) for p in s.place)
        yield replace(s, domain=domain, value=simplified(fixed(value_of(s), {dim: at})), place=place)
