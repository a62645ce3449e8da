"""Weights of a recurrence stay in registers, at the length that is timed; all other lengths run as before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsr.transform.details.kept_reads import KeepReads
from tests.transform.conftest import subject_of

RECURRENCE = """// /// fsr
// entry = "k"
// [sizes]
// t = {min = 1, max = 64, timed = 16}
// d = {min = 1, max = 32, timed = 8}
// [args]
// x = {role = "in", shape = ["t", 2, "d"]}
// w = {role = "in", shape = [2, "d", "d"], low = "0", high = "1"}
// y = {role = "out", shape = ["t", "d"]}
// t = {value = "t"}
// d = {value = "d"}
// [launch]
// grid = 1
// block = "d"
// ///
__global__ void k(const float* x, const float* w, float* y, int t, int d) {
  __shared__ float h[32];
  int j = threadIdx.x;
  h[j] = 0;
  __syncthreads();
  for (int s = 0; s < t; s++) {
    float g[2];
    for (int m = 0; m < 2; m++) {
      const float* own = w + m * d * d;
      g[m] = x[(s * 2 + m) * d + j];
      for (int i = 0; i < d; i++) g[m] += h[i] * own[i * d + j];
    }
    __syncthreads();
    h[j] = g[0] > g[1] ? 1 : 2;
    y[s * d + j] = g[0] - g[1];
    __syncthreads();
  }
}
"""
CHANGES = {
    "turns may end": ("h[j] = g[0]", "if (s == 3) break; h[j] = g[0]"),
    "only some turns read": ("g[m] += h[i] * own[i * d + j]", "if (s) g[m] += h[i] * own[i * d + j]"),
    "one operand decides on the other": ("h[i] * own[i * d + j]", "(h[i] > 0 ? own[i * d + j] : 0)"),
    "another element each turn": ("own[i * d + j]", "own[(i + s) % d * d + j]"),
    "the length is assigned": ("g[m] += h[i]", "d = d + 0; g[m] += h[i]"),
    "more than registers hold": ("max = 32, timed = 8", "max = 128, timed = 96"),
}


def test_what_the_timed_size_reads_of_shared_memory_is_there_at_all_sizes(runner):
    """nvcc reads it before the size is asked for."""
    text = RECURRENCE.replace("__shared__ float h[32]", "extern __shared__ float h[]")
    subject = subject_of(text.replace("// block =", '// shared_bytes = "4 * d"\n// block ='))
    made = KeepReads().apply(subject, next(KeepReads().moves(subject)))
    assert made.plan.launches[0].shared_bytes == "max(4 * d, 32)"
    names = {"t": 4, "d": 5}
    want = runner.outputs(subject.candidate, subject.contract, names)
    np.testing.assert_array_equal(runner.outputs(made, subject.contract, names)["y"], want["y"])
    static = subject_of(RECURRENCE)
    assert KeepReads().apply(static, next(KeepReads().moves(static))).plan == static.candidate.plan


def test_weights_stay_and_inputs_are_read_ahead(runner):
    subject = subject_of(RECURRENCE)
    ahead, plain = KeepReads().moves(subject)
    for move in (ahead, plain):
        made = KeepReads().apply(subject, move)
        for sizes in ((5, 8), (1, 8), (4, 5), (2, 1)):
            names = dict(zip(("t", "d"), sizes, strict=True))
            want = runner.outputs(subject.candidate, subject.contract, names)
            np.testing.assert_array_equal(runner.outputs(made, subject.contract, names)["y"], want["y"])
    assert "w_kept[2][8]" in made.source
    assert "x_next" not in made.source
    assert "if (d == 8 && 0 < t)" in made.source


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_may_change_or_is_not_always_read_is_not_kept(change):
    assert change[0] in RECURRENCE
    assert not list(KeepReads().moves(subject_of(RECURRENCE.replace(*change))))


def test_what_may_share_memory_with_a_result_is_not_kept():
    subject = subject_of(RECURRENCE)
    assert not list(KeepReads().moves(replace(subject, contract=replace(subject.contract, aliasing=(("w", "y"),)))))
