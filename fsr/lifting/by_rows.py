"""An attempt at a lifting in which rows begin where an array says: the array is chosen and taken as what it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fsr.computation.canonical import DIMS
from fsr.computation.computation import Computation, Statement
from fsr.computation.data_rows import has_data_rows
from fsr.computation.expression import (
    ASSOCIATIVE,
    Affine,
    Case,
    Expr,
    Fold,
    Load,
    Number,
    Op,
    Recurrence,
    indices_of,
    mapped,
    names_in,
    rebuilt,
)  # fmt: skip
from fsr.computation.types import neutral, type_of
from fsr.contract.flags import with_choices
from fsr.contract.model import Argument
from fsr.contract.row_starts import RowStarts
from fsr.lifting.attempt import Attempt
from fsr.lifting.check import Checker
from fsr.lifting.found import Lifting
from fsr.lifting.graph import Graph
from fsr.lifting.points import Points
from fsr.lifting.refused import Refused
from fsr.lifting.row_starts import begin_of, chosen_starts, length_of, row_sizes
from fsr.lifting.watching import Watcher
from fsr.records import Case as TestCase

_ROWS = ("repeated", "outliers", "alternating")  # families with empty rows, with a very long one, with all in one


class RowAttempt(Attempt):
    """As Attempt. ``starts``: the arrays of row starts, which the watcher chooses."""

    def __init__(self, watcher: Watcher, checker: Checker, blind: Sequence[str], starts: Sequence[RowStarts]) -> None:
        super().__init__(watcher, checker, blind)
        self.starts = starts
        self.smaller = []
        self._rows: dict[str, str] = {}  # by array, the dimension of the output at hand that counts its rows

    def lifted(self, started: float) -> Lifting:
        """At sizes at which rows are long enough. Raises Refused."""
        sizes = with_choices(self.contract, row_sizes(self.contract, self.starts))
        if not sizes:
            raise Refused("sizes do not tell how many rows there are, and how many entries")
        cases, why = self._cases(sizes, part=False), ""
        for self.watcher.empty_rows in (False, True):
            self.runs = [[self._first_run(s, n, part=False)] for n, s in enumerate(sizes)]
            found, wrong = self._found(cases)
            if found is not None and has_data_rows(found):
                return Lifting.of(found, started, sizes, cases)
            why = why or wrong
        raise Refused(why or "no rows that an array begins")

    def _cases(self, watched: Sequence[Mapping[str, int]], *, part: bool) -> list[TestCase]:
        cases = super()._cases(watched, part=part)
        return [*cases, *(replace(cases[0], family=family, seed=2001 + n) for n, family in enumerate(_ROWS))]

    def _sizes(self) -> tuple[str, ...]:
        return (*super()._sizes(), *(name for s in self.starts for name in (begin_of(s), length_of(s))))

    def _computation(self, graph: Graph) -> Computation:
        found = super()._computation(graph)
        own = {name for s in self.starts for name in (begin_of(s), length_of(s))}
        return replace(found, sizes=tuple(n for n in found.sizes if n not in own))

    def _statements(self, graph: Graph, output: Argument) -> list[Statement]:
        shapes = [runs[0].shapes[output.name] for runs in self.runs]
        dims = range(len(shapes[0]))
        self._rows = {}
        for s in self.starts:
            rows = [s.rows(runs[0].sizes) for runs in self.runs]
            d = next((d for d in dims if [shape[d] for shape in shapes] == rows), None)
            if d is not None:
                self._rows[s.buffer] = DIMS[d]
        return super()._statements(graph, output)

    def _points(self, number: Sequence[int], places: Sequence[tuple[int, ...]], terms: Sequence[int]) -> Points:
        points = super()._points(number, places, terms)
        for s in (s for s in self.starts if s.buffer in self._rows):
            empty = self.watcher.empty_rows
            arrays = [chosen_starts(s, runs[0].sizes, empty=empty).astype(np.int64) for runs in self.runs]
            at = [(arrays[n], int(row)) for n, row in zip(number, points.columns[self._rows[s.buffer]], strict=True)]
            begin = [int(a[row]) for a, row in at]
            length = [int(a[row + 1] - a[row]) for a, row in at]
            points = points.along({begin_of(s): begin, length_of(s): length})
        return points

    def _scatter(self, graph: Graph, output: Argument) -> list[Statement]:
        raise Refused("data decides where elements of rows go")

    def _each(self, graph: Graph, output: Argument, points: Points) -> Statement:
        found = super()._each(graph, output, points)
        assert found.value is not None
        value = found.value
        for s in (s for s in self.starts if s.buffer in self._rows):
            value = _Spelled(s, self._rows[s.buffer], self._total(s)).of(value)
        return replace(found, value=value)

    def _total(self, s: RowStarts) -> Affine:
        rows = [self._sized(runs[0].sizes) for runs in self.runs]
        columns = {name: np.array([row[name] for row in rows], np.int64) for name in rows[0]}
        points = Points(columns, np.arange(len(rows)), (0,) * len(rows))
        return self.general.affine(points, [s.entries(row) for row in rows])


class _Spelled:
    """Expressions with where a row begins and how long it is as the reads that they are. ``row``: the dimension of
    rows; ``total``: how many entries there are."""

    def __init__(self, starts: RowStarts, row: str, total: Affine) -> None:
        self.at, self.length = begin_of(starts), length_of(starts)
        self.own, self.starts, self.total = {self.at, self.length}, starts, total
        self.begin, self.end = (self._start(Affine(((row, 1),), more)) for more in (0, 1))

    def _start(self, row: Affine) -> Expr:
        found: Expr = Load(self.starts.buffer, (Number(row, "int64"),), self.starts.dtype)
        if self.starts.dtype == "uint32":  # no start is beyond what an int counts
            found = Op("int32", (found,))
        return found if self.starts.dtype == "int64" else Op("int64", (found,))

    def of(self, e: Expr) -> Expr:
        """Raises Refused where a row's place is in what no read says."""
        return mapped(e, lambda e, parts: self._one(e, rebuilt(e, parts)))

    def _one(self, e: Expr, made: Expr) -> Expr:
        if isinstance(e, Fold) and e.inside and names_in(e) & self.own:
            raise Refused("a window of rows that data begins")
        if not any(name in self.own for a in indices_of(e) for name, _ in a.terms):
            return made
        match made:
            case Number(Affine() as a, dtype):
                value = self._value(a)
                return value if dtype == "int64" else Op(dtype, (value,))
            case Case(left, right, yes, no):
                return Op("select", (Op("ge", (self._value(right), self._value(left))), yes, no))
            case Fold():
                return self._fold(made)
        raise Refused("the place of a row of data, taken apart" if not isinstance(e, Recurrence) else "rows in time")

    def _value(self, a: Affine) -> Expr:
        """Of 64 bits."""
        parts = list[Expr]()
        for name, k in a.terms:
            if name in self.own:
                one = self.begin if name == self.at else Op("sum", (self.end, Op("neg", (self.begin,))))
                parts.append(one if k == 1 else Op("prod", (one, Number(Affine((), k), "int64"))))
        rest = Affine(tuple((n, k) for n, k in a.terms if n not in self.own), a.constant)
        if rest != Affine() or not parts:
            parts.append(Number(rest, "int64"))
        return parts[0] if len(parts) == 1 else Op("sum", tuple(parts))

    def _fold(self, fold: Fold) -> Fold:
        """Over as many as there are entries, those of the row alone: an extent is made of sizes."""
        dims, body = list[tuple[str, Affine]](), fold.body
        for name, extent in fold.dims:
            if not any(n in self.own for n, _ in extent.terms):
                dims.append((name, extent))
                continue
            if extent.terms != ((self.length, 1),) or extent.constant > 0 or fold.op not in ASSOCIATIVE:
                raise Refused("a fold over more than a row of data")
            place = Op("sum", (self.begin, Number(Affine(((name, 1),), -extent.constant), "int64")))
            body = Op("select", (Op("gt", (self.end, place)), body, neutral(fold.op, type_of(body))))
            dims.append((name, self.total))
        return replace(fold, dims=tuple(dims), body=body)
