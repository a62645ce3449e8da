"""Affine fits of samples: of what no columns together tell, none of them is asked."""

from __future__ import annotations

import numpy as np

from fsr.lifting.points import Points, affine_fit, spanned


def grid(count: int = 40) -> Points:
    """Samples of two dimensions and a size, in three runs."""
    rows = [(run, n, i, j) for run, n in enumerate((5, 8, 6)) for i in range(count) for j in range(n)]
    run, n, i, j = np.array(rows, np.int64).T
    return Points({"n": n, "i": i, "j": j}, run, (0,) * len(rows))


def test_the_fewest_names_tell_the_values():
    points = grid()
    n, i, j = points.columns.values()
    assert affine_fit(points, 3 * i - j + 2, ["n"]) == ({"i": 3, "j": -1}, 2)
    assert affine_fit(points, n - 1, ["n"]) == ({"n": 1}, -1)
    assert affine_fit(points, 0 * n + 7, ["n"]) == ({}, 7)


def test_what_is_affine_but_for_one_sample_that_is_not_solved_with_is_none():
    points = grid()
    for at in range(0, len(points), 37):
        values = 2 * points.columns["i"] + points.columns["j"]
        values[at] += 1
        assert affine_fit(points, values, ["n"]) is None


def test_what_halves_of_columns_tell_is_spanned_and_no_fit():
    points = grid()
    values = (points.columns["i"] // 2) * 2
    assert not spanned(list(points.columns.values()), values)
    odd = 2 * points.columns["i"] + 4
    half = Points({**points.columns, "i": points.columns["i"] * 4}, points.run, points.terms)
    assert spanned(list(half.columns.values()), odd)
    assert affine_fit(half, odd, ["n"]) is None
