"""What is kept in scratch memory between stages."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.expression import Const, Load, Op
from fsr.lifting.launches import by_launches
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel
from fsr.source.parse import parse_kernels
from fsr.transform.protocol import Subject
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
    assert len(re.findall(r"fsr_\w+_sum(?:<\d+>)?\(result", made)) == 1


STEP = """// /// fsr
// [sizes]
// w = {min = 2, max = 2000, timed = 640}
// h = {min = 2, max = 2000, timed = 512}
// [args]
// u = {role = "inout", dtype = "float32", shape = ["h", "w"]}
// [[launch]]
// entry = "slopes"
// grid = ["ceil_div(w, 32)", "ceil_div(h, 4)"]
// block = [32, 4]
// args = ["u", "g", "w", "h"]
// [[launch]]
// entry = "step"
// grid = ["ceil_div(w, 32)", "ceil_div(h, 4)"]
// block = [32, 4]
// args = ["g", "u", "w", "h"]
// [scratch.g]
// dtype = "float32"
// count = "w * h"
// ///
__global__ void slopes(float* u, float* g, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  int right = x + 1 < w ? x + 1 : x - 1;
  g[y * w + x] = u[y * w + right] - 2.f * u[y * w + x];
}
__global__ void step(float* g, float* u, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  int above = y > 0 ? y - 1 : y + 1;
  u[y * w + x] += g[y * w + x] - g[above * w + x];
}
"""


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
def test_what_launches_keep_for_each_other_is_kept_in_scratch_memory(runner, tmp_path):
    (tmp_path / "k.cu").write_text(STEP)
    kernel = load_kernel(tmp_path / "k.cu")
    subject = Subject(kernel.baseline, parse_kernels(kernel.baseline.source), kernel.contract)

    def alone(contract, candidate):
        return lift(contract, candidate).computation

    subject = replace(subject, computation=by_launches(subject.contract, subject.candidate, alone))
    for move in check(runner, subject, "register-tile", [(2, 2), (5, 64), (33, 9)], most=4):
        made = FAMILY["register-tile"].apply(subject, move)
        assert len(made.plan.launches) == 2
        assert len(made.plan.scratch) == 1
        assert "$" not in made.source
