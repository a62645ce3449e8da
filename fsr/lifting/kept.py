"""What a branch keeps by comparing it, ``if (v > best) best = v``: the larger of the two, whichever side was seen.

A guess, for terms that no number of runs shows from both sides: of a running maximum each step is compared with what
the steps before it left, so that no two runs have the same conditions, and the last of many steps hardly ever finds a
larger value. Where another run shows that something else is kept, it is told there (see merging). What is compared with
a literal wants both sides seen: a literal may be as far away as the data of no check goes.
"""

from __future__ import annotations

from collections.abc import Container

from fsr.lifting.graph import Graph


class Kept:
    """Terms with such branches as maxima and minima. ``but``: conditions of which nothing is guessed."""

    def __init__(self, graph: Graph, but: Container[int] = ()) -> None:
        self.graph, self.but = graph, but
        self.seen: dict[int, set[bool]] = {}  # by comparison with a literal, its outcomes
        self._known: dict[int, int] = {}

    def of(self, e: int) -> int:
        """The term with every branch in it that keeps what it compares told as the extreme that it is."""
        g = self.graph
        for k in g.upward(e, self._known):
            parts = [self._known[part] for part in g.operands(k)]
            self._known[k] = self._kept(g.rebuilt(k, parts))
        return self._known[e]

    @property
    def one_sided(self) -> list[int]:
        """The comparisons with literals that always came out alike: data on the other side may do anything."""
        return [condition for condition, outcomes in self.seen.items() if len(outcomes) == 1]

    def _kept(self, e: int) -> int:
        g, x = self.graph, self.graph.terms[e]
        if x[0] != "guard" or g.terms[x[1]][0] not in ("gt", "ge") or x[1] in self.but:
            return e
        _, more, less = g.terms[x[1]]
        greater, smaller = (more, less) if x[2] else (less, more)
        if self._begins(more, less) and x[2]:
            return int(x[3])
        if any(g.terms[k][0] in ("const", "int") for k in (more, less)):
            self.seen.setdefault(x[1], set()).add(bool(x[2]))
        if x[3] in (greater, smaller):
            return g.list_of("max" if x[3] == greater else "min", [more, less])
        return e

    def _begins(self, more: int, less: int) -> bool:
        """Whether any number compares like this: with the bound that an extreme begins with. That a magnitude is less
        than infinite is asked for its own sake."""
        g = self.graph
        return g.is_bound(less, -1) or (g.is_bound(more, 1) and g.terms[less][0] != "fabs")
