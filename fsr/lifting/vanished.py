"""Elements that are nought as they come, since what they subtract from one another is the same element there: the
diagonal of all distances is no case of its own."""

from __future__ import annotations

from collections.abc import Sequence

from fsr.lifting.graph import Graph
from fsr.lifting.refused import Refused


class Vanished(Refused):
    """Some elements read nothing, others do, and differences were nought: they had better stay."""


def require_none(graph: Graph, number: Sequence[int], terms: Sequence[int]) -> None:
    """``number``: of which run each element's term is. Raises Vanished."""
    if not graph.vanished:
        return
    reads: dict[int, bool] = {}
    for term in terms:
        for k in graph.upward(term, reads):
            reads[k] = graph.terms[k][0] == "load" or any(reads[below] for below in graph.operands(k))
    kinds = {(n, reads[t]) for n, t in zip(number, terms, strict=True)}
    if any((n, True) in kinds for n, reading in kinds if not reading):
        raise Vanished("some elements are nought where others are differences")
