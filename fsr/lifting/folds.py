"""Associative operations: which of their terms are a fold over a box, which stand for themselves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np

from fsr.computation.expression import Affine, Expr, Fold, Load, Number, Op, affine, distinct, names_in, walk
from fsr.computation.types import neutral, type_of
from fsr.lifting.alternating import alternating, beside
from fsr.lifting.clamped import Neighbour, neighbours, stopping
from fsr.lifting.conditions import decision, value_of
from fsr.lifting.forms import FEWEST, Forms
from fsr.lifting.graph import Graph
from fsr.lifting.holes import without_hole
from fsr.lifting.mirrored import orders
from fsr.lifting.points import Ints, Mask, Points, basis
from fsr.lifting.refused import Refused
from fsr.lifting.rounding import rounded_once
from fsr.lifting.shifts import over_and_over, with_shifts
from fsr.lifting.source_order import in_written_order, multiplied_order
from fsr.lifting.steps import is_told, told_at
from fsr.lifting.taps import Extents, by_taps

Lists = Sequence[Sequence[int]]
Places = Sequence[Sequence[tuple[int, ...]]]  # of each sample's terms
_MOST_TAPS = 32
_MOST_BASES = 8  # that a clipped fold is looked for along
_MOST_IN_BOX = 1 << 17  # points that a clipped fold may go over at sizes that are watched


class Fitter(Protocol):
    """What a fold needs of the generaliser."""

    graph: Graph
    forms: Forms
    sizes: Sequence[str]
    shapes: Sequence[Mapping[str, tuple[int, ...]]]
    timed: Mapping[str, tuple[int, ...]]
    fresh: itertools.count[int]

    def fit(self, points: Points) -> Expr:
        """The expression of all samples."""

    def term(self, points: Points) -> Expr:
        """As fit, of a term that may read otherwise at an edge."""

    def body(self, points: Points) -> Expr:
        """As fit, of a fold's body."""

    def affine(self, points: Points, values: Sequence[int]) -> Affine:
        """The affine expression of values."""

    def placed(self, tree: object, leaf: Callable[[object], Expr]) -> Expr:
        """A decision tree with expressions for its labels."""


class Folding:
    """Generalises lists of terms."""

    def __init__(self, fitter: Fitter) -> None:
        self.fitter = fitter

    def associative(self, op: str, points: Points, lists: Lists) -> Expr:
        """One expression of each sample's list of terms under an associative operation. Raises Refused."""
        groups = self.fitter.forms.grouped(lists)
        parts: list[Expr] = self._taken_in_turn(points, groups) if op == "sum" else []
        uneven = op == "sum" and len(set(map(len, lists))) > 1
        for _, by in sorted(groups.items(), key=lambda g: (max(map(len, g[1])), g[0])):
            parts += self._some_of(points, by) if uneven and max(map(len, by)) == 1 else self._group(op, points, by)
        if op in ("argmax", "argmin") and len(parts) != 1:
            raise Refused("the place of an extreme among values of several forms")
        if op == "sum":
            parts = with_shifts(in_written_order(self.fitter.graph, parts, points, lists) if len(parts) > 1 else parts)
        order = multiplied_order(self.fitter.graph, parts, points, lists[0]) if op == "prod" else ()
        parts = [rounded_once(p) for p in parts]
        return parts[0] if len(parts) == 1 else Op(op, tuple(parts), order)

    def _taken_in_turn(self, points: Points, groups: dict[int, list[list[int]]]) -> list[Expr]:
        """One term of all samples that has another form at some, as a function of a sum that lacks a part there: it is
        of one of these groups everywhere, which are left out then. None where it has no one expression."""
        some = {form: by for form, by in groups.items() if max(map(len, by)) == 1 and not all(by)}
        one = [[k for by in some.values() for k in by[n]] for n in range(len(points))]
        if len(some) < 2 or any(len(items) != 1 for items in one):
            return []
        with suppress(Refused):
            found = self.fitter.fit(points.of([k for (k,) in one]))
            if any(isinstance(e, Fold) for e in distinct(found)):
                for form in some:
                    del groups[form]
                return [found]
        return []

    def _some_of(self, points: Points, by: Lists) -> list[Expr]:
        """One term of a form, where there is any: some results have one less than others."""
        try:
            return [self._tap("sum", points, {n: items[0] for n, items in enumerate(by) if items})]
        except Refused:
            return self._group("sum", points, by)

    def _group(self, op: str, points: Points, by: Lists) -> list[Expr]:
        """Terms of one form."""
        counts = [len(items) for items in by]
        if all(c == 1 for c in counts) and op not in ("argmax", "argmin"):
            return [self.fitter.term(points.of([items[0] for items in by]))]
        try:
            if max(counts) < FEWEST:
                raise Refused("a few terms")
            return [self.fold(op, points, by)]
        except Refused as why:
            for way in (partial(over_and_over, self.fitter), self._holed, self._clipped, self._parted):
                try:
                    return way(op, points, by)
                except Refused:
                    continue
            return self._unrolled(op, points, by, why)

    # ------------------------------------------------------------ boxes

    def fold(self, op: str, points: Points, by: Lists) -> Fold:
        """A fold over the box that the terms' indices make: the first of them that tell terms apart, or the last, where
        the first go round. Raises Refused."""
        alone = self._telling(by)
        try:
            return self._boxed(op, points, by, alone[0] if alone else None)
        except Refused:
            if len(alone) < 2:
                raise
        return self._boxed(op, points, by, alone[-1])

    def _boxed(self, op: str, points: Points, by: Lists, alone: int | None) -> Fold:
        ranked = [self._ranks(items, alone) for items in by]
        dims = max((len(r[0]) for r in ranked if r and len(r) > 1), default=1)
        ranked = [[(0,) * dims] if len(items) == 1 else r for items, r in zip(by, ranked, strict=True)]
        if any(len(r) != dims for ranks in ranked for r in ranks):
            raise Refused("a fold's dimensions differ between elements")
        lengths = [[1 + max((r[d] for r in ranks), default=-1) for d in range(dims)] for ranks in ranked]
        return self._over(op, points, by, ranked, lengths)

    def _over(self, op: str, points: Points, by: Lists, ranked: Places, lengths: Lists) -> Fold:
        """A fold of terms that stand at known places of boxes of these lengths. Raises Refused."""
        dims = len(lengths[0])
        extents = [self.fitter.affine(points, [x[d] for x in lengths]) for d in range(dims)]
        names, body = self._along(op, points, by, ranked)
        return Fold(op, tuple(zip(names, extents, strict=True)), body)

    def _along(self, op: str, points: Points, by: Lists, ranked: Places) -> tuple[list[str], Expr]:
        """New dimensions, and the body over them of terms at known places. Raises Refused."""
        dims = max((len(at) for ranks in ranked for at in ranks), default=0)
        names = [f"k{next(self.fitter.fresh)}" for _ in range(dims)]
        rows, terms, at = list[int](), list[int](), list[tuple[int, ...]]()
        for n, (items, ranks) in enumerate(zip(by, ranked, strict=True)):
            for i in _few(sorted(range(len(items)), key=lambda i: ranks[i])):
                rows.append(n)
                terms.append(items[i])
                at.append(ranks[i])
        inner = points.take(rows, terms).along({name: [k[d] for k in at] for d, name in enumerate(names)})
        return names, self._pair(inner) if op in ("argmax", "argmin") else self.fitter.body(inner)

    def _pair(self, points: Points) -> Expr:
        """A value and its place."""
        g = self.fitter.graph
        values = self.fitter.fit(points.of([g.terms[t][1] for t in points.terms]))
        places = self.fitter.fit(points.of([g.terms[t][2] for t in points.terms]))
        return Op("pair", (values, places))

    def _telling(self, by: Lists) -> list[int]:
        """The indices of which each alone tells the terms of all lists apart."""
        vectors = [[self.fitter.forms.indices(k) for k in items] for items in by]
        width = min((len(v) for items in vectors for v in items), default=0)
        return [c for c in range(width) if all(len({v[c] for v in items}) == len(items) for items in vectors)]

    def _ranks(self, items: Sequence[int], alone: int | None) -> list[tuple[int, ...]]:
        """Where each term stands in the box, by the one index that tells terms apart, or the fewest of them."""
        if len(items) < 2:
            return []
        vectors = [self.fitter.forms.indices(k) for k in items]
        along = basis(vectors) if alone is None else [alone]
        ranks = [{x: r for r, x in enumerate(sorted({v[b] for v in vectors}))} for b in along]
        if math.prod(map(len, ranks)) != len(items):
            raise Refused("a fold's domain is no box")
        return [tuple(r[v[b]] for b, r in zip(along, ranks, strict=True)) for v in vectors]

    def _holed(self, op: str, points: Points, by: Lists) -> list[Expr]:
        """A sum along one dimension that lacks at most one term: one that is nought, of what cancels where two indices
        are one, or one that is left out there. Raises Refused."""
        vectors = [[self.fitter.forms.indices(k) for k in items] for items in by]
        width = min((len(v) for items in vectors for v in items), default=0)
        along = next((c for c in range(width) if all(len({v[c] for v in x}) == len(x) for x in vectors)), None)
        if op != "sum" or along is None:
            raise Refused("no sum along one dimension")
        there: dict[int, set[int]] = {}
        for run, items in zip(points.run, vectors, strict=True):
            there.setdefault(int(run), set()).update(v[along] for v in items)
        ranks = {run: {x: n for n, x in enumerate(sorted(found))} for run, found in there.items()}
        of = [ranks[int(run)] for run in points.run]
        holes = [len(r) - len(items) for r, items in zip(of, vectors, strict=True)]
        if max(holes) != 1 or max(map(len, of)) < FEWEST:  # a single term that some elements lack is a condition
            raise Refused("more than a hole")
        ranked = [[(r[v[along]],) for v in items] for r, items in zip(of, vectors, strict=True)]
        found = self._over(op, points, by, ranked, [[len(r)] for r in of])
        lacking = [set(range(len(r))) - {k for (k,) in ranks} for r, ranks in zip(of, ranked, strict=True)]
        return [without_hole(found, points, lacking, [n for n in points.columns if n not in self.fitter.sizes])]

    def _sometimes(self, op: str, points: Points, by: Lists) -> Expr:
        """A fold that some samples have no term of, under the condition that tells these apart. Raises Refused."""
        there = [bool(items) for items in by]
        if all(there) or max(map(len, by)) < FEWEST:
            raise Refused("terms at every element")
        tree = decision(points, there, self.fitter.sizes)
        found = self.fold(op, points.where(np.array(there, bool)), [items for items in by if items])
        return self._where(op, tree, found)

    def _parted(self, op: str, points: Points, by: Lists) -> list[Expr]:
        """Several folds of one form, told apart by the dimensions that their indices are: ``a[i, k] * b[j, k]`` and
        ``b[i, k] * a[j, k]``. Samples at which dimensions coincide do not count. Raises Refused."""
        loops = [n for n in points.columns if n not in self.fitter.sizes]
        vectors = [[self.fitter.forms.indices(k) for k in items] for items in by]
        here = [{v: int(points.columns[v][n]) for v in loops} for n in range(len(points))]
        apart = np.array([len(set(x.values())) == len(x) for x in here])
        bound = [
            c
            for c in range(len(next((v[0] for v in vectors if v), ())))
            if all(v[c] in here[n].values() for n, items in enumerate(vectors) if apart[n] for v in items)
        ]
        parts: dict[tuple[str, ...], list[list[int]]] = {}
        for n in map(int, np.flatnonzero(apart)):
            names = {value: v for v, value in here[n].items()}
            for k, vector in zip(by[n], vectors[n], strict=True):
                label = tuple(names[vector[c]] for c in bound)
                if label not in parts:
                    parts[label] = [[] for _ in by]
                parts[label][n].append(k)
        if len(parts) < 2 or 2 * apart.sum() < len(points) or max(map(len, by)) < FEWEST:
            raise Refused("one fold")
        kept = points.where(apart)
        return [
            self.fold(op, kept, [items for items, a in zip(found, apart, strict=True) if a])
            for _, found in sorted(parts.items())
        ]

    def _clipped(self, op: str, points: Points, by: Lists) -> list[Expr]:
        """A fold over a box, less the points that would read outside of a buffer (zero padding). Raises Refused."""
        if op == "prod":
            raise Refused("a product at an edge")
        counts = np.array([len(items) for items in by])
        most = np.array([max(counts[points.run == r]) for r in points.run])
        ways: tuple[Callable[[], Fold], ...] = (
            lambda: self._clipped_to(op, points, by, counts == most),
            lambda: self._clipped_from(op, points, by),
            lambda: self._clipped_to(op, points, by, counts == counts.max()),  # a box that small sizes never fill
        )
        for way in ways[:-1]:
            try:
                return [way()]
            except Refused:
                continue
        return [ways[-1]()]

    def _clipped_to(self, op: str, points: Points, by: Lists, full: Mask) -> Fold:
        """A box that some samples have all of."""
        if full.all() or max(map(len, by)) < 2:
            raise Refused("no edge")
        inner = self.fold(op, points.where(full), [items for items, f in zip(by, full, strict=True) if f])
        return self._padded(replace(inner, inside=True), points, by, full)

    def _clipped_from(self, op: str, points: Points, by: Lists) -> Fold:
        """A box as long as the buffers whose elements tell its points apart: a window of which every sample may lack
        something, being wider than what it goes over."""
        if max(map(len, by)) < FEWEST or op in ("argmax", "argmin"):
            raise Refused("a few terms")
        vectors = [[self.fitter.forms.indices(k) for k in items] for items in by]
        widest = max(vectors, key=len)
        for along in dict.fromkeys(tuple(basis(widest, first)) for first in range(min(_MOST_BASES, len(widest[0])))):
            with suppress(Refused):
                return self._clipped_along(op, points, by, [[tuple(v[b] for b in along) for v in x] for x in vectors])
        raise Refused("a window along no buffer")

    def _clipped_along(self, op: str, points: Points, by: Lists, places: Places) -> Fold:
        """Such a window whose terms stand at these places. Raises Refused."""
        names, body = self._along(op, points, by, places)
        of = {e.indices[d]: (e.buffer, d) for e in distinct(body) if isinstance(e, Load) for d in range(len(e.indices))}
        own = [next((of[i] for i in of if isinstance(i, Number) and i.index == affine(n)), None) for n in names]
        at, sizes = self._by_run(points)
        shapes = [self.fitter.shapes[r] for r in at.run.tolist()]
        extents = [self.fitter.affine(sizes, [s[x[0]][x[1]] for s in shapes]) for x in own if x is not None]
        if len(extents) < len(names):
            raise Refused("a place of no element")
        found = Fold(op, tuple(zip(names, extents, strict=True)), body, True)
        return self._padded(found, points, by, np.zeros(len(points), bool))

    def _by_run(self, points: Points) -> tuple[Points, Points]:
        """A sample of each run, and its sizes alone."""
        last = list({int(r): n for n, r in enumerate(points.run)}.values())
        at = points.take(last, [0] * len(last))
        return at, replace(at, columns={n: c for n, c in at.columns.items() if n in self.fitter.sizes})

    def _padded(self, fold: Fold, points: Points, by: Lists, known: Mask) -> Fold:
        """A clipped fold that gives the terms of all samples (some are known to have these); over the fewest indices.
        Raises Refused."""
        loads = [e for e in walk(fold.body) if isinstance(e, Load) and e.indices]
        if not loads or not all(is_told(i) for e in loads for i in e.indices):
            raise Refused("an edge of what data chooses")
        for n, items in enumerate(by):
            if not known[n] and not self._matches(fold, loads, points.take([n], [0]), items):
                raise Refused("a clipped fold's domain is no padded box")
        boxes = [math.prod(int(value_of(x, points.take([n], [0]))[0]) for _, x in fold.dims) for n in range(len(by))]
        if boxes == [len(items) for items in by]:
            return replace(fold, inside=False)  # nothing was clipped: some dimension of one term told none apart
        at, sizes = self._by_run(points)
        shapes = [self.fitter.shapes[r] for r in at.run.tolist()]
        return by_taps(fold, Extents(
            shapes, self.fitter.timed, lambda x: value_of(x, at).tolist(),
            lambda values: self.fitter.affine(sizes, values),
        ))  # fmt: skip

    def _matches(self, fold: Fold, loads: Sequence[Load], point: Points, items: Sequence[int]) -> bool:
        shapes = self.fitter.shapes[int(point.run[0])]
        ranges = [range(int(value_of(x, point)[0])) for _, x in fold.dims]
        if math.prod(map(len, ranges)) > _MOST_IN_BOX:  # sizes are fixed and large: all of it is no window
            return False
        box = np.array(list(itertools.product(*ranges)), np.int64).reshape(-1, len(ranges))
        wide = point.take([0] * len(box), [0] * len(box)).along({n: box[:, d] for d, (n, _) in enumerate(fold.dims)})  # type: ignore[misc]
        inside = np.ones(len(box), bool)
        places = list[np.ndarray[tuple[int], np.dtype[np.int64]]]()
        for e in loads:
            if any(n not in wide.columns for i in e.indices for n in names_in(i)):
                return False  # of a fold within the fold
            for i, size in zip(e.indices, shapes[e.buffer], strict=True):
                value = told_at(i, wide)
                inside &= (value >= 0) & (value < size)
                places.append(value)
        if inside.sum() != len(items):
            return False
        got = sorted(tuple(sorted(row)) for row in np.stack(places, 1)[inside].tolist())
        reads = [self._loads_in(k) for k in items]
        return got == sorted(tuple(sorted(row)) for row in reads)

    def _loads_in(self, term: int) -> list[int]:
        """The indices of all reads beneath a term."""
        g, found, todo = self.fitter.graph, list[int](), [term]
        while todo:
            x = g.terms[todo[-1]]
            below = g.operands(todo.pop())
            if x[0] == "load":
                found += [g.terms[i][1] for i in below]
            else:
                todo += below
        return found

    # ------------------------------------------------------------ a few terms

    def _unrolled(self, op: str, points: Points, by: Lists, why: Refused) -> list[Expr]:
        """The same few terms at every size, each for itself, some under a condition on indices. Raises Refused."""
        counts = {len(items) for items in by}
        if max(counts) > _MOST_TAPS or op in ("argmax", "argmin"):
            raise why
        if len(counts) == 1:
            for lists in orders(points, by, self.fitter.forms.indices, self.fitter.sizes):
                try:
                    return [self.fitter.fit(points.of([x[i] for x in lists])) for i in range(len(by[0]))]
                except Refused:
                    continue
            try:
                return self._stopping_at_edges(points, by)
            except Refused:
                pass
        try:
            return [self._sometimes(op, points, by)]
        except Refused:
            return self._by_offset(op, points, by, why)

    def _stopping_at_edges(self, points: Points, by: Lists) -> list[Expr]:
        vectors = [[self.fitter.forms.indices(k) for k in items] for items in by]
        names = self._near(points, by)
        fixed = "" in names  # going round, indices of small sizes may look like fixed places
        if fixed:
            names = beside(points, [n for n in points.columns if n not in self.fitter.sizes], vectors)
        if not names:
            raise Refused("terms without a place near their own")
        own = np.stack([points.columns[v] for v in names], 1)
        found, high = ([], own) if fixed else neighbours(points, vectors, own)

        def made(some: Points, one: Neighbour, high: Ints) -> Expr:
            highest = [self.fitter.affine(some, high[:, c].tolist()) for c in range(len(names))]
            return stopping(some, names, one, highest, self.fitter.fit)

        if not found:
            return alternating(points, by, vectors, own, names, made)
        terms = ([x[k] for x, k in zip(by, one.terms, strict=True)] for one in found)
        return [made(points.of(t), one, high) for t, one in zip(terms, found, strict=True)]

    def _near(self, points: Points, by: Lists) -> list[str]:
        """For each index of the terms the dimension that it is nearest to, '' a fixed place; none without indices."""
        forms = self.fitter.forms
        loops = [n for n in points.columns if n not in self.fitter.sizes]
        some = next((k for items in by for k in items), None)
        width = len(forms.indices(some)) if some is not None and loops else 0
        beside = {v: points.columns[v] for v in loops} | {"": np.zeros(len(points), np.int64)}
        near = []
        for c in range(width):
            spread = {v: {forms.indices(k)[c] - int(at[n]) for n, items in enumerate(by) for k in items}
                      for v, at in beside.items()}  # fmt: skip
            near.append(min(beside, key=lambda v: len(spread[v])))
        return near

    def _by_offset(self, op: str, points: Points, by: Lists, why: Refused) -> list[Expr]:
        forms = self.fitter.forms
        names = self._near(points, by)
        if not names:
            raise why
        near = [points.columns[v] if v else np.zeros(len(points), np.int64) for v in names]
        width = len(near)
        offsets: dict[tuple[int, ...], dict[int, int]] = {}
        for n, items in enumerate(by):
            seen: dict[tuple[int, ...], int] = {}
            for k in items:
                vector = forms.indices(k)
                key = tuple(vector[c] - int(near[c][n]) for c in range(width))
                seen[key] = seen.get(key, 0) + 1  # neighbours that are one element at a corner come twice there
                offsets.setdefault((*key, seen[key]), {})[n] = k
        if len(offsets) > _MOST_TAPS:
            raise why
        return [self._tap(op, points, found) for _, found in sorted(offsets.items())]

    def _tap(self, op: str, points: Points, found: Mapping[int, int]) -> Expr:
        term = self.fitter.fit(points.take(list(found), list(found.values())))
        if len(found) == len(points):
            return term
        return self._where(op, decision(points, [n in found for n in range(len(points))], self.fitter.sizes), term)

    def _where(self, op: str, tree: object, term: Expr) -> Expr:
        """A term where a condition holds."""
        return self.fitter.placed(tree, lambda there: term if there else neutral(op, type_of(term)))


def _few(order: Sequence[int]) -> list[int]:
    """Of many terms the first, the last and some between."""
    if len(order) <= 10:
        return list(order)
    return [*order[:4], *order[4 : -4 : max(1, (len(order) - 8) // 4)], *order[-4:]]
