"""Sizes at which opposite edges meet, and branches on data of which one element takes one side: what is found is right
there too."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.interpret import interpret
from tests.lifting.lifted import lifted

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

FACES = """// /// fsr
// entry = "faces"
// [sizes]
// n = {min = 1, max = 4096, timed = 4096}
// [args]
// y = {role = "out", shape = ["n", "n + 1"]}
// x = {role = "in", shape = ["n", "n"], low = 0, high = 10}
// u = {role = "in", shape = ["n", "n + 1"], low = -5, high = 5}
// n = {value = "n"}
// [launch]
// grid = ["n // 16 + 1", "n // 16 + 1"]
// block = [16, 16]
// ///
__global__ void faces(float *y, float *x, float *u, int n) {
  int i = blockIdx.x * 16 + threadIdx.x, j = blockIdx.y * 16 + threadIdx.y;
  if (i > n || j >= n) return;
  float a = i < n ? x[j * n + i] : 0.0f, b = i > 0 ? x[j * n + i - 1] : 0.0f, c;
  if (u[j * (n + 1) + i] > 0.0f) c = i > 1 ? x[j * n + i - 2] : 0.0f;
  else c = i < n - 1 ? x[j * n + i + 1] : 0.0f;
  y[j * (n + 1) + i] = 0.5f * (a + b) - 0.125f * c;
}
"""


def expected(x: np.ndarray, u: np.ndarray) -> np.ndarray:
    n = len(x)
    wide = np.pad(x, ((0, 0), (2, 2))).astype(float)
    far = np.where(u > 0, wide[:, : n + 1], wide[:, 3:])
    return 0.5 * (wide[:, 2 : n + 3] + wide[:, 1 : n + 2]) - 0.125 * far


@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("sign", [1, -1])
def test_what_is_computed_where_edges_meet(tmp_path, n, sign):
    found = lifted(tmp_path, FACES)
    assert found.computation is not None, found.why
    draw = np.random.default_rng(n)
    x, u = draw.uniform(1, 10, (n, n)).astype("f"), sign * draw.uniform(1, 5, (n, n + 1)).astype("f")
    got = interpret(found.computation, {"n": n}, {"x": x, "u": u, "y": np.zeros((n, n + 1), "f"), "n": np.int32(n)})
    np.testing.assert_allclose(got["y"], expected(x, u), rtol=1e-5)
