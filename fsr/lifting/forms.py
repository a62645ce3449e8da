"""What terms of one form have in common: their skeleton without indices and lengths, their indices in order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from fsr.lifting.graph import LISTS, Graph
from fsr.lifting.refused import Hopeless

# Whole numbers in all index vectors: terms share their parts, the vectors write them out. A chain of selections that
# each name the one before twice would fill any memory.
_MOST = 1 << 24
FEWEST = 5  # terms that make a fold: the sizes that are watched make every loop over one longer somewhere


class Forms:
    """Skeletons and index vectors of a graph's terms, kept once they are known."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._skeletons: dict[int, int] = {}
        self._numbers: dict[object, int] = {}
        self._indices: dict[int, tuple[int, ...]] = {}
        self._held = 0
        self._folded: set[int] = set()  # skeletons of folds that some terms are
        self._outlines: dict[int, int] = {}
        self._outlined = 0  # how many of these were known when the outlines were found

    def skeleton(self, e: int) -> int:
        """A number that terms of one form share: whole numbers and the lengths of folds do not count. Raises Hopeless
        where terms are too long when written out."""
        if e not in self._skeletons:  # asked for again and again
            self._visit(e)
        return self._skeletons[e]

    def outlines(self, terms: Sequence[int]) -> list[int]:
        """As skeletons of terms that are compared, but what is folded over one element in some is as the fold over
        many that it is in others: the first row of a causal softmax, whose maximum is its only element. Raises
        Hopeless."""
        for t in dict.fromkeys(terms):
            self.skeleton(t)
        if self._outlined != len(self._folded):
            self._outlines, self._outlined = {}, len(self._folded)
        return [self._outline(t) for t in terms]

    def _outline(self, e: int) -> int:
        if e not in self._outlines:
            for k in self.graph.upward(e, self._outlines):
                inner = [self._outlines[o] for o in self.graph.operands(k)]
                one = self._skeletons[k] in self._folded and len(set(inner)) == 1
                self._outlines[k] = inner[0] if one else self._number(self._shape(k, inner))
        return self._outlines[e]

    def grouped(self, lists: Sequence[Sequence[int]]) -> dict[int, list[list[int]]]:
        """The terms of each form in each of the lists; those of one outline together where each list has one of its
        forms: what some lists fold over a single element of stands for itself there."""
        groups: dict[int, list[list[int]]] = {}
        for n, items in enumerate(lists):
            for k in items:
                form = self.skeleton(k)
                if form not in groups:
                    groups[form] = [[] for _ in lists]
                groups[form][n].append(k)
        return groups if all(all(by) for by in groups.values()) else self._alike(groups)

    def _alike(self, groups: dict[int, list[list[int]]]) -> dict[int, list[list[int]]]:
        """Groups with those of one outline together, where each list has a term of one of them."""
        alike: dict[int, list[int]] = {}
        firsts = [next(items[0] for items in by if items) for by in groups.values()]  # one form has one outline
        for form, outline in zip(groups, self.outlines(firsts), strict=True):
            alike.setdefault(outline, []).append(form)
        for first, *others in alike.values():
            columns = list(zip(*(groups[f] for f in (first, *others)), strict=True))
            if others and all(sum(map(bool, c)) == 1 for c in columns):
                groups[first] = [list(chain(*c)) for c in columns]
                for form in others:
                    del groups[form]
        return groups

    def indices(self, e: int) -> tuple[int, ...]:
        """All whole numbers in a term, in order; of a fold's terms of one form the least."""
        if e not in self._indices:
            self._visit(e)
        return self._indices[e]

    def _visit(self, e: int) -> None:
        for k in self.graph.upward(e, self._skeletons):
            self._held += sum(len(self._indices[o]) for o in self.graph.operands(k))  # at most what it will have
            if self._held > _MOST:
                raise Hopeless("expressions share so many parts that they cannot be written out")
            self._skeletons[k] = self._number(self._shape(k, [self._skeletons[o] for o in self.graph.operands(k)]))
            self._indices[k] = self._vector(k)
            x = self.graph.terms[k]
            if x[0] in LISTS and len(x[1]) >= FEWEST and len({self._skeletons[o] for o in x[1]}) == 1:
                self._folded.add(self._skeletons[k])

    def _number(self, shape: object) -> int:
        return self._numbers.setdefault(shape, len(self._numbers))

    def _shape(self, e: int, below: Sequence[int]) -> object:
        x = self.graph.terms[e]
        if x[0] == "const":
            return x
        if x[0] == "int":
            return ("int", x[2])
        if x[0] == "load":
            return ("load", x[1], *below)
        if x[0] in LISTS:
            return (x[0], tuple(sorted(set(below))))
        return (x[0], x[2], *below) if x[0] == "guard" else (x[0], *below)

    def _vector(self, e: int) -> tuple[int, ...]:
        x, operands = self.graph.terms[e], self.graph.operands(e)
        if x[0] == "int":
            return (x[1],)
        if x[0] in LISTS:
            groups: dict[int, list[tuple[int, ...]]] = {}
            for k in operands:
                groups.setdefault(self._skeletons[k], []).append(self._indices[k])
            return tuple(c for s in sorted(groups) for c in min(groups[s]))
        return tuple(c for k in operands for c in self._indices[k])

    # ------------------------------------------------------------ chains

    def spine(self, e: int) -> list[tuple[tuple[str, int | None, int], tuple[int, ...], int]]:
        """From a term down its deepest operand: (operation, position, how many others; position None of an associative
        one), the others, the term."""
        g = self.graph
        found: list[tuple[tuple[str, int | None, int], tuple[int, ...], int]] = []
        while True:
            below = g.operands(e)
            if not below or g.terms[e][0] == "load":
                return found
            at = max(range(len(below)), key=lambda n: g.depth(below[n]))
            rest = (*below[:at], *below[at + 1 :])
            position = None if g.terms[e][0] in LISTS else at
            found.append(((g.terms[e][0], position, len(rest)), rest, e))
            e = below[at]
