"""Maps over neighbours, a small tile of points a thread: right at edges, at odd sizes and unaligned, no read twice."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.lifting.lift import lift
from fsr.transform.computed.action import FROM_COMPUTATION
from fsr.transform.protocol import Subject
from tests.transform.conftest import subject_of

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

(TILES,) = (action for action in FROM_COMPUTATION if action.name == "register-tile")

IMAGE = """// /// fsr
// entry = "k"
// [sizes]
// h = {min = 1, max = 2048, timed = 512}
// w = {min = 1, max = 2048, timed = 640}
// [args]
// x = {role = "in", dtype = "DTYPE", shape = ["h", "w"]}
// y = {role = "out", dtype = "DTYPE", shape = ["h", "w"]}
// h = {value = "h"}
// w = {value = "w"}
// [launch]
// grid = GRID
// block = BLOCK
// ///
"""
LINE = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4000000, timed = 1000000}
// [args]
// x = {role = "in", shape = ["n"]}
// c = {role = "in", shape = [9]}
// y = {role = "out", shape = ["n"]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
// ///
"""
CLAMPED = """__global__ void k(const float *x, float *y, int h, int w) {
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
  if (c >= w || r >= h) return;
  int left = c > 0 ? c - 1 : c, right = c < w - 1 ? c + 1 : c, up = r > 0 ? r - 1 : r, down = r < h - 1 ? r + 1 : r;
  float own = x[r * w + c];
  y[r * w + c] = own + 0.25f * (x[r * w + left] + x[r * w + right] + x[up * w + c] + x[down * w + c] - 4 * own);
}"""
BOX_OF_BYTES = """__global__ void k(const unsigned char *x, unsigned char *y, int h, int w) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= h * w) return;
  int c = t % w, r = t / w;
  if (c == 0 || r == 0 || c == w - 1 || r == h - 1) { y[t] = x[t]; return; }
  int s = 0;
  for (int i = -1; i <= 1; i++) for (int j = -1; j <= 1; j++) s += x[(r + i) * w + c + j];
  y[t] = s / 9;
}"""
TWO_STEPS = """__global__ void k(const float *x, float *y, int h, int w) {
  __shared__ float a[16][16], b[16][16];
  int c = blockIdx.x * 12 + threadIdx.x - 2, r = blockIdx.y * 12 + threadIdx.y - 2;
  bool in = c >= 0 && c < w && r >= 0 && r < h;
  int i = threadIdx.y, j = threadIdx.x;
  a[i][j] = in ? x[r * w + c] : 0.f;
  b[i][j] = 0;
  __syncthreads();
  if (in && i > 0 && j > 0 && i < 15 && j < 15) b[i][j] = a[i][j - 1] + a[i][j + 1] + a[i - 1][j] + 2 * a[i + 1][j];
  __syncthreads();
  if (in && i > 1 && j > 1 && i < 14 && j < 14)
    y[r * w + c] = b[i][j - 1] + b[i][j + 1] + b[i - 1][j] + 2 * b[i + 1][j];
}"""
FIR = """__global__ void k(const float *x, const float *c, float *y, int n) {
  __shared__ float s[128 + 8];
  int base = blockIdx.x * 128 - 4;
  for (int k = threadIdx.x; k < 136; k += 128) s[k] = base + k >= 0 && base + k < n ? x[base + k] : 0.0f;
  __syncthreads();
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= n) return;
  float a = 0;
  for (int k = 0; k < 9; k++) a += c[k] * s[threadIdx.x + k];
  y[i] = a;
}"""


def image(kernel: str, dtype: str, grid: str, block: str) -> str:
    return IMAGE.replace("DTYPE", dtype).replace("GRID", grid).replace("BLOCK", block) + kernel


AROUND = CLAMPED.replace("c - 1 : c,", "c - 1 : w - 1,").replace("c + 1 : c,", "c + 1 : 0,")
AROUND = AROUND.replace("r - 1 : r,", "r - 1 : h - 1,").replace("r + 1 : r;", "r + 1 : 0;")
EVEN = image(AROUND, "float32", '["ceil_div(w, 8)", "ceil_div(h, 8)"]', "[16, 16]")
EVEN = EVEN.replace('["h", "w"]', '["2 * h", "2 * w"]').replace('= "h"}', '= "2 * h"}').replace('= "w"}', '= "2 * w"}')

CASES = {
    "going round": (EVEN, 2),
    "clamped": (image(CLAMPED, "float32", '["ceil_div(w, 16)", "ceil_div(h, 16)"]', "[16, 16]"), 2),
    "bytes by one number": (image(BOX_OF_BYTES, "uint8", '"ceil_div(h * w, 256)"', "256"), 2),
    "two steps in shared memory": (
        image(TWO_STEPS, "float32", '["ceil_div(w, 12)", "ceil_div(h, 12)"]', "[16, 16]"),
        2,
    ),
    "coefficients and a halo": (LINE + FIR, 1),
}


@cache
def lifted(text: str) -> Subject:
    bare = subject_of(text)
    found = lift(bare.contract, bare.candidate, limit_s=60)
    assert found.computation is not None, found.why
    return replace(bare, computation=found.computation)


@pytest.mark.parametrize("name", CASES)
def test_neighbours(runner, name):
    text, rank = CASES[name]
    subject = lifted(text)
    moves = list(TILES.moves(subject))
    assert len(moves) > 1
    for move in (moves[0], moves[-1]) if name == "clamped" else moves[:1]:
        made = TILES.apply(subject, move)
        assert made.actions == (move.name,)
        for sizes, alignment in (((1, 5), 256), ((37, 70), 256), ((45, 140), 256), ((12, 132), 4)):
            names = dict(zip((s.name for s in subject.contract.sizes), sizes[-rank:], strict=True))
            want = runner.outputs(subject.candidate, subject.contract, names, alignment=alignment)["y"]
            got = runner.outputs(made, subject.contract, names, alignment=alignment)["y"]
            np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=1e-5, err_msg=f"{move.name} {names}")


def test_an_element_is_read_once_and_a_step_that_points_share_is_computed_once():
    subject = lifted(CASES["two steps in shared memory"][0])
    move = next(m for m in TILES.moves(subject) if m.param("rows") == 4 and m.param("pack") == 1)
    body = TILES.apply(subject, move).source
    inside = body[body.index("__global__") : body.index("} else {")]
    reads = [line.split("= ")[1] for line in inside.splitlines() if "const float x_" in line]
    assert len(reads) == len(set(reads)) == 28  # what is within two steps of four points in a column
    assert inside.count("2.0f") == 14 + 4  # values of the first step that the four points need, and the points


def test_nothing_is_offered_where_no_neighbour_is_read():
    scale = "__global__ void k(const float *x, float *y, int h, int w) {\n  int i = blockIdx.x * 256 + threadIdx.x;\n"
    scale += "  if (i < h * w) y[i] = 2 * x[i];\n}"
    subject = lifted(image(scale, "float32", '"ceil_div(h * w, 256)"', "256"))
    assert list(TILES.moves(subject)) == []


def test_double_that_literals_bring_about_may_be_left_out(runner):
    kernel = CLAMPED.replace("0.25f * (", "0.25 * (").replace("- 4 * own", "- 4.0 * own")
    subject = lifted(image(kernel, "float32", '["ceil_div(w, 16)", "ceil_div(h, 16)"]', "[16, 16]"))
    first = next(iter(TILES.moves(subject)))
    assert first.param("single") == 1
    made = TILES.apply(subject, first)
    assert "double" not in made.source[made.source.index("__global__") :]
    sizes = {"h": 37, "w": 68}
    want, got = (runner.outputs(c, subject.contract, sizes)["y"] for c in (subject.candidate, made))
    np.testing.assert_allclose(got, want, rtol=1e-5)
    exact = replace(subject.contract, tolerance=replace(subject.contract.tolerance, exact=True))
    assert not any("single" in dict(m.params) for m in TILES.moves(replace(subject, contract=exact)))


HALF = """// /// fsr
// entry = "k"
// [sizes]
// h = {min = 8, max = 2048, timed = 512}
// w = {min = 8, max = 2048, timed = 641}
// [args]
// x = {role = "in", shape = ["h", "w"]}
// c = {role = "in", shape = [6]}
// y = {role = "out", shape = ["h", "ceil_div(w, 2)"]}
// h = {value = "h"}
// w = {value = "w"}
// [launch]
// grid = ["ceil_div(w, 64)", "h"]
// block = 64
// ///
__global__ void k(const float *x, const float *c, float *y, int h, int w) {
  int j = blockIdx.x * 64 + threadIdx.x, r = blockIdx.y, odd = w & 1, half = (w + odd) / 2;
  if (j >= half) return;
  float s = 0;
  for (int t = 0; t < 6; t++) {
    int at = 2 * j + t - 2;
    if (at < 0) at += w + odd;
    if (at >= w) at = at == w && odd ? w - 1 : at - w - odd;
    s += c[t] * x[r * w + at];
  }
  y[r * half + j] = s;
}
"""


def test_a_term_whose_read_a_condition_chooses_is_not_left_out_at_an_edge(runner):
    subject = lifted(HALF)
    move = next(iter(TILES.moves(subject)))
    made = TILES.apply(subject, move)
    for sizes in ({"h": 9, "w": 8}, {"h": 8, "w": 9}, {"h": 37, "w": 141}, {"h": 12, "w": 140}):
        want, got = (runner.outputs(c, subject.contract, sizes)["y"] for c in (subject.candidate, made))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=str(sizes))


def test_away_from_the_ends_of_a_subsampled_row_no_condition_is_left():
    subject = lifted(HALF)
    body = TILES.apply(subject, next(iter(TILES.moves(subject)))).source
    inside = body[body.index("__global__") : body.index("} else {")]
    assert "?" not in inside


def test_a_fold_of_such_reads_that_some_points_do_not_want_is_none():
    subject = lifted(HALF.replace("= s;", "= j < 3 ? x[r * w] : s;"))
    assert list(TILES.moves(subject)) == []
