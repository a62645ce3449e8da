"""Whole numbers made by floating-point arithmetic of numbers alone."""

import pytest

from fsr.lifting.graph import Graph
from fsr.lifting.numbers import whole_number


def _floor_of_root(g: Graph, value: float, dtype: str = "float64") -> int:
    return g.make("floor", g.make("sqrt", g.make("neg", g.const(-value, dtype))))


@pytest.mark.parametrize(("value", "found"), [(49.0, 7), (48.9, 6), (0.0, 0)])
def test_roots_are_told(value, found):
    g = Graph(0)
    assert whole_number(g, _floor_of_root(g, value)) == found


def test_what_data_is_in_is_no_number():
    g = Graph(0)
    data = g.make("load", "x", (g.integer(3, "int64"),))
    assert whole_number(g, g.make("floor", data)) is None


@pytest.mark.parametrize("value", [-4.0, 1e18, float("inf")])
def test_no_number_and_large_ones_are_not_told(value):
    g = Graph(0)
    assert whole_number(g, _floor_of_root(g, value)) is None


def test_what_precision_decides_is_not_told():
    g = Graph(0)
    tenth = g.make("div", g.const(1.0, "float64"), g.const(3.0, "float64"))
    less = g.make("div", g.make("neg", g.const(-0.9999999999, "float64")), g.make("neg", g.const(-1.0, "float64")))
    assert whole_number(g, less) is None
    assert whole_number(g, tenth) == 0


def test_powers_are_not_told():
    g = Graph(0)
    assert whole_number(g, g.make("pow", g.const(2.0, "float64"), g.const(3.0, "float64"))) is None
