"""Sums over windows whose size only the launch tells: right at edges, each weight read once a step."""

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

(WINDOWS,) = (action for action in FROM_COMPUTATION if action.name == "slide-window")

MASKED = """// /// fsr
// entry = "k"
// [sizes]
// h = {min = 1, max = 2048, timed = 512}
// w = {min = 1, max = 2048, timed = 640}
// r = {min = 0, max = 6, timed = 3}
// [args]
// x = {role = "in", shape = ["h", "w"]}
// m = {role = "in", shape = ["2 * r + 1", "2 * r + 1"]}
// y = {role = "out", shape = ["h", "w"]}
// [launch]
// grid = ["ceil_div(w, 16)", "ceil_div(h, 16)"]
// block = [16, 16]
// [tolerance]
// sum_length = "(2 * r + 1) ** 2"
// ///
__global__ void k(const float *x, const float *m, float *y, int h, int w, int r) {
  int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  if (col >= w || row >= h) return;
  float all = 0.0f;
  for (int a = -r; a <= r; a++)
    for (int b = -r; b <= r; b++)
      if (row + a >= 0 && row + a < h && col + b >= 0 && col + b < w)
        all += m[(a + r) * (2 * r + 1) + b + r] * x[(row + a) * w + col + b];
  y[row * w + col] = all;
}
"""
TAPS = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4000000, timed = 1000000}
// taps = {min = 1, max = 40, timed = 33}
// [args]
// x = {role = "in", dtype = "DTYPE", shape = ["n + taps - 1"]}
// c = {role = "in", dtype = "DTYPE", shape = ["taps"]}
// y = {role = "out", dtype = "DTYPE", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 256)"
// block = 256
// ///
__global__ void k(const TYPE *x, const TYPE *c, TYPE *y, int n, int taps) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  TYPE all = 0;
  for (int t = 0; t < taps; t++) all += c[t] * x[i + t];
  y[i] = all * 2 + 1;
}
"""
FLOATS, WORDS = (TAPS.replace("DTYPE", d).replace("TYPE", t) for d, t in (("float32", "float"), ("int32", "int")))

CAUSAL = (
    FLOATS.replace("n + taps - 1", "n")
    .replace("all += c[t] * x[i + t]", "if (i - t >= 0) all += c[t] * x[i - t]")
)  # fmt: skip
DEVIATION = FLOATS.replace("c[t] * x[i + t];", "x[i + t];").replace(
    "y[i] = all * 2 + 1;",
    "float mean = all / taps, off = 0;\n  for (int t = 0; t < taps; t++) off += fabsf(x[i + t] - mean) * c[t];\n"
    "  y[i] = off / taps;",
)
PAIRS = (
    FLOATS.replace('shape = ["n + taps - 1"]', 'shape = ["n", 2]').replace('["taps"]', '["taps", 2]')
    .replace('shape = ["n"]}', 'shape = ["n", 2]}').replace("float all = 0;", "float re = 0, im = 0;")
    .replace(
        "all += c[t] * x[i + t];",
        "if (i >= t) { re += c[2 * t] * x[2 * (i - t)]; im += c[2 * t + 1] * x[2 * (i - t) + 1]; }",
    )
    .replace("y[i] = all * 2 + 1;", "y[2 * i] = re; y[2 * i + 1] = im;")
)  # fmt: skip

POWER = PAIRS.replace('shape = ["n", 2]}\n// [launch]', 'shape = ["n"]}\n// [launch]').replace(
    "y[2 * i] = re; y[2 * i + 1] = im;", "y[i] = re * re + im * im;"
)

CORRELATION = DEVIATION.replace('"float32", shape = ["taps"]}', '"float32", shape = ["n + taps - 1"]}').replace(
    "float mean = all / taps, off = 0;", "float mean = all / taps, other = 0, off = 0, own = 0;\n"
    "  for (int t = 0; t < taps; t++) other += c[i + t];\n  other /= taps;",
).replace(
    "off += fabsf(x[i + t] - mean) * c[t];",
    "{ off += (x[i + t] - mean) * (c[i + t] - other); own += (c[i + t] - other) * (c[i + t] - other); }",
).replace("y[i] = off / taps;", "y[i] = off + own;")  # fmt: skip

COLOURS = (
    FLOATS.replace('dtype = "float32", shape = ["n + taps - 1"]', 'shape = ["n + taps - 1", 3]')
    .replace("const float *x", "const unsigned char *x").replace("float", "int")
    .replace("c[t] * x[i + t]", "c[t] * (x[3 * (i + t)] + x[3 * (i + t) + 1] + x[3 * (i + t) + 2])")
    .replace('"int32", shape = ["taps"]}', '"int32", shape = ["taps"], low = -9, high = 9}')
)  # fmt: skip


@cache
def lifted(text: str) -> Subject:
    bare = subject_of(text)
    found = lift(bare.contract, bare.candidate, limit_s=60)
    assert found.computation is not None, found.why
    return replace(bare, computation=found.computation)


def agree(runner, subject: Subject, made, sizes: dict[str, int], alignment: int) -> None:
    want = runner.outputs(subject.candidate, subject.contract, sizes, alignment=alignment)["y"]
    got = runner.outputs(made, subject.contract, sizes, alignment=alignment)["y"]
    np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=1e-5, err_msg=str(sizes))


def test_a_mask_of_any_size_with_noughts_around(runner):
    subject = lifted(MASKED)
    moves = list(WINDOWS.moves(subject))
    below, beside = (next(m for m in moves if (m.param("rows") == 1) == flat) for flat in (False, True))
    for move in (below, beside):
        made = WINDOWS.apply(subject, move)
        assert made.actions == (move.name,)
        for h, w, r in ((1, 5, 2), (37, 70, 0), (45, 140, 3), (12, 132, 6)):
            agree(runner, subject, made, {"h": h, "w": w, "r": r}, 256 if w % 4 else 4)


@pytest.mark.parametrize("text", [FLOATS, WORDS, CAUSAL])
def test_taps_along_a_line(runner, text):
    subject = lifted(text)
    move = next(iter(WINDOWS.moves(subject)))
    made = WINDOWS.apply(subject, move)
    for n, taps in ((1, 1), (1000, 33), (1027, 2), (40, 40)):
        agree(runner, subject, made, {"n": n, "taps": taps}, 256)
    inside = made.source[made.source.index("__global__") :].partition("} else {")[0]
    # A weight a step of a square, and one of those that are left.
    assert (inside.count("= c["), inside.count("= fsr_neighbours<")) == (int(move.param("pack")) + 1, 2)


@pytest.mark.parametrize(
    ("text", "by_one", "packed"),
    [(DEVIATION, 0, 2), (PAIRS, 1, 0), (POWER, 0, 1), (COLOURS, 0, 1), (CORRELATION, 0, 2)],
    ids=["deviation", "pairs", "power", "colours", "correlation, in two walks"],
)
def test_several_sums_over_windows(runner, text, by_one, packed):
    """One needs what another gives, or they stand beside one another in a record."""
    subject = lifted(text)
    move = next(iter(WINDOWS.moves(subject)))
    made = WINDOWS.apply(subject, move)
    for n, taps in ((1, 1), (1000, 33), (1027, 2), (40, 40), (4096, 7)):
        agree(runner, subject, made, {"n": n, "taps": taps}, 256)
    assert made.source.count("near0_0 = near0_1;") + made.source.count("near0_1 = near0_0;") == by_one
    assert made.source.count("near0_0 = near0_next_0;") == packed


def test_a_few_terms_are_no_window():
    """They are written out by another action."""
    few = FLOATS.replace("taps = {min = 1, max = 40, timed = 33}", "taps = 9")
    assert list(WINDOWS.moves(lifted(few))) == []
    empty = FLOATS.replace("taps = {min = 1,", "taps = {min = 0,").replace("n + taps - 1", "n + max(taps, 1) - 1")
    assert list(WINDOWS.moves(lifted(empty))) == []
