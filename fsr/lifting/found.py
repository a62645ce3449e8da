"""What lifting a candidate comes to, and the parts of it that need nothing of how it was watched."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fsr.computation.canonical import DIMS
from fsr.computation.computation import Computation, Statement
from fsr.computation.expression import Expr, Fold, Op, renamed
from fsr.computation.printing import affine_text
from fsr.lifting.forms import Forms
from fsr.lifting.graph import Graph
from fsr.lifting.refused import Hopeless
from fsr.lifting.watching import Run
from fsr.records import Case
from fsr.transform.launch_alone import Alone

_MOST_EDGES = 6  # of one dimension of an output in one run
_LONGEST = 1 << 20  # terms of one element, written out, at any sizes: nobody could write them down


@dataclass(frozen=True, slots=True)
class Lifting:
    """What a candidate computes, or why that is not known. ``watched``, ``checked``: sizes. ``cases``: how many tests
    it has answered as the original did. ``alone``: of a plan of which nothing is known as a whole, the launches that
    are known for themselves."""

    computation: Computation | None
    why: str = ""
    seconds: float = 0.0
    watched: tuple[Mapping[str, int], ...] = ()
    checked: tuple[Mapping[str, int], ...] = ()
    cases: int = 0
    alone: tuple[Alone, ...] = ()

    @classmethod
    def of(
        cls, found: Computation | None, started: float, watched: Sequence[Mapping[str, int]], cases: Sequence[Case],
        why: str = "",
    ) -> Lifting:  # fmt: skip
        """What was found and stood its cases, or why nothing did. ``started``: by the monotonic clock."""
        seconds = time.monotonic() - started
        if found is None:
            return cls(None, why, seconds, tuple(watched))
        checked = tuple({tuple(c.sizes): c.size_map() for c in cases}.values())
        return cls(found, "", seconds, tuple(watched), checked, len(cases))


def facing(known: Mapping[tuple[int, ...], int], d: int, forms: Forms) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Elements of different forms next to each other along a dimension, once for each two indices."""
    rows: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for place in sorted(known):
        rows.setdefault((*place[:d], *place[d + 1 :]), []).append(place)
    found: dict[tuple[int, int], tuple[tuple[int, ...], tuple[int, ...]]] = {}
    for row in rows.values():
        for low, high in itertools.pairwise(row):
            if high[d] - low[d] > 1 and forms.skeleton(known[low]) != forms.skeleton(known[high]):
                found.setdefault((low[d], high[d]), (low, high))
    return list(found.values())[:_MOST_EDGES]


def scattered(found: Fold, output: str, combine: str) -> Statement:
    """What adds up where data tells, as a statement over the dimensions of its fold."""
    body = found.body
    assert isinstance(body, Op)
    names = dict(zip((n for n, _ in found.dims), DIMS, strict=False))

    def told(e: Expr) -> Expr:
        return renamed(e, lambda n: names.get(n, n))

    dims = tuple((names[n], affine_text(x)) for n, x in found.dims)
    return Statement("scatter", output, dims, told(body.args[0]), tuple(map(told, body.args[1:])), combine)


def data_chooses(graph: Graph, terms: Sequence[int]) -> bool:
    """Whether data decides where any of these are."""
    tops = [graph.terms[t] for t in terms]
    return any(x[0] == "chosen" or (x[0] in ("sum", "max", "min") and any(
        graph.terms[k][0] == "chosen" for k in x[1])) for x in tops)  # fmt: skip


def require_short(graph: Graph, terms: Sequence[int], number: Sequence[int], output: str) -> None:
    """Raises Hopeless where some terms of every run are too long, written out. ``number``: the run of each."""
    longest = dict[int, int]()
    for term, run in zip(terms, number, strict=True):
        longest[run] = max(longest.get(run, 0), graph.written_out(term))
    if min(longest.values()) > _LONGEST:
        raise Hopeless(f"{output} is many steps in time, of which each reads neighbours of the one before")


def explained(runs: Sequence[Sequence[Run]], blind: Sequence[str], why: str) -> str:
    """A reason, with what could not be watched. ``blind``: what the source has that may hide something."""
    lost = {words: None for some in runs for run in some for words in run.trace.lost}
    more = [*(words for words in lost if words != why), *(f"it has {words}" for words in blind if lost)]
    return f"{why} ({'; '.join(more)})" if more else why
