"""What a thread sums up by itself under conditions on data, ``if (c[j] == i) s += x[j]``, wherever in a term the sum
stands. Each run shows the additions whose condition held in it, among conditions that came out anyhow; what is seen in
any run is added in all, or nothing in its place.

The condition of an addition is one that held whenever it was there, and not when it was missing: the latter tells in a
few runs which of those asked on the way to it is its own, where the former alone would want two additions at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fsr.lifting.additions import Additions, is_zero, zero_like
from fsr.lifting.graph import Graph
from fsr.lifting.watching import Run

Added = tuple[int, int]  # a term, and of a number, which tells nothing by itself, the condition around it
_SUMMED = 2  # terms of a sum at least
_ZEROS = 9  # runs, the first, of which the data are zeros, mostly
_PROBED = 16  # runs, after which a sum of so many has shown itself
_SAME, _LONG, _MOST = 10, 40, 160  # runs in a row that show nothing new, and where more is to be expected; at most
_TOGETHER, _NEAREST = 3, 6  # conditions that all hold, at most; of the ones around an addition, the innermost


@dataclass(frozen=True)
class Shown:
    """A sum in one run. ``outcomes``: all conditions that held, the outermost first; ``added``: by what was added those
    on the way to it, the innermost first; ``times``: how often something was added."""

    outcomes: tuple[int, ...]
    times: int
    added: Mapping[Added, tuple[int, ...]]


def shown(g: Graph, e: int) -> tuple[bool, Shown] | None:
    """A term as such a sum, and whether of whole numbers; None where it is none."""
    outcomes, added, whole, times = list[int](), dict[Added, tuple[int, ...]](), False, 0
    while True:
        conditions = list[int]()
        while g.terms[e][0] == "guard" and not g.guarded(g.terms[e][1]):
            _, c, holds, e = g.terms[e]
            conditions.append(c if holds else g.opposite(c))
        outcomes += conditions
        whole |= g.terms[e][0] == "int"
        if is_zero(g, e):
            return whole, Shown(tuple(outcomes), times, added)
        parts = g.terms[e][1] if g.terms[e][0] == "sum" else (e,)
        before = [k for k in parts if g.terms[k][0] == "guard"]
        new = [k for k in parts if k not in before]
        if len(before) > 1 or not conditions or any(map(g.guarded, new)):
            return None
        times += 1
        for k in new:
            number = g.terms[k][0] in ("const", "int")
            whole |= g.terms[k][0] == "int"
            key = (k, conditions[-1] if number else 0)
            if key in added:
                return None
            added[key] = tuple(reversed(conditions))
        if not before:
            return whole, Shown(tuple(outcomes), times, added)
        e = before[0]


def heads(g: Graph, e: int) -> dict[int, tuple[bool, Shown]]:
    """The sums in a term, by where each begins."""
    found, seen, todo = dict[int, tuple[bool, Shown]](), set[int](), [e]
    while todo:
        k = todo.pop()
        if k in seen or not g.guarded(k):
            continue
        seen.add(k)
        one = shown(g, k) if g.terms[k][0] == "guard" else None
        if one is not None:
            found[k] = one
        else:
            todo += g.operands(k)
    return found


_NOTHING = Shown((), 0, {})


@dataclass
class Tally:
    """A sum as far as runs have shown it. ``within``: by condition, either way, those that held whenever it was asked:
    it stands inside them; ``times``: how often something was added in one run."""

    graph: Graph
    added: dict[Added, tuple[int, ...]] = field(default_factory=dict)
    runs: list[tuple[frozenset[int], frozenset[Added]]] = field(default_factory=list)
    within: dict[int, frozenset[int]] = field(default_factory=dict)
    times: int = 0
    _shown: set[int] = field(default_factory=set)

    def take(self, one: Shown) -> None:
        """What another run shows."""
        self.times = max(self.times, one.times)
        self._shown |= set(one.outcomes)
        outer = set[int]()
        for c in one.outcomes:
            before = self.within.get(self._either(c))
            if before is None or before:
                self.within[self._either(c)] = frozenset(outer if before is None else before & outer)
            outer.add(c)
        for key, conditions in one.added.items():
            held = self.added.get(key, conditions)
            self.added[key] = tuple(c for c in held if c in conditions)
        self.runs.append((frozenset(one.outcomes), frozenset(one.added)))

    def conditions(self) -> dict[Added, tuple[int, ...]] | None:
        """Under which conditions each is added, none where always; None where that is not told."""
        found = dict[Added, tuple[int, ...]]()
        for key, held in self.added.items():
            missing = [outcomes for outcomes, there in self.runs if key not in there]
            if not held:
                if missing:
                    return None
                found[key] = ()
                continue
            some = (c for n in range(1, _TOGETHER + 1) for c in itertools.combinations(held[:_NEAREST], n))
            own = next((c for c in some if not any(map(frozenset(c).issubset, missing))), None)
            if own is None:
                return None
            found[key] = self._with_outer(own, held)
        return found

    def _with_outer(self, conditions: tuple[int, ...], held: Sequence[int]) -> tuple[int, ...]:
        """With those that these stand inside, which are not asked where those do not hold, the outermost first. Of a
        sum in memory only those that hold are shown, on the way to what is added: all of them count."""
        g = self.graph
        every = {*conditions, *(c for c in held if g.opposite(c) not in self._shown)}
        for c in conditions:
            asked = {c, g.opposite(c)}
            unasked = [outcomes for outcomes, _ in self.runs if asked.isdisjoint(outcomes)]
            every |= {d for d in self.within[self._either(c)] if any(g.opposite(d) in outcomes for outcomes in unasked)}
        return tuple(sorted(every, key=lambda c: (len(self.within[self._either(c)]), c)))

    def _either(self, c: int) -> int:
        """The condition or its opposite: the same of both."""
        return min(c, self.graph.opposite(c))

    def is_sum(self) -> bool:
        """Whether more was seen at once than one value or another."""
        return self.times >= _SUMMED

    def is_settled(self) -> bool:
        """Whether everything was there and missing, and each condition seen to hold and not to."""
        return self.was_missing() and all(self.graph.opposite(c) in self._shown for c in self._shown)

    def was_missing(self) -> bool:
        """Whether everything that is added under conditions was missing in a run."""
        return all(not held or any(key not in there for _, there in self.runs) for key, held in self.added.items())


class Tallies:
    """The sums in an element's term: one of whole numbers, one of others; several of a kind are not told apart."""

    def __init__(self, g: Graph) -> None:
        self.g, self.kinds, self._several = g, dict[bool, Tally](), set[bool]()
        self._made: dict[bool, int] = {}

    def saw(self, e: int) -> None:
        """What another run shows."""
        found = heads(self.g, e)
        for whole in (False, True):
            ones = [one for is_whole, one in found.values() if is_whole == whole]
            if any(one.added.keys() != ones[0].added.keys() for one in ones):
                self._several.add(whole)
            elif ones:  # one sum, though asked for in several ways
                self.kinds.setdefault(whole, Tally(self.g)).take(max(ones, key=lambda one: len(one.outcomes)))
            elif whole in self.kinds:
                self.kinds[whole].take(_NOTHING)

    def sums(self) -> dict[bool, Tally]:
        """Those that are told by what was seen."""
        return {whole: t for whole, t in self.kinds.items() if whole not in self._several and t.is_sum()}

    def seen(self) -> int:
        """A number that changes with what is known: by every addition, and every condition that is none of its own."""
        return sum(
            1 << 20 if not held else (1 << 20) - len(held) for t in self.kinds.values() for held in t.added.values()
        )

    def settle(self, dtype: str) -> None:
        """Makes the terms of what is known. ``dtype``: of the element."""
        for whole, tally in self.sums().items():
            known = tally.conditions()
            if known is None or not tally.was_missing():
                continue
            by = dict[tuple[int, ...], tuple[int, ...]]()
            for (term, _), conditions in known.items():
                by[conditions] = (*by.get(conditions, ()), term)
            zero = zero_like(self.g, by, "int32" if whole and "int" not in dtype else dtype)
            self._made[whole] = Additions(zero, by).term(self.g, zero)

    def told(self, e: int) -> int:
        """A run's term with its sums as they are in all: nothing, too, where a sum in memory was added nothing to."""
        g = self.g
        if len(self._made) == 1 and is_zero(g, e):
            return next(iter(self._made.values()))
        known = {k: self._made[whole] for k, (whole, _) in heads(g, e).items() if whole in self._made}
        if not known:
            return e
        for k in g.upward(e, known):
            known[k] = g.rebuilt(k, [known[part] for part in g.operands(k)])
        return known[e]


def tallied(
    g: Graph, first: Sequence[int], runs: list[Run], filled: Callable[[int, str], Run],
    terms: Callable[[Run], Sequence[int]], dtype: str,
) -> Callable[[Sequence[int]], Sequence[int]]:  # fmt: skip
    """Makes of a run's terms of elements those with their sums as they are in all. ``first``: the first run's;
    ``runs``: those made so far, to which others are added; ``filled``: makes the n-th, of data of a family, '' for the
    usual ones; ``terms``: those of a run; ``dtype``: the elements'."""
    found = [Tallies(g) for _ in first]
    same, known = 0, list[int]()
    for n in range(_MOST if any(map(g.guarded, first)) else 0):
        if n == len(runs):  # of one value each, every second: a condition on it holds everywhere or nowhere
            one_value = n >= _ZEROS and n % 2 and not runs[0].part
            runs.append(filled(n, "constant" if one_value else ""))
        for one, e in zip(found, terms(runs[n]) if n else first, strict=True):
            one.saw(e)
        if n + 1 == _PROBED and not any(one.sums() for one in found):
            return lambda others: others
        seen = [one.seen() for one in found]
        same, known = same + 1 if seen == known and n >= _PROBED else 0, seen
        if same >= _LONG or (same >= _SAME and same % 2 == 0 and _all_seen(found)):
            break
    for one in found:
        one.settle(dtype)
    return lambda others: [one.told(e) for one, e in zip(found, others, strict=True)]


def _all_seen(found: Sequence[Tallies]) -> bool:
    """Whether no more is to be expected: everything was missing once, and elements have as many terms each, under as
    many conditions."""
    tallies = [(whole, t) for one in found for whole, t in one.kinds.items()]
    alike = {(whole, len(t.added), *map(len, (t.conditions() or {}).values())) for whole, t in tallies}
    return len(alike) == len({whole for whole, _ in tallies}) and all(t.is_settled() for _, t in tallies)
