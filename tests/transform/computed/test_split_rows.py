"""Folds of few long rows, and of all there is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fsr.computation.canonical import DIMS
from fsr.computation.expression import Affine, Case, Const, Fold, Load, Number, Op, renamed
from tests.transform.computed.test_families import FAMILY, at, check, computed, over
from tests.transform.conftest import subject_of

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_all_there_is_is_added_to_what_was_there(runner):
    total = over("sum", "n", Load("x", at("k0"), "float32"))
    before = Load("total", (Number(Affine(), "int64"),), "float32")
    subject = subject_of((EXAMPLES / "reduction.cu").read_text())
    subject = computed(subject, {"total": Op("sum", (total, before))}, ("n",))
    move = next(m for m in FAMILY["split-rows"].moves(subject) if m.param("threads") == 128)
    made = FAMILY["split-rows"].apply(subject, move)
    assert [launch.grid[0] for launch in made.plan.launches] == [f"{move.param('parts')} * 1", "1"]
    for n in (1, 5003):
        want, got = (runner.outputs(c, subject.contract, {"n": n})["total"] for c in (subject.candidate, made))
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_rows_that_fill_the_gpu_are_not_split():
    text = """// /// fsr
// [sizes]
// rows = {min = 1, max = 65536, timed = 65536}
// cols = {min = 1, max = 4096, timed = 1024}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["rows"]}
// [launch]
// grid = "rows"
// block = 1
// ///
__global__ void k(const float *x, float *y, int cols) {
  float s = 0;
  for (int c = 0; c < cols; c++) s += x[blockIdx.x * cols + c];
  y[blockIdx.x] = s;
}"""
    value = over("sum", "cols", Load("x", at("i", "k0"), "float32"))
    assert not list(FAMILY["split-rows"].moves(computed(subject_of(text), {"y": value}, ("rows", "cols"))))


def test_several_totals_of_one_buffer_are_made_in_one_walk(runner):
    text = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 16777216, timed = 4194304}
// [args]
// x = {role = "in", shape = ["n"]}
// s = {role = "inout", shape = [3]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// [tolerance]
// sum_length = "n"
// ///
__global__ void k(const float* x, float* s, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  atomicAdd(&s[0], x[i]);
  atomicAdd(&s[1], x[i] * x[i]);
  if (i == 0) s[2] = 5;
}
"""
    x = Load("x", at("k0"), "float32")
    own = [Load("s", (Number(Affine((), n), "int64"),), "float32") for n in range(2)]
    sums = [over("sum", "n", body) for body in (x, Op("prod", (x, x)))]
    first, second = (Op("sum", pair) for pair in zip(sums, own, strict=True))
    here = Affine(((DIMS[0], 1),))
    value = Case(here, Affine(), first, Case(here, Affine((), 1), second, Const(5.0, "float32")))
    subject = computed(subject_of(text), {"s": value}, ("n",))
    move = next(FAMILY["split-rows"].moves(subject))
    made = FAMILY["split-rows"].apply(subject, move)
    assert len(made.plan.launches) == 3
    for n in (1, 5003):
        want, got = (runner.outputs(c, subject.contract, {"n": n})["s"] for c in (subject.candidate, made))
        np.testing.assert_allclose(got, want, rtol=1e-5)


CHANNELS = """// /// fsr
// entry = "k"
// [sizes]
// images = {min = 1, max = 8, timed = 4}
// channels = {min = 1, max = 8192, timed = CHANNELS}
// pixels = {min = 1, max = 20000, timed = 20000}
// [args]
// x = {role = "in", shape = ["images", "channels", "pixels"]}
// mean = {role = "out", shape = ["channels"]}
// y = {role = "out", shape = ["images", "channels", "pixels"]}
// [launch]
// grid = "channels"
// block = 1
// ///
__global__ void k(const float *x, float *mean, float *y, int images, int channels, int pixels) {
  int c = blockIdx.x;
  float sum = 0.0f, squares = 0.0f;
  for (int n = 0; n < images; n++)
    for (int p = 0; p < pixels; p++) sum += x[(n * channels + c) * pixels + p];
  float m = sum / (images * pixels);
  mean[c] = m;
  for (int n = 0; n < images; n++)
    for (int p = 0; p < pixels; p++) {
      float d = x[(n * channels + c) * pixels + p] - m;
      squares += d * d;
    }
  for (int n = 0; n < images; n++)
    for (int p = 0; p < pixels; p++) {
      int at = (n * channels + c) * pixels + p;
      y[at] = (x[at] - m) * rsqrtf(squares / (images * pixels) + 1e-5f);
    }
}"""


def statistics(count: int):
    """Of channels whose elements lie in a piece an image."""
    elements = tuple(Number(Affine(((n, 1),)), "float32") for n in ("images", "pixels"))

    def mean(channel: str, names: tuple[str, str], *, off_mean: bool = False) -> Op:
        value = body = Load("x", at(names[0], channel, names[1]), "float32")
        if off_mean:
            body = Op("sum", (value, Op("neg", (mean(channel, ("k8", "k9")),))))
            body = Op("prod", (body, body))
        dims = tuple((n, Affine(((x, 1),))) for n, x in zip(names, ("images", "pixels"), strict=True))
        return Op("div", (Fold("sum", dims, body), Op("prod", elements)))

    variance = Op("sum", (mean("j", ("k2", "k3"), off_mean=True), Const(1e-5, "float32")))
    off = Op("sum", (Load("x", at("i", "j", "i2"), "float32"), Op("neg", (mean("j", ("k0", "k1")),))))
    values = {"mean": mean("i", ("k0", "k1")), "y": Op("prod", (off, Op("rsqrt", (variance,))))}
    subject = subject_of(CHANNELS.replace("CHANNELS", str(count)))
    return computed(subject, values, ("images", "channels", "pixels"))


@pytest.mark.parametrize(("channels", "blocks"), [(8, True), (4096, False)])
def test_rows_in_pieces(runner, channels: int, blocks: bool):
    subject = statistics(channels)
    moves = check(runner, subject, "split-rows", [(1, 1, 1), (3, 2, 7), (2, 3, 64), (3, 1, 1028)])
    assert all((int(m.param("parts")) > 1) == blocks for m in moves)
    made = FAMILY["split-rows"].apply(subject, moves[0])
    assert len(made.plan.launches) == (5 if blocks else 3)  # two statistics, and what is made of them


PAIRS = """// /// fsr
// entry = "k"
// [sizes]
// clouds = {min = 1, max = 64, timed = 4}
// n = {min = 1, max = 2048, timed = 512}
// m = {min = 1, max = 2048, timed = 512}
// [args]
// x = {role = "in", shape = ["clouds", "n", WIDTH]}
// z = {role = "in", shape = ["clouds", "m", 3]}
// w = {role = "in", shape = ["clouds", "m", "n"]}
// y = {role = "out", shape = ["clouds"]}
// [tolerance]
// sum_length = "n * m"
// [launch]
// grid = "clouds"
// block = 1
// ///
__global__ void k(const float *x, const float *z, const float *w, float *y, int clouds, int n, int m) {
  int c = blockIdx.x;
  float sum = 0.0f;
  for (int j = 0; j < m; j++)
    for (int i = 0; i < n; i++) {
      float d = x[(c * n + i) * WIDTH + 1] - z[(c * m + j) * 3 + 2];
      sum += d * d * w[(c * m + j) * n + i];
    }
  y[c] = sum;
}"""


@pytest.mark.parametrize(("width", "offered"), [(3, True), (64, False)])
def test_records_beside_the_row_are_read_one_by_one(runner, width: int, offered: bool):
    one = (Number(Affine((), 1), "int64"),)
    two = (Number(Affine((), 2), "int64"),)
    d = Op("sum", (
        Load("x", (*at("i", "k1"), *one), "float32"), Op("neg", (Load("z", (*at("i", "k0"), *two), "float32"),)),
    ))  # fmt: skip
    dims = (("k0", Affine((("m", 1),))), ("k1", Affine((("n", 1),))))
    total = Fold("sum", dims, Op("prod", (Load("w", at("i", "k0", "k1"), "float32"), d, d)))
    subject = subject_of(PAIRS.replace("WIDTH", str(width)))
    subject = computed(subject, {"y": total}, ("clouds", "n", "m"))
    if offered:
        check(runner, subject, "split-rows", [(1, 1, 1), (2, 5, 3), (3, 64, 7), (1, 260, 33)])
    else:
        assert list(FAMILY["split-rows"].moves(subject)) == []


BALANCE = """// /// fsr
// entry = "k"
// [sizes]
// rows = {min = 1, max = 65536, timed = 8192}
// kinds = {min = 1, max = 128, timed = 64}
// [args]
// x = {role = "in", shape = ["rows", "kinds"], low = -2, high = 2}
// y = {role = "out", shape = [1]}
// [tolerance]
// sum_length = "rows * kinds"
// [launch]
// grid = 1
// block = 1
// ///
__global__ void k(const float *x, float *y, int rows, int kinds) {
  float total = 0.0f;
  for (int e = 0; e < kinds; e++) {
    float own = 0.0f;
    for (int r = 0; r < rows; r++) {
      float all = 0.0f;
      for (int j = 0; j < kinds; j++) all += expf(x[r * kinds + j]);
      own += expf(x[r * kinds + e]) / all;
    }
    total += own * own;
  }
  y[0] = total;
}"""


@pytest.mark.parametrize("family", ["split-rows", "fold-rows", "fold-columns"])
def test_a_short_fold_of_all_there_is_ends_what_others_begin(runner, family: str):
    """Shares of rows, their sums along the columns, and one number of these: a kernel each."""
    e = Op("exp", (Load("x", at("k1", "k2"), "float32"),))
    shares = Op(
        "div", (renamed(e, lambda n: "k0" if n == "k2" else n), Fold("sum", (("k2", Affine((("kinds", 1),))),), e))
    )
    columns = Fold("sum", (("k1", Affine((("rows", 1),))),), shares)
    total = Fold("sum", (("k0", Affine((("kinds", 1),))),), Op("prod", (columns, columns)))
    subject = computed(subject_of(BALANCE), {"y": total}, ("rows", "kinds"))
    moves = check(runner, subject, family, [(1, 1), (5, 64), (300, 3), (17, 128)])
    assert len({m.name for m in moves}) == len(moves)
    assert len(FAMILY[family].apply(subject, moves[0]).plan.launches) in (3, 4)
