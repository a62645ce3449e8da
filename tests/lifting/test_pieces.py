"""Whole numbers that are affine in pieces."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.computation.expression import Affine, affine
from fsr.lifting.conditions import Branch
from fsr.lifting.pieces import in_pieces
from fsr.lifting.points import Points
from fsr.lifting.refused import Refused


def samples() -> Points:
    rows = [(i, n, w) for n, w in ((11, 2), (9, 3), (7, 2), (4, 6), (5, 7)) for i in range(n)]
    i, n, w = np.array(rows, np.int64).T
    return Points({"i": i, "n": n, "w": w}, n, tuple(range(len(rows))), frozenset({"w"}))


def test_an_index_that_stops_at_the_start_is_two_pieces():
    points = samples()
    values = np.maximum(points.columns["i"] - points.columns["w"], 0)
    found = in_pieces(points, values, ("n", "w"), lambda: True)
    assert isinstance(found, Branch)
    assert (found.left, found.yes) == (affine("i"), Affine((), 0))
    assert found.no == Affine((("i", 1), ("w", -1)), 0)


def test_what_is_affine_is_one_piece():
    points = samples()
    values = 3 * points.columns["i"] + points.columns["w"] - 1
    assert in_pieces(points, values, ("n", "w"), lambda: True) == Affine((("i", 3), ("w", 1)), -1)


def test_what_no_few_pieces_tell_is_refused():
    points = samples()
    with pytest.raises(Refused, match="pieces"):
        in_pieces(points, points.columns["i"] ** 3 % 7, ("n", "w"), lambda: True)
    values = np.maximum(points.columns["i"] - points.columns["w"], 0)
    with pytest.raises(Refused, match="pieces"):
        in_pieces(points, values, ("n", "w"), lambda: False)
