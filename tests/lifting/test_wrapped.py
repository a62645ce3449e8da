"""Indices that go round a row by conditions, in steps, and round a period that is longer than a row of odd length."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.expression import Affine, Case, Expr, Number
from fsr.lifting.points import Points
from fsr.lifting.wrapped import wrapped
from tests.lifting.lifted import lifted

watched = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
SIZES = ("n", "(n // 2)", "((n + 1) // 2)")
LENGTHS = (9, 12, 13)
TAPS = 6


def samples(lengths=LENGTHS) -> Points:
    """Every place of a row at half its length, with every tap."""
    rows = [(run, n, i, k) for run, n in enumerate(lengths) for i in range((n + 1) // 2) for k in range(TAPS)]
    run, n, i, k = np.array(rows, np.int64).T
    return Points({"n": n, SIZES[1]: n // 2, SIZES[2]: (n + 1) // 2, "i": i, "k": k}, run, (0,) * len(rows))


def gone_round(points: Points, odd: bool) -> np.ndarray:
    """Where each tap reads."""
    n = points.columns["n"]
    at, period = 2 * points.columns["i"] + points.columns["k"] - 2, n + (n % 2 if odd else 0)
    at = np.where(at < 0, at + period, at)
    at = np.where(at >= period, at - period, at)
    return np.minimum(at, n - 1)


def affine_at(a: Affine, row: dict[str, int]) -> int:
    """An affine value at a sample."""
    return sum(row[name] * k for name, k in a.terms) + a.constant


def value_at(e: Expr, row: dict[str, int]) -> int:
    """A number under conditions at a sample."""
    if isinstance(e, Case):
        return value_at(e.yes if affine_at(e.left, row) <= affine_at(e.right, row) else e.no, row)
    assert isinstance(e, Number)
    assert isinstance(e.index, Affine)
    return affine_at(e.index, row)


def told(points: Points, values: np.ndarray) -> list[int] | None:
    """What the expression found is at the samples."""
    found = wrapped(points, values, SIZES, "int64")
    if found is None:
        return None
    rows = ({name: int(c[row]) for name, c in points.columns.items()} for row in range(len(points)))
    return [int(value_at(found, row)) for row in rows]


def test_a_period_that_is_longer_than_an_odd_row():
    points = samples()
    values = gone_round(points, odd=True)
    assert told(points, values) == values.tolist()
    longer = samples((17, 22, 31))
    found = wrapped(points, values, SIZES, "int64")
    rows = ({name: int(c[row]) for name, c in longer.columns.items()} for row in range(len(longer)))
    assert [int(value_at(found, row)) for row in rows] == gone_round(longer, odd=True).tolist()


def test_a_period_that_is_the_row():
    points = samples()
    values = gone_round(points, odd=False)
    assert told(points, values) == values.tolist()


@pytest.mark.parametrize("change", ["one other", "mirrored", "two runs", "two rounds"])
def test_what_goes_round_otherwise_is_none(change):
    points = samples(LENGTHS[:2] if change == "two runs" else LENGTHS)
    values = gone_round(points, odd=True)
    n, there = points.columns["n"], 2 * points.columns["i"] + points.columns["k"] - 2
    if change == "one other":
        values[len(values) // 2] += 1
    if change == "mirrored":
        values = np.where(there < 0, -there, np.where(there >= n, 2 * (n - 1) - there, there))
    if change == "two rounds":  # of which the second is as long as another one
        values = np.where(there < 0, n - 1, np.where(there >= n, there - n + 1, there))
    assert told(points, values) is None


HEAD = """// /// fsr
// [sizes]
// rows = {min = 8, max = 512, timed = 512}
// cols = {min = 8, max = 512, timed = 512}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// w = {role = "in", shape = ["6"]}
// y = {role = "out", shape = ["ceil_div(rows, 2)", "ceil_div(cols, 2)"]}
// [[launch]]
// entry = "along"
// grid = ["ceil_div(cols, 64)", "rows"]
// block = 64
// args = ["x", "w", "t", "rows", "cols"]
// [[launch]]
// entry = "down"
// grid = ["ceil_div(cols, 64)", "ceil_div(rows, 2)"]
// block = 64
// args = ["t", "w", "y", "rows", "ceil_div(cols, 2)"]
// [scratch.t]
// dtype = "float32"
// count = "rows * ceil_div(cols, 2)"
// zeroed = false
// ///
"""
PASSES = """
__device__ int round_(int at, int n) {
  int odd = n & 1;
  if (at < 0) at += n + odd;
  if (at >= n) at = at == n && odd ? n - 1 : at - n - odd;
  return at;
}
__global__ void along(const float *x, const float *w, float *t, int rows, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y, half = (cols + 1) / 2;
  if (i >= half) return;
  float s = 0;
  for (int k = 0; k < 6; k++) s += w[k] * x[row * cols + round_(2 * i + k - 2, cols)];
  t[row * half + i] = s;
}
__global__ void down(const float *t, const float *w, float *y, int rows, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (i >= cols) return;
  float s = 0;
  for (int k = 0; k < 6; k++) s += w[k] * t[round_(2 * row + k - 2, rows) * cols + i];
  y[row * cols + i] = s;
}
"""


@watched
def test_two_subsampling_passes_are_known_with_what_is_between(tmp_path):
    found = lifted(tmp_path, HEAD + PASSES)
    assert found.computation is not None, found.why
    kept, made = found.computation.statements  # made again for each of the six, what is between would be six times it
    assert (kept.target, made.target) == ("$t", "y")
