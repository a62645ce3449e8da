"""What is kept in scratch memory between stages."""

from __future__ import annotations

from fsr.computation.expression import Const, Load, Op
from tests.transform.computed.test_families import FAMILY, at, check, computed, over
from tests.transform.conftest import subject_of

NORMALISED = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 1000, timed = 300}
// c = {min = 1, max = 1000, timed = 64}
// [args]
// x = {role = "in", shape = ["n", "c"]}
// total = {role = "out", shape = ["n"]}
// y = {role = "out", shape = ["n", "c"]}
// n = {value = "n"}
// c = {value = "c"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// [tolerance]
// sum_length = "c"
// ///
__global__ void k(const float* x, float* total, float* y, int n, int c) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  float s = 0;
  for (int j = 0; j < c; j++) s += x[i * c + j] * x[i * c + j];
  total[i] = s;
  for (int j = 0; j < c; j++) y[i * c + j] = x[i * c + j] / (s + 1.0f);
}
"""


def test_a_fold_that_is_a_result_and_kept_too_is_made_once(runner):
    x = Load("x", at("i", "j"), "float32")
    square = Op("prod", (Load("x", at("i", "k0"), "float32"),) * 2)
    total = over("sum", "c", square)
    y = Op("div", (x, Op("sum", (total, Const(1.0, "float32")))))
    subject = computed(subject_of(NORMALISED), {"total": total, "y": y}, ("n", "c"))
    moves = check(runner, subject, "pack-elements", [(5, 64), (7, 33), (1, 1)], most=1)
    made = FAMILY["pack-elements"].apply(subject, moves[0]).source
    assert made.count("fsr_warp_sum(result") == 1
