"""Rows that are written up to a length, behind which they stay as they were, are cut where what is written ends."""

from __future__ import annotations

import pytest

from fsr.computation.expression import Affine, Case, Load, Op
from fsr.transform.computed.scene import cuttings
from tests.transform.computed.test_families import at, check, computed, over
from tests.transform.conftest import subject_of

PADDED = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 512, timed = 512}
// m = {min = 1, max = 4096, timed = 4000}
// [args]
// x = {role = "in", shape = ["n", "round_up(m, 64)"], low = -20, high = 20}
// y = {role = "inout", shape = ["n", "round_up(m, 64)"]}
// n = {value = "n"}
// m = {value = "m"}
// pitch = {value = "round_up(m, 64)"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void k(const float *x, float *y, int n, int m, int pitch) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  float high = -INFINITY, sum = 0;
  for (int k = 0; k < m; k++) high = fmaxf(high, x[i * pitch + k]);
  for (int k = 0; k < m; k++) sum += expf(x[i * pitch + k] - high);
  for (int k = 0; k < m; k++) y[i * pitch + k] = expf(x[i * pitch + k] - high) / sum;
}"""


def padded(stays=None, otherwise: bool = False):
    shifted = Op(
        "exp",
        (
            Op(
                "sum",
                (
                    Load("x", at("i", "k0"), "float32"),
                    Op("neg", (over("max", "m", Load("x", at("i", "k1"), "float32"), "k1"),)),
                ),
            ),
        ),
    )
    own = Op(
        "exp",
        (
            Op(
                "sum",
                (
                    Load("x", at("i", "j"), "float32"),
                    Op("neg", (over("max", "m", Load("x", at("i", "k1"), "float32"), "k1"),)),
                ),
            ),
        ),
    )
    value = Op("prod", (own, Op("inv", (over("sum", "m", shifted),))))
    stays = Load("y", at("i", "j"), "float32") if stays is None else stays
    j, m = Affine((("j", 1),), 0), Affine((("m", 1),), 0)
    whole = Case(m, j, stays, value) if otherwise else Case(j, Affine((("m", 1),), -1), value, stays)
    return computed(subject_of(PADDED), {"y": whole}, ("n", "m"))


@pytest.mark.parametrize("otherwise", [False, True])
@pytest.mark.parametrize("family", ["fold-rows"])
def test_a_padded_row_is_one_kernel_that_leaves_the_padding(runner, family, otherwise):
    subject = padded(otherwise=otherwise)
    moves = check(runner, subject, family, [(1, 1), (5, 63), (7, 64), (3, 200), (2, 1027)], most=2)
    assert moves


def lengths(subject):
    return [{s.domain[-1][1] for scene in way for s in scene.part.outputs} for way in cuttings(subject)]


def test_it_is_written_as_far_as_the_row_goes():
    assert lengths(padded())[0] == {"m"}


@pytest.mark.parametrize("stays", [Load("y", at("i", "i"), "float32"), Load("x", at("i", "j"), "float32")])
def test_what_is_written_behind_a_row_is_no_padding(stays):
    assert {"m"} not in lengths(padded(stays))
