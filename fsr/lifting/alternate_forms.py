"""Forms that alternate from element to element: the colours of a sensor's pixels, red and black points, components of
records. Elements at each place of a turn are told by themselves."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from fsr.computation.canonical import DIMS
from fsr.computation.expression import Expr
from fsr.lifting.generalise import Generaliser
from fsr.lifting.points import Points
from fsr.lifting.refused import Refused
from fsr.lifting.watching import Run

_ALTERNATE = (2, 3)  # turns' lengths whose places comparisons tell apart
_WIDE = 10  # elements, from which on a dimension has turns between its edges
_COMPONENTS = 4  # of a record, at most, that are told by themselves
_OTHERS, _ALIKE, _FEWEST_PAIRS = 0.4, 0.7, 12  # of pairs of neighbours, or of a turn apart, of one form


def alternating(general: Generaliser, points: Points) -> dict[str, int]:
    """By dimension the turns in which forms alternate, sums of more or fewer terms too; see alternations."""
    labels = [(general.forms.skeleton(t), general.graph.written_out(t)) for t in points.terms]
    return alternations(points, labels, [n for n in points.columns if n in DIMS])


def alternations(points: Points, labels: Sequence[Hashable], loops: Sequence[str]) -> dict[str, int]:
    """The dimensions along which forms come again after a few elements, and are others at the next one: the colours of
    a sensor's pixels, red and black points. By dimension its period; with them dimensions of a few components, each of
    which is a form by itself. ``labels``: of each sample its form."""
    found = dict[str, int]()
    for name in loops:
        others = [points.run, *(c for n, c in points.columns.items() if n != name)]
        rows = {(*row, at): label for *row, at, label in zip(*others, points.columns[name], labels, strict=True)}

        def same(by: int, rows: Mapping[tuple[Any, ...], int] = rows) -> float:
            pairs = [label == rows[other] for (*row, at), label in rows.items() if (other := (*row, at + by)) in rows]
            return float(np.mean(pairs)) if len(pairs) >= _FEWEST_PAIRS else 0.5

        if same(1) <= _OTHERS:
            by = next((by for by in _ALTERNATE if same(by) >= _ALIKE), None)
            found |= {} if by is None else {name: by}
    short = {n: int(points.columns[n].max()) + 1 for n in loops if n not in found}
    return found | {n: length for n, length in short.items() if found and 1 < length <= _COMPONENTS}


def by_places(general: Generaliser, points: Points) -> Expr:
    """What elements are, those at each place of their turns by themselves. Raises Refused."""
    if by := alternating(general, points):
        with suppress(Refused):
            places = list(zip(*((points.columns[n] % p).tolist() for n, p in by.items()), strict=True))
            return general.cases(replace(points, turns=tuple(sorted(set(by.values())))), places)
    return general.split(points)


def few_turns(runs: Sequence[Sequence[Run]]) -> bool:
    """Whether no output is large enough for edges, and between them turns, to be known."""
    return all(max(shape, default=0) < _WIDE for run, *_ in runs for shape in run.shapes.values())
