"""Shared arrays that are only a thread's own."""

from __future__ import annotations

import numpy as np

from fsr.transform.details.scalar_replacement import ScalarReplacement
from tests.transform.conftest import subject_of

ACTION = ScalarReplacement()
STEPS = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096, timed = 1024}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = BLOCK
// ///
__global__ void k(const float *x, float *y, int n) {
  __shared__ float before[64], after[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  before[t] = i < n ? x[i] : 0.f;
  __syncthreads();
  for (int step = 0; step < 3; step++) {
    after[threadIdx.x] = before[t] + before[t ? t - 1 : t];
    __syncthreads();
    before[t] = after[t];
    __syncthreads();
  }
  if (i < n) y[i] = before[t];
}"""
TILE = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 64, timed = 64}
// [args]
// x = {role = "in", shape = [16, "16 * n"]}
// y = {role = "out", shape = [16, "16 * n"]}
// n = {value = "n"}
// [launch]
// grid = "n"
// block = [16, 16]
// ///
__global__ void k(const float *x, float *y, int n) {
  __shared__ float own[16][16];
  __shared__ float turned[16][16];
  __shared__ float column[16];
  int at = threadIdx.y * 16 * n + blockIdx.x * 16 + threadIdx.x;
  own[threadIdx.y][threadIdx.x] = x[at];
  turned[threadIdx.x][threadIdx.y] = x[at];
  if (threadIdx.y == 0) column[threadIdx.x] = x[at];
  __syncthreads();
  y[at] = own[threadIdx.y][threadIdx.x] + turned[threadIdx.y][threadIdx.x] + column[threadIdx.x];
}"""


def test_an_array_that_is_a_threads_own_becomes_a_variable(runner):
    for text, arrays in ((STEPS.replace("BLOCK", "64"), ["after"]), (TILE, ["own"])):
        subject = subject_of(text)
        moves = list(ACTION.moves(subject))
        assert [m.name for m in moves] == [f"scalar-replacement@shared:{a}" for a in arrays]
        made = ACTION.apply(subject, moves[0])
        assert f"float {arrays[0]}_value;" in made.source
        assert f"{arrays[0]}[" not in made.source
        for n in (1, 37):
            want, got = (runner.outputs(c, subject.contract, {"n": n})["y"] for c in (subject.candidate, made))
            np.testing.assert_array_equal(got, want)


def test_others_stay_shared():
    pairs = subject_of(STEPS.replace("BLOCK", "[64, 2]"))  # two threads an element
    assert list(ACTION.moves(pairs)) == []
    address = subject_of(STEPS.replace("BLOCK", "64").replace("= after[t];", "= *(&after[t]);"))
    assert list(ACTION.moves(address)) == []
