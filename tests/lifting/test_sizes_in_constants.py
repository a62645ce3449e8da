"""Sizes that host code puts into a structure of ``__constant__`` memory: addresses are made of them."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from tests.lifting.lifted import computed

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

KERNEL = """// /// fsr
// entry = "k"
// [sizes]
// rows = {min = 1, max = 4096, timed = 1024}
// n = {min = 1, max = 1000, timed = 100}
// [args]
// a = {role = "in", shape = ["rows", "n"]}
// b = {role = "in", shape = ["rows", "n"]}
// one = {low = 0, high = "rows - 1"}
// y = {role = "out", shape = ["rows"]}
// told.n = {value = "n"}
// told.rows = {value = "rows"}
// [launch]
// grid = "ceil_div(rows, 32)"
// block = 32
// [tolerance]
// sum_length = "n"
// ///
struct Told { float unused[2]; WHOLE rows, n; };
__constant__ Told told;
__global__ void k(const float *a, const float *b, WHOLE one, float *y) {
  WHOLE i = threadIdx.x + blockDim.x * blockIdx.x, n = told.n;
  if (i >= told.rows) return;
  float sum = 0.0f;
  for (WHOLE k = 0; k < n; k++) {
    float d = a[one * n + k] - b[i * n + k];
    sum += d * d;
  }
  y[i] = sum;
}
"""


@pytest.mark.parametrize("whole", ["int", "unsigned"])
def test_rows_of_a_length_that_a_structure_of_constants_has(tmp_path, whole):
    text = KERNEL.replace("WHOLE", whole)
    assert computed(tmp_path, text) == [
        "y[i] = sum((a[one, k0] - b[i, k0]) * (a[one, k0] - b[i, k0]) for k0 in range(n))"
    ]
