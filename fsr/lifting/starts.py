"""What elements hold before anything is added to them where data tells: what was given, or what a plan writes there
itself, as bins that it clears."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fsr.lifting.additions import zero_like
from fsr.lifting.graph import Graph

Place = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Start:
    """What an element of a run begins with, and ``home``: what was given there. Both are terms."""

    run: int
    place: Place
    term: int
    home: int


def parts_of(g: Graph, term: int) -> tuple[str, Place]:
    """By what operation an element is made of what; '' where it is one thing alone."""
    x = g.terms[term]
    return (x[0], tuple(x[1])) if x[0] in ("sum", "max", "min") else ("", (term,))


def starts(
    g: Graph, run: int, places: Sequence[Place], terms: Sequence[int], homes: Sequence[int], dtype: str
) -> Iterator[Start]:
    """What the elements at these places begin with, where that shows."""
    for place, term, home in zip(places, terms, homes, strict=True):
        found = _start(g, term, home, dtype)
        if found is not None:
            yield Start(run, place, found, home)


def _start(g: Graph, term: int, home: int, dtype: str) -> int | None:
    op, parts = parts_of(g, term)
    rest = [k for k in parts if g.terms[k][0] != "chosen"]
    if rest:
        found = g.list_of(op, rest) if op else term
    elif op in ("", "sum"):
        found = zero_like(g, {}, dtype)
    else:
        return None  # an extreme begins with a bound that it loses
    return home if _is_nought(g, found) and _is_nought(g, home) else found  # of whatever type


def _is_nought(g: Graph, e: int) -> bool:
    return g.is_value(e, 0.0) or g.terms[e][:2] == ("int", 0)
