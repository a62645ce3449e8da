"""What threads add where a condition on data holds: each run shows the additions whose condition held in it, and what
was seen in any run is added in all, or nothing in its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from fsr.lifting.graph import Graph


@dataclass
class Additions:
    """What is added to ``base`` under which conditions, as far as it is known."""

    base: int
    terms: dict[tuple[int, ...], tuple[int, ...]] = field(default_factory=dict)  # by conditions that all hold

    def joined(self, other: Additions) -> bool | None:
        """Takes those of another run too; whether any was new, None where the two contradict each other."""
        if self.base != other.base or any(self.terms.get(k, v) != v for k, v in other.terms.items()):
            return None
        new = not other.terms.keys() <= self.terms.keys()
        self.terms |= other.terms
        return new

    def term(self, g: Graph, zero: int) -> int:
        """The sum of all."""
        found = [] if is_zero(g, self.base) else [self.base]
        for conditions, added in self.terms.items():
            if not conditions:
                found += added
                continue
            holds = conditions[0]
            for c in conditions[1:]:
                holds = g.make("and", holds, c)
            found += [_where(g, holds, a, zero) for a in added]
        return g.list_of("sum", found) if found else zero


def _is_sum(g: Graph, e: int) -> bool:
    return bool(g.terms[e][0] == "sum")


def is_zero(g: Graph, e: int) -> bool:
    """Whether a term is nought."""
    return g.is_value(e, 0.0) or g.terms[e][:2] == ("int", 0)


def _where(g: Graph, holds: int, added: int, zero: int) -> int:
    x = g.terms[added]
    return g.op(str(x[2]), holds) if x[:2] == ("int", 1) else g.make("select", holds, added, zero)


def _guards(g: Graph, e: int) -> tuple[list[int], int]:
    """The conditions under which a term stands, and what stands there."""
    conditions = list[int]()
    while g.terms[e][0] == "guard":
        _, c, holds, e = g.terms[e]
        conditions.append(c if holds else g.opposite(c))
    return conditions, e


def unasked(g: Graph, e: int) -> int:
    """A term without the questions whether there is anything to add: after ``if (n > 0) atomicAdd(&bins[b], n)``
    an element holds what it would without them. Of counts that data places only, which no select could tell."""
    x = g.terms[e]
    if x[0] == "sum":
        parts = [unasked(g, k) if g.terms[k][0] in ("guard", "sum") else k for k in x[1]]
        return e if parts == list(x[1]) else g.list_of("sum", parts)
    if x[0] != "guard":
        return e
    inner, asked = unasked(g, x[3]), _asked_of(g, x[1] if x[2] else g.opposite(x[1]))
    if asked is None or not Counter(_placed(g, asked)) <= Counter(g.terms[inner][1] if _is_sum(g, inner) else [inner]):
        return g.make("guard", x[1], x[2], inner)
    return inner


def _asked_of(g: Graph, condition: int) -> int | None:
    """The value that a condition asks to be more than nothing; None where it asks anything else."""
    x = g.terms[condition]
    value = int(x[1]) if x[0] in ("ne", "gt") and is_zero(g, int(x[2])) else None
    return value if value is not None and _placed(g, value) else None


def _placed(g: Graph, e: int) -> tuple[int, ...]:
    """The terms of a sum where all are what data places; none where any is something else."""
    parts = g.terms[e][1] if _is_sum(g, e) else (e,)
    return tuple(parts) if all(g.terms[k][0] == "chosen" for k in parts) else ()


def additions(g: Graph, e: int, home: int) -> Additions | None:
    """What a term adds to what its element held; None where it is no chain of additions. ``home``: what it held."""
    found: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    while e != home:
        conditions, e = _guards(g, e)
        parts = g.terms[e][1] if g.terms[e][0] == "sum" else (e,)
        before = [k for k in parts if k == home or g.terms[k][0] == "guard"]
        if len(before) > 1 or not conditions:
            return None
        found.append((tuple(dict.fromkeys(conditions)), tuple(k for k in parts if k not in before)))
        if not before:
            if not is_zero(g, home):  # a value takes its place
                return None
            break
        e = before[0]
    if len(dict(found)) < len(found):
        return None
    return Additions(home, dict(found))


def zero_like(g: Graph, kept: Mapping[tuple[int, ...], tuple[int, ...]], dtype: str) -> int:
    """Nothing to add, of the type of what is."""
    x = next((g.terms[k] for added in kept.values() for k in added), ("const", 0.0, dtype))
    whole = x[0] == "int" or "int" in dtype
    return g.integer(0, str(x[2]) if x[0] == "int" else dtype.removeprefix("u")) if whole else g.const(0.0, dtype)


__all__ = ["Additions", "additions", "is_zero", "unasked", "zero_like"]
