"""Kernels that leave a border of so many elements as it is, and read across it, past the ends of rows too."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.expression import Load, walk
from fsr.computation.printing import lines
from fsr.lifting.carrying import nearest
from fsr.lifting.found import Lifting
from fsr.lifting.lift import lift
from fsr.lifting.written import cells_about_edges
from fsr.runs.kernel import load_kernel

traced = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

SLOPES = """// /// fsr
// entry = "k"
// [sizes]
// h = {min = 1, max = 900, timed = 900}
// w = {min = 1, max = 900, timed = 900}
// [args]
// x = {role = "in", dtype = "float32", shape = ["h + 1", "w"]}
// y = {role = "inout", dtype = "float32", shape = ["h", "w"]}
// h = {value = "h"}
// w = {value = "w"}
// [launch]
// grid = ["ceil_div(w, 16)", "ceil_div(h, 16)"]
// block = [16, 16]
// ///
__global__ void k(const float *x, float *y, int h, int w) {
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
  if (c < 4 || r < 4 || c >= w - LESS || r >= h - 4) return;
  float t = 0;
  for (int d = 0; d < 9; d++) t += x[r * w + c + d - 4] * x[(r - 4) * w + c + d - 4];
  y[r * w + c] = t;
}"""
FOUR = """// /// fsr
// entry = "k"
// [sizes]
// a = {min = 8, max = 90, timed = 90}
// b = {min = 8, max = 90, timed = 90}
// c = {min = 8, max = 90, timed = 90}
// [args]
// s = {role = "inout", dtype = "float32", shape = [5, "a", "b", "c"]}
// a = {value = "a"}
// b = {value = "b"}
// c = {value = "c"}
// [launch]
// grid = ["ceil_div(c, 16)", "b", "a"]
// block = 16
// ///
__global__ void k(float *s, int a, int b, int c) {
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
  if (x < 3 || y < 3 || z < 3 || x > c - 3 || y > b - 3 || z > a - 3) return;
  int n = a * b * c, at = (z * b + y) * c + x;
  s[at] = 2.0f * s[4 * n + at] - s[3 * n + at + 3 * c] * s[at];
}"""


def lifted(tmp_path, source: str) -> Lifting:
    (tmp_path / "k.cu").write_text(source)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    return found


def carrying(found: Lifting) -> set[str]:
    assert found.computation is not None
    values = [s.value for s in found.computation.statements if s.value is not None]
    return {e.buffer for v in values for e in walk(v) if isinstance(e, Load) and e.carries}


@traced
@pytest.mark.parametrize(("less", "past"), [("4", set()), ("3", {"x"})])
def test_a_border_that_is_wider_than_small_sizes(tmp_path, less, past):
    found = lifted(tmp_path, SLOPES.replace("LESS", less))
    line = "; ".join(lines(found.computation))
    assert "sum(x[i - 4, j + k0 - 4] * x[i, j + k0 - 4] for k0 in range(9))" in line
    for edge in ("i <= 3", "j <= 3", "i <= h - 5", f"j <= w - {int(less) + 1}"):
        assert edge in line
    assert carrying(found) == past


@traced
def test_a_small_box_in_many_dimensions_is_found_between_the_elements_looked_at(tmp_path):
    found = lifted(tmp_path, FOUR)
    (line,) = lines(found.computation)
    assert "s[3, j, i2 + 3, i3]" in line
    assert carrying(found) == {"s"}
    for edge in ("i <= 0", "j <= 2", "j <= a - 3", "i2 <= 2", "i2 <= b - 3", "i3 <= 2", "i3 <= c - 3"):
        assert edge in line


def test_elements_on_either_side_of_every_edge_are_looked_at():
    made = np.zeros((6, 30, 40), bool)
    made[2:3, 4:26, 7:40] = True
    cells = cells_about_edges(made)
    for d, edges in ((0, (1, 2, 3)), (1, (3, 4, 25, 26)), (2, (6, 7, 39))):
        assert set(edges) <= {at[d] for at in cells}
    assert all(0 <= n < length for at in cells for n, length in zip(at, made.shape, strict=True))


@pytest.mark.parametrize(
    ("at", "place", "told"),
    [
        ((3, 1), (2, 9), (2, 11)),
        ((1, 9), (2, 0), (2, -1)),
        ((2, 5), (2, 9), (2, 5)),
        ((4, 0, 0), (0, 6, 9), (3, 6, 10)),
    ],
)
def test_a_read_past_a_row_is_a_neighbour(at, place, told):
    shape = (5, 7, 10)[-len(at) :]
    assert nearest(at, shape, place, shape) == told
