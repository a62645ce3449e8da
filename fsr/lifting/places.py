"""The place of a maximum or a minimum, ``if (v > best) { best = v; at = i; }``: told by what beats all before it."""

from __future__ import annotations

import itertools
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


def first_of_both(g: Terms, x: tuple[Any, ...], a: int, b: int) -> int | None:
    """What is chosen of two extremes and their places by which is beyond the other, or of equals by which is first:
    ``if (v > best || (v == best && i < at))``, of parts that each know their first one. ``x``: the condition."""
    if x[0] != "or":
        return None
    for beyond, tie in ((x[1], x[2]), (x[2], x[1])):
        (kind, one, other), both = g.terms[beyond][:3] if len(g.terms[beyond]) == 3 else ("", 0, 0), g.terms[tie]
        equal = {("eq", one, other), ("eq", other, one)}
        first = [g.terms[k] for k in both[1:] if g.terms[k] not in equal] if both[0] == "and" else []
        if kind != "gt" or len(first) != 1 or len(both) != 3 or first[0][0] not in ("gt", "ge"):
            continue
        for op, new, old in (("argmax", one, other), ("argmin", other, one)):
            if (a, b) == (new, old):
                return g.list_of(op[3:], [a, b])
            if first[0][1:] == (b, a):  # the one that is taken has the lesser place
                pairs = _pairs(g, op, new, a), _pairs(g, op, old, b)
                if pairs[0] and pairs[1]:
                    return _in_order(g, op, [*pairs[0], *pairs[1]])
    return None


def _pairs(g: Terms, op: str, value: int, at: int) -> tuple[int, ...]:
    """The elements of an extreme with their places, where that is its place, the first one of equals; empty where it is
    not."""
    best, held = g.terms[value], g.terms[at]
    values = set(best[1]) if best[0] == op[3:] else {value}
    if held[0] == "int" and len(values) == 1:
        return (g.make("pair", value, at),)
    pairs = tuple(held[1]) if held[0] in ("argmax", "argmin") else ()
    if held[0] != op and len(pairs) == 2:
        pairs = _turned(g, pairs)
    found = [g.terms[int(g.terms[p][2])] for p in pairs]
    rising = all(x[0] == "int" for x in found) and all(x[1] < y[1] for x, y in itertools.pairwise(found))
    return pairs if pairs and rising and {g.terms[p][1] for p in pairs} == values else ()


def _in_order(g: Terms, op: str, pairs: Sequence[int]) -> int | None:
    """The place of an extreme of elements in the order of their places, of which no two are the same."""
    at = [int(g.terms[int(g.terms[p][2])][1]) for p in pairs]
    if len(set(at)) < len(at):
        return None
    return g.make(op, tuple(p for _, p in sorted(zip(at, pairs, strict=True))))
