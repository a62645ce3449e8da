"""From terms of single elements at a few sizes to one expression over named dimensions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fsr.computation.expression import (
    ASSOCIATIVE,
    Affine,
    Carried,
    Case,
    Const,
    Expr,
    Index,
    Load,
    Number,
    Op,
    Recurrence,
    Remainder,
)  # fmt: skip
from fsr.lifting.allowance import Allowance
from fsr.lifting.conditions import Branch, comparisons, decision
from fsr.lifting.divided import divided
from fsr.lifting.folds import Folding
from fsr.lifting.forms import Forms
from fsr.lifting.graph import LISTS, Graph
from fsr.lifting.pieces import in_pieces
from fsr.lifting.points import Points, affine_fit
from fsr.lifting.refused import Refused, Unexplained
from fsr.lifting.rings import on_ring, stopped
from fsr.lifting.steps import by_count, by_steps
from fsr.lifting.turns import by_turn
from fsr.lifting.wrapped import wrapped

_LONGEST_PERIOD = 7
_SEARCH = 0.3  # of the time that is left: to look for boundaries between forms, of which there may be very many
_CONSTANTS_APART = "forms differ, and not by a condition on indices"


@dataclass
class Generaliser:
    """Finds what explains all samples. ``sizes``: names of columns that are sizes. ``shapes``: of each buffer in each
    run; ``timed``: at the first timed sizes. ``dtypes``: of buffers and scalars."""

    graph: Graph
    sizes: Sequence[str]
    shapes: Sequence[Mapping[str, tuple[int, ...]]]
    timed: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]
    allowance: Allowance
    fresh: itertools.count[int] = field(default_factory=itertools.count)
    _known: dict[object, Expr | str] = field(default_factory=dict)
    _parting: int = 0  # how many splits are under way
    _until_s: float = -math.inf  # of the allowance, while a boundary is looked for
    _in_pieces: bool = False  # whether numbers may be affine in pieces

    def __post_init__(self) -> None:
        self.forms = Forms(self.graph)
        self.folding = Folding(self)
        self._search_s = _SEARCH * self.allowance.left_s

    # ------------------------------------------------------------ indices

    def affine(self, points: Points, values: Sequence[int]) -> Affine:
        """The affine expression of these values. Raises Refused."""
        found = affine_fit(points, np.array(values, np.int64), self.sizes)
        if found is None:
            raise Refused("an index or a length is not affine")
        return Affine(tuple(sorted(found[0].items())), found[1])

    def index(self, points: Points, values: Sequence[int]) -> Index:
        """As affine; else a remainder or a quotient of a dimension. Raises Refused."""
        array = np.array(values, np.int64)
        found = affine_fit(points, array, self.sizes)
        if found is not None:
            return Affine(tuple(sorted(found[0].items())), found[1])
        return divided(points, array, self.sizes) or on_ring(points, array, self.sizes)

    # ------------------------------------------------------------ values

    def fit(self, points: Points) -> Expr:
        """The expression of all samples, of no more dimensions than decide on it. Raises Refused."""
        narrow = self._projected(points)
        try:
            return self._remembered(narrow)
        except Refused:
            if len(narrow.columns) == len(points.columns):
                raise
        return self._remembered(points)

    def _projected(self, points: Points) -> Points:
        if len(set(points.terms)) == len(points):
            return points
        for name in reversed([n for n in points.columns if n not in self.sizes]):
            if points.decided_without(name):
                points = points.without(name)
        return points

    def _remembered(self, points: Points) -> Expr:
        if self.allowance.left_s <= 0:
            raise Refused("generalising took too long")
        self._check_search()
        key = self._parting > 0, self._in_pieces, points.key()
        found = self._known.get(key)
        if found is None:
            try:
                found = self._fit(points)
            except Refused as why:
                found = str(why)
            except RecursionError:
                found = "expressions too deep"
            self._known[key] = found
        if isinstance(found, str):
            raise Refused(found)
        return found

    def _fit(self, points: Points) -> Expr:
        g, terms = self.graph, points.terms
        kinds = {g.terms[t][0] for t in terms}
        depths = [g.depth(t) for t in set(terms)]
        if max(depths) - min(depths) > 5:
            try:
                return self._recurrence(points)
            except Refused:
                pass
        op = next((op for op in LISTS if op in kinds), None)
        why: Refused | None = None
        if op is not None and self._all_of(op, terms):
            try:
                return self.folding.associative(op, points, [self._items(op, t) for t in terms])
            except Refused as refused:
                if len({self.forms.skeleton(t) for t in terms}) == 1:
                    raise
                why = refused
        elif op is None and len(kinds) == 1:
            found = self._same(points, kinds.pop())
            if found is not None:
                return found
        labels = [self.forms.skeleton(t) for t in terms]
        if len(set(labels)) == 1:
            raise why or Refused("forms differ")
        outlines = self.forms.outlines(terms)
        for told in (outlines, labels) if 1 < len(set(outlines)) < len(set(labels)) else (labels,):
            with suppress(Refused):
                return self.cases(points, told)
        raise why or Refused(_CONSTANTS_APART)

    def _all_of(self, op: str, terms: Sequence[int]) -> bool:
        """Whether what is no such operation may be one of length one or nought."""

        def among(forms: Mapping[int, int]) -> bool:
            inner = {forms[k] for t in set(terms) if g.terms[t][0] == op for k in g.terms[t][1]}
            return all(g.terms[t][0] == op or (zero and g.is_value(t, 0.0)) or forms[t] in inner for t in set(terms))

        g, zero = self.graph, op == "sum"
        every = [*{*terms, *(k for t in set(terms) if g.terms[t][0] == op for k in g.terms[t][1])}]
        if among({t: self.forms.skeleton(t) for t in every}):
            return True
        return among(dict(zip(every, self.forms.outlines(every), strict=True)))

    def _items(self, op: str, t: int) -> list[int]:
        if self.graph.terms[t][0] == op:
            return list(self.graph.terms[t][1])
        return [] if op == "sum" and self.graph.is_value(t, 0.0) else [t]

    def _same(self, points: Points, kind: str) -> Expr | None:
        """Terms of one kind that is no associative operation; None where they differ at once."""
        rows = [self.graph.terms[t] for t in points.terms]
        if kind == "guard":
            raise Refused("a branch on data was seen from one side only")
        if kind == "chosen" and len(rows[0]) == 3:
            raise Refused("data decides where an element goes")
        if kind == "const":
            return Const(rows[0][1], rows[0][2]) if len(set(rows)) == 1 else self._counted(points, rows)
        if kind == "int":
            return self._whole(points, [r[1] for r in rows], rows[0][2])
        if kind == "load":
            if len({r[1] for r in rows}) > 1:
                return None
            parts = [self.fit(points.of([r[2][d] for r in rows])) for d in range(len(rows[0][2]))]
            return _read(Load(rows[0][1], tuple(parts), self.dtypes[rows[0][1]], self._carries(points)))
        parts = [self.fit(points.of([r[c] for r in rows])) for c in range(1, len(rows[0]))]
        return Op(kind, tuple(parts))

    def _carries(self, points: Points) -> bool:
        """Whether some of these reads have an index beyond its row."""
        g = self.graph
        for run, t in zip(points.run.tolist(), points.terms, strict=True):
            _, buffer, indices = g.terms[t]
            at = zip(indices[1:], self.shapes[run].get(buffer, ())[1:], strict=False)
            if any(g.terms[i][0] == "int" and not 0 <= g.terms[i][1] < length for i, length in at):
                return True
        return False

    def _whole(self, points: Points, values: Sequence[int], dtype: str) -> Expr:
        """Whole numbers that dimensions and sizes tell. Raises Refused."""
        try:
            return Number(self.index(points, values), dtype)
        except Refused:
            if (scale := math.gcd(*values)) > 1 and (found := self._scaled(points, values, scale, dtype)) is not None:
                return found
            array = np.array(values, np.int64)
            ways = by_count, by_steps, stopped, wrapped
            found = next((e for way in ways if (e := way(points, array, self.sizes, dtype)) is not None), None)
            if found is not None:
                return found
            if not self._in_pieces:
                raise
        return self._pieces(points, values, dtype)

    def _scaled(self, points: Points, values: Sequence[int], scale: int, dtype: str) -> Expr | None:
        """The values as so many times an index (``4 * (i % 8)``: the place of a nibble); None where they are not."""
        with suppress(Refused):
            found = self.index(points, [v // scale for v in values])
            return Op("prod", (Number(found, dtype), Const(scale, dtype)))
        return None

    def _counted(self, points: Points, rows: Sequence[tuple[Any, ...]]) -> Expr | None:
        """Floating literals that a kernel counted up to: a number that sizes alone tell. None for others."""
        if any(r[1] != r[1] // 1 or abs(r[1]) > 2**24 or r[2] != rows[0][2] for r in rows):
            return None
        held = {name: points.columns[name] for name in self.sizes if name in points.columns}
        found = affine_fit(replace(points, columns=held), np.array([r[1] for r in rows], np.int64), self.sizes)
        if found and found[0]:
            return Number(Affine(tuple(sorted(found[0].items())), found[1]), rows[0][2])
        return self._pieces(points, [int(r[1]) for r in rows], rows[0][2]) if self._in_pieces else None

    def _pieces(self, points: Points, values: Sequence[int], dtype: str) -> Expr:
        tree = in_pieces(points, np.array(values, np.int64), self.sizes, lambda: self.allowance.left_s > 0)
        return self.placed(tree, lambda leaf: Number(leaf, dtype))  # type: ignore[arg-type]

    # ------------------------------------------------------------ cases

    def cases(self, points: Points, labels: Sequence[Hashable]) -> Expr:
        """One expression a label, told apart by conditions on indices. Raises Refused."""
        tree = decision(points, labels, self.sizes)
        known: dict[object, Expr] = {}

        def side(label: object) -> Expr:
            if label not in known:
                known[label] = self.split(points.where(np.array([x == label for x in labels])))
            return known[label]

        return self.placed(tree, side)

    def placed(self, tree: object, leaf: Callable[[object], Expr]) -> Expr:
        """A decision tree with expressions in place of its labels."""
        if not isinstance(tree, Branch):
            return leaf(tree)
        yes, no = self.placed(tree.yes, leaf), self.placed(tree.no, leaf)
        if isinstance(tree.left, Remainder):
            return by_turn(tree.left, tree.right, yes, no)
        return Case(tree.left, tree.right, yes, no)

    def term(self, points: Points) -> Expr:
        """As fit, of a term of a sum or product; where it reads otherwise at an edge, as its neighbour there, in two.
        Raises Refused."""
        try:
            return self.fit(points)
        except Refused:
            if self._parting:
                raise  # what stands around it is being parted already
        return self.split(points, 1)

    def body(self, points: Points) -> Expr:
        """As fit, of a fold's body, which no edge parts: other ways to fold come first. Raises Refused."""
        self._parting += 1
        try:
            return self.fit(points)
        finally:
            self._parting -= 1

    def split(self, points: Points, depth: int = 3) -> Expr:
        """As fit; where one form fits only in part, at a boundary. Raises Refused."""
        try:
            return self.fit(points)
        except Refused as why:
            if not depth or isinstance(why, Unexplained):
                raise
            if self._until_s > -math.inf:
                return self._apart(points, depth, why)
            before = self.allowance.left_s
            self._until_s = before - self._search_s
            try:
                return self._apart(points, depth, why)
            finally:
                self._search_s -= before - self.allowance.left_s
                self._until_s = -math.inf

    def _apart(self, points: Points, depth: int, why: Refused) -> Expr:
        """What does not fit as one: at a boundary, or with indices in pieces. Raises Refused: ``why`` where nothing
        fits."""
        self._parting += 1
        try:
            found = self._parted(points, depth)
        finally:
            self._parting -= 1
        return found if found is not None else self._by_pieces(points, why)

    def _check_search(self) -> None:
        """Raises Unexplained where a boundary was looked for so long that none is to be expected."""
        if self.allowance.left_s < self._until_s:
            raise Unexplained("elements have too many forms to tell apart")

    def _by_pieces(self, points: Points, why: Refused) -> Expr:
        """As fit, where indices stop at edges of their own. Raises Refused: ``why`` where nothing fits."""
        if self._parting or self._in_pieces:
            raise why from None
        self._in_pieces = True
        try:
            return self.fit(points)
        except Refused:
            raise why from None
        finally:
            self._in_pieces = False

    def _parted(self, points: Points, depth: int) -> Case | None:
        for left, right, hit in itertools.islice(comparisons(points, self.sizes), 40):
            if min(hit.sum(), (~hit).sum()) < 2:
                continue
            self._check_search()
            try:
                small = self.fit(points.where(hit))
                rest = self.split(points.where(~hit), depth - 1)
            except Refused:
                continue
            return Case(left, right, small, rest)
        return None

    # ------------------------------------------------------------ time

    def _recurrence(self, points: Points) -> Expr:
        """A chain that grows with an index and has a period: a value carried in time."""
        chains = [self.forms.spine(t) for t in points.terms]
        unit = self._period([op for op, _, _ in max(chains, key=len)])
        name, length = f"t{next(self.fresh)}", len(unit)
        steps, starts = list[int](), list[int]()
        rows: list[list[tuple[int, int, int]]] = [
            [] for _ in unit
        ]  # sample, time, what stands beside the carried value
        for n, chain in enumerate(chains):
            count = 0
            while [op for op, _, _ in chain[count * length : (count + 1) * length]] == unit:
                count += 1
            if not count:
                raise Refused("a chain shorter than its period")
            count -= 1
            steps.append(count)
            starts.append(chain[count * length][2])
            for k in range(count):
                for level in range(length):
                    op, rest, _ = chain[k * length + level]
                    if rest:
                        beside = self.graph.list_of(op[0], rest) if op[1] is None else rest[0]
                        rows[level].append((n, count - 1 - k, beside))
        if any(op[1] is not None and op[2] > 1 for op in unit):
            raise Refused("a recurrence through a select")
        extent, step = self.affine(points, steps), Carried()
        for op, found in reversed(list(zip(unit, rows, strict=True))):
            at = points.take([r[0] for r in found], [r[2] for r in found]).along({name: [r[1] for r in found]})
            step = _applied(op, step, self.fit(at) if found else None)  # type: ignore[assignment]
        return Recurrence(name, extent, self.fit(points.of(starts)), step)

    def _period(self, ops: Sequence[tuple[str, int | None, int]]) -> list[tuple[str, int | None, int]]:
        for length in range(1, _LONGEST_PERIOD):
            same = 0
            while same + length < len(ops) and ops[same] == ops[same + length]:
                same += 1
            if same >= 3 * length:
                return list(ops[:length])
        raise Refused("a growing chain without a period")


def _read(e: Load) -> Expr:
    """A read at an index that conditions tell as reads under these conditions."""
    d = next((d for d, i in enumerate(e.indices) if isinstance(i, Case)), None)
    if d is None:
        return e
    at = e.indices[d]
    assert isinstance(at, Case)
    yes, no = (_read(replace(e, indices=(*e.indices[:d], side, *e.indices[d + 1 :]))) for side in (at.yes, at.no))
    return Case(at.left, at.right, yes, no)


def _applied(op: tuple[str, int | None, int], carried: Expr, beside: Expr | None) -> Expr:
    name, position, _ = op
    if beside is None:
        return Op(name, (carried,))
    if name in ASSOCIATIVE or position == 0:
        return Op(name, (carried, beside))
    return Op(name, (beside, carried))
