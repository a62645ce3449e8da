"""Lines that are written in part: an element beyond a length that stays as it was (padding behind a row, a pitch) is
none to write, and what is written then lies along the same lengths as what is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from fsr.computation.computation import Computation, Statement
from fsr.computation.expression import Affine, Case, Expr, Load
from fsr.computation.printing import affine_text


def in_part(c: Computation, at_most: Callable[[str, str], bool]) -> Iterator[Computation]:
    """The computation over what is written alone; none where all is. ``at_most``: whether a size expression is never
    greater than another."""
    written = tuple(_shorter(s, at_most) for s in c.statements)
    if written != c.statements:
        yield replace(c, statements=written)


def _shorter(s: Statement, at_most: Callable[[str, str], bool]) -> Statement:
    """The statement over the points that its conditions let write."""
    for name, length in s.domain:
        value = _up_to(s, name)
        if value is not None and at_most(value[0], length):
            domain = tuple((n, value[0] if n == name else x) for n, x in s.domain)
            return _shorter(replace(s, domain=domain, value=value[1]), at_most)
    return s


def _up_to(s: Statement, dim: str) -> tuple[str, Expr] | None:
    """How far along a dimension elements are written, and as what; None where all are, or where data or other
    dimensions tell how far."""
    match s.value:
        case Case(Affine(((name, 1),), low), Affine(terms, high), yes, no) if name == dim and _stays(s, no):
            value, last = yes, Affine(terms, high - low + 1)
        case Case(Affine(terms, low), Affine(((name, 1),), high), yes, no) if name == dim and _stays(s, yes):
            value, last = no, Affine(terms, low - high)
        case _:
            return None
    dims = {name for name, _ in s.domain}
    return None if dims & dict(terms).keys() else (affine_text(last), value)


def _stays(s: Statement, e: Expr) -> bool:
    """Whether an element keeps what it holds."""
    return isinstance(e, Load) and e.buffer == s.target and e.indices == s.place
