"""Skeletons and index vectors of terms that share their parts."""

from __future__ import annotations

import pytest

from fsr.lifting.forms import Forms
from fsr.lifting.graph import Graph
from fsr.lifting.refused import Hopeless


def chain(graph: Graph, steps: int) -> int:
    """A term each of whose steps names the one before twice."""
    term = graph.make("load", "x", (graph.integer(3, "int64"),))
    for _ in range(steps):
        term = graph.make("div", term, graph.make("sqrt", term))
    return term


def test_indices_are_written_out_in_order() -> None:
    graph = Graph(1)
    forms = Forms(graph)
    assert forms.indices(chain(graph, 3)) == (3,) * 8
    assert forms.skeleton(chain(graph, 3)) != forms.skeleton(chain(graph, 2))


def test_what_cannot_be_written_out_is_refused_before_it_fills_the_memory() -> None:
    graph = Graph(1)
    forms, term = Forms(graph), chain(graph, 60)
    for _ in range(2):
        with pytest.raises(Hopeless, match="written out"):
            forms.skeleton(term)
