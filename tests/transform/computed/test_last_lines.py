"""Outputs whose last lines are made of something else: no schedule reads beyond what the others are made of."""

from __future__ import annotations

import pytest

from fsr.computation.expression import Affine, Case, Const, Load, Op
from fsr.transform.computed.scene import cuttings
from tests.transform.computed.test_families import at, check, computed, over
from tests.transform.conftest import subject_of

LAYER = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 2048, timed = 2048}
// units = {min = 1, max = 512, timed = 512}
// deep = {min = 1, max = 512, timed = 512}
// [args]
// x = {role = "in", shape = ["n", "deep"]}
// w = {role = "in", shape = ["units", "deep"]}
// y = {role = "out", shape = ["units + 2", "n"]}
// marks = {role = "out", shape = ["units", "n"]}
// n = {value = "n"}
// units = {value = "units"}
// deep = {value = "deep"}
// [launch]
// grid = ["ceil_div(n, 64)", "units + 2"]
// block = 64
// [tolerance]
// sum_length = "deep"
// ///
__global__ void k(const float *x, const float *w, float *y, float *marks, int n, int units, int deep) {
  int c = blockIdx.x * 64 + threadIdx.x, u = blockIdx.y;
  if (c >= n) return;
  y[u * n + c] = 1.0f;
  if (u >= units) return;
  float t = 0;
  for (int d = 0; d < deep; d++) t += w[u * deep + d] * x[c * deep + d];
  y[u * n + c] = 2.0f * t;
  marks[u * n + c] = 3.0f;
}"""


def layer(height: str = "units + 2"):
    dot = over("sum", "deep", Op("prod", (Load("w", at("i", "k0"), "float32"), Load("x", at("j", "k0"), "float32"))))
    twice = Op("prod", (Const(2.0, "float32"), dot))
    rows = Case(Affine((("i", 1),), 0), Affine((("units", 1),), -1), twice, Const(1.0, "float32"))
    text = LAYER.replace('"units + 2"', f'"{height}"')
    return computed(subject_of(text), {"y": rows, "marks": Const(3.0, "float32")}, ("n", "units", "deep"))


@pytest.mark.parametrize("family", ["tile-contraction", "pipeline-contraction", "fold-rows"])
def test_a_product_above_rows_of_ones(runner, family):
    check(runner, layer(), family, [(1, 1, 1), (37, 18, 24), (70, 65, 33)], most=2)


@pytest.mark.parametrize(("height", "apart"), [("units + 1", 1), ("units + 2", 2), ("units + 9", 0)])
def test_each_of_a_few_lines_is_a_part(height, apart):
    domains = [
        [s.domain for scene in way for s in scene.part.outputs if s.target == "y"] for way in cuttings(layer(height))
    ]
    alone = [(("i", "units"), ("j", "n")), *[(("j", "n"),)] * apart]
    assert (sorted(alone) in list(map(sorted, domains))) == bool(apart)
