"""Reads past the end of a row, which C takes for what lies there: elements of the next row, as ``x[i * n + j + 1]``
reads at the last j. Seen from the element that they are read for they are neighbours like any others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fsr.lifting.graph import Graph

Vector = tuple[int, ...]


def as_neighbours(graph: Graph, term: int, place: Vector, shape: Vector, shapes: Mapping[str, tuple[int, ...]]) -> int:
    """The term of an element at ``place`` of an output of that shape, its reads told by the indices nearest to its own,
    of which some may then lie before or beyond their rows. Of no meaning for what is no neighbour: a guess, like all
    that is lifted."""
    known: dict[int, int] = {}
    for e in graph.upward(term, known):
        parts = [known[k] for k in graph.operands(e)]
        if graph.terms[e][0] == "load" and all(graph.terms[k][0] == "int" for k in parts):
            at = tuple(int(graph.terms[k][1]) for k in parts)
            near = nearest(at, shapes.get(graph.terms[e][1], ()), place, shape)
            parts = [graph.integer(n, graph.terms[k][2]) for n, k in zip(near, parts, strict=True)]
        known[e] = graph.rebuilt(e, parts)
    return known[term]


def nearest(at: Sequence[int], shape: Sequence[int], place: Sequence[int], own: Sequence[int]) -> Vector:
    """Indices of the same element, each but the first within half a row of the place, as far as rows are as long as
    the output's."""
    found = list(at)
    for d in range(1, min(len(at), len(place), len(shape))):
        length, beside = shape[-d], place[-d] - found[-d]
        if length != own[-d]:
            break
        turns = (2 * beside > length) - (2 * -beside > length)
        found[-d] += turns * length
        found[-d - 1] -= turns
    return tuple(found)
