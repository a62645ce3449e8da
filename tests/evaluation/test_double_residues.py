"""What is left of doubles that cancel is rounding: no wider answer tells it, but runs that err at random do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsr.app.checking import judge
from fsr.records import Case
from fsr.runs.kernel import load_kernel
from fsr.runs.options import RefineOptions
from fsr.testgen.shaking import nudged
from fsr.testgen.values import build

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


RATE = SUM, "0.01 * (a[i] + 1.0) * b[i] * 60.0"


@pytest.mark.parametrize(
    ("new", "status"),
    [
        ("-expm1(-t)", "passed"),
        ("1.0 - exp(-t * (1.0 + 1e-11))", "failed"),
        ("t > 1e-9 ? 1.0 - exp(-t) : 0.0", "failed"),
    ],
)
def test_denormal_exponents(tmp_path: Path, new: str, status: str) -> None:
    """They leave nothing beside one, and a constant's product has few other values nearby: what is left is still the
    rounding of a function, which is off by a last bit in each run."""
    original = (
        CHANCE.replace(*RATE).replace("low = 0.001, high = 0.1", "low = 0, high = 1").replace("low = 0.5", "low = 0")
    )
    (tmp_path / "kernel.cu").write_text(original)
    (tmp_path / "candidate.cu").write_text(original.replace("1.0 - exp(-t)", new))
    assert judge(tmp_path / "candidate.cu", RefineOptions(tmp_path / "kernel.cu", "host"), timed=False).status == status


def test_denormal_doubles_are_moved_too(tmp_path: Path) -> None:
    """A share of 2^-47 leaves them as they are: every noisy run had the same inputs, and erred alike or not at all."""
    (tmp_path / "kernel.cu").write_text(CHANCE.replace(", low = 0.001, high = 0.1", ""))
    contract = load_kernel(tmp_path / "kernel.cu").contract
    inputs = np.array([2.3e-318, -2.3e-318, 5e-324, 1e-322, -0.0, 1e-310, 1.0])
    case = Case("c", (("n", inputs.size),), "normal", 7)
    data = build(contract, case)
    data = replace(data, arrays={**data.arrays, "a": inputs})
    runs = np.stack([nudged(contract, case, data, k).arrays["a"] for k in range(24)])
    assert (np.signbit(runs) == np.signbit(inputs)).all()
    assert (np.abs(runs - inputs) <= 8 * 5e-324 + 1e-13 * np.abs(inputs)).all()
    assert [len(np.unique(column)) >= 5 for column in runs.T] == [True, True, False, True, False, True, True]
