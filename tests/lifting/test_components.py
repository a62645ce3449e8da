"""Outputs whose rows are values of different forms: components of a vector, planes of a field, literals of 16 bits."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.expression import Const, walk
from fsr.computation.printing import lines
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

FLUX = """// /// fsr
// entry = "flux"
// [sizes]
// tiles = {min = 1, max = 64, timed = 64}
// [args]
// state = {role = "in", shape = [4, "32 * tiles"], low = 0.5, high = 2.0}
// along = {role = "out", shape = [3, "32 * tiles"]}
// across = {role = "out", shape = [3, "32 * tiles"]}
// n = {value = "32 * tiles"}
// [launch]
// grid = "tiles"
// block = 32
// ///
__global__ void flux(const double *state, double *along, double *across, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  double d = state[i], mx = state[i + n], my = state[i + 2 * n], mz = state[i + 3 * n];
  double vx = mx / d, vy = my / d, p = 0.4 * (d - 0.5 * vx * mx);
  along[i] = vx * mx + p;
  along[i + n] = vx * my;
  along[i + 2 * n] = vx * mz;
  across[i] = vx * my;
  across[i + n] = vy * my + p;
  across[i + 2 * n] = vy * mz;
}
"""


def test_components_of_a_flux_are_told_apart_by_their_number(tmp_path):
    """What one component adds is no sum of one term, and rows 0 and 2 of one form read other rows."""
    (tmp_path / "k.cu").write_text(FLUX)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    told = lines(found.computation)
    assert [line.split("[")[0] for line in told] == ["along", "across"], told
    assert "j <=" not in told[1], told


FLOW = """// /// fsr
// entry = "flow"
// [sizes]
// bx = {min = 1, max = 64, timed = 64}
// by = {min = 1, max = 64, timed = 64}
// [args]
// u = {role = "in", shape = ["8 * by", "16 * bx"]}
// right = {role = "in", shape = ["8 * by", "16 * bx"]}
// down = {role = "in", shape = ["8 * by", "16 * bx"]}
// y = {role = "inout", shape = ["8 * by", "16 * bx"]}
// [launch]
// grid = ["bx", "by"]
// block = [16, 8]
// ///
__global__ void flow(const float *u, const float *right, const float *down, float *y) {
  int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
  int w = 16 * gridDim.x, h = 8 * gridDim.y, at = i * w + j;
  float e = j == w - 1 ? u[at] : u[at + 1], s = i == h - 1 ? u[at] : u[at + w];
  y[at] += 0.25f * (e * right[at] + s * down[at] - u[at]);
}
"""


def test_edges_of_whole_tiles_are_edges(tmp_path):
    """Each of two neighbours stops at an edge of its own, which is a multiple of a size."""
    (tmp_path / "k.cu").write_text(FLOW)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    (line,) = lines(found.computation)
    assert "u[i, j + 1] if j <= 16*bx - 2 else u[i, j]" in line, line
    assert "u[i + 1, j] if i <= 8*by - 2 else u[i, j]" in line, line


CAUSAL = """// /// fsr
// entry = "decay"
// [sizes]
// n = {min = 1, max = 512, timed = 512}
// [args]
// x = {role = "in", shape = ["n", "n"]}
// y = {role = "out", shape = ["n", "n"]}
// n = {value = "n"}
// [launch]
// grid = ["ceil_div(n, 32)", "n"]
// block = 32
// ///
#include <cuda_HEADER.h>
__global__ void decay(const float *x, TYPE *y, int n) {
  int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y;
  if (j >= n) return;
  TYPE v;
  if (i <= j) v = (TYPE)(2.0f * x[i * n + j]);
  else v = (TYPE)FILL;
  y[i * n + j] = v;
}
"""


@pytest.mark.parametrize(("header", "type_"), [("fp16", "__half"), ("bf16", "__nv_bfloat16")])
@pytest.mark.parametrize("fill", [0.0, 1.5])
def test_a_literal_of_sixteen_bits_is_a_number_of_its_type(tmp_path, header, type_, fill):
    text = CAUSAL.replace("HEADER", header).replace("TYPE", type_).replace("FILL", f"{fill}f")
    (tmp_path / "k.cu").write_text(text)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    value = found.computation.statements[-1].value
    literals = {(e.value, e.dtype) for e in walk(value) if isinstance(e, Const)}
    assert (fill, {"__half": "float16"}.get(type_, "bfloat16")) in literals
    assert all(dtype != "int16" for _, dtype in literals), lines(found.computation)


TURNED = """// /// fsr
// entry = "turned"
// [sizes]
// rows = {min = 1, max = 512, timed = 512}
// cols = {min = 1, max = 512, timed = 512}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["cols", "rows"]}
// rows = {value = "rows"}
// cols = {value = "cols"}
// [launch]
// grid = ["ceil_div(cols, 16)", "rows"]
// block = 16
// ///
__global__ void turned(const TYPE *x, TYPE *y, int rows, int cols) {
  int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y;
  if (j < cols) y[j * rows + i] = x[i * cols + j];
}
"""


@pytest.mark.parametrize("type_", ["unsigned", "unsigned char", "unsigned short", "unsigned long long"])
def test_unsigned_elements_are_moved_as_they_are(tmp_path, type_):
    """Those with the highest bit, too."""
    (tmp_path / "k.cu").write_text(TURNED.replace("TYPE", type_))
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    assert lines(found.computation) == ["y[i, j] = x[j, i]"]


LOOKED_UP = """// /// fsr
// entry = "curve"
// [sizes]
// n = {min = 1, max = 65536, timed = 65536}
// [args]
// at = {role = "in", shape = ["n"], low = 0, high = 65535}
// table = {role = "in", shape = [65536]}
// y = {role = "out", shape = ["n"]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void curve(const int *at, const float *table, float *y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) y[i] = table[at[i]] + 1.0f;
}
"""


def test_a_long_table_does_not_keep_sizes_from_being_watched(tmp_path):
    (tmp_path / "k.cu").write_text(LOOKED_UP)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    assert lines(found.computation) == ["y[i] = table[int64(at[i])] + 1.0"]
    assert {"n": 3} in found.watched
