"""Rows of flat shared memory, made longer."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.transform.details.row_padding import RowPadding
from tests.transform.conftest import subject_of

KERNEL = """// /// fsr
// entry = "k"
// [sizes]
// b = {min = 1, max = 8, timed = 8}
// w = {min = 1, max = 64, timed = 64}
// [args]
// x = {role = "in", shape = ["b", "32", "w"]}
// y = {role = "out", shape = ["b", "32", "32"]}
// w = {value = "w"}
// [launch]
// grid = "b"
// block = 32
// shared_bytes = "4 * (32 * w + 32 * 32)"
// ///
__global__ void k(const float* x, float* y, int w) {
  extern __shared__ float memory[];
  int t = threadIdx.x, size = 32 * w;
  float* rows = memory;
  float* sums = &memory[size];
  for (int i = 0; i < w; i++) rows[t * w + i] = x[(blockIdx.x * 32 + t) * w + i];
  __syncthreads();
  for (int o = 0; o < 32; o++) {
    float s = 0.0f;
    for (int i = 0; i < w; i++) s += rows[t * w + i] * rows[o * w + i];
    sums[32 * t + o] = s;
  }
  __syncthreads();
  for (int o = 0; o < 32; o++) y[(blockIdx.x * 32 + o) * 32 + t] = sums[t * 32 + o];
}
"""


def moves(text: str) -> list[str]:
    return [move.name for move in RowPadding().moves(subject_of(text))]


def test_rows_of_an_odd_length_leave_what_was_left_before(runner):
    subject, action = subject_of(KERNEL), RowPadding()
    (move,) = action.moves(subject)
    assert move.name == "shared-row-padding@shared:memory"
    made = action.apply(subject, move)
    assert "rows[t * rows_row + i]" in made.source
    for sizes in ((1, 1), (2, 7), (3, 32), (8, 64)):
        names = dict(zip(("b", "w"), sizes, strict=True))
        want = runner.outputs(subject.candidate, subject.contract, names)
        np.testing.assert_array_equal(runner.outputs(made, subject.contract, names)["y"], want["y"])
        assert not runner.outputs(made, subject.contract, names, instrumented=True)["faults"].size


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sums[32 * t + o] = s", "sums[32 * t + o] = s + rows[32 * w]"),  # no row and place
        ("float* sums = &memory[size]", "float* sums = &memory[size / 2]"),  # rows that are not its own
        ("4 * (32 * w + 32 * 32)", "4 * (32 * w + 31 * 32)"),
        ("rows[t * w + i] = x", "memory[t * w + i] = x"),
        ("float s = 0.0f", "float s = *rows"),
        ("float s = 0.0f", "float s = rows[t * w + (i32)0]"),
        ("for (int o = 0; o < 32; o++) y", "for (int o = 0; o < 33; o++) y"),  # a place beyond its row
        ("block = 32", "block = 64"),
        ("sums[32 * t + o] = s;", "sums[32 * t + o] = s; w -= 1;"),
        ("w = {min = 1", "w = {min = 0"),
        ("float s = 0.0f", "float s = 0.0f; rows = sums"),
        ("float* rows", "double* rows"),
    ],
)  # fmt: skip
def test_what_is_not_surely_a_row_of_its_own_stays(old: str, new: str) -> None:
    assert old in KERNEL
    assert moves(KERNEL.replace(old, new)) == []
