"""Several runs of one element, with other data, made one: what a branch on data does on either side is a select."""

from __future__ import annotations

from collections.abc import Container, Sequence

from fsr.lifting.graph import LISTS, Graph
from fsr.lifting.refused import Hopeless, Refused

_LONGEST_CONDITION = 1000  # terms, written out
_MOST_ASKED = 400_000  # terms under conditions, each by what else is decided: hundreds of branches one in another


class AskedOnce:
    """Terms in which no condition is asked again inside a branch that it decides on: what a block keeps between the
    branch and its result (in shared memory, in what lanes pass on) is under that condition too."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._known: dict[tuple[int, frozenset[tuple[int, bool]]], int] = {}

    def of(self, e: int, decided: frozenset[tuple[int, bool]] = frozenset()) -> int:
        """The term where the conditions ``decided`` have these outcomes."""
        if (e, decided) not in self._known:
            if len(self._known) > _MOST_ASKED:
                raise Hopeless("branches on data stand one in another, too many to tell apart")
            self._known[e, decided] = self._of(e, decided)
        return self._known[e, decided]

    def _of(self, e: int, decided: frozenset[tuple[int, bool]]) -> int:
        g, x = self.graph, self.graph.terms[e]
        if x[0] == "guard":
            condition = self._condition(x[1], decided)
            outcome = (condition, bool(x[2]))
            if outcome in decided:
                return self.of(x[3], decided)
            return g.guard(condition, bool(x[2]), self.of(x[3], self._with(decided, *outcome)))
        if x[0] == "select":
            condition = self._condition(x[1], decided)
            for side, holds in ((x[2], True), (x[3], False)):
                if (condition, holds) in decided:
                    return self.of(side, decided)
            sides = (self.of(k, self._with(decided, condition, holds)) for k, holds in ((x[2], True), (x[3], False)))
            return g.selected(condition, *sides)
        return g.rebuilt(e, [self.of(k, decided) for k in g.operands(e)])

    def _condition(self, c: int, decided: frozenset[tuple[int, bool]]) -> int:
        """As of, of a condition; as it is where it is long, as that of a running maximum, whose steps each compare
        with what the steps before it left."""
        return self.of(c, decided) if self.graph.written_out(c) <= _LONGEST_CONDITION else c

    def _with(self, decided: frozenset[tuple[int, bool]], c: int, holds: bool) -> frozenset[tuple[int, bool]]:
        return decided | {(c, holds), (self.graph.opposite(c), not holds)}


def one_type(g: Graph, e: int, dtype: str) -> int:
    """An element of an unsigned type that data chooses, with an element that is kept as its bits where what else it may
    become is told as a signed value."""
    x = g.terms[e]
    if x[0] != "select":
        return e
    sides = [one_type(g, int(k), dtype) for k in x[2:]]
    kept = [g.terms[k][0] == "load" for k in sides]
    if any(kept) and not all(kept):
        sides = [g.op(dtype[1:], k) if is_kept else k for k, is_kept in zip(sides, kept, strict=True)]
    return g.selected(int(x[1]), *sides)


def as_summed(g: Graph, terms: Sequence[int], dtype: str) -> list[int]:
    """Elements of an unsigned output with those that are stored as they were read told as the signed values of their
    bits where others are sums or extremes of such: a running sum's first one."""
    signed = dtype[1:] if dtype.startswith("uint") else ""
    below = {k for t in set(terms) if g.terms[t][0] in LISTS for k in g.terms[t][1]}
    if not any(g.terms[k][0] == signed and g.terms[g.terms[k][1]][0] == "load" for k in below):
        return list(terms)
    return [g.make(signed, t) if g.terms[t][0] == "load" else t for t in terms]


def merged(g: Graph, a: int, b: int, home: int, kept: Container[str] = ()) -> int:
    """Both runs' terms as one: equal but for branches on data with opposite outcomes. ``home``: what the element holds
    where neither side writes it. ``kept``: buffers that keep what they held where a branch does not write, and are read
    again after it. Raises Refused."""
    return _Merging(g, home, kept).of(a, b)


def _latest(g: Graph, e: int) -> tuple[int, int, int] | None:
    """The place of an extreme as the choice that its last value makes: the condition, the last one's place, and the
    place before."""
    *before, (_, new, place) = (g.terms[p] for p in g.terms[e][1])
    if not before:
        return None
    op = g.terms[e][0]
    old = g.list_of(op[3:], [x[1] for x in before])
    held = g.make(op, tuple(g.terms[e][1][:-1])) if len(before) > 1 else before[0][2]
    return g.compared("gt", *((new, old) if op == "argmax" else (old, new))), place, held


class _Merging:
    """Each pair of terms is merged once, however often it stands in the two."""

    def __init__(self, graph: Graph, home: int, kept: Container[str]) -> None:
        self.graph, self.home, self.kept = graph, home, kept
        self._known: dict[tuple[int, int], int] = {}

    def of(self, a: int, b: int) -> int:
        if a == b:
            return a
        if (a, b) not in self._known:
            self._known[a, b] = self._of(a, b)
        return self._known[a, b]

    def _of(self, a: int, b: int) -> int:
        g = self.graph
        x, y = g.terms[a], g.terms[b]
        if x[0] == "guard" and y[0] == "guard" and x[1] == y[1]:
            if x[2] == y[2]:
                return g.make("guard", x[1], x[2], self.of(x[3], y[3]))
            return g.selected(x[1], *((x[3], y[3]) if x[2] else (y[3], x[3])))
        if y[0] == "guard" and x[0] != "guard":
            a, b, x, y = b, a, y, x
        if x[0] == "guard":
            return self._with_guard(a, b)
        if x[0] == y[0] and x[0] in LISTS and len(x[1]) == len(y[1]):
            return g.list_of(x[0], [self.of(p, q) for p, q in zip(x[1], y[1], strict=True)])
        below, other = g.operands(a), g.operands(b)
        if x[0] == y[0] and x[0] not in LISTS and below and len(below) == len(other):
            if x[0] == "load" and x[1] != y[1]:
                raise Refused("two runs differ by more than a branch on data")
            return g.rebuilt(a, [self.of(p, q) for p, q in zip(below, other, strict=True)])
        raise Refused("two runs differ by more than a branch on data")

    def _with_guard(self, a: int, b: int) -> int:
        """A guarded term and one that is none."""
        g = self.graph
        x, y = g.terms[a], g.terms[b]
        condition, holds, value = x[1], bool(x[2]), x[3]
        set_before = y[0] in ("const", "int") and not g.guarded(value)  # a number, where the branch does not write
        if b == self.home or set_before or (y[0] == "load" and y[1] in self.kept):
            return g.selected(condition, *((value, b) if holds else (b, value)))
        compared = g.operands(condition)
        if y[0] in ("max", "min") and compared and set(compared) == set(y[1]):
            if value in y[1]:
                return b
            if g.terms[condition][0] in ("gt", "ge"):  # it was no extreme that the comparison kept
                other = compared[0] if (y[0] == "max") != holds else compared[1]
                return g.selected(condition, *((value, other) if holds else (other, value)))
        if y[0] in ("argmax", "argmin") and (latest := _latest(g, b)) is not None:
            y = ("select", *latest)
        if y[0] == "select" and y[1] == condition:
            sides = [y[2], y[3]]
            sides[0 if holds else 1] = self.of(value, sides[0 if holds else 1])
            return g.selected(condition, *sides)
        opposite = g.opposite(condition)
        if y[0] == "select" and y[1] == opposite:
            return self._with_guard(g.make("guard", opposite, int(not holds), value), b)
        raise Refused("two runs differ by more than a branch on data")
