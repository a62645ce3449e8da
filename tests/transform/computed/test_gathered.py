"""Rows that look up what data tells: components of a sum do so once, planes become records, short rows share a warp."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.computation import Buffer, Computation, Statement
from fsr.computation.expression import Affine, Expr, Fold, Load, Number, Op
from fsr.lifting.lift import lift
from fsr.transform.computed.interleaved import by_components
from fsr.transform.computed.planes_as_records import planes_as_records
from fsr.transform.protocol import Subject
from tests.transform.computed.test_families import FAMILY, at
from tests.transform.conftest import subject_of

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

HEAD = """// /// fsr
// entry = "ENTRY"
// [sizes]
// n = {min = 1, max = 4096, timed = 4096}
// k = {min = 1, max = 40, timed = 24}
// [args]
// at = {role = "in", shape = ["n", "k"], low = 0, high = "n - 1"}
// w = {role = "in", shape = ["n", "k"], low = 0.0, high = 1.0}
ARGS
// [launch]
// grid = "ceil_div(THREADS, 128)"
// block = 128
// [tolerance]
// sum_length = "k"
// ///
"""


def kernel(text: str, threads: str = "n", entry: str = "forces", **args: str) -> str:
    told = "".join(f"// {name} = {{{what}}}\n" for name, what in args.items())
    return HEAD.replace("ARGS\n", told).replace("THREADS", threads).replace("ENTRY", entry) + text


COLUMNS = kernel(
    """__global__ void forces(const float *w, const int *at, const float *x, float *y, int n, int k) {
  const int id = blockIdx.x * blockDim.x + threadIdx.x, row = id / 4, c = id % 4;
  if (row >= n) return;
  float s = 0.f;
  for (int q = 0; q < k; ++q) s += w[row * k + q] * x[at[row * k + q] * 4 + c];
  y[id] = s;
}""",
    "4 * n", x='role = "in", shape = ["n", 4]', y='role = "out", shape = ["n", 4]',
)  # fmt: skip
PLANES = kernel(
    """template <typename real>
__global__ void forces(const real *px, const real *py, const real *pz, const int *at, const real *w, real *fx, real *fy,
                       real *fz, int N, int M) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x) {
    real x = px[i], y = py[i], z = pz[i], ax = 0, ay = 0, az = 0;
    int m = 0;
    while (m < M) {
      int j = at[i * M + m];
      real dx = px[j] - x, dy = py[j] - y, dz = pz[j] - z;
      real f = w[i * M + m] / (dx * dx + dy * dy + dz * dz + real(0.5));
      ax += f * dx; ay += f * dy; az += f * dz;
      ++m;
    }
    fx[i] = ax; fy[i] = ay; fz[i] = az;
  }
}""",
    entry="forces<float>", N='value = "n"', M='value = "k"',
    **{name: f'role = "{role}", shape = ["n"]' for names, role in (("px py pz", "in"), ("fx fy fz", "out"))
       for name in names.split()},
)  # fmt: skip
BEHIND = kernel(
    """__global__ void forces(const float *p, const int *at, const float *w, float *out, int n, int k) {
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
  if (warp >= n) return;
  float a = 0.f, b = 0.f;
  for (int t = lane; t < k; t += 32) {
    int j = at[warp * k + t];
    float dx = p[warp] - p[j], dy = p[n + warp] - p[n + j], f = w[warp * k + t] / (1.0f + dx * dx + dy * dy);
    a += f * dx;
    b += f * dy;
  }
  for (int o = 16; o; o >>= 1) { a += __shfl_xor_sync(~0u, a, o); b += __shfl_xor_sync(~0u, b, o); }
  if (lane == 0) { out[warp] = a; out[n + warp] = b; }
}""",
    "32 * n", p='role = "in", shape = [2, "n"]', out='role = "out", shape = [2, "n"]',
)  # fmt: skip
SIZES = ((1, 1), (5, 3), (33, 24), (130, 33))


@cache
def lifted(text: str) -> Subject:
    bare = subject_of(text)
    found = lift(bare.contract, bare.candidate, limit_s=60)
    assert found.computation is not None, found.why
    return replace(bare, computation=found.computation)


def check(runner, subject, family, **options):
    """The family's first and last moves leave what the original leaves, but for rounding: terms cancel."""
    moves = list(FAMILY[family].moves(subject))
    for move in (*moves[:2], moves[-1]):
        made = FAMILY[family].apply(subject, move)
        for n, k in SIZES:
            given = {"at": np.random.default_rng(n).integers(n, size=(n, k))}
            want, got = (
                runner.outputs(c, subject.contract, {"n": n, "k": k}, given=given, **options)
                for c in (subject.candidate, made)
            )
            for name, values in want.items():
                np.testing.assert_allclose(got[name], values, rtol=1e-5, atol=1e-4, err_msg=f"{move.name} {name}")
    return moves


def body_of(subject: Subject, family: str) -> str:
    """The last kernel of the family's first candidate."""
    action = FAMILY[family]
    return action.apply(subject, next(iter(action.moves(subject)))).source.split("__global__")[-1]


@pytest.mark.parametrize("alignment", [256, 4])
def test_a_row_of_a_few_columns_is_looked_up_by_one_access(runner, alignment):
    moves = check(runner, lifted(COLUMNS), "fold-rows", alignment=alignment)
    assert moves[0].param("threads") < 32
    body = body_of(lifted(COLUMNS), "fold-rows")
    assert body.count("fsr_neighbours<4, 1>(&x[") == 2, "of whole packs, and of those that are not"
    assert body.count("fsr_lanes_sum") == 4


@pytest.mark.parametrize(("text", "of"), [(PLANES, 4), (BEHIND, 2)], ids=["three planes", "one behind the other"])
def test_planes_become_records(runner, text, of):
    check(runner, lifted(text), "fold-records")
    body = body_of(lifted(text), "fold-records")
    assert f"fsr_pack<float, {of}> beside1 =" in body
    assert "p[t" not in body, "nothing else is looked up"
    assert "px[t" not in body


def test_components_of_a_sum_are_made_together(runner):
    check(runner, lifted(BEHIND), "fold-rows")
    body = body_of(lifted(BEHIND), "fold-rows")
    assert body.count(" / ") == 2 + body.count("blockDim") + body.count("threadIdx.x / "), "one division a neighbour"


def test_rows_that_fill_a_warp_have_whole_ones():
    subject = lifted(COLUMNS.replace("timed = 24", "timed = 512").replace("max = 40", "max = 512"))
    assert all(m.param("threads") >= 32 for m in FAMILY["fold-rows"].moves(subject))


def test_few_lookups_need_no_records():
    few = PLANES.replace("timed = 24", "timed = 3")
    assert not list(FAMILY["fold-records"].moves(lifted(few)))
    assert list(FAMILY["fold-rows"].moves(lifted(few)))


# ---------------------------------------------------------------- what is none

TERMS = (("k0", Affine((("k", 1),))),)
TOLD = Load("at", at("i", "k0"), "int32")


def told(value: Expr, shape: tuple[str, ...] = ("n", "2"), target: str = "y") -> Computation:
    """``target[i, j] = value`` over points and two components."""
    names = ("i", "j")[: len(shape)]
    buffers = (
        Buffer("at", "int32", ("n", "k")), Buffer("x", "float32", ("n", "2")), Buffer("u", "float32", ("n",)),
        Buffer("v", "float32", ("n",)), Buffer("d", "float64", ("n",)), Buffer("y", "float32", shape),
    )  # fmt: skip
    s = Statement("map", target, tuple(zip(names, shape, strict=True)), value, at(*names))
    return Computation(("k", "n"), buffers, (s,))


def summed(*factors: Expr) -> Fold:
    return Fold("sum", TERMS, Op("prod", factors))


def test_components_are_told_apart_where_they_look_up_the_same():
    (found,) = by_components(told(summed(Load("x", (TOLD, *at("j")), "float32"))))
    assert [s.domain for s in found.statements] == [(("i", "n"),)] * 2


@pytest.mark.parametrize(
    "value",
    [
        summed(Load("x", (Op("sum", (TOLD, Number(Affine((("j", 1),)), "int64"))), *at("j")), "float32")),
        summed(Load("x", at("k0", "j"), "float32")),  # no data tells
        summed(Load("u", (TOLD,), "float32")),  # no component is in it
        Load("x", (Load("at", at("i", "j"), "int32"), *at("j")), "float32"),  # no fold
    ],
)
def test_no_components(value):
    assert not list(by_components(told(value)))


def plane(buffer: str, dtype: str = "float32") -> Load:
    return Load(buffer, (TOLD,), dtype)


def test_planes_are_put_side_by_side():
    (found,) = planes_as_records(told(summed(plane("u"), plane("v")), ("n",)))
    assert [s.target for s in found.statements] == ["$records1", "$records1", "y"]
    assert found.buffers[-1].shape == ("n", "2")


@pytest.mark.parametrize(
    "c",
    [
        told(summed(plane("u"), plane("v")), ("n",), target="u"),  # written by other rows meanwhile
        told(summed(plane("u"), plane("d", "float64")), ("n",)),
        told(summed(plane("u"), Load("v", at("k0"), "float32")), ("n",)),  # one of them alone is looked up
        told(summed(*(Load("x", (TOLD, Number(Affine((), n), "int64")), "float32") for n in (0, 1))), ("n",)),
    ],
    ids=["in place", "of two types", "one plane", "records already"],
)
def test_no_records(c):
    assert not list(planes_as_records(c))
