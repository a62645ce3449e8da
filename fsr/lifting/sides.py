"""Both sides of branches on data: a run shows the side that its data took, so elements are read of one run with other
data after the other, until nothing is missing or nothing new is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fsr.lifting.graph import Graph
from fsr.lifting.kept import Kept
from fsr.lifting.merging import AskedOnce, merged
from fsr.lifting.refused import Refused
from fsr.lifting.watching import Run
from fsr.testgen.families import among

USUAL_FILLS, USUAL_FILLS_IN_PART = 16, 13
_FEW_FILLS_IN_PART = 5  # after which elements of runs in part that are still seen from one side may be few
_FILLS = 64  # of small runs that go on to show more: one of several values beside each other is the largest
_FEW = 0.1  # of the elements: so many others tell what they are
_LEFT_FILLS, _SMALL = 6, 20_000  # runs where some elements keep what they held: data may decide on that; of few nodes
_THRESHOLDS = 6  # at most, of what data is compared with


@dataclass(frozen=True)
class Sides:
    """Elements of an output at one choice of sizes. ``runs``: those with other data made so far, the first first;
    ``filled``: makes another, by its number and the family of its data ('' the usual ones); ``terms``: what the
    elements are in a run; ``home``: what they held before."""

    graph: Graph
    runs: list[Run]
    filled: Callable[[int, str], Run]
    terms: Callable[[Run], Sequence[int]]
    home: Sequence[int]

    def found(self, first: Sequence[int]) -> list[int]:
        """The elements' terms, in which branches that were seen from one side only are left as such. ``first``: those
        of the first run."""
        once = AskedOnce(self.graph)
        usual = USUAL_FILLS_IN_PART if self.runs[0].part else USUAL_FILLS
        first = [once.of(t) if self.graph.guarded(t) else t for t in first]
        found = self._merged(first, once.of, 1, usual)
        missing = sum(map(self.graph.guarded, found))
        if missing <= (_FEW * len(found) if self.runs[0].part else 0):
            return found
        most = _FILLS if self._small() else usual
        kept = Kept(self.graph)
        guessed = self._guessed(kept, once, usual, most)
        if unsure := frozenset(kept.one_sided):
            guessed = self._guessed(Kept(self.graph, unsure), once, len(self.runs), len(self.runs))
        return guessed

    def _guessed(self, kept: Kept, once: AskedOnce, least: int, most: int) -> list[int]:
        def read(t: int) -> int:
            return once.of(kept.of(t))

        return self._merged(list(map(read, self.terms(self.runs[0]))), read, least, most, kept)

    def _small(self) -> bool:
        return not self.runs[0].part and len(self.runs[0].trace.nodes) < _SMALL

    def _merged(
        self, found: list[int], read: Callable[[int], int], least: int, most: int, kept: Kept | None = None
    ) -> list[int]:
        """Runs read and merged in, so many at least and at most. ``kept``: what is guessed, wanting both sides seen."""
        left = self._small() and (any(map(self._held, found, self.home)) or any(map(self._kept_elsewhere, found)))
        fills = changed = 1
        while fills < most and fills - max(changed, USUAL_FILLS) < USUAL_FILLS:
            unseen = kept.one_sided if kept else []
            few = 0 if fills < (_FEW_FILLS_IN_PART if self.runs[0].part else USUAL_FILLS) else _FEW
            missing = sum(self.graph.guarded(t) for t in found) > few * len(found) or (
                kept is not None and len(unseen) > few * len(kept.seen)
            )
            if not missing and fills >= least and not (left and (fills < _LEFT_FILLS or self._left_by_chance(found))):
                break
            if fills == len(self.runs):
                late = fills >= USUAL_FILLS and fills % 2
                self.runs.append(self.filled(fills, around(self.graph, found, unseen) if late else ""))
            others = map(read, self.terms(self.runs[fills]))
            more = list(map(self._both, found, others, self.home))
            fills += 1
            changed, found = changed if more == found else fills, more
        return found

    def _both(self, a: int, b: int, home: int) -> int:
        try:
            return merged(self.graph, a, b, home, self.runs[0].kept)
        except Refused:
            return a if self.graph.guarded(a) else b if self.graph.guarded(b) else a

    def _held(self, e: int, home: int) -> bool:
        """Whether this is what an element holds where no branch writes it: what it held, or a number that was set."""
        return e == home or self.graph.terms[e][0] in ("const", "int")

    def _left_by_chance(self, found: Sequence[int]) -> bool:
        """Whether data kept some elements as they were, or what they are made of, while others are known to be kept by
        data alone."""
        terms = self.graph.terms
        pairs = list(zip(found, self.home, strict=True))
        if any(terms[t][0] == "select" and any(self._held(k, h) for k in terms[t][2:]) for t, h in pairs) and any(
            self._held(t, h) for t, h in pairs
        ):
            return True
        kept = [self._kept_elsewhere(t) for t in found]
        decided = {name for names in kept for name, by_data in names.items() if by_data}
        return any(not names.get(name, True) for names in kept for name in decided)

    def _kept_elsewhere(self, e: int) -> dict[str, bool]:
        """The buffers that keep what they held, but for the output itself, of which a term reads elements; each with
        whether data decides on any."""
        g, found, seen, todo = self.graph, dict[str, bool](), set[int](), [e]
        elsewhere = {*self.runs[0].kept} - {str(g.terms[h][1]) for h in self.home}
        while todo:
            k = todo.pop()
            if k in seen:
                continue
            seen.add(k)
            x, below = g.terms[k], g.operands(k)
            loads = [g.terms[s][1] for s in below[1:] if g.terms[s][0] == "load"] if x[0] == "select" else []
            found |= {name: True for name in loads if name in elsewhere}
            if x[0] == "load" and x[1] in elsewhere:
                found.setdefault(x[1], False)
            todo += below
        return found


def around(graph: Graph, found: Sequence[int], conditions: Sequence[int] = ()) -> str:
    """A family of data on either side of the literals that branches compare with which were seen from one side, and of
    those in other conditions."""
    todo, known, asked = list(found), set[int](), list(conditions)
    while todo:
        x = graph.terms[todo[-1]]
        below = [k for k in graph.operands(todo.pop()) if k not in known]
        known |= set(below)
        todo += below
        if x[0] == "guard":
            asked.append(x[1])
    numbers = [k for c in asked for k in graph.operands(c) if graph.terms[k][0] in ("const", "int")]
    literals = dict.fromkeys(abs(float(graph.terms[k][1])) for k in numbers if not graph.is_bound(k))
    some = [v for v in literals if v][:_THRESHOLDS]
    return among((0.0, *(sign * v for v in some for sign in (1.0, -1.0, 0.5, 2.0))))[0] if some else "motley"
