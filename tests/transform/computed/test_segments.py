"""Lines of several segments: a point makes its element of each, along memory, with divisions of 32 bits."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.computation import Buffer, Computation, Statement
from fsr.computation.expression import Affine, Case, Expr, Fold, Load, Number, Op
from fsr.lifting.lift import lift
from fsr.transform.computed.row_form import rows
from fsr.transform.computed.scene import cuttings
from fsr.transform.computed.segments import segmented
from fsr.transform.protocol import Subject
from tests.transform.computed.test_families import FAMILY, check
from tests.transform.conftest import subject_of

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

HEAD = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 65536, timed = 4096}
// h = {min = 1, max = 64, timed = 16}
// d = {min = 1, max = 1024, timed = 64}
// [args]
ARGS
// [launch]
// grid = "ceil_div(n * h * d, 256)"
// block = 256
// ///
"""
TABLES = "".join(f'// {t} = {{role = "in", shape = ["n", "d"]}}\n' for t in ("c", "s"))
ROTATED = """__global__ void k(PARAMS const float *c, const float *s, int n, int h, int d) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= n * h * d) return;
  int k = idx % d, t = idx / (d * h), head = idx / d % h;
  long long base = ((long long)t * h + head) * 2 * d;
  float a = x[base + k], b = x[base + d + k];
  OUT[base + k] = a * c[t * d + k] - b * s[t * d + k];
  OUT[base + d + k] = a * s[t * d + k] + b * c[t * d + k];
}"""
GATED = """__global__ void k(const float *x, float *y, int n, int h, int d) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= n * h * d) return;
  int r = idx / d, c = idx % d;
  float gate = x[(long long)r * 2 * d + c], up = x[(long long)r * 2 * d + d + c];
  y[idx] = gate * (gate > 0.5f ? 2.0f : up);
}"""
THREE = """__global__ void k(const float *x, const float *b, float *q, float *v, float *w, int n, int h, int d) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= n * h * d) return;
  long long r = idx / d * 3LL * d;
  int j = idx % d;
  q[idx] = (x[r + j] + b[j]) * 0.125f;
  v[idx] = x[r + d + j] + b[d + j];
  w[idx] = x[r + 2 * d + j] + b[2 * d + j];
}"""


def kernel(text: str, args: str) -> str:
    return HEAD.replace("ARGS\n", args) + text


def argument(name: str, role: str, *shape: str) -> str:
    extents = ", ".join(f'"{x}"' for x in shape)
    return f'// {name} = {{role = "{role}", shape = [{extents}]}}\n'


WHOLE, HALF = ("n", "h", "2 * d"), ("n", "h", "d")
CASES = {
    "turned": kernel(
        ROTATED.replace("PARAMS", "const float *x, float *y,").replace("OUT", "y"),
        argument("x", "in", *WHOLE) + argument("y", "out", *WHOLE) + TABLES,
    ),
    "turned in place": kernel(
        ROTATED.replace("PARAMS", "float *x,").replace("OUT", "x"), argument("x", "inout", *WHOLE) + TABLES
    ),
    "gated": kernel(GATED, argument("x", "in", *WHOLE) + argument("y", "out", *HALF)),
    "three": kernel(
        THREE,
        argument("x", "in", "n", "h", "3 * d")
        + argument("b", "in", "3 * d")
        + "".join(argument(y, "out", *HALF) for y in "qvw"),
    ),
}


@cache
def lifted(text: str) -> Subject:
    bare = subject_of(text)
    found = lift(bare.contract, bare.candidate, limit_s=60)
    assert found.computation is not None, found.why
    return replace(bare, computation=found.computation)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("alignment", [256, 4])
def test_each_segment_is_accessed_along_memory(runner, name, alignment):
    subject = lifted(CASES[name])
    moves = check(runner, subject, "pack-elements", ((3, 2, 8), (1, 1, 1), (5, 3, 7), (70, 4, 12)), alignment=alignment)
    body = FAMILY["pack-elements"].apply(subject, moves[0]).source.split("__global__")[1]
    whole = body[: body.index("} else {")]
    assert whole.count("*reinterpret_cast<const fsr_pack<float, 4> *>") == {"gated": 2, "three": 6}.get(name, 4)
    assert "[" not in "".join(line for line in whole.splitlines() if "lane" in line and "v[lane]" not in line)
    # Where packs do not fit, threads that are neighbours have elements that are.
    assert re.search(r"const \w+( \w+)? (\w+) = \2_first / 4 \+ lane \* \2_packs;", body[body.index("} else {") :])


@pytest.mark.parametrize("name", CASES)
def test_places_are_divided_in_32_bits_and_reckoned_in_64(name):
    subject = lifted(CASES[name])  # x may have 8.6e9 elements, rows of it at most 4.2e6
    body = FAMILY["pack-elements"].apply(subject, next(FAMILY["pack-elements"].moves(subject))).source
    assert "const unsigned pack = " in body
    assert "long long pack" not in body
    assert "x[" in body
    assert all("(long long)" in line for line in body.splitlines() if "x[" in line)


def over_halves(value: Expr) -> list[Computation]:
    """What a line of two halves of d elements, each of them the value, is in segments."""
    dims = (("i", "n"), ("j", "2 * d"))
    buffers = (Buffer("x", "float32", ("n", "2 * d")), Buffer("y", "float32", ("n", "2 * d")))
    whole = Computation(("n", "d"), buffers, (Statement("map", "y", dims, value, place(0, ("j", 1))),))
    same = {("2 * d", "2 * (d)"), ("d", "1 * (d)")}
    return list(segmented(whole, lambda one, other: (one, other) in same))


def place(constant: int, *terms: tuple[str, int]) -> tuple[Expr, ...]:
    return Number(Affine((("i", 1),), 0), "int64"), Number(Affine(tuple(sorted(terms)), constant), "int64")


def read(constant: int, *terms: tuple[str, int]) -> Load:
    return Load("x", place(constant, *terms), "float32")


FIRST = Affine((("j", 1),), 0), Affine((("d", 1),), -1)


def test_a_condition_on_the_half_is_known_in_each():
    (found,) = over_halves(Case(*FIRST, read(0, ("d", 1), ("j", 1)), read(0, ("d", -1), ("j", 1))))
    assert [str(i.index) for s in found.statements for i in s.value.indices[1:]] == [
        str(Affine((), 1)), str(Affine((("j", 1),), 0)), str(Affine((), 0)), str(Affine((("j", 1),), 0)),
    ]  # fmt: skip
    assert [s.domain[-1] for s in found.statements] == [("j", "d")] * 2
    assert {b.shape for b in found.buffers} == {("n", "2", "d")}


@pytest.mark.parametrize("value", [
    read(1, ("j", 1)),  # the neighbour, which may be in another half
    Case(*FIRST, read(1, ("d", 1), ("j", 1)), read(0, ("j", 1))),
    Case(*FIRST, read(0, ("d", 1), ("j", 1)), read(0, ("j", 2))),
    Case(FIRST[0], Affine((("d", 1),), 0), read(0, ("d", 1), ("j", 1)), read(0, ("j", 1))),  # one beyond the half
])  # fmt: skip
def test_what_does_not_lie_in_halves_is_left(value):
    assert over_halves(value) == []


def summed(name: str, read: Expr) -> Fold:
    return Fold("sum", ((name, Affine((("d", 1),), 0)),), read)


def test_folds_over_what_is_no_part_of_a_line_are_told_in_each_half():
    rows = Load("x", (Number(Affine((("k", 1),), 0), "int64"), place(0, ("d", -1), ("j", 1))[1]), "float32")
    (found,) = over_halves(Case(*FIRST, read(0, ("j", 1)), summed("k", rows)))
    assert [type(s.value) for s in found.statements] == [Load, Fold]
    assert [i.index for i in found.statements[1].value.body.indices[1:]] == [Affine((), 0), Affine((("j", 1),), 0)]


@pytest.mark.parametrize("value", [
    Op("sum", (read(0, ("j", 1)), summed("k", read(0, ("k", 1))))),  # of a whole line
    Case(*FIRST, read(0, ("j", 1)), summed("k", read(0, ("j", 1), ("k", 1)))),  # of what lies ahead
    Case(*FIRST, read(0, ("j", 1)), summed("j", read(0, ("j", 1)))),  # another j
])  # fmt: skip
def test_folds_along_a_line_are_left(value):
    assert over_halves(value) == []


POOLED = """// /// fsr
// entry = "k"
// [sizes]
// b = {min = 1, max = 4096, timed = 256}
// l = {min = 1, max = 1024, timed = 300}
// c = {min = 1, max = 1024, timed = 256}
// [args]
// x = {role = "in", shape = ["b", "l", "c"]}
// y = {role = "out", shape = ["b", "3 * c"]}
// [launch]
// grid = ["ceil_div(c, 32)", "b"]
// block = [32, 8]
// [tolerance]
// sum_length = "l"
// ///
__global__ void k(const float *x, float *y, int l, int c) {
  __shared__ float sums[8][32], peaks[8][32];
  int t = threadIdx.x, u = threadIdx.y, j = blockIdx.x * 32 + t;
  long long b = blockIdx.y;
  sums[u][t] = 0.0f;
  peaks[u][t] = -1.0f;
  if (j < c)
    for (int r = u; r < l; r += 8) {
      float v = x[(b * l + r) * c + j];
      sums[u][t] += v;
      peaks[u][t] = fmaxf(peaks[u][t], v);
    }
  for (int s = 4; s > 0; s >>= 1) {
    __syncthreads();
    if (u < s) {
      sums[u][t] += sums[u + s][t];
      peaks[u][t] = fmaxf(peaks[u][t], peaks[u + s][t]);
    }
  }
  if (u || j >= c) return;
  y[b * 3 * c + j] = sums[0][t] / l;
  y[b * 3 * c + c + j] = sums[0][t] * 0.25f;
  y[b * 3 * c + 2 * c + j] = peaks[0][t];
}"""


def test_folds_of_columns_that_make_segments_read_each_element_once(runner):
    subject = lifted(POOLED)
    sizes = ((3, 20, 8), (1, 1, 1), (2, 37, 41), (1, 300, 260))
    moves = check(runner, subject, "fold-columns", sizes)
    body = FAMILY["fold-columns"].apply(subject, moves[0]).source.split("__global__")[1]
    assert body.count("&x[") == 1
    assert body.count("y[") == 3


ROWS = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 64, timed = 16}
// c = {min = 1, max = 512, timed = 64}
// l = {min = 1, max = 4096, timed = 1024}
// [args]
// x = {role = "in", shape = ["n", "c", "l"]}
// y = {role = "out", shape = ["n", "SHAPE"]}
// [launch]
// grid = ["c", "n"]
// block = 32
// [tolerance]
// sum_length = "l"
// ///
__global__ void k(const float *x, float *y, int c, int l) {
  int j = blockIdx.x, i = blockIdx.y;
  if (threadIdx.x) return;
  const float *row = x + (i * c + j) * l;
  float sum = 0.0f, most = -1.0f;
  for (int e = 0; e < l; ++e) { sum += row[e]; most = fmaxf(most, row[e]); }
  y[i * (SHAPE) + j] = sum / l;
  y[i * (SHAPE) + BEHIND + j] = most;
}"""


def test_folds_of_rows_that_make_segments_read_each_row_once(runner):
    subject = lifted(ROWS.replace("SHAPE", "2 * c").replace("BEHIND", "c"))
    moves = check(runner, subject, "fold-rows", ((2, 3, 40), (1, 1, 1), (3, 7, 300)))
    body = FAMILY["fold-rows"].apply(subject, moves[0]).source.split("__global__")[1]
    assert "- c" not in body.replace("-c", "- c")
    assert body.count(" y[") == 2


def test_folds_that_would_read_what_is_not_there_are_reckoned_at_no_point():
    subject = lifted(ROWS.replace("SHAPE", "2 * c").replace("BEHIND", "c"))
    told = {scene.part.domain[-1][1]: scene for way in cuttings(subject) for scene in way}
    assert told["c"].folds_stay_inside
    assert rows(told["c"]) is not None
    assert not told["2 * c"].folds_stay_inside  # of the rows that are c further up
    assert rows(told["2 * c"]) is None


LAYERS = """// /// fsr
// entry = "k"
// [sizes]
// l = {min = 1, max = 1000000, timed = 500}
// h = {min = 1, max = 64, timed = 40}
// w = {min = 1, max = 64, timed = 64}
// [args]
// x = {role = "in", shape = ["l", "h", "w"]}
// y = {role = "out", shape = ["l", "h", "w"]}
// [launch]
// grid = "ceil_div(l * h * w, 128)"
// block = 128
// ///
__global__ void k(const float *x, float *y, int l, int h, int w) {
  long long t = blockIdx.x * 128LL + threadIdx.x;
  if (t >= (long long)l * h * w) return;
  int c = t % w;
  y[t] = x[t] + (c > 0 ? x[t - 1] : 0.0f) + (c < w - 1 ? x[t + 1] : 0.0f);
}"""


def test_more_layers_than_a_grid_has_are_numbered_through(runner):
    subject = lifted(LAYERS)
    family = FAMILY["register-tile"]
    made = family.apply(subject, next(family.moves(subject)))
    (launch,) = made.plan.launches
    assert launch.grid[1:] == ("1", "1")
    for sizes in ({"l": 3, "h": 37, "w": 61}, {"l": 1, "h": 1, "w": 1}, {"l": 5, "h": 8, "w": 64}):
        want = runner.outputs(subject.candidate, subject.contract, sizes)["y"]
        np.testing.assert_array_equal(runner.outputs(made, subject.contract, sizes)["y"], want)
