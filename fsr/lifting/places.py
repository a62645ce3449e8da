"""The place of a maximum or a minimum, ``if (v > best) { best = v; at = i; }``: told by what beats all before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fsr.lifting.running import Terms

HUGE = 1e37  # beyond any value: what a minimum or a maximum begins with


def place(g: Terms, x: tuple[Any, ...], a: int, b: int) -> int | None:
    """The place, when ``a`` is that of what has just beaten all before it, whose place is ``b``. ``x``: the condition.
    None of anything else."""
    if x[0] != "gt":
        return None
    for op, new, old in (("argmax", x[1], x[2]), ("argmin", x[2], x[1])):
        best, held = g.terms[old], g.terms[b]
        if g.terms[a][0] != "int" or g.terms[new][0] == "const":
            continue  # a literal beats nothing: what is chosen by a threshold is no place
        before = set(best[1]) if best[0] == op[3:] else {old}
        pair = g.make("pair", new, a)
        pairs = held[1] if held[0] in ("argmax", "argmin") else ()
        if pairs and {g.terms[p][1] for p in pairs} == before and (held[0] == op or len(pairs) == 2):
            return g.make(op, (*(pairs if held[0] == op else _turned(g, pairs)), pair))
        if held[0] == "int" and (best[0] in ("const", "int", "load") or len(before) == 1):
            if best[0] == "const":  # the first one against a bound
                return g.make(op, (pair,)) if abs(best[1]) >= HUGE else None
            return g.make(op, (g.make("pair", old, b), pair))
    return None


def _turned(g: Terms, pairs: Sequence[int]) -> tuple[int, int]:
    """Two pairs of which the larger's place is told, as those of which the smaller's is."""
    (_, one, first), (_, other, second) = (g.terms[p] for p in pairs)
    return g.make("pair", other, first), g.make("pair", one, second)
