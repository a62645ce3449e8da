"""Branches on data that stand one in another by the hundred are given up soon, not looked at for ever."""

from __future__ import annotations

import pytest

from fsr.lifting import merging
from fsr.lifting.graph import Graph
from fsr.lifting.merging import AskedOnce
from fsr.lifting.refused import Hopeless


def chain(graph: Graph, length: int) -> int:
    """A value that each of many conditions may change, and that the next condition asks about."""
    e = graph.make("load", "x", (graph.integer(0, "int64"),))
    for n in range(length):
        other = graph.make("load", "y", (graph.integer(n, "int64"),))
        e = graph.selected(graph.compared("gt", e, other), graph.make("neg", e), other)
    return e


def test_few_are_taken_apart_and_many_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph()
    assert AskedOnce(graph).of(chain(graph, 3)) > 0
    monkeypatch.setattr(merging, "_MOST_ASKED", 20)
    with pytest.raises(Hopeless, match="one in another"):
        AskedOnce(graph).of(chain(graph, 12))
