"""Rows less their mean, written back as whole numbers between limits that data hardly ever reaches, or never."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from fsr.lifting.graph import Graph
from fsr.lifting.sides import around
from fsr.lifting.signs import Signs
from tests.lifting.lifted import lifted

watched = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

HEAD = """// /// fsr
// entry = "centred"
// [sizes]
// rows = {min = 1, max = 20000, timed = 16384}
// cols = {min = 1, max = 8000, timed = 4096}
// [args]
// x = {role = "inout", shape = ["rows", "cols"], low = LOW, high = HIGH}
// level = {role = "in", shape = ["cols"], low = 0, high = 255}
// cols = {value = "cols"}
// [launch]
// grid = "rows"
// block = THREADS
// ///
"""
BY_A_TREE = """__global__ void centred(TYPE* x, const float* level, int cols) {
  __shared__ float part[128];
  TYPE* row = x + (size_t)blockIdx.x * cols;
  float own = 0;
  for (int c = threadIdx.x; c < cols; c += 128) own += row[c];
  part[threadIdx.x] = own;
  for (int half = 64; half; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  __syncthreads();
  const float mean = part[0] / cols;
  for (int c = threadIdx.x; c < cols; c += 128) {
    float v = row[c] - mean + level[c];
    END
  }
}
"""
BY_A_WARP = """__global__ void centred(TYPE* x, const float* level, int cols) {
  TYPE* row = x + (size_t)blockIdx.x * cols;
  float own = 0;
  for (int c = threadIdx.x; c < cols; c += 32) own += (float)row[c];
  for (int step = 16; step; step >>= 1) own += __shfl_xor_sync(0xffffffff, own, step);
  const float mean = own / cols;
  for (int c = threadIdx.x; c < cols; c += 32) {
    float v = row[c] - mean + level[c];
    END
  }
}
"""
SUM = "_sum[i] = sum(float32(zext_int64(x[i, k0])) for k0 in range(cols))"
V = "level[j] + float32(zext_int64(x[i, j])) - (_sum[i] / cols)"
CHAIN = f"x[i, j] = (0 if (0.0 > ({V})) else (255 if ({V} > 255.0) else int16({V})))"
CLAMPED = {
    "by turns": (
        BY_A_TREE,
        "unsigned short w; if (v < 0) w = 0; else if (v > 255) w = 255; else w = (unsigned short)v; row[c] = w;",
        CHAIN,
    ),
    "each written for itself": (
        BY_A_WARP,
        """if (v < 0) { row[c] = 0; continue; }
    if (v > 255) { row[c] = 255; continue; }
    row[c] = (unsigned short)v;""",
        CHAIN,
    ),
    "at a limit that is out of reach": (
        BY_A_TREE,
        "if (v < 0) v = 0; else if (v > 65535) v = 65535; row[c] = (unsigned short)v;",
        f"x[i, j] = int16(max(min({V}, 65535.0), 0.0))",
    ),
}


def centred(kernel: str, end: str, kind: str = "unsigned short", low: int = 0, high: int = 255) -> str:
    threads = "128" if kernel is BY_A_TREE else "32"
    head = HEAD.replace("LOW", str(low)).replace("HIGH", str(high)).replace("THREADS", threads)
    return head + kernel.replace("TYPE", kind).replace("END", end)


@watched
@pytest.mark.parametrize("spelling", CLAMPED)
def test_a_mean_is_subtracted_and_what_is_left_is_clamped(tmp_path, spelling):
    kernel, end, told = CLAMPED[spelling]
    found = lifted(tmp_path, centred(kernel, end))
    assert found.computation is not None, found.why
    assert lines(found.computation) == [SUM, told]


@watched
def test_bytes_with_a_sign(tmp_path):
    end = "if (v > 127.0f) row[c] = 127; else if (v < -128.0f) row[c] = -128; else row[c] = (signed char)v;"
    found = lifted(tmp_path, centred(BY_A_WARP, end, "signed char", -128, 127))
    assert found.computation is not None, found.why
    assert "127 if " in lines(found.computation)[-1]
    assert "-128 if " in lines(found.computation)[-1]


FAR = """// /// fsr
// entry = "far"
// [sizes]
// n = {min = 1, max = 100000, timed = 10000}
// [args]
// x = {role = "in", shape = ["n"]LIMITS}
// y = {role = "out", shape = ["n"]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void far(const float* x, float* y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  if (v > 1e6f) { y[i] = sqrtf(v) / (i / n + 2); return; }  // no select: the division stays behind the branch
  y[i] = v;
}
"""


@watched
def test_what_only_far_values_do_is_seen_or_nothing_is_found(tmp_path):
    """A minimum would do for all values that ordinary data has."""
    found = lifted(tmp_path, FAR.replace("LIMITS", ""))
    assert found.computation is not None, found.why
    assert lines(found.computation) == ["y[i] = (sqrt(x[i]) / 2 if (x[i] > 1000000.0) else x[i])"]


@watched
def test_what_no_value_that_the_contract_allows_does_is_nothing(tmp_path):
    found = lifted(tmp_path, FAR.replace("LIMITS", ", low = -10, high = 10"))
    assert found.computation is not None, found.why
    assert lines(found.computation) == ["y[i] = x[i]"]


def test_data_around_the_literals_of_branches_with_a_missing_side():
    g = Graph()
    x = g.make("load", "x", (g.integer(3, "int64"),))
    one_sided = g.make("guard", g.compared("gt", x, g.const(255.0, "float32")), 0, x)
    assert "255" in around(g, [one_sided])
    assert "255" not in around(g, [g.selected(g.compared("gt", x, g.const(255.0, "float32")), x, g.negated(x))])


def test_the_range_of_what_is_computed_of_elements_with_limits():
    g = Graph()
    signs = Signs(g, {"x": "float32"}, {"x": (-1.0, 3.0)})
    x = g.make("load", "x", (g.integer(0, "int64"),))
    low, high = signs.range(g.list_of("sum", [g.op("neg", x), g.const(10.0, "float32")]))
    assert 6.5 < low <= 7.0
    assert 11.0 <= high < 11.5
    low, high = signs.range(g.divided(x, g.const(2.0, "float32")))
    assert low <= -0.5
    assert 1.5 <= high < 2.0
