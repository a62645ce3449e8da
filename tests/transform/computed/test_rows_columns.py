"""Values of rows and folds along columns in one reading: right whatever fits, and no element read twice."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.lifting.lift import lift
from fsr.transform.protocol import Subject
from tests.transform.computed.test_families import FAMILY
from tests.transform.conftest import subject_of

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

BOTH = FAMILY["fold-rows-columns"]
HEAD = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 65536, timed = 4096}
// c = {min = 1, max = 8192, timed = TIMED}
// [args]
// g = {role = "in", shape = ["n", "c"]}
// x = {role = "ROLE", shape = ["n", "c"]}
// w = {role = "in", shape = ["c"]}
// r = {role = "in", shape = ["n"]}
ARGS
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// [tolerance]
// sum_length = "n + c"
// ///
"""
PLACES = '// dx = {role = "out", shape = ["n", "c"]}\n'
SUMS = "".join(f'// {name} = {{role = "inout", shape = ["c"]}}\n' for name in ("dw", "db"))
TWO_SUMS = """__global__ void k(const float *g, const float *x, const float *w, const float *r,
                  float *dx, float *dw, float *db, int n, int c) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float s = 0, t = 0;
  for (int i = 0; i < c; i++) { s += w[i] * g[row * c + i]; t += w[i] * g[row * c + i] * x[row * c + i]; }
  s /= c;
  t /= c;
  for (int i = 0; i < c; i++) {
    atomicAdd(&db[i], g[row * c + i]);
    atomicAdd(&dw[i], g[row * c + i] * x[row * c + i]);
    dx[row * c + i] = (w[i] * g[row * c + i] - s - t * x[row * c + i]) * r[row];
  }
}"""
LARGEST = """__global__ void k(const float *g, const float *x, const float *w, const float *r,
                  float *dx, float *top, int n, int c) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < n) {
    float s = 0;
    for (int i = 0; i < c; i++) s += g[t * c + i] * x[t * c + i];
    for (int i = 0; i < c; i++) dx[t * c + i] = s * w[i] * x[t * c + i];
  }
  for (int i = t; i < c; i += gridDim.x * blockDim.x) {
    float m = -INFINITY;
    for (int j = 0; j < n; j++) m = fmaxf(m, g[j * c + i] * r[j]);
    top[i] = m;
  }
}"""


@cache
def lifted(body: str, args: str, timed: int, role: str = "in") -> Subject:
    text = HEAD.replace("ARGS\n", args).replace("TIMED", str(timed)).replace("ROLE", role) + body
    bare = subject_of(text)
    found = lift(bare.contract, bare.candidate, limit_s=60)
    assert found.computation is not None, found.why
    return replace(bare, computation=found.computation)


CASES = {
    "two sums": (TWO_SUMS, PLACES + SUMS),
    "a maximum": (LARGEST, PLACES + '// top = {role = "out", shape = ["c"]}\n'),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("threads", [32, 64, 256])
def test_rows_and_columns(runner, name, threads):
    subject = lifted(*CASES[name], 4 * threads + 100)
    move = next(m for m in BOTH.moves(subject) if m.param("threads") == threads)
    made = BOTH.apply(subject, move)
    assert len(made.plan.launches) == 2
    width = int(move.param("slots")) * 4 * threads
    shapes = ((1, 1), (5, 7), (37, 4 * threads), (3, width - 4), (2, width + 4), (9, 4 * threads - 3), (4500, 4))
    for (n, c), alignment in product(shapes, (256, 4)):
        sizes = {"n": n, "c": c}
        want = runner.outputs(subject.candidate, subject.contract, sizes, alignment=alignment)
        got = runner.outputs(made, subject.contract, sizes, alignment=alignment)
        for output in want:
            np.testing.assert_allclose(got[output], want[output], rtol=1e-5, err_msg=f"{output} {sizes} {alignment}")


def test_no_element_of_a_row_is_read_twice_and_nobody_races(runner):
    subject = lifted(*CASES["two sums"], 256)
    made = BOTH.apply(subject, next(BOTH.moves(subject)))
    body = made.source[made.source.index("__global__") :]
    by_packs = body[: body.index("} else {")]
    assert by_packs.count("(&g[") == by_packs.count("(&x[") == by_packs.count("(&dx[") == 1
    assert "atomic" not in body
    for sizes in ({"n": 600, "c": 64}, {"n": 40, "c": 65}):
        assert runner.faults(made, subject.contract, sizes) == []


def test_nothing_is_offered_where_rows_are_overwritten():
    """What another warp still wants of the columns may be gone."""
    body = TWO_SUMS.replace("const float *x", "float *x").replace("float *dx, ", "").replace("dx[", "x[")
    subject = lifted(body, SUMS, 256, "inout")
    assert not list(BOTH.moves(subject))


def test_launches_that_must_stay_stay():
    assert not list(BOTH.moves(replace(lifted(*CASES["two sums"], 256), keep_launch=True)))
