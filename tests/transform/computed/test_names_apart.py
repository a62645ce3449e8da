"""Names that kernels are written with are no one else's: a size that people call ``k``, the scratch of another part."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.computation.expression import Load, Op
from tests.transform.computed.test_families import FAMILY, at, computed, over
from tests.transform.conftest import subject_of

ROWS = """// /// fsr
// entry = "sums"
// [sizes]
// rows = {min = 1, max = 4096, timed = 8}
// k = {min = 1, max = 1048576, timed = 1048576}
// [args]
// x = {role = "in", shape = ["rows", "k"]}
// w = {role = "in", shape = ["k"]}
// y = {role = "out", shape = ["rows"]}
// z = {role = "out", shape = ["k"]}
// k = {value = "k"}
// [launch]
// grid = "rows"
// block = 1
// ///
__global__ void sums(const float *x, const float *w, float *y, float *z, int k) {
  float s = 0, t = 0;
  for (int c = 0; c < k; c++) s += x[blockIdx.x * k + c] * w[c], t += w[c];
  y[blockIdx.x] = s;
  if (blockIdx.x == 0) for (int c = 0; c < k; c++) z[c] = w[c] / t;
}"""


@pytest.mark.parametrize("family", ["split-rows", "fold-rows"])
def test_a_size_may_be_called_k(runner, family):
    w = Load("w", at("k0"), "float32")
    products = over("sum", "k", Op("prod", (Load("x", at("i", "k0"), "float32"), w)))
    scaled = Op("div", (Load("w", at("i"), "float32"), over("sum", "k", w)))
    subject = computed(subject_of(ROWS), {"y": products, "z": scaled}, ("rows", "k"))
    moves = list(FAMILY[family].moves(subject))
    assert moves
    for move in moves[:2]:
        made = FAMILY[family].apply(subject, move)
        names = [s.name for s in made.plan.scratch]
        assert len(names) == len(set(names))
        for sizes in ({"rows": 3, "k": 1}, {"rows": 5, "k": 4103}):
            want, got = (runner.outputs(c, subject.contract, sizes) for c in (subject.candidate, made))
            for name in ("y", "z"):
                np.testing.assert_allclose(got[name], want[name], rtol=2e-4, atol=1e-4, err_msg=f"{move.name} {name}")
