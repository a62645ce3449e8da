"""The place of an extreme: ``if (v > best) { best = v; at = j; }`` in a loop over j.

Strict comparisons only: then the place is the first one, in whatever order the parts of the loop are looked at, as long
as of equal values the one with the lesser place is kept. A part that never found anything greater holds what all parts
began with, so that the initial place need not be known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fsr.analysis.types import FLOATING, is_integer
from fsr.source.form import Assign, Binary, Comment, Expr, For, If, Name, Stmt
from fsr.source.mapping import map_stmts
from fsr.source.walk import names_in, names_mentioned, walk_stmts, without_casts


@dataclass(frozen=True, slots=True)
class Place:
    """``value`` and ``at`` are variables of the loop's surroundings; ``operator``: 'greatest' or 'least'."""

    value: str
    at: str
    operator: str

    @property
    def fold(self) -> str:
        """The name under which :mod:`fsr.transform.collectives` writes its folds."""
        return f"{self.operator}_at"


def places(loop: For, outer: frozenset[str]) -> tuple[Place, ...]:
    """The extremes whose place the loop notes, in variables of ``outer`` that it does nothing else with."""
    found = {p for s in walk_stmts(loop.body) if (p := place_of(s, loop.var)) is not None}
    alone = (p for p in found if not {p.value, p.at} & names_mentioned(without_places(loop, (p,))))
    return tuple(sorted((p for p in alone if {p.value, p.at} <= outer), key=lambda p: p.value))


def without_places(loop: For, noted: tuple[Place, ...]) -> tuple[Stmt, ...]:
    """The loop's body without the statements that note these places."""
    return map_stmts(loop.body, lambda s: () if place_of(s, loop.var) in noted else s)


def foldable(place: Place, types: dict[str, str]) -> bool:
    """Whether both variables are plain numbers."""
    value = types.get(place.value, "")
    return (value in FLOATING or is_integer(value)) and is_integer(types.get(place.at, ""))


def place_of(s: Stmt, var: str) -> Place | None:
    """The extreme whose place, a loop's ``var``, a statement notes; None for any other."""
    match s:
        case If(test=Binary(op=op, left=left, right=right), then=then, orelse=()):
            sets = _sets(then)
        case _:
            return None
    if sets is None or op not in ("<", ">"):
        return None
    for (value, new), (at, place) in (sets, sets[::-1]):
        if without_casts(place) != Name(var) or value in names_in(new) or at in names_in(new) or value == at:
            continue
        if (left, right) == (new, Name(value)):
            return Place(value, at, "greatest" if op == ">" else "least")
        if (left, right) == (Name(value), new):
            return Place(value, at, "greatest" if op == "<" else "least")
    return None


def _sets(then: Iterable[Stmt]) -> tuple[tuple[str, Expr], tuple[str, Expr]] | None:
    """The two variables that are set, and to what."""
    match [s for s in then if not isinstance(s, Comment)]:
        case [
            Assign(target=Name(text=first), op="=", value=one),
            Assign(target=Name(text=second), op="=", value=other),
        ]:
            return (first, one), (second, other)
    return None
