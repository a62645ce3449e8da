"""Variables that callers fill, in what is written from what is computed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.lifting.lift import lift
from fsr.transform.computed.action import FROM_COMPUTATION
from tests.transform.conftest import subject_of

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

TEXT = """// /// fsr
// entry = "k"
// [sizes]
// w = {min = 1, max = 4096, timed = 4096}
// h = {min = 1, max = 4096, timed = 4096}
// [args]
// x = {role = "in", shape = ["h", "w"], low = -2, high = 2}
// y = {role = "out", shape = ["h", "w"]}
// c = {low = -0.5, high = 0.5}
// [launch]
// grid = ["ceil_div(w, 16)", "ceil_div(h, 16)"]
// block = [16, 16]
// ///
__constant__ float c EXTENTS;
__global__ void k(const float *x, float *y, int w, int h) {
  int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
  if (j < w && i < h) y[i * w + j] = x[i * w + j] + c PLACE;
}
"""


@pytest.mark.parametrize(
    ("extents", "place", "called"),
    [("", "", "(&c)["), ("[4]", "[j & 3]", " c["), ("[4][4]", "[i & 3][j & 3]", "(&c[0][0])["),
     ("[2][2] [4]", "[i & 1][1][j & 3]", "(&c[0][0][0])[")],
)  # fmt: skip
def test_elements_of_any_number_of_extents(extents: str, place: str, called: str, runner) -> None:
    bare = subject_of(TEXT.replace("EXTENTS", extents).replace("PLACE", place))
    found = lift(bare.contract, bare.candidate, limit_s=60)
    assert found.computation is not None, found.why
    subject = replace(bare, computation=found.computation)
    action = next(a for a in FROM_COMPUTATION if a.name == "pack-elements")
    packed = action.apply(subject, next(iter(action.moves(subject))))
    assert called in packed.source
    want, got = (runner.outputs(c, subject.contract, {"w": 40, "h": 9})["y"] for c in (subject.candidate, packed))
    np.testing.assert_array_equal(got, want)
