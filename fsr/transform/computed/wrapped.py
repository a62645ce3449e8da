"""Neighbours on a torus, ``x[(j + 1) % m]``, by a condition in place of the remainder: away from the edges they are
neighbours like any others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from fsr.computation.computation import Computation
from fsr.computation.expression import Affine, Case, Expr, Load, Number, Remainder, children, rebuilt
from fsr.transform.computed.parts import value_of, written_out

_FARTHEST = 8  # elements that a neighbour is away


def unwrapped(c: Computation, always: Callable[[str], bool]) -> Iterator[Computation]:
    """The computation with conditions; none where there is no such neighbour. ``always``: whether a condition between
    sizes holds at all of them."""
    whole = written_out(c)
    if whole is None:
        return
    told = tuple(replace(s, value=_told(value_of(s), dict(s.domain), always)) for s in whole.statements)
    if told != whole.statements:
        yield replace(whole, statements=told)


def _told(e: Expr, domain: Mapping[str, str], always: Callable[[str], bool]) -> Expr:
    e = rebuilt(e, tuple(_told(part, domain, always) for part in children(e)))
    for n, index in enumerate(e.indices if isinstance(e, Load) else ()):
        found = _neighbour(index)
        if found is not None and _is_near(*found, domain, always):
            assert isinstance(e, Load)
            assert isinstance(index, Number)
            dim, away, by = found
            ends = (_with(e, n, Number(at, index.dtype)) for at in _sides(dim, away, by))
            inside, outside = (_told(end, domain, always) for end in ends)
            own = Affine(((dim, 1),))
            if away < 0:
                return Case(own, Affine((), -away - 1), outside, inside)
            return Case(own, _plus(Affine(), by, -away - 1), inside, outside)
    return e


def _neighbour(index: Expr) -> tuple[str, int, str | int] | None:
    """The dimension, how far from it, and the length of the line, of an index that goes round; None for others."""
    match index:
        case Number(Remainder(Affine(terms, away), by), _):
            left = [(name, times) for name, times in terms if name != by]
            if isinstance(by, int):
                away -= by * round(away / by)
            if len(left) == 1 and left[0][1] == 1:
                return left[0][0], away, by
    return None


def _is_near(dim: str, away: int, by: str | int, domain: Mapping[str, str], always: Callable[[str], bool]) -> bool:
    """Whether a neighbour goes round once at most: the remainder is by the length of its dimension."""
    return domain.get(dim) == str(by) and 0 < abs(away) <= _FARTHEST and always(f"({by}) >= {abs(away)}")


def _sides(dim: str, away: int, by: str | int) -> tuple[Affine, Affine]:
    """Where the neighbour lies within its line, and where it has gone round."""
    inside = Affine(((dim, 1),), away)
    return inside, _plus(inside, by, 0, 1 if away < 0 else -1)


def _plus(a: Affine, by: str | int, more: int, times: int = 1) -> Affine:
    """An affine value, a length so many times and a number."""
    if isinstance(by, int):
        return replace(a, constant=a.constant + times * by + more)
    return Affine(tuple(sorted((*a.terms, (by, times)))), a.constant + more)


def _with(e: Load, at: int, index: Expr) -> Load:
    return replace(e, indices=(*e.indices[:at], index, *e.indices[at + 1 :]))
