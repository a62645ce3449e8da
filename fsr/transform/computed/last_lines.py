"""A few last lines of an output that are made of something else than the lines before them, which a condition tells: a
row of ones below a layer's outputs, say. Lines alike are a statement, each of the others is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from fsr.computation.computation import Computation, Statement
from fsr.computation.expression import Affine, Case, Expr, put_in_place, with_affine
from fsr.computation.printing import affine_text
from fsr.transform.computed.parts import written_out

_MOST = 4  # lines of another kind


def by_last_lines(c: Computation, same: Callable[[str, str], bool]) -> Iterator[Computation]:
    """The computation with such lines apart; none where there are none. ``same``: whether two size expressions have one
    value at all sizes."""
    whole = written_out(c)
    found = [list(_apart(replace(s, kind="map"), same)) for s in whole.statements] if whole is not None else []
    if whole is not None and any(len(parts) > 1 for parts in found):
        yield replace(whole, statements=tuple(part for parts in found for part in parts))


def _apart(s: Statement, same: Callable[[str, str], bool]) -> Iterator[Statement]:
    """The lines that are alike, and each of the last ones."""
    dims = dict(s.domain[:-1])
    match s.value:
        case Case(Affine(((dim, 1),), 0), Affine(terms, last), yes, no) if (
            dim in dims and not dict(terms).keys() & dims
        ):
            length = Affine(terms, last + 1)
            count = next((n for n in range(1, _MOST + 1) if same(dims[dim], f"{affine_text(length)} + {n}")), 0)
        case _:
            count = 0
    if not count:
        yield s
        return
    domain = tuple((n, affine_text(length) if n == dim else x) for n, x in s.domain)
    yield replace(s, domain=domain, value=yes)
    for line in range(count):
        at = replace(length, constant=length.constant + line)
        place = tuple(_at(p, dim, at) for p in s.place)
        rest = tuple(d for d in s.domain if d[0] != dim)
        yield replace(s, domain=rest, value=_at(no, dim, at), place=place)


def _at(e: Expr, dim: str, at: Affine) -> Expr:
    """The expression where a dimension is that."""
    return with_affine(e, lambda a: put_in_place(a, dim, at))
