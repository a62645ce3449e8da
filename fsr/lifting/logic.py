"""Conditions that are joined: what is known of one side decides, or leaves the other."""

from __future__ import annotations

from typing import Any, Protocol


class Conditions(Protocol):
    """What is needed of a graph."""

    terms: list[tuple[Any, ...]]

    def make(self, *term: object) -> int:
        """The number of a term as it is."""

    def const(self, value: float, dtype: str) -> int:
        """A literal."""

    def opposite(self, c: int) -> int:
        """A condition's negation."""


def differs(g: Conditions, a: int, b: int) -> int:
    """What holds where one does and the other does not; of whole numbers the bits of one alone."""
    for one, other in ((a, b), (b, a)):
        x = g.terms[one]
        if x[0] in ("const", "int") and x[2] == "bool":
            return g.opposite(other) if x[1] else other
    return g.make("xor", a, b)


def both(g: Conditions, a: int, b: int) -> int:
    """What holds where both do; of whole numbers their common bits."""
    return _logical(g, "and", a, b)


def either(g: Conditions, a: int, b: int) -> int:
    """What holds where one does; of whole numbers all their bits."""
    return _logical(g, "or", a, b)


def _logical(g: Conditions, name: str, a: int, b: int) -> int:
    for one, other in ((a, b), (b, a)):
        x = g.terms[one]
        if x[0] == "const" and x[2] == "bool":
            return other if bool(x[1]) == (name == "and") else one
    return g.make(name, a, b)


def unordered(g: Conditions, a: int, b: int) -> int:
    """Whether one of two values is no number."""
    asked = [
        k for k in dict.fromkeys((a, b)) if g.terms[k][0] not in ("const", "int") or g.terms[k][1] != g.terms[k][1]
    ]
    found = [g.make("isnan", k) for k in asked]
    return g.make("or", *found) if len(found) == 2 else found[0] if found else g.const(0, "bool")
