"""What is left of doubles that cancel is rounding: no wider answer tells it, but runs that err at random do."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.app.checking import judge
from fsr.runs.options import RefineOptions

SPREAD = """
// /// fsr
// [sizes]
// rows = {min = 1, max = 300, timed = 200}
// n = {min = 1, max = 3, timed = 3}
// [args]
// x = {role = "in", shape = ["rows", "n"], low = -9, high = 9}
// w = {role = "in", shape = ["rows", "n"], low = 0.5, high = 4}
// y = {role = "out", shape = ["rows"]}
// [launch]
// grid = "ceil_div(rows, 64)"
// block = 64
// ///
__global__ void spread(const double *x, const double *w, double *y, int rows, int n) {
  int r = blockIdx.x * 64 + threadIdx.x;
  if (r >= rows) return;
  double total = 0.0, sum = 0.0, left = 0.0;
  for (int j = 0; j < n; j++) { total += w[r * n + j]; sum += w[r * n + j] * x[r * n + j]; }
  double mean = sum / total;
  for (int j = 0; j < n; j++) left += w[r * n + j] * (x[r * n + j] - mean) * (x[r * n + j] - mean);
  y[r] = left / total;
}
"""


@pytest.mark.parametrize(
    ("mean", "status"), [("sum * (1.0 / total)", "passed"), ("(double)((float)sum / (float)total)", "failed")]
)
def test_a_spread_around_a_mean_that_is_rounded_otherwise(tmp_path: Path, mean: str, status: str) -> None:
    """Of one element it is 0, or a few last bits squared, as the mean happens to be rounded."""
    (tmp_path / "kernel.cu").write_text(SPREAD)
    (tmp_path / "candidate.cu").write_text(SPREAD.replace("sum / total", mean))
    assert judge(tmp_path / "candidate.cu", RefineOptions(tmp_path / "kernel.cu", "host"), timed=False).status == status


CHANCE = """
// /// fsr
// [sizes]
// n = {min = 1, max = 100000, timed = 50000}
// [args]
// a = {role = "in", shape = ["n"], low = 0.001, high = 0.1}
// b = {role = "in", shape = ["n"], low = 0.5, high = 20}
// p = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void chance(const double *a, const double *b, double *p, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  double t = a[i] / b[i] + a[n - 1 - i] / b[n - 1 - i];
  p[i] = 1.0 - exp(-t);
}
"""
SUM = "a[i] / b[i] + a[n - 1 - i] / b[n - 1 - i]"


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        (SUM, "(a[i] * b[n - 1 - i] + a[n - 1 - i] * b[i]) / (b[i] * b[n - 1 - i])", "passed"),
        ("1.0 - exp(-t)", "-expm1(-t)", "passed"),
        ("exp(-t)", "exp(-t * 1.00000000001)", "failed"),
        ("1.0 - exp(-t)", "t - 0.5 * t * t + t * t * t / 6", "failed"),
    ],
)
def test_what_a_function_near_one_leaves(tmp_path: Path, old: str, new: str, status: str) -> None:
    """Many exponents have the same exponential: runs whose inputs differ in their last bits differ in what it rounds
    to, too."""
    assert old in CHANCE
    (tmp_path / "kernel.cu").write_text(CHANCE)
    (tmp_path / "candidate.cu").write_text(CHANCE.replace(old, new))
    assert judge(tmp_path / "candidate.cu", RefineOptions(tmp_path / "kernel.cu", "host"), timed=False).status == status
