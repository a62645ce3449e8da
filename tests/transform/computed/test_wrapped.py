"""Neighbours on a torus: within, they are read like any others, and at the edges from the other side."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.lifting.lift import lift
from tests.transform.computed.test_families import FAMILY, check
from tests.transform.conftest import subject_of

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

TORUS = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = LEAST, max = 4000, timed = 1000}
// m = {min = LEAST, max = 4000, timed = 1500}
// [args]
// x = {role = "in", shape = ["n", "m"]}
// y = {role = "out", shape = ["n", "m"]}
// n = {value = "n"}
// m = {value = "m"}
// [launch]
// grid = ["ceil_div(m, 32)", "n"]
// block = 32
// ///
__global__ void k(const float *x, float *y, int n, int m) {
  int i = blockIdx.y, j = blockIdx.x * 32 + threadIdx.x;
  if (j < m) y[i * m + j] = VALUE;
}"""
CROSS = "x[(i + n - 1) % n * m + j] + x[(i + 1) % n * m + j] - x[i * m + (j + m - 1) % m] * x[i * m + (j + 1) % m]"
CORNERS = "x[(i + n - 1) % n * m + (j + m - 1) % m] + x[(i + 1) % n * m + (j + 1) % m] * x[i * m + j]"
FAR = "x[i * m + (j + m - 2) % m] * 2 - x[(i + 2) % n * m + j]"
SMALL, LARGER = [(1, 1), (2, 1), (2, 2), (1, 70)], [(37, 70), (3, 300), (130, 3), (40, 33)]


def torus(value: str, least: int = 1):
    bare = subject_of(TORUS.replace("VALUE", value).replace("LEAST", str(least)))
    found = lift(bare.contract, bare.candidate, limit_s=60)
    assert found.computation is not None, found.why
    return replace(bare, computation=found.computation)


@pytest.mark.parametrize(("value", "least"), [(CROSS, 1), (CORNERS, 1), (FAR, 3)], ids=["cross", "corners", "far"])
def test_tiles_of_points_read_round_the_edges(runner, value, least):
    check(runner, torus(value, least), "register-tile", LARGER + (SMALL if least == 1 else []), most=3)


def test_what_may_go_round_twice_stays_a_remainder():
    """Of a line of two elements the third one behind the first lies beyond the line that comes next, too."""
    assert not list(FAMILY["register-tile"].moves(torus("x[i * m + (j + 3) % m] + x[i * m + (j + 2) % m]")))
